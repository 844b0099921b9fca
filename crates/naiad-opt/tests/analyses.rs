//! What the analyses say of a value holds when the kernel runs: each claim becomes an assertion in the
//! kernel's IR, and the reference executor judges it.

#[path = "../../naiad-interp/tests/common/mod.rs"]
mod common;
#[path = "../../naiad-interp/tests/common/generator.rs"]
mod generator;

use common::*;
use generator::{INPUT, Kind, Random, generate};
use naiad_diag::Loc;
use naiad_interp::{Arg, TensorArg};
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding};
use naiad_ir::tile::{Constant, Text, Texts, Tile, TileOp};
use naiad_ir::{Block, Elem, Function, Inst, OpInfo, Scalar, Shape, Type, Value};
use naiad_opt::axis::{Axis, AxisInfo};
use naiad_opt::interval::Interval;
use naiad_opt::ranges::{Inputs, Param, Ranges};
use std::sync::Arc;

/// Puts assertions behind every value that something is claimed of.
struct Claims<'a> {
    func: &'a mut Function<Tile>,
    ranges: &'a Ranges,
    axes: &'a AxisInfo,
    list: Vec<Inst>,
    ranged: usize,
    runs: usize,
}

impl Claims<'_> {
    fn op(&mut self, op: TileOp) -> Value {
        let inst = self.func.create(op, Loc::NONE).unwrap();
        self.list.push(inst);
        self.func.results(inst)[0]
    }

    fn full(&mut self, s: Scalar, x: i128, shape: Shape) -> Value {
        let c = self.op(TileOp::Const { value: Constant::int(s, x) });
        if shape.is_scalar() { c } else { self.op(TileOp::Splat { src: c, shape }) }
    }

    fn binary(&mut self, f: BinaryFn, a: Value, b: Value) -> Value {
        self.op(TileOp::Binary { f, a, b })
    }

    fn assert(&mut self, p: Predicate, a: Value, b: Value, claim: &str) {
        let cond = self.op(TileOp::Compare { p, a, b });
        let message = Text(claim.into());
        let (values, names) = (vec![a], [Text("it".into())].into_iter().collect::<Texts>());
        let op = TileOp::Assert { cond, mask: None, message, values, names };
        self.list.push(self.func.create(op, Loc::NONE).unwrap());
    }

    fn block(&mut self, block: Block) {
        let insts = self.func.take_insts(block);
        let around = std::mem::take(&mut self.list);
        for param in self.func.block_params(block).to_vec() {
            self.value(param);
        }
        for inst in insts {
            let op = self.func.op(inst);
            let mut blocks = Vec::new();
            if !op.is_isolated() {
                op.each_block(&mut |b| blocks.push(b));
            }
            for b in blocks {
                self.block(b);
            }
            self.list.push(inst);
            for value in self.func.results(inst).to_vec() {
                self.value(value);
            }
        }
        let list = std::mem::replace(&mut self.list, around);
        self.func.set_insts(block, list);
    }

    fn value(&mut self, value: Value) {
        let ty = self.func.ty(value);
        match ty.elem {
            Elem::Scalar(s) if s.is_int() => {
                let i = self.ranges.of(value).unwrap_or_else(|| panic!("{value} has no interval"));
                if i != Interval::of_type(s) {
                    self.ranged += 1;
                    let (lo, hi) = (self.full(s, i.lo, ty.shape), self.full(s, i.hi, ty.shape));
                    self.assert(Predicate::Ge, value, lo, &format!("{value} in {i}"));
                    self.assert(Predicate::Le, value, hi, &format!("{value} in {i}"));
                }
                if !s.is_bool() {
                    self.axes_of(value, value, ty, 1);
                } else if !ty.is_scalar() {
                    let bytes =
                        TileOp::Cast { src: value, to: Scalar::I32, rounding: Rounding::Nearest };
                    let bytes = self.op(bytes);
                    self.axes_of(value, bytes, ty.with_elem(Scalar::I32), 1);
                }
            }
            Elem::Pointer(p) => {
                let address =
                    self.op(TileOp::Bitcast { src: value, to: Elem::Scalar(Scalar::I64) });
                self.axes_of(value, address, ty.with_elem(Scalar::I64), p.pointee.size() as i128);
            }
            Elem::Scalar(_) => {}
        }
    }

    /// `x` is `value` as numbers.
    fn axes_of(&mut self, value: Value, x: Value, ty: Type, unit: i128) {
        let axes = self.axes.axes(value).to_vec();
        let s = ty.elem.scalar().unwrap();
        for (axis, a) in axes.into_iter().enumerate() {
            if a == Axis::NONE {
                continue;
            }
            self.runs += 1;
            let claim = format!("{value} along {axis}: {a:?}");
            if a.divisibility > 1 {
                let starts = self.starts(x, ty, axis, a.contiguity);
                // The low bits, as far as the type has them.
                let bits = (a.divisibility - 1).min(s.mask()) as i128;
                let mask = self.full(s, bits, ty.shape);
                let low = self.binary(BinaryFn::And, starts, mask);
                let zero = self.full(s, 0, ty.shape);
                self.assert(Predicate::Eq, low, zero, &claim);
            }
            if a.constancy > 1 {
                let starts = self.starts(x, ty, axis, a.constancy);
                self.assert(Predicate::Eq, x, starts, &claim);
            }
            if a.contiguity > 1 {
                let starts = self.starts(x, ty, axis, a.contiguity);
                let index = self.index(ty.shape, axis);
                let low = self.full(Scalar::I32, i128::from(a.contiguity) - 1, ty.shape);
                let place = self.binary(BinaryFn::And, index, low);
                let place =
                    self.op(TileOp::Cast { src: place, to: s, rounding: Rounding::Nearest });
                let unit = self.full(s, unit, ty.shape);
                let way = self.binary(BinaryFn::Mul, place, unit);
                let want = self.binary(BinaryFn::Add, starts, way);
                self.assert(Predicate::Eq, x, want, &claim);
            }
        }
    }

    /// Each lane's index along an axis.
    fn index(&mut self, shape: Shape, axis: usize) -> Value {
        let n = shape.dim(axis) as i64;
        let mut i = self.op(TileOp::Arange { start: 0, end: n });
        for d in 0..shape.rank() {
            if d != axis {
                i = self.op(TileOp::ExpandDims { src: i, axis: d });
            }
        }
        self.op(TileOp::Broadcast { src: i, shape })
    }

    /// What stands at the start of each lane's run.
    fn starts(&mut self, x: Value, ty: Type, axis: usize, run: u32) -> Value {
        if run == 1 || ty.is_scalar() {
            return x;
        }
        let index = self.index(ty.shape, axis);
        let high = self.full(Scalar::I32, -i128::from(run), ty.shape);
        let index = self.binary(BinaryFn::And, index, high);
        self.op(TileOp::Gather { src: x, index, axis })
    }
}

