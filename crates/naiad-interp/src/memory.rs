//! The memory that a launch may touch: the arguments' storages and the views on them.
//!
//! Whatever address a kernel makes up, it is looked up here before it is used, and an address that
//! no storage holds is an error. Reads and writes go through raw pointers, never through references:
//! the memory belongs to the host, and programs may race on it as they do on a GPU. What a race gives
//! is what the machine gives for plain accesses of that size; nothing in this crate depends on it.

use crate::args::{Arg, TensorArg, View};
use naiad_ir::Scalar;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::OnceLock;

/// The argument that a pointer was made from.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Origin {
    /// Made from an integer, or chosen lane by lane from several: found by the address.
    #[default]
    Unknown,
    Arg(u32),
}

/// A tensor argument as it is looked up.
pub struct Tensor<'a> {
    pub name: &'a str,
    pub address: usize,
    pub lo: usize,
    pub len: usize,
    pub writable: bool,
    pub view: Option<&'a View>,
    /// What the view covers, once someone asks: most launches never do.
    extent: OnceLock<Extent>,
}

pub struct Memory<'a> {
    /// For each argument, none for numbers; and behind them the memory that was exposed.
    pub tensors: Vec<Option<Tensor<'a>>>,
}

impl<'a> Memory<'a> {
    /// `names` are those of the parameters.
    pub fn new(names: &'a [String], args: &'a [Arg], exposed: &[Range<usize>]) -> Memory<'a> {
        let tensor = |(i, arg): (usize, &'a Arg)| match arg {
            Arg::Scalar(_) => None,
            Arg::Tensor(t) => Some(Tensor::new(names.get(i).map_or("?", String::as_str), t)),
        };
        let args = args.iter().enumerate().map(tensor);
        Memory { tensors: args.chain(exposed.iter().map(|r| Some(Tensor::bare(r)))).collect() }
    }

    pub fn tensor(&self, origin: Origin) -> Option<&Tensor<'a>> {
        match origin {
            Origin::Unknown => None,
            Origin::Arg(i) => self.tensors.get(i as usize)?.as_ref(),
        }
    }

    /// The tensor whose storage holds the addresses `lo..hi`: the one that the pointer was made from,
    /// or else any, one that may be written if that is wanted.
    pub fn find(&self, origin: Origin, lo: i128, hi: i128, write: bool) -> Option<&Tensor<'a>> {
        if let Some(t) = self.tensor(origin)
            && t.holds(lo, hi)
        {
            return Some(t);
        }
        let mut all = self.tensors.iter().flatten().filter(|t| t.holds(lo, hi));
        let first = all.next()?;
        if !write || first.writable {
            return Some(first);
        }
        Some(all.find(|t| t.writable).unwrap_or(first))
    }

    /// The tensor that is at fault if an access to this storage is outside the view; none if it is
    /// inside. A pointer from an argument is judged by that argument's view; any other by the views of
    /// all arguments that share the storage, since nobody knows which was meant.
    pub fn outside_view<'m>(
        &'m self,
        origin: Origin,
        found: &'m Tensor<'a>,
        inside: impl Fn(&Tensor<'_>) -> bool,
    ) -> Option<&'m Tensor<'a>> {
        let fault = match self.tensor(origin) {
            Some(t) => !inside(t),
            None => {
                let shares =
                    |t: &Tensor<'_>| t.lo < found.lo + found.len && found.lo < t.lo + t.len;
                !self.tensors.iter().flatten().any(|t| shares(t) && inside(t))
            }
        };
        fault.then(|| self.tensor(origin).unwrap_or(found))
    }
}

