//! What was loaded before is not loaded again.
//!
//! ```text
//!   %a = load %p mask=%m                    %a = load %p mask=%m
//!   …                                       …
//!   %b = load %p mask=%m            ->      %b is %a
//! ```
//!
//! Stores between the two may be to the same memory. Which addresses they touch is a question of the
//! moment, and a cheap one where each lies in a short span behind a scalar: then a branch that is hardly
//! ever taken loads again.
//!
//! ```text
//!   %a = load %p mask=%m                    %a = load %p mask=%m
//!   store %q, %v                            store %q, %v
//!   %b = load %p mask=%m            ->      %near = the bytes of %q, and of all that %p can be, meet
//!                                           %b = if %near { yield load %p mask=%m } else { yield %a }
//! ```
//!
//! Loads are merged that have the same addresses, mask and `other`, in one block; of how long they stay in
//! the cache what the later one says. Nothing is merged across what orders memory or may see what another
//! program wrote: atomics, barriers, volatile loads, assembly; nor out of a round of a loop into the next, or
//! across a `while` that loads, since kernels wait in loops.

use crate::cse;
use crate::dce;
use crate::ranges::{Inputs, Ranges};
use crate::rewrite::Forward;
use naiad_diag::Loc;
use naiad_ir::op::Effects;
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::tile::{CacheModifier, Constant, MemHints, Tile, TileOp};
use naiad_ir::{Block, Elem, Function, Inst, OpInfo, Scalar, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// What the target has room for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Room {
    /// Elements of a tile up to which it is kept rather than loaded again.
    pub elements: usize,
    /// Whether a branch may be made of a load.
    pub branches: bool,
}

/// So many stores are held against a load; with more it is loaded again.
const STORES: usize = 4;

/// Bytes of a span up to which two of different arrays rarely meet.
const NEAR: i128 = 1 << 24;

/// Merges loads of a verified kernel, for launches of which `inputs` is known.
pub fn reuse(func: &mut Function<Tile>, inputs: &Inputs, room: Room) {
    let mut loads: usize = 0;
    func.walk(&mut |inst| loads += usize::from(matches!(func.op(inst), TileOp::Load { .. })));
    if loads < 2 {
        return;
    }
    let ranges = Ranges::new(func, inputs);
    let mut users: FxHashMap<Value, Vec<Inst>> = FxHashMap::default();
    func.walk(&mut |inst| {
        func.op(inst).each_value(&mut |v| users.entry(v).or_default().push(inst))
    });
    let forward = Forward::new(func);
    let gone = FxHashSet::default();
    let mut walk = Reuse { func, ranges, room, users, forward, gone, merged: false };
    walk.block(walk.func.entry());
    if walk.merged {
        // What was computed twice from what was loaded twice.
        cse(func);
        dce(func);
    }
}

struct Reuse<'f> {
    func: &'f mut Function<Tile>,
    ranges: Ranges,
    room: Room,
    users: FxHashMap<Value, Vec<Inst>>,
    forward: Forward,
    /// Ops that have no place any more.
    gone: FxHashSet<Inst>,
    merged: bool,
}

/// A load whose value may stand for a later one's.
struct Loaded {
    inst: Inst,
    /// What has been stored since, each with what was read here.
    stores: Vec<(Span, Span)>,
    /// Where in the block the last of it was.
    last: usize,
}

/// The bytes `base + start .. base + start + len`, in which all of an access lies.
#[derive(Copy, Clone)]
struct Span {
    /// A scalar pointer.
    base: Value,
    start: i128,
    len: i128,
}

