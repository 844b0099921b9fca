//! Types of Placed IR.

use crate::layout::{Layout, Swizzle};
use naiad_ir::Type;
use std::fmt;
use std::str::FromStr;

/// Where a value is.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// Every thread has it: a scalar.
    Everywhere,
    /// Spread over the registers of the threads.
    Spread(Layout),
    /// In each of some slots of shared memory.
    Shared { swizzle: Swizzle, slots: u32 },
}

/// The type of a value. In text: `fp32`, `<64x32xfp32><r1_2l4_8_16_32_64w128_256>`,
/// `<64x32xfp16><s1_2_4_8_16_32_64_128_256_512_1024n3>`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlacedType {
    pub ty: Type,
    pub place: Place,
}

impl PlacedType {
    pub const fn scalar(ty: Type) -> PlacedType {
        PlacedType { ty, place: Place::Everywhere }
    }

    pub const fn spread(ty: Type, layout: Layout) -> PlacedType {
        PlacedType { ty, place: Place::Spread(layout) }
    }

    pub const fn layout(&self) -> Option<Layout> {
        match self.place {
            Place::Spread(layout) => Some(layout),
            Place::Everywhere | Place::Shared { .. } => None,
        }
    }
}

impl fmt::Display for PlacedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Everywhere => write!(f, "{}", self.ty),
            Place::Spread(layout) => write!(f, "{}<{layout}>", self.ty),
            Place::Shared { swizzle, slots } => write!(f, "{}<{swizzle}n{slots}>", self.ty),
        }
    }
}

impl FromStr for PlacedType {
    type Err = String;

    fn from_str(text: &str) -> Result<PlacedType, String> {
        let wrong = || format!("`{text}` is no type");
        let parse = |ty: &str| ty.parse::<Type>().map_err(|_| wrong());
        // The type of a tile stands in angle brackets of its own.
        let Some((ty, place)) = text.rsplit_once('<').filter(|(ty, _)| !ty.is_empty()) else {
            return Ok(PlacedType::scalar(parse(text)?));
        };
        let place = place.strip_suffix('>').ok_or_else(wrong)?;
        let place = match place.split_once('n') {
            Some((swizzle, slots)) => {
                let slots = slots.parse().map_err(|_| wrong())?;
                Place::Shared { swizzle: swizzle.parse()?, slots }
            }
            None => Place::Spread(place.parse()?),
        };
        Ok(PlacedType { ty: parse(ty)?, place })
    }
}
