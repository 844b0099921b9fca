//! What names stand for while a kernel is compiled.

use crate::host::{FnRef, HostValue, ObjRef};
use crate::names::{Call, Entry};
use naiad_ir::{Elem, Scalar, Shape, Type, Value};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A plain Python value known at compile time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Const {
    None,
    Ellipsis,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Rc<str>),
}

/// The value of an expression or variable.
#[derive(Clone)]
pub(crate) enum Val {
    /// A scalar, pointer or tile of the running kernel.
    Tensor(Value),
    /// A constexpr.
    Const(Const),
    /// A tuple or list.
    Tuple(Rc<Tuple>),
    /// A dtype, pointer type or block type as an object.
    DType(Type),
    /// The type of a constexpr, which is its value.
    ConstexprType(Rc<Val>),
    /// A jit function.
    Function(FnRef),
    /// A public name of the language.
    Builtin(&'static Entry),
    /// A method of a value, not yet called.
    Method(Rc<Val>, &'static Entry),
    /// A block pointer or a tensor descriptor.
    Window(Rc<Window>),
    /// `range(…)` and its kin, fit only as what a `for` runs over.
    Iter(Rc<Iter>),
    /// An object of the host that is opaque here.
    Object(ObjRef, Rc<str>),
    /// A name of the language that Naiad does not have yet.
    Missing(Rc<str>),
    /// A name that has no value here, and why: it was assigned on one path only, or it was a loop's
    /// variable.
    Undefined(Rc<str>),
}

pub(crate) struct Tuple {
    pub items: Vec<Val>,
    pub names: Option<Arc<[String]>>,
}

/// A block of a strided tensor in memory, which moves over it.
#[derive(Clone)]
pub(crate) struct Window {
    pub kind: WindowKind,
    /// Where the tensor's first element is.
    pub base: Value,
    /// Extents of the tensor, as i64; of a descriptor i32.
    pub shape: Vec<Value>,
    /// In elements, as i64.
    pub strides: Vec<Value>,
    /// Where a block pointer's block begins, as i64. A descriptor is told at each access.
    pub offsets: Vec<Value>,
    pub block: Shape,
    /// What a descriptor reads outside of the tensor.
    pub padding: Padding,
    /// Whether fp32 is rounded to tf32 as it is read.
    pub round_tf32: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum WindowKind {
    BlockPointer,
    Descriptor,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Padding {
    /// Nothing is said of it, so it may be anything.
    Unsaid,
    Zero,
    Nan,
}

impl WindowKind {
    pub fn name(self) -> &'static str {
        match self {
            WindowKind::BlockPointer => "a block pointer",
            WindowKind::Descriptor => "a tensor descriptor",
        }
    }
}

impl Window {
    /// Its parts that the running kernel holds.
    pub fn values(&self) -> impl Iterator<Item = Value> {
        let parts = [&self.shape, &self.strides, &self.offsets];
        std::iter::once(self.base).chain(parts.into_iter().flatten().copied())
    }

    /// The same with other such parts, taken in that order.
    pub fn with_values(&self, values: &mut impl Iterator<Item = Value>) -> Window {
        let mut next = |old: Value| values.next().unwrap_or(old);
        let base = next(self.base);
        let mut all = |old: &[Value]| old.iter().map(|&v| next(v)).collect();
        let (shape, strides, offsets) = (all(&self.shape), all(&self.strides), all(&self.offsets));
        Window { base, shape, strides, offsets, ..self.clone() }
    }

    /// What is fixed at compile time is the same.
    pub fn same_form(&self, other: &Window) -> bool {
        (self.kind, self.block, self.padding, self.round_tf32)
            == (other.kind, other.block, other.padding, other.round_tf32)
    }
}

/// What a `for` statement runs over.
pub(crate) struct Iter {
    pub bounds: [Val; 3],
    /// `static_range`: unrolled here, the variable is a constexpr.
    pub unrolled: bool,
    pub hints: naiad_ir::tile::LoopHints,
}

impl Val {
    pub const NONE: Val = Val::Const(Const::None);

    pub fn int(i: i128) -> Val {
        Val::Const(Const::Int(i))
    }

    pub fn bool(b: bool) -> Val {
        Val::Const(Const::Bool(b))
    }

    pub fn str(s: &str) -> Val {
        Val::Const(Const::Str(s.into()))
    }

    pub fn tuple(items: Vec<Val>) -> Val {
        Val::Tuple(Rc::new(Tuple { items, names: None }))
    }

    pub fn is_none(&self) -> bool {
        matches!(self, Val::Const(Const::None))
    }

    pub fn from_host(value: HostValue) -> Val {
        match value {
            HostValue::None => Val::NONE,
            HostValue::Bool(b) => Val::bool(b),
            HostValue::Int(i) => Val::int(i),
            HostValue::Float(f) => Val::Const(Const::Float(f)),
            HostValue::Str(s) => Val::str(&s),
            HostValue::Tuple { items, names } => {
                let items = items.into_iter().map(Val::from_host).collect();
                Val::Tuple(Rc::new(Tuple { items, names }))
            }
            HostValue::DType(elem) => Val::DType(Type { elem, shape: Shape::SCALAR }),
            HostValue::Function(f) => Val::Function(f),
            HostValue::Builtin(path) => match crate::names::lookup(&path) {
                Some(Entry { call: Call::Missing, .. }) | None => Val::Missing(path.into()),
                Some(Entry { call: Call::Value(value), .. }) => value(),
                Some(entry) => Val::Builtin(entry),
            },
            HostValue::Constexpr(inner) => Val::from_host(*inner),
            HostValue::Object(o, what) => Val::Object(o, what.into()),
        }
    }

    /// The value as one that the host knows; none for what exists only here.
    pub fn to_host(&self) -> Option<HostValue> {
        Some(match self {
            Val::Const(Const::None) => HostValue::None,
            Val::Const(Const::Bool(b)) => HostValue::Bool(*b),
            Val::Const(Const::Int(i)) => HostValue::Int(*i),
            Val::Const(Const::Float(f)) => HostValue::Float(*f),
            Val::Const(Const::Str(s)) => HostValue::Str(s.to_string()),
            Val::Tuple(t) => HostValue::Tuple {
                items: t.items.iter().map(Val::to_host).collect::<Option<Vec<_>>>()?,
                names: t.names.clone(),
            },
            Val::DType(ty) if ty.is_scalar() => HostValue::DType(ty.elem),
            Val::Function(f) => HostValue::Function(*f),
            Val::Builtin(entry) => HostValue::Builtin(entry.path.to_string()),
            Val::Object(o, what) => HostValue::Object(*o, what.to_string()),
            Val::Const(Const::Ellipsis)
            | Val::DType(_)
            | Val::ConstexprType(_)
            | Val::Tensor(_)
            | Val::Method(..)
            | Val::Window(_)
            | Val::Iter(_)
            | Val::Missing(_)
            | Val::Undefined(_) => return None,
        })
    }

    /// Python's truth of a compile-time value; none of one of the running kernel.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Val::Tensor(_) => None,
            Val::Const(c) => Some(c.truthy()),
            Val::Tuple(t) => Some(!t.items.is_empty()),
            _ => Some(true),
        }
    }

    /// Python's `==` on compile-time values; none where a part exists only at run time.
    pub fn const_eq(&self, other: &Val) -> Option<bool> {
        match (self, other) {
            (Val::Const(a), Val::Const(b)) => Some(match (a.as_number(), b.as_number()) {
                (Some(x), Some(y)) => x.compare(&y) == Some(std::cmp::Ordering::Equal),
                _ => a == b,
            }),
            (Val::DType(a), Val::DType(b)) => Some(a == b),
            (Val::ConstexprType(a), Val::ConstexprType(b)) => a.const_eq(b),
            (Val::Function(a), Val::Function(b)) => Some(a == b),
            (Val::Object(a, _), Val::Object(b, _)) => Some(a == b),
            (Val::Builtin(a), Val::Builtin(b)) => Some(std::ptr::eq(*a, *b)),
            (Val::Tuple(a), Val::Tuple(b)) => {
                if a.items.len() != b.items.len() {
                    return Some(false);
                }
                let mut all = true;
                for (x, y) in a.items.iter().zip(&b.items) {
                    all &= x.const_eq(y)?;
                }
                Some(all)
            }
            (Val::Tensor(_) | Val::Window(_), _) | (_, Val::Tensor(_) | Val::Window(_)) => None,
            _ => Some(false),
        }
    }
}

/// A number of Python: its integers and booleans, or a float.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(i) => i as f64,
            Number::Float(f) => f,
        }
    }

    pub fn compare(&self, other: &Number) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => Some(a.cmp(b)),
            _ => self.as_f64().partial_cmp(&other.as_f64()),
        }
    }
}

