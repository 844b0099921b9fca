//! Random functions.
//!
//! The sign and payload of a NaN are nobody's promise, so that no float is looked at as an integer here,
//! and functions that look at the sign of a NaN are left out.

use super::{Probe, Random, execute, for_loop, host, same, write};
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn};
use naiad_ir::thread::{
    Builder, Lanes, Permutation, RuntimeFn, Site, ThreadElem, ThreadOp, ThreadType, Vector,
};
use naiad_ir::tile::{Constant, MemHints};
use naiad_ir::{Scalar, Value};

/// Some 60 a second; more are run where the writer changes much.
const FUNCTIONS: u64 = 300;

const FLOAT_UNARY: [UnaryFn; 8] = [
    UnaryFn::Neg,
    UnaryFn::Abs,
    UnaryFn::Floor,
    UnaryFn::Ceil,
    UnaryFn::Trunc,
    UnaryFn::Rint,
    UnaryFn::SqrtRn,
    UnaryFn::Exp,
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

struct Generator {
    random: Random,
    /// Values that may be used, at each depth of regions.
    scope: Vec<Value>,
    base: Value,
    /// Cells of memory, each of one type.
    cells: Vec<(i64, Vector)>,
    budget: u32,
}

impl Generator {
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len() as u64) as usize]
    }

    /// A value in scope that the test holds of.
    fn find(&mut self, b: &Builder, wanted: impl Fn(Vector) -> bool) -> Option<Value> {
        let fits: Vec<Value> =
            self.scope.iter().copied().filter(|&v| wanted(b.vector(v))).collect();
        (!fits.is_empty()).then(|| self.pick(&fits))
    }

    fn of_type(&mut self, b: &mut Builder, ty: Vector) -> Value {
        if let Some(v) = self.find(b, |v| v == ty)
            && self.random.below(8) != 0
        {
            return v;
        }
        match ty.elem {
            ThreadElem::Scalar(s) => {
                let bits = self.random.image(s);
                b.constant(Constant { ty: s, bits }, ty.lanes)
            }
            ThreadElem::Addr => b.splat(self.base, ty.lanes),
        }
    }

    fn mask(&mut self, b: &mut Builder, lanes: u32) -> Value {
        self.of_type(b, Vector::BOOL.with_lanes(lanes))
    }

    fn lanes(&mut self) -> u32 {
        self.pick(&[1, 1, 2, 4, 4, 8, 8, 16, 32])
    }

    fn scalar(&mut self) -> Scalar {
        self.pick(Scalar::ALL)
    }

    fn ops(&mut self, b: &mut Builder, depth: u32) {
        let outer = self.scope.len();
        for _ in 0..self.random.below(12) + 2 {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            self.op(b, depth);
        }
        // Something to yield is left behind by the caller.
        if depth > 0 {
            self.scope.truncate(outer);
        }
    }

    fn op(&mut self, b: &mut Builder, depth: u32) {
        let made = match self.random.below(22) {
            0..=2 => self.find(b, computed).map(|x| {
                let ty = number(b, x);
                let f =
                    if ty.is_float() { self.pick(&FLOAT_UNARY) } else { self.pick(UnaryFn::ALL) };
                if f.accepts(ty) { b.unary(f, x) } else { x }
            }),
            3..=6 => self.find(b, computed).map(|x| {
                let (ty, v) = (number(b, x), b.vector(x));
                let y = self.of_type(b, v);
                let f =
                    if ty.is_float() { self.pick(&FLOAT_BINARY) } else { self.pick(BinaryFn::ALL) };
                if f.accepts(ty) { b.binary(f, x, y) } else { x }
            }),
            7 => self.find(b, computed).map(|x| {
                let (ty, v) = (number(b, x), b.vector(x));
                let f = if ty.is_float() { TernaryFn::Fma } else { TernaryFn::Clamp };
                let (y, z) = (self.of_type(b, v), self.of_type(b, v));
                b.op(ThreadOp::Ternary { f, a: x, b: y, c: z })
            }),
            8 | 9 => self.find(b, computed).map(|x| {
                let v = b.vector(x);
                let y = self.of_type(b, v);
                let p = self.pick(Predicate::ALL);
                b.compare(p, x, y)
            }),
            10 | 11 => self.find(b, |_| true).map(|x| {
                let v = b.vector(x);
                let (y, cond) = (self.of_type(b, v), self.mask(b, v.lanes));
                b.select(cond, x, y)
            }),
            12 | 13 => self.find(b, |v| v.elem != ThreadElem::Addr).map(|x| {
                let (to, rounding) = (self.scalar(), self.pick(Rounding::ALL));
                b.cast(x, to, rounding)
            }),
            14 => self.find(b, |v| v.is_scalar()).map(|x| {
                let lanes = self.lanes();
                b.splat(x, lanes)
            }),
            15 => self.find(b, |_| true).map(|x| {
                let v = b.vector(x);
                let y = self.of_type(b, v);
                let (n, lanes) = (u64::from(2 * v.lanes), self.lanes());
                let order = (0..lanes).map(|_| self.random.below(n) as u32).collect();
                b.op(ThreadOp::Shuffle { a: x, b: y, order: Permutation(order) })
            }),
            16 => self.find(b, |v| v.elem == Vector::BOOL.elem).map(|mask| {
                let any = self.random.below(2) == 0;
                b.op(if any { ThreadOp::Any { mask } } else { ThreadOp::All { mask } })
            }),
            17 => self.find(b, |v| !v.is_scalar()).map(|x| {
                let lane = self.random.below(b.vector(x).lanes.into()) as u32;
                b.extract(x, lane)
            }),
            18 | 19 => Some(self.access(b)),
            20 if depth < 3 => self.control(b, depth),
            21 => {
                let site = Site(self.random.below(1000) as u32);
                let cond = self.mask(b, 1);
                let rare = self.mask(b, 1);
                let cond = b.binary(BinaryFn::Or, cond, rare);
                let value = self.of_type(b, Vector::I64);
                b.run(ThreadOp::Guard { cond, site, values: vec![value, value] });
                // Addresses differ from run to run, but for one that is a number.
                let at = b.bitcast(value, ThreadElem::Addr);
                let args = vec![at, value, at, value];
                Some(b.call(RuntimeFn::MayAccess, args)[0])
            }
            _ => None,
        };
        self.scope.extend(made);
    }

    /// Writes or reads a cell.
    fn access(&mut self, b: &mut Builder) -> Value {
        let (at, ty) = self.pick(&self.cells.clone());
        let mask = (self.random.below(2) == 0).then(|| self.mask(b, ty.lanes));
        let (addr, hints) = (self.base, MemHints::default());
        if self.random.below(2) == 0 {
            let value = self.of_type(b, ty);
            b.run(ThreadOp::Store { addr, value, disp: at, mask, hints });
        }
        let (elem, lanes) = (ty.elem, Lanes(ty.lanes));
        b.op(ThreadOp::Load { addr, disp: at, elem, lanes, mask, hints })
    }

    /// A loop or a branch, and a value of what it gives.
    fn control(&mut self, b: &mut Builder, depth: u32) -> Option<Value> {
        let x = self.find(b, |v| v.elem != ThreadElem::Addr)?;
        let ty = b.vector(x);
        if self.random.below(2) == 0 {
            let cond = self.mask(b, 1);
            let mut branch = |this: &mut Generator| {
                let branch = b.begin_branch();
                this.ops(b, depth + 1);
                let value = this.of_type(b, ty);
                b.end_branch(branch, vec![value])
            };
            let (then, otherwise) = (branch(self), branch(self));
            return Some(b.op(ThreadOp::If { cond, then, otherwise }));
        }
        let bounds = match self.random.below(3) {
            0 => [0, 3, 1],
            1 => [7, -2, -4],
            _ => [-5, 6, 5],
        };
        let of = self.pick(&[Scalar::I32, Scalar::I64, Scalar::I8]);
        let bounds = bounds.map(|n| b.constant(Constant::int(of, n), 1));
        let depth = depth + 1;
        let results = for_loop(b, bounds, vec![x], |b, iv, carried| {
            let outer = self.scope.len();
            self.scope.extend([iv, carried[0]]);
            self.ops(b, depth);
            let next = self.of_type(b, ty);
            self.scope.truncate(outer);
            vec![next]
        });
        Some(results[0])
    }
}

