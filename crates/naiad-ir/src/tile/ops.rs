//! The table of Tile IR's ops, and the attributes that they carry.

use super::{Tile, infer};
use crate::entities::{Block, Value};
use crate::op::{Attr, Effects, OpInfo, attr_enum, ops};
use crate::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn};
use crate::types::{Elem, Scalar, Shape};
use smallvec::SmallVec;
use std::sync::Arc;

ops! {
    /// An op of Tile IR.
    pub enum TileOp for Tile {
        // Values from nothing.
        /// A scalar constant.
        "const" Const { value: Constant } Pure lanewise => infer::constant;
        /// The program's id along a grid axis, as i32.
        "program_id" ProgramId { axis: u32 } Pure lanewise => infer::grid_axis;
        /// The grid's extent along an axis, as i32.
        "num_programs" NumPrograms { axis: u32 } Pure lanewise => infer::grid_axis;
        /// `start, start + 1, …, end - 1` as i32.
        "arange" Arange { start: i64, end: i64 } Pure => infer::arange;

        // Shape.
        /// A scalar in every lane of a tile.
        "splat" Splat { src: Value, shape: Shape } Pure => infer::splat;
        /// Puts in an axis of extent 1 before `axis`.
        "expand_dims" ExpandDims { src: Value, axis: usize } Pure => infer::expand_dims;
        /// Repeats along axes of extent 1 up to `shape`, which has the same rank.
        "broadcast" Broadcast { src: Value, shape: Shape } Pure => infer::broadcast;
        /// The same elements in row-major order under another shape.
        "reshape" Reshape { src: Value, shape: Shape } Pure => infer::reshape;
        /// Result axis `i` is the source's axis `order[i]`.
        "permute" Permute { src: Value, order: Axes } Pure => infer::permute;
        /// Stacks two tiles in a new last axis.
        "join" Join { a: Value, b: Value } Pure => infer::join;
        /// Undoes `join`: the two halves along a last axis of extent 2.
        "split" Split { src: Value } Pure => infer::split;
        /// Appends two tiles of one shape along an axis.
        "cat" Cat { a: Value, b: Value, axis: usize } Pure => infer::cat;
        /// The elements in reverse order along an axis.
        "flip" Flip { src: Value, axis: usize } Pure => infer::flip;

        // Elementwise.
        /// A function of one number.
        "unary" Unary { f: UnaryFn, x: Value } Pure lanewise => infer::unary;
        /// A function of two numbers.
        "binary" Binary { f: BinaryFn, a: Value, b: Value } Pure lanewise => infer::binary;
        /// A function of three numbers.
        "ternary" Ternary { f: TernaryFn, a: Value, b: Value, c: Value } Pure lanewise => infer::ternary;
        /// A comparison; gives i1.
        "compare" Compare { p: Predicate, a: Value, b: Value } Pure lanewise => infer::compare;
        /// Lane by lane the second operand where the first is true, else the third.
        "select" Select { cond: Value, yes: Value, no: Value } Pure lanewise => infer::select;
        /// Conversion of numbers by value.
        "cast" Cast { src: Value, to: Scalar, rounding: Rounding } Pure lanewise => infer::cast;
        /// The same bits as another element of the same width; pointers are 64 bits wide.
        "bitcast" Bitcast { src: Value, to: Elem } Pure lanewise => infer::bitcast;
        /// Moves a pointer by a number of elements.
        "ptr_add" PtrAdd { ptr: Value, offset: Value } Pure lanewise => infer::ptr_add;

        // Memory.
        /// Reads lanes whose mask is true.
        "load" Load { ptr: Value, mask: Option<Value>, other: Option<Value>, hints: MemHints } Reads => infer::load;
        /// Writes lanes whose mask is true.
        "store" Store { ptr: Value, value: Value, mask: Option<Value>, hints: MemHints } Writes => infer::store;
        /// Atomically replaces memory by a function of it and `value`; gives what was there before.
        "atomic" AtomicRmw { f: AtomicOp, ptr: Value, value: Value, mask: Option<Value>, sem: Sem, scope: Scope } Writes => infer::atomic_rmw;
        /// Atomically stores `value` where memory equals `compare`; gives what was there before.
        "atomic_cas" AtomicCas { ptr: Value, compare: Value, value: Value, sem: Sem, scope: Scope } Writes => infer::atomic_cas;
        /// Atomically reads lanes whose mask is true; others give 0.
        "atomic_load" AtomicLoad { ptr: Value, mask: Option<Value>, sem: Sem, scope: Scope } Writes => infer::atomic_load;
        /// Atomically writes lanes whose mask is true.
        "atomic_store" AtomicStore { ptr: Value, value: Value, mask: Option<Value>, sem: Sem, scope: Scope } Writes => infer::atomic_store;
        /// Orders this program's memory accesses before and after among its own threads.
        "barrier" Barrier {} Writes => infer::nothing;

        // Whole tiles.
        /// Matrix product over the last two axes, added to `acc` where given.
        "dot" Dot { a: Value, b: Value, acc: Option<Value>, out: Scalar, precision: Precision } Pure => infer::dot;
        /// Combines along an axis, which disappears.
        "reduce" Reduce { inputs: Vec<Value>, axis: usize, body: Block } Pure isolated => infer::reduce;
        /// Inclusive prefix combination along an axis, from its end if `reverse`.
        "scan" Scan { inputs: Vec<Value>, axis: usize, reverse: bool, body: Block } Pure isolated => infer::scan;
        /// Calls a region over scalars on every element, or on every `pack` consecutive ones.
        "map" Map { inputs: Vec<Value>, pack: usize, body: Block } Control isolated => infer::map;
        /// Sorts along the last axis. NaN counts as greater than every number.
        "sort" Sort { src: Value, descending: bool } Pure => infer::sort;
        /// The first `k` of each row along the last axis as `sort` would order it.
        "topk" TopK { src: Value, k: i64, descending: bool } Pure => infer::topk;
        /// Result element `i` is the source's at `i` with the coordinate along `axis` replaced by
        /// `index[i]`.
        "gather" Gather { src: Value, index: Value, axis: usize } Pure => infer::gather;
        /// How many lanes (whose mask is true) hold each of `0, 1, …, bins - 1`.
        "histogram" Histogram { src: Value, mask: Option<Value>, bins: i64 } Pure => infer::histogram;

        // For whoever debugs or measures.
        /// Shows values to the user, in the order of the program.
        "print" Print { prefix: Text, args: Vec<Value>, hex: bool } Stays => infer::print;
        /// Ends the launch with an error unless every lane whose mask is true holds. `values` are what
        /// the condition was made from, for the message; `names` is how the source calls them.
        "assert" Assert { cond: Value, mask: Option<Value>, message: Text, values: Vec<Value>, names: Texts } Stays => infer::assert;
        /// Something of the machine: the time in nanoseconds, the number of the core.
        "machine" Machine { what: MachineFact } Stays => infer::machine;
        /// PTX text over scalars, called on every `pack` consecutive elements of its operands, which
        /// have one shape. Constraints are LLVM's.
        "inline_asm" InlineAsm { text: Text, constraints: Text, args: Vec<Value>, shape: Shape, results: Scalars, is_pure: bool, pack: usize } Stays => infer::inline_asm;

        // Promises to the compiler.
        /// Its operand, with a promise about runs of elements along each axis.
        "hint" Hint { src: Value, kind: HintKind, values: Axes } Pure lanewise => infer::hint;
        /// A promise that every lane is true.
        "assume" Assume { cond: Value } Stays => infer::assume;

        // Control flow.
        /// A counted loop.
        "for" For { lower: Value, upper: Value, step: Value, inits: Vec<Value>, hints: LoopHints, body: Block } Control => infer::for_loop;
        /// A loop with its test in front.
        "while" While { inits: Vec<Value>, before: Block, after: Block } Control => infer::while_loop;
        /// One of two blocks.
        "if" If { cond: Value, then: Block, otherwise: Block } Control => infer::if_else;
        /// Ends a region with the values that it gives.
        "yield" Yield { values: Vec<Value> } Terminator => infer::many;
        /// Ends a `while`'s first block.
        "condition" Condition { cond: Value, values: Vec<Value> } Terminator => infer::condition;
        /// Ends the program.
        "return" Return {} Terminator => infer::nothing;
    }
}

