//! Operands of products by way of shared memory, fetched rounds ahead.
//!
//! ```text
//!   for k { a = load p; c = convert a; dot c }
//! becomes, with three slots,
//!   buffer = alloc; copy p(0) to slot 0; copy p(1) to slot 1
//!   for k {
//!     wait                                 the copy for this round is there, for all threads
//!     copy p(k + 2) to the slot that was read in the round before
//!     c = read buffer; dot c
//!   }
//!   wait; free buffer
//! ```
//!
//! What addresses and masks are computed from is computed for the later round, so all of it has to be
//! pure, and what the loop carries for it is carried a second time, rounds ahead. A loop that writes
//! memory is left as it is: a store could change what was fetched before.
//!
//! Copies are of 4 to 16 bytes, and bytes of masked lanes are zero; a load with another `other` is left
//! as it is too.

use crate::layout::{Layout, Swizzle, axis_bits, numel_bits};
use crate::placed::{Extra, Place, Placed, PlacedOp, PlacedType, Run, Watched, What, rules};
use naiad_diag::Loc;
use naiad_ir::op::{Effects, OpInfo};
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding};
use naiad_ir::tile::{Constant, TileOp};
use naiad_ir::{Block, Def, Function, Inst, Scalar, Type, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// Shared memory that a block may have, with room left for other ops.
const MOST_BYTES: usize = 200 << 10;

/// Puts the operands of products in loops into shared memory, up to `stages` rounds of them.
pub fn stage(func: &mut Function<Placed>, stages: u32) {
    if stages >= 2 {
        let entry = func.entry();
        blocks(func, entry, stages);
    }
}

fn blocks(func: &mut Function<Placed>, block: Block, stages: u32) {
    let old = func.take_insts(block);
    let mut new = Vec::with_capacity(old.len());
    for inst in old {
        if !func.op(inst).is_isolated() {
            let mut regions = Vec::new();
            func.op(inst).each_block(&mut |b| regions.push(b));
            regions.into_iter().for_each(|b| blocks(func, b, stages));
        }
        match Pipeline::find(func, inst, stages) {
            Some(pipeline) => pipeline.build(func, inst, &mut new),
            None => new.push(inst),
        }
    }
    func.set_insts(block, new);
}

/// A load whose tile a product takes.
struct Staged {
    load: Inst,
    /// The last of the ops between the load and the product, which brings the tile into its layout.
    convert: Inst,
    /// Permutations between the two, first to last.
    permutes: Vec<Inst>,
    /// The type of what is read from shared memory in the place of the load.
    read: PlacedType,
    buffer: PlacedType,
}

struct Pipeline {
    body: Block,
    staged: Vec<Staged>,
    /// Ops that addresses and masks are made by, in order.
    slice: Vec<Inst>,
    /// Positions of carried values that the slice needs.
    carried: Vec<usize>,
    stages: u32,
}

fn tile_op(func: &Function<Placed>, inst: Inst) -> Option<&TileOp> {
    match &func.op(inst).what {
        What::Tile(op) => Some(op),
        What::Extra(_) => None,
    }
}

fn constant(func: &Function<Placed>, value: Value) -> Option<Constant> {
    match func.def(value) {
        Def::Result(inst, _) => match tile_op(func, inst)? {
            TileOp::Const { value } => Some(*value),
            TileOp::Splat { src, .. } => constant(func, *src),
            _ => None,
        },
        Def::Param(..) => None,
    }
}

impl Pipeline {
    fn find(func: &Function<Placed>, inst: Inst, stages: u32) -> Option<Pipeline> {
        let TileOp::For { step, body, .. } = tile_op(func, inst)? else { return None };
        if constant(func, *step)?.as_int()? <= 0 {
            return None;
        }
        let body = *body;
        let insts = func.insts(body);
        let is_quiet = |&i: &Inst| {
            let op = func.op(i);
            matches!(op.effects(), Effects::Pure | Effects::Reads | Effects::Terminator)
        };
        if !insts.iter().all(is_quiet) {
            return None;
        }
        let mut uses: FxHashMap<Value, Vec<Inst>> = FxHashMap::default();
        for &i in insts {
            func.op(i).each_value(&mut |v| uses.entry(v).or_default().push(i));
        }
        let staged: Vec<Staged> =
            insts.iter().filter_map(|&i| Staged::find(func, i, &uses)).collect();
        if staged.is_empty() {
            return None;
        }
        let bytes = |s: &Staged| {
            let ty = s.buffer.ty;
            ty.shape.numel() * ty.elem.scalar().map_or(8, Scalar::size)
        };
        let round: usize = staged.iter().map(bytes).sum();
        let stages = stages.min(u32::try_from(MOST_BYTES / round).unwrap_or(u32::MAX));
        if stages < 2 {
            return None;
        }
        let (slice, carried) = slice(func, body, &staged)?;
        Some(Pipeline { body, staged, slice, carried, stages })
    }
}

impl Staged {
    /// The load at the beginning of a chain that ends in a product.
    fn find(
        func: &Function<Placed>,
        load: Inst,
        uses: &FxHashMap<Value, Vec<Inst>>,
    ) -> Option<Staged> {
        let TileOp::Load { ptr, mask, other, hints } = tile_op(func, load)? else { return None };
        let is_zero = other.is_none_or(|v| constant(func, v).is_some_and(|c| c.bits == 0));
        if hints.volatile || !is_zero {
            return None;
        }
        let only = |v: Value| match uses.get(&v)?[..] {
            [one] => Some(one),
            _ => None,
        };
        let loaded = func.results(load)[0];
        let mut permutes = Vec::new();
        let mut next = only(loaded)?;
        while let Some(TileOp::Permute { .. }) = tile_op(func, next) {
            permutes.push(next);
            next = only(func.results(next)[0])?;
        }
        let What::Extra(Extra::Convert { .. }) = func.op(next).what else { return None };
        let product = only(func.results(next)[0])?;
        let Some(TileOp::Dot { .. }) = tile_op(func, product) else { return None };
        // Where the product wants the tile, seen from before the permutations.
        let mut layout = func.ty(func.results(next)[0]).layout()?;
        for &permute in permutes.iter().rev() {
            let shape = func.ty(func.results(permute)[0]).ty.shape;
            let op = tile_op(func, permute)?;
            layout = rules::operands(op, |v| func.ty(v).ty.shape, &shape, &layout)?;
        }
        let ty = func.ty(loaded).ty;
        let size = ty.elem.scalar()?.size();
        let run = func.op(load).run;
        let from = func.ty(*ptr).layout()?;
        let (low, _) = axis_bits(&ty.shape, run.axis as usize);
        let together = 1u32 << from.neighbours(low, run.vector.trailing_zeros()).len();
        let alike = mask.is_none() || run.mask >= together;
        if size * (together as usize) < 4 || !alike {
            return None;
        }
        let swizzle = swizzle(ty, run.axis as usize);
        let place = Place::Shared { swizzle, slots: 1 };
        let read = PlacedType::spread(ty, layout);
        Some(Staged { load, convert: next, permutes, read, buffer: PlacedType { ty, place } })
    }
}

/// Rows along an axis one after the other, 16 bytes of which stay together; eight rows have their parts
/// of one column in different banks, so that matrices are read without conflicts.
fn swizzle(ty: Type, axis: usize) -> Swizzle {
    let size = ty.elem.scalar().map_or(8, Scalar::size) as u32;
    let (low, bits) = axis_bits(&ty.shape, axis);
    let all = numel_bits(&ty.shape);
    let order: Vec<u32> =
        (low..low + bits).chain((0..all).filter(|b| !(low..low + bits).contains(b))).collect();
    let together = (16 / size).trailing_zeros();
    let mut bases = vec![0; all as usize];
    for (position, &bit) in order.iter().enumerate() {
        bases[bit as usize] = 1 << position;
    }
    // Bits of a row's number that choose banks already, and those that are added to a part's number.
    let parts = bits.saturating_sub(together).min(3);
    let within = 3 - parts;
    for i in 0..parts {
        let row = bits + within + i;
        if let Some(&bit) = order.get(row as usize) {
            bases[bit as usize] |= 1 << (together + i);
        }
    }
    Swizzle::new(&bases)
}

/// What the addresses and masks of the loads are made by within the loop's body.
fn slice(
    func: &Function<Placed>,
    body: Block,
    staged: &[Staged],
) -> Option<(Vec<Inst>, Vec<usize>)> {
    let insts: FxHashSet<Inst> = func.insts(body).iter().copied().collect();
    let yields = match func.terminator(body) {
        Some(PlacedOp { what: What::Tile(TileOp::Yield { values }), .. }) => values.clone(),
        _ => return None,
    };
    let mut needed: FxHashSet<Inst> = FxHashSet::default();
    let mut carried: Vec<usize> = Vec::new();
    let mut work: Vec<Value> = Vec::new();
    for s in staged {
        if let Some(TileOp::Load { ptr, mask, .. }) = tile_op(func, s.load) {
            work.push(*ptr);
            work.extend(*mask);
        }
    }
    while let Some(value) = work.pop() {
        match func.def(value) {
            Def::Result(inst, _) if insts.contains(&inst) => {
                let op = func.op(inst);
                let mut has_region = false;
                op.each_block(&mut |_| has_region = true);
                if op.effects() != Effects::Pure || has_region {
                    return None;
                }
                if needed.insert(inst) {
                    op.each_value(&mut |v| work.push(v));
                }
            }
            // The first parameter counts the rounds.
            Def::Param(block, i) if block == body && i > 0 => {
                let at = i as usize - 1;
                if !carried.contains(&at) {
                    carried.push(at);
                    work.push(yields[at]);
                }
            }
            _ => {}
        }
    }
    carried.sort_unstable();
    let slice = func.insts(body).iter().copied().filter(|i| needed.contains(i)).collect();
    Some((slice, carried))
}

/// Ops under construction.
struct Maker<'a> {
    func: &'a mut Function<Placed>,
    out: Vec<Inst>,
    loc: Loc,
}

