//! Conversions, with the results of [`naiad_ir::scalar::cast_bits`].

use crate::Target;
use crate::bytes::Byte;
use crate::emit::{Class, Emit, Lanes, Operand};
use naiad_ir::Scalar;
use naiad_ir::scalar::{Rounding, cast_bits};
use smallvec::SmallVec;

/// Whether [`Emit::cast`] has the conversion; the others are made of these.
pub fn is_native(target: Target, from: Scalar, to: Scalar, rounding: Rounding) -> bool {
    let narrow = |ty: Scalar| ty.is_float() && ty.bits() < 32;
    let has_fp8 = |ty| target.capability >= 89 && matches!(ty, Scalar::F8E5 | Scalar::F8E4NV);
    match (from, to) {
        _ if from == to || from.is_bool() => true,
        (Scalar::F16 | Scalar::BF16, _) => to == Scalar::F32,
        _ if narrow(from) => to == Scalar::F32 && has_fp8(from),
        (Scalar::F32, Scalar::BF16) | (_, Scalar::F16) => true,
        (Scalar::F32, _) if has_fp8(to) => rounding == Rounding::Nearest,
        _ => !narrow(to),
    }
}

impl Emit {
    pub fn cast(&mut self, from: Scalar, to: Scalar, rounding: Rounding, x: &[Operand]) -> Lanes {
        if let Some((opcode, x)) = pair_opcode(from, to, rounding).zip(pairs(x)) {
            return x
                .flat_map(|[low, high]| self.cast_pair(from, to, &opcode, low, high))
                .collect();
        }
        x.iter().map(|&x| self.cast_one(from, to, rounding, x)).collect()
    }

    fn cast_one(&mut self, from: Scalar, to: Scalar, rounding: Rounding, x: Operand) -> Operand {
        let class = Class::of(to.into());
        if from == to {
            return x;
        }
        if from.is_bool() {
            let image = |x| Operand::Imm(class, cast_bits(Scalar::I1, to, rounding, x));
            return self.select(x, image(1), image(0));
        }
        let x = self.reg(x);
        let nearest = if rounding == Rounding::TowardZero { "rz" } else { "rn" };
        match (from, to) {
            (_, Scalar::I1) if from.is_float() => {
                self.setp(&format!("setp.neu.{}", ty(from)), x, Operand::imm(x.class(), 0))
            }
            (_, Scalar::I1) => {
                self.setp(&format!("setp.ne.{}", ty(from)), x, Operand::imm(x.class(), 0))
            }
            (Scalar::F16, _) => self.ins("cvt.f32.f16", class, [x]),
            (Scalar::BF16, _) => {
                let low = Operand::Imm(Class::Half, 0);
                let dst = self.fresh(Class::Word);
                self.line(format_args!("mov.b32 {dst}, {{{low}, {x}}}"));
                dst
            }
            (Scalar::F8E5 | Scalar::F8E4NV, _) => self.cast_byte(from, x),
            (Scalar::F32, Scalar::F64) => self.ins("cvt.f64.f32", class, [x]),
            (_, Scalar::F8E5 | Scalar::F8E4NV) => {
                let zero = Operand::word(0);
                let opcode = pair_opcode(from, to, rounding).unwrap_or_default();
                let pair = self.fresh(Class::Half);
                self.put(&opcode, pair, &[zero, x]);
                self.ins("cvt.u32.u16", Class::Word, [pair])
            }
            _ if from.is_float() && to.is_float() => {
                self.ins(&format!("cvt.{nearest}.{}.{}", ty(to), ty(from)), class, [x])
            }
            _ if from.is_float() => self.float_to_int(from, to, x),
            _ if to.is_float() => self.ins(&format!("cvt.rn.{}.{}", ty(to), ty(from)), class, [x]),
            _ => self.int_to_int(from, to, x),
        }
    }

    pub fn int_to_int(&mut self, from: Scalar, to: Scalar, x: Operand) -> Operand {
        let (have, want) = (from.bits(), to.bits());
        let signed = if from.is_signed() { 's' } else { 'u' };
        match (have, want) {
            (8 | 32, 8) => self.extend_byte(to.into(), x),
            (16 | 64, 8) => {
                let word = self.ins(&format!("cvt.u32.u{have}"), Class::Word, [x]);
                self.extend_byte(to.into(), word)
            }
            (32, 16) => {
                let [low, high, ..] = self.bytes_of(x);
                match self.half_of([low, high]) {
                    // Cut out of a register before.
                    Some(half) if self.bytes.contains_key(&x) => half,
                    _ => self.ins("cvt.u16.u32", Class::Half, [x]),
                }
            }
            (16, 32) if !from.is_signed() => {
                let word = self.ins("cvt.u32.u16", Class::Word, [x]);
                let [low, high, ..] = self.bytes_of(x);
                self.holds(word, [low, high, Byte::Zero, Byte::Zero])
            }
            // A byte is held as a word that is extended after its type.
            (8, 16) => self.ins("cvt.u16.u32", Class::Half, [x]),
            (8, 32) => x,
            (8, 64) => self.ins(&format!("cvt.{signed}64.{signed}32"), Class::Double, [x]),
            _ if have == want => x,
            _ if have > want => {
                self.ins(&format!("cvt.u{want}.u{have}"), Class::of(to.into()), [x])
            }
            _ => {
                let opcode = format!("cvt.{signed}{want}.{signed}{have}");
                let made = self.ins(&opcode, Class::of(to.into()), [x]);
                if (have, want) == (32, 64) {
                    self.widened.insert(made, (x, from.is_signed()));
                }
                made
            }
        }
    }

