//! `tl.dtype` and `tl.pointer_type`, made from the table of scalar types.

use naiad::{Elem, Pointer, Scalar};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;

/// The type of an element. Equal by name, as in Triton.
#[pyclass(name = "dtype", module = "naiad.language", frozen, subclass, eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DType {
    pub elem: Elem,
}

impl DType {
    fn missing(&self, name: &str) -> PyErr {
        PyAttributeError::new_err(format!("dtype '{}' has no attribute '{name}'", self.name()))
    }

    fn int(&self, name: &str) -> PyResult<Scalar> {
        self.elem.scalar().filter(|s| s.is_int()).ok_or_else(|| self.missing(name))
    }

    fn float(&self, name: &str) -> PyResult<(i32, u32)> {
        let format = self.elem.scalar().and_then(Scalar::float_format);
        format.ok_or_else(|| self.missing(name))
    }

    fn is(&self, scalar: Scalar) -> bool {
        self.elem == scalar.into()
    }

    fn test(&self, f: impl Fn(Scalar) -> bool) -> bool {
        self.elem.scalar().is_some_and(f)
    }
}

/// The short names of the types with a property.
fn names_of(has: impl Fn(Scalar) -> bool) -> Vec<&'static str> {
    Scalar::ALL.iter().copied().filter(|&s| has(s)).map(short_name).collect()
}

#[pymethods]
#[allow(non_snake_case, reason = "class attributes, with the names that Triton has given them")]
impl DType {
    /// Takes the short name, which is also what `str` gives: `fp32`, `int32`, `*fp16`.
    #[new]
    fn new(name: &str) -> PyResult<DType> {
        let scalar = Scalar::ALL.iter().copied().find(|s| short_name(*s) == name);
        let elem = scalar.map(Elem::from).or_else(|| name.parse().ok());
        let elem =
            elem.ok_or_else(|| PyTypeError::new_err(format!("there is no dtype '{name}'")))?;
        Ok(DType { elem })
    }

    #[classattr]
    fn SINT_TYPES() -> Vec<&'static str> {
        names_of(|s| s.is_int() && s.is_signed())
    }

    #[classattr]
    fn UINT_TYPES() -> Vec<&'static str> {
        names_of(|s| s.is_int() && !s.is_signed())
    }

    #[classattr]
    fn FP_TYPES() -> Vec<&'static str> {
        names_of(Scalar::is_float)
    }

    #[classattr]
    fn STANDARD_FP_TYPES() -> Vec<&'static str> {
        names_of(|s| s.is_float() && !s.is_fp8())
    }

    #[classattr]
    fn OTHER_TYPES() -> Vec<&'static str> {
        vec!["void"]
    }

    #[getter]
    pub fn name(&self) -> String {
        match self.elem {
            Elem::Scalar(s) => short_name(s).to_string(),
            Elem::Pointer(p) if p.is_const => format!("pointer<const {}>", short_name(p.pointee)),
            Elem::Pointer(p) => format!("pointer<{}>", short_name(p.pointee)),
        }
    }

    fn __str__(&self) -> String {
        self.name()
    }

    fn __repr__(&self) -> String {
        match self.elem {
            Elem::Scalar(s) => format!("triton.language.{}", s.triton_name()),
            Elem::Pointer(p) => {
                format!("pointer_type(triton.language.{})", p.pointee.triton_name())
            }
        }
    }

    #[getter]
    fn scalar(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// The name in a signature: `fp32`, `i32`, `*fp16`.
    #[getter]
    fn mangled(&self) -> String {
        self.elem.to_string()
    }

    #[getter]
    fn primitive_bitwidth(&self) -> u32 {
        self.elem.scalar().map_or(64, Scalar::bits)
    }

    #[getter]
    fn itemsize(&self) -> usize {
        self.elem.scalar().map_or(8, Scalar::size)
    }

    #[getter]
    fn int_bitwidth(&self) -> PyResult<u32> {
        self.int("int_bitwidth").map(Scalar::bits)
    }

    /// 0 is signed, 1 is unsigned, as in Triton.
    #[getter]
    fn int_signedness(&self) -> PyResult<u8> {
        self.int("int_signedness").map(|s| !s.is_signed() as u8)
    }

    #[getter]
    fn exponent_bias(&self) -> PyResult<i32> {
        self.float("exponent_bias").map(|f| f.0)
    }

    #[getter]
    fn fp_mantissa_width(&self) -> PyResult<u32> {
        self.float("fp_mantissa_width").map(|f| f.1)
    }

    fn get_int_max_value(&self) -> PyResult<i128> {
        self.int("get_int_max_value").map(Scalar::int_max)
    }

    fn get_int_min_value(&self) -> PyResult<i128> {
        self.int("get_int_min_value").map(Scalar::int_min)
    }

    /// 0 for the boolean, 1 for integers, 2 for floats.
    fn kind(&self) -> PyResult<u8> {
        let scalar = self.elem.scalar().ok_or_else(|| self.missing("kind"))?;
        Ok(if scalar.is_bool() { 0 } else { 1 + scalar.is_float() as u8 })
    }

    fn is_int(&self) -> bool {
        self.test(Scalar::is_int)
    }
    fn is_int_signed(&self) -> bool {
        self.test(Scalar::is_signed)
    }
    fn is_int_unsigned(&self) -> bool {
        self.test(|s| s.is_int() && !s.is_signed())
    }
    fn is_floating(&self) -> bool {
        self.test(Scalar::is_float)
    }
    fn is_standard_floating(&self) -> bool {
        self.test(|s| s.is_float() && !s.is_fp8())
    }
    fn is_fp8(&self) -> bool {
        self.test(Scalar::is_fp8)
    }
    fn is_fp8e5(&self) -> bool {
        self.is(Scalar::F8E5)
    }
    fn is_fp8e4nv(&self) -> bool {
        self.is(Scalar::F8E4NV)
    }
    fn is_fp8e4b15(&self) -> bool {
        self.is(Scalar::F8E4B15)
    }
    fn is_fp8e5b16(&self) -> bool {
        self.is(Scalar::F8E5B16)
    }
    fn is_fp8e4b8(&self) -> bool {
        self.is(Scalar::F8E4B8)
    }
    fn is_fp16(&self) -> bool {
        self.is(Scalar::F16)
    }
    fn is_bf16(&self) -> bool {
        self.is(Scalar::BF16)
    }
    fn is_fp32(&self) -> bool {
        self.is(Scalar::F32)
    }
    fn is_fp64(&self) -> bool {
        self.is(Scalar::F64)
    }
    fn is_bool(&self) -> bool {
        self.is(Scalar::I1)
    }
    fn is_int1(&self) -> bool {
        self.is(Scalar::I1)
    }
    fn is_int8(&self) -> bool {
        self.is(Scalar::I8)
    }
    fn is_int16(&self) -> bool {
        self.is(Scalar::I16)
    }
    fn is_int32(&self) -> bool {
        self.is(Scalar::I32)
    }
    fn is_int64(&self) -> bool {
        self.is(Scalar::I64)
    }
    fn is_uint8(&self) -> bool {
        self.is(Scalar::U8)
    }
    fn is_uint16(&self) -> bool {
        self.is(Scalar::U16)
    }
    fn is_uint32(&self) -> bool {
        self.is(Scalar::U32)
    }
    fn is_uint64(&self) -> bool {
        self.is(Scalar::U64)
    }
    fn is_ptr(&self) -> bool {
        self.elem.pointer().is_some()
    }
    fn is_block(&self) -> bool {
        false
    }
    fn is_const(&self) -> bool {
        self.elem.pointer().is_some_and(|p| p.is_const)
    }
}

