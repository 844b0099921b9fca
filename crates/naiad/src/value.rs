//! An argument of a launch as its host gives it, before it is anything of a kernel.

use crate::HostValue;
use naiad_front::DescriptorSpec;
use naiad_interp::View;
use naiad_ir::{Pointer, Scalar, Shape};
use std::ops::Range;
use std::sync::Arc;

/// One argument.
#[derive(Clone, Debug)]
pub enum Value {
    /// Memory: becomes a pointer.
    Tensor(Tensor),
    /// Arguments in a tuple, memory among them; `names` are the fields of a named one.
    Tuple { items: Vec<Value>, names: Option<Arc<[String]>> },
    /// Memory that is read and written in blocks.
    Descriptor(Box<Descriptor>),
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
    pub location: Location,
}

/// Where memory is, and with it where kernels run that are given it.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum Location {
    #[default]
    Host,
    /// On the GPU of this number. Of memory there no more than its address is looked at.
    Cuda(u32),
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Location::Host => f.write_str("on the CPU"),
            Location::Cuda(ordinal) => write!(f, "on GPU {ordinal}"),
        }
    }
}

/// A tensor descriptor made on the host.
#[derive(Clone, Debug)]
pub struct Descriptor {
    pub base: Tensor,
    pub shape: Vec<i64>,
    /// In elements.
    pub strides: Vec<i64>,
    pub block_shape: Vec<i64>,
    /// What is read outside of the tensor is NaN, not 0.
    pub pad_with_nan: bool,
    pub round_f32_to_tf32: bool,
}

impl Descriptor {
    /// What is fixed of it in a compiled kernel, if it is one that hardware could have.
    pub(crate) fn spec(&self, pointer: Pointer) -> Result<DescriptorSpec, String> {
        let block = Shape::new(&self.block_shape).map_err(|_| {
            format!("has blocks {:?}: extents must be powers of 2", self.block_shape)
        })?;
        let (pad_with_nan, round_f32_to_tf32) = (self.pad_with_nan, self.round_f32_to_tf32);
        let spec = DescriptorSpec { pointer, block, pad_with_nan, round_f32_to_tf32 };
        spec.check()?;
        let rank = block.rank();
        if self.shape.len() != rank || self.strides.len() != rank {
            return Err(format!(
                "has {} extents, {} strides and blocks of {rank} axes; they must be as many",
                self.shape.len(),
                self.strides.len()
            ));
        }
        if !self.base.address.is_multiple_of(16) {
            return Err("begins at an address that is no multiple of 16 bytes".into());
        }
        let size = self.base.elem.size() as i128;
        let (last, outer) = self.strides.split_last().unwrap_or((&1, &[]));
        if *last != 1 {
            return Err(format!("has the last stride {last}; it must be 1"));
        }
        if let Some(stride) = outer.iter().find(|s| (i128::from(**s) * size) % 16 != 0) {
            return Err(format!(
                "has a stride of {stride} elements, which is no multiple of 16 bytes"
            ));
        }
        if let Some(extent) = self.shape.iter().find(|e| i32::try_from(**e).is_err() || **e < 0) {
            return Err(format!("has the extent {extent}, which is no number of 32 bits"));
        }
        Ok(spec)
    }
}

impl Value {
    pub fn tuple(items: Vec<Value>) -> Value {
        Value::Tuple { items, names: None }
    }

    /// What the value is, in a few words for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Value::Tensor(t) => format!("a tensor of {}", t.elem.triton_name()),
            Value::Tuple { .. } => "a tuple".into(),
            Value::Descriptor(_) => "a tensor descriptor".into(),
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