impl<'a> Tensor<'a> {
    fn new(name: &'a str, arg: &'a TensorArg) -> Tensor<'a> {
        Tensor {
            name,
            address: arg.address,
            lo: arg.storage.start,
            // There is no memory at address 0, whatever an object says that stands for a tensor.
            len: match arg.storage.start {
                0 => 0,
                start => arg.storage.end.saturating_sub(start),
            },
            writable: arg.writable,
            view: arg.view.as_ref(),
            extent: OnceLock::new(),
        }
    }

    /// Memory of which nothing is known but where it is.
    fn bare(range: &Range<usize>) -> Tensor<'a> {
        Tensor {
            name: "exposed memory",
            address: range.start,
            lo: range.start,
            len: range.len(),
            writable: true,
            view: None,
            extent: OnceLock::new(),
        }
    }

    fn extent(&self) -> Option<&Extent> {
        self.view.map(|view| self.extent.get_or_init(|| Extent::new(view)))
    }

    pub fn holds(&self, lo: i128, hi: i128) -> bool {
        let start = self.lo as i128;
        lo >= start && hi <= start + self.len as i128
    }

    /// Whether addresses `lo..hi`, which are in the storage, are in the view, as far as two
    /// comparisons tell: `false` means that lanes have to be looked at.
    pub fn surely_in_view(&self, lo: i128, hi: i128) -> bool {
        let Some(view) = self.extent() else { return true };
        let base = self.address as i128;
        view.gapless && lo - base >= view.lo && hi - base <= view.hi
    }

    /// Whether an element of `size` bytes at `address` lies in the view.
    pub fn in_view(&self, address: i64, size: usize) -> bool {
        let Some(view) = self.extent() else { return true };
        let offset = address as i128 - self.address as i128;
        view.holds(offset) && view.holds(offset + size as i128 - 1)
    }
}

/// The bytes that a view covers, relative to its element 0.
struct Extent {
    elem: Scalar,
    lo: i128,
    hi: i128,
    /// Every byte of `lo..hi` is in some element.
    gapless: bool,
    /// Strides in bytes, all positive, largest first, with the number of steps.
    axes: SmallVec<[(i128, i128); 4]>,
}

impl Extent {
    fn new(view: &View) -> Extent {
        let size = view.elem.size() as i128;
        let (mut lo, mut hi) = (0, size);
        let mut axes: SmallVec<[(i128, i128); 4]> = SmallVec::new();
        let empty = view.shape.contains(&0);
        for (&n, &stride) in view.shape.iter().zip(&view.strides) {
            let stride = stride as i128 * size;
            if n > 1 && stride != 0 {
                let far = stride * (n as i128 - 1);
                lo += far.min(0);
                hi += far.max(0);
                axes.push((stride.abs(), n as i128));
            }
        }
        axes.sort_by(|a, b| b.cmp(a));
        // No gaps: from the innermost axis out, each step is within what is covered so far.
        let mut covered = size;
        let mut gapless = true;
        for &(stride, n) in axes.iter().rev() {
            gapless &= stride <= covered;
            covered += stride * (n - 1);
        }
        if empty {
            hi = lo;
        }
        Extent { elem: view.elem, lo, hi, gapless, axes }
    }

    /// Whether the byte at `offset` is in an element.
    fn holds(&self, offset: i128) -> bool {
        if offset < self.lo || offset >= self.hi {
            return false;
        }
        let mut budget = 10_000;
        self.gapless || reaches(&self.axes, offset - self.lo, self.elem.size() as i128, &mut budget)
    }
}

/// Whether `offset` is a sum of steps and less than `size`. Axes that overlap make this a search; it
/// gives up after a while and then says yes, since a false report is worse than none.
fn reaches(axes: &[(i128, i128)], offset: i128, size: i128, budget: &mut u32) -> bool {
    let Some((&(stride, n), rest)) = axes.split_first() else { return offset < size };
    let inner: i128 = rest.iter().map(|&(s, n)| s * (n - 1)).sum::<i128>() + size;
    let most = (offset / stride).min(n - 1);
    let least = ((offset - inner) / stride + i128::from(offset >= inner)).max(0);
    for i in (least..=most).rev() {
        *budget = budget.saturating_sub(1);
        if *budget == 0 || reaches(rest, offset - i * stride, size, budget) {
            return true;
        }
    }
    false
}
