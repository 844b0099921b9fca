//! Random functions of one thread, on a buffer.
//!
//! The sign and payload of a NaN are nobody's promise, so that no float is looked at as an integer, and
//! functions that look at the sign of a NaN are left out.

use super::scalars::images;
use naiad_interp::thread::{Outcome, run};
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn, cast_bits};
use naiad_ir::thread::{
    Builder, Lanes, Permutation, Thread, ThreadElem, ThreadOp, ThreadType, Vector,
};
use naiad_ir::tile::{AtomicOp, CacheModifier, Constant, Eviction, MemHints, Scope, Sem};
use naiad_ir::{Function, Scalar, Value};

const FLOAT_UNARY: [UnaryFn; 7] = [
    UnaryFn::Neg,
    UnaryFn::Abs,
    UnaryFn::Floor,
    UnaryFn::Ceil,
    UnaryFn::Trunc,
    UnaryFn::Rint,
    UnaryFn::SqrtRn,
];

const FLOAT_BINARY: [BinaryFn; 7] = [
    BinaryFn::Add,
    BinaryFn::Sub,
    BinaryFn::Mul,
    BinaryFn::Div,
    BinaryFn::Min,
    BinaryFn::Max,
    BinaryFn::MaxNan,
];

pub struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn image(&mut self, of: Scalar) -> u64 {
        let all = images(of);
        if self.below(3) == 0 { self.next() & of.mask() } else { self.pick(&all) }
    }
}

/// A function, and the places of its buffer that must come out the same. Its parameter is the buffer's
/// address.
pub struct Probe {
    pub func: Function<Thread>,
    inputs: Vec<(usize, Vector)>,
    outputs: Vec<(usize, Vector)>,
    bytes: usize,
}

/// 16 bytes of a buffer, and aligned to so many.
#[repr(C, align(16))]
#[derive(Copy, Clone)]
pub struct Line(pub [u8; 16]);

