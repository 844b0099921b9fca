//! An argument of a launch as its host gives it, before it is anything of a kernel.

use crate::HostValue;
use naiad_interp::View;
use naiad_ir::Scalar;
use std::ops::Range;

/// One argument.
#[derive(Clone, Debug)]
pub enum Value {
    /// Memory: becomes a pointer.
    Tensor(Tensor),
    /// Arguments in a tuple, memory among them.
    Tuple(Vec<Value>),
    /// Anything that is no memory.
    Host(HostValue),
}

/// Memory with a view on it.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub elem: Scalar,
    /// Address of the element at index 0 of the view.
    pub address: usize,
    /// Addresses of the whole allocation that the view is part of.
    pub storage: Range<usize>,
    pub view: Option<View>,
    pub writable: bool,
}

impl Value {
    /// What the value is, in a few words for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Value::Tensor(t) => format!("a tensor of {}", t.elem.triton_name()),
            Value::Tuple(_) => "a tuple".into(),
            Value::Host(v) => describe(v),
        }
    }
}

fn describe(value: &HostValue) -> String {
    match value {
        HostValue::None => "None".into(),
        HostValue::Bool(b) => format!("the bool {}", if *b { "True" } else { "False" }),
        HostValue::Int(i) => format!("the int {i}"),
        HostValue::Float(f) => format!("the float {f:?}"),
        HostValue::Str(s) => format!("the str {s:?}"),
        HostValue::Tuple { .. } => "a tuple".into(),
        HostValue::DType(elem) => match elem.scalar() {
            Some(s) => format!("the dtype {}", s.triton_name()),
            None => "a pointer type".into(),
        },
        HostValue::Function(_) => "a jit function".into(),
        HostValue::Builtin(name) => format!("the function `tl.{name}`"),
        HostValue::Constexpr(inner) => format!("a constexpr, {}", describe(inner)),
        HostValue::Object(_, what) => what.clone(),
    }
}

macro_rules! from_host {
    ($($ty:ty => $variant:ident as $to:ty;)*) => {
        $( impl From<$ty> for Value {
            fn from(v: $ty) -> Value { Value::Host(HostValue::$variant(v as $to)) }
        } )*
    };
}

from_host! {
    bool => Bool as bool;
    i8 => Int as i128; i16 => Int as i128; i32 => Int as i128; i64 => Int as i128; isize => Int as i128;
    u8 => Int as i128; u16 => Int as i128; u32 => Int as i128; u64 => Int as i128; usize => Int as i128;
    f32 => Float as f64; f64 => Float as f64;
}

impl From<&str> for Value {
    fn from(v: &str) -> Value {
        Value::Host(HostValue::Str(v.to_string()))
    }
}

impl From<HostValue> for Value {
    fn from(v: HostValue) -> Value {
        Value::Host(v)
    }
}

impl From<Tensor> for Value {
    fn from(v: Tensor) -> Value {
        Value::Tensor(v)
    }
}
