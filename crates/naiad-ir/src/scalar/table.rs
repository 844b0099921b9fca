//! The table of scalar functions.
//!
//! A row is a doc, a variant, its name in IR text, and its implementations: `int` is a function of
//! [`IntLane`]s, `float` is generic over [`FloatOps`] and so serves executors and compilers alike;
//! `double` is the same for fp64 only, for rare functions, which the front end computes there for fp32
//! too. A function accepts the kinds that its row has an implementation for.

use super::{BinaryVisitor, PredicateVisitor, TernaryVisitor, UnaryVisitor};
use super::{FloatLane, IntLane, Lanewise};
use crate::math::{self, FloatOps};
use std::fmt;

/// Declares closed enums of functions, each with a way from a variant to its implementation.
///
/// `Name: Visitor, (arguments): (lanes) => result, (built values) => result`. The `@call`
/// rule only passes a tuple of names on as arguments, behind a builder if there is one.
macro_rules! scalar_functions {
    (@call $f:path, ($($b:ident)?), ($($x:ident),+ $(,)?)) => { $f($($b,)? $($x),+) };

    ($( $(#[$meta:meta])* $Fn:ident: $Visitor:ident, $args:tt:
        $In:ty => $Out:ty, $BuiltIn:ty => $BuiltOut:ty {
        $( $(#[doc = $doc:literal])+ $Row:ident = $name:literal
           $(, int $int:path)? $(, float $float:path)? $(, double $double:path)?; )+
    } )+) => { $(
        $(#[$meta])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum $Fn { $( $(#[doc = $doc])+ $Row, )+ }

        #[allow(unreachable_patterns, reason = "every row may have the implementation asked for")]
        impl $Fn {
            pub const ALL: &'static [$Fn] = &[$( $Fn::$Row, )+];

            /// The name in IR text.
            pub const fn name(self) -> &'static str { match self { $( $Fn::$Row => $name, )+ } }

            /// What the function does, in a sentence.
            pub fn doc(self) -> &'static str {
                match self { $( $Fn::$Row => concat!($($doc),+), )+ }.trim_start()
            }

            pub fn from_name(name: &str) -> Option<$Fn> {
                $Fn::ALL.iter().copied().find(|f| f.name() == name)
            }

            /// Shows the visitor the function on integers of type `T`, if there is one.
            pub(super) fn on_int<T: IntLane, V: $Visitor>(self, visitor: V) -> Option<V::Out> {
                match self {
                    $( $( $Fn::$Row => {
                        #[derive(Copy, Clone)]
                        struct Row;
                        impl<T: IntLane> Lanewise<$In, $Out> for Row {
                            #[inline(always)]
                            fn at(self, $args: $In) -> $Out { scalar_functions!(@call $int, (), $args) }
                        }
                        Some(visitor.visit::<T>(Row))
                    } )? )+
                    _ => None,
                }
            }

            /// Shows the visitor the function on floats of type `T`, if there is one.
            pub(super) fn on_float<T: FloatLane, V: $Visitor>(self, visitor: V) -> Option<V::Out> {
                match self {
                    $( $( $Fn::$Row => {
                        #[derive(Copy, Clone)]
                        struct Row;
                        impl<T: FloatLane> Lanewise<$In, $Out> for Row {
                            #[inline(always)]
                            fn at(self, $args: $In) -> $Out {
                                let b = &mut T::Host::default();
                                scalar_functions!(@call $float, (b), $args)
                            }
                        }
                        Some(visitor.visit::<T>(Row))
                    } )? )+
                    $( $( $Fn::$Row => {
                        #[derive(Copy, Clone)]
                        struct Row;
                        impl<T: FloatLane> Lanewise<$In, $Out> for Row {
                            #[inline(always)]
                            fn at(self, $args: $In) -> $Out {
                                let b = &mut T::Host::default();
                                scalar_functions!(@call $double, (b), $args)
                            }
                        }
                        if T::IS_DOUBLE { Some(visitor.visit::<T>(Row)) } else { None }
                    } )? )+
                    _ => None,
                }
            }

            /// The function on floats, out of the operations of `b`; `None` if it takes none.
            pub fn expand<B: FloatOps>(self, b: &mut B, $args: $BuiltIn) -> Option<$BuiltOut> {
                match self {
                    $( $( $Fn::$Row => Some(scalar_functions!(@call $float, (b), $args)), )? )+
                    $( $( $Fn::$Row if B::BITS == 64 => {
                        Some(scalar_functions!(@call $double, (b), $args))
                    } )? )+
                    _ => None,
                }
            }
        }

        impl fmt::Display for $Fn {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.name()) }
        }
    )+ };
}

