//! A kernel made ready to run: a loop for each op, a register for each value.
//!
//! Registers are assigned along the structure: a value gives its register back at its last use, and
//! what a block defines has given back all when the block ends. So a program needs few registers, and
//! a tile's memory is free for the next tile as early as it can be. For an op with regions there are
//! two moments: operands that the regions do not use die when it begins, the others when it ends.

use crate::casts::{self, Cast};
use crate::loops::{self, Loop};
use crate::tile::stored;
use naiad_ir::ptx_asm::{self, Refusal};
use naiad_ir::scalar::Rounding;
use naiad_ir::tile::{Tile as TileIr, TileOp, one_function};
use naiad_ir::{Block, Function, Inst, OpInfo, Scalar, Value};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// What an op was looked up to.
#[derive(Copy, Clone)]
pub enum Prepared {
    Nothing,
    Loop(Loop),
    Cast(Cast),
    /// Offsets are brought to i64 first, unless they are.
    Pointer {
        widen: Option<Loop>,
        add: Loop,
    },
    Combine(Combine),
}

/// How the region of a `reduce`, `scan` or `map` is evaluated.
#[derive(Copy, Clone)]
pub enum Combine {
    /// It is one commutative function.
    Function { f: Loop, row: Loop },
    /// On whole tiles at once: it only has ops that work lane by lane.
    Tiles,
    /// Element by element: it loops.
    Elements,
}

/// Registers that die at an op.
#[derive(Default, Clone)]
struct Deaths {
    begin: Box<[u32]>,
    end: Box<[u32]>,
}

/// Half nanoseconds that an op takes in a step of a scan that goes along the axis, apart from its lanes.
const STEP: u64 = 250;

/// The register of values that nothing uses.
const UNUSED: u32 = u32::MAX;

/// Everything that can be known of a kernel before it is launched. It is the same for all launches, so
/// whoever launches a kernel more than once keeps it.
pub struct Code {
    pub(crate) func: Arc<Function<TileIr>>,
    pub(crate) registers: usize,
    pub(crate) wide: bool,
    register: Vec<u32>,
    deaths: Vec<Deaths>,
    prepared: Vec<Prepared>,
    cost: Vec<u32>,
    assembly: FxHashMap<Inst, Result<ptx_asm::Program, Refusal>>,
    /// It makes pointers of integers, which may point anywhere.
    makes_pointers: bool,
}

impl Code {
    /// Makes a verified kernel ready.
    pub fn new(func: Arc<Function<TileIr>>) -> Code {
        let mut life = Life {
            func: &func,
            depth: vec![0; func.num_values()],
            last: vec![None; func.num_values()],
            path: Vec::new(),
        };
        life.block(func.entry());
        let mut assign = Assign {
            func: &func,
            last: life.last,
            register: vec![0; func.num_values()],
            deaths: vec![Deaths::default(); func.num_insts()],
            free: Vec::new(),
            registers: 0,
        };
        assign.block(func.entry());
        let Assign { register, deaths, registers, .. } = assign;
        let mut code = Code {
            func: func.clone(),
            registers: registers as usize,
            wide: loops::wide(),
            register,
            deaths,
            prepared: vec![Prepared::Nothing; func.num_insts()],
            cost: vec![0; func.num_insts()],
            assembly: FxHashMap::default(),
            makes_pointers: false,
        };
        func.walk(&mut |inst| {
            code.prepared[inst.index()] = code.prepare(func.op(inst));
            code.cost[inst.index()] = code.estimate(inst);
            if let TileOp::Bitcast { src, to } = func.op(inst) {
                code.makes_pointers |= to.pointer().is_some() && !func.ty(*src).is_pointer();
            }
            if let Some(program) = code.assemble(inst) {
                code.assembly.insert(inst, program);
            }
        });
        code
    }

    /// The kernel that this is the code of.
    pub fn func(&self) -> &Function<TileIr> {
        &self.func
    }