    /// Toward zero and saturating. A NaN is 0, which of 64 bits PTX says otherwise.
    fn float_to_int(&mut self, from: Scalar, to: Scalar, x: Operand) -> Operand {
        let signed = to.is_signed();
        let bits = to.bits().max(32);
        let class = if bits == 64 { Class::Double } else { Class::Word };
        let kind = if signed { 's' } else { 'u' };
        let mut made = self.ins(&format!("cvt.rzi.{kind}{bits}.{}", ty(from)), class, [x]);
        if from == Scalar::F64 || bits == 64 {
            let is_nan = self.setp(&format!("setp.nan.{}", ty(from)), x, x);
            made = self.select(is_nan, Operand::imm(class, 0), made);
        }
        if to.bits() >= 32 {
            return made;
        }
        // Saturated to 16 bits; 8 bits are the low ones of those.
        let limits = if signed { [-0x8000, 0x7fff] } else { [0, 0xffff] };
        if signed {
            made = self.ins("max.s32", Class::Word, [made, Operand::word(limits[0])]);
        }
        made = self.ins(&format!("min.{kind}32"), Class::Word, [made, Operand::word(limits[1])]);
        match to.bits() {
            8 => self.extend_byte(to.into(), made),
            _ => self.ins("cvt.u16.u32", Class::Half, [made]),
        }
    }

    /// A byte as fp32.
    fn cast_byte(&mut self, from: Scalar, x: Operand) -> Operand {
        let pair = self.ins("cvt.u16.u32", Class::Half, [x]);
        let [low, _] = self.bytes_to_fp16(from, pair);
        self.ins("cvt.f32.f16", Class::Word, [low])
    }

    fn bytes_to_fp16(&mut self, from: Scalar, pair: Operand) -> [Operand; 2] {
        self.needs(if self.target.capability == 89 { 81 } else { 78 });
        let word = self.ins(&format!("cvt.rn.f16x2.{}x2", ty(from)), Class::Word, [pair]);
        self.halves(word)
    }

    fn cast_pair(
        &mut self,
        from: Scalar,
        to: Scalar,
        opcode: &str,
        low: Operand,
        high: Operand,
    ) -> [Operand; 2] {
        let (low, high) = (self.reg(low), self.reg(high));
        if to == Scalar::F32 {
            let pair = self.byte_pair(low, high);
            return self
                .bytes_to_fp16(from, pair)
                .map(|x| self.ins("cvt.f32.f16", Class::Word, [x]));
        }
        if to.bits() == 16 {
            // The first operand goes into the high half.
            let word = self.ins(opcode, Class::Word, [high, low]);
            return self.halves(word);
        }
        self.needs(if self.target.capability == 89 { 81 } else { 78 });
        let pair = self.ins(opcode, Class::Half, [high, low]);
        let word = self.ins("cvt.u32.u16", Class::Word, [pair]);
        let low = self.ins("and.b32", Class::Word, [word, Operand::word(0xff)]);
        let high = self.ins("shr.u32", Class::Word, [word, Operand::word(8)]);
        let rest = Byte::Zero;
        [(low, 0), (high, 1)].map(|(x, i)| self.holds(x, [Byte::Of(pair, i), rest, rest, rest]))
    }
}

/// The instruction that converts two numbers at once.
fn pair_opcode(from: Scalar, to: Scalar, rounding: Rounding) -> Option<String> {
    let how = if rounding == Rounding::TowardZero { "rz" } else { "rn" };
    match (from, to) {
        (Scalar::F32, Scalar::F16 | Scalar::BF16) => Some(format!("cvt.{how}.{}x2.f32", ty(to))),
        (Scalar::F32, Scalar::F8E5 | Scalar::F8E4NV) => {
            Some(format!("cvt.rn.satfinite.{}x2.f32", ty(to)))
        }
        (Scalar::F8E5 | Scalar::F8E4NV, Scalar::F32) => {
            Some(format!("cvt.rn.f16x2.{}x2", ty(from)))
        }
        _ => None,
    }
}

/// Lanes two by two, if there is more than one.
fn pairs(x: &[Operand]) -> Option<impl Iterator<Item = [Operand; 2]>> {
    let pairs: SmallVec<[[Operand; 2]; 4]> = x.chunks_exact(2).map(|p| [p[0], p[1]]).collect();
    (x.len() > 1).then(|| pairs.into_iter())
}

/// The type's name in an instruction that converts; a byte is held as a word.
fn ty(of: Scalar) -> &'static str {
    match of {
        Scalar::I1 => "pred",
        Scalar::I8 | Scalar::I32 => "s32",
        Scalar::U8 | Scalar::U32 => "u32",
        Scalar::I16 => "s16",
        Scalar::U16 => "u16",
        Scalar::I64 => "s64",
        Scalar::U64 => "u64",
        Scalar::F8E5 => "e5m2",
        Scalar::F8E4NV => "e4m3",
        Scalar::F16 => "f16",
        Scalar::BF16 => "bf16",
        Scalar::F32 => "f32",
        Scalar::F64 => "f64",
        Scalar::F8E4B15 | Scalar::F8E5B16 | Scalar::F8E4B8 => "b32",
    }
}
