//! Distribution: from tiles to loops over short vectors.
//!
//! ```text
//!   Tile IR, facts
//!     walk    ops in program order: scalars are computed where they stand, control flow    walk.rs, control.rs
//!             becomes control flow, tiles wait until something needs their elements
//!     plan    which of them are worth keeping, what may change order                        plan.rs
//!     group   roots of one shape become one loop nest: stores, sums, tiles to be kept      group.rs
//!       nest    loops around rows, bounded by masks; row: the vectors and lanes of one      nest.rs, row.rs
//!       outside what of a row is no whole vector inside the bounds                      outside.rs
//!       copy    groups that only move a tile                                                copy.rs
//!       lanes   the elements of any tile at any place, computed on demand                   lanes.rs
//!       access  guards; whole vectors where addresses are formulas                          access.rs
//!     whole   what needs whole tiles at once: dot, scans, sorts, atomics                    whole.rs, fold.rs, atomics.rs
//!   Thread IR, parameters, sites
//! ```
//!
//! A tile is *virtual* until something forces it: its elements are computed, lane by lane, wherever
//! they are used. It is kept in scratch memory only where that would be wrong (memory may have changed
//! since) or dear (a costly function, used in two loop nests), or where an op wants it whole.
//!
//! **What makes it sound.** A loop nest comes in two versions. The fast one is built on formulas for
//! addresses and bounds ([`naiad_opt::affine`]), and is entered only if, for this program, all their
//! conditions hold and every access stays inside its argument's storage: a few comparisons of scalars. The
//! slow one computes every lane as it is written and looks each address up. So nothing has to be proved
//! when the kernel is compiled, and a kernel that is wrong gets the error of the reference executor. The
//! slow version is also what runs the lanes that no whole vector holds.
//!
//! Loads move down to where they are used and stores of one group interleave lane by lane, so both ask
//! [`Facts`] first whether the arguments overlap.

mod access;
mod atomics;
mod control;
mod copy;
mod elementwise;
mod fold;
mod group;
mod lanes;
mod nest;
mod outside;
pub(crate) mod plan;
mod row;
mod walk;
mod whole;

use crate::facts::Facts;
use naiad_diag::{Diagnostic, Id};
use naiad_ir::thread::{Builder, Site, Thread, ThreadElem, Vector};
use naiad_ir::tile::Tile;
use naiad_ir::{Elem, Function, Inst, Scalar, Shape, Type, Value};
use naiad_opt::affine::Analysis;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A kernel as loops.
pub struct Distributed {
    pub func: Function<Thread>,
    /// What the function's parameters are, in their order.
    pub params: Vec<Param>,
    /// What guards and runtime calls speak of, by [`Site`].
    pub sites: Vec<SiteInfo>,
}

/// A parameter of compiled code.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Param {
    /// The kernel's argument.
    Arg(usize),
    /// Where the memory begins that may be read through the argument.
    ReadFrom(usize),
    /// Where it ends.
    ReadTo(usize),
    /// Where the memory begins that may be written through the argument.
    WriteFrom(usize),
    WriteTo(usize),
    /// Programs along an axis.
    Grid(usize),
    /// Coordinates of the first program to be run.
    First(usize),
    /// Its number, and how many programs to run.
    Number,
    Count,
    /// For calls of the runtime.
    Context,
    /// The address of a byte that asks to stop: another program has failed.
    Stop,
    /// The same: somebody outside asks.
    Interrupt,
    /// Not 0 if the launch writes more than the cache holds.
    Stream,
    /// Not 0 if the launch reads memory beyond the cache.
    Far,
    /// The address of a count of what the program has written, for programs that may wait.
    Writes,
}

