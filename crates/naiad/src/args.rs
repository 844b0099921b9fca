//! Arguments of a launch from Rust, typed by what they borrow.

use crate::value::{Location, Tensor, Value};
use crate::{Error, HostValue, Result};
use half::{bf16, f16};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::Scalar;
use std::marker::PhantomData;

/// Types that kernels can read in memory.
///
/// # Safety
///
/// The type's memory is that of `SCALAR`, without padding.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    const SCALAR: Scalar;
}

/// Types that kernels can also write.
///
/// # Safety
///
/// Every bit pattern is a value of the type.
pub unsafe trait ElementMut: Element {}

macro_rules! elements {
    ($($ty:ty = $scalar:ident)*) => { $(
        // SAFETY: a plain number of exactly this format, for which all bits are valid.
        unsafe impl Element for $ty { const SCALAR: Scalar = Scalar::$scalar; }
        // SAFETY: as above.
        unsafe impl ElementMut for $ty {}
    )* };
}

elements! {
    i8 = I8 i16 = I16 i32 = I32 i64 = I64
    u8 = U8 u16 = U16 u32 = U32 u64 = U64
    f16 = F16 bf16 = BF16 f32 = F32 f64 = F64
}

// SAFETY: a byte that is 0 or 1, as kernels read it. Kernels could write other bytes, so there is no
// `ElementMut`.
unsafe impl Element for bool {
    const SCALAR: Scalar = Scalar::I1;
}

/// A strided view of a slice. Index `(i, j, ...)` is the slice's element
/// `offset + i * strides[0] + j * strides[1] + ...`.
pub struct SliceView<'a> {
    elem: Scalar,
    address: usize,
    len: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
    offset: usize,
    writable: bool,
    borrow: PhantomData<&'a mut ()>,
}

impl<'a> SliceView<'a> {
    /// The whole slice, in one dimension, to be read.
    pub fn of<T: Element>(slice: &'a [T]) -> SliceView<'a> {
        SliceView::new(T::SCALAR, slice.as_ptr().expose_provenance(), slice.len(), false)
    }

    /// The whole slice, in one dimension, to be read and written.
    pub fn of_mut<T: ElementMut>(slice: &'a mut [T]) -> SliceView<'a> {
        SliceView::new(T::SCALAR, slice.as_mut_ptr().expose_provenance(), slice.len(), true)
    }

    fn new(elem: Scalar, address: usize, len: usize, writable: bool) -> SliceView<'a> {
        let (shape, strides) = (vec![len], vec![1]);
        SliceView { elem, address, len, shape, strides, offset: 0, writable, borrow: PhantomData }
    }

    /// In rows of rows: row-major.
    pub fn shape(mut self, shape: &[usize]) -> SliceView<'a> {
        let mut stride = 1isize;
        self.strides = vec![0; shape.len()];
        for (slot, &extent) in self.strides.iter_mut().zip(shape).rev() {
            *slot = stride;
            stride = stride.saturating_mul(extent as isize);
        }
        self.shape = shape.to_vec();
        self
    }

    /// With other strides, in elements; 0 and negative ones too.
    pub fn strides(mut self, strides: &[isize]) -> SliceView<'a> {
        self.strides = strides.to_vec();
        self
    }

    /// Index 0 at another element of the slice.
    pub fn offset(mut self, offset: usize) -> SliceView<'a> {
        self.offset = offset;
        self
    }

    /// Checks that the view stays within the slice.
    fn into_tensor(self) -> Result<Tensor> {
        let SliceView { elem, address, len, shape, strides, offset, writable, .. } = self;
        let bad = |message: String| Error::from(Diagnostic::new(Id::BadLaunch, message));
        if shape.len() != strides.len() {
            let message = format!(
                "a view has {} extents and {} strides; they must be as many",
                shape.len(),
                strides.len()
            );
            return Err(bad(message));
        }
        // i128: no product of an extent and a stride overflows.
        let (mut low, mut high) = (offset as i128, offset as i128);
        for (&extent, &stride) in shape.iter().zip(&strides) {
            let reach = (extent as i128 - 1) * stride as i128;
            low += reach.min(0);
            high += reach.max(0);
        }
        let empty = shape.contains(&0);
        if offset > len || (!empty && (low < 0 || high >= len as i128)) {
            return Err(bad(format!(
                "a view of shape {shape:?}, strides {strides:?} and offset {offset} reaches elements {low} to {high} of a slice of {len}"
            )));
        }
        let size = elem.size();
        let view = naiad_interp::View { elem, shape: shape.into(), strides: strides.into() };
        Ok(Tensor {
            elem,
            address: address + offset * size,
            storage: address..address + len * size,
            view: Some(view),
            writable,
            location: Location::Host,
        })
    }
}

/// One argument: a number, a slice, a [`SliceView`], a constexpr.
pub struct Argument<'a>(Result<Value>, PhantomData<&'a mut ()>);

#[cfg(feature = "cuda")]
impl Argument<'_> {
    /// Memory that whoever calls this has borrowed.
    pub(crate) fn of(tensor: Tensor) -> Self {
        Argument(Ok(Value::Tensor(tensor)), PhantomData)
    }
}

impl<'a> From<SliceView<'a>> for Argument<'a> {
    fn from(view: SliceView<'a>) -> Argument<'a> {
        Argument(view.into_tensor().map(Value::Tensor), PhantomData)
    }
}

impl<'a, T: Element> From<&'a [T]> for Argument<'a> {
    fn from(slice: &'a [T]) -> Argument<'a> {
        SliceView::of(slice).into()
    }
}

