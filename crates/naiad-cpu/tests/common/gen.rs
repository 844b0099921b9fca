//! Random kernels about memory: which tiles are read and written where, in which order, under which
//! masks.
//!
//! A kernel gets pointers, some of which reach the same memory, and numbers. Its addresses and masks are
//! mostly such as kernels have, made of rows and columns, and now and then anything. Numbers are small
//! where the order of combination would be seen in the result.

#[path = "gen_index.rs"]
mod index;
#[path = "gen_ops.rs"]
mod ops;
#[path = "gen_product.rs"]
mod product;
#[path = "gen_stream.rs"]
mod stream;

use super::generator::Random;
use super::trial::{Contents, Kernel, Memory, Pointer};
use naiad_ir::Scalar;
use std::fmt::Write;

#[derive(Clone)]
struct Val {
    name: String,
    elem: Scalar,
    dims: Vec<usize>,
}

/// Indices of elements.
#[derive(Clone)]
struct Index {
    v: Val,
    /// No two lanes are the same element.
    apart: bool,
}

/// A tile of addresses.
#[derive(Clone)]
struct Place {
    name: String,
    elem: Scalar,
    dims: Vec<usize>,
    pointer: usize,
    apart: bool,
}

/// What addresses are for. Which of several lanes of a store remains, if they meet in one element, is not
/// defined, so those of a store lie apart.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Use {
    Read,
    Store,
    Atomic,
}

/// A pointer as the kernel has it.
#[derive(Clone)]
struct Base {
    name: String,
    elem: Scalar,
    pointer: usize,
    written: bool,
    /// Nobody writes the memory, so that its numbers stay small.
    still: bool,
}

struct Gen {
    r: Random,
    text: String,
    count: usize,
    depth: usize,
    bases: Vec<Base>,
    values: Vec<Val>,
    masks: Vec<Val>,
    indices: Vec<Index>,
    places: Vec<Place>,
    /// Loads, as their op is written.
    loads: Vec<(String, Val)>,
    /// Extents that this kernel's tiles have.
    extents: Vec<usize>,
    /// Programs run at once: each writes its own part, and nothing goes wrong.
    parallel: bool,
    /// An atomic or a volatile load stands in a loop, where programs may take turns.
    polls: bool,
}

/// Elements before and behind an argument's element 0.
const BEFORE: usize = 512;
const BEHIND: usize = 2048;
/// Elements of a program's own part, if programs run at once.
const PART: usize = 1024;
/// Greatest number of elements of a tile.
const LARGEST: usize = 1024;

const DATA: &[Scalar] = &[
    Scalar::I32,
    Scalar::I32,
    Scalar::F32,
    Scalar::F32,
    Scalar::F16,
    Scalar::BF16,
    Scalar::I8,
    Scalar::I16,
    Scalar::I64,
    Scalar::F64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
];

pub fn generate(seed: u64) -> Kernel {
    let mut r = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..4 {
        r.next();
    }
    let parallel = r.below(8) == 0;
    let programs = match parallel {
        true => r.pick(&[2, 7, 7, 1000]),
        false => r.pick(&[1, 1, 3]),
    };
    let (mut memories, mut pointers) = arguments(&mut r, parallel, programs);
    let numbers = [
        r.pick(&[0, 1, 3, 5, 7, 8, 16, 20, 33, 64, 100, -1]),
        r.pick(&[1, 1, 1, 0, -1, 2, 3, 16]),
        r.pick(&[0, 1, 2, 2, 4]),
        r.pick(&[0, 1, 17, 300, -20, (1 << 31) - 3, 1 << 32, -(1 << 31), i64::MAX - 2]),
        r.pick(&[0, 1]),
    ];
    let extents: Vec<usize> =
        (0..1 + r.below(3)).map(|_| r.pick(&[1, 2, 4, 8, 16, 16, 32, 64, 128, 256])).collect();
    let mut g = Gen {
        r,
        text: String::new(),
        count: 0,
        depth: 0,
        bases: Vec::new(),
        values: Vec::new(),
        masks: Vec::new(),
        indices: Vec::new(),
        places: Vec::new(),
        loads: Vec::new(),
        extents,
        parallel,
        polls: false,
    };
    let number = g.start(&pointers);
    let statements = 3 + g.r.below(14);
    let waits = (parallel && g.r.below(2) == 0).then(|| g.r.below(statements));
    for i in 0..statements {
        if waits == Some(i) {
            g.wait(&number, &format!("%p{}", pointers.len()), programs);
        }
        g.statement();
    }
    if waits.is_some() {
        // By it programs wait for one another.
        let (memory, elem, bytes) = (memories.len(), Scalar::I32, 4 * (programs + 1));
        memories.push(Memory { bytes, elem, at_first: Contents::Byte(0) });
        pointers.push(Pointer { elem, memory, offset: 0, writable: true });
    }
    // Whatever is left is seen.
    for _ in 0..1 + g.r.below(3) {
        g.store();
    }
    let mut text = String::from("tile @memory(");
    for (i, p) in pointers.iter().enumerate() {
        let _ = write!(text, "%p{i} p{i}: *{}, ", p.elem);
    }
    text += "%n n: i32, %s s: i32, %few few: i32, %w w: i64, %c c: i1) {\n";
    text += &g.text;
    text += "  return\n}";
    let grid = match g.r.below(4) {
        _ if g.polls && !parallel => [1, 1, 1],
        0 if programs == 3 => [1, 3, 1],
        1 if programs == 1000 => [10, 20, 5],
        _ => [programs as u32, 1, 1],
    };
    let threads = if parallel { 2 } else { 1 };
    // The first three are of 32 bits.
    let bits = |(i, &n): (usize, &i64)| if i < 3 { u64::from(n as u32) } else { n as u64 };
    let numbers = numbers.iter().enumerate().map(bits).collect();
    Kernel { text, grid, threads, memories, pointers, numbers, parts: Vec::new() }
}