attr_enum! {
    /// What an atomic op does to memory.
    pub enum AtomicOp [suffix] {
        Add = "add",
        Max = "max",
        Min = "min",
        And = "and",
        Or = "or",
        Xor = "xor",
        Xchg = "xchg",
    }

    /// Memory order of an atomic op.
    pub enum Sem [omitted] {
        AcqRel = "acq_rel",
        Acquire = "acquire",
        Release = "release",
        Relaxed = "relaxed",
    }

    /// The threads that an atomic op is ordered for.
    pub enum Scope [omitted] {
        Gpu = "gpu",
        Cta = "cta",
        Sys = "sys",
    }

    /// How products of fp32 operands may be computed on tensor cores.
    pub enum Precision [omitted] {
        Tf32 = "tf32",
        Tf32x3 = "tf32x3",
        Ieee = "ieee",
        Bf16x3 = "bf16x3",
        Bf16x6 = "bf16x6",
    }

    /// Where an access should be cached.
    pub enum CacheModifier {
        None = "",
        Ca = ".ca",
        Cg = ".cg",
        Cs = ".cs",
        Cv = ".cv",
        Wb = ".wb",
        Wt = ".wt",
    }

    /// How long a cache line should stay.
    pub enum Eviction {
        None = "",
        Normal = "evict_normal",
        First = "evict_first",
        Last = "evict_last",
    }

    /// What a `machine` op asks for.
    pub enum MachineFact [suffix] {
        /// Nanoseconds of a clock that all programs share, as i64.
        GlobalTimer = "globaltimer",
        /// The number of the core (multiprocessor) that the program runs on, as i32.
        Smid = "smid",
    }

    /// What a `hint` promises of runs along each axis.
    pub enum HintKind [suffix] {
        /// The first element of every run of consecutive ones is divisible by the value.
        MultipleOf = "multiple_of",
        /// Runs of this many consecutive numbers.
        MaxContiguous = "max_contiguous",
        /// Runs of this many equal numbers.
        MaxConstancy = "max_constancy",
    }
}

