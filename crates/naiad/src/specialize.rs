//! What an argument becomes in the kernel, by Triton's rules.
//!
//! | argument | in the kernel |
//! |---|---|
//! | tensor | pointer to its element type |
//! | integer within 32 bits, 64 bits, unsigned 64 bits | i32, i64, u64; one that is 1 is constexpr |
//! | bool | i1, never constexpr |
//! | float | fp32, whatever its value |
//! | `None`, `tl.constexpr(v)`, a jit function | constexpr |
//! | tuple | tuple, element by element |
//! | anything, to a parameter under `tl.constexpr` | constexpr |
//!
//! An annotation replaces the type and then an integer that is 1 stays a value, as it does under
//! `do_not_specialize`, which however says nothing about the elements of a tuple.

use crate::annotation::Annotation;
use crate::signature::{Param, Signature};
use crate::value::{Descriptor, Location, Tensor, Value};
use crate::{HostValue, ParamSpec, Result};
use naiad_interp::{Arg, TensorArg};
use naiad_ir::scalar::{Rounding, cast_bits};
use naiad_ir::{Elem, Pointer, Scalar, Shape, Type};
use smallvec::SmallVec;
use std::sync::Arc;

/// One specialization under construction: a spec for each parameter, and what becomes of their values.
pub(crate) struct Specialization {
    pub specs: Vec<ParamSpec>,
    pub values: Values,
}

/// The run-time arguments, in the order of the IR's parameters.
pub(crate) struct Values {
    pub args: Vec<Arg>,
    /// The memory among them.
    pub memory: SmallVec<[Located; 8]>,
}

/// Memory that is given for a parameter.
#[derive(Copy, Clone)]
pub(crate) struct Located {
    pub param: u32,
    pub address: usize,
    pub location: Location,
}

/// Why a value cannot be the argument, with what to do about it.
pub(crate) struct Misfit {
    why: String,
    help: Option<String>,
}

/// A parameter with where it stands.
#[derive(Copy, Clone)]
struct Place<'p> {
    param: &'p Param,
    index: usize,
}

impl Specialization {
    pub fn new(params: usize) -> Specialization {
        Specialization { specs: Vec::with_capacity(params), values: Values::new(params) }
    }

    /// Takes `value` for the next parameter of `signature`.
    pub fn push(&mut self, signature: &Signature, value: Value) -> Result<()> {
        let index = self.specs.len();
        match self.values.take(&signature.params[index], index, value) {
            Ok(spec) => self.specs.push(spec),
            Err(misfit) => {
                return Err(signature.misfit(index, &misfit.why, misfit.help.as_deref()));
            }
        }
        Ok(())
    }
}

impl Values {
    pub fn new(params: usize) -> Values {
        Values { args: Vec::with_capacity(params), memory: SmallVec::new() }
    }

    /// Takes `value` for the parameter at `index`; gives what that becomes of it.
    #[inline]
    pub fn take(
        &mut self,
        param: &Param,
        index: usize,
        value: Value,
    ) -> std::result::Result<ParamSpec, Misfit> {
        match param.info.is_constexpr {
            true => constant(value).map(ParamSpec::Constexpr),
            false => self.run_time(Place { param, index }, Demand::of(param), value),
        }
    }

