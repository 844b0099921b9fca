//! What is told of a launch that goes wrong on a GPU.
//!
//! A kernel with assertions, or one that is compiled *guarded*, gets more parameters than others: the
//! address of a *record*, which is all 0 before the launch, and where the memory of its arguments begins
//! and how long it is. The first program that finds fault claims the record and writes into it; every
//! program that finds fault ends there. Whoever launched reads the record when the launch is done.
//!
//! | byte of the record | |
//! |---|---|
//! | 0 | the program's number plus 1, i64 |
//! | 8 | elements of the tile from the first that is at fault on, i32 |
//! | 12 | elements at fault, i32 |
//! | 16 | the site plus 1, i64: written last |
//! | 24 | values of the first element at fault, i64: of an access its address |
//!
//! What cannot be told so, a kernel that strays without guards, the GPU finds at best, and says no more
//! than that it has.

use naiad_ir::thread::Site;
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Function, Inst};
use naiad_opt::origin::Origins;
use std::ops::Range;

/// Offsets in the record.
pub(crate) mod record {
    pub const PROGRAM: i64 = 0;
    pub const LEFT: i64 = 8;
    pub const COUNT: i64 = 12;
    pub const SITE: i64 = 16;
    pub const VALUES: i64 = 24;
}

/// What a kernel tells of its faults.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The kernel as its sites know it.
    pub func: Function<Tile>,
    sites: Vec<SiteInfo>,
    /// Parts of arguments' memory that the code asks for, in the order of the parameters.
    extents: Vec<Extent>,
    /// Whether programs wait for each other, so that one that ends must end them all.
    pub(crate) waits: bool,
}

/// An op that may find fault.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SiteInfo {
    pub inst: Inst,
    /// Of an access the argument that its pointer was made from, if that is one.
    pub arg: Option<usize>,
    /// Whether its pointer may be made of a number. Whose memory that leads to nobody knows, since a GPU's
    /// memory is not only what arguments have; but none is near address 0 or at no multiple of its size.
    pub made: bool,
}

/// No memory begins before this address.
pub(crate) const FIRST_ADDRESS: i64 = 4096;

/// The memory of an argument that may be read, or written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Extent {
    pub arg: usize,
    pub write: bool,
}

/// What stands in a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found<'a> {
    pub site: SiteInfo,
    /// The program's number, axis 0 fastest.
    pub program: u64,
    /// The first element at fault, in row-major order, and how many are.
    pub lane: usize,
    pub count: usize,
    pub values: &'a [u64],
}

impl Watch {
    /// None if there is nothing to tell.
    pub(crate) fn new(func: &Function<Tile>, guarded: bool) -> Option<Watch> {
        let origins = Origins::new(func);
        let (mut waits, mut makes_pointers) = (false, false);
        func.walk(&mut |inst| {
            let op = func.op(inst);
            waits |= matches!(op, TileOp::While { .. });
            makes_pointers |= matches!(op, TileOp::Bitcast { src, to }
                if to.pointer().is_some() && !func.ty(*src).is_pointer());
        });
        let (mut sites, mut kinds) = (Vec::new(), [false; 2]);
        func.walk(&mut |inst| {
            let op = func.op(inst);
            if matches!(op, TileOp::Assert { .. }) {
                sites.push(SiteInfo { inst, arg: None, made: false });
            }
            let Some((ptr, write)) = accessed(op).filter(|_| guarded) else { return };
            let arg = origins.of(ptr).arg();
            let made = arg.is_none() && makes_pointers;
            sites.push(SiteInfo { inst, arg, made });
            kinds[usize::from(write)] |= !made;
        });
        // A pointer made from one argument may lead to another's memory, as on a CPU.
        let pointers = (0..func.params().len()).filter(|&i| func.ty(func.params()[i]).is_pointer());
        let extents = pointers.flat_map(|arg| {
            let wanted = [false, true].into_iter().filter(|&write| kinds[usize::from(write)]);
            wanted.map(move |write| Extent { arg, write })
        });
        let extents = extents.collect();
        let func = func.clone();
        (!sites.is_empty()).then_some(Watch { func, sites, extents, waits })
    }

    /// Of an access the bytes of an element.
    pub fn size_of(&self, site: SiteInfo) -> Option<usize> {
        let (ptr, _) = accessed(self.func.op(site.inst))?;
        self.func.ty(ptr).elem.pointer().map(|p| p.pointee.size())
    }

    pub(crate) fn site_of(&self, inst: Inst) -> Option<Site> {
        let at = self.sites.iter().position(|site| site.inst == inst)?;
        Some(Site(at as u32))
    }

    /// The memory that an access may touch, by the numbers of the extents: that which it is meant for
    /// first. None where it is not known.
    pub(crate) fn extents_of(&self, site: Site) -> Option<Vec<usize>> {
        let &SiteInfo { inst, arg, made } = self.sites.get(site.0 as usize)?;
        let (_, writes) = accessed(self.func.op(inst)).filter(|_| !made)?;
        let fits = (0..self.extents.len()).filter(|&i| self.extents[i].write == writes);
        let mut all: Vec<usize> = fits.collect();
        all.sort_by_key(|&i| Some(self.extents[i].arg) != arg);
        Some(all)
    }

    pub(crate) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// The arguments behind the kernel's own: the record's address, and where memory is, as whoever
    /// launches says.
    pub fn arguments(
        &self,
        record: u64,
        memory: impl Fn(Extent) -> Range<usize>,
    ) -> impl Iterator<Item = u64> {
        let extents = self.extents.iter().flat_map(move |&extent| {
            let memory = memory(extent);
            [memory.start as u64, memory.len() as u64]
        });
        std::iter::once(record).chain(extents)
    }

    /// How many words of 64 bits a record has.
    pub fn words(&self) -> usize {
        let values = self.sites.iter().map(|site| match self.func.op(site.inst) {
            TileOp::Assert { values, .. } => values.len(),
            _ => 1,
        });
        record::VALUES as usize / 8 + values.max().unwrap_or(0)
    }

    /// What the record says; nothing if no program found fault.
    pub fn found<'a>(&self, words: &'a [u64]) -> Option<Found<'a>> {
        let [program, lanes, site, values @ ..] = words else { return None };
        let site = *self.sites.get(usize::try_from(site.checked_sub(1)?).ok()?)?;
        let shape = match self.func.op(site.inst) {
            TileOp::Assert { cond, .. } => self.func.ty(*cond).shape,
            op => self.func.ty(accessed(op)?.0).shape,
        };
        let (left, count) = (*lanes as u32 as usize, (lanes >> 32) as usize);
        let lane = shape.numel().checked_sub(left)?;
        Some(Found { site, program: program.checked_sub(1)?, lane, count, values })
    }
}

/// The pointer of an access to memory, and whether it writes.
fn accessed(op: &TileOp) -> Option<(naiad_ir::Value, bool)> {
    match *op {
        TileOp::Load { ptr, .. } | TileOp::AtomicLoad { ptr, .. } => Some((ptr, false)),
        TileOp::Store { ptr, .. }
        | TileOp::AtomicRmw { ptr, .. }
        | TileOp::AtomicCas { ptr, .. }
        | TileOp::AtomicStore { ptr, .. } => Some((ptr, true)),
        _ => None,
    }
}
