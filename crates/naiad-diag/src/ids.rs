//! The table of all kinds of message.

use crate::Severity;
use std::fmt;

macro_rules! ids {
    ($( $(#[doc = $doc:literal])+ $variant:ident = $name:literal, $severity:ident; )*) => {
        /// A kind of message. Its name is stable and may be used by tools.
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
        pub enum Id { $( $(#[doc = $doc])+ $variant, )* }

        impl Id {
            pub const ALL: &'static [Id] = &[$( Id::$variant, )*];

            pub const fn name(self) -> &'static str { match self { $( Id::$variant => $name, )* } }

            /// The severity that the kind has unless the reporter knows better.
            pub const fn severity(self) -> Severity { match self { $( Id::$variant => Severity::$severity, )* } }

            /// What the kind means, in a sentence or two.
            pub const fn doc(self) -> &'static str { match self { $( Id::$variant => concat!($($doc),+), )* } }
        }
    };
}

ids! {
    // Source and its Python.
    /// The text is not Python.
    SyntaxError = "syntax-error", Error;
    /// The file cannot be read as text.
    BadEncoding = "bad-encoding", Error;
    /// A Python statement or expression that kernels cannot contain.
    UnsupportedPython = "unsupported-python", Error;
    /// A name that is defined nowhere, or not on every path to here.
    UndefinedName = "undefined-name", Error;
    /// An attribute that the object does not have.
    UnknownAttribute = "unknown-attribute", Error;
    /// `triton.language` has no such name, or Naiad does not support it.
    UnknownTlName = "unknown-tl-name", Error;
    /// A global of the module that is neither constexpr nor callable from a kernel.
    BadGlobal = "bad-global", Error;
    /// A call whose arguments do not fit the function's parameters.
    BadCall = "bad-call", Error;
    /// An argument's value or type is not one that the function takes.
    BadArgument = "bad-argument", Error;

    // Types and shapes.
    /// Two shapes that do not broadcast.
    ShapeMismatch = "shape-mismatch", Error;
    /// An extent that is no power of two, or a tile with too many elements.
    BadShape = "bad-shape", Error;
    /// Operand types that the operator or function does not take.
    TypeMismatch = "type-mismatch", Error;
    /// A value must be known at compile time and is not.
    NotConstexpr = "not-constexpr", Error;
    /// A variable's type changes from one iteration of a loop to the next.
    LoopTypeChange = "loop-type-change", Error;
    /// A variable's type differs between the branches of an `if`.
    BranchTypeMismatch = "branch-type-mismatch", Error;
    /// A condition with more than one element.
    AmbiguousCondition = "ambiguous-condition", Error;
    /// A literal that does not fit the type it has to adopt.
    LiteralRange = "literal-range", Error;
    /// Returns that disagree, or a return where none may stand.
    BadReturn = "bad-return", Error;
    /// The pointer's shape does not fit the value that is stored or the mask.
    PointerShape = "pointer-shape", Error;
    /// A store through a pointer to const.
    ConstStore = "const-store", Error;
    /// `tl.static_assert` failed.
    StaticAssert = "static-assert", Error;
    /// Inlining or unrolling went past a limit.
    TooLarge = "too-large", Error;

    // Launching.
    /// Arguments of a launch that do not fit the kernel.
    BadLaunch = "bad-launch", Error;
    /// A grid that is no tuple of one to three counts.
    BadGrid = "bad-grid", Error;
    /// The module has no kernel of that name.
    NoKernel = "no-kernel", Error;

    // Running.
    /// An access outside every argument's storage.
    OutOfBounds = "out-of-bounds", Error;
    /// An access outside the logical view of a tensor, though inside its storage.
    OutsideView = "outside-view", Error;
    /// An address that is not a multiple of the element's size.
    Misaligned = "misaligned", Error;
    /// Programs that wait for one another forever.
    Deadlock = "deadlock", Error;
    /// `tl.device_assert` failed.
    DeviceAssert = "device-assert", Error;
    /// What `tl.assume` promises does not hold.
    FalseAssume = "false-assume", Error;
    /// Inline assembly that only a GPU can run, or that is wrong.
    InlineAsm = "inline-asm", Error;
    /// The launch was stopped from outside.
    Interrupted = "interrupted", Error;
    /// The launch needs more memory than it may take.
    OutOfMemory = "out-of-memory", Error;
    /// No code for a GPU can be made of the kernel.
    NoGpuCode = "no-gpu-code", Error;
    /// The kernel needs more of something than a GPU has: registers, shared memory, threads of a block.
    OutOfResources = "out-of-resources", Error;
    /// A GPU cannot be used, or a launch on it went wrong.
    Gpu = "gpu", Error;

    // Checked execution. Where two severities are possible, what a finding's run shows decides.
    /// Padding lanes reach a reduction, a product or another place where lanes meet, and change what the
    /// kernel stores.
    PaddingReduced = "padding-reduced", Error;
    /// Lanes that a masked load without `other` left undefined reach a place where lanes meet.
    UndefinedReduced = "undefined-reduced", Error;
    /// Lanes that a masked load without `other` left undefined are stored, or decide an address or a
    /// branch.
    UndefinedUsed = "undefined-used", Error;
    /// Memory is read that nobody has written.
    UninitializedRead = "uninitialized-read", Error;
    /// Elements of an uninitialized output that the launch has left unwritten.
    UnwrittenOutput = "unwritten-output", Warning;
    /// Two programs use an element, one of them writes it plainly, and nothing orders them.
    Race = "race", Error;
    /// Programs write one element without order, though the same value.
    SameValueRace = "same-value-race", Warning;
    /// Programs that are ordered only by relaxed atomics or volatile loads.
    WeakOrder = "weak-order", Warning;
    /// An atomic of scope `cta` is used between programs.
    NarrowScope = "narrow-scope", Error;
    /// A program reads what another of its lanes stored, with no barrier between.
    MissingBarrier = "missing-barrier", Warning;
    /// An offset leaves its integer type, and the wrapped number is used in an address.
    WrappedOffset = "wrapped-offset", Error;
    /// A NaN or an infinity is stored that the kernel made out of finite numbers.
    NumericOrigin = "numeric-origin", Warning;
    /// An integer is divided by zero.
    ZeroDivisor = "zero-divisor", Error;
    /// What `tl.multiple_of`, `tl.max_contiguous` or `tl.max_constancy` promises does not hold.
    FalseHint = "false-hint", Warning;
    /// A tuned kernel changes what it reads, so that trials are not repeatable.
    AutotuneHazard = "autotune-hazard", Warning;
    /// A view with strides of its own is addressed as if it were contiguous.
    FlatIndex = "flat-index", Note;
    /// A limit of the checker that kept it from judging everything.
    CheckLimit = "check-limit", Note;

    // Lint.
    /// A mask that is computed and never used.
    UnusedMask = "unused-mask", Warning;
    /// A kernel that does not use which program it is.
    UnusedProgramId = "unused-program-id", Note;
    /// A sum of the lanes that a mask leaves, divided by the number of all lanes.
    BlockDivisor = "block-divisor", Warning;
    /// Lanes are compared with a stride where a width is meant.
    StrideBound = "stride-bound", Note;

    // Ours.
    /// Text of IR that does not parse.
    IrSyntax = "ir-syntax", Error;
    /// IR that breaks its rules: a fault of Naiad.
    Internal = "internal", Error;
}

impl Id {
    pub fn from_name(name: &str) -> Option<Id> {
        Id::ALL.iter().copied().find(|id| id.name() == name)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