    #[inline]
    fn run_time(
        &mut self,
        at: Place<'_>,
        demand: Demand,
        value: Value,
    ) -> std::result::Result<ParamSpec, Misfit> {
        match value {
            Value::Tensor(tensor) => self.tensor(at, demand, tensor),
            Value::Tuple { items, names } => self.tuple(at, items, names),
            Value::Descriptor(d) => self.descriptor(at, *d),
            Value::Host(HostValue::Tuple { items, names }) => {
                self.tuple(at, items.into_iter().map(Value::Host).collect(), names)
            }
            Value::Host(HostValue::None) => Ok(ParamSpec::Constexpr(HostValue::None)),
            Value::Host(HostValue::Constexpr(inner)) => Ok(ParamSpec::Constexpr(*inner)),
            Value::Host(f @ HostValue::Function(_)) => Ok(ParamSpec::Constexpr(f)),
            Value::Host(HostValue::Bool(b)) => self.number(demand, Number::Bool(b)),
            Value::Host(HostValue::Int(i)) => self.number(demand, Number::Int(i)),
            Value::Host(HostValue::Float(f)) => self.number(demand, Number::Float(f)),
            Value::Host(
                other @ (HostValue::Str(_)
                | HostValue::DType(_)
                | HostValue::Builtin(_)
                | HostValue::Object(..)),
            ) => Err(Misfit {
                why: format!("cannot be {}", Value::Host(other).describe()),
                help: Some(format!(
                    "a run-time argument is a tensor, a number, None or a tuple of those; to pass anything else, annotate the parameter: `{}: tl.constexpr`",
                    at.param.info.name
                )),
            }),
        }
    }

    fn tuple(
        &mut self,
        at: Place<'_>,
        items: Vec<Value>,
        names: Option<Arc<[String]>>,
    ) -> std::result::Result<ParamSpec, Misfit> {
        let specs = items.into_iter().map(|item| self.run_time(at, Demand::FREE, item));
        Ok(ParamSpec::Tuple { items: specs.collect::<std::result::Result<_, _>>()?, names })
    }

    #[inline]
    fn tensor(
        &mut self,
        at: Place<'_>,
        demand: Demand,
        tensor: Tensor,
    ) -> std::result::Result<ParamSpec, Misfit> {
        let own = Pointer::to(tensor.elem);
        let pointer = match demand.annotation {
            Annotation::Free => own,
            Annotation::ConstPointer => Pointer { is_const: true, ..own },
            Annotation::Forced(Elem::Pointer(p)) => p,
            Annotation::Forced(Elem::Scalar(s)) => {
                return Err(Misfit {
                    why: format!("is annotated {}, which no tensor can be", s.triton_name()),
                    help: Some("pass a number, or drop the annotation".into()),
                });
            }
        };
        // Under another width the view's shape and strides would mean nothing.
        let view = tensor.view.filter(|_| pointer.pointee.size() == tensor.elem.size());
        let (address, location) = (tensor.address, tensor.location);
        self.memory.push(Located { param: at.index as u32, address, location });
        self.args.push(Arg::Tensor(TensorArg {
            address: tensor.address,
            storage: tensor.storage,
            view,
            writable: tensor.writable,
        }));
        Ok(ParamSpec::Value(Type { elem: Elem::Pointer(pointer), shape: Shape::SCALAR }))
    }

    fn descriptor(
        &mut self,
        at: Place<'_>,
        descriptor: Descriptor,
    ) -> std::result::Result<ParamSpec, Misfit> {
        let pointer = Pointer::to(descriptor.base.elem);
        let spec = descriptor.spec(pointer).map_err(|why| Misfit { why, help: None })?;
        self.tensor(at, Demand::FREE, descriptor.base)?;
        let extents = descriptor.shape.iter().map(|&e| Arg::Scalar(e as u64 & 0xffff_ffff));
        self.args.extend(extents);
        self.args.extend(descriptor.strides.iter().map(|&s| Arg::Scalar(s as u64)));
        Ok(ParamSpec::Descriptor(spec))
    }

    fn number(&mut self, demand: Demand, number: Number) -> std::result::Result<ParamSpec, Misfit> {
        let scalar = match demand.annotation {
            Annotation::Forced(Elem::Scalar(s)) => s,
            Annotation::Forced(Elem::Pointer(_)) | Annotation::ConstPointer => {
                return Err(Misfit {
                    why: format!("is annotated a pointer and cannot be {}", number.describe()),
                    help: Some(
                        "pass the tensor itself: a bare address says nothing of its extent".into(),
                    ),
                });
            }
            Annotation::Free => match number {
                Number::Int(1) if demand.specialize => {
                    return Ok(ParamSpec::Constexpr(HostValue::Int(1)));
                }
                _ => number.natural_type().ok_or_else(|| Misfit {
                    why: format!("cannot be {}: it has more than 64 bits", number.describe()),
                    help: None,
                })?,
            },
        };
        self.args.push(Arg::Scalar(number.bits(scalar)?));
        Ok(ParamSpec::Value(Type::scalar(scalar)))
    }
}

