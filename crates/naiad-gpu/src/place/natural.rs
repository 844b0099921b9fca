//! The layout that a value would have of its own.

use super::Context;
use crate::layout::{Layout, accumulator};
use crate::placed::rules;
use naiad_ir::op::OpInfo;
use naiad_ir::scalar::BinaryFn;
use naiad_ir::thread::MmaKind;
use naiad_ir::tile::{Precision, Tile, TileOp};
use naiad_ir::{Block, Inst, Scalar, Value};
use naiad_opt::structure::Structured;

/// What is known of each value, by its number.
pub struct Natural {
    pub layout: Vec<Option<Layout>>,
    pub kind: Vec<Kind>,
    /// Layouts of tiles that loops and branches pass on.
    pub carried: Vec<Option<Layout>>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Computed again wherever it is asked for; so much work it is.
    Cheap(u32),
    /// Passes elements on.
    Transparent,
    /// Computed once.
    Homed,
}

/// Work beyond which a value is no longer computed again.
const CHEAP: u32 = 24;

pub fn natural(context: &Context<'_>) -> Natural {
    let n = context.func.num_values();
    let natural =
        Natural { layout: vec![None; n], kind: vec![Kind::Cheap(0); n], carried: vec![None; n] };
    let mut walk = Walk { context, natural };
    // The second time it is known what loops carry round.
    walk.block(context.func.entry());
    walk.block(context.func.entry());
    walk.natural
}

/// How the matrix units make a product, if they do.
pub fn mma_kind(context: &Context<'_>, op: &TileOp) -> Option<MmaKind> {
    let TileOp::Dot { a, b, out, precision, .. } = op else { return None };
    let func = context.func;
    let (ta, tb) = (func.ty(*a), func.ty(*b));
    let elem = ta.elem.scalar()?;
    if tb.elem.scalar()? != elem {
        return None;
    }
    let kind = match elem {
        Scalar::F16 => MmaKind::F16,
        Scalar::BF16 => MmaKind::Bf16,
        Scalar::F32 if *precision == Precision::Tf32 && !context.options.precise => MmaKind::Tf32,
        Scalar::I8 => MmaKind::S8,
        Scalar::U8 => MmaKind::U8,
        Scalar::F8E4NV if context.options.capability >= 89 => MmaKind::E4m3,
        Scalar::F8E5 if context.options.capability >= 89 => MmaKind::E5m2,
        _ => return None,
    };
    if *out != kind.sum() && !(kind.sum() == Scalar::F32 && out.is_float() && out.bits() <= 32) {
        return None;
    }
    let rank = ta.shape.rank();
    let [m, n, k] = kind.extents().map(|e| e as usize);
    let fits =
        ta.shape.dim(rank - 2) >= m && tb.shape.dim(rank - 1) >= n && ta.shape.dim(rank - 1) >= k;
    fits.then_some(kind)
}

struct Walk<'a> {
    context: &'a Context<'a>,
    natural: Natural,
}