impl TileOp {
    /// Whether it may stand in a region over elements: it computes, or is control flow.
    pub fn fits_in_region(&self) -> bool {
        let computes =
            matches!(self.effects(), Effects::Pure | Effects::Control | Effects::Terminator);
        computes || matches!(self, TileOp::InlineAsm { is_pure: true, .. })
    }
}

impl MachineFact {
    pub const fn ty(self) -> Scalar {
        match self {
            MachineFact::GlobalTimer => Scalar::I64,
            MachineFact::Smid => Scalar::I32,
        }
    }
}

impl AtomicOp {
    /// Whether memory of this type has the operation.
    pub fn accepts(self, ty: Scalar) -> bool {
        match self {
            AtomicOp::Add | AtomicOp::Max | AtomicOp::Min => {
                ty.bits() >= 32 || matches!(ty, Scalar::F16 | Scalar::BF16)
            }
            AtomicOp::Xchg => ty.bits() >= 32,
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => ty.bits() >= 32 && ty.is_int(),
        }
    }

    /// What the operation makes of what memory has; images of `ty`.
    ///
    /// Of floats the greater and the lesser are found by their images, as Triton has them: zeros differ by
    /// their sign, and NaN lies beyond the infinity of its sign, so that one of a positive sign wins each
    /// maximum and loses each minimum.
    pub fn eval(self, ty: Scalar, old: u64, value: u64) -> u64 {
        let of = |f: BinaryFn| f.eval(ty, old, value).unwrap_or(old);
        match self {
            AtomicOp::Xchg => value,
            AtomicOp::Add => of(BinaryFn::Add),
            AtomicOp::And => of(BinaryFn::And),
            AtomicOp::Or => of(BinaryFn::Or),
            AtomicOp::Xor => of(BinaryFn::Xor),
            AtomicOp::Max if ty.is_int() => of(BinaryFn::Max),
            AtomicOp::Min if ty.is_int() => of(BinaryFn::Min),
            AtomicOp::Max if place_in_order(ty, old) < place_in_order(ty, value) => value,
            AtomicOp::Min if place_in_order(ty, value) < place_in_order(ty, old) => value,
            AtomicOp::Max | AtomicOp::Min => old,
        }
    }

    /// Whether memory of this type has compare-and-swap.
    pub fn cas_accepts(ty: Scalar) -> bool {
        ty.bits() >= 16
    }
}

/// A number that orders the images of a type of floats.
fn place_in_order(ty: Scalar, image: u64) -> u64 {
    let sign = 1 << (ty.bits() - 1);
    if image & sign == 0 { image | sign } else { !image & ty.mask() }
}

/// A constant's type and bits.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Constant {
    pub ty: Scalar,
    /// Zero-extended.
    pub bits: u64,
}

impl Constant {
    /// An integer, wrapped into `ty`.
    pub fn int(ty: Scalar, value: i128) -> Constant {
        debug_assert!(ty.is_int());
        let mask = u64::MAX >> (64 - ty.bits());
        Constant { ty, bits: value as u64 & mask }
    }

