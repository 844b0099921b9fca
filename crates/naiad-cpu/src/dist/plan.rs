//! What is known of a kernel's values before it is walked: their order, uses, cost and origin.

use naiad_ir::scalar::{BinaryFn, UnaryFn};
use naiad_ir::tile::{Tile, TileOp, one_function};
use naiad_ir::{Block, Def, Effects, Function, Inst, OpInfo, Scalar, Value};
use naiad_opt::origin::{Origin, Origins};
use rustc_hash::FxHashMap;

/// Positions are numbers of ops in the order of the text. An op with regions ends after them.
pub(crate) struct Plan {
    position: Vec<u32>,
    end: Vec<u32>,
    /// The block in which an op stands, and the op that owns a block.
    block: Vec<Option<Block>>,
    owner: Vec<Option<Inst>>,
    users: FxHashMap<Value, Vec<Inst>>,
    origins: Origins,
    /// The last position at which a value's elements may be wanted.
    last_use: Vec<u32>,
    /// Whether an op that is not virtual and runs whenever the value's own does wants the value, directly
    /// or not.
    surely_wanted: Vec<bool>,
    /// Pointers that are read through.
    pub loaded: Vec<Value>,
    /// Programs talk to one another: a load stays where it is and is made once.
    pub communicates: bool,
    /// Programs may wait for one another: each counts what it writes.
    pub waits: bool,
}

/// How the distribution treats an op that gives tiles.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Elements can be computed on demand.
    Virtual,
    /// A store or a simple reduction: joins a loop nest.
    Root,
    /// Wants its operands whole, or is control flow.
    Whole,
}

impl Plan {
    pub fn new(f: &Function<Tile>) -> Plan {
        let mut plan = Plan {
            position: vec![0; f.num_insts()],
            end: vec![0; f.num_insts()],
            block: vec![None; f.num_insts()],
            owner: vec![None; f.num_blocks()],
            users: FxHashMap::default(),
            origins: Origins::new(f),
            last_use: vec![0; f.num_values()],
            surely_wanted: vec![false; f.num_values()],
            loaded: Vec::new(),
            communicates: false,
            waits: false,
        };
        let mut order = Vec::new();
        let mut next = 0;
        plan.number(f, f.entry(), &mut next, &mut order);
        plan.find_uses(f, &order);
        plan
    }

    fn number(&mut self, f: &Function<Tile>, block: Block, next: &mut u32, order: &mut Vec<Inst>) {
        for &inst in f.insts(block) {
            *next += 1;
            self.position[inst.index()] = *next;
            self.block[inst.index()] = Some(block);
            order.push(inst);
            let op = f.op(inst);
            op.each_value(&mut |v| self.users.entry(v).or_default().push(inst));
            let mut regions = Vec::new();
            op.each_block(&mut |b| regions.push(b));
            for region in regions {
                self.owner[region.index()] = Some(inst);
                self.number(f, region, next, order);
            }
            self.end[inst.index()] = *next;
            if let TileOp::Load { ptr, .. } = op {
                self.loaded.push(*ptr);
            }
            self.waits |= waits_at(f, inst).is_some();
            self.communicates |= match op {
                TileOp::AtomicRmw { .. }
                | TileOp::AtomicCas { .. }
                | TileOp::AtomicLoad { .. }
                | TileOp::AtomicStore { .. } => true,
                TileOp::Load { hints, .. } | TileOp::Store { hints, .. } => hints.volatile,
                _ => false,
            };
        }
    }

    fn find_uses(&mut self, f: &Function<Tile>, order: &[Inst]) {
        for &inst in order.iter().rev() {
            let op = f.op(inst);
            let mut at = self.end[inst.index()];
            let mut runs = true;
            if class(f, inst) == Class::Virtual {
                runs = f.results(inst).iter().any(|v| self.surely_wanted[v.index()]);
                for v in f.results(inst) {
                    at = at.max(self.last_use[v.index()]);
                }
            }
            let mut operands = Vec::new();
            op.each_value(&mut |v| operands.push(v));
            for v in operands {
                let outer = self.lifted(f, v, inst);
                let lifted = outer.map_or(at, |outer| at.max(self.end[outer.index()]));
                let last = &mut self.last_use[v.index()];
                *last = (*last).max(lifted);
                self.surely_wanted[v.index()] |= runs && outer.is_none();
            }
        }
    }