scalar_functions! {
    /// Functions of one argument.
    UnaryFn: UnaryVisitor, (x,): (T,) => T, (B::F,) => B::F {
        /// `-x`: wraps on integers, flips the sign of a float.
        Neg = "neg", int IntLane::neg, float FloatOps::neg;
        /// Every bit flipped.
        Not = "not", int IntLane::not;
        /// The magnitude; the least integer wraps to itself.
        Abs = "abs", int IntLane::abs, float FloatOps::abs;
        /// The greatest integer that is not greater.
        Floor = "floor", float FloatOps::floor;
        /// The least integer that is not less.
        Ceil = "ceil", float FloatOps::ceil;
        /// The square root; a native form may approximate.
        Sqrt = "sqrt", float FloatOps::sqrt;
        /// The square root, correctly rounded in every mode.
        SqrtRn = "sqrt_rn", float FloatOps::sqrt;
        /// `1 / sqrt(x)`.
        Rsqrt = "rsqrt", float math::rsqrt;
        /// `e^x`.
        Exp = "exp", float math::exp;
        /// `2^x`.
        Exp2 = "exp2", float math::exp2;
        /// The natural logarithm.
        Log = "log", float math::log;
        /// The logarithm to base 2.
        Log2 = "log2", float math::log2;
        /// The sine of an angle in radians.
        Sin = "sin", float math::sin;
        /// The cosine of an angle in radians.
        Cos = "cos", float math::cos;
        /// The hyperbolic tangent.
        Tanh = "tanh", float math::tanh;
        /// The error function.
        Erf = "erf", float math::erf;
        /// The integer part.
        Trunc = "trunc", float FloatOps::trunc;
        /// The nearest integer, halves away from zero.
        Round = "round", float math::round_away;
        /// The nearest integer, halves to even.
        Rint = "rint", float math::rint;
        /// The exponent as a float; `-inf` for 0.
        Logb = "logb", float math::logb;
        /// `10^x`.
        Exp10 = "exp10", float math::exp10;
        /// `e^x - 1`.
        Expm1 = "expm1", float math::expm1;
        /// The logarithm to base 10.
        Log10 = "log10", float math::log10;
        /// `log(1 + x)`.
        Log1p = "log1p", float math::log1p;
        /// The tangent of an angle in radians.
        Tan = "tan", float math::tan;
        /// `sin(pi x)`.
        Sinpi = "sinpi", float math::sinpi;
        /// `cos(pi x)`.
        Cospi = "cospi", float math::cospi;
        /// The inverse sine.
        Asin = "asin", float math::asin;
        /// The inverse cosine.
        Acos = "acos", float math::acos;
        /// The inverse tangent.
        Atan = "atan", float math::atan;
        /// The hyperbolic sine.
        Sinh = "sinh", float math::sinh;
        /// The hyperbolic cosine.
        Cosh = "cosh", float math::cosh;
        /// The inverse hyperbolic sine.
        Asinh = "asinh", float math::asinh;
        /// The inverse hyperbolic cosine.
        Acosh = "acosh", float math::acosh;
        /// The inverse hyperbolic tangent.
        Atanh = "atanh", float math::atanh;
        /// The cube root.
        Cbrt = "cbrt", float math::cbrt;
        /// `1 - erf x`.
        Erfc = "erfc", float math::erfc;
        /// `e^(x^2) erfc x`.
        Erfcx = "erfcx", double math::erfcx;
        /// The inverse of `erf`.
        Erfinv = "erfinv", double math::erfinv;
        /// The inverse of `erfc`.
        Erfcinv = "erfcinv", double math::erfcinv;
        /// The distribution function of the normal distribution.
        Normcdf = "normcdf", double math::normcdf;
        /// The inverse of `normcdf`.
        Normcdfinv = "normcdfinv", double math::normcdfinv;
        /// The logarithm of the size of the gamma function.
        Lgamma = "lgamma", double math::lgamma;
        /// The gamma function.
        Tgamma = "tgamma", double math::tgamma;
        /// The Bessel function of the first kind of order 0.
        J0 = "j0", double math::j0;
        /// The Bessel function of the first kind of order 1.
        J1 = "j1", double math::j1;
        /// The Bessel function of the second kind of order 0.
        Y0 = "y0", double math::y0;
        /// The Bessel function of the second kind of order 1.
        Y1 = "y1", double math::y1;
        /// The modified Bessel function of the first kind of order 0.
        I0 = "i0", double math::cyl_bessel_i0;
        /// The modified Bessel function of the first kind of order 1.
        I1 = "i1", double math::cyl_bessel_i1;
        /// The bits that are set.
        Popc = "popc", int IntLane::popc;
        /// The zeros above the highest bit that is set.
        Clz = "clz", int IntLane::clz;
        /// The bits in reverse.
        Brev = "brev", int IntLane::brev;
    }

    /// Functions of two arguments of one type.
    BinaryFn: BinaryVisitor, (x, y): (T, T) => T, (B::F, B::F) => B::F {
        /// `x + y`; integers wrap.
        Add = "add", int IntLane::add, float FloatOps::add;
        /// `x - y`; integers wrap.
        Sub = "sub", int IntLane::sub, float FloatOps::sub;
        /// `x * y`; integers wrap.
        Mul = "mul", int IntLane::mul, float FloatOps::mul;
        /// `x / y`, correctly rounded.
        Div = "div", float FloatOps::div;
        /// Rounded correctly on every machine, where `div` may be as fast as the machine has it.
        DivRn = "div_rn", float FloatOps::div;
        /// The quotient rounded toward zero, as in C; 0 if `y` is 0.
        Idiv = "idiv", int IntLane::idiv;
        /// Integers: the remainder of `idiv`. Floats: `x - y * trunc(x / y)`, the last step fused.
        Rem = "rem", int IntLane::rem, float math::rem;
        /// The smaller; a NaN loses to a number.
        Min = "min", int IntLane::min, float math::min;
        /// The larger; a NaN loses to a number.
        Max = "max", int IntLane::max, float math::max;
        /// The smaller; NaN if either is.
        MinNan = "min_nan", int IntLane::min, float math::min_nan;
        /// The larger; NaN if either is.
        MaxNan = "max_nan", int IntLane::max, float math::max_nan;
        /// Bitwise and.
        And = "and", int IntLane::and;
        /// Bitwise or.
        Or = "or", int IntLane::or;
        /// Bitwise exclusive or.
        Xor = "xor", int IntLane::xor;
        /// `x << y`; 0 if `y` is not below the width.
        Shl = "shl", int IntLane::shl;
        /// `x >> y`, arithmetic if the type is signed; all sign if `y` is not below the width.
        Shr = "shr", int IntLane::shr;
        /// The high half of the product of the operands read as unsigned, of any integer type.
        Umulhi = "umulhi", int IntLane::umulhi;
        /// `x^y`.
        Pow = "pow", float math::pow;
        /// The angle of the point with ordinate `x` and abscissa `y`.
        Atan2 = "atan2", float math::atan2;
        /// `sqrt(x^2 + y^2)`.
        Hypot = "hypot", float math::hypot;
        /// The remainder of the quotient rounded toward zero, exact.
        Fmod = "fmod", float math::fmod;
        /// The remainder of the quotient rounded to nearest, halves to even, exact.
        Remainder = "remainder", float math::remainder;
        /// The magnitude of `x` with the sign of `y`.
        Copysign = "copysign", float math::copysign;
        /// The number next to `x` on the way to `y`.
        Nextafter = "nextafter", float math::nextafter;
        /// `x - y` where positive, else 0.
        Fdim = "fdim", float math::fdim;
        /// `x * 2^y` for an integer `y`.
        Ldexp = "ldexp", float math::ldexp;
    }

    /// Functions of three arguments of one type.
    TernaryFn: TernaryVisitor, (x, y, z): (T, T, T) => T, (B::F, B::F, B::F) => B::F {
        /// `x * y + z` with one rounding.
        Fma = "fma", float FloatOps::mul_add;
        /// `x * y + z` where the product is exact, rounded to odd: what `fma` on a narrow float is
        /// computed by, since rounding an odd result to few bits rounds the exact sum once.
        FmaOdd = "fma_odd", float math::fma_odd;
        /// `min(max(x, y), z)`; a NaN `x` gives `y`.
        Clamp = "clamp", int IntLane::clamp, float math::clamp;
    }

    /// Comparisons. On floats all but `ne` are false where an operand is NaN.
    Predicate: PredicateVisitor, (x, y): (T, T) => bool, (B::F, B::F) => B::M {
        /// `x == y`.
        Eq = "eq", int IntLane::eq, float FloatOps::eq;
        /// `x != y`; true where an operand is NaN.
        Ne = "ne", int IntLane::ne, float FloatOps::ne;
        /// `x < y`.
        Lt = "lt", int IntLane::lt, float FloatOps::lt;
        /// `x <= y`.
        Le = "le", int IntLane::le, float FloatOps::le;
        /// `x > y`.
        Gt = "gt", int IntLane::gt, float FloatOps::gt;
        /// `x >= y`.
        Ge = "ge", int IntLane::ge, float FloatOps::ge;
    }
}