impl Maker<'_> {
    fn op(&mut self, what: impl Into<What>, results: Vec<PlacedType>, run: Run) -> Option<Value> {
        self.op_at(what, results, run, Watched::default())
    }

    fn op_at(
        &mut self,
        what: impl Into<What>,
        results: Vec<PlacedType>,
        run: Run,
        site: Watched,
    ) -> Option<Value> {
        let op = PlacedOp { what: what.into(), results, run, site };
        match self.func.create(op, self.loc) {
            Ok(inst) => {
                self.out.push(inst);
                self.func.results(inst).first().copied()
            }
            Err(why) => unreachable!("types of Placed IR are given: {why}"),
        }
    }

    fn value(&mut self, what: impl Into<What>, ty: PlacedType) -> Value {
        match self.op(what, vec![ty], Run::NONE) {
            Some(value) => value,
            None => unreachable!("an op of one result has it"),
        }
    }

    fn int(&mut self, ty: Scalar, value: i128) -> Value {
        let op = TileOp::Const { value: Constant::int(ty, value) };
        self.value(op, PlacedType::scalar(Type::scalar(ty)))
    }

    fn binary(&mut self, f: BinaryFn, a: Value, b: Value) -> Value {
        let ty = self.func.ty(a);
        self.value(TileOp::Binary { f, a, b }, ty)
    }

    fn wide(&mut self, value: Value) -> Value {
        if self.func.ty(value).ty == Type::I64 {
            return value;
        }
        let op = TileOp::Cast { src: value, to: Scalar::I64, rounding: Rounding::Nearest };
        self.value(op, PlacedType::scalar(Type::I64))
    }

    /// Whether the round that begins at `iv` and so many rounds later is one of the loop's.
    fn is_round(&mut self, iv: Value, upper: Value, distance: i128) -> Value {
        let (iv, upper) = (self.wide(iv), self.wide(upper));
        let left = self.binary(BinaryFn::Sub, upper, iv);
        let distance = self.int(Scalar::I64, distance);
        let op = TileOp::Compare { p: Predicate::Gt, a: left, b: distance };
        self.value(op, PlacedType::scalar(Type::scalar(Scalar::I1)))
    }

    /// The slice's ops again, on other values.
    fn again(&mut self, slice: &[Inst], map: &mut FxHashMap<Value, Value>) {
        for &inst in slice {
            let mut op = self.func.op(inst).clone();
            op.each_value_mut(&mut |v| *v = map.get(v).copied().unwrap_or(*v));
            let loc = self.func.loc(inst);
            let Ok(copy) = self.func.create(op, loc) else { continue };
            self.out.push(copy);
            let (old, new) = (self.func.results(inst).to_vec(), self.func.results(copy).to_vec());
            map.extend(old.into_iter().zip(new));
        }
    }
}