/// What a parameter demands of its argument's type.
#[derive(Copy, Clone)]
struct Demand {
    annotation: Annotation,
    specialize: bool,
}

impl Demand {
    const FREE: Demand = Demand { annotation: Annotation::Free, specialize: true };

    fn of(param: &Param) -> Demand {
        Demand { annotation: param.annotation, specialize: param.specialize }
    }
}

#[derive(Copy, Clone)]
enum Number {
    Bool(bool),
    Int(i128),
    Float(f64),
}

impl Number {
    fn natural_type(self) -> Option<Scalar> {
        match self {
            Number::Bool(_) => Some(Scalar::I1),
            Number::Float(_) => Some(Scalar::F32),
            Number::Int(i) if i32::try_from(i).is_ok() => Some(Scalar::I32),
            Number::Int(i) if i64::try_from(i).is_ok() => Some(Scalar::I64),
            Number::Int(i) => u64::try_from(i).is_ok().then_some(Scalar::U64),
        }
    }

    /// The bits of the number as a `scalar`.
    fn bits(self, scalar: Scalar) -> std::result::Result<u64, Misfit> {
        let misfit = |why: String| Misfit { why, help: None };
        let int = match self {
            Number::Bool(b) => b as i128,
            Number::Int(i) => i,
            Number::Float(f) if scalar.is_float() => return Ok(float_bits(f, scalar)),
            Number::Float(f) => {
                return Err(Misfit {
                    why: format!(
                        "is annotated {} and cannot be the float {f:?}",
                        scalar.triton_name()
                    ),
                    help: Some("round it on the host: `int(x)`".into()),
                });
            }
        };
        if scalar.is_float() {
            return Ok(float_bits(int as f64, scalar));
        }
        if scalar.is_bool() {
            return Ok((int != 0) as u64);
        }
        if !(scalar.int_min()..=scalar.int_max()).contains(&int) {
            return Err(misfit(format!(
                "is annotated {}, which cannot hold {int}",
                scalar.triton_name()
            )));
        }
        Ok(int as u64 & (u64::MAX >> (64 - scalar.bits())))
    }

    fn describe(self) -> String {
        match self {
            Number::Bool(b) => Value::from(b).describe(),
            Number::Int(i) => format!("the int {i}"),
            Number::Float(f) => Value::from(f).describe(),
        }
    }
}

fn float_bits(value: f64, scalar: Scalar) -> u64 {
    match scalar {
        Scalar::F64 => value.to_bits(),
        _ => cast_bits(Scalar::F64, scalar, Rounding::Nearest, value.to_bits()),
    }
}

/// The value as a constant; memory cannot be one.
fn constant(value: Value) -> std::result::Result<HostValue, Misfit> {
    match value {
        Value::Host(HostValue::Constexpr(inner)) => Ok(*inner),
        Value::Host(v) => Ok(v),
        Value::Tuple { items, names } => {
            let items = items.into_iter().map(constant).collect::<std::result::Result<_, _>>()?;
            Ok(HostValue::Tuple { items, names })
        }
        Value::Tensor(_) | Value::Descriptor(_) => Err(Misfit {
            why: format!("is constexpr and cannot be {}", value.describe()),
            help: Some(
                "constexprs are known when the kernel is compiled; a tensor's content is not"
                    .into(),
            ),
        }),
    }
}

