//! The layouts in which each value is asked for.

use super::Context;
use super::natural::{Kind, Natural, mma_kind};
use crate::layout::{Layout, Operand, operand};
use crate::placed::rules;
use naiad_ir::op::OpInfo;
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Block, Inst, Shape, Value};
use naiad_opt::structure::Structured;
use smallvec::SmallVec;

/// In which layouts each tile is made.
pub struct Wanted {
    natural: Natural,
    /// The one layout in which a value is computed; none if it is computed in all that are asked for.
    pub home: Vec<Option<Layout>>,
    /// The layouts that are asked for.
    pub asked: Vec<SmallVec<[Layout; 2]>>,
}

pub fn wanted(context: &Context<'_>, natural: &Natural) -> Wanted {
    let n = context.func.num_values();
    let natural = Natural {
        layout: natural.layout.clone(),
        kind: natural.kind.clone(),
        carried: natural.carried.clone(),
    };
    let wanted = Wanted { natural, home: vec![None; n], asked: vec![SmallVec::new(); n] };
    let mut walk = Walk { context, wanted };
    walk.block(context.func.entry(), &[]);
    walk.wanted
}

impl Wanted {
    pub fn carried(&self, value: Value) -> Option<Layout> {
        self.natural.carried[value.index()]
    }

    /// The layouts that an op asks for its tile operands in, one after the other, if its results are in
    /// `result`.
    pub fn asks(
        &self,
        context: &Context<'_>,
        inst: Inst,
        result: Option<&Layout>,
    ) -> Vec<(Value, Layout)> {
        let func = context.func;
        let op = func.op(inst);
        let mut tiles: Vec<Value> = Vec::new();
        op.each_value(&mut |v| {
            if context.is_tile(v) {
                tiles.push(v);
            }
        });
        let natural = |v: Value| self.natural.layout[v.index()];
        let own = |v: Value| natural(v).unwrap_or_else(|| context.default(&context.shape(v)));
        let all = |layout: Layout| tiles.iter().map(|&v| (v, layout)).collect();
        match op {
            TileOp::Store { ptr, value, .. } | TileOp::AtomicStore { ptr, value, .. }
                if context.is_tile(*ptr) =>
            {
                let best = context.coalesced(*ptr);
                match natural(*value) {
                    Some(layout) if context.is_good_access(*ptr, &layout) => all(layout),
                    _ => all(best),
                }
            }
            TileOp::Reduce { inputs, axis, .. } => {
                all(self.natural.reduced(context, inputs, *axis))
            }
            TileOp::Dot { a, b, acc, .. } => {
                let Some(&layout) = result else { return Vec::new() };
                let sums = context.shape(func.results(inst)[0]);
                let side = |which, v| match mma_kind(context, op) {
                    Some(kind) => {
                        let k = kind.extents()[2];
                        // Elements in a register: a quarter of k of lanes' two, each twice.
                        let packed = (k / 8).trailing_zeros();
                        operand(which, &context.shape(v), &sums, packed, context.warp_bits)
                    }
                    None => own(v),
                };
                let mut asks = vec![(*a, side(Operand::A, *a)), (*b, side(Operand::B, *b))];
                asks.extend(acc.map(|acc| (acc, layout)));
                asks
            }
            TileOp::Gather { src, index, .. } => {
                let layout = result.copied().unwrap_or_else(|| own(*index));
                vec![(*src, own(*src)), (*index, layout)]
            }
            TileOp::Sort { src, .. } | TileOp::TopK { src, .. } => {
                vec![(
                    *src,
                    context.along_axis(&context.shape(*src), context.shape(*src).rank() - 1),
                )]
            }
            TileOp::Histogram { src, .. } => all(own(*src)),
            TileOp::Scan { inputs, axis, .. } => {
                all(context.along_axis(&context.shape(inputs[0]), *axis))
            }
            TileOp::Assert { cond, .. } if context.is_tile(*cond) => all(own(*cond)),
            TileOp::Print { .. } | TileOp::Assert { .. } | TileOp::Assume { .. } => {
                tiles.iter().map(|&v| (v, own(v))).collect()
            }
            TileOp::For { .. } | TileOp::While { .. } | TileOp::If { .. } => Vec::new(),
            TileOp::Yield { .. } | TileOp::Condition { .. } => Vec::new(),
            _ => {
                // The operands of an op without a tile as result are its own matter.
                if let (TileOp::Split { src }, None) = (op, result) {
                    return all(context.blocked_by(&context.shape(*src), 2));
                }
                let Some(layout) = result else {
                    return tiles.iter().map(|&v| (v, own(v))).collect();
                };
                let shape = context.shape(func.results(inst)[0]);
                match rules::operands(op, |v| context.shape(v), &shape, layout) {
                    Some(layout) => all(layout),
                    None => tiles.iter().map(|&v| (v, own(v))).collect(),
                }
            }
        }
    }
}

