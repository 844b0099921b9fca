//! Random kernels for tests that compare two ways to run one.
//!
//! A kernel is a line of ops on values made so far, which at its end stores them all; a few of the ops
//! are loops and branches with lines of their own. The generator is seeded, so that a failure can name
//! a seed and print its kernel. Each value is stored at an offset of its own in the program's part of
//! the output, so that what differs can be told.

#![allow(dead_code, reason = "each test file uses a part")]

#[path = "nested.rs"]
mod nested;
#[path = "whole.rs"]
mod whole;

use naiad_ir::Scalar;
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn, cast_bits};
use std::fmt::Write;

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

#[derive(Clone)]
struct Val {
    name: String,
    elem: Scalar,
    dims: Vec<usize>,
}

struct Generator {
    random: Random,
    text: String,
    values: Vec<Val>,
    count: usize,
    /// Regions around the place where ops are made.
    depth: usize,
    kind: Kind,
}

/// What kernels a test asks for.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Kind {
    /// All that there are.
    All,
    /// Those whose values do not depend on the order in which lanes are combined, which is the
    /// executor's.
    Exact,
}

const TYPES: &[Scalar] = &[
    Scalar::I1,
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I32,
    Scalar::I32,
    Scalar::I64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
    Scalar::F8E5,
    Scalar::F8E4NV,
    Scalar::F8E4B15,
    Scalar::F8E5B16,
    Scalar::F8E4B8,
    Scalar::F16,
    Scalar::BF16,
    Scalar::F32,
    Scalar::F32,
    Scalar::F64,
];

/// Bytes that a kernel may read.
pub const INPUT: usize = 1 << 16;

pub fn ty(elem: &str, dims: &[usize]) -> String {
    if dims.is_empty() {
        return elem.to_string();
    }
    let dims: String = dims.iter().map(|d| format!("{d}x")).collect();
    format!("<{dims}{elem}>")
}

fn shape(dims: &[usize]) -> String {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    format!("({})", dims.join(","))
}

fn numel(dims: &[usize]) -> usize {
    dims.iter().product()
}

impl Generator {
    fn line(&mut self, op: &str, elem: Scalar, dims: &[usize]) -> Val {
        let name = self.raw(op, elem.name(), dims);
        let v = Val { name, elem, dims: dims.to_vec() };
        self.values.push(v.clone());
        v
    }

    fn raw(&mut self, op: &str, elem: &str, dims: &[usize]) -> String {
        let name = format!("%v{}", self.count);
        self.count += 1;
        let _ = writeln!(self.text, "  {name} = {op} : {}", ty(elem, dims));
        name
    }

    fn any(&mut self) -> Val {
        // Later values are used more, so that chains grow.
        let n = self.values.len();
        let i = if self.random.below(2) == 0 {
            n - 1 - self.random.below(n.min(6))
        } else {
            self.random.below(n)
        };
        self.values[i].clone()
    }

    fn constant(&mut self, elem: Scalar) -> String {
        let bits = match self.random.below(4) {
            0 => self.random.next(),
            _ if elem.is_float() => {
                let x = self.random.pick(&[0.0, -0.0, 1.0, -1.5, 0.1, 7.25, -300.0]);
                cast_bits(Scalar::F64, elem, Rounding::Nearest, f64::to_bits(x))
            }
            1 => elem.mask() >> self.random.below(3) as u32,
            2 => (elem.mask() >> 1) - self.random.below(40) as u64 % (elem.mask() / 2 + 1),
            _ => self.random.pick(&[0u64, 1, 2, 3, 5, 8, 16, 100, u64::MAX, u64::MAX - 1]),
        } & elem.mask();
        if elem.is_float() {
            return format!("0x{bits:x}:{elem}");
        }
        let unused = 64 - elem.bits();
        if elem.is_signed() {
            format!("{}:{elem}", (bits << unused) as i64 >> unused)
        } else {
            format!("{bits}:{elem}")
        }
    }