/// What a guard is about. `arg` is the argument that the pointer was made from, where it is known.
#[derive(Clone, PartialEq, Debug)]
pub enum SiteInfo {
    /// The launch is to stop.
    Stopped,
    /// An access to memory.
    Access { inst: Inst, elem: Scalar, write: bool, arg: Option<usize> },
    /// An atomic access at an address that is not aligned.
    Misaligned { inst: Inst, arg: Option<usize> },
    /// A loop whose step is 0.
    ZeroStep { inst: Inst },
    /// What an op leaves to the host, the shapes and types of its operands and results, and whether it may
    /// read the clock.
    Host { inst: Inst, buffers: Vec<Type>, clock: bool },
    /// A loop that may wait for other programs, and the op that asks for what they write.
    Wait { inst: Inst },
}

impl SiteInfo {
    /// Whether a guard of this site only ends the run: what is wrong, if anything, was told elsewhere.
    pub(crate) fn stops_only(&self) -> bool {
        matches!(self, SiteInfo::Stopped | SiteInfo::Host { .. } | SiteInfo::Wait { .. })
    }
}

/// What an op asks for that nobody here can do. Every verified kernel is compiled, so it is a fault of ours.
#[derive(Debug)]
struct Unsupported {
    what: String,
    inst: Option<Inst>,
}

impl Unsupported {
    fn report(self, f: &Function<Tile>) -> Box<Diagnostic> {
        let message = format!("no machine code for `{}`: {}", f.name, self.what);
        let report = Diagnostic::new(Id::Internal, message);
        Box::new(match self.inst {
            Some(inst) => report.primary_at(&f.places, f.loc(inst), ""),
            None => report,
        })
    }
}

type Result<T> = std::result::Result<T, Unsupported>;

/// Where a value is once it has been computed.
#[derive(Clone, Debug)]
enum Place {
    /// A number or an address.
    Scalar(Value),
    /// Elements in scratch memory.
    Buffer(Buffer),
}

/// A strided view of scratch memory.
#[derive(Clone, Debug)]
struct Buffer {
    addr: Value,
    /// In bytes, for each axis.
    strides: SmallVec<[i64; 4]>,
    /// Of what is stored, which may be wider than the value's.
    elem: ThreadElem,
}

/// Where values are. What is computed within a region is forgotten at the region's end, also where it
/// is a tile from outside that was kept there: the region may not run, or run again.
#[derive(Default)]
struct Places {
    known: FxHashMap<Value, Place>,
    /// In the order in which they became known.
    log: Vec<Value>,
}

/// The start of a region.
#[must_use]
struct Entered(usize);

impl Places {
    fn get(&self, v: Value) -> Option<&Place> {
        self.known.get(&v)
    }

    fn has(&self, v: Value) -> bool {
        self.known.contains_key(&v)
    }

    fn insert(&mut self, v: Value, place: Place) {
        if self.known.insert(v, place).is_none() {
            self.log.push(v);
        }
    }

    fn enter(&self) -> Entered {
        Entered(self.log.len())
    }

    fn leave(&mut self, Entered(start): Entered) {
        for v in self.log.drain(start..) {
            self.known.remove(&v);
        }
    }
}

struct Dist<'a> {
    f: &'a Function<Tile>,
    facts: &'a Facts,
    b: Builder,
    params: Vec<Param>,
    sites: Vec<SiteInfo>,
    places: Places,
    analysis: Analysis<'a>,
    plan: plan::Plan,
    /// The program's coordinates and number, and the grid.
    program: [Value; 3],
    number: Value,
    grid: [Value; 3],
    open: Option<group::Group>,
    /// Loads that wait for somebody to want their elements.
    waiting: Vec<Inst>,
    /// What is being made runs only in one of two versions, so that nothing else may build on it.
    in_version: bool,
    /// Of the machine's registers.
    vector_bytes: u32,
    /// What wants something at an earlier position has got it, or is a root of the open group.
    now: u32,
}

/// Turns a verified kernel into loops, over vectors for a machine whose registers have so many bytes.
pub fn distribute(
    f: &Function<Tile>,
    facts: &Facts,
    vector_bytes: u32,
) -> std::result::Result<Distributed, Box<Diagnostic>> {
    distributed(f, facts, vector_bytes).map_err(|gap| gap.report(f))
}

