//! Private runs of a program: nothing of them is seen outside.
//!
//! A program is run again to learn what some lanes did to what it stores. It reads the launch's memory,
//! and keeps what it writes to itself, where its own later reads find it. Two such runs, one with the
//! flagged lanes of a combining point left out, tell whether those lanes mattered; a third kind writes
//! down where NaN and infinities come from.

use super::Checked;
use super::numeric::{Origin, Trace};
use crate::access::{Context, Cursor, Target, each_lane, load};
use crate::atomics::Update;
use crate::combine::unless_scalar;
use crate::engine::{read_image, write_image};
use crate::exec::{Exec, Pause, Program};
use crate::fault::{Access, Fault};
use crate::slab::Slab;
use crate::tile::{Dense, Tile};
use naiad_ir::scalar::{Predicate, Rounding, cast_bits};
use naiad_ir::{Inst, Scalar};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// What a private run keeps to itself.
#[derive(Default)]
pub struct Private {
    /// Elements that it wrote, by address.
    written: FxHashMap<usize, (Scalar, u64)>,
    /// Atomic operations whose result nobody used: address and operand.
    added: Vec<(usize, Scalar, u64)>,
    /// It saw what an atomic operation found, which other programs may have changed meanwhile.
    pub observed: bool,
    /// Points whose flagged lanes are left out.
    pub dropped: Vec<Inst>,
    /// Points at which flagged lanes changed a result, in order.
    pub suspects: Vec<Inst>,
    pub trace: Option<Trace>,
    /// Ends the run where this op stores a NaN or an infinity, whose origin then stands in `found`.
    pub until: Option<Inst>,
    pub found: Option<Origin>,
}

pub type Overlay = Rc<RefCell<Private>>;

/// Runs a program on its own, from its start; none if it did not come to its end.
pub fn run(exec: &mut Exec<'_, Checked>, number: u64, private: Private) -> Option<Private> {
    let overlay: Overlay = Rc::new(RefCell::new(private));
    let budget = std::mem::replace(&mut exec.budget, u64::MAX);
    let (cost, results) = (exec.cost, std::mem::take(&mut exec.results));
    let mut p = Program::<Checked>::default();
    exec.start(&mut p, number);
    p.state.private = Some(overlay.clone());
    let ran = exec.resume(&mut p);
    drop(p);
    (exec.budget, exec.cost, exec.results) = (budget, cost, results);
    let ended = matches!(ran, Ok(Pause::Finished)) || overlay.borrow().found.is_some();
    ended.then(|| Rc::try_unwrap(overlay).ok().map(RefCell::into_inner))?
}

impl Private {
    /// A run that leaves out the flagged lanes of some points.
    pub fn dropping(dropped: Vec<Inst>) -> Private {
        Private { dropped, ..Private::default() }
    }

    /// A run up to where an op stores a NaN or an infinity, to see where that was made.
    pub fn tracing(until: Inst) -> Private {
        Private { trace: Some(Trace::default()), until: Some(until), ..Private::default() }
    }

    /// Whether two runs stored the same, up to the rounding that another order of sums makes.
    pub fn agrees(&self, other: &Private) -> bool {
        let close = |x: &(Scalar, u64), y: &(Scalar, u64)| x.0 == y.0 && close(x.0, x.1, y.1);
        self.written.len() == other.written.len()
            && self.added.len() == other.added.len()
            && self.written.iter().all(|(at, x)| other.written.get(at).is_some_and(|y| close(x, y)))
            && self
                .added
                .iter()
                .zip(&other.added)
                .all(|(x, y)| x.0 == y.0 && close(&(x.1, x.2), &(y.1, y.2)))
    }

    pub fn load(
        &self,
        cx: &Context<'_>,
        t: &Target<'_>,
        other: Option<&Tile>,
    ) -> Result<Tile, Fault> {
        let tile = load(cx, t, other)?;
        if self.written.is_empty() {
            return Ok(tile);
        }
        let size = t.elem.size();
        let lanes = tile.dense(t.elem, &t.shape);
        let lanes =
            if matches!(tile, Tile::Dense(_)) { lanes.copied(size, &t.shape) } else { lanes };
        each_lane(t, None, &mut |chunk| {
            for i in 0..chunk.n {
                let own = chunk.address(i).and_then(|at| self.written.get(&(at as usize)));
                if let Some(&(ty, image)) = own
                    && ty.size() == size
                {
                    // SAFETY: a lane of the copy.
                    unsafe {
                        write_image(
                            lanes.slab.as_mut_ptr().add((chunk.start + i) * size),
                            size,
                            image,
                        )
                    };
                }
            }
            Ok(())
        })?;
        Ok(unless_scalar(Tile::Dense(lanes), t.elem, &t.shape))
    }

