//! The hyperbolic tangent.

use super::ops::{copy_sign, poly};
use super::{FloatOps, exp};

/// `tanh x`, within 2 ulp.
///
/// Below 5/8, where the exponential form cancels, an odd polynomial `x + x^3 p(x^2)`, error 2^-28 (5
/// terms) or 2^-56 (11 terms). Above, `1 - 2 / (e^(2|x|) + 1)`, where the error of the exponential
/// is damped by at least `2 / (e^(5/4) + 1) = 0.45`; an overflow to inf gives 1. (Cody and Waite,
/// 1980, split at the same place.)
#[inline(always)]
pub fn tanh<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let z = b.mul(size, size);
    let p = poly(
        b,
        z,
        &[
            -0.33333283709262607,
            0.1333148496506536,
            -0.05374293597629468,
            0.020648651465760226,
            -0.005714777745258919,
        ],
        &[
            -0.33333333333332876,
            0.13333333333264313,
            -0.05396825393220235,
            0.021869487595543254,
            -0.008863221235058161,
            0.0035919908908801043,
            -0.0014549669816856885,
            0.0005863410206347401,
            -0.0002286100090808957,
            7.71926837050626e-05,
            -1.6094543439798494e-05,
        ],
    );
    let cube = b.mul(z, p);
    let small = b.mul_add(cube, size, size);

    let (one, two) = (b.constant(1.0), b.constant(2.0));
    let twice = b.add(size, size);
    let power = exp(b, twice);
    let below = b.add(power, one);
    let rest = b.div(two, below);
    let large = b.sub(one, rest);

    let cut = b.constant(0.625);
    let is_small = b.lt(size, cut);
    let result = b.select(is_small, small, large);
    copy_sign(b, result, x)
}