impl Probe {
    /// A buffer with numbers to start from.
    pub fn buffer(&self, round: u64) -> Vec<Line> {
        let mut random = Random((round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut bytes = vec![0u8; self.bytes.next_multiple_of(16)];
        for &(at, ty) in &self.inputs {
            for lane in 0..ty.lanes as usize {
                let size = ty.elem.size();
                let image = random.image(ty.elem.scalar().unwrap_or(Scalar::U64));
                bytes[at + lane * size..][..size].copy_from_slice(&image.to_le_bytes()[..size]);
            }
        }
        bytes.as_chunks().0.iter().map(|&line| Line(line)).collect()
    }

    /// What the evaluator of Thread IR makes of it.
    pub fn evaluate(&self, buffer: &mut [Line]) {
        let mut runtime = |_, _: &[u64]| -> Vec<u64> { unreachable!("nothing is called") };
        // SAFETY: the function accesses the buffer only.
        let outcome = unsafe { run(&self.func, &[buffer.as_mut_ptr() as u64], &mut runtime) };
        assert_eq!(outcome, Outcome::Ended);
    }

    /// The first place that is not the same in both, and what is there.
    pub fn difference(&self, want: &[Line], have: &[Line]) -> Option<String> {
        self.outputs.iter().find_map(|&(place, ty)| {
            let [want, have] = [want, have].map(|m| at(m, place, ty));
            let equal = want.iter().zip(&have).all(|(&x, &y)| same(ty.elem, x, y));
            (!equal).then(|| format!("{ty} at {place}:\nwant {want:x?}\nhave {have:x?}"))
        })
    }
}

/// The images of a place.
fn at(memory: &[Line], at: usize, ty: Vector) -> Vec<u64> {
    let bytes: Vec<u8> = memory.iter().flat_map(|line| line.0).collect();
    let size = ty.elem.size();
    let lane = |i: usize| {
        let mut image = [0; 8];
        image[..size].copy_from_slice(&bytes[at + i * size..][..size]);
        u64::from_le_bytes(image)
    };
    (0..ty.lanes as usize).map(lane).collect()
}

fn same(elem: ThreadElem, x: u64, y: u64) -> bool {
    let is_nan = |image| {
        let wide = |s| f64::from_bits(cast_bits(s, Scalar::F64, Rounding::Nearest, image));
        elem.scalar().is_some_and(|s| s.is_float() && wide(s).is_nan())
    };
    x == y || is_nan(x) && is_nan(y)
}

struct Generator {
    random: Random,
    b: Builder,
    base: Value,
    /// Values that may be used, at each depth of regions.
    scope: Vec<Value>,
    /// Cells of memory and arrays of registers, each of one type.
    cells: Vec<(usize, Vector)>,
    arrays: Vec<(Value, Vector)>,
    inputs: Vec<(usize, Vector)>,
    outputs: Vec<(usize, Vector)>,
    bytes: usize,
    budget: u32,
}

impl Generator {
    /// Room in the buffer that vector accesses may go to.
    fn room(&mut self, ty: Vector) -> usize {
        let bytes = ty.elem.size() * ty.lanes as usize;
        let at = self.bytes.next_multiple_of(bytes.min(16));
        self.bytes = at + bytes;
        at
    }

    fn input(&mut self, ty: Vector) -> Value {
        let at = self.room(ty);
        self.inputs.push((at, ty));
        self.b.load(self.base, at as i64, ty)
    }

    fn find(&mut self, wanted: impl Fn(Vector) -> bool) -> Option<Value> {
        let fits: Vec<Value> =
            self.scope.iter().copied().filter(|&v| wanted(self.b.vector(v))).collect();
        (!fits.is_empty()).then(|| self.random.pick(&fits))
    }

    fn of_type(&mut self, ty: Vector) -> Value {
        if let Some(v) = self.find(|v| v == ty)
            && self.random.below(8) != 0
        {
            return v;
        }
        match ty.elem {
            ThreadElem::Scalar(s) => {
                let bits = self.random.image(s);
                self.b.constant(Constant { ty: s, bits }, ty.lanes)
            }
            ThreadElem::Addr => self.b.splat(self.base, ty.lanes),
        }
    }

    /// A mask: a splat, or of lanes of their own.
    fn mask(&mut self, lanes: u32) -> Value {
        if self.random.below(2) == 0 {
            let one = self.of_type(Vector::BOOL);
            return self.b.splat(one, lanes);
        }
        self.of_type(Vector::BOOL.with_lanes(lanes))
    }

    fn lanes(&mut self) -> u32 {
        self.random.pick(&[1, 1, 2, 4, 4, 8, 16])
    }

    fn number(&self, v: Value) -> Scalar {
        self.b.vector(v).elem.scalar().expect("a number")
    }

    fn ops(&mut self, depth: u32) {
        let outer = self.scope.len();
        for _ in 0..self.random.below(12) + 2 {
            if self.budget > 0 {
                self.budget -= 1;
                let made = self.op(depth);
                self.scope.extend(made);
            }
        }
        // Something to yield is left behind by the caller.
        if depth > 0 {
            self.scope.truncate(outer);
        }
    }

    fn op(&mut self, depth: u32) -> Option<Value> {
        match self.random.below(29) {
            28 => Some(self.wide_product()),
            0..=2 => {
                let x = self.find(computed)?;
                let ty = self.number(x);
                let all: &[UnaryFn] = if ty.is_float() { &FLOAT_UNARY } else { UnaryFn::ALL };
                let f = self.random.pick(all);
                f.accepts(ty).then(|| self.b.unary(f, x))
            }
            3..=6 => {
                let x = self.find(computed)?;
                let (ty, v) = (self.number(x), self.b.vector(x));
                let y = self.of_type(v);
                let all: &[BinaryFn] = if ty.is_float() { &FLOAT_BINARY } else { BinaryFn::ALL };
                let f = self.random.pick(all);
                f.accepts(ty).then(|| self.b.binary(f, x, y))
            }
            7 => {
                let x = self.find(computed)?;
                let (ty, v) = (self.number(x), self.b.vector(x));
                let fma = ty.is_float() && self.random.below(2) == 0;
                let f = if fma { TernaryFn::Fma } else { TernaryFn::Clamp };
                let (b, c) = (self.of_type(v), self.of_type(v));
                Some(self.b.op(ThreadOp::Ternary { f, a: x, b, c }))
            }
            8 | 9 => {
                let x = self.find(computed)?;
                let v = self.b.vector(x);
                let y = self.of_type(v);
                let p = self.random.pick(Predicate::ALL);
                Some(self.b.compare(p, x, y))
            }
            10 | 11 => {
                let x = self.find(|_| true)?;
                let v = self.b.vector(x);
                let (y, cond) = (self.of_type(v), self.mask(v.lanes));
                Some(self.b.select(cond, x, y))
            }
            12 | 13 => {
                let x = self.find(|v| v.elem != ThreadElem::Addr)?;
                let to = self.random.pick(Scalar::ALL);
                let rounding = self.random.pick(Rounding::ALL);
                // It has no NaN, but a number of the NaN's sign.
                let loses = self.number(x).is_float() && !to.has_nan() && to.is_float();
                (!loses).then(|| self.b.cast(x, to, rounding))
            }
            14 => {
                let x = self.find(|v| v.is_scalar())?;
                let lanes = self.lanes();
                Some(self.b.splat(x, lanes))
            }
            15 => {
                let x = self.find(|_| true)?;
                let v = self.b.vector(x);
                let y = self.of_type(v);
                let (n, lanes) = (u64::from(2 * v.lanes), self.lanes());
                let order = (0..lanes).map(|_| self.random.below(n) as u32).collect();
                Some(self.b.op(ThreadOp::Shuffle { a: x, b: y, order: Permutation(order) }))
            }
            16 => {
                let mask = self.find(|v| v.elem == Vector::BOOL.elem)?;
                let any = self.random.below(2) == 0;
                Some(self.b.op(if any { ThreadOp::Any { mask } } else { ThreadOp::All { mask } }))
            }
            17 => {
                let x = self.find(|v| !v.is_scalar())?;
                let lane = self.random.below(self.b.vector(x).lanes.into()) as u32;
                Some(self.b.extract(x, lane))
            }
            18 => {
                let x = self.find(|v| v.elem.scalar().is_some_and(Scalar::is_int))?;
                let bits = self.number(x).bits();
                let same: Vec<Scalar> =
                    Scalar::ALL.iter().copied().filter(|s| s.bits() == bits).collect();
                let to = self.random.pick(&same);
                Some(self.b.bitcast(x, to))
            }
            19 | 20 => Some(self.access()),
            21 => self.scattered(),
            22 => self.atomic(),
            23 => self.array(),
            24 | 25 => self.together(),
            _ if depth < 3 => self.control(depth),
            _ => None,
        }
    }

    fn hints(&mut self) -> MemHints {
        MemHints {
            cache: self.random.pick(CacheModifier::ALL),
            evict: self.random.pick(Eviction::ALL),
            volatile: self.random.below(8) == 0,
        }
    }

    /// Writes or reads a cell.
    fn access(&mut self) -> Value {
        let (at, ty) = self.random.pick(&self.cells.clone());
        let mask = (self.random.below(2) == 0).then(|| self.mask(ty.lanes));
        let (addr, disp, hints) = (self.base, at as i64, self.hints());
        if self.random.below(2) == 0 {
            let value = self.of_type(ty);
            self.b.run(ThreadOp::Store { addr, value, disp, mask, hints });
        }
        let (elem, lanes) = (ty.elem, Lanes(ty.lanes));
        self.b.op(ThreadOp::Load { addr, disp, elem, lanes, mask, hints })
    }

    /// Writes or reads lanes of a cell in another order.
    fn scattered(&mut self) -> Option<Value> {
        let (at, ty) = self.random.pick(&self.cells.clone());
        let mask = (self.random.below(2) == 0).then(|| self.mask(ty.lanes));
        let base = self.b.splat(self.base, ty.lanes);
        let lane = self.of_type(Vector::I64.with_lanes(ty.lanes));
        let [most, size, start] = [i64::from(ty.lanes) - 1, ty.elem.size() as i64, at as i64]
            .map(|x| self.b.constant(Constant::int(Scalar::I64, x.into()), ty.lanes));
        let lane = self.b.binary(BinaryFn::And, lane, most);
        let offset = self.b.binary(BinaryFn::Mul, lane, size);
        let offset = self.b.binary(BinaryFn::Add, offset, start);
        let addr = self.b.addr_add(base, offset);
        if self.random.below(2) == 0 {
            let value = self.of_type(ty);
            self.b.run(ThreadOp::Scatter { addr, value, mask });
        }
        Some(self.b.op(ThreadOp::Gather { addr, elem: ty.elem, mask }))
    }

    fn atomic(&mut self) -> Option<Value> {
        let (at, ty) = self.random.pick(&self.cells.clone());
        let of = ty.elem.scalar()?;
        let at = self.b.i64(at as i64);
        let addr = self.b.addr_add(self.base, at);
        let value = self.of_type(ty.with_lanes(1));
        let (sem, scope) = (self.random.pick(Sem::ALL), self.random.pick(Scope::ALL));
        match self.random.below(4) {
            0 => Some(self.b.op(ThreadOp::AtomicLoad { addr, elem: ty.elem, sem, scope })),
            1 => {
                self.b.run(ThreadOp::AtomicStore { addr, value, sem, scope });
                None
            }
            // A NaN is equal to none, but its bits may be to another's.
            2 if AtomicOp::cas_accepts(of) && of.is_int() => {
                let compare = self.b.load(addr, 0, ty.with_lanes(1));
                let other = self.of_type(ty.with_lanes(1));
                let cond = self.of_type(Vector::BOOL);
                let compare = self.b.select(cond, compare, other);
                Some(self.b.op(ThreadOp::AtomicCas { addr, compare, value, sem, scope }))
            }
            _ => {
                let f = self.random.pick(AtomicOp::ALL);
                // What memory holds where an operand is NaN, executors do not agree on.
                let extreme = of.is_float() && matches!(f, AtomicOp::Max | AtomicOp::Min);
                let fits = f.accepts(of) && !extreme;
                fits.then(|| self.b.op(ThreadOp::Atomic { f, addr, value, sem, scope }))
            }
        }
    }

    /// A word with 64 bits, times another one or a constant.
    fn wide_product(&mut self) -> Value {
        let word = |g: &mut Generator| {
            let of = g.random.pick(&[Scalar::I32, Scalar::I32, Scalar::U32]);
            let word = g.of_type(Vector::scalar(of));
            g.b.cast(word, Scalar::I64, Rounding::Nearest)
        };
        let x = word(self);
        let y = match self.random.below(2) {
            0 => word(self),
            _ => self.of_type(Vector::scalar(Scalar::I64)),
        };
        self.b.binary(BinaryFn::Mul, x, y)
    }

    /// A word out of narrow lanes, as bytes or halves side by side, and perhaps apart again.
    fn together(&mut self) -> Option<Value> {
        let narrow =
            |v: Vector| v.elem.scalar().is_some_and(|s| s.is_int() && matches!(s.bits(), 8 | 16));
        let of = self.random.pick(&[Scalar::I32, Scalar::U32]);
        let mut word = None;
        let mut at = 0;
        while at < 32 {
            let x = self.find(narrow)?;
            let lane = self.random.below(self.b.vector(x).lanes.into()) as u32;
            let x = self.b.extract(x, lane);
            let bits = self.number(x).bits();
            let unsigned = if bits == 8 { Scalar::U8 } else { Scalar::U16 };
            let x = self.b.bitcast(x, unsigned);
            let x = self.b.cast(x, of, Rounding::Nearest);
            let by = self.b.constant(Constant::int(of, at), 1);
            let x = self.b.binary(BinaryFn::Shl, x, by);
            word = Some(word.map_or(x, |word| self.b.binary(BinaryFn::Or, word, x)));
            at += i128::from(bits) * if self.random.below(8) == 0 { 2 } else { 1 };
        }
        let word = word?;
        if self.random.below(2) == 0 {
            return Some(word);
        }
        let word = self.b.cast(word, Scalar::U32, Rounding::Nearest);
        let by = self.random.pick(&[0, 8, 16, 24]);
        let by = self.b.constant(Constant::int(Scalar::U32, by), 1);
        let part = self.b.binary(BinaryFn::Shr, word, by);
        let to = self.random.pick(&[Scalar::U8, Scalar::I8, Scalar::U16, Scalar::I16]);
        Some(self.b.cast(part, to, Rounding::Nearest))
    }

    fn array(&mut self) -> Option<Value> {
        let (regs, ty) = self.random.pick(&self.arrays.clone());
        let index = self.random.below(2) as u32;
        let before = self.b.op(ThreadOp::RegsGet { regs, index });
        let value = self.of_type(ty);
        self.b.run(ThreadOp::RegsSet { regs, value, index });
        Some(before)
    }

    /// A loop or a branch, and a value of what it gives.
    fn control(&mut self, depth: u32) -> Option<Value> {
        let pick = |g: &mut Generator| g.find(|v| v.elem != ThreadElem::Addr);
        let inits = vec![pick(self)?, pick(self)?, pick(self)?];
        let types: Vec<Vector> = inits.iter().map(|&v| self.b.vector(v)).collect();
        let outer = self.scope.len();
        let results = match self.random.below(3) {
            0 => {
                let cond = self.of_type(Vector::BOOL);
                let branch = |g: &mut Generator| {
                    let branch = g.b.begin_branch();
                    g.ops(depth + 1);
                    let values = types.iter().map(|&ty| g.of_type(ty)).collect();
                    g.b.end_branch(branch, values)
                };
                let (then, otherwise) = (branch(self), branch(self));
                self.b.ops(ThreadOp::If { cond, then, otherwise })
            }
            1 => {
                let of = self.random.pick(&[
                    Scalar::I32,
                    Scalar::I64,
                    Scalar::U32,
                    Scalar::I8,
                    Scalar::U8,
                    Scalar::I16,
                    Scalar::U64,
                ]);
                let bounds = self.bounds(of);
                let l = self.b.begin_for(bounds, inits);
                self.scope.push(l.iv);
                self.scope.extend_from_slice(&l.carried);
                let mut next: Vec<Value> = l.carried.clone();
                self.ops(depth + 1);
                for (v, &ty) in next.iter_mut().zip(&types) {
                    *v = self.of_type(ty);
                }
                self.b.end_for(l, next)
            }
            _ => self.while_loop(depth, inits, &types),
        };
        self.scope.truncate(outer);
        let keep = self.random.pick(&results);
        Some(keep)
    }

    /// Few rounds, at an end of the type or not, known or not.
    fn bounds(&mut self, of: Scalar) -> [Value; 3] {
        let signed_min = -(1i128 << (of.bits() - 1));
        let signed_max = -signed_min - 1;
        let bounds = match self.random.below(9) {
            0 => [0, 3, 1],
            1 => [7, -2, -4],
            2 => [signed_max - 3, signed_max, 2],
            3 => [signed_min + 3, signed_min, -2],
            4 => [signed_max - 9, signed_max - 1, 5],
            5 => [3, 3, 1],
            6 => [signed_min, signed_min + 2, 3],
            7 => [signed_max, signed_max - 2, -3],
            _ => [-5, 6, 5],
        };
        bounds.map(|n| {
            let known = self.b.constant(Constant::int(of, n), 1);
            if self.random.below(2) == 0 {
                return known;
            }
            // A zero that nobody knows.
            let at = self.cells[0].0 as i64;
            let x = self.b.load(self.base, at, Vector::scalar(Scalar::U8));
            let x = self.b.cast(x, of, Rounding::Nearest);
            let zero = self.b.binary(BinaryFn::Sub, x, x);
            self.b.binary(BinaryFn::Add, known, zero)
        })
    }

    /// Counts down from 3, besides what it carries.
    fn while_loop(&mut self, depth: u32, inits: Vec<Value>, types: &[Vector]) -> Vec<Value> {
        let start = self.b.constant(Constant::int(Scalar::I32, 3), 1);
        let all: Vec<Value> = std::iter::once(start).chain(inits).collect();
        let types: Vec<Vector> =
            std::iter::once(Vector::I32).chain(types.iter().copied()).collect();
        let block = |g: &mut Generator| {
            let block = g.b.func.new_block();
            let params: Vec<Value> =
                types.iter().map(|&ty| g.b.func.add_block_param(block, ty.into())).collect();
            (block, params)
        };
        let (before, params) = block(self);
        let outer_block = self.b.enter(before);
        let outer = self.scope.len();
        self.scope.extend_from_slice(&params[1..]);
        self.ops(depth + 1);
        let zero = self.b.constant(Constant::int(Scalar::I32, 0), 1);
        let cond = self.b.compare(Predicate::Gt, params[0], zero);
        let mut values = vec![params[0]];
        values.extend(types[1..].iter().map(|&ty| self.of_type(ty)));
        self.b.run(ThreadOp::Condition { cond, values });
        self.scope.truncate(outer);
        let (after, params) = block(self);
        self.b.enter(after);
        self.scope.extend_from_slice(&params[1..]);
        self.ops(depth + 1);
        let one = self.b.constant(Constant::int(Scalar::I32, 1), 1);
        let mut values = vec![self.b.binary(BinaryFn::Sub, params[0], one)];
        values.extend(types[1..].iter().map(|&ty| self.of_type(ty)));
        self.b.run(ThreadOp::Yield { values });
        self.scope.truncate(outer);
        self.b.enter(outer_block);
        self.b.ops(ThreadOp::While { inits: all, before, after })
    }
}

fn computed(v: Vector) -> bool {
    v.elem.scalar().is_some_and(|s| s.compute_type() == s)
}

/// The function of that number.
pub fn probe(seed: u64) -> Probe {
    let mut b = Builder::new(&format!("random_{seed}"));
    let base = b.func.add_param("base", ThreadType::ADDR);
    let mut g = Generator {
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        b,
        base,
        scope: Vec::new(),
        cells: Vec::new(),
        arrays: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        bytes: 0,
        budget: 60,
    };
    for _ in 0..8 {
        let ty = Vector::of(g.random.pick(Scalar::ALL).into(), g.lanes());
        let x = g.input(ty);
        g.scope.push(x);
    }
    for _ in 0..4 {
        let ty = Vector::of(g.random.pick(Scalar::ALL).into(), g.lanes());
        let at = g.room(ty);
        g.inputs.push((at, ty));
        g.outputs.push((at, ty));
        g.cells.push((at, ty));
        let lanes = Lanes(ty.lanes);
        let regs = g.b.op(ThreadOp::Regs { elem: ty.elem, lanes, count: 2 });
        g.arrays.push((regs, ty));
    }
    while g.budget > 0 {
        g.ops(0);
    }
    for v in g.scope.split_off(8.min(g.scope.len())) {
        let ty = g.b.vector(v);
        // Addresses differ from run to run.
        if ty.elem != ThreadElem::Addr {
            let at = g.room(ty);
            g.b.store(base, at as i64, v);
            g.outputs.push((at, ty));
        }
    }
    g.b.run(ThreadOp::Return {});
    naiad_ir::verify(&g.b.func).expect("verified");
    Probe { func: g.b.func, inputs: g.inputs, outputs: g.outputs, bytes: g.bytes }
}
