//! Conversions.

use super::lower::{Lanes, Lower};
use super::machine::Op;
use naiad_ir::scalar::Rounding;
use naiad_ir::{Scalar, Value};

impl Lower<'_> {
    pub fn cast(&mut self, src: Value, to: Scalar, _rounding: Rounding) -> Option<Lanes> {
        let from = self.scalar_of(src)?;
        let x = self.get(src)?;
        if from == to {
            return Some(x);
        }
        match (from, to) {
            (Scalar::I32, Scalar::F32) => Some(self.by_part(Op::I32ToPs, [&x])),
            (Scalar::U32, Scalar::F32) if self.avx512() => Some(self.by_part(Op::U32ToPs, [&x])),
            _ if from.is_int() && to.is_int() && from.bits() == to.bits() => Some(x),
            _ => None,
        }
    }
}