    /// A value of this type, converted from another where need be.
    fn typed(&mut self, elem: Scalar, dims: &[usize]) -> Val {
        let have: Vec<Val> =
            self.values.iter().filter(|v| v.elem == elem && v.dims == dims).cloned().collect();
        if !have.is_empty() && self.random.below(4) > 0 {
            return self.random.pick(&have.iter().collect::<Vec<_>>()).clone();
        }
        let same: Vec<Val> = self.values.iter().filter(|v| v.dims == dims).cloned().collect();
        if !same.is_empty() && self.random.below(3) > 0 {
            let v = self.random.pick(&same.iter().collect::<Vec<_>>()).clone();
            if v.elem == elem {
                return v;
            }
            return self.line(&format!("cast {} to={elem}", v.name), elem, dims);
        }
        let c = self.constant(elem);
        let c = self.line(&format!("const value={c}"), elem, &[]);
        if dims.is_empty() {
            c
        } else {
            self.line(&format!("splat {} shape={}", c.name, shape(dims)), elem, dims)
        }
    }

    fn op(&mut self) {
        let v = self.any();
        let Val { name, elem, dims } = v.clone();
        let rank = dims.len();
        match self.random.below(34) {
            0 => {
                let n = self.random.pick(&[1, 2, 8, 16, 64]);
                let start = self.random.pick(&[0, 0, 3, 100]);
                let mut v = self.line(
                    &format!("arange start={start} end={}", start + n),
                    Scalar::I32,
                    &[n],
                );
                // Formulas that come near the limits of their type, or pass them.
                let ints: Vec<Scalar> =
                    TYPES.iter().copied().filter(|t| t.is_int() && !t.is_bool()).collect();
                let ty = self.random.pick(&ints);
                if ty != v.elem {
                    v = self.line(&format!("cast {} to={ty}", v.name), ty, &[n]);
                }
                for _ in 0..self.random.below(3) {
                    let w = self.constant(ty);
                    let w = self.line(&format!("const value={w}"), ty, &[]);
                    let w = self.line(&format!("splat {} shape=({n},)", w.name), ty, &[n]);
                    let f = self.random.pick(&["add", "sub", "mul"]);
                    v = self.line(&format!("binary.{f} {}, {}", v.name, w.name), ty, &[n]);
                }
            }
            1 => {
                let what = self.random.pick(&["program_id", "num_programs"]);
                let axis = self.random.pick(&[0, 0, 1, 2]);
                self.line(&format!("{what} axis={axis}"), Scalar::I32, &[]);
            }
            2 if numel(&dims) <= 256 => {
                let axis = self.random.below(rank + 1);
                let mut to = dims;
                to.insert(axis, 1);
                self.line(&format!("expand_dims {name} axis={axis}"), elem, &to);
            }
            3 => {
                let to: Vec<usize> = dims
                    .iter()
                    .map(|&d| {
                        if d == 1 && numel(&dims) <= 256 {
                            self.random.pick(&[1, 4, 16])
                        } else {
                            d
                        }
                    })
                    .collect();
                if rank > 0 && numel(&to) <= 4096 {
                    self.line(&format!("broadcast {name} shape={}", shape(&to)), elem, &to);
                }
            }
            4 => {
                let n = numel(&dims);
                let a = 1 << self.random.below(n.trailing_zeros() as usize + 1);
                let b = 1 << self.random.below((n / a).trailing_zeros() as usize + 1);
                let all = [vec![n], vec![a, n / a], vec![a, b, n / a / b], vec![1, n], vec![n, 1]];
                let to = all[self.random.below(5)].clone();
                self.line(&format!("reshape {name} shape={}", shape(&to)), elem, &to);
            }
            5 if rank > 1 => {
                let mut order: Vec<usize> = (0..rank).collect();
                for i in (1..rank).rev() {
                    order.swap(i, self.random.below(i + 1));
                }
                let to: Vec<usize> = order.iter().map(|&i| dims[i]).collect();
                self.line(&format!("permute {name} order={}", shape(&order)), elem, &to);
            }
            6 if numel(&dims) <= 1024 => {
                let w = self.typed(elem, &dims);
                let mut to = dims;
                to.push(2);
                self.line(&format!("join {name}, {}", w.name), elem, &to);
            }
            7 if dims.last() == Some(&2) => {
                let to = &dims[..rank - 1];
                let (a, b) = (format!("%v{}", self.count), format!("%v{}", self.count + 1));
                self.count += 2;
                let t = ty(elem.name(), to);
                let _ = writeln!(self.text, "  {a}, {b} = split {name} : {t}, {t}");
                for name in [a, b] {
                    self.values.push(Val { name, elem, dims: to.to_vec() });
                }
            }
            8 if rank > 0 && numel(&dims) <= 1024 => {
                let w = self.typed(elem, &dims);
                let axis = self.random.below(rank);
                let mut to = dims;
                to[axis] *= 2;
                self.line(&format!("cat {name}, {} axis={axis}", w.name), elem, &to);
            }
            9 | 10 => {
                let f = self.random.pick(UnaryFn::ALL);
                if f.accepts(elem) {
                    self.line(&format!("unary.{} {name}", f.name()), elem, &dims);
                }
            }
            11..=14 => {
                let f = self.random.pick(BinaryFn::ALL);
                if f.accepts(elem) {
                    let w = self.typed(elem, &dims);
                    self.line(&format!("binary.{} {name}, {}", f.name(), w.name), elem, &dims);
                }
            }
            15 => {
                let f = self.random.pick(TernaryFn::ALL);
                if f.accepts(elem) {
                    let (w, x) = (self.typed(elem, &dims), self.typed(elem, &dims));
                    self.line(
                        &format!("ternary.{} {name}, {}, {}", f.name(), w.name, x.name),
                        elem,
                        &dims,
                    );
                }
            }
            16 | 17 => {
                let p = self.random.pick(Predicate::ALL);
                let w = self.typed(elem, &dims);
                self.line(&format!("compare.{} {name}, {}", p.name(), w.name), Scalar::I1, &dims);
            }
            18 => {
                let (c, w) = (self.typed(Scalar::I1, &dims), self.typed(elem, &dims));
                self.line(&format!("select {}, {name}, {}", c.name, w.name), elem, &dims);
            }
            19 => {
                let to = self.random.pick(TYPES);
                let rounding = if self.random.below(5) == 0 { " rounding=rtz" } else { "" };
                self.line(&format!("cast {name} to={to}{rounding}"), to, &dims);
            }
            20 if elem.is_int() && !elem.is_bool() => {
                // Not from floats: the payloads of their NaN are nobody's promise.
                let same: Vec<Scalar> =
                    TYPES.iter().copied().filter(|t| t.bits() == elem.bits()).collect();
                let to = self.random.pick(&same);
                self.line(&format!("bitcast {name} to={to}"), to, &dims);
            }
            21 => self.load(&v),
            22 if rank > 0 => self.combine(&v),
            23 => self.dot(&v),
            24 if rank > 0 => {
                let axis = self.random.below(rank);
                self.line(&format!("flip {name} axis={axis}"), elem, &dims);
            }
            25 if rank > 0 => {
                let descending = self.random.below(2) == 0;
                let last = dims[rank - 1];
                let mut name = name;
                if elem.is_float() && self.kind == Kind::Exact {
                    // Zeros of either sign are equal, and either may come first.
                    let zero = self.raw(&format!("const value=0:{elem}"), elem.name(), &[]);
                    let zeros = format!("splat {zero} shape={}", shape(&dims));
                    let zeros = self.raw(&zeros, elem.name(), &dims);
                    name = self.line(&format!("binary.add {name}, {zeros}"), elem, &dims).name;
                }
                let k = 1 << self.random.below(last.trailing_zeros() as usize + 1);
                let mut to = dims;
                if self.random.below(2) == 0 {
                    self.line(&format!("sort {name} descending={descending}"), elem, &to);
                } else {
                    to[rank - 1] = k;
                    self.line(&format!("topk {name} k={k} descending={descending}"), elem, &to);
                }
            }
            26 if rank > 0 => {
                let axis = self.random.below(rank);
                let index = self.random.pick(&[Scalar::I32, Scalar::U8, Scalar::I64, Scalar::U32]);
                let mut to = dims;
                to[axis] = self.random.pick(&[1, 2, to[axis], 16]);
                if numel(&to) <= 4096 {
                    let at = self.typed(index, &to);
                    self.line(&format!("gather {name}, {} axis={axis}", at.name), elem, &to);
                }
            }
            27 if rank == 1 && elem.is_int() => {
                let bins = self.random.pick(&[1, 4, 64]);
                let mask = match self.random.below(2) {
                    0 => String::new(),
                    _ => format!(" mask={}", self.typed(Scalar::I1, &dims).name),
                };
                self.line(&format!("histogram {name}{mask} bins={bins}"), Scalar::I32, &[bins]);
            }
            28 => self.map(&v),
            30 | 31 => self.control(),
            32 => self.shift_in_place(),
            33 => self.promise(&v),
            29 if elem.is_int() && elem.size() <= 4 => {
                let pack = if numel(&dims) >= 4 { 4 / elem.size() } else { 1 };
                let w = self.typed(elem, &dims);
                self.line(
                    &format!(
                        "inline_asm args=[{name}, {}] text=\"prmt.b32 $0, $1, $2, 0x6240;\" constraints=\"=r,r,r\" shape={} results=({elem}) is_pure=true pack={pack}",
                        w.name,
                        shape(&dims)
                    ),
                    elem,
                    &dims,
                );
            }
            _ => {}
        }
    }