impl Pipeline {
    fn build(self, func: &mut Function<Placed>, inst: Inst, out: &mut Vec<Inst>) {
        let Some(TileOp::For { lower, upper, step, inits, .. }) = tile_op(func, inst).cloned()
        else {
            return out.push(inst);
        };
        let step = constant(func, step).and_then(Constant::as_int).unwrap_or(1);
        let counter = func.ty(lower).ty.elem.scalar().unwrap_or(Scalar::I32);
        let yields = match func.terminator(self.body) {
            Some(PlacedOp { what: What::Tile(TileOp::Yield { values }), .. }) => values.clone(),
            _ => Vec::new(),
        };
        let params = func.block_params(self.body).to_vec();
        let loc = func.loc(inst);
        let slots = self.stages;

        // Before the loop: the first rounds.
        let mut maker = Maker { func, out: Vec::new(), loc };
        let buffers: Vec<Value> = self
            .staged
            .iter()
            .map(|s| {
                let Place::Shared { swizzle, .. } = s.buffer.place else { unreachable!() };
                let place = Place::Shared { swizzle, slots };
                maker.value(Extra::Alloc, PlacedType { ty: s.buffer.ty, place })
            })
            .collect();
        let mut ahead: Vec<Value> = self.carried.iter().map(|&i| inits[i]).collect();
        for round in 0..slots - 1 {
            let distance = i128::from(round) * step;
            let far = maker.int(counter, distance);
            let iv = maker.binary(BinaryFn::Add, lower, far);
            let exists = maker.is_round(lower, upper, distance);
            let slot = maker.int(Scalar::I32, i128::from(round));
            ahead = self.fetch(&mut maker, &buffers, iv, &ahead, &params, &yields, exists, slot);
        }
        let (zero, last) =
            (maker.int(Scalar::I32, 0), maker.int(Scalar::I32, i128::from(slots - 1)));
        let before = std::mem::take(&mut maker.out);

        // In the loop: a later round, then this one from shared memory.
        let i32s = PlacedType::scalar(Type::I32);
        let extra: Vec<PlacedType> =
            ahead.iter().map(|&v| maker.func.ty(v)).chain([i32s, i32s]).collect();
        let new_params: Vec<Value> =
            extra.iter().map(|&ty| maker.func.add_block_param(self.body, ty)).collect();
        let (later, at) = new_params.split_at(ahead.len());
        let [read_slot, write_slot] = [at[0], at[1]];
        maker.op(Extra::Wait { pending: slots - 2 }, vec![], Run::NONE);
        let distance = i128::from(slots - 1) * step;
        let far = maker.int(counter, distance);
        let iv = maker.binary(BinaryFn::Add, params[0], far);
        let exists = maker.is_round(params[0], upper, distance);
        let mut next =
            self.fetch(&mut maker, &buffers, iv, later, &params, &yields, exists, write_slot);
        for slot in [read_slot, write_slot] {
            let one = maker.int(Scalar::I32, 1);
            let plus = maker.binary(BinaryFn::Add, slot, one);
            let end = maker.int(Scalar::I32, i128::from(slots));
            let op = TileOp::Compare { p: Predicate::Eq, a: plus, b: end };
            let wraps = maker.value(op, PlacedType::scalar(Type::scalar(Scalar::I1)));
            let zero = maker.int(Scalar::I32, 0);
            next.push(maker.value(TileOp::Select { cond: wraps, yes: zero, no: plus }, i32s));
        }
        let mut body = std::mem::take(&mut maker.out);
        for inst in maker.func.take_insts(self.body) {
            if let Some(at) = self.staged.iter().position(|s| s.load == inst) {
                self.staged[at].read(&mut maker, buffers[at], read_slot);
                body.append(&mut maker.out);
            } else if !self.staged.iter().any(|s| s.permutes.contains(&inst)) {
                body.push(inst);
            }
        }
        let func = maker.func;
        if let Some(&terminator) = body.last()
            && let What::Tile(TileOp::Yield { values }) = &mut func.op_mut(terminator).what
        {
            values.extend(next);
        }
        func.set_insts(self.body, body);
        let op = func.op_mut(inst);
        if let What::Tile(TileOp::For { inits, .. }) = &mut op.what {
            inits.extend(ahead.iter().copied().chain([zero, last]));
        }
        op.results.extend(&extra);
        for ty in extra {
            func.add_result(inst, ty);
        }
        out.extend(before);
        out.push(inst);

        // Behind it: copies that nobody needs are waited for, since they write.
        let mut maker = Maker { func, out: Vec::new(), loc };
        maker.op(Extra::Wait { pending: 0 }, vec![], Run::NONE);
        for &buffer in buffers.iter().rev() {
            maker.op(Extra::Free { buffer }, vec![], Run::NONE);
        }
        out.append(&mut maker.out);
    }

