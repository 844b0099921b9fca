//! Types of IR values: an element (a scalar or a pointer to one) and a shape.
//!
//! Signedness lives in the type: `i32` and `u32` differ, and going from one to the other is a cast
//! that keeps the bits. A shape of rank 0 is a scalar. Extents are powers of two, so a shape stores
//! their logarithms and `Type` stays small and `Copy`.

use std::fmt;

/// Declares the scalar types once: enum, names, bit widths and kinds come from these rows.
macro_rules! scalars {
    ($( $(#[$doc:meta])* $variant:ident = $name:literal, $triton:literal, $bits:literal, $kind:ident; )*) => {
        /// The element types of Triton.
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum Scalar { $( $(#[$doc])* $variant, )* }

        impl Scalar {
            pub const ALL: &'static [Scalar] = &[$( Scalar::$variant, )*];

            /// The name in IR text, which is also the one Triton prints (`fp32`, `int32` as `i32`).
            pub const fn name(self) -> &'static str { match self { $( Scalar::$variant => $name, )* } }

            /// The name of the dtype object in `triton.language`.
            pub const fn triton_name(self) -> &'static str { match self { $( Scalar::$variant => $triton, )* } }

            /// The width in bits; `i1` has one bit in a register and a byte in memory.
            pub const fn bits(self) -> u32 { match self { $( Scalar::$variant => $bits, )* } }

            pub const fn kind(self) -> Kind { match self { $( Scalar::$variant => Kind::$kind, )* } }
        }
    };
}

scalars! {
    /// The boolean. Arithmetic wraps modulo 2; counts as an unsigned integer of one bit.
    I1 = "i1", "int1", 1, Bool;
    I8 = "i8", "int8", 8, Signed;
    I16 = "i16", "int16", 16, Signed;
    I32 = "i32", "int32", 32, Signed;
    I64 = "i64", "int64", 64, Signed;
    U8 = "u8", "uint8", 8, Unsigned;
    U16 = "u16", "uint16", 16, Unsigned;
    U32 = "u32", "uint32", 32, Unsigned;
    U64 = "u64", "uint64", 64, Unsigned;
    /// OCP E5M2: 5 exponent bits (bias 15), 2 mantissa bits, has inf and NaN.
    F8E5 = "fp8e5", "float8e5", 8, Float;
    /// OCP E4M3FN: 4 exponent bits (bias 7), no inf, 0x7f and 0xff are NaN.
    F8E4NV = "fp8e4nv", "float8e4nv", 8, Float;
    /// Legacy NVIDIA format: bias 15, neither inf nor NaN.
    F8E4B15 = "fp8e4b15", "float8e4b15", 8, Float;
    /// AMD E5M2FNUZ: bias 16, no negative zero, 0x80 is NaN.
    F8E5B16 = "fp8e5b16", "float8e5b16", 8, Float;
    /// AMD E4M3FNUZ: bias 8, no negative zero, 0x80 is NaN.
    F8E4B8 = "fp8e4b8", "float8e4b8", 8, Float;
    F16 = "fp16", "float16", 16, Float;
    BF16 = "bf16", "bfloat16", 16, Float;
    F32 = "fp32", "float32", 32, Float;
    F64 = "fp64", "float64", 64, Float;
}

/// What sort of number a scalar is; the order is that of the promotion rules.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Kind {
    Bool,
    Unsigned,
    Signed,
    Float,
}

impl Scalar {
    /// Bytes that one element takes in memory.
    pub const fn size(self) -> usize {
        (self.bits() as usize).div_ceil(8)
    }

    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Integers, `i1` among them.
    pub const fn is_int(self) -> bool {
        !self.is_float()
    }

    pub const fn is_signed(self) -> bool {
        matches!(self.kind(), Kind::Signed)
    }

    pub const fn is_bool(self) -> bool {
        matches!(self, Scalar::I1)
    }

    pub const fn is_fp8(self) -> bool {
        self.is_float() && self.bits() == 8
    }

    pub fn from_name(name: &str) -> Option<Scalar> {
        Scalar::ALL.iter().copied().find(|s| s.name() == name)
    }

    pub fn from_triton_name(name: &str) -> Option<Scalar> {
        Scalar::ALL.iter().copied().find(|s| s.triton_name() == name)
    }

    /// Largest value of an integer type.
    pub const fn int_max(self) -> i128 {
        let bits = self.bits() - self.is_signed() as u32;
        (1i128 << bits) - 1
    }

    /// Smallest value of an integer type.
    pub const fn int_min(self) -> i128 {
        if self.is_signed() { -(1i128 << (self.bits() - 1)) } else { 0 }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A pointer's pointee, and whether stores through it are forbidden.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pointer {
    pub pointee: Scalar,
    pub is_const: bool,
}

impl Pointer {
    pub const fn to(pointee: Scalar) -> Pointer {
        Pointer { pointee, is_const: false }
    }
}

/// The element of a tile.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Elem {
    Scalar(Scalar),
    Pointer(Pointer),
}

impl Elem {
    pub const fn scalar(self) -> Option<Scalar> {
        match self {
            Elem::Scalar(s) => Some(s),
            Elem::Pointer(_) => None,
        }
    }

    pub const fn pointer(self) -> Option<Pointer> {
        match self {
            Elem::Scalar(_) => None,
            Elem::Pointer(p) => Some(p),
        }
    }
}

impl From<Scalar> for Elem {
    fn from(s: Scalar) -> Elem {
        Elem::Scalar(s)
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Scalar(s) => write!(f, "{s}"),
            Elem::Pointer(p) if p.is_const => write!(f, "*k{}", p.pointee),
            Elem::Pointer(p) => write!(f, "*{}", p.pointee),
        }
    }
}

/// Greatest rank of a tile. Sorting networks written by hand reshape 2^20 elements to rank 20.
pub const MAX_RANK: usize = 24;

/// Greatest number of elements of a tile, as in Triton.
pub const MAX_NUMEL: u64 = 1 << 20;

/// Extents of a tile, row-major, outermost first. Each is a power of two.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct Shape {
    rank: u8,
    log2: [u8; MAX_RANK],
}

/// Why a list of extents is no shape.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ShapeError {
    /// This extent is not a power of two of at least 1.
    NotPowerOfTwo(i64),
    /// More elements than `MAX_NUMEL`.
    TooLarge(u128),
    /// More dimensions than `MAX_RANK`.
    TooManyDims(usize),
}

impl Shape {
    pub const SCALAR: Shape = Shape { rank: 0, log2: [0; MAX_RANK] };

    pub fn new(dims: &[i64]) -> Result<Shape, ShapeError> {
        if dims.len() > MAX_RANK {
            return Err(ShapeError::TooManyDims(dims.len()));
        }
        let mut shape = Shape { rank: dims.len() as u8, log2: [0; MAX_RANK] };
        let mut numel: u128 = 1;
        for (slot, &d) in shape.log2.iter_mut().zip(dims) {
            if d < 1 || !(d as u64).is_power_of_two() {
                return Err(ShapeError::NotPowerOfTwo(d));
            }
            *slot = d.trailing_zeros() as u8;
            numel = numel.saturating_mul(d as u128);
        }
        if numel > MAX_NUMEL as u128 {
            return Err(ShapeError::TooLarge(numel));
        }
        Ok(shape)
    }

    pub const fn rank(&self) -> usize {
        self.rank as usize
    }

    pub const fn is_scalar(&self) -> bool {
        self.rank == 0
    }

    pub const fn dim(&self, axis: usize) -> usize {
        1 << self.log2[axis]
    }

    pub fn dims(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone {
        let log2 = self.log2;
        (0..self.rank()).map(move |i| 1usize << log2[i])
    }

    pub fn numel(&self) -> usize {
        self.dims().product()
    }

    /// Number of elements between neighbours along each axis, in row-major order.
    pub fn strides(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator {
        let this = *self;
        (0..self.rank()).map(move |i| this.dims().skip(i + 1).product())
    }

    /// The shape with one axis taken out.
    pub fn without(&self, axis: usize) -> Shape {
        let mut out = *self;
        out.log2.copy_within(axis + 1..self.rank(), axis);
        out.rank -= 1;
        out.log2[out.rank()] = 0;
        out
    }

    /// The shape with an axis of extent `dim` put in before `axis`.
    pub fn with_inserted(&self, axis: usize, dim: usize) -> Result<Shape, ShapeError> {
        let mut dims: Vec<i64> = self.dims().map(|d| d as i64).collect();
        dims.insert(axis, dim as i64);
        Shape::new(&dims)
    }

    /// The shape with the extent of one axis replaced.
    pub fn with_dim(&self, axis: usize, dim: usize) -> Result<Shape, ShapeError> {
        let mut dims: Vec<i64> = self.dims().map(|d| d as i64).collect();
        dims[axis] = dim as i64;
        Shape::new(&dims)
    }

    /// The shape with axes in the order given: result axis `i` is source axis `order[i]`.
    pub fn permuted(&self, order: &[usize]) -> Shape {
        let mut out = *self;
        for (i, &axis) in order.iter().enumerate() {
            out.log2[i] = self.log2[axis];
        }
        out
    }
}

impl fmt::Display for Shape {
    /// As Python prints a shape: `()`, `(32,)`, `(32, 64)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, d) in self.dims().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str(if self.rank() == 1 { ",)" } else { ")" })
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shape{self}")
    }
}

/// The type of a value. In text: `fp32`, `*fp16`, `<32x64xfp32>`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Type {
    pub elem: Elem,
    pub shape: Shape,
}

impl Type {
    pub const I32: Type = Type::scalar(Scalar::I32);
    pub const I64: Type = Type::scalar(Scalar::I64);
    pub const F32: Type = Type::scalar(Scalar::F32);

    pub const fn scalar(s: Scalar) -> Type {
        Type { elem: Elem::Scalar(s), shape: Shape::SCALAR }
    }

    pub const fn pointer(pointee: Scalar) -> Type {
        Type { elem: Elem::Pointer(Pointer::to(pointee)), shape: Shape::SCALAR }
    }

    pub fn tile(elem: impl Into<Elem>, shape: Shape) -> Type {
        Type { elem: elem.into(), shape }
    }

    /// The same shape with another element.
    pub fn with_elem(self, elem: impl Into<Elem>) -> Type {
        Type { elem: elem.into(), shape: self.shape }
    }

    /// The same element with another shape.
    pub const fn with_shape(self, shape: Shape) -> Type {
        Type { elem: self.elem, shape }
    }

    pub const fn is_scalar(&self) -> bool {
        self.shape.is_scalar()
    }

    pub const fn is_pointer(&self) -> bool {
        matches!(self.elem, Elem::Pointer(_))
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_scalar() {
            return write!(f, "{}", self.elem);
        }
        f.write_str("<")?;
        for d in self.shape.dims() {
            write!(f, "{d}x")?;
        }
        write!(f, "{}>", self.elem)
    }
}

impl std::str::FromStr for Elem {
    type Err = String;

    fn from_str(text: &str) -> Result<Elem, String> {
        let unknown = || format!("`{text}` is no element type");
        let scalar = |name: &str| Scalar::from_name(name).ok_or_else(unknown);
        match text.strip_prefix('*') {
            None => Ok(Elem::Scalar(scalar(text)?)),
            Some(rest) => match rest.strip_prefix('k') {
                Some(name) => Ok(Elem::Pointer(Pointer { pointee: scalar(name)?, is_const: true })),
                None => Ok(Elem::Pointer(Pointer::to(scalar(rest)?))),
            },
        }
    }
}

impl std::str::FromStr for Type {
    type Err = String;

    fn from_str(text: &str) -> Result<Type, String> {
        let Some(inner) = text.strip_prefix('<').and_then(|t| t.strip_suffix('>')) else {
            return Ok(Type { elem: text.parse()?, shape: Shape::SCALAR });
        };
        let mut parts: Vec<&str> = inner.split('x').collect();
        let elem = parts.pop().unwrap_or("").parse()?;
        Ok(Type { elem, shape: shape_from(&parts)? })
    }
}

impl std::str::FromStr for Shape {
    type Err = String;

    /// Reads what `Display` writes.
    fn from_str(text: &str) -> Result<Shape, String> {
        let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
        let inner = inner.ok_or_else(|| format!("`{text}` is no shape"))?;
        shape_from(&inner.split(',').map(str::trim).filter(|s| !s.is_empty()).collect::<Vec<_>>())
    }
}

fn shape_from(parts: &[&str]) -> Result<Shape, String> {
    let dims: Result<Vec<i64>, _> = parts.iter().map(|d| d.parse::<i64>()).collect();
    let dims = dims.map_err(|_| format!("`{}` is no list of extents", parts.join(", ")))?;
    Shape::new(&dims).map_err(|e| format!("no shape: {e:?}"))
}