/// Appends what distinguishes this value from every other, so that equal bytes mean equal values.
pub(crate) fn encode(value: &HostValue, out: &mut Vec<u8>) {
    match value {
        HostValue::None => out.push(0),
        HostValue::Bool(b) => out.extend([1, *b as u8]),
        HostValue::Int(i) => {
            out.push(2);
            out.extend(i.to_le_bytes());
        }
        // By bits: NaN must equal itself here, and 0.0 differ from -0.0.
        HostValue::Float(f) => {
            out.push(3);
            out.extend(f.to_bits().to_le_bytes());
        }
        HostValue::Str(s) => {
            out.push(4);
            encode_str(s, out);
        }
        HostValue::Tuple { items, names } => {
            out.push(5);
            out.extend((items.len() as u32).to_le_bytes());
            items.iter().for_each(|v| encode(v, out));
            encode_names(names.as_deref(), out);
        }
        HostValue::DType(elem) => {
            out.push(6);
            encode_elem(*elem, out);
        }
        HostValue::Function(f) => {
            out.push(7);
            out.extend(f.0.to_le_bytes());
        }
        HostValue::Builtin(name) => {
            out.push(8);
            encode_str(name, out);
        }
        HostValue::Constexpr(inner) => {
            out.push(9);
            encode(inner, out);
        }
        HostValue::Object(o, _) => {
            out.push(10);
            out.extend(o.0.to_le_bytes());
        }
    }
}

/// The same for a parameter's spec.
pub(crate) fn encode_spec(spec: &ParamSpec, out: &mut Vec<u8>) {
    match spec {
        ParamSpec::Value(ty) => {
            out.push(32);
            encode_elem(ty.elem, out);
        }
        ParamSpec::Constexpr(v) => {
            out.push(33);
            encode(v, out);
        }
        ParamSpec::Tuple { items, names } => {
            out.push(34);
            out.extend((items.len() as u32).to_le_bytes());
            items.iter().for_each(|s| encode_spec(s, out));
            encode_names(names.as_deref(), out);
        }
        ParamSpec::Descriptor(d) => {
            out.push(35);
            encode_elem(Elem::Pointer(d.pointer), out);
            out.push(u8::from(d.pad_with_nan) + 2 * u8::from(d.round_f32_to_tf32));
            out.push(d.block.rank() as u8);
            d.block.dims().for_each(|n| out.extend((n as u32).to_le_bytes()));
        }
    }
}

/// Whether two specs have one encoding.
pub(crate) fn same_spec(a: &ParamSpec, b: &ParamSpec) -> bool {
    match (a, b) {
        // What nearly all parameters are, compared without the encodings.
        (ParamSpec::Value(a), ParamSpec::Value(b)) => a.elem == b.elem,
        (ParamSpec::Constexpr(HostValue::Int(a)), ParamSpec::Constexpr(HostValue::Int(b))) => {
            a == b
        }
        (ParamSpec::Constexpr(HostValue::None), ParamSpec::Constexpr(HostValue::None)) => true,
        _ => {
            let encoded = |spec| {
                let mut out = Vec::new();
                encode_spec(spec, &mut out);
                out
            };
            encoded(a) == encoded(b)
        }
    }
}

fn encode_elem(elem: Elem, out: &mut Vec<u8>) {
    match elem {
        Elem::Scalar(s) => out.extend([0, s as u8]),
        Elem::Pointer(p) => out.extend([1 + p.is_const as u8, p.pointee as u8]),
    }
}

fn encode_names(names: Option<&[String]>, out: &mut Vec<u8>) {
    let names = names.unwrap_or(&[]);
    out.extend((names.len() as u32).to_le_bytes());
    names.iter().for_each(|n| encode_str(n, out));
}

fn encode_str(s: &str, out: &mut Vec<u8>) {
    out.extend((s.len() as u32).to_le_bytes());
    out.extend(s.as_bytes());
}

#[cfg(test)]
#[path = "specialize_tests.rs"]
mod tests;