fn distributed(f: &Function<Tile>, facts: &Facts, vector_bytes: u32) -> Result<Distributed> {
    let mut b = Builder::new(&f.name);
    let mut params = Vec::new();
    let mut param = |b: &mut Builder, p: Param, ty: Vector| {
        params.push(p);
        b.func.add_param(p.name(f), ty.into())
    };
    let mut places = Places::default();
    for (i, &value) in f.params().iter().enumerate() {
        let ty = f.ty(value);
        if !ty.is_scalar() {
            return Err(Unsupported { what: "a parameter that is a tile".into(), inst: None });
        }
        let thread = param(&mut b, Param::Arg(i), Vector::of(stored(ty.elem), 1));
        places.insert(value, Place::Scalar(thread));
    }
    let i32s = Vector::I32;
    let grid = [0, 1, 2].map(|d| param(&mut b, Param::Grid(d), i32s));
    let first = [0, 1, 2].map(|d| param(&mut b, Param::First(d), i32s));
    let number = param(&mut b, Param::Number, Vector::I64);
    let count = param(&mut b, Param::Count, Vector::I64);
    let mut dist = Dist {
        f,
        facts,
        b,
        params,
        sites: vec![SiteInfo::Stopped],
        places,
        analysis: Analysis::new(f),
        plan: plan::Plan::new(f),
        program: first,
        number,
        grid,
        open: None,
        waiting: Vec::new(),
        in_version: false,
        now: 0,
        vector_bytes,
    };
    dist.programs(first, number, count)?;
    let Dist { b, params, sites, .. } = dist;
    Ok(Distributed { func: b.func, params, sites })
}

impl Param {
    fn name(self, f: &Function<Tile>) -> String {
        let arg = |i: usize| f.param_names.get(i).map_or("?", String::as_str).to_string();
        match self {
            Param::Arg(i) => arg(i),
            Param::ReadFrom(i) => arg(i) + ".read_from",
            Param::ReadTo(i) => arg(i) + ".read_to",
            Param::WriteFrom(i) => arg(i) + ".write_from",
            Param::WriteTo(i) => arg(i) + ".write_to",
            Param::Grid(d) => format!("grid.{d}"),
            Param::First(d) => format!("first.{d}"),
            Param::Number => "number".into(),
            Param::Count => "count".into(),
            Param::Context => "context".into(),
            Param::Stop => "stop".into(),
            Param::Interrupt => "interrupt".into(),
            Param::Stream => "stream".into(),
            Param::Far => "far".into(),
            Param::Writes => "writes".into(),
        }
    }
}

/// The element by which Thread IR knows an element of a tile.
fn stored(elem: Elem) -> ThreadElem {
    match elem {
        Elem::Scalar(s) => ThreadElem::Scalar(s),
        Elem::Pointer(_) => ThreadElem::Addr,
    }
}

impl Dist<'_> {
    fn unsupported<T>(&self, inst: Inst, what: impl Into<String>) -> Result<T> {
        Err(Unsupported { what: what.into(), inst: Some(inst) })
    }

    fn shape(&self, v: Value) -> Shape {
        self.f.ty(v).shape
    }

    /// A parameter of the compiled function, added when first asked for.
    fn param(&mut self, p: Param) -> Value {
        if let Some(i) = self.params.iter().position(|&have| have == p) {
            return self.b.func.params()[i];
        }
        self.params.push(p);
        let ty = if matches!(p, Param::Stream | Param::Far) { Vector::I64 } else { Vector::ADDR };
        self.b.func.add_param(p.name(self.f), ty.into())
    }

    fn site(&mut self, info: SiteInfo) -> Site {
        let at = self.sites.iter().position(|s| *s == info).unwrap_or_else(|| {
            self.sites.push(info);
            self.sites.len() - 1
        });
        Site(at as u32)
    }
}