    /// A float, rounded to `ty`.
    pub fn float(ty: Scalar, value: f64) -> Constant {
        let bits = crate::scalar::cast_bits(Scalar::F64, ty, Rounding::Nearest, value.to_bits());
        Constant { ty, bits }
    }

    pub fn bool(value: bool) -> Constant {
        Constant { ty: Scalar::I1, bits: value as u64 }
    }

    /// The value of an integer constant, by the type's signedness.
    pub fn as_int(self) -> Option<i128> {
        if !self.ty.is_int() {
            return None;
        }
        let shift = 64 - self.ty.bits();
        Some(if self.ty.is_signed() {
            ((self.bits << shift) as i64 >> shift) as i128
        } else {
            self.bits as i128
        })
    }

    /// The value as a float, exactly, except for integers beyond 2^53.
    pub fn as_f64(self) -> f64 {
        f64::from_bits(crate::scalar::cast_bits(self.ty, Scalar::F64, Rounding::Nearest, self.bits))
    }
}

impl Attr for Constant {
    /// `3:i32`, `0.5:fp32`; in hexadecimal bits where decimal text would not give the same bits.
    fn to_word(&self) -> String {
        if let Some(i) = self.as_int() {
            return format!("{i}:{}", self.ty);
        }
        let text = match self.ty {
            Scalar::F32 => format!("{:?}", f32::from_bits(self.bits as u32)),
            _ => format!("{:?}", self.as_f64()),
        };
        let back = text.parse::<f64>().map(|v| Constant::float(self.ty, v));
        if back == Ok(*self) && self.as_f64().is_finite() {
            format!("{text}:{}", self.ty)
        } else {
            format!("0x{:x}:{}", self.bits, self.ty)
        }
    }

    fn from_word(word: &str) -> Option<Constant> {
        let (value, ty) = word.rsplit_once(':')?;
        let ty = Scalar::from_name(ty)?;
        if let Some(hex) = value.strip_prefix("0x") {
            let bits = u64::from_str_radix(hex, 16).ok()?;
            return (bits <= u64::MAX >> (64 - ty.bits())).then_some(Constant { ty, bits });
        }
        if ty.is_float() {
            return Some(Constant::float(ty, value.parse().ok()?));
        }
        let value: i128 = value.parse().ok()?;
        (ty.int_min()..=ty.int_max()).contains(&value).then(|| Constant::int(ty, value))
    }
}

/// A number for each axis.
pub type Axes = SmallVec<[u32; 4]>;

impl Attr for Axes {
    fn to_word(&self) -> String {
        let items: Vec<String> = self.iter().map(u32::to_string).collect();
        format!("({})", items.join(","))
    }

    fn from_word(word: &str) -> Option<Axes> {
        let inner = word.strip_prefix('(')?.strip_suffix(')')?;
        inner.split(',').filter(|s| !s.trim().is_empty()).map(|s| s.trim().parse().ok()).collect()
    }
}

/// Text of the user's, in quotes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Text(pub Arc<str>);

impl Attr for Text {
    fn to_word(&self) -> String {
        format!("{:?}", self.0)
    }

    /// Reads what `Debug` of a string writes.
    fn from_word(word: &str) -> Option<Text> {
        let mut rest = word.strip_prefix('"')?.strip_suffix('"')?.chars();
        let mut text = String::new();
        while let Some(c) = rest.next() {
            text.push(match c {
                '\\' => match rest.next()? {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    '0' => '\0',
                    'u' => {
                        let code: String = rest.by_ref().take_while(|&c| c != '}').collect();
                        char::from_u32(u32::from_str_radix(code.strip_prefix('{')?, 16).ok()?)?
                    }
                    c => c,
                },
                '"' => return None,
                c => c,
            });
        }
        Some(Text(text.into()))
    }
}

/// A list of such texts.
pub type Texts = SmallVec<[Text; 2]>;

impl Attr for Texts {
    fn to_word(&self) -> String {
        let items: Vec<String> = self.iter().map(Text::to_word).collect();
        format!("({})", items.join(","))
    }

    fn from_word(word: &str) -> Option<Texts> {
        let mut rest = word.strip_prefix('(')?.strip_suffix(')')?;
        let mut texts = Texts::new();
        while !rest.is_empty() {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|&(_, c)| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let (text, tail) = rest.split_at(end?.0 + 1);
            texts.push(Text::from_word(text)?);
            rest = tail.strip_prefix(',').unwrap_or(tail);
        }
        Some(texts)
    }

