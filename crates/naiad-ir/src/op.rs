//! What every dialect's op table provides, and the macro that derives it from the table.
//!
//! A dialect is one enum, declared by [`ops!`] with a row for each op: documentation, name in text,
//! fields, effects and the function that infers result types. Operand walks, printing and parsing
//! follow from the fields' types through the [`Field`] trait; all logic is in plain functions.

use crate::entities::{Block, Value};
use crate::function::Function;
use smallvec::SmallVec;
use std::fmt::{Debug, Display};
use std::hash::Hash;

/// A set of ops and types over which a [`Function`] is built.
pub trait Dialect: Sized + Clone + Debug + PartialEq + 'static {
    /// First word of a function's text.
    const KEYWORD: &'static str;
    type Op: OpInfo<Self>;
    type Type: Copy + PartialEq + Debug + Display + Hash + Eq + std::str::FromStr<Err = String>;

    /// Checks what result types do not show: what an op's regions hold. Called by the verifier.
    fn verify_op(func: &Function<Self>, op: &Self::Op) -> Result<(), String>;
}

/// Types of an op's results.
pub type Types<D> = SmallVec<[<D as Dialect>::Type; 1]>;

/// What passes need to know of an op without knowing the dialect.
pub trait OpInfo<D: Dialect>: Clone + PartialEq + Eq + Hash + Debug {
    fn name(&self) -> &'static str;
    fn effects(&self) -> Effects;
    fn each_value(&self, f: &mut dyn FnMut(Value));
    fn each_value_mut(&mut self, f: &mut dyn FnMut(&mut Value));
    fn each_block(&self, f: &mut dyn FnMut(Block));
    fn infer(&self, func: &Function<D>) -> Result<Types<D>, String>;
    fn to_raw(&self) -> RawOp;
    fn from_raw(raw: RawOp) -> Result<Self, String>;

    /// Whether each lane of the results comes from the same lane of the operands, so that on scalars
    /// the op may be run with a whole tile in the place of each.
    fn is_lanewise(&self) -> bool;

    /// Whether its regions are functions of their parameters alone: they see no value from outside,
    /// so nothing may be moved or forwarded into them.
    fn is_isolated(&self) -> bool;

    fn is_terminator(&self) -> bool {
        self.effects() == Effects::Terminator
    }
}

/// What an op does besides making values.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Effects {
    /// Nothing: equal ops with equal operands may be merged, unused ones dropped.
    Pure,
    /// Reads memory.
    Reads,
    /// Writes memory, or reads and writes it.
    Writes,
    /// Has regions; its effects are theirs.
    Control,
    /// Ends a block.
    Terminator,
    /// Must stay where it is, touches no memory (assertions, printing, hints to the compiler).
    Stays,
}

/// An op as its text shows it: what parser and printer share, so that neither knows any op.
///
/// ```text
/// name.suffix %operand, %operand key=word key=[%a, %b] { region } { region }
/// ```
#[derive(Default, Debug, Clone)]
pub struct RawOp {
    pub name: String,
    pub suffix: Option<String>,
    pub operands: Vec<Value>,
    pub attrs: Vec<(String, RawAttr)>,
    pub regions: Vec<Block>,
    /// Types of the results as the text gives them, for ops that cannot infer them.
    pub types: Vec<String>,
    /// How many operands and regions `take` has consumed.
    next_operand: usize,
    next_region: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RawAttr {
    Word(String),
    Value(Value),
    List(Vec<RawAttr>),
}

impl RawOp {
    pub fn new(name: &str) -> RawOp {
        RawOp { name: name.to_string(), ..RawOp::default() }
    }

    fn attr(&mut self, name: &str) -> Option<RawAttr> {
        let i = self.attrs.iter().position(|(n, _)| n == name)?;
        Some(self.attrs.remove(i).1)
    }

