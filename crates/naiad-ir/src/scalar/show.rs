//! Numbers as people read them.

use super::{Rounding, cast_bits};
use crate::types::{Kind, Scalar};

/// The number that an image stands for, in decimal: of a float so few digits that no other number of
/// the type is nearer to them. Booleans and what is no number are written as Python writes them.
pub fn show(ty: Scalar, image: u64) -> String {
    let image = image & ty.mask();
    match ty.kind() {
        Kind::Bool => if image != 0 { "True" } else { "False" }.to_string(),
        Kind::Unsigned => image.to_string(),
        Kind::Signed => {
            let unused = 64 - ty.bits();
            ((image << unused) as i64 >> unused).to_string()
        }
        Kind::Float => {
            let value = f64::from_bits(cast_bits(ty, Scalar::F64, Rounding::Nearest, image));
            if value.is_nan() {
                return "nan".to_string();
            }
            if value.is_infinite() {
                return if value > 0.0 { "inf" } else { "-inf" }.to_string();
            }
            match ty {
                Scalar::F64 => format!("{value:?}"),
                Scalar::F32 => format!("{:?}", value as f32),
                _ => shortest(ty, image, value),
            }
        }
    }
}

/// Of a narrow float: five digits tell all of them apart. Where they are the exact number they are
/// taken, so that 448 is not shown as the 450 that also rounds to it.
fn shortest(ty: Scalar, image: u64, value: f64) -> String {
    let rounded = |digits: usize| format!("{value:.digits$e}").parse::<f64>().unwrap_or(value);
    if rounded(4) == value {
        return format!("{value:?}");
    }
    let same = |x: &f64| cast_bits(Scalar::F64, ty, Rounding::Nearest, x.to_bits()) == image;
    let near = (0..5).map(rounded).find(same);
    // None comes back where an image is not the one that its number has.
    format!("{:?}", near.unwrap_or(value))
}