/// Memories, and pointers to them: views that are shifted or shared, read-only ones, empty ones.
fn arguments(r: &mut Random, parallel: bool, programs: usize) -> (Vec<Memory>, Vec<Pointer>) {
    let mut memories: Vec<Memory> = Vec::new();
    let mut pointers: Vec<Pointer> = Vec::new();
    let parts = if parallel { programs * PART } else { 0 };
    for i in 0..2 + r.below(3) {
        let written = i % 2 == 0;
        let shared = (!parallel && i > 0 && r.below(3) == 0).then(|| r.below(memories.len()));
        let memory = match shared {
            Some(m) => m,
            None => {
                let elem = r.pick(DATA);
                let empty = r.below(30) == 0 && !parallel;
                let elements = if empty { 0 } else { BEFORE + BEHIND + parts };
                let bytes = elements * elem.size();
                memories.push(Memory { bytes, elem, at_first: Contents::Small });
                memories.len() - 1
            }
        };
        let Memory { bytes, elem, .. } = memories[memory];
        // Other integers of the same memory now and then; of floats any image would be a number.
        let elem = match elem.is_int() && shared.is_some() && r.below(4) == 0 {
            true => r.pick(&[Scalar::I8, Scalar::I16, Scalar::I32]),
            false => elem,
        };
        let shift = if shared.is_some() { r.pick(&[0, 0, 1, 1, 3, 16, 64]) } else { 0 };
        pointers.push(Pointer {
            elem,
            memory,
            offset: ((BEFORE + shift) * elem.size()).min(bytes),
            writable: written || r.below(4) > 0,
        });
    }
    (memories, pointers)
}

fn numel(dims: &[usize]) -> usize {
    dims.iter().product()
}

fn shape(dims: &[usize]) -> String {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    format!("({})", dims.join(","))
}

fn tile(elem: &str, dims: &[usize]) -> String {
    if dims.is_empty() {
        return elem.to_string();
    }
    let dims: String = dims.iter().map(|d| format!("{d}x")).collect();
    format!("<{dims}{elem}>")
}