    /// Complains about whatever no field took.
    pub fn finish(self) -> Result<(), String> {
        if let Some((name, _)) = self.attrs.first() {
            return Err(format!("`{}` has no attribute `{name}`", self.name));
        }
        if self.next_operand < self.operands.len() {
            return Err(format!("`{}` takes {} operands", self.name, self.next_operand));
        }
        if self.next_region < self.regions.len() {
            return Err(format!("`{}` takes {} regions", self.name, self.next_region));
        }
        match self.suffix {
            Some(s) => Err(format!("`{}` takes no suffix `.{s}`", self.name)),
            None => Ok(()),
        }
    }
}

/// A type that may stand as a field of an op.
pub trait Field: Sized {
    fn each_value(&self, _: &mut dyn FnMut(Value)) {}
    fn each_value_mut(&mut self, _: &mut dyn FnMut(&mut Value)) {}
    fn each_block(&self, _: &mut dyn FnMut(Block)) {}
    fn put(&self, name: &'static str, raw: &mut RawOp);
    fn take(name: &'static str, raw: &mut RawOp) -> Result<Self, String>;
}

impl Field for Value {
    fn each_value(&self, f: &mut dyn FnMut(Value)) {
        f(*self);
    }
    fn each_value_mut(&mut self, f: &mut dyn FnMut(&mut Value)) {
        f(self);
    }
    fn put(&self, _: &'static str, raw: &mut RawOp) {
        raw.operands.push(*self);
    }
    fn take(name: &'static str, raw: &mut RawOp) -> Result<Value, String> {
        let value = raw.operands.get(raw.next_operand).copied();
        raw.next_operand += 1;
        value.ok_or_else(|| format!("`{}` wants an operand `{name}`", raw.name))
    }
}

impl Field for Option<Value> {
    fn each_value(&self, f: &mut dyn FnMut(Value)) {
        self.iter().copied().for_each(f);
    }
    fn each_value_mut(&mut self, f: &mut dyn FnMut(&mut Value)) {
        self.iter_mut().for_each(f);
    }
    fn put(&self, name: &'static str, raw: &mut RawOp) {
        if let Some(v) = self {
            raw.attrs.push((name.to_string(), RawAttr::Value(*v)));
        }
    }
    fn take(name: &'static str, raw: &mut RawOp) -> Result<Option<Value>, String> {
        match raw.attr(name) {
            None => Ok(None),
            Some(RawAttr::Value(v)) => Ok(Some(v)),
            Some(_) => Err(format!("`{name}` must be a value")),
        }
    }
}

impl Field for Vec<Value> {
    fn each_value(&self, f: &mut dyn FnMut(Value)) {
        self.iter().copied().for_each(f);
    }
    fn each_value_mut(&mut self, f: &mut dyn FnMut(&mut Value)) {
        self.iter_mut().for_each(f);
    }
    fn put(&self, name: &'static str, raw: &mut RawOp) {
        if !self.is_empty() {
            let list = self.iter().map(|v| RawAttr::Value(*v)).collect();
            raw.attrs.push((name.to_string(), RawAttr::List(list)));
        }
    }
    fn take(name: &'static str, raw: &mut RawOp) -> Result<Vec<Value>, String> {
        let wrong = || format!("`{name}` must be a list of values");
        match raw.attr(name) {
            None => Ok(Vec::new()),
            Some(RawAttr::List(list)) => list
                .into_iter()
                .map(|a| if let RawAttr::Value(v) = a { Ok(v) } else { Err(wrong()) })
                .collect(),
            Some(_) => Err(wrong()),
        }
    }
}

impl Field for Block {
    fn each_block(&self, f: &mut dyn FnMut(Block)) {
        f(*self);
    }
    fn put(&self, _: &'static str, raw: &mut RawOp) {
        raw.regions.push(*self);
    }
    fn take(name: &'static str, raw: &mut RawOp) -> Result<Block, String> {
        let block = raw.regions.get(raw.next_region).copied();
        raw.next_region += 1;
        block.ok_or_else(|| format!("`{}` wants a region for its {name}", raw.name))
    }
}

/// A part of an op that is neither a value nor a region: it prints as one word.
pub trait Attr: Sized + PartialEq {
    fn to_word(&self) -> String;
    fn from_word(word: &str) -> Option<Self>;
    /// The value that is left out in text.
    fn omitted() -> Option<Self> {
        None
    }
    /// Whether the word is written behind the op's name: `binary.add`.
    const SUFFIX: bool = false;
}

impl<A: Attr> Field for A {
    fn put(&self, name: &'static str, raw: &mut RawOp) {
        if A::SUFFIX {
            raw.suffix = Some(self.to_word());
        } else if A::omitted().as_ref() != Some(self) {
            raw.attrs.push((name.to_string(), RawAttr::Word(self.to_word())));
        }
    }
    fn take(name: &'static str, raw: &mut RawOp) -> Result<A, String> {
        let word = if A::SUFFIX {
            raw.suffix.take()
        } else {
            match raw.attr(name) {
                None => None,
                Some(RawAttr::Word(w)) => Some(w),
                Some(_) => return Err(format!("`{name}` must be a word")),
            }
        };
        match word {
            Some(w) => A::from_word(&w).ok_or_else(|| format!("`{w}` is no value of `{name}`")),
            None => A::omitted().ok_or_else(|| format!("`{}` wants `{name}`", raw.name)),
        }
    }
}

/// Attributes whose text is `Display` and `FromStr`.
macro_rules! attr_by_text {
    ($($ty:ty $(, omitted = $omitted:expr)?;)*) => { $(
        impl $crate::op::Attr for $ty {
            fn to_word(&self) -> String { self.to_string() }
            fn from_word(word: &str) -> Option<$ty> { word.parse().ok() }
            $( fn omitted() -> Option<$ty> { Some($omitted) } )?
        }
    )* };
}

attr_by_text! {
    i64;
    u32;
    usize;
    bool, omitted = false;
    crate::types::Type;
    crate::types::Shape;
    crate::types::Elem;
}

/// Fieldless enums that are attributes: words from the table, the first one left out in text if
/// marked `omitted`.
macro_rules! attr_enum {
    ($( $(#[$doc:meta])* $vis:vis enum $name:ident $([$omit:ident])? { $( $(#[$vdoc:meta])* $variant:ident = $word:literal, )* } )*) => { $(
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
        $vis enum $name { $( $(#[$vdoc])* $variant, )* }

        impl $name {
            pub const ALL: &'static [$name] = &[$( $name::$variant, )*];
            pub const fn name(self) -> &'static str { match self { $( $name::$variant => $word, )* } }
            pub fn from_name(word: &str) -> Option<$name> { $name::ALL.iter().copied().find(|x| x.name() == word) }
        }

        impl $crate::op::Attr for $name {
            fn to_word(&self) -> String { self.name().to_string() }
            fn from_word(word: &str) -> Option<$name> { $name::from_name(word) }
            fn omitted() -> Option<$name> { attr_enum!(@omit $name $($omit)?) }
            const SUFFIX: bool = attr_enum!(@suffix $($omit)?);
        }
    )* };
    (@omit $name:ident omitted) => { Some($name::ALL[0]) };
    (@omit $name:ident suffix) => { None };
    (@omit $name:ident) => { None };
    (@suffix suffix) => { true };
    (@suffix omitted) => { false };
    (@suffix) => { false };
}
pub(crate) use attr_enum;

/// Declares a dialect's ops. Each row: `/// doc`, `"text name" Variant { field: Type, … } effects
/// => infer;` where `infer(func, &field, …)` gives the result types. Behind the effects stands
/// `lanewise` if the op works lane by lane, `isolated` if its regions see no outer value.
macro_rules! ops {
    (@lanewise lanewise) => { true };
    (@lanewise $($other:ident)?) => { false };
    (@isolated isolated) => { true };
    (@isolated $($other:ident)?) => { false };
    ( $(#[$edoc:meta])* pub enum $Op:ident for $Dialect:ident {
        $( $(#[doc = $doc:literal])+ $text:literal $V:ident { $($field:ident : $ty:ty),* $(,)? } $effects:ident $($trait:ident)? => $infer:path; )*
    } ) => {
        $(#[$edoc])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub enum $Op { $( $(#[doc = $doc])+ $V { $($field: $ty),* }, )* }

        impl $Op {
            /// Name and documentation of every op.
            pub const TABLE: &'static [(&'static str, &'static str)] = &[$( ($text, concat!($($doc, "\n"),+)), )*];
        }

        impl $crate::op::OpInfo<$Dialect> for $Op {
            fn name(&self) -> &'static str { match self { $( $Op::$V { .. } => $text, )* } }

            fn effects(&self) -> $crate::op::Effects { match self { $( $Op::$V { .. } => $crate::op::Effects::$effects, )* } }

            fn is_lanewise(&self) -> bool { match self { $( $Op::$V { .. } => ops!(@lanewise $($trait)?), )* } }

            fn is_isolated(&self) -> bool { match self { $( $Op::$V { .. } => ops!(@isolated $($trait)?), )* } }

            fn each_value(&self, f: &mut dyn FnMut($crate::Value)) {
                match self { $( $Op::$V { $($field),* } => { let _ = &f; $( $crate::op::Field::each_value($field, f); )* } )* }
            }

            fn each_value_mut(&mut self, f: &mut dyn FnMut(&mut $crate::Value)) {
                match self { $( $Op::$V { $($field),* } => { let _ = &f; $( $crate::op::Field::each_value_mut($field, f); )* } )* }
            }

            fn each_block(&self, f: &mut dyn FnMut($crate::Block)) {
                match self { $( $Op::$V { $($field),* } => { let _ = &f; $( $crate::op::Field::each_block($field, f); )* } )* }
            }

            fn infer(&self, func: &$crate::Function<$Dialect>) -> Result<$crate::op::Types<$Dialect>, String> {
                match self { $( $Op::$V { $($field),* } => $infer(func $(, $field)*), )* }
            }

            fn to_raw(&self) -> $crate::op::RawOp {
                let mut raw = $crate::op::RawOp::new(self.name());
                match self { $( $Op::$V { $($field),* } => { $( $crate::op::Field::put($field, stringify!($field), &mut raw); )* } )* }
                raw
            }

            fn from_raw(mut raw: $crate::op::RawOp) -> Result<$Op, String> {
                let op = match raw.name.as_str() {
                    $( $text => $Op::$V { $( $field: $crate::op::Field::take(stringify!($field), &mut raw)? ),* }, )*
                    other => return Err(format!("no op is called `{other}`")),
                };
                raw.finish()?;
                Ok(op)
            }
        }
    };
}
pub(crate) use ops;