#[test]
fn claims_hold_in_random_kernels() {
    let mut input = vec![0u8; INPUT];
    let mut random = Random(12345);
    input.iter_mut().for_each(|byte| *byte = random.next() as u8);
    let rounds: u64 =
        option_env!("NAIAD_RANDOM_ROUNDS").and_then(|n| n.parse().ok()).unwrap_or(300);
    let (mut ranged, mut runs, mut ran) = (0, 0, 0);
    for seed in 0..rounds {
        let (text, _, bytes) = generate(seed, Kind::All);
        let before = kernel(&text);
        let mut func = Function::clone(&before);
        // As it is written, and in the form that the analyses are made for.
        if seed % 2 == 0 {
            naiad_opt::optimize(&mut func);
        }
        let inputs = Inputs {
            grid: (seed % 3 == 0).then_some([3, 1, 1]),
            params: vec![
                Param { range: None, divisible: (seed % 5 == 0).then_some(8) },
                Param::default(),
                Param { range: (seed % 4 == 0).then_some(Interval::new(13, 13)), divisible: None },
            ],
        };
        let ranges = Ranges::new(&func, &inputs);
        let axes = AxisInfo::new(&func, &inputs, &ranges);
        let mut claims = Claims {
            func: &mut func,
            ranges: &ranges,
            axes: &axes,
            list: Vec::new(),
            ranged: 0,
            runs: 0,
        };
        let entry = claims.func.entry();
        claims.block(entry);
        ranged += claims.ranged;
        runs += claims.runs;
        naiad_ir::verify(&func).unwrap_or_else(|d| panic!("seed {seed}: {}", d.message));
        let mut out = vec![0x55u64; bytes * 3 / 8 + 1];
        let start = input.as_mut_ptr() as usize;
        let args = [
            Arg::Tensor(TensorArg {
                address: (start + INPUT / 4).next_multiple_of(8),
                storage: start..start + INPUT,
                view: None,
                writable: false,
            }),
            tensor(&mut out),
            int(13),
        ];
        match run(&Arc::new(func.clone()), [3, 1, 1], &args, &PLAIN) {
            Ok(_) => ran += 1,
            Err(d) if d.id == naiad_diag::Id::DeviceAssert => {
                panic!("seed {seed}: {}\n{text}\n{func}", said(&d));
            }
            Err(_) => {}
        }
    }
    assert!(ran as u64 > rounds / 2, "{ran} kernels ran");
    assert!(
        ranged as u64 > 20 * rounds && runs as u64 > 10 * rounds,
        "{ranged} ranges, {runs} runs"
    );
}