impl Reuse<'_> {
    fn block(&mut self, block: Block) {
        let insts = self.func.take_insts(block);
        let mut out = Vec::with_capacity(insts.len());
        let mut known: Vec<Loaded> = Vec::new();
        for inst in insts {
            if self.gone.contains(&inst) {
                continue;
            }
            let forward = &mut self.forward;
            self.func.op_mut(inst).each_value_mut(&mut |v| *v = forward.get(*v));
            match *self.func.op(inst) {
                TileOp::Load { hints, .. } if may_merge(hints) => {
                    if !self.load(inst, &mut known, &mut out) {
                        out.push(inst);
                    }
                    continue;
                }
                TileOp::Store { ptr, hints, .. } if !hints.volatile => {
                    self.store(ptr, &mut known, out.len());
                }
                _ => {
                    if orders_memory(self.func, inst) {
                        known.clear();
                    }
                    let mut regions = Vec::new();
                    self.func.op(inst).each_block(&mut |b| regions.push(b));
                    regions.into_iter().for_each(|b| self.block(b));
                }
            }
            out.push(inst);
        }
        self.func.set_insts(block, out);
    }

    /// Whether something stands in the place of a load. If not it is known from now on.
    fn load(&mut self, inst: Inst, known: &mut Vec<Loaded>, out: &mut Vec<Inst>) -> bool {
        let result = self.func.results(inst)[0];
        let ty = self.func.ty(result);
        let same = known.iter().position(|l| self.alike(l.inst, inst));
        if let Some(i) = same
            && ty.shape.numel() <= self.room.elements
        {
            let first = known[i].inst;
            let is_new = known[i].stores.is_empty();
            if is_new || self.room.branches && !ty.is_scalar() {
                self.merged = true;
                let evict = hints_of(self.func.op(inst)).map(|h| h.evict);
                if let TileOp::Load { hints, .. } = self.func.op_mut(first)
                    && let Some(evict) = evict
                {
                    hints.evict = evict;
                }
                match is_new {
                    true => self.forward.replace(result, self.func.results(first)[0]),
                    false => {
                        // At once behind the stores, where less is under way than at the later load.
                        let at = known[i].last + 1;
                        let made = self.branch(inst, &known[i]);
                        let moved = known.iter_mut().filter(|l| l.last >= at);
                        moved.for_each(|l| l.last += made.len());
                        out.splice(at..at, made);
                    }
                }
                return true;
            }
        }
        let loaded = Loaded { inst, stores: Vec::new(), last: 0 };
        match same {
            Some(i) => known[i] = loaded,
            None => known.push(loaded),
        }
        false
    }

    /// Whether two loads give the same, if nothing is written in between.
    fn alike(&self, a: Inst, b: Inst) -> bool {
        let (
            TileOp::Load { ptr: p, mask: m, other: o, hints: h },
            TileOp::Load { ptr: q, mask: n, other: r, hints: i },
        ) = (self.func.op(a), self.func.op(b))
        else {
            return false;
        };
        p == q && m == n && o == r && h.cache == i.cache
    }

    /// Notes a store with every load whose memory it may touch.
    fn store(&mut self, ptr: Value, known: &mut Vec<Loaded>, at: usize) {
        let stored = self.span(ptr);
        known.retain_mut(|loaded| {
            let &TileOp::Load { ptr, .. } = self.func.op(loaded.inst) else { return false };
            let (Some(read), Some(stored)) = (self.span(ptr), stored) else { return false };
            // What goes by one argument is likely to be the same.
            let apart = self.root(read.base) != self.root(stored.base);
            loaded.stores.push((read, stored));
            loaded.last = at;
            apart && loaded.stores.len() <= STORES
        });
    }

    /// In which bytes an access lies.
    fn span(&self, ptr: Value) -> Option<Span> {
        let size = |v: Value| Some(self.func.ty(v).elem.pointer()?.pointee.size() as i128);
        let (mut value, mut low, mut high) = (ptr, 0, size(ptr)?);
        while !self.func.ty(value).is_scalar() {
            match *self.func.defining_op(value)? {
                TileOp::PtrAdd { ptr, offset } => {
                    let known = self.ranges.of(offset)?;
                    low += known.lo * size(ptr)?;
                    high += known.hi * size(ptr)?;
                    value = ptr;
                }
                TileOp::Splat { src, .. }
                | TileOp::ExpandDims { src, .. }
                | TileOp::Broadcast { src, .. } => value = src,
                _ => return None,
            }
            if high - low > NEAR {
                return None;
            }
        }
        Some(Span { base: value, start: low, len: high - low })
    }

    /// What a scalar pointer was made from by adding.
    fn root(&self, mut base: Value) -> Value {
        while let Some(&(TileOp::PtrAdd { ptr: src, .. } | TileOp::Bitcast { src, .. })) =
            self.func.defining_op(base)
        {
            base = src;
        }
        base
    }

    /// Loads again where what was stored may be in what was loaded.
    fn branch(&mut self, inst: Inst, loaded: &Loaded) -> Vec<Inst> {
        let mut made = Vec::new();
        let out = &mut made;
        let loc = self.func.loc(inst);
        let mut cond: Option<Value> = None;
        for &(read, stored) in &loaded.stores {
            let meets = self.meets(read, stored, loc, out);
            cond = Some(match cond {
                Some(a) => self.put(TileOp::Binary { f: BinaryFn::Or, a, b: meets }, loc, out),
                None => meets,
            });
        }
        let Some(cond) = cond else { unreachable!("nothing was stored") };
        let (old, first) = (self.func.results(inst)[0], self.func.results(loaded.inst)[0]);
        let cast = self.cast_to(old);
        let region = |this: &mut Self, again: Option<TileOp>| {
            let mut insts = Vec::new();
            let mut value = match again {
                Some(op) => this.put(op, loc, &mut insts),
                None => first,
            };
            if let Some(TileOp::Cast { to, rounding, .. }) = cast {
                value = this.put(TileOp::Cast { src: value, to, rounding }, loc, &mut insts);
            }
            let block = this.func.new_block();
            let last = this.create(TileOp::Yield { values: vec![value] }, loc);
            insts.push(last);
            this.func.set_insts(block, insts);
            block
        };
        let again = self.func.op(inst).clone();
        let then = region(self, Some(again));
        let otherwise = region(self, None);
        let new = self.put(TileOp::If { cond, then, otherwise }, loc, out);
        if cast.is_none() {
            self.forward.replace(old, new);
            return made;
        }
        for user in self.users.remove(&old).into_iter().flatten() {
            self.gone.insert(user);
            self.forward.replace(self.func.results(user)[0], new);
        }
        made
    }

    /// The conversion that is all that is wanted of a value. In the branch it is not made again of what
    /// is there already.
    fn cast_to(&self, value: Value) -> Option<TileOp> {
        let users = self.users.get(&value)?;
        let cast = |inst: Inst| match *self.func.op(inst) {
            TileOp::Cast { to, rounding, .. } => Some((to, rounding)),
            _ => None,
        };
        let first = cast(*users.first()?)?;
        let alike = users.iter().all(|&user| cast(user) == Some(first));
        alike.then_some(TileOp::Cast { src: value, to: first.0, rounding: first.1 })
    }

    /// Whether two spans of bytes meet: `s` lies less than its length before `r`, or less than `r`'s
    /// behind. In numbers without a sign that is one comparison.
    fn meets(&mut self, r: Span, s: Span, loc: Loc, out: &mut Vec<Inst>) -> Value {
        let u64 = |x| TileOp::Const { value: Constant::int(Scalar::U64, x) };
        let [a, b] = [s.base, r.base]
            .map(|src| self.put(TileOp::Bitcast { src, to: Elem::Scalar(Scalar::U64) }, loc, out));
        let apart = self.put(TileOp::Binary { f: BinaryFn::Sub, a, b }, loc, out);
        let by = self.put(u64(s.start - r.start + s.len - 1), loc, out);
        let apart = self.put(TileOp::Binary { f: BinaryFn::Add, a: apart, b: by }, loc, out);
        let limit = self.put(u64(s.len + r.len - 1), loc, out);
        self.put(TileOp::Compare { p: Predicate::Lt, a: apart, b: limit }, loc, out)
    }

    fn put(&mut self, op: TileOp, loc: Loc, out: &mut Vec<Inst>) -> Value {
        let inst = self.create(op, loc);
        out.push(inst);
        self.func.results(inst)[0]
    }

    fn create(&mut self, op: TileOp, loc: Loc) -> Inst {
        match self.func.create(op, loc) {
            Ok(inst) => inst,
            Err(e) => unreachable!("an op that does not fit: {e}"),
        }
    }
}