    /// Begins the copies of one round; gives what is carried to the next.
    #[expect(clippy::too_many_arguments, reason = "all of one round")]
    fn fetch(
        &self,
        maker: &mut Maker<'_>,
        buffers: &[Value],
        iv: Value,
        ahead: &[Value],
        params: &[Value],
        yields: &[Value],
        exists: Value,
        slot: Value,
    ) -> Vec<Value> {
        let mut map: FxHashMap<Value, Value> = FxHashMap::default();
        map.insert(params[0], iv);
        for (&at, &value) in self.carried.iter().zip(ahead) {
            map.insert(params[at + 1], value);
        }
        maker.again(&self.slice, &mut map);
        let of = |v: Value| map.get(&v).copied().unwrap_or(v);
        for (s, &buffer) in self.staged.iter().zip(buffers) {
            let Some(TileOp::Load { ptr, mask, hints, .. }) = tile_op(maker.func, s.load).cloned()
            else {
                continue;
            };
            let PlacedOp { run, site, .. } = *maker.func.op(s.load);
            let ptr = of(ptr);
            let from = maker.func.ty(ptr);
            let mask_ty = PlacedType { ty: from.ty.with_elem(Scalar::I1), place: from.place };
            let shape = from.ty.shape;
            let all = maker.value(TileOp::Splat { src: exists, shape }, mask_ty);
            let mask = match mask.map(of) {
                Some(mask) => maker.binary(BinaryFn::And, mask, all),
                None => all,
            };
            let copy = Extra::CopyAsync { buffer, slot, ptr, mask: Some(mask), hints };
            maker.op_at(copy, vec![], run, site);
        }
        maker.op(Extra::Commit, vec![], Run::NONE);
        self.carried.iter().map(|&at| of(yields[at])).collect()
    }
}

impl Staged {
    /// What stands in the place of the load, and of what was between it and the conversion.
    fn read(&self, maker: &mut Maker<'_>, buffer: Value, slot: Value) {
        let mut value = maker.value(Extra::Read { buffer, slot }, self.read);
        let mut layout: Option<Layout> = self.read.layout();
        for &permute in &self.permutes {
            let Some(TileOp::Permute { order, .. }) = tile_op(maker.func, permute).cloned() else {
                continue;
            };
            let ty = maker.func.ty(maker.func.results(permute)[0]).ty;
            let shape = maker.func.ty(value).ty.shape;
            layout = layout.map(|l| l.permuted(&shape, &order));
            let Some(layout) = layout else { continue };
            value =
                maker.value(TileOp::Permute { src: value, order }, PlacedType::spread(ty, layout));
        }
        // It is in its layout already, so that this moves nothing.
        maker.func.op_mut(self.convert).what = Extra::Convert { src: value }.into();
    }
}
