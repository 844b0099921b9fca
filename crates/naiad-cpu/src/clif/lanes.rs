//! Vectors of any number of lanes as Cranelift's values, and what moves lanes about.

use super::target::Target;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, Type, types};
use cranelift_frontend::FunctionBuilder;
use naiad_ir::Scalar;
use naiad_ir::thread::ThreadElem;
use rustc_hash::FxHashMap;
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
    held: Held,
    /// Whether all lanes are equal. Such a mask has every width at once.
    pub uniform: bool,
}

/// Constants are made anew for each part that uses them: an instruction takes them from memory, where
/// a register would have to be kept for them all the time.
#[derive(Clone)]
enum Held {
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

fn parts_of(lane: Type, count: u32) -> u32 {
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

/// Nobody writes to the constants, and they are aligned.
const POOL: MemFlagsData = MemFlagsData::trusted().with_readonly();

/// Bytes are numbered from the low end on every machine that we write for.
const BITCAST: MemFlagsData = MemFlagsData::new().with_endianness(ir::Endianness::Little);

/// Instructions of two operands, on all lanes.
macro_rules! lanewise {
    ($($name:ident)+) => {
        impl Emit<'_> { $(
            pub fn $name(&mut self, x: &Lanes, y: &Lanes) -> Lanes {
                self.by_part(x.lane, [x, y], |e, [x, y]| e.b.ins().$name(x, y))
            }
        )+ }
    };
}

lanewise! { iadd isub imul band bor bxor band_not smin smax fadd fsub fdiv }

/// Constants of 128 bits that code loads; a run is told where they are.
#[derive(Default)]
pub struct Pool {
    pub constants: Vec<u128>,
    index: FxHashMap<u128, usize>,
}

impl Pool {
    fn offset(&mut self, bits: u128) -> i32 {
        let next = self.constants.len();
        let at = *self.index.entry(bits).or_insert(next);
        if at == next {
            self.constants.push(bits);
        }
        (16 * at) as i32
    }
}

/// Makes instructions: a builder of Cranelift's with vectors that it does not have.
pub struct Emit<'b> {
    pub b: FunctionBuilder<'b>,
    pub target: &'b Target,
    pub pool: Pool,
    /// Where the pool is.
    pub pool_address: ir::Value,
    /// Where stores go that nobody wants.
    pub nowhere: Option<ir::StackSlot>,
    /// Masks of the present block that were brought to another width, by their first part.
    pub masks: FxHashMap<(ir::Value, u32), Lanes>,
}