    fn omitted() -> Option<Texts> {
        Some(Texts::new())
    }
}

/// A list of types.
pub type Scalars = SmallVec<[Scalar; 2]>;

impl Attr for Scalars {
    fn to_word(&self) -> String {
        let items: Vec<&str> = self.iter().map(|s| s.name()).collect();
        format!("({})", items.join(","))
    }

    fn from_word(word: &str) -> Option<Scalars> {
        let inner = word.strip_prefix('(')?.strip_suffix(')')?;
        inner.split(',').filter(|s| !s.is_empty()).map(Scalar::from_name).collect()
    }
}

/// Advice about an access; none of it changes what is read or written. A volatile access may not be
/// merged with another.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct MemHints {
    pub cache: CacheModifier,
    pub evict: Eviction,
    pub volatile: bool,
}

impl Default for MemHints {
    fn default() -> MemHints {
        MemHints { cache: CacheModifier::None, evict: Eviction::None, volatile: false }
    }
}

impl Attr for MemHints {
    fn to_word(&self) -> String {
        let parts =
            [self.cache.name(), self.evict.name(), if self.volatile { "volatile" } else { "" }];
        let parts: Vec<&str> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        parts.join("+")
    }

    fn from_word(word: &str) -> Option<MemHints> {
        let mut hints = MemHints::default();
        for part in word.split('+') {
            if part == "volatile" {
                hints.volatile = true;
            } else if let Some(cache) = CacheModifier::from_name(part) {
                hints.cache = cache;
            } else {
                hints.evict = Eviction::from_name(part)?;
            }
        }
        Some(hints)
    }

    fn omitted() -> Option<MemHints> {
        Some(MemHints::default())
    }
}

/// Advice about a loop, from `tl.range`; none of it changes results.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct LoopHints {
    pub num_stages: Option<u32>,
    pub unroll: Option<u32>,
    pub flatten: bool,
    pub warp_specialize: bool,
    pub disallow_acc_multi_buffer: bool,
    pub disable_licm: bool,
}

impl Attr for LoopHints {
    fn to_word(&self) -> String {
        let mut parts = Vec::new();
        if let Some(n) = self.num_stages {
            parts.push(format!("stages({n})"));
        }
        if let Some(n) = self.unroll {
            parts.push(format!("unroll({n})"));
        }
        let flags = [
            (self.flatten, "flatten"),
            (self.warp_specialize, "warp_specialize"),
            (self.disallow_acc_multi_buffer, "disallow_acc_multi_buffer"),
            (self.disable_licm, "disable_licm"),
        ];
        parts.extend(flags.iter().filter(|f| f.0).map(|f| f.1.to_string()));
        parts.join("+")
    }

    fn from_word(word: &str) -> Option<LoopHints> {
        let mut hints = LoopHints::default();
        for part in word.split('+') {
            let number = |key: &str| part.strip_prefix(key)?.strip_suffix(')')?.parse::<u32>().ok();
            match part {
                "flatten" => hints.flatten = true,
                "warp_specialize" => hints.warp_specialize = true,
                "disallow_acc_multi_buffer" => hints.disallow_acc_multi_buffer = true,
                "disable_licm" => hints.disable_licm = true,
                _ => match number("stages(") {
                    Some(n) => hints.num_stages = Some(n),
                    None => hints.unroll = Some(number("unroll(")?),
                },
            }
        }
        Some(hints)
    }

    fn omitted() -> Option<LoopHints> {
        Some(LoopHints::default())
    }
}

/// Scalar functions are written behind the op's name: `binary.add`.
macro_rules! suffix_attr {
    ($($ty:ty),*) => { $(
        impl Attr for $ty {
            fn to_word(&self) -> String { self.name().to_string() }
            fn from_word(word: &str) -> Option<$ty> { <$ty>::from_name(word) }
            const SUFFIX: bool = true;
        }
    )* };
}
suffix_attr!(UnaryFn, BinaryFn, TernaryFn, Predicate);

impl Attr for Scalar {
    fn to_word(&self) -> String {
        self.name().to_string()
    }
    fn from_word(word: &str) -> Option<Scalar> {
        Scalar::from_name(word)
    }
}

impl Attr for Rounding {
    fn to_word(&self) -> String {
        self.name().to_string()
    }
    fn from_word(word: &str) -> Option<Rounding> {
        Rounding::from_name(word)
    }
    fn omitted() -> Option<Rounding> {
        Some(Rounding::Nearest)
    }
}
