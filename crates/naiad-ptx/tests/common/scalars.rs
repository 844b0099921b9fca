//! Every function of numbers and every conversion, with inputs that are hard to get right.

use naiad_diag::Loc;
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn, cast_bits};
use naiad_ir::thread::{Builder, Thread, ThreadOp, ThreadType, Vector};
use naiad_ir::tile::Constant;
use naiad_ir::{Function, Scalar, Value};

/// A function on numbers of certain types.
#[derive(Copy, Clone)]
pub struct Row {
    pub f: What,
    /// Of the operands.
    pub of: Scalar,
    pub result: Scalar,
}

#[derive(Copy, Clone)]
pub enum What {
    Unary(UnaryFn),
    Binary(BinaryFn),
    Ternary(TernaryFn),
    Compare(Predicate),
    Cast(Rounding),
}

/// All there are.
pub fn rows() -> Vec<Row> {
    let mut out = Vec::new();
    let mut push = |f, of, result| out.push(Row { f, of, result });
    for &of in Scalar::ALL {
        if of.compute_type() == of {
            for &f in UnaryFn::ALL.iter().filter(|f| f.accepts(of)) {
                push(What::Unary(f), of, of);
            }
            for &f in BinaryFn::ALL.iter().filter(|f| f.accepts(of)) {
                push(What::Binary(f), of, of);
            }
            for &f in TernaryFn::ALL.iter().filter(|f| f.accepts(of)) {
                push(What::Ternary(f), of, of);
            }
            for &p in Predicate::ALL {
                push(What::Compare(p), of, Scalar::I1);
            }
        }
        for &to in Scalar::ALL {
            let roundings = if of.is_float() && to.is_float() { 2 } else { 1 };
            for &rounding in &Rounding::ALL[..roundings] {
                push(What::Cast(rounding), of, to);
            }
        }
    }
    out
}

impl Row {
    pub fn name(&self) -> String {
        let of = self.of;
        match self.f {
            What::Unary(f) => format!("{f}_{of}"),
            What::Binary(f) => format!("{f}_{of}"),
            What::Ternary(f) => format!("{f}_{of}"),
            What::Compare(p) => format!("is_{p}_{of}"),
            What::Cast(r) => format!("cast_{of}_{}_{}", self.result, r.name()),
        }
    }

    pub fn arity(&self) -> usize {
        match self.f {
            What::Unary(_) | What::Cast(_) => 1,
            What::Binary(_) | What::Compare(_) => 2,
            What::Ternary(_) => 3,
        }
    }

    /// The image of the result, by the executors' own functions.
    pub fn eval(&self, x: &[u64]) -> u64 {
        let result = match self.f {
            What::Unary(f) => f.eval(self.of, x[0]),
            What::Binary(f) => f.eval(self.of, x[0], x[1]),
            What::Ternary(f) => f.eval(self.of, x[0], x[1], x[2]),
            What::Compare(p) => p.eval(self.of, x[0], x[1]).map(u64::from),
            What::Cast(rounding) => Some(cast_bits(self.of, self.result, rounding, x[0])),
        };
        result.expect("a function of this type")
    }

    /// Whether these are the same result: the payload and the sign of a NaN may differ.
    pub fn agrees(&self, got: u64, want: u64) -> bool {
        let is_nan = |image| {
            let wide = cast_bits(self.result, Scalar::F64, Rounding::Nearest, image);
            self.result.is_float() && f64::from_bits(wide).is_nan()
        };
        got == want || is_nan(got) && is_nan(want)
    }

    pub fn op(&self, x: &[Value]) -> ThreadOp {
        match self.f {
            What::Unary(f) => ThreadOp::Unary { f, x: x[0] },
            What::Binary(f) => ThreadOp::Binary { f, a: x[0], b: x[1] },
            What::Ternary(f) => ThreadOp::Ternary { f, a: x[0], b: x[1], c: x[2] },
            What::Compare(p) => ThreadOp::Compare { p, a: x[0], b: x[1] },
            What::Cast(rounding) => ThreadOp::Cast { src: x[0], to: self.result, rounding },
        }
    }