impl Gen {
    /// An op with one result; gives its name.
    fn op(&mut self, op: &str, elem: &str, dims: &[usize]) -> String {
        let name = self.fresh();
        let _ = writeln!(self.text, "  {name} = {op} : {}", tile(elem, dims));
        name
    }

    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("%v{}", self.count - 1)
    }

    /// A constant; integers wrap.
    fn number(&mut self, value: i128, elem: Scalar) -> String {
        let unused = 64 - elem.bits();
        let bits = value as u64 & elem.mask();
        let value = match elem {
            e if e.is_float() => value,
            e if e.is_signed() => i128::from((bits << unused) as i64 >> unused),
            _ => i128::from(bits),
        };
        self.op(&format!("const value={value}:{elem}"), elem.name(), &[])
    }

    fn splat(&mut self, scalar: &str, elem: &str, dims: &[usize]) -> String {
        match dims {
            [] => scalar.to_string(),
            _ => self.op(&format!("splat {scalar} shape={}", shape(dims)), elem, dims),
        }
    }

    fn filled(&mut self, value: i128, elem: Scalar, dims: &[usize]) -> String {
        let c = self.number(value, elem);
        self.splat(&c, elem.name(), dims)
    }

    fn binary(&mut self, f: &str, a: &str, b: &str, elem: Scalar, dims: &[usize]) -> String {
        self.op(&format!("binary.{f} {a}, {b}"), elem.name(), dims)
    }

    /// Gives the program's number, where they run at once.
    fn start(&mut self, pointers: &[Pointer]) -> String {
        let pid = self.op("program_id axis=0", "i32", &[]);
        let number = if self.parallel { self.program(&pid) } else { String::new() };
        for (i, p) in pointers.iter().enumerate() {
            let written = i % 2 == 0;
            let mut name = format!("%p{i}");
            if written && self.parallel {
                let part = self.number(PART as i128, Scalar::I32);
                let at = self.binary("mul", &number, &part, Scalar::I32, &[]);
                name = self.op(&format!("ptr_add {name}, {at}"), &format!("*{}", p.elem), &[]);
            }
            let mut stores = pointers.iter().step_by(2);
            let still = stores.all(|q| q.memory != p.memory);
            self.bases.push(Base { name, elem: p.elem, pointer: i, written, still });
        }
        for name in [pid.as_str(), "%n", "%s"] {
            self.keep(name.to_string(), Scalar::I32, &[]);
        }
        self.masks.push(Val { name: "%c".to_string(), elem: Scalar::I1, dims: vec![] });
        number
    }

    /// All programs meet, or each waits for the one behind it. Each writes its own part, so nothing comes of it.
    fn wait(&mut self, number: &str, zeros: &str, programs: usize) {
        let (zero, one) = (self.number(0, Scalar::I32), self.number(1, Scalar::I32));
        let all = self.number(programs as i128, Scalar::I32);
        let next = self.binary("add", number, &one, Scalar::I32, &[]);
        let own = self.op(&format!("ptr_add {zeros}, {number}"), "*i32", &[]);
        let behind = self.op(&format!("ptr_add {zeros}, {next}"), "*i32", &[]);
        let others = self.op(&format!("compare.lt {next}, {all}"), "i1", &[]);
        let (now, less) = (self.fresh(), self.fresh());
        let meet = self.r.below(2) == 0;
        let set = format!(
            "  {} = atomic.add {}, {one} : i32\n",
            self.fresh(),
            if meet { zeros } else { &own }
        );
        if meet {
            self.text += &set;
        }
        let waits = self.fresh();
        let (ask, unset) = match meet {
            true => (
                zeros,
                format!(
                    "  {less} = compare.lt {now}, {all} : i1\n  {waits} = binary.and {less}, {less} : i1"
                ),
            ),
            false => (
                &*behind,
                format!(
                    "  {less} = compare.eq {now}, {zero} : i1\n  {waits} = binary.and {less}, {others} : i1"
                ),
            ),
        };
        let _ = writeln!(
            self.text,
            "  while {{\n  {now} = atomic.add {ask}, {zero} : i32\n{unset}\n  condition {waits}\n  }} {{\n  yield\n  }}"
        );
        if !meet {
            self.text += &set;
        }
    }

    /// The program's number in the whole grid.
    fn program(&mut self, x: &str) -> String {
        let nx = self.op("num_programs axis=0", "i32", &[]);
        let ny = self.op("num_programs axis=1", "i32", &[]);
        let y = self.op("program_id axis=1", "i32", &[]);
        let z = self.op("program_id axis=2", "i32", &[]);
        let z = self.binary("mul", &z, &ny, Scalar::I32, &[]);
        let y = self.binary("add", &y, &z, Scalar::I32, &[]);
        let y = self.binary("mul", &y, &nx, Scalar::I32, &[]);
        self.binary("add", x, &y, Scalar::I32, &[])
    }

    /// A shape of this kernel's extents.
    fn dims(&mut self) -> Vec<usize> {
        loop {
            let rank = self.r.pick(&[1, 1, 1, 2, 2, 2, 3]);
            let dims: Vec<usize> = (0..rank)
                .map(|_| match self.r.below(12) {
                    0 => 1,
                    _ => self.extents[self.r.below(self.extents.len())],
                })
                .collect();
            if numel(&dims) <= LARGEST {
                return dims;
            }
        }
    }

    /// A shape in which something was read or written before, mostly.
    fn used_dims(&mut self) -> Vec<usize> {
        let tiles: Vec<&Place> = self.places.iter().filter(|p| !p.dims.is_empty()).collect();
        match tiles.len() {
            0 => self.dims(),
            _ if self.r.below(4) == 0 => self.dims(),
            n => tiles[n - 1 - self.r.below(n.min(4))].dims.clone(),
        }
    }

    /// Of what was made before, mostly something late.
    fn late<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let n = all.len();
        (n > 0).then(|| all[n - 1 - self.r.below(n.min(4))].clone())
    }

    fn values_like(&self, f: impl Fn(&Val) -> bool) -> Vec<Val> {
        self.values.iter().filter(|v| f(v)).cloned().collect()
    }

    /// A value of a type, converted or repeated where there is none.
    fn typed(&mut self, elem: Scalar, dims: &[usize]) -> String {
        let same = self.values_like(|v| v.elem == elem && v.dims == dims);
        if !same.is_empty() && self.r.below(5) > 0 {
            return self.late(&same).map(|v| v.name).unwrap_or_default();
        }
        let other = self.values_like(|v| v.dims == dims && !v.elem.is_bool());
        if !other.is_empty() && self.r.below(4) > 0 {
            let v = other[self.r.below(other.len())].clone();
            return self.converted(&v, elem);
        }
        let first = &dims[..dims.len().min(1)];
        let rows = self.values_like(|v| v.dims == first && !v.elem.is_bool());
        if dims.len() > 1 && !rows.is_empty() && self.r.below(2) == 0 {
            let v = rows[self.r.below(rows.len())].clone();
            let name = self.converted(&v, elem);
            return self.along(&name, elem.name(), 0, dims);
        }
        if dims.len() == 1 && self.r.below(2) == 0 {
            let name = self.axis(dims[0], Scalar::I32);
            return self.converted(&Val { name, elem: Scalar::I32, dims: dims.to_vec() }, elem);
        }
        let c = self.r.pick(&[0, 1, -2, 5]);
        self.filled(c, elem, dims)
    }

    fn converted(&mut self, v: &Val, elem: Scalar) -> String {
        match v.elem == elem {
            true => v.name.clone(),
            false => self.op(&format!("cast {} to={elem}", v.name), elem.name(), &v.dims),
        }
    }

    fn keep(&mut self, name: String, elem: Scalar, dims: &[usize]) {
        self.values.push(Val { name, elem, dims: dims.to_vec() });
    }

    /// A mask as the text of an op has it; none now and then.
    fn masked(&mut self, dims: &[usize]) -> String {
        match self.r.below(3) {
            0 => String::new(),
            _ => format!(" mask={}", self.mask(dims)),
        }
    }

    /// Now and then what was loaded before.
    fn load(&mut self, dims: &[usize]) -> Val {
        let known: Vec<(String, Val)> =
            self.loads.iter().filter(|(_, v)| v.dims == dims).cloned().collect();
        if self.r.below(4) == 0
            && let Some((op, v)) = self.late(&known)
        {
            self.polls |= self.depth > 0 && op.ends_with("volatile");
            let name = self.op(&op, v.elem.name(), dims);
            self.keep(name.clone(), v.elem, dims);
            return Val { name, ..v };
        }
        let p = self.place(dims, Use::Read);
        let mut rest = self.masked(dims);
        if !rest.is_empty() && self.r.below(2) == 0 {
            let other = self.typed(p.elem, dims);
            let _ = write!(rest, " other={other}");
        }
        let hints = ["", "", "", "", " hints=.cg", " hints=evict_last", " hints=volatile"];
        let hints = self.r.pick(&hints);
        self.polls |= self.depth > 0 && hints.ends_with("volatile");
        let op = format!("load {}{rest}{hints}", p.name);
        let name = self.op(&op, p.elem.name(), dims);
        self.keep(name.clone(), p.elem, dims);
        let loaded = Val { name, elem: p.elem, dims: dims.to_vec() };
        self.loads.push((op, loaded.clone()));
        loaded
    }

    fn store(&mut self) {
        let dims = if self.r.below(10) == 0 { Vec::new() } else { self.used_dims() };
        let p = self.place(&dims, Use::Store);
        let value = self.typed(p.elem, &dims);
        let mask = self.masked(&dims);
        let hints = self.r.pick(&["", "", "", "", " hints=.cs", " hints=evict_first"]);
        let _ = writeln!(self.text, "  store {}, {value}{mask}{hints}", p.name);
    }
}