    /// What the kernel can reach of memory that is no argument's: nothing, unless it makes pointers of
    /// integers.
    pub fn reachable<'m>(&self, exposed: &'m [Range<usize>]) -> &'m [Range<usize>] {
        if self.makes_pointers { exposed } else { &[] }
    }

    /// Whether the kernel makes pointers of integers.
    pub fn makes_pointers(&self) -> bool {
        self.makes_pointers
    }

    /// About how long a program takes at the most, in half nanoseconds, if numbers are combined in the order
    /// of machine code or not; `None` where that depends on what a loop counts to, or waits for.
    pub fn work(&self, in_order: bool) -> Option<u64> {
        self.work_of(self.func.entry(), in_order)
    }

    fn work_of(&self, block: Block, in_order: bool) -> Option<u64> {
        let mut work = 0u64;
        for &inst in self.func.insts(block) {
            let op = self.func.op(inst);
            let within = match op {
                TileOp::For { lower, upper, step, body, .. } => {
                    let [lower, upper, step] = [lower, upper, step].map(|&v| self.constant(v));
                    // A step of 0 is an error of its own.
                    let rounds =
                        (upper? - lower?).checked_div(step?)?.clamp(0, i128::from(u64::MAX));
                    self.work_of(*body, in_order)?.saturating_mul(rounds as u64 + 1)
                }
                TileOp::While { .. } => return None,
                TileOp::If { then, otherwise, .. } => {
                    let [then, otherwise] = [then, otherwise].map(|&b| self.work_of(b, in_order));
                    then?.saturating_add(otherwise?)
                }
                TileOp::Scan { inputs, axis, body, .. }
                    if in_order
                        && matches!(self.prepared(inst), Prepared::Combine(Combine::Tiles)) =>
                {
                    let steps = inputs.first().map_or(0, |&v| self.func.ty(v).shape.dim(*axis));
                    let ops = self.func.insts(*body).len() + inputs.len();
                    (u64::from(self.cost(inst)) + steps as u64 * STEP).saturating_mul(ops as u64)
                }
                TileOp::Reduce { body, .. }
                | TileOp::Scan { body, .. }
                | TileOp::Map { body, .. } => {
                    u64::from(self.cost(inst)) * self.func.insts(*body).len() as u64
                }
                _ => 0,
            };
            work = work.saturating_add(within).saturating_add(u64::from(self.cost(inst)));
        }
        Some(work)
    }

    fn constant(&self, value: Value) -> Option<i128> {
        match self.func.defining_op(value)? {
            TileOp::Const { value } => value.as_int(),
            _ => None,
        }
    }

    pub(crate) fn register(&self, value: Value) -> usize {
        self.register[value.index()] as usize
    }

    /// Where to put a value; nowhere if nothing uses it.
    pub(crate) fn target(&self, value: Value) -> Option<usize> {
        let register = self.register[value.index()];
        (register != UNUSED).then_some(register as usize)
    }

    pub(crate) fn dies_at_begin(&self, inst: Inst) -> &[u32] {
        &self.deaths[inst.index()].begin
    }

    pub(crate) fn dies_at_end(&self, inst: Inst) -> &[u32] {
        &self.deaths[inst.index()].end
    }

    pub(crate) fn prepared(&self, inst: Inst) -> &Prepared {
        &self.prepared[inst.index()]
    }

    /// The inline assembly of an op, or why it is not run: which matters only where it is reached.
    pub(crate) fn assembly(&self, inst: Inst) -> Option<&Result<ptx_asm::Program, Refusal>> {
        self.assembly.get(&inst)
    }

    fn assemble(&self, inst: Inst) -> Option<Result<ptx_asm::Program, Refusal>> {
        let TileOp::InlineAsm { text, constraints, args, results, pack, .. } = self.func.op(inst)
        else {
            return None;
        };
        let args: Vec<u32> = args.iter().map(|&v| self.scalar(v).bits()).collect();
        let results: Vec<u32> = results.iter().map(|s| s.bits()).collect();
        let interface = ptx_asm::Interface { args: &args, results: &results, pack: *pack };
        Some(ptx_asm::Program::parse(&text.0, &constraints.0, &interface))
    }

    /// About how long an op takes, in half nanoseconds.
    pub(crate) fn cost(&self, inst: Inst) -> u32 {
        self.cost[inst.index()]
    }

    fn estimate(&self, inst: Inst) -> u32 {
        let func = &*self.func;
        let mut lanes = func.results(inst).iter().map(|&r| func.ty(r).shape.numel()).sum::<usize>();
        let op = func.op(inst);
        if let TileOp::Dot { a, .. } = op {
            let shape = func.ty(*a).shape;
            lanes *= shape.dim(shape.rank() - 1) / 8 + 1;
        } else if !op.is_lanewise() {
            // A sum or a count reads more than it gives.
            op.each_value(&mut |v| lanes = lanes.max(func.ty(v).shape.numel()));
        }
        let each = match (op, self.prepared(inst)) {
            (_, Prepared::Combine(Combine::Elements)) => 2000,
            (TileOp::InlineAsm { .. }, _) => 200,
            (TileOp::Sort { .. } | TileOp::TopK { .. }, _) => 50,
            (TileOp::Gather { .. } | TileOp::Histogram { .. }, _) => 8,
            _ => 1,
        };
        (lanes as u32).saturating_mul(each).saturating_add(100)
    }

    pub(crate) fn scalar(&self, value: Value) -> Scalar {
        stored(self.func.ty(value).elem)
    }

    fn prepare(&self, op: &TileOp) -> Prepared {
        let wide = self.wide;
        let found = |f: Option<Loop>| f.map_or(Prepared::Nothing, Prepared::Loop);
        match op {
            TileOp::Unary { f, x } => found(loops::unary(*f, self.scalar(*x), wide)),
            TileOp::Binary { f, a, .. } => found(loops::binary(*f, self.scalar(*a), wide)),
            TileOp::Ternary { f, a, .. } => found(loops::ternary(*f, self.scalar(*a), wide)),
            TileOp::Compare { p, a, .. } => found(loops::compare(*p, self.scalar(*a), wide)),
            TileOp::Select { yes, .. } => {
                Prepared::Loop(loops::select(self.scalar(*yes).size(), wide))
            }
            TileOp::Cast { src, to, rounding } => {
                Prepared::Cast(casts::cast(self.scalar(*src), *to, *rounding, wide))
            }
            TileOp::PtrAdd { offset, .. } => {
                let ty = self.scalar(*offset);
                let widen = match casts::cast(ty, Scalar::I64, Rounding::Nearest, wide) {
                    Cast::Loop(f) if !matches!(ty, Scalar::I64 | Scalar::U64) => Some(f),
                    Cast::Loop(_) | Cast::Lanes { .. } => None,
                };
                Prepared::Pointer { widen, add: loops::pointer_add(wide) }
            }
            TileOp::Reduce { inputs, body, .. } => self.combine(inputs, *body, false),
            TileOp::Map { body, .. } => Prepared::Combine(self.how(*body)),
            TileOp::Scan { inputs, body, reverse, .. } => self.combine(inputs, *body, *reverse),
            // Whoever runs an op that was to be prepared and is not says so.
            _ => Prepared::Nothing,
        }
    }

    fn combine(&self, inputs: &[Value], body: Block, reverse: bool) -> Prepared {
        if let [input] = inputs
            && let Some(f) = one_function(&self.func, body).filter(|f| f.is_commutative())
        {
            let ty = self.scalar(*input);
            let row = loops::row_scan(f, ty, reverse, self.wide);
            if let (Some(f), Some(row)) = (loops::binary(f, ty, self.wide), row) {
                return Prepared::Combine(Combine::Function { f, row });
            }
        }
        Prepared::Combine(self.how(body))
    }

    /// How a region that is no single function is run.
    fn how(&self, body: Block) -> Combine {
        let mut lanewise = true;
        self.func.walk_block(body, &mut |inst| {
            let op = self.func.op(inst);
            // A branch is taken both ways and the lanes are chosen; a loop cannot be.
            lanewise &= op.is_lanewise() || matches!(op, TileOp::If { .. } | TileOp::Yield { .. });
            op.each_value(&mut |v| lanewise &= self.func.ty(v).is_scalar());
        });
        if lanewise { Combine::Tiles } else { Combine::Elements }
    }
}