impl Walk<'_> {
    fn block(&mut self, block: Block) {
        for &inst in self.context.func.insts(block) {
            self.inst(inst);
        }
    }

    fn layout(&self, value: Value) -> Option<Layout> {
        self.natural.layout[value.index()]
    }

    fn set(&mut self, value: Value, kind: Kind, layout: Option<Layout>) {
        self.natural.kind[value.index()] = kind;
        self.natural.layout[value.index()] = layout;
    }

    /// One layout for all the values that a loop or branch passes on to one another: `to` are its own
    /// parameters and results, `from` is what they get.
    fn pass(&mut self, from: &[&[Value]], to: &[&[Value]]) {
        let func = self.context.func;
        for i in 0..from[0].len() {
            let all: Vec<Value> = from.iter().chain(to).map(|s| s[i]).collect();
            if !self.context.is_tile(all[0]) {
                continue;
            }
            // A product's layout is the most costly to leave; then whichever comes first.
            let known = |v: &Value| self.layout(*v);
            let product = all.iter().find(|&&v| self.is_product(v)).and_then(known);
            let layout = product.or_else(|| all.iter().find_map(known));
            let layout = layout.unwrap_or_else(|| self.context.default(&func.ty(all[0]).shape));
            for slot in to {
                self.natural.carried[slot[i].index()] = Some(layout);
            }
        }
    }

    fn is_product(&self, value: Value) -> bool {
        matches!(self.context.func.defining_op(value), Some(TileOp::Dot { .. }))
    }

    /// Parameters and results of control flow have the layout that was chosen for them.
    fn bind(&mut self, values: &[Value]) {
        for &v in values {
            if self.context.is_tile(v) {
                let layout = self.natural.carried[v.index()];
                self.set(v, Kind::Homed, layout);
            }
        }
    }

    fn inst(&mut self, inst: Inst) {
        let func = self.context.func;
        let results = func.results(inst);
        match func.op(inst) {
            TileOp::For { inits, body, .. } => {
                let params = &func.block_params(*body)[1..];
                self.bind(params);
                self.block(*body);
                let yields = Tile::values_of_terminator(func, *body);
                self.pass(&[yields, inits], &[params, results]);
                self.bind(params);
                self.bind(results);
            }
            TileOp::While { inits, before, after } => {
                let (tested, params) = (func.block_params(*before), func.block_params(*after));
                self.bind(tested);
                self.block(*before);
                let given = Tile::values_of_terminator(func, *before);
                self.bind(params);
                self.block(*after);
                let yields = Tile::values_of_terminator(func, *after);
                self.pass(&[yields, inits], &[tested]);
                self.pass(&[given], &[params, results]);
                for values in [tested, params, results] {
                    self.bind(values);
                }
            }
            TileOp::If { then, otherwise, .. } => {
                self.block(*then);
                self.block(*otherwise);
                let a = Tile::values_of_terminator(func, *then);
                let b = Tile::values_of_terminator(func, *otherwise);
                self.pass(&[a, b], &[results]);
                self.bind(results);
            }
            op => {
                let (kind, layout) = self.value(op, results);
                for &r in results {
                    self.set(r, kind, layout);
                }
            }
        }
    }

    fn tiles(&self, op: &TileOp) -> Vec<Value> {
        let mut all = Vec::new();
        op.each_value(&mut |v| {
            if self.context.is_tile(v) {
                all.push(v);
            }
        });
        all
    }

    fn value(&self, op: &TileOp, results: &[Value]) -> (Kind, Option<Layout>) {
        let context = self.context;
        let shape_of = |v: Value| context.shape(v);
        let Some(&result) = results.first() else { return (Kind::Homed, None) };
        if !context.is_tile(result) {
            return (Kind::Homed, None);
        }
        let shape = context.shape(result);
        let tiles = self.tiles(op);
        // Of what is combined the widest says where.
        let from = tiles.iter().filter_map(|&v| Some((v, self.layout(v)?)));
        let from = from.max_by_key(|(v, _)| (bits(context, *v), std::cmp::Reverse(v.index())));
        let along = || from.and_then(|(_, layout)| rules::result(op, shape_of, &layout));
        let works = tiles.iter().map(|v| match self.natural.kind[v.index()] {
            Kind::Cheap(work) => Some(work),
            Kind::Transparent | Kind::Homed => None,
        });
        let works: Option<u32> = works.sum();
        let cheap = |own: u32| match works {
            Some(work) if work + own <= CHEAP => Kind::Cheap(work + own),
            _ => Kind::Homed,
        };
        match op {
            TileOp::Arange { .. } | TileOp::Splat { .. } => (Kind::Cheap(1), None),
            TileOp::ExpandDims { .. }
            | TileOp::Broadcast { .. }
            | TileOp::Reshape { .. }
            | TileOp::Permute { .. } => {
                let kind = works.map_or(Kind::Transparent, Kind::Cheap);
                (kind, along())
            }
            TileOp::Hint { .. } => (works.map_or(Kind::Transparent, Kind::Cheap), along()),
            TileOp::Binary { f, a, .. } => {
                let int = context.func.ty(*a).elem.scalar().is_some_and(Scalar::is_int);
                let slow =
                    matches!(f, BinaryFn::Idiv | BinaryFn::Rem | BinaryFn::Div | BinaryFn::DivRn);
                match (int, slow) {
                    (true, false) => (cheap(1), along()),
                    (true, true) => (cheap(12), along()),
                    (false, _) => (cheap(8), along()),
                }
            }
            TileOp::Compare { .. }
            | TileOp::Select { .. }
            | TileOp::Cast { .. }
            | TileOp::Bitcast { .. }
            | TileOp::PtrAdd { .. } => (cheap(1), along()),
            TileOp::Unary { .. } | TileOp::Ternary { .. } => (cheap(8), along()),
            TileOp::Load { ptr, .. }
            | TileOp::AtomicRmw { ptr, .. }
            | TileOp::AtomicCas { ptr, .. }
            | TileOp::AtomicLoad { ptr, .. } => (Kind::Homed, Some(context.coalesced(*ptr))),
            TileOp::Dot { .. } => {
                let layout = match mma_kind(context, op) {
                    Some(_) => accumulator(&shape, context.warp_bits),
                    None => context.default(&shape),
                };
                (Kind::Homed, Some(layout))
            }
            TileOp::Gather { index, .. } => (Kind::Homed, self.layout(*index)),
            TileOp::Reduce { inputs, axis, .. } => {
                let input = self.reduced(inputs, *axis);
                (Kind::Homed, rules::result(op, shape_of, &input))
            }
            TileOp::Scan { inputs, axis, .. } => {
                (Kind::Homed, Some(context.along_axis(&context.shape(inputs[0]), *axis)))
            }
            TileOp::Sort { .. } | TileOp::TopK { .. } | TileOp::Histogram { .. } => {
                (Kind::Homed, Some(context.default(&shape)))
            }
            _ => (Kind::Homed, along()),
        }
    }

    /// The layout of what is reduced.
    fn reduced(&self, inputs: &[Value], axis: usize) -> Layout {
        self.natural.reduced(self.context, inputs, axis)
    }
}

