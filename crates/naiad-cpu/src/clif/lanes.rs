//! Vectors of any number of lanes as Cranelift's values, and what moves lanes about.

use super::target::Target;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, types,
};
use cranelift_frontend::FunctionBuilder;
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
    pub parts: Parts,
    /// Whether all lanes are equal. Such a mask has every width at once.
    pub uniform: bool,
}

impl Lanes {
    pub fn scalar(lane: Type, value: ir::Value) -> Lanes {
        Lanes { lane, count: 1, parts: smallvec![value], uniform: true }
    }

    pub fn vector(lane: Type, count: u32, parts: Parts) -> Lanes {
        debug_assert_eq!(parts.len() as u32, count.div_ceil(lanes_in_part(lane)));
        Lanes { lane, count, parts, uniform: false }
    }

    pub fn is_scalar(&self) -> bool {
        self.count == 1
    }

    /// The value of a scalar.
    pub fn one(&self) -> ir::Value {
        debug_assert!(self.is_scalar());
        self.parts[0]
    }

    /// The type of a part.
    pub fn ty(&self) -> Type {
        part_type(self.lane, self.count)
    }

    /// Lanes of a part that mean something.
    pub fn lanes_used(&self) -> u32 {
        self.count.min(lanes_in_part(self.lane))
    }
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

/// Bytes are numbered from the low end on every machine that we write for.
const BITCAST: MemFlagsData = MemFlagsData::new().with_endianness(ir::Endianness::Little);

/// Makes instructions: a builder of Cranelift's with vectors that it does not have.
pub struct Emit<'b> {
    pub b: FunctionBuilder<'b>,
    pub target: &'b Target,
    /// Where stores go that nobody wants.
    pub nowhere: Option<ir::StackSlot>,
}