    /// Inputs, one after the other for each operand.
    pub fn inputs(&self) -> Vec<Vec<u64>> {
        let all = images(self.of);
        // Pairs and triples of as many as keep the test short.
        let some = |most: usize| -> Vec<u64> {
            let step = all.len().div_ceil(most).max(1);
            let top = 1 << (self.of.bits() - 1);
            let ends = [0, 1, top, top - 1, self.of.mask()];
            all.iter().copied().step_by(step).chain(ends).collect()
        };
        match self.arity() {
            1 => all.into_iter().map(|x| vec![x]).collect(),
            2 => {
                let (a, b) = (some(40), some(40));
                a.iter().flat_map(|&x| b.iter().map(move |&y| vec![x, y])).collect()
            }
            _ => {
                let a = some(12);
                let pairs = a.iter().flat_map(|&x| a.iter().map(move |&y| (x, y)));
                pairs.flat_map(|(x, y)| a.iter().map(move |&z| vec![x, y, z])).collect()
            }
        }
    }
}

/// Images of a type: all of 8 bits, of more those at its ends and at those of other types.
pub fn images(of: Scalar) -> Vec<u64> {
    if of.bits() <= 8 {
        return (0..1 << of.bits()).collect();
    }
    let mut out = Vec::new();
    if of.is_int() {
        for bits in [0, 1, 2, 4, 7, 8, 15, 16, 24, 31, 32, 53, 54, 62, 63] {
            for near in [-1i64, 0, 1] {
                let x = (1i64 << bits).wrapping_add(near);
                out.extend([x as u64, x.wrapping_neg() as u64]);
            }
        }
        out.extend([3, 5, 100, 1000, 0x1234_5678_9abc_def1, 0xfedc_ba98_7654_3210, u64::MAX << 10]);
        out.extend((0..40).map(mixed));
    } else {
        let numbers = [
            0.0,
            0.1,
            0.25,
            0.5,
            0.75,
            1.0,
            1.1,
            1.5,
            2.0,
            2.5,
            3.0,
            3.5,
            7.25,
            10.0,
            100.0,
            127.5,
            128.0,
            129.0,
            240.0,
            255.5,
            256.0,
            300.0,
            447.0,
            448.0,
            456.0,
            464.0,
            465.0,
            480.0,
            1e3,
            32767.5,
            32768.0,
            40000.0,
            57344.0,
            61440.0,
            61441.0,
            65504.0,
            65519.0,
            65520.0,
            65535.5,
            65536.0,
            1e6,
            8388607.5,
            8388608.5,
            16777217.0,
            2147483520.0,
            2147483647.0,
            2147483648.0,
            4294967295.0,
            4294967296.0,
            1e10,
            4503599627370497.5,
            9223372036854774784.0,
            9223372036854775808.0,
            18446744073709549568.0,
            18446744073709551616.0,
            1e25,
            3.4028235e38,
            3.5e38,
            1e300,
            1e-2,
            1e-4,
            6e-5,
            3e-5,
            6e-8,
            2.9e-8,
            3e-8,
            1e-10,
            1.2e-38,
            1.1e-38,
            1e-40,
            1.4e-45,
            7e-46,
            1e-310,
            5e-324,
            0.0009765625,
            0.001953125,
            0.00146484375,
            0.0078125,
            0.015625,
            3.3895314e38,
            f64::INFINITY,
            f64::NAN,
            std::f64::consts::PI,
            std::f64::consts::E,
            0.7,
        ];
        for x in numbers.into_iter().flat_map(|x| [x, -x]) {
            out.push(cast_bits(Scalar::F64, of, Rounding::Nearest, x.to_bits()));
        }
        let (top, one) = (1u64 << (of.bits() - 1), out[10]);
        // A signalling NaN, and neighbours of 1.
        let quiet = cast_bits(Scalar::F64, of, Rounding::Nearest, f64::INFINITY.to_bits()) | 1;
        out.extend([quiet, top | quiet, 1, top | 1, one + 1, one - 1]);
        out.extend((0..60).map(mixed));
        // Halves between neighbours of narrower types: all the upper bits there are, and a tie below.
        if of == Scalar::F32 {
            out.extend((0..1 << 11).map(|i| (i << 20 | 1 << 19) as u64));
            out.extend((0..1 << 10).map(|i| (i << 21 | 1 << 15) as u64));
            out.extend((0..200).map(|i| (mixed(i) & 0xffff_e000) | 1 << 12));
        }
    }
    let mut out: Vec<u64> = out.into_iter().map(|x| x & of.mask()).collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// The finalizer of SplitMix64: a random-looking image of a counter.
fn mixed(index: u64) -> u64 {
    let z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The type as which a straight function stores a result: bytes are extended, so that it is seen in
/// what form they are held.
pub fn stored(row: &Row) -> Scalar {
    match row.result {
        Scalar::I8 => Scalar::I32,
        of if of.bits() == 8 => Scalar::U32,
        of => of,
    }
}

/// The row on `lanes` lanes of scalar parameters, operand by operand; each lane is stored, 8 bytes
/// behind the last, at the address that is the last parameter.
pub fn straight(row: &Row, lanes: u32) -> Function<Thread> {
    let mut b = Builder::new(&row.name());
    b.loc = Loc::NONE;
    let count = row.arity() as u32 * lanes;
    let params: Vec<Value> = (0..count)
        .map(|i| b.func.add_param(format!("x{i}"), Vector::scalar(row.of).into()))
        .collect();
    let out = b.func.add_param("out", ThreadType::ADDR);
    let operands: Vec<Value> = params.chunks(lanes as usize).map(|x| packed(&mut b, x)).collect();
    let result = b.op(row.op(&operands));
    for i in 0..lanes {
        let mut lane = b.extract(result, i);
        if row.result.is_fp8() {
            lane = b.bitcast(lane, Scalar::U8);
        }
        let lane = b.cast(lane, stored(row), Rounding::Nearest);
        b.store(out, 8 * i64::from(i), lane);
    }
    b.run(ThreadOp::Return {});
    naiad_ir::verify(&b.func).expect("verified");
    b.func
}

fn packed(b: &mut Builder, x: &[Value]) -> Value {
    match x {
        &[one] => one,
        all => b.op(ThreadOp::Pack { lanes: all.to_vec() }),
    }
}

/// The row on arrays: the addresses of its operands' and of its results', and their length, an i32. A
/// thread is for one element; each goes through memory as its type does.
pub fn over_arrays(row: &Row) -> Function<Thread> {
    let mut b = Builder::new(&row.name());
    let arrays: Vec<Value> =
        (0..row.arity()).map(|i| b.func.add_param(format!("x{i}"), ThreadType::ADDR)).collect();
    let out = b.func.add_param("out", ThreadType::ADDR);
    let length = b.func.add_param("length", ThreadType::I32);
    let (thread, block) = (b.op(ThreadOp::ThreadId {}), b.op(ThreadOp::BlockId { axis: 0 }));
    let threads = b.constant(Constant::int(Scalar::I32, THREADS.into()), 1);
    let first = b.binary(BinaryFn::Mul, block, threads);
    let index = b.binary(BinaryFn::Add, first, thread);
    let inside = b.compare(Predicate::Lt, index, length);
    b.if_else(
        inside,
        |b| {
            let index = b.cast(index, Scalar::I64, Rounding::Nearest);
            let at = |b: &mut Builder, array, of: Scalar| {
                let size = b.i64(of.size() as i64);
                let offset = b.mul(index, size);
                b.addr_add(array, offset)
            };
            let mut operands = Vec::new();
            for &array in &arrays {
                let at = at(b, array, row.of);
                operands.push(b.load(at, 0, Vector::scalar(row.of)));
            }
            let result = b.op(row.op(&operands));
            let at = at(b, out, row.result);
            b.store(at, 0, result);
            Vec::new()
        },
        |_| Vec::new(),
    );
    b.run(ThreadOp::Return {});
    naiad_ir::verify(&b.func).expect("verified");
    b.func
}

/// Threads of a block of [`over_arrays`].
pub const THREADS: u32 = 128;
