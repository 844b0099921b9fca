//! Makes instructions: Cranelift's, on vectors that it does not have.

use super::lanes::{Held, Lanes, Parts, int_type, lanes_in_part, part_type, parts_of, vector_type};
use super::target::Target;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, Type, types};
use cranelift_frontend::FunctionBuilder;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

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

/// Nobody writes to the constants, and they are aligned.
const POOL: MemFlagsData = MemFlagsData::trusted().with_readonly();

/// Bytes are numbered from the low end on every machine that we write for.
const BITCAST: MemFlagsData = MemFlagsData::new().with_endianness(ir::Endianness::Little);

/// Makes instructions: a builder of Cranelift's with vectors that it does not have.
pub struct Emit<'b> {
    pub b: FunctionBuilder<'b>,
    pub target: &'b Target,
    pub pool: Pool,
    /// Where the pool is.
    pub pool_address: ir::Value,
    /// Memory for the time of an access.
    pub stack: Option<ir::StackSlot>,
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

    pub fn repeat(&mut self, lane: Type, count: u32, part: ir::Value) -> Lanes {
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

    /// A vector of these lanes.
    pub fn vector_of(&mut self, lane: Type, lanes: &[ir::Value]) -> Lanes {
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
        self.vector_of(lane, &lanes)
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
        let own = |(i, &o): (usize, &u32)| o % each == i as u32;
        if let ([only], true) = (&sources[..], order.iter().enumerate().all(own)) {
            return src[*only as usize];
        }
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
}

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