    pub fn store(&mut self, cx: &Context<'_>, t: &Target<'_>, value: &Tile) -> Result<(), Fault> {
        let mut cursor = Cursor::new(cx, t, Access::Store);
        each_lane(t, Some(value), &mut |chunk| {
            for i in 0..chunk.n {
                let Some(address) = chunk.address(i) else { continue };
                cursor.locate(address, chunk.start + i)?;
                self.written.insert(address as usize, (t.elem, chunk.value(i, t.elem.size())));
            }
            Ok(())
        })
    }

    /// Atomic operations; the results are what the run itself would find.
    pub fn update(
        &mut self,
        cx: &Context<'_>,
        t: &Target<'_>,
        how: Option<Update<'_>>,
        value: Option<&Tile>,
        is_used: bool,
    ) -> Result<(Tile, bool), Fault> {
        let (ty, size, numel) = (t.elem, t.elem.size(), t.shape.numel());
        self.observed |= is_used;
        let slab = Slab::new(numel * size);
        // SAFETY: the slab has room for all lanes.
        unsafe { Tile::Uniform(0).fill(ty, &t.shape, 0, numel, slab.as_mut_ptr()) };
        let wanted = match how {
            Some(Update::Cas(compare)) => Some(compare.dense(ty, &t.shape)),
            Some(Update::Rmw(_)) | None => None,
        };
        let access = if value.is_some() { Access::Atomic } else { Access::AtomicLoad };
        let mut cursor = Cursor::new(cx, t, access);
        let mut changed = false;
        each_lane(t, value, &mut |chunk| {
            for i in 0..chunk.n {
                let Some(address) = chunk.address(i) else { continue };
                let lane = chunk.start + i;
                let at = cursor.locate(address, lane)?;
                let own = self.written.get(&(address as usize)).map(|w| w.1);
                // SAFETY: the cursor found the element in a storage; the slab has all lanes.
                let old = own.unwrap_or_else(|| unsafe { read_image(at, size) });
                // SAFETY: a lane of the result.
                unsafe { write_image(slab.as_mut_ptr().add(lane * size), size, old) };
                if value.is_none() {
                    continue;
                }
                let x = chunk.value(i, size);
                let new = match (how, &wanted) {
                    (Some(Update::Rmw(f)), _) => f.eval(ty, old, x),
                    (_, Some(wanted)) => {
                        // SAFETY: as many lanes as the access has.
                        let w = unsafe { read_image(wanted.at(size).add(lane * size), size) };
                        if w == old { x } else { old }
                    }
                    _ => x,
                };
                changed |= new != old;
                if matches!(how, Some(Update::Rmw(_))) && !is_used {
                    self.added.push((address as usize, ty, x));
                } else {
                    self.written.insert(address as usize, (ty, new));
                }
            }
            Ok(())
        })?;
        Ok((unless_scalar(Tile::Dense(Dense::new(slab)), ty, &t.shape), changed))
    }
}

/// Whether two numbers of a type are the same up to rounding.
fn close(ty: Scalar, x: u64, y: u64) -> bool {
    if x == y {
        return true;
    }
    if !ty.is_float() {
        return false;
    }
    let double = |x: u64| f64::from_bits(cast_bits(ty, Scalar::F64, Rounding::Nearest, x));
    let (a, b) = (double(x), double(y));
    if a.is_nan() || b.is_nan() {
        return a.is_nan() && b.is_nan();
    }
    let tolerance = match ty {
        Scalar::F64 => 1e-12,
        Scalar::F32 => 2e-5,
        Scalar::F16 => 4e-3,
        Scalar::BF16 => 2e-2,
        _ => 0.15,
    };
    Predicate::Eq.eval(ty, x, y) == Some(true)
        || (a - b).abs() <= tolerance * a.abs().max(b.abs()) + f64::MIN_POSITIVE
}