impl Natural {
    /// The layout of what is reduced: its own, or one in which lanes share the axis.
    pub fn reduced(&self, context: &Context<'_>, inputs: &[Value], _axis: usize) -> Layout {
        let own = inputs.iter().find_map(|v| self.layout[v.index()]);
        own.unwrap_or_else(|| context.default(&context.shape(inputs[0])))
    }
}

fn bits(context: &Context<'_>, value: Value) -> u32 {
    context.func.ty(value).elem.scalar().map_or(64, Scalar::bits)
}

impl Context<'_> {
    /// The layout for what goes along an axis in order: neighbours in registers, then lanes, then warps.
    pub fn along_axis(&self, shape: &naiad_ir::Shape, axis: usize) -> Layout {
        let mut order: Vec<usize> = (0..shape.rank()).rev().filter(|&a| a != axis).collect();
        order.insert(0, axis);
        let bits: Vec<u32> = order
            .iter()
            .flat_map(|&a| {
                let (low, bits) = crate::layout::axis_bits(shape, a);
                (low..low + bits).map(|b| 1 << b)
            })
            .collect();
        // All that a thread holds of the axis comes before what lanes and warps hold.
        let (_, along) = crate::layout::axis_bits(shape, axis);
        let threads = 5 + self.warp_bits;
        let vector = (bits.len() as u32).saturating_sub(threads).min(along);
        Layout::in_order(bits, vector as usize, self.warp_bits as usize)
    }
}