/// The op at which a value is used last: it, or one in its regions.
#[derive(Copy, Clone)]
struct LastUse {
    inst: Inst,
    inside: bool,
}

/// Finds last uses. An op in a region counts as the op around it in the block of the definition.
struct Life<'a> {
    func: &'a Function<TileIr>,
    depth: Vec<u32>,
    last: Vec<Option<LastUse>>,
    path: Vec<Inst>,
}

impl Life<'_> {
    fn block(&mut self, block: Block) {
        let func = self.func;
        let depth = self.path.len() as u32;
        for &param in func.block_params(block) {
            self.depth[param.index()] = depth;
        }
        for &inst in func.insts(block) {
            self.path.push(inst);
            func.op(inst).each_value(&mut |v| {
                let at = self.depth[v.index()] as usize;
                let (user, inside) = (self.path[at], at as u32 != depth);
                let last = &mut self.last[v.index()];
                let before = last.is_some_and(|l| l.inst == user && l.inside);
                *last = Some(LastUse { inst: user, inside: inside || before });
            });
            func.op(inst).each_block(&mut |b| self.block(b));
            self.path.pop();
            for &result in func.results(inst) {
                self.depth[result.index()] = depth;
            }
        }
    }
}

struct Assign<'a> {
    func: &'a Function<TileIr>,
    last: Vec<Option<LastUse>>,
    register: Vec<u32>,
    deaths: Vec<Deaths>,
    free: Vec<u32>,
    registers: u32,
}