impl Const {
    /// The number that Python computes with: booleans are integers there.
    pub fn as_number(&self) -> Option<Number> {
        match self {
            Const::Bool(b) => Some(Number::Int(*b as i128)),
            Const::Int(i) => Some(Number::Int(*i)),
            Const::Float(f) => Some(Number::Float(*f)),
            Const::None | Const::Ellipsis | Const::Str(_) => None,
        }
    }

    pub fn truthy(&self) -> bool {
        match self {
            Const::None => false,
            Const::Ellipsis => true,
            Const::Bool(b) => *b,
            Const::Int(i) => *i != 0,
            Const::Float(f) => *f != 0.0,
            Const::Str(s) => !s.is_empty(),
        }
    }

    /// The type a literal gets where nothing else decides; none for what is no number, or an
    /// integer beyond 64 bits.
    pub fn natural_type(&self) -> Option<Scalar> {
        match *self {
            Const::Bool(_) => Some(Scalar::I1),
            Const::Int(i) => {
                let fits = [Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64];
                fits.into_iter().find(|s| (s.int_min()..=s.int_max()).contains(&i))
            }
            Const::Float(f) => {
                let magnitude = f.abs();
                let normal = magnitude >= f32::MIN_POSITIVE as f64 && magnitude <= f32::MAX as f64;
                let special = f == 0.0 || !f.is_finite();
                Some(if normal || special { Scalar::F32 } else { Scalar::F64 })
            }
            Const::None | Const::Ellipsis | Const::Str(_) => None,
        }
    }
}

impl fmt::Display for Const {
    /// As Python's `repr`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Const::None => f.write_str("None"),
            Const::Ellipsis => f.write_str("..."),
            Const::Bool(true) => f.write_str("True"),
            Const::Bool(false) => f.write_str("False"),
            Const::Int(i) => write!(f, "{i}"),
            Const::Float(x) if x.is_finite() => write!(f, "{x:?}"),
            Const::Float(x) => write!(f, "{}", x.to_string().to_lowercase()),
            Const::Str(s) => write!(f, "'{s}'"),
        }
    }
}

/// A type in the words that users of Triton know: `int32`, `float16 tile of shape (32, 64)`,
/// `pointer to float32`.
pub(crate) fn type_name(ty: Type) -> String {
    let elem = match ty.elem {
        Elem::Scalar(s) => s.triton_name().to_string(),
        Elem::Pointer(p) => format!(
            "pointer to {}{}",
            if p.is_const { "const " } else { "" },
            p.pointee.triton_name()
        ),
    };
    if ty.is_scalar() { elem } else { format!("{elem} tile of shape {}", ty.shape) }
}