    /// What holds anyway, told to the compiler.
    fn promise(&mut self, v: &Val) {
        if self.random.below(2) == 0 && v.elem.is_int() && !v.elem.is_bool() && !v.dims.is_empty() {
            let kind = self.random.pick(&["multiple_of", "max_contiguous", "max_constancy"]);
            let ones = shape(&vec![1; v.dims.len()]);
            self.line(&format!("hint.{kind} {} values={ones}", v.name), v.elem, &v.dims);
            return;
        }
        // The number is 13, and there are three programs.
        let (what, predicate, bound) = self.random.pick(&[
            ("%n", "le", 13),
            ("%n", "lt", 100),
            ("%n", "ge", 13),
            ("%n", "gt", 0),
            ("%n", "ne", 1),
            ("%pid", "lt", 3),
            ("%pid", "ge", 0),
            ("%few", "le", 3),
        ]);
        let bound = self.raw(&format!("const value={bound}:i32"), "i32", &[]);
        let holds = self.raw(&format!("compare.{predicate} {what}, {bound}"), "i1", &[]);
        let _ = writeln!(self.text, "  assume {holds}");
    }

    /// A load of integers whose addresses come from a value, brought into range.
    fn load(&mut self, v: &Val) {
        if !v.elem.is_int() || v.elem.is_bool() {
            return;
        }
        let dims = v.dims.clone();
        let elem = self.random.pick(&[
            Scalar::I32,
            Scalar::F32,
            Scalar::I8,
            Scalar::F16,
            Scalar::I1,
            Scalar::I64,
            Scalar::I16,
            Scalar::U8,
            Scalar::U16,
            Scalar::U64,
            Scalar::BF16,
            Scalar::F64,
            Scalar::F8E5,
        ]);
        let limit = (INPUT / 2 / elem.size()) as i64;
        // Where no clamp changes a lane, a formula stays a formula: both kinds of access are met.
        let limit = limit.min(v.elem.int_max().min(1 << 40) as i64);
        let mut index = v.name.clone();
        if self.random.below(3) > 0 {
            let bound = |g: &mut Generator, x: i64| {
                let c = g.line(&format!("const value={x}:{}", v.elem), v.elem, &[]);
                if dims.is_empty() {
                    c.name
                } else {
                    g.line(&format!("splat {} shape={}", c.name, shape(&dims)), v.elem, &dims).name
                }
            };
            let lo = bound(self, if v.elem.is_signed() { -limit.min(100) } else { 0 });
            let hi = bound(self, limit - 1);
            index = self.line(&format!("ternary.clamp {index}, {lo}, {hi}"), v.elem, &dims).name;
        }
        let p = self.raw(&format!("bitcast %in to=*{elem}"), &format!("*{elem}"), &[]);
        let elem_text = format!("*{elem}");
        let p = if dims.is_empty() {
            p
        } else {
            self.raw(&format!("splat {p} shape={}", shape(&dims)), &elem_text, &dims)
        };
        let p = self.raw(&format!("ptr_add {p}, {index}"), &elem_text, &dims);
        let mask = self.typed(Scalar::I1, &dims).name;
        // Where a lane is out of bounds both runs must fail alike.
        let other = self.typed(elem, &dims).name;
        let rest = match self.random.below(5) {
            0 => String::new(),
            4 => {
                self.line(&format!("atomic_load {p} mask={mask}"), elem, &dims);
                return;
            }
            1 => format!(" mask={mask}"),
            _ => format!(" mask={mask} other={other}"),
        };
        let hints = ["", "", "", " hints=.cg", " hints=evict_first", " hints=volatile"];
        let hints = self.random.pick(&hints);
        self.line(&format!("load {p}{rest}{hints}"), elem, &dims);
    }