impl Assign<'_> {
    fn take(&mut self, value: Value) {
        if self.last[value.index()].is_none() {
            self.register[value.index()] = UNUSED;
            return;
        }
        let register = self.free.pop().unwrap_or_else(|| {
            self.registers += 1;
            self.registers - 1
        });
        self.register[value.index()] = register;
    }

    fn block(&mut self, block: Block) {
        let func = self.func;
        let before = self.free.clone();
        let most = self.registers;
        for &param in func.block_params(block) {
            self.take(param);
        }
        for &inst in func.insts(block) {
            let (mut begin, mut end) = (Vec::new(), Vec::new());
            // A region sees the registers of all values that live across it, so what the op itself
            // uses last must be known before its regions are walked; and what a region uses is known
            // since last uses were found before.
            let mut seen = Vec::new();
            let mut note = |v: Value| {
                let last = self.last[v.index()];
                if last.is_some_and(|l| l.inst == inst) && !seen.contains(&v) {
                    seen.push(v);
                }
            };
            func.op(inst).each_value(&mut note);
            func.op(inst).each_block(&mut |b| {
                func.walk_block(b, &mut |i| func.op(i).each_value(&mut note));
            });
            for v in seen {
                let inside = self.last[v.index()].is_some_and(|l| l.inside);
                let list = if inside { &mut end } else { &mut begin };
                list.push(self.register[v.index()]);
            }
            self.free.extend(&begin);
            func.op(inst).each_block(&mut |b| self.block(b));
            self.free.extend(&end);
            for &result in func.results(inst) {
                self.take(result);
            }
            self.deaths[inst.index()] = Deaths { begin: begin.into(), end: end.into() };
        }
        // All that the block took is free again.
        self.free = before;
        self.free.extend(most..self.registers);
    }
}
