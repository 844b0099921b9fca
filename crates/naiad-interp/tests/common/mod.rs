//! What the tests share: kernels as text, arguments as vectors, one way to run them.

#![allow(dead_code, reason = "each test file uses a part")]

use naiad_diag::{Diagnostic, Source};
use naiad_interp::{Arg, Code, LaunchOptions, Report, TensorArg, View, launch};
use naiad_ir::tile::Tile;
use naiad_ir::{Function, Scalar};
use smallvec::smallvec;
use std::sync::Arc;

/// Types of elements that tests keep in vectors.
pub trait Element: Copy {
    const SCALAR: Scalar;
}

macro_rules! elements {
    ($($t:ident = $s:ident),*) => { $( impl Element for $t { const SCALAR: Scalar = Scalar::$s; } )* };
}
elements!(
    i8 = I8,
    i16 = I16,
    i32 = I32,
    i64 = I64,
    u8 = U8,
    u16 = U16,
    u32 = U32,
    u64 = U64,
    f32 = F32,
    f64 = F64
);

/// A kernel from its text, verified.
pub fn kernel(text: &str) -> Arc<Function<Tile>> {
    let func = naiad_ir::text::parse::<Tile>(&Source::new("<test>", text)).unwrap_or_else(|d| {
        let line = d.place().map_or(0, |p| p.line());
        panic!("line {line}: {}\n{text}", d.message)
    });
    naiad_ir::verify(&func).unwrap_or_else(|d| panic!("{}\n{text}", d.message));
    Arc::new(func)
}

/// A tensor whose storage and view are the whole vector.
pub fn tensor<T: Element>(data: &mut [T]) -> Arg {
    let range = data.as_mut_ptr_range();
    Arg::Tensor(TensorArg {
        address: range.start as usize,
        storage: range.start as usize..range.end as usize,
        view: Some(View { elem: T::SCALAR, shape: smallvec![data.len()], strides: smallvec![1] }),
        writable: true,
    })
}

pub fn int(x: i64) -> Arg {
    Arg::Scalar(x as u64)
}

pub fn f32(x: f32) -> Arg {
    Arg::Scalar(u64::from(x.to_bits()))
}

pub const PLAIN: LaunchOptions<'static> = LaunchOptions { threads: 1, ..LaunchOptions::PLAIN };

pub fn run(
    func: &Arc<Function<Tile>>,
    grid: [u32; 3],
    args: &[Arg],
    options: &LaunchOptions<'_>,
) -> Result<Report, Box<Diagnostic>> {
    // SAFETY: the tests' vectors outlive the call, and nothing else uses them meanwhile.
    unsafe { launch(&Code::new(func.clone()), grid, args, options) }
}

pub fn ok(func: &Arc<Function<Tile>>, grid: [u32; 3], args: &[Arg]) {
    for naive in [false, true] {
        for threads in [1, 2] {
            run(func, grid, args, &LaunchOptions { naive, threads, ..PLAIN })
                .unwrap_or_else(|d| panic!("{d:#?}"));
        }
    }
}

/// Everything that a diagnostic says, in lines.
pub fn said(d: &Diagnostic) -> String {
    let mut lines = vec![format!("{}[{}]: {}", d.severity.name(), d.id, d.message)];
    lines.extend(d.labels.iter().map(|l| format!("at {}: {}", l.place, l.text)));
    lines.extend(d.called_from.iter().map(|p| format!("called from {p}")));
    lines.extend(d.notes.iter().map(|n| format!("note: {n}")));
    lines.extend(d.help.iter().map(|h| format!("help: {h}")));
    lines.join("\n")
}