    /// The op around `user` that stands in the block where `v` is defined, if that is another op.
    fn lifted(&self, f: &Function<Tile>, v: Value, user: Inst) -> Option<Inst> {
        let home = self.home(f, v);
        let mut at = user;
        let mut outer = None;
        while let Some(block) = self.block[at.index()] {
            if block == home {
                return outer;
            }
            at = self.owner[block.index()]?;
            outer = Some(at);
        }
        None
    }

    /// The block in which a value is defined.
    pub fn home(&self, f: &Function<Tile>, v: Value) -> Block {
        match f.def(v) {
            Def::Param(block, _) => block,
            Def::Result(inst, _) => self.block[inst.index()].unwrap_or(f.entry()),
        }
    }

    pub fn position(&self, inst: Inst) -> u32 {
        self.position[inst.index()]
    }

    pub fn last_use(&self, v: Value) -> u32 {
        self.last_use[v.index()]
    }

    pub fn is_surely_wanted(&self, v: Value) -> bool {
        self.surely_wanted[v.index()]
    }

    pub fn users(&self, v: Value) -> &[Inst] {
        self.users.get(&v).map_or(&[], Vec::as_slice)
    }

    pub fn origin(&self, v: Value) -> Origin {
        self.origins.of(v)
    }

    /// Whether all that is made of a carried tile is its next value, element by element.
    pub fn changes_in_place(&self, f: &Function<Tile>, param: Value, next: Value) -> bool {
        let mut at = param;
        while at != next {
            let [user] = *self.users(at) else { return false };
            let stays = match f.op(user) {
                TileOp::Dot { a, b, acc, .. } => *acc == Some(at) && *a != at && *b != at,
                op => op.is_lanewise() && class(f, user) == Class::Virtual,
            };
            let &[result] = f.results(user) else { return false };
            if !stays || f.ty(result).shape != f.ty(param).shape {
                return false;
            }
            at = result;
        }
        // Nobody but the end of the round gets it.
        self.users(at).len() == 1 && at != param
    }

    /// Whether the user stands in a loop that the value's definition is outside of.
    pub fn used_in_loop(&self, f: &Function<Tile>, v: Value) -> bool {
        let home = self.home(f, v);
        self.users(v).iter().any(|&user| {
            let mut block = self.block[user.index()];
            while let Some(b) = block.filter(|&b| b != home) {
                let Some(owner) = self.owner[b.index()] else { return false };
                if matches!(f.op(owner), TileOp::For { .. } | TileOp::While { .. }) {
                    return true;
                }
                block = self.block[owner.index()];
            }
            false
        })
    }
}

/// The op by which a loop waits for other programs, if its end may be up to them: the last that asks for
/// what they write.
pub(super) fn waits_at(f: &Function<Tile>, inst: Inst) -> Option<Inst> {
    let TileOp::While { before, after, .. } = f.op(inst) else { return None };
    let mut last = None;
    for &block in [before, after] {
        f.walk_block(block, &mut |inner| {
            let polls = match f.op(inner) {
                TileOp::AtomicRmw { .. } | TileOp::AtomicCas { .. } | TileOp::AtomicLoad { .. } => {
                    true
                }
                TileOp::Load { hints, .. } => hints.volatile,
                _ => false,
            };
            if polls {
                last = Some(inner);
            }
        });
    }
    last
}