fn number(b: &Builder, v: Value) -> Scalar {
    b.vector(v).elem.scalar().expect("a number")
}

fn computed(v: Vector) -> bool {
    v.elem.scalar().is_some_and(|s| s.compute_type() == s)
}

fn probe(seed: u64) -> Probe {
    let mut p = Probe::new(&format!("random_{seed}"));
    let mut g = Generator {
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        scope: Vec::new(),
        base: p.base(),
        cells: Vec::new(),
        budget: 60,
    };
    for _ in 0..8 {
        let (ty, lanes) = (g.scalar(), g.lanes());
        let x = p.input(ty, lanes);
        g.scope.push(x);
    }
    for _ in 0..4 {
        let ty = Vector::of(g.scalar().into(), g.lanes());
        let at = p.place(ty);
        g.cells.push((at, ty));
        p.watch(at, ty);
    }
    g.ops(&mut p.b, 0);
    while g.budget > 0 {
        g.ops(&mut p.b, 0);
    }
    for v in g.scope.split_off(8.min(g.scope.len())) {
        p.output(v);
    }
    p
}

#[test]
fn random_functions() {
    for seed in 0..FUNCTIONS {
        probe(seed).check(6);
    }
}

#[test]
fn many_threads_write_at_once() {
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            std::thread::spawn(move || {
                for seed in 0..20 {
                    probe(1_000_000 + thread * 1000 + seed).check(2);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no failure");
    }
}

#[test]
fn one_machine_runs_in_many_threads() {
    let mut b = Builder::new("square");
    let [x, out] = ["x", "out"].map(|p| b.func.add_param(p, ThreadType::ADDR));
    let v = b.load(x, 0, Vector::of(Scalar::F32.into(), 8));
    let square = b.binary(BinaryFn::Mul, v, v);
    b.store(out, 0, square);
    b.run(ThreadOp::Return {});
    let machine = write(host(), &b.func);
    std::thread::scope(|scope| {
        for i in 0..8 {
            let machine = &machine;
            scope.spawn(move || {
                let x = [i as f32 + 0.5; 8];
                let mut out = [0f32; 8];
                execute(machine, &[x.as_ptr() as u64, out.as_mut_ptr() as u64]);
                let want = u64::from((x[0] * x[0]).to_bits());
                assert!(out.iter().all(|y| same(Scalar::F32.into(), y.to_bits().into(), want)));
            });
        }
    });
}