impl Emit<'_> {
    /// Goes on in another block.
    pub fn enter(&mut self, block: ir::Block) {
        self.masks.clear();
        self.b.switch_to_block(block);
    }

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
        self.part(&Lanes::constant(lane, lanes_in_part(lane), image), 0)
    }

    /// A part of a vector, or the value of a scalar.
    pub fn part(&mut self, x: &Lanes, index: usize) -> ir::Value {
        let bits = match &x.held {
            Held::Values(parts) => return parts[index],
            Held::Constant(bits) => bits[if bits.len() == 1 { 0 } else { index }],
        };
        if x.is_scalar() {
            return self.lane_const(x.lane, bits as u64);
        }
        let ty = vector_type(x.lane);
        // These need no memory.
        if bits == 0 || bits == u128::MAX {
            let constant = self.b.func.dfg.constants.insert(bits.to_le_bytes().as_slice().into());
            return self.b.ins().vconst(ty, constant);
        }
        let offset = self.pool.offset(bits);
        self.b.ins().load(ty, POOL, self.pool_address, offset)
    }

    /// The value of a scalar.
    pub fn one(&mut self, x: &Lanes) -> ir::Value {
        debug_assert!(x.is_scalar());
        self.part(x, 0)
    }

    pub fn parts(&mut self, x: &Lanes) -> Parts {
        (0..x.num_parts()).map(|i| self.part(x, i)).collect()
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
        let parts = smallvec![part; parts_of(lane, count) as usize];
        Lanes::vector(lane, count, parts).all_equal_if(true)
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
        let held = match &x.held {
            Held::Constant(bits) => Held::Constant(bits.clone()),
            Held::Values(parts) => {
                let ty = part_type(lane, x.count);
                Held::Values(parts.iter().map(|&p| self.bitcast(ty, p)).collect())
            }
        };
        Lanes { lane, held, ..*x }
    }

    pub fn extract(&mut self, x: &Lanes, lane: u32) -> ir::Value {
        if let Some(image) = x.known() {
            return self.lane_const(x.lane, image);
        }
        if x.is_scalar() {
            return self.one(x);
        }
        let each = lanes_in_part(x.lane);
        let part = self.part(x, (lane / each) as usize);
        // Of a vector that repeats a scalar, the scalar.
        if x.uniform
            && let ir::ValueDef::Result(inst, _) = self.b.func.dfg.value_def(part)
            && let ir::InstructionData::Unary { opcode: ir::Opcode::Splat, arg } =
                self.b.func.dfg.insts[inst]
        {
            return arg;
        }
        self.b.ins().extractlane(part, (lane % each) as u8)
    }

    /// A lane of a mask as a boolean.
    pub fn extract_bool(&mut self, mask: &Lanes, lane: u32) -> ir::Value {
        if mask.is_scalar() {
            return self.one(mask);
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

    /// Applies a function of parts to each. A constant is loaded once for all parts.
    pub fn by_part<const N: usize>(
        &mut self,
        lane: Type,
        args: [&Lanes; N],
        mut f: impl FnMut(&mut Self, [ir::Value; N]) -> ir::Value,
    ) -> Lanes {
        let first = args[0];
        debug_assert!(first.is_scalar() || lane.bits() == first.lane.bits());
        let shared = args.map(|x| match &x.held {
            Held::Constant(bits) if bits.len() == 1 => Some(self.part(x, 0)),
            Held::Constant(_) | Held::Values(_) => None,
        });
        let parts = (0..first.num_parts())
            .map(|i| {
                let args =
                    std::array::from_fn(|k| shared[k].unwrap_or_else(|| self.part(args[k], i)));
                f(self, args)
            })
            .collect();
        let uniform = args.iter().all(|x| x.uniform);
        Lanes::vector(lane, first.count, parts).all_equal_if(uniform)
    }

    /// Applies a shift of parts by one amount to each.
    fn shifted(
        &mut self,
        x: &Lanes,
        by: u32,
        shift: fn(&mut FunctionBuilder<'_>, ir::Value, ir::Value) -> ir::Value,
    ) -> Lanes {
        if by == 0 {
            return x.clone();
        }
        self.by_part(x.lane, [x], |e, [x]| {
            let by = e.iconst(types::I32, by.into());
            shift(&mut e.b, x, by)
        })
    }

    pub fn shl(&mut self, x: &Lanes, by: u32) -> Lanes {
        self.shifted(x, by, |b, x, by| b.ins().ishl(x, by))
    }

    pub fn shr(&mut self, x: &Lanes, by: u32) -> Lanes {
        self.shifted(x, by, |b, x, by| b.ins().ushr(x, by))
    }

    pub fn sar(&mut self, x: &Lanes, by: u32) -> Lanes {
        self.shifted(x, by, |b, x, by| b.ins().sshr(x, by))
    }

    pub fn icmp(&mut self, cc: IntCC, x: &Lanes, y: &Lanes) -> Lanes {
        let lane = if x.is_scalar() { types::I8 } else { x.lane };
        self.by_part(lane, [x, y], |e, [x, y]| e.b.ins().icmp(cc, x, y))
    }

    pub fn fcmp(&mut self, cc: FloatCC, x: &Lanes, y: &Lanes) -> Lanes {
        let lane = if x.is_scalar() { types::I8 } else { int_type(x.lane.bits()) };
        self.by_part(lane, [x, y], |e, [x, y]| e.b.ins().fcmp(cc, x, y))
    }

    /// The bytes `order[i]` of two parts.
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
        let lane = int_type(bits);
        if mask.uniform {
            let held = match &mask.held {
                Held::Constant(bits) => {
                    return Lanes { lane, held: Held::Constant(bits.clone()), ..*mask };
                }
                Held::Values(parts) => parts[0],
            };
            let part = self.bitcast(vector_type(lane), held);
            return self.repeat(lane, mask.count, part);
        }
        let first = self.part(mask, 0);
        if let Some(known) = self.masks.get(&(first, bits)) {
            return known.clone();
        }
        let half_way =
            if mask.lane.bits() < bits { self.widen_mask(mask) } else { self.narrow_mask(mask) };
        let converted = self.mask_of(&half_way, bits);
        self.masks.insert((first, bits), converted.clone());
        converted
    }

    fn widen_mask(&mut self, mask: &Lanes) -> Lanes {
        let lane = int_type(2 * mask.lane.bits());
        let (each, narrow) = (lanes_in_part(lane), lanes_in_part(mask.lane));
        let parts = (0..parts_of(lane, mask.count))
            .map(|p| {
                let src = self.part(mask, p as usize / 2);
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
        let halves = self.parts(mask);
        let parts = halves
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
            let one = self.one(mask);
            return self.b.ins().uextend(types::I64, one);
        }
        // The fewest registers first: a byte for a lane is enough.
        let mask = if mask.num_parts() > 1 { self.mask_of(mask, 8) } else { mask.clone() };
        let mut bits: Option<ir::Value> = None;
        for (i, part) in self.parts(&mask).into_iter().enumerate() {
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
            return self.one(mask);
        }
        let joined = self.join(mask, |b, x, y| b.ins().bor(x, y));
        let bits = self.mask_bits(&joined);
        self.b.ins().icmp_imm_u(IntCC::NotEqual, bits, 0)
    }

    pub fn all(&mut self, mask: &Lanes) -> ir::Value {
        if mask.is_scalar() {
            return self.one(mask);
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
        let mut part = self.part(mask, 0);
        for i in 1..mask.num_parts() {
            let next = self.part(mask, i);
            part = f(&mut self.b, part, next);
        }
        Lanes::vector(mask.lane, mask.lanes_used(), smallvec![part])
    }

    /// Lane by lane one or the other.
    pub fn select(&mut self, mask: &Lanes, yes: &Lanes, no: &Lanes) -> Lanes {
        if yes.is_scalar() {
            let [mask, x, y] = [mask, yes, no].map(|x| self.one(x));
            return Lanes::scalar(yes.lane, self.b.ins().select(mask, x, y));
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