/// How an op that has tiles among its operands or results is treated.
pub(crate) fn class(f: &Function<Tile>, inst: Inst) -> Class {
    let op = f.op(inst);
    match op {
        TileOp::Store { ptr, .. } if !f.ty(*ptr).is_scalar() => Class::Root,
        TileOp::Reduce { .. } if simple_reduction(f, op).is_some() => Class::Root,
        TileOp::Load { .. }
        | TileOp::Arange { .. }
        | TileOp::Splat { .. }
        | TileOp::ExpandDims { .. }
        | TileOp::Broadcast { .. }
        | TileOp::Permute { .. } => Class::Virtual,
        TileOp::Reshape { src, shape } if only_units(f, *src, *shape) => Class::Virtual,
        _ if op.is_lanewise() => Class::Virtual,
        _ => Class::Whole,
    }
}

/// Whether a reshape only puts in or takes out axes of one element.
fn only_units(f: &Function<Tile>, src: Value, shape: naiad_ir::Shape) -> bool {
    let from = f.ty(src).shape;
    from.dims().filter(|&n| n > 1).eq(shape.dims().filter(|&n| n > 1))
}

/// The function of a reduction of one tile by a single function with an identity.
pub(super) fn simple_reduction(f: &Function<Tile>, op: &TileOp) -> Option<BinaryFn> {
    let TileOp::Reduce { inputs, body, .. } = op else { return None };
    let [input] = inputs[..] else { return None };
    let ty = f.ty(input).elem.scalar()?;
    one_function(f, *body).filter(|g| g.is_commutative() && g.identity(ty).is_some())
}

/// What an op costs a lane, next to an addition.
pub(crate) fn weight(f: &Function<Tile>, inst: Inst) -> u32 {
    let narrow = |v: Value| {
        f.ty(v).elem.scalar().is_some_and(|s| s.is_float() && s.bits() < 32 && s != Scalar::BF16)
    };
    match f.op(inst) {
        TileOp::Unary { f, .. } => match f {
            UnaryFn::Neg | UnaryFn::Not | UnaryFn::Abs => 1,
            UnaryFn::Floor | UnaryFn::Ceil | UnaryFn::Trunc => 1,
            UnaryFn::Sqrt | UnaryFn::SqrtRn => 6,
            _ => 24,
        },
        TileOp::Binary { f, .. } => match f {
            BinaryFn::Div | BinaryFn::DivRn => 5,
            BinaryFn::Idiv | BinaryFn::Rem => 12,
            BinaryFn::Pow | BinaryFn::Atan2 | BinaryFn::Fmod | BinaryFn::Remainder => 60,
            _ => 1,
        },
        TileOp::Cast { src, .. } if narrow(*src) || f.results(inst).iter().any(|&r| narrow(r)) => 4,
        TileOp::Load { .. } => 2,
        op if op.effects() == Effects::Pure && op.is_lanewise() => 1,
        _ => 0,
    }
}

/// Which arguments a kernel may write through: those that a store's pointer may be made from, or all if
/// that cannot be known.
pub(crate) fn written(f: &Function<Tile>) -> Vec<bool> {
    let plan = Plan::new(f);
    let mut written = vec![false; f.params().len()];
    f.walk(&mut |inst| match f.op(inst) {
        TileOp::Store { ptr, .. }
        | TileOp::AtomicRmw { ptr, .. }
        | TileOp::AtomicCas { ptr, .. }
        | TileOp::AtomicStore { ptr, .. } => match plan.origin(*ptr) {
            Origin::Arg(i) => written[i] = true,
            Origin::Unknown => written.fill(true),
        },
        _ => {}
    });
    written
}

/// About how many vectors one program computes; none if it loops.
pub(crate) fn work(f: &Function<Tile>) -> Option<u64> {
    let mut work = Some(0u64);
    f.walk(&mut |inst| {
        let looping = matches!(f.op(inst), TileOp::For { .. } | TileOp::While { .. });
        let lanes =
            f.results(inst).iter().map(|&r| f.ty(r).shape.numel() as u64).max().unwrap_or(1);
        let weight = u64::from(weight(f, inst).max(1));
        let whole = match class(f, inst) {
            Class::Whole if lanes > 1 => 64,
            _ => 1,
        };
        work = work.filter(|_| !looping).map(|w| w + (lanes * weight * whole).div_ceil(8));
    });
    work
}