fn hints_of(op: &TileOp) -> Option<MemHints> {
    match op {
        TileOp::Load { hints, .. } => Some(*hints),
        _ => None,
    }
}

/// Whether a load's value may be that of another. Who names a level of the cache wants to see what others
/// wrote there.
fn may_merge(hints: MemHints) -> bool {
    !hints.volatile && matches!(hints.cache, CacheModifier::None | CacheModifier::Ca)
}

/// Whether an op other than a plain store, or one in its regions, may change memory, or what this program
/// is to see of it.
fn orders_memory(func: &Function<Tile>, inst: Inst) -> bool {
    let orders = |op: &TileOp| match op {
        TileOp::Load { hints, .. } => hints.volatile || hints.cache == CacheModifier::Cv,
        TileOp::InlineAsm { is_pure, .. } => !is_pure,
        op => op.effects() == Effects::Writes,
    };
    // What ends a `while` may be what it has loaded, which is newer than all that was loaded before it.
    let waits = matches!(func.op(inst), TileOp::While { .. });
    let mut found = orders(func.op(inst));
    func.op(inst).each_block(&mut |block| {
        func.walk_block(block, &mut |inst| {
            let op = func.op(inst);
            found |= orders(op) || waits && matches!(op, TileOp::Load { .. });
        });
    });
    found
}