impl Emit<'_> {
    pub fn iconst(&mut self, ty: Type, value: i64) -> ir::Value {
        let unused = 64 - ty.bits();
        self.b.ins().iconst(ty, ((value as u64) << unused >> unused) as i64)
    }

    /// A constant of a lane's type by its image.
    pub fn lane_const(&mut self, lane: Type, image: u64) -> ir::Value {
        match lane {
            types::F32 => self.b.ins().f32const(f32::from_bits(image as u32)),
            types::F64 => self.b.ins().f64const(f64::from_bits(image)),
            _ => self.iconst(lane, image as i64),
        }
    }

    /// A part with this image in each lane.
    pub fn splat_const(&mut self, lane: Type, image: u64) -> ir::Value {
        let size = lane.bytes() as usize;
        self.vconst(lane, |i| image.to_le_bytes()[i % size])
    }

    fn vconst(&mut self, lane: Type, byte: impl Fn(usize) -> u8) -> ir::Value {
        let bytes: Vec<u8> = (0..16).map(byte).collect();
        let constant = self.b.func.dfg.constants.insert(bytes.into());
        self.b.ins().vconst(vector_type(lane), constant)
    }

    /// The image in every lane.
    pub fn constant(&mut self, lane: Type, count: u32, image: u64) -> Lanes {
        if count == 1 {
            return Lanes::scalar(lane, self.lane_const(lane, image));
        }
        let part = self.splat_const(lane, image);
        self.repeat(lane, count, part)
    }

    /// The image that is in every lane, where it is a constant.
    pub fn known(&self, x: &Lanes) -> Option<u64> {
        let inst = self.b.func.dfg.value_def(x.parts[0]).inst()?;
        let unused = 64 - x.lane.bits();
        match self.b.func.dfg.insts[inst] {
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => {
                Some((imm.bits() as u64) << unused >> unused)
            }
            InstructionData::UnaryConst { opcode: Opcode::Vconst, constant_handle }
                if x.uniform =>
            {
                let bytes = self.b.func.dfg.constants.get(constant_handle).as_slice();
                let mut image = [0; 8];
                let size = x.lane.bytes() as usize;
                image[..size].copy_from_slice(bytes.get(..size)?);
                Some(u64::from_le_bytes(image))
            }
            _ => None,
        }
    }

    /// Numbers from 0 on.
    pub fn iota(&mut self, lane: Type, count: u32) -> Lanes {
        if count == 1 {
            return self.constant(lane, 1, 0);
        }
        let (size, each) = (lane.bytes() as usize, lanes_in_part(lane) as usize);
        let parts = (0..count.div_ceil(each as u32) as usize)
            .map(|p| self.vconst(lane, |i| ((p * each + i / size) as u64).to_le_bytes()[i % size]))
            .collect();
        Lanes::vector(lane, count, parts)
    }

    pub fn splat(&mut self, src: ir::Value, count: u32) -> Lanes {
        let lane = self.b.func.dfg.value_type(src);
        if count == 1 {
            return Lanes::scalar(lane, src);
        }
        let part = self.b.ins().splat(vector_type(lane), src);
        self.repeat(lane, count, part)
    }

    /// A mask out of a boolean.
    pub fn splat_mask(&mut self, src: ir::Value, count: u32) -> Lanes {
        let wide = self.b.ins().uextend(types::I32, src);
        let ones = self.b.ins().ineg(wide);
        self.splat(ones, count)
    }

    fn repeat(&mut self, lane: Type, count: u32, part: ir::Value) -> Lanes {
        let parts = smallvec![part; count.div_ceil(lanes_in_part(lane)) as usize];
        Lanes { uniform: true, ..Lanes::vector(lane, count, parts) }
    }

    /// The same bits as another type of the same width.
    pub fn bitcast(&mut self, ty: Type, x: ir::Value) -> ir::Value {
        if self.b.func.dfg.value_type(x) == ty {
            return x;
        }
        self.b.ins().bitcast(ty, BITCAST, x)
    }

    /// The same bits with lanes of another type of the same width.
    pub fn recast(&mut self, x: &Lanes, lane: Type) -> Lanes {
        let ty = part_type(lane, x.count);
        let parts = x.parts.iter().map(|&p| self.bitcast(ty, p)).collect();
        Lanes { lane, parts, ..*x }
    }

    pub fn extract(&mut self, x: &Lanes, lane: u32) -> ir::Value {
        if x.is_scalar() {
            return x.one();
        }
        let each = lanes_in_part(x.lane);
        self.b.ins().extractlane(x.parts[(lane / each) as usize], (lane % each) as u8)
    }

    /// A lane of a mask as a boolean.
    pub fn extract_bool(&mut self, mask: &Lanes, lane: u32) -> ir::Value {
        if mask.is_scalar() {
            return mask.one();
        }
        let ones = self.extract(mask, lane);
        let byte =
            if mask.lane == types::I8 { ones } else { self.b.ins().ireduce(types::I8, ones) };
        self.b.ins().band_imm_u(byte, 1)
    }

    /// A vector of these lanes.
    pub fn from_lanes(&mut self, lane: Type, lanes: &[ir::Value]) -> Lanes {
        if let [one] = lanes {
            return Lanes::scalar(lane, *one);
        }
        let parts = lanes
            .chunks(lanes_in_part(lane) as usize)
            .map(|lanes| {
                let mut part = self.low_lane(lane, lanes[0]);
                for (i, &x) in lanes.iter().enumerate().skip(1) {
                    part = self.b.ins().insertlane(part, x, i as u8);
                }
                part
            })
            .collect();
        Lanes::vector(lane, lanes.len() as u32, parts)
    }

    /// A part with this lane lowest.
    pub fn low_lane(&mut self, lane: Type, x: ir::Value) -> ir::Value {
        if lane.bits() >= 32 {
            return self.b.ins().scalar_to_vector(vector_type(lane), x);
        }
        let wide = self.b.ins().uextend(types::I32, x);
        let part = self.b.ins().scalar_to_vector(types::I32X4, wide);
        self.bitcast(vector_type(lane), part)
    }

    /// Applies a function of scalars to each lane.
    pub fn by_lane<const N: usize>(
        &mut self,
        lane: Type,
        args: [&Lanes; N],
        mut f: impl FnMut(&mut Self, [ir::Value; N]) -> ir::Value,
    ) -> Lanes {
        let lanes: Vec<ir::Value> = (0..args[0].count)
            .map(|i| {
                let args = args.map(|x| self.extract(x, i));
                f(self, args)
            })
            .collect();
        self.from_lanes(lane, &lanes)
    }

    /// Applies a function of parts to each.
    pub fn by_part<const N: usize>(
        &mut self,
        lane: Type,
        args: [&Lanes; N],
        mut f: impl FnMut(&mut Self, [ir::Value; N]) -> ir::Value,
    ) -> Lanes {
        let first = args[0];
        debug_assert!(first.is_scalar() || lane.bits() == first.lane.bits());
        let parts = (0..first.parts.len()).map(|i| f(self, args.map(|x| x.parts[i]))).collect();
        let uniform = args.iter().all(|x| x.uniform);
        Lanes { lane, count: first.count, parts, uniform }
    }

    /// The lanes `order[i]` of two parts' bytes; `None` for what may be anything.
    fn shuffle_bytes(&mut self, a: ir::Value, b: ir::Value, order: &[u8; 16]) -> ir::Value {
        let ty = self.b.func.dfg.value_type(a);
        let (x, y) = (self.bitcast(types::I8X16, a), self.bitcast(types::I8X16, b));
        let mask = self.b.func.dfg.immediates.push(order.as_slice().into());
        let bytes = self.b.ins().shuffle(x, y, mask);
        self.bitcast(ty, bytes)
    }

    /// Lanes of two parts: those of the second are counted on from the first's.
    pub fn shuffle_parts(
        &mut self,
        lane: Type,
        a: ir::Value,
        b: ir::Value,
        order: impl Fn(u32) -> u32,
    ) -> ir::Value {
        let size = lane.bytes();
        let bytes = std::array::from_fn(|i| {
            let i = i as u32;
            (order(i / size) * size + i % size) as u8
        });
        self.shuffle_bytes(a, b, &bytes)
    }

    /// Lane `i` of the result is lane `order[i]` of `src`, whose parts may be those of two vectors.
    pub fn shuffle(&mut self, lane: Type, src: &[ir::Value], each: u32, order: &[u32]) -> Lanes {
        let parts = order
            .chunks(lanes_in_part(lane) as usize)
            .map(|order| self.shuffle_part(lane, src, each, order))
            .collect();
        Lanes::vector(lane, order.len() as u32, parts)
    }

    /// One part of [`Emit::shuffle`]: the first two sources at once, then one more at a time.
    fn shuffle_part(
        &mut self,
        lane: Type,
        src: &[ir::Value],
        each: u32,
        order: &[u32],
    ) -> ir::Value {
        let from = |i: u32| order.get(i as usize).map(|&o| (o / each, o % each));
        let mut sources: SmallVec<[u32; 8]> = order.iter().map(|o| o / each).collect();
        sources.sort_unstable();
        sources.dedup();
        let second = sources[1.min(sources.len() - 1)];
        let width = lanes_in_part(lane);
        let (a, b) = (src[sources[0] as usize], src[second as usize]);
        // Where a lane comes from another source, or from none, its own place is the cheapest.
        let mut part = self.shuffle_parts(lane, a, b, |i| match from(i) {
            Some((s, l)) if s == sources[0] => l,
            Some((s, l)) if s == second => width + l,
            _ => i,
        });
        for &next in sources.iter().skip(2) {
            part = self.shuffle_parts(lane, part, src[next as usize], |i| match from(i) {
                Some((s, l)) if s == next => width + l,
                _ => i,
            });
        }
        part
    }

    /// The mask with lanes of `bits` bits.
    pub fn mask_of(&mut self, mask: &Lanes, bits: u32) -> Lanes {
        if mask.is_scalar() || mask.lane.bits() == bits {
            return mask.clone();
        }
        if mask.uniform {
            let part = self.bitcast(vector_type(int_type(bits)), mask.parts[0]);
            return self.repeat(int_type(bits), mask.count, part);
        }
        let half_way =
            if mask.lane.bits() < bits { self.widen_mask(mask) } else { self.narrow_mask(mask) };
        self.mask_of(&half_way, bits)
    }

    fn widen_mask(&mut self, mask: &Lanes) -> Lanes {
        let lane = int_type(2 * mask.lane.bits());
        let (each, narrow) = (lanes_in_part(lane), lanes_in_part(mask.lane));
        let parts = (0..mask.count.div_ceil(each))
            .map(|p| {
                let src = mask.parts[p as usize / 2];
                let first = p % 2 * each;
                let twice =
                    self.shuffle_parts(mask.lane, src, src, |i| first + i / 2 + i % 2 * narrow);
                self.bitcast(vector_type(lane), twice)
            })
            .collect();
        Lanes::vector(lane, mask.count, parts)
    }

    fn narrow_mask(&mut self, mask: &Lanes) -> Lanes {
        let lane = int_type(mask.lane.bits() / 2);
        let parts = mask
            .parts
            .chunks(2)
            .map(|pair| {
                let (a, b) = (pair[0], pair[pair.len() - 1]);
                if mask.lane == types::I64 {
                    let (a, b) = (self.bitcast(types::I32X4, a), self.bitcast(types::I32X4, b));
                    self.shuffle_parts(types::I32, a, b, |i| i * 2)
                } else {
                    self.b.ins().snarrow(a, b)
                }
            })
            .collect();
        Lanes::vector(lane, mask.count, parts)
    }

    /// The mask as a number, lane 0 lowest, in 64 bits.
    pub fn mask_bits(&mut self, mask: &Lanes) -> ir::Value {
        if mask.is_scalar() {
            return self.b.ins().uextend(types::I64, mask.one());
        }
        // The fewest registers first: a byte for a lane is enough.
        let mask = if mask.parts.len() > 1 { self.mask_of(mask, 8) } else { mask.clone() };
        let mut bits: Option<ir::Value> = None;
        for (i, &part) in mask.parts.iter().enumerate() {
            let low = self.b.ins().vhigh_bits(types::I32, part);
            let low = self.b.ins().uextend(types::I64, low);
            bits = Some(match bits {
                None => low,
                Some(bits) => {
                    let high = self
                        .b
                        .ins()
                        .ishl_imm_u(low, i as i64 * i64::from(lanes_in_part(mask.lane)));
                    self.b.ins().bor(bits, high)
                }
            });
        }
        let bits = bits.unwrap_or_else(|| self.iconst(types::I64, 0));
        if mask.count < lanes_in_part(mask.lane) {
            return self.b.ins().band_imm_u(bits, (1 << mask.count) - 1);
        }
        bits
    }

    /// The number that [`Emit::mask_bits`] gives for a mask of all true.
    pub fn all_bits(count: u32) -> i64 {
        (u64::MAX >> (64 - count)) as i64
    }

    pub fn any(&mut self, mask: &Lanes) -> ir::Value {
        if mask.is_scalar() {
            return mask.one();
        }
        let joined = self.join(mask, |b, x, y| b.ins().bor(x, y));
        let bits = self.mask_bits(&joined);
        self.b.ins().icmp_imm_u(IntCC::NotEqual, bits, 0)
    }

    pub fn all(&mut self, mask: &Lanes) -> ir::Value {
        if mask.is_scalar() {
            return mask.one();
        }
        let joined = self.join(mask, |b, x, y| b.ins().band(x, y));
        let bits = self.mask_bits(&joined);
        self.b.ins().icmp_imm_u(IntCC::Equal, bits, Self::all_bits(joined.count))
    }

    /// One part out of all.
    fn join(
        &mut self,
        mask: &Lanes,
        f: impl Fn(&mut FunctionBuilder<'_>, ir::Value, ir::Value) -> ir::Value,
    ) -> Lanes {
        let mut part = mask.parts[0];
        for &p in &mask.parts[1..] {
            part = f(&mut self.b, part, p);
        }
        Lanes::vector(mask.lane, mask.lanes_used(), smallvec![part])
    }

    /// Lane by lane one or the other.
    pub fn select(&mut self, mask: &Lanes, yes: &Lanes, no: &Lanes) -> Lanes {
        if yes.is_scalar() {
            let value = self.b.ins().select(mask.one(), yes.one(), no.one());
            return Lanes::scalar(yes.lane, value);
        }
        let mask = self.mask_of(mask, yes.lane.bits());
        self.by_part(yes.lane, [&mask, yes, no], |e, [m, y, n]| e.blend(m, y, n))
    }

    /// Part of the one or of the other, by a mask of lanes as wide.
    pub fn blend(&mut self, mask: ir::Value, yes: ir::Value, no: ir::Value) -> ir::Value {
        let ty = self.b.func.dfg.value_type(yes);
        if !self.target.blends {
            let mask = self.bitcast(ty, mask);
            return self.b.ins().bitselect(mask, yes, no);
        }
        // There is no such instruction for lanes of 16 bits; that for bytes does.
        let by = match ty.lane_bits() {
            32 => types::I32X4,
            64 => types::I64X2,
            _ => types::I8X16,
        };
        let [mask, yes, no] = [mask, yes, no].map(|x| self.bitcast(by, x));
        let part = self.b.ins().blendv(mask, yes, no);
        self.bitcast(ty, part)
    }
}