    /// Stores a value at a byte offset of the output, each program's apart.
    fn store(&mut self, v: &Val, at: usize) {
        let elem = format!("*{}", v.elem);
        let at = self.raw(&format!("const value={at}:i32"), "i32", &[]);
        let at = self.raw(&format!("binary.add {at}, %base"), "i32", &[]);
        let p = self.raw(&format!("ptr_add %out, {at}"), "*i8", &[]);
        let mut p = self.raw(&format!("bitcast {p} to={elem}"), &elem, &[]);
        if !v.dims.is_empty() {
            let n = numel(&v.dims);
            let i = self.raw(&format!("arange start=0 end={n}"), "i32", &[n]);
            let i = self.raw(&format!("reshape {i} shape={}", shape(&v.dims)), "i32", &v.dims);
            p = self.raw(&format!("splat {p} shape={}", shape(&v.dims)), &elem, &v.dims);
            p = self.raw(&format!("ptr_add {p}, {i}"), &elem, &v.dims);
        }
        let mask = if self.random.below(3) == 0 {
            format!(" mask={}", self.typed(Scalar::I1, &v.dims).name)
        } else {
            String::new()
        };
        let _ = writeln!(self.text, "  store {p}, {}{mask}", v.name);
    }
}

/// A kernel, the values that it stores with their offsets, and the bytes that one program writes.
pub fn generate(seed: u64, kind: Kind) -> (String, Vec<(Scalar, usize, usize)>, usize) {
    let mut g = Generator {
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        text: String::new(),
        values: Vec::new(),
        count: 0,
        depth: 0,
        kind,
    };
    g.line("program_id axis=0", Scalar::I32, &[]);
    g.line("arange start=0 end=16", Scalar::I32, &[16]);
    let n = Val { name: "%n".to_string(), elem: Scalar::I32, dims: vec![] };
    g.values.push(n);
    for _ in 0..10 + g.random.below(40) {
        g.op();
    }
    let body = g.text.clone();
    g.text.clear();
    let values = g.values.clone();
    let mut stored = vec![(Scalar::I32, 0, nested::SCRATCH / 4)];
    let mut at = nested::SCRATCH;
    for v in &values {
        g.store(v, at);
        stored.push((v.elem, at, numel(&v.dims)));
        at += (numel(&v.dims) * v.elem.size()).next_multiple_of(8);
    }
    let text = format!(
        "tile @random(%in in: *i8, %out out: *i8, %n n: i32) {{\n  %one = const value={at}:i32 : i32\n  %pid = program_id axis=0 : i32\n  %base = binary.mul %one, %pid : i32\n  %few = unary.popc %n : i32\n{body}{}  return\n}}",
        g.text
    );
    (text, stored, at)
}

/// The bit images of `n` elements.
pub fn images(out: &[u8], elem: Scalar, n: usize) -> Vec<u64> {
    let image = |bytes: &[u8]| {
        let mut all = [0u8; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        let image = u64::from_le_bytes(all);
        // Any NaN is as good as another.
        let wide = f64::from_bits(cast_bits(elem, Scalar::F64, Rounding::Nearest, image));
        if elem.is_float() && wide.is_nan() { u64::MAX } else { image }
    };
    out.chunks(elem.size()).take(n).map(image).collect()
}
