//! Values of Thread IR as Cranelift's values.

use cranelift_codegen::ir::{self, Type, types};
use naiad_ir::Scalar;
use naiad_ir::thread::ThreadElem;
use smallvec::{SmallVec, smallvec};

/// Values of Cranelift, of one type.
pub type Parts = SmallVec<[ir::Value; 4]>;

/// A value of Thread IR.
///
/// A scalar is one value of the type `lane`, a boolean a byte that is 0 or 1. A vector is parts of
/// 128 bits; if it is narrower than one, it lies in the low lanes. The lanes of a mask are integers of
/// all ones or all zeros, as wide as what made it had them: converting is left to where it meets
/// another width.
#[derive(Clone)]
pub struct Lanes {
    pub lane: Type,
    pub count: u32,
    pub held: Held,
    /// Whether all lanes are equal. Such a mask has every width at once.
    pub uniform: bool,
}

/// Constants are made anew for each part that uses them: an instruction takes them from memory, where
/// a register would have to be kept for them all the time.
#[derive(Clone)]
pub enum Held {
    Values(Parts),
    /// The bits of each part, or of all parts.
    Constant(SmallVec<[u128; 1]>),
}

impl Lanes {
    pub fn scalar(lane: Type, value: ir::Value) -> Lanes {
        Lanes { lane, count: 1, held: Held::Values(smallvec![value]), uniform: true }
    }

    pub fn vector(lane: Type, count: u32, parts: Parts) -> Lanes {
        debug_assert_eq!(parts.len() as u32, parts_of(lane, count));
        Lanes { lane, count, held: Held::Values(parts), uniform: count == 1 }
    }

    /// The image in every lane.
    pub fn constant(lane: Type, count: u32, image: u64) -> Lanes {
        let held = Held::Constant(smallvec![bits(lane, |_| image)]);
        Lanes { lane, count, held, uniform: true }
    }

    /// A constant for each lane, by its image.
    pub fn of(lane: Type, count: u32, image: impl Fn(u32) -> u64) -> Lanes {
        let each = lanes_in_part(lane);
        let part = |p| bits(lane, |i| image(p * each + i));
        let held = Held::Constant((0..parts_of(lane, count)).map(part).collect());
        Lanes { lane, count, held, uniform: count == 1 }
    }

    pub fn all_equal_if(self, uniform: bool) -> Lanes {
        Lanes { uniform: self.uniform || uniform, ..self }
    }

    pub fn is_scalar(&self) -> bool {
        self.count == 1
    }

    pub fn num_parts(&self) -> usize {
        parts_of(self.lane, self.count) as usize
    }

    /// Lanes of a part that mean something.
    pub fn lanes_used(&self) -> u32 {
        self.count.min(lanes_in_part(self.lane))
    }

    /// The image of every lane, where it is known.
    pub fn known(&self) -> Option<u64> {
        match &self.held {
            Held::Constant(bits) if self.uniform => {
                Some(bits[0] as u64 & u64::MAX >> (64 - self.lane.bits()))
            }
            _ => None,
        }
    }

    /// The same, as a signed number.
    pub fn known_int(&self) -> Option<i64> {
        let unused = 64 - self.lane.bits();
        self.known().map(|image| (image << unused) as i64 >> unused)
    }
}

/// The bits of a part with these images.
fn bits(lane: Type, image: impl Fn(u32) -> u64) -> u128 {
    let mask = u128::MAX >> (128 - lane.bits());
    (0..lanes_in_part(lane))
        .fold(0, |bits, i| bits | (u128::from(image(i)) & mask) << (i * lane.bits()))
}

pub fn parts_of(lane: Type, count: u32) -> u32 {
    if count == 1 { 1 } else { count.div_ceil(lanes_in_part(lane)) }
}

/// Lanes of this type in 128 bits.
pub fn lanes_in_part(lane: Type) -> u32 {
    128 / lane.bits()
}

pub fn part_type(lane: Type, count: u32) -> Type {
    if count == 1 { lane } else { vector_type(lane) }
}

pub fn vector_type(lane: Type) -> Type {
    lane.by(lanes_in_part(lane)).unwrap_or(types::INVALID)
}

/// What holds an element: floats of less than 32 bits are held as their images, a boolean as a byte.
pub fn lane_type(elem: ThreadElem) -> Type {
    match elem {
        ThreadElem::Addr => types::I64,
        ThreadElem::Scalar(Scalar::F32) => types::F32,
        ThreadElem::Scalar(Scalar::F64) => types::F64,
        ThreadElem::Scalar(s) => int_type(s.size() as u32 * 8),
    }
}

pub fn int_type(bits: u32) -> Type {
    Type::int(bits as u16).unwrap_or(types::INVALID)
}
