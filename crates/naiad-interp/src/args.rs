//! What a launch is given: arguments with their storage, and options.

use crate::debug::Printed;
use naiad_diag::Diagnostic;
use naiad_ir::Scalar;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// One argument, for the IR parameter at its position.
#[derive(Clone, Debug)]
pub enum Arg {
    /// Bits of the parameter's type, zero-extended.
    Scalar(u64),
    Tensor(TensorArg),
}

/// Memory that a kernel may touch through a pointer parameter.
#[derive(Clone, Debug)]
pub struct TensorArg {
    /// Address of the element at index 0, which is what the kernel gets.
    pub address: usize,
    /// Addresses of the whole allocation that the view is part of. Nothing outside is ever touched.
    pub storage: Range<usize>,
    /// The logical view, where one is known: judged under the checked policy.
    pub view: Option<View>,
    /// Writes to memory that the host says is read-only are refused.
    pub writable: bool,
}

/// A strided view: element `i` lies at `address + sum(i[d] * strides[d]) * element size`.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    pub elem: Scalar,
    pub shape: Axes<usize>,
    /// In elements; may be 0 or negative.
    pub strides: Axes<isize>,
}

/// A number for each axis. Each launch makes such lists for all of its tensors, so that common ones take
/// no memory of their own.
pub type Axes<T> = SmallVec<[T; 4]>;

/// Runs what it is given, once.
pub type Long<'a> = dyn Fn(&mut dyn FnMut()) + 'a;

/// Adds the product of two matrices to a third. For each of the three its address and its strides in bytes, of the
/// last one, whose rows are contiguous, only that of rows; then the extents m, n and k, and the types by their
/// positions in [`Scalar::ALL`]. The last is fp32 or fp64.
pub type Multiply = unsafe extern "C" fn(
    *const u8,
    i64,
    i64,
    *const u8,
    i64,
    i64,
    *mut u8,
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
);

/// How a launch runs.
#[derive(Copy, Clone)]
pub struct LaunchOptions<'a> {
    pub policy: PolicyKind,
    /// Tiles always dense, masks always bits: slow, the oracle for the compressed forms.
    pub naive: bool,
    /// Threads over which programs are spread; 0 means as many as the machine has.
    pub threads: usize,
    /// Asked now and then whether the launch is to stop; once it is, this stays so.
    pub interrupt: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// A flag that is set where `interrupt` asks to stop, for executors that poll it in loops.
    pub flag: Option<&'a AtomicBool>,
    /// Runs the rest of a launch that turns out to take long, which is known after some 100 us, on the
    /// thread that launches. A host lets go here of what it holds, and listens to its user: to do so
    /// for every launch would cost the short ones as much as they take.
    pub long: Option<&'a Long<'a>>,
    /// Gets what kernels print: the calls of one program in its order, on whatever thread runs it.
    /// Without it they print nothing.
    pub print: Option<&'a (dyn Fn(&Printed<'_>) + Sync)>,
    /// Nanoseconds of a clock that never goes back. Without it time passes only where it is read.
    pub clock: Option<&'a (dyn Fn() -> u64 + Sync)>,
    /// Memory that was filled by [`crate::poison::fill`] when it was made: a checked launch judges reads of
    /// what is still so.
    pub uninitialized: &'a [Range<usize>],
    /// Memory that is no argument's and may be reached all the same, through pointers made of integers.
    pub exposed: &'a [Range<usize>],
    /// Gets what a launch has found before a fault ends it.
    pub found: Option<&'a Mutex<Vec<Diagnostic>>>,
    /// Numbers are combined in the order of machine code, for whoever runs this in its place: products of
    /// floats are this function's, and what a region combines goes as `combine.rs` says.
    pub in_order: Option<Multiply>,
}

impl LaunchOptions<'_> {
    /// A plain launch over all threads, with nobody to print to.
    pub const PLAIN: LaunchOptions<'static> = LaunchOptions {
        policy: PolicyKind::Plain,
        naive: false,
        threads: 0,
        interrupt: None,
        flag: None,
        long: None,
        print: None,
        clock: None,
        uninitialized: &[],
        exposed: &[],
        found: None,
        in_order: None,
    };
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PolicyKind {
    /// Values, and accesses within storage.
    Plain,
    /// Everything that `check` judges too.
    Checked,
}
