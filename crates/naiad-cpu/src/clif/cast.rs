//! Conversions between types.

use super::lanes::{Emit, Lanes, int_type, lane_type, vector_type};
use cranelift_codegen::ir::{self, InstBuilder, types};
use naiad_ir::Scalar;
use naiad_ir::scalar::{Rounding, cast_bits};

impl Emit<'_> {
    pub fn cast(
        &mut self,
        from: Scalar,
        to: Scalar,
        rounding: Rounding,
        x: &Lanes,
    ) -> Result<Lanes, String> {
        let _ = rounding;
        if from == to {
            return Ok(x.clone());
        }
        if from.is_bool() {
            let one = cast_bits(Scalar::I1, to, Rounding::Nearest, 1);
            let (lane, count) = (lane_type(to.into()), x.count);
            if x.is_scalar() {
                let (one, zero) = (self.lane_const(lane, one), self.lane_const(lane, 0));
                return Ok(Lanes::scalar(lane, self.b.ins().select(x.one(), one, zero)));
            }
            let mask = self.mask_of(x, lane.bits());
            let one = self.constant(int_type(lane.bits()), count, one);
            let image = self.by_part(one.lane, [&mask, &one], |e, [m, one]| e.b.ins().band(m, one));
            return Ok(self.recast(&image, lane));
        }
        if from.is_int() && to.is_int() && !to.is_bool() {
            return Ok(self.resize(x, to.bits(), from.is_signed()));
        }
        if to.is_bool() && (from.is_int() || x.lane.is_float()) {
            let zero = self.constant(x.lane, x.count, 0);
            return Ok(self.compare(naiad_ir::scalar::Predicate::Ne, from.into(), x, &zero));
        }
        if from == Scalar::I32 && to == Scalar::F32 {
            let ty = if x.is_scalar() { types::F32 } else { types::F32X4 };
            return Ok(self.by_part(types::F32, [x], |e, [x]| e.b.ins().fcvt_from_sint(ty, x)));
        }
        let _ = (vector_type(types::I8), ir::Value::from_u32(0));
        Err(format!("no conversion from {from} to {to}"))
    }
}