/// A pointer to elements of one dtype.
#[pyclass(name = "pointer_type", module = "naiad.language", extends = DType, frozen)]
pub struct PointerType {
    pointee: Scalar,
}

#[pymethods]
impl PointerType {
    #[new]
    #[pyo3(signature = (element_ty, address_space = 1, r#const = false))]
    fn new(
        element_ty: PyRef<'_, DType>,
        address_space: u32,
        r#const: bool,
    ) -> PyResult<PyClassInitializer<PointerType>> {
        let _ = address_space;
        let Some(pointee) = element_ty.elem.scalar() else {
            return Err(PyTypeError::new_err("a pointer to a pointer is no type of Triton's"));
        };
        let elem = Elem::Pointer(Pointer { pointee, is_const: r#const });
        Ok(PyClassInitializer::from(DType { elem }).add_subclass(PointerType { pointee }))
    }

    /// What kernels see in the class itself.
    #[classattr]
    fn __naiad_builtin__() -> &'static str {
        "pointer_type"
    }

    #[getter]
    fn element_ty(&self) -> DType {
        DType { elem: self.pointee.into() }
    }
}

/// The name of a scalar as Triton prints it: floats are short there and integers are not.
fn short_name(s: Scalar) -> &'static str {
    if s.is_float() { s.name() } else { s.triton_name() }
}

/// The Python object of an element type.
pub fn to_python(py: Python<'_>, elem: Elem) -> PyResult<Bound<'_, PyAny>> {
    match elem {
        Elem::Scalar(_) => Ok(Bound::new(py, DType { elem })?.into_any()),
        Elem::Pointer(p) => {
            let init = PyClassInitializer::from(DType { elem });
            Ok(Bound::new(py, init.add_subclass(PointerType { pointee: p.pointee }))?.into_any())
        }
    }
}

/// The scalar that a library's dtype stands for, by the name it has in torch, NumPy and ml_dtypes
/// alike.
pub fn scalar_from_library(name: &str) -> Option<Scalar> {
    let name = name.rsplit('.').next().unwrap_or(name);
    Some(match name {
        "bool" => Scalar::I1,
        "float8_e5m2" => Scalar::F8E5,
        "float8_e4m3fn" => Scalar::F8E4NV,
        "float8_e5m2fnuz" => Scalar::F8E5B16,
        "float8_e4m3fnuz" => Scalar::F8E4B8,
        "int1" | "float8e5" | "float8e4nv" | "float8e4b15" => return None,
        _ => return Scalar::from_triton_name(name),
    })
}