struct Walk<'a> {
    context: &'a Context<'a>,
    wanted: Wanted,
}

impl Walk<'_> {
    fn ask(&mut self, value: Value, layout: Layout) {
        if self.context.is_tile(value) {
            let asked = &mut self.wanted.asked[value.index()];
            if !asked.contains(&layout) {
                asked.push(layout);
            }
        }
    }

    /// From a block's end to its beginning; what it passes on becomes `passed`.
    fn block(&mut self, block: Block, passed: &[Value]) {
        let func = self.context.func;
        for (&from, &to) in Tile::values_of_terminator(func, block).iter().zip(passed) {
            if let Some(layout) = self.wanted.carried(to) {
                self.ask(from, layout);
            }
        }
        for &inst in func.insts(block).iter().rev() {
            self.inst(inst);
        }
    }

    /// Values that are what control flow passed on.
    fn bound(&mut self, values: &[Value]) {
        for &v in values {
            self.wanted.home[v.index()] = self.wanted.carried(v);
        }
    }

    fn pass(&mut self, from: &[Value], to: &[Value]) {
        for (&from, &to) in from.iter().zip(to) {
            if let Some(layout) = self.wanted.carried(to) {
                self.ask(from, layout);
            }
        }
    }

    fn inst(&mut self, inst: Inst) {
        let func = self.context.func;
        let results = func.results(inst);
        match func.op(inst) {
            TileOp::For { inits, body, .. } => {
                let params = &func.block_params(*body)[1..];
                self.bound(results);
                self.bound(params);
                self.block(*body, params);
                self.pass(inits, params);
            }
            TileOp::While { inits, before, after } => {
                let (tested, params) = (func.block_params(*before), func.block_params(*after));
                for values in [results, tested, params] {
                    self.bound(values);
                }
                self.block(*after, tested);
                self.block(*before, params);
                self.pass(inits, tested);
            }
            TileOp::If { then, otherwise, .. } => {
                self.bound(results);
                self.block(*then, results);
                self.block(*otherwise, results);
            }
            _ => self.plain(inst, results),
        }
    }

    fn plain(&mut self, inst: Inst, results: &[Value]) {
        let Some(&first) = results.first().filter(|&&v| self.context.is_tile(v)) else {
            for (v, layout) in self.wanted.asks(self.context, inst, None) {
                self.ask(v, layout);
            }
            return;
        };
        let mut asked: SmallVec<[Layout; 2]> = SmallVec::new();
        for &r in results {
            for &layout in &self.wanted.asked[r.index()] {
                if !asked.contains(&layout) {
                    asked.push(layout);
                }
            }
        }
        let layouts = match self.wanted.natural.kind[first.index()] {
            Kind::Cheap(_) | Kind::Transparent => asked,
            Kind::Homed => {
                let home = self.home(inst, first, &asked);
                for &r in results {
                    self.wanted.home[r.index()] = Some(home);
                }
                SmallVec::from_elem(home, 1)
            }
        };
        for layout in &layouts {
            for (v, layout) in self.wanted.asks(self.context, inst, Some(layout)) {
                self.ask(v, layout);
            }
        }
    }

    /// Where a value is computed.
    fn home(&self, inst: Inst, value: Value, asked: &[Layout]) -> Layout {
        let context = self.context;
        let op = context.func.op(inst);
        let shape = context.shape(value);
        let natural = self.wanted.natural.layout[value.index()];
        let asked_alone = match asked {
            [one] => Some(*one),
            _ => None,
        };
        let own = || natural.or(asked.first().copied()).unwrap_or_else(|| context.default(&shape));
        match op {
            // A load goes where it is wanted, if memory is read as well from there.
            TileOp::Load { ptr, hints, .. } if !hints.volatile => match asked_alone {
                Some(layout) if context.is_good_access(*ptr, &layout) => layout,
                _ => own(),
            },
            TileOp::Reduce { .. } | TileOp::Dot { .. } | TileOp::Scan { .. } => own(),
            TileOp::Sort { .. } | TileOp::TopK { .. } | TileOp::Histogram { .. } => own(),
            TileOp::AtomicRmw { .. } | TileOp::AtomicCas { .. } | TileOp::AtomicLoad { .. } => {
                own()
            }
            _ => {
                // What has one operand that is not cheap may as well be converted before as behind.
                let layout = match asked_alone {
                    Some(layout) if self.costly_operands(op) <= 1 && !self.narrows(op, value) => {
                        layout
                    }
                    _ => own(),
                };
                let fits = |l: &Layout| {
                    rules::operands(op, |v| context.shape(v), &shape, l).is_some()
                        || matches!(op, TileOp::Gather { .. } | TileOp::Flip { .. })
                };
                if fits(&layout) {
                    return layout;
                }
                natural.filter(fits).unwrap_or_else(|| self.fitting(op, value))
            }
        }
    }

    /// A layout in which the op moves no element between threads.
    fn fitting(&self, op: &TileOp, value: Value) -> Layout {
        let context = self.context;
        let shape_of = |v: Value| context.shape(v);
        match op {
            TileOp::Map { pack, .. } | TileOp::InlineAsm { pack, .. } => {
                context.blocked_by(&context.shape(value), *pack as u32)
            }
            TileOp::Split { src } => {
                let layout = context.blocked_by(&context.shape(*src), 2);
                rules::result(op, shape_of, &layout).unwrap_or(layout)
            }
            op => {
                let mut source = None;
                op.each_value(&mut |v| source = source.or(context.is_tile(v).then_some(v)));
                let shape = source.map_or(Shape::SCALAR, |v| context.shape(v));
                let layout = context.default(&shape);
                rules::result(op, shape_of, &layout).unwrap_or(layout)
            }
        }
    }

    /// Whether a result has fewer bytes than what it is made of, so that it is the cheaper to convert.
    fn narrows(&self, op: &TileOp, value: Value) -> bool {
        let bits = |v: Value| self.context.func.ty(v).elem.scalar().map_or(64, |s| s.bits());
        let mut widest = 0;
        op.each_value(&mut |v| {
            if self.context.is_tile(v) {
                widest = widest.max(bits(v));
            }
        });
        bits(value) < widest
    }

    fn costly_operands(&self, op: &TileOp) -> usize {
        let mut count = 0;
        op.each_value(&mut |v| {
            let kind = self.wanted.natural.kind[v.index()];
            count += usize::from(self.context.is_tile(v) && !matches!(kind, Kind::Cheap(_)));
        });
        count
    }
}

impl Context<'_> {
    /// The default layout, but for the lowest bits of an index, which are in registers whatever that
    /// costs.
    fn blocked_by(&self, shape: &Shape, pack: u32) -> Layout {
        let bits = (0..crate::layout::numel_bits(shape)).map(|b| 1 << b);
        let default = self.default(shape).neighbours(0, 2).len();
        let vector = (pack.trailing_zeros() as usize).max(default);
        Layout::in_order(bits, vector, self.warp_bits as usize)
    }
}