impl<'a, T: ElementMut> From<&'a mut [T]> for Argument<'a> {
    fn from(slice: &'a mut [T]) -> Argument<'a> {
        SliceView::of_mut(slice).into()
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Argument<'a> {
    fn from(slice: &'a Vec<T>) -> Argument<'a> {
        SliceView::of(slice).into()
    }
}

impl<'a, T: ElementMut> From<&'a mut Vec<T>> for Argument<'a> {
    fn from(slice: &'a mut Vec<T>) -> Argument<'a> {
        SliceView::of_mut(slice).into()
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for Argument<'a> {
    fn from(slice: &'a [T; N]) -> Argument<'a> {
        SliceView::of(slice).into()
    }
}

impl<'a, T: ElementMut, const N: usize> From<&'a mut [T; N]> for Argument<'a> {
    fn from(slice: &'a mut [T; N]) -> Argument<'a> {
        SliceView::of_mut(slice).into()
    }
}

impl From<HostValue> for Argument<'_> {
    fn from(value: HostValue) -> Self {
        Argument(Ok(value.into()), PhantomData)
    }
}

macro_rules! from_number {
    ($($ty:ty)*) => { $(
        impl From<$ty> for Argument<'_> {
            fn from(value: $ty) -> Self { Argument(Ok(value.into()), PhantomData) }
        }
    )* };
}

from_number! { bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 &str }

impl<'a> From<Vec<Argument<'a>>> for Argument<'a> {
    /// A tuple.
    fn from(items: Vec<Argument<'a>>) -> Argument<'a> {
        let items = items.into_iter().map(|a| a.0).collect::<Result<_>>();
        Argument(items.map(Value::tuple), PhantomData)
    }
}

/// Makes a value constexpr even for a parameter that is not annotated so.
pub fn constexpr(value: impl Into<Value>) -> Argument<'static> {
    let value = match value.into() {
        Value::Host(v) => Ok(Value::Host(HostValue::Constexpr(Box::new(v)))),
        other => {
            let message = format!("a constexpr cannot be {}", other.describe());
            Err(Diagnostic::new(Id::BadLaunch, message).into())
        }
    };
    Argument(value, PhantomData)
}

/// The arguments of a launch; [`args!`](crate::args!) writes them shortly.
#[derive(Default)]
pub struct Args<'a> {
    positional: Vec<Argument<'a>>,
    keywords: Vec<(&'static str, Argument<'a>)>,
}

/// Arguments in order, and those with a name.
type Parts = (Vec<Value>, Vec<(&'static str, Value)>);

impl<'a> Args<'a> {
    pub fn new() -> Args<'a> {
        Args::default()
    }

    /// The next argument by position.
    pub fn arg(mut self, value: impl Into<Argument<'a>>) -> Args<'a> {
        self.positional.push(value.into());
        self
    }

    /// An argument, or a launch option, by name.
    pub fn named(mut self, name: &'static str, value: impl Into<Argument<'a>>) -> Args<'a> {
        self.keywords.push((name, value.into()));
        self
    }

    pub(crate) fn into_parts(self) -> Result<Parts> {
        let positional = self.positional.into_iter().map(|a| a.0).collect::<Result<_>>()?;
        let keywords =
            self.keywords.into_iter().map(|(n, a)| Ok((n, a.0?))).collect::<Result<_>>()?;
        Ok((positional, keywords))
    }
}

/// Arguments of a launch, by position and then by name: `args![&x, &mut y, n, BLOCK = 1024]`.
#[macro_export]
macro_rules! args {
    (@ $args:expr;) => { $args };
    (@ $args:expr; $name:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::args!(@ $args.named(stringify!($name), $value); $($($rest)*)?)
    };
    (@ $args:expr; $value:expr $(, $($rest:tt)*)?) => {
        $crate::args!(@ $args.arg($value); $($($rest)*)?)
    };
    ($($all:tt)*) => { $crate::args!(@ $crate::Args::new(); $($all)*) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor<'a>(argument: impl Into<Argument<'a>>) -> Tensor {
        match argument.into().0.unwrap() {
            Value::Tensor(t) => t,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn slices_become_tensors() {
        let mut x = vec![1.0f32; 6];
        let base = x.as_ptr().addr();
        let t = tensor(&x);
        assert_eq!((t.elem, t.writable, t.storage), (Scalar::F32, false, base..base + 24));
        assert!(tensor(&mut x).writable);
        let t = tensor(SliceView::of(&x).shape(&[2, 3]));
        assert_eq!(t.view.unwrap().strides.as_slice(), [3, 1]);
        let t = tensor(SliceView::of(&x).shape(&[3]).strides(&[-2]).offset(5));
        assert_eq!(t.address, base + 20);
    }

    #[test]
    fn views_stay_in_their_slice() {
        let x = [0i32; 6];
        for (view, ok) in [
            (SliceView::of(&x).shape(&[3, 2]), true),
            (SliceView::of(&x).shape(&[3, 3]), false),
            (SliceView::of(&x).shape(&[0, 99]), true),
            (SliceView::of(&x).shape(&[4]).strides(&[-1]), false),
            (SliceView::of(&x).shape(&[1000]).strides(&[0]).offset(5), true),
            (SliceView::of(&x).shape(&[2, 2]).strides(&[1]), false),
        ] {
            assert_eq!(Argument::from(view).0.is_ok(), ok);
        }
    }

    #[test]
    fn args_by_position_and_name() {
        let x = [1.0f32; 4];
        let mut y = [0.0f32; 4];
        let (positional, keywords) =
            args![&x, &mut y, 4, BLOCK = 16, F = constexpr(2.0), num_warps = 4]
                .into_parts()
                .unwrap();
        assert_eq!(positional.len(), 3);
        assert_eq!(keywords.iter().map(|k| k.0).collect::<Vec<_>>(), ["BLOCK", "F", "num_warps"]);
    }
}
