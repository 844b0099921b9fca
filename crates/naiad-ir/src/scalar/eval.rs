//! From a function and a type to a loop body, or to one result.
//!
//! An executor writes its loop once, as a visitor; `dispatch` instantiates it for each function and
//! compute type and picks the instance. Constant folding and tests evaluate single images.

use super::{BinaryFn, Lane, Lanewise, Predicate, Rounding, TernaryFn, UnaryFn, cast_bits};
use crate::types::Scalar;

/// What is done with a function of one argument on lanes of type `T`.
pub trait UnaryVisitor {
    type Out;
    fn visit<T: Lane>(self, f: impl Lanewise<(T,), T>) -> Self::Out;
}

/// What is done with a function of two arguments.
pub trait BinaryVisitor {
    type Out;
    fn visit<T: Lane>(self, f: impl Lanewise<(T, T), T>) -> Self::Out;
}

/// What is done with a function of three arguments.
pub trait TernaryVisitor {
    type Out;
    fn visit<T: Lane>(self, f: impl Lanewise<(T, T, T), T>) -> Self::Out;
}

/// What is done with a comparison.
pub trait PredicateVisitor {
    type Out;
    fn visit<T: Lane>(self, f: impl Lanewise<(T, T), bool>) -> Self::Out;
}

/// Gives a function enum its `dispatch` and what is built on it.
macro_rules! dispatch {
    ($Fn:ident, $Visitor:ident, $arity:literal, $In:ty => $Out:ty, |$f:ident, $x:ident| $apply:expr) => {
        impl $Fn {
            /// Shows the visitor this function on lanes of type `ty`. `None` if the function does
            /// not accept the type, or if the type is not one that is computed in; see
            /// [`Scalar::compute_type`].
            pub fn dispatch<V: $Visitor>(self, ty: Scalar, visitor: V) -> Option<V::Out> {
                match ty {
                    Scalar::I1 => self.on_int::<bool, V>(visitor),
                    Scalar::I8 => self.on_int::<i8, V>(visitor),
                    Scalar::I16 => self.on_int::<i16, V>(visitor),
                    Scalar::I32 => self.on_int::<i32, V>(visitor),
                    Scalar::I64 => self.on_int::<i64, V>(visitor),
                    Scalar::U8 => self.on_int::<u8, V>(visitor),
                    Scalar::U16 => self.on_int::<u16, V>(visitor),
                    Scalar::U32 => self.on_int::<u32, V>(visitor),
                    Scalar::U64 => self.on_int::<u64, V>(visitor),
                    Scalar::F32 => self.on_float::<f32, V>(visitor),
                    Scalar::F64 => self.on_float::<f64, V>(visitor),
                    Scalar::F8E5
                    | Scalar::F8E4NV
                    | Scalar::F8E4B15
                    | Scalar::F8E5B16
                    | Scalar::F8E4B8
                    | Scalar::F16
                    | Scalar::BF16 => None,
                }
            }

            /// Whether the function is defined on values of type `ty`.
            pub fn accepts(self, ty: Scalar) -> bool {
                struct Probe;
                impl $Visitor for Probe {
                    type Out = ();
                    fn visit<T: Lane>(self, _: impl Lanewise<$In, $Out>) {}
                }
                self.dispatch(ty.compute_type(), Probe).is_some()
            }

            /// The image of the result on images in the compute type.
            fn eval_wide(self, ty: Scalar, args: [u64; $arity]) -> Option<u64> {
                struct Args([u64; $arity]);
                impl $Visitor for Args {
                    type Out = u64;
                    fn visit<T: Lane>(self, $f: impl Lanewise<$In, $Out>) -> u64 {
                        let $x = self.0.map(T::from_image);
                        $apply.image()
                    }
                }
                self.dispatch(ty, Args(args))
            }
        }
    };
}

dispatch!(UnaryFn, UnaryVisitor, 1, (T,) => T, |f, x| f.at((x[0],)));
dispatch!(BinaryFn, BinaryVisitor, 2, (T, T) => T, |f, x| f.at((x[0], x[1])));
dispatch!(TernaryFn, TernaryVisitor, 3, (T, T, T) => T, |f, x| f.at((x[0], x[1], x[2])));
dispatch!(Predicate, PredicateVisitor, 2, (T, T) => bool, |f, x| f.at((x[0], x[1])));

impl UnaryFn {
    /// The image of the result on an image, of any type that the function accepts.
    pub fn eval(self, ty: Scalar, x: u64) -> Option<u64> {
        self.eval_wide(ty.compute_type(), [x].map(|x| widen(ty, x))).map(|r| narrow(ty, r))
    }
}

impl BinaryFn {
    /// The image of the result on two images, of any type that the function accepts.
    pub fn eval(self, ty: Scalar, x: u64, y: u64) -> Option<u64> {
        self.eval_wide(ty.compute_type(), [x, y].map(|x| widen(ty, x))).map(|r| narrow(ty, r))
    }
}

impl TernaryFn {
    /// The image of the result on three images, of any type that the function accepts.
    pub fn eval(self, ty: Scalar, x: u64, y: u64, z: u64) -> Option<u64> {
        let args = [x, y, z].map(|x| widen(ty, x));
        self.computed(ty).eval_wide(ty.compute_type(), args).map(|r| narrow(ty, r))
    }
}

impl Predicate {
    /// Whether the comparison holds of two images, of any type.
    pub fn eval(self, ty: Scalar, x: u64, y: u64) -> Option<bool> {
        self.eval_wide(ty.compute_type(), [x, y].map(|x| widen(ty, x))).map(|r| r != 0)
    }
}

fn widen(ty: Scalar, image: u64) -> u64 {
    cast_bits(ty, ty.compute_type(), Rounding::Nearest, image)
}

fn narrow(ty: Scalar, image: u64) -> u64 {
    cast_bits(ty.compute_type(), ty, Rounding::Nearest, image)
}
