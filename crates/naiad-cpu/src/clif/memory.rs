//! Accesses of memory.
//!
//! A masked access of consecutive lanes tests for the common case that all lanes are wanted. Where they
//! are not, and for gathers and scatters, lanes go one by one without branches: a lane that is not
//! wanted is read from a place that is always 0, or written to one that nobody reads. Of many lanes
//! only those that are wanted are copied, in a loop, so that the code stays short.

use super::emit::Emit;
use super::lanes::{Lanes, int_type, lane_type, lanes_in_part, part_type, vector_type};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Type, types,
};
use naiad_ir::Scalar;
use naiad_ir::thread::ThreadElem;
use smallvec::SmallVec;

/// Accesses are guarded by the IR itself and need no alignment.
pub const ACCESS: MemFlagsData = MemFlagsData::new().with_notrap();

/// What lanes are read from that no mask lets through.
static ZEROS: [u64; 1] = [0];

/// Lanes up to which a masked access is written without a loop.
const UNROLLED: u32 = 8;

/// An address and what is added to it.
#[derive(Copy, Clone)]
pub struct Place {
    pub addr: ir::Value,
    pub disp: i64,
}

impl Emit<'_> {
    /// The place with an offset that an instruction takes.
    fn near(&mut self, p: Place, plus: i64) -> (ir::Value, i32) {
        let disp = p.disp.wrapping_add(plus);
        match i32::try_from(disp) {
            Ok(disp) => (p.addr, disp),
            Err(_) => (self.b.ins().iadd_imm_s(p.addr, disp), 0),
        }
    }

    pub fn address(&mut self, p: Place, plus: i64) -> ir::Value {
        match p.disp.wrapping_add(plus) {
            0 => p.addr,
            disp => self.b.ins().iadd_imm_s(p.addr, disp),
        }
    }

    /// Consecutive lanes.
    pub fn load(&mut self, elem: ThreadElem, count: u32, p: Place, mask: Option<&Lanes>) -> Lanes {
        let lane = lane_type(elem);
        let raw = match mask {
            None => self.load_all(lane, count, p),
            Some(mask) if count == 1 => {
                let address = self.address(p, 0);
                let bit = (self.one(mask), 0);
                let lanes = [self.load_lane(lane, address, Some(bit))];
                self.vector_of(lane, &lanes)
            }
            Some(mask) => self.load_some(lane, count, p, mask),
        };
        self.loaded(elem, raw)
    }

    /// A lane at each address.
    pub fn gather(&mut self, elem: ThreadElem, addr: &Lanes, mask: Option<&Lanes>) -> Lanes {
        let lane = lane_type(elem);
        let bits = mask.map(|m| self.mask_bits(m));
        let lanes: SmallVec<[ir::Value; 16]> = (0..addr.count)
            .map(|i| {
                let address = self.extract(addr, i);
                self.load_lane(lane, address, bits.map(|b| (b, i)))
            })
            .collect();
        let raw = self.vector_of(lane, &lanes);
        self.loaded(elem, raw)
    }

    pub fn store(&mut self, elem: ThreadElem, value: &Lanes, p: Place, mask: Option<&Lanes>) {
        let raw = self.storable(elem, value);
        match mask {
            None => self.store_all(&raw, p),
            Some(mask) if raw.is_scalar() => {
                let address = self.address(p, 0);
                let (x, bit) = (self.one(&raw), (self.one(mask), 0));
                self.store_lane(x, address, Some(bit));
            }
            Some(mask) => self.store_some(&raw, p, mask),
        }
    }

    /// A lane to each address, in their order.
    pub fn scatter(&mut self, elem: ThreadElem, value: &Lanes, addr: &Lanes, mask: Option<&Lanes>) {
        let raw = self.storable(elem, value);
        let bits = mask.map(|m| self.mask_bits(m));
        for i in 0..addr.count {
            let lane = self.extract(&raw, i);
            let address = self.extract(addr, i);
            self.store_lane(lane, address, bits.map(|b| (b, i)));
        }
    }

    /// Booleans in memory are bytes, true if not 0.
    pub fn loaded(&mut self, elem: ThreadElem, raw: Lanes) -> Lanes {
        if elem != ThreadElem::Scalar(Scalar::I1) {
            return raw;
        }
        let zero = Lanes::constant(types::I8, raw.count, 0);
        self.icmp(IntCC::NotEqual, &raw, &zero)
    }

    pub fn storable(&mut self, elem: ThreadElem, value: &Lanes) -> Lanes {
        if elem != ThreadElem::Scalar(Scalar::I1) || value.is_scalar() {
            return value.clone();
        }
        let bytes = self.mask_of(value, 8);
        let one = Lanes::constant(types::I8, value.count, 1);
        self.band(&bytes, &one)
    }

    fn load_all(&mut self, lane: Type, count: u32, p: Place) -> Lanes {
        let ty = part_type(lane, count);
        if count == 1 {
            let (addr, disp) = self.near(p, 0);
            return Lanes::scalar(lane, self.b.ins().load(ty, ACCESS, addr, disp));
        }
        let bytes = i64::from(count * lane.bytes());
        let parts = (0..bytes)
            .step_by(16)
            .map(|at| {
                let (addr, disp) = self.near(p, at);
                let Some(narrow) = narrow_type(bytes) else {
                    return self.b.ins().load(ty, ACCESS, addr, disp);
                };
                let low = self.b.ins().load(narrow, ACCESS, addr, disp);
                let part = self.low_lane(narrow, low);
                self.bitcast(ty, part)
            })
            .collect();
        Lanes::vector(lane, count, parts)
    }

    fn store_all(&mut self, value: &Lanes, p: Place) {
        let bytes = i64::from(value.count * value.lane.bytes());
        for i in 0..value.num_parts() {
            let part = self.part(value, i);
            let (addr, disp) = self.near(p, 16 * i as i64);
            let narrow = if value.is_scalar() { None } else { narrow_type(bytes) };
            let x = match narrow {
                None => part,
                Some(narrow) => {
                    let wide = self.bitcast(vector_type(narrow), part);
                    self.b.ins().extractlane(wide, 0)
                }
            };
            self.b.ins().store(ACCESS, x, addr, disp);
        }
    }

    /// A lane, or 0 where the bit of this number is not set.
    fn load_lane(&mut self, lane: Type, address: ir::Value, wanted: Option<Bit>) -> ir::Value {
        let address = match wanted {
            None => address,
            Some(bit) => {
                let zeros = self.iconst(types::I64, ZEROS.as_ptr() as i64);
                self.if_set(bit, address, zeros)
            }
        };
        self.b.ins().load(lane, ACCESS, address, 0)
    }

    fn store_lane(&mut self, x: ir::Value, address: ir::Value, wanted: Option<Bit>) {
        let address = match wanted {
            None => address,
            Some(bit) => {
                let nowhere = self.on_stack(8);
                self.if_set(bit, address, nowhere)
            }
        };
        self.b.ins().store(ACCESS, x, address, 0);
    }

    fn if_set(&mut self, (bits, i): Bit, yes: ir::Value, no: ir::Value) -> ir::Value {
        let bit = self.b.ins().band_imm_u(bits, 1 << i);
        self.b.ins().select(bit, yes, no)
    }

    fn load_some(&mut self, lane: Type, count: u32, p: Place, mask: &Lanes) -> Lanes {
        let ty = part_type(lane, count);
        let join = self.b.create_block();
        let parts = count.div_ceil(lanes_in_part(lane));
        let results = (0..parts).map(|_| self.b.append_block_param(join, ty)).collect();
        let slow = self.branch_all(mask);
        let all = self.load_all(lane, count, p);
        self.leave(join, &all);

        self.enter(slow);
        self.b.seal_block(slow);
        let some = if count <= UNROLLED {
            let bits = self.mask_bits(mask);
            let lanes: SmallVec<[ir::Value; UNROLLED as usize]> = (0..count)
                .map(|i| {
                    let address = self.address(p, i64::from(i * lane.bytes()));
                    self.load_lane(lane, address, Some((bits, i)))
                })
                .collect();
            self.vector_of(lane, &lanes)
        } else {
            let buffer = self.buffer(lane, count);
            let zeros = Lanes::constant(lane, count, 0);
            self.store_all(&zeros, buffer);
            self.each_wanted(mask, lane, |e, at| e.copy_lane(lane, p, buffer, at));
            self.load_all(lane, count, buffer)
        };
        self.leave(join, &some);

        self.enter(join);
        self.b.seal_block(join);
        Lanes::vector(lane, count, results)
    }

    fn store_some(&mut self, value: &Lanes, p: Place, mask: &Lanes) {
        let (lane, count) = (value.lane, value.count);
        let join = self.b.create_block();
        let slow = self.branch_all(mask);
        self.store_all(value, p);
        self.b.ins().jump(join, &[]);

        self.enter(slow);
        self.b.seal_block(slow);
        if count <= UNROLLED {
            let bits = self.mask_bits(mask);
            for i in 0..count {
                let x = self.extract(value, i);
                let address = self.address(p, i64::from(i * lane.bytes()));
                self.store_lane(x, address, Some((bits, i)));
            }
        } else {
            let buffer = self.buffer(lane, count);
            self.store_all(value, buffer);
            self.each_wanted(mask, lane, |e, at| e.copy_lane(lane, buffer, p, at));
        }
        self.b.ins().jump(join, &[]);

        self.enter(join);
        self.b.seal_block(join);
    }

    /// Room for a vector.
    fn buffer(&mut self, lane: Type, count: u32) -> Place {
        Place { addr: self.on_stack(count * lane.bytes()), disp: 0 }
    }

    /// Memory on the stack, aligned for any vector. It is the same each time, so that a function of
    /// many accesses still has a small frame: nothing stays there past one access.
    pub fn on_stack(&mut self, bytes: u32) -> ir::Value {
        let slot = match self.stack {
            Some(slot) => slot,
            None => {
                let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4);
                *self.stack.insert(self.b.create_sized_stack_slot(data))
            }
        };
        let size = &mut self.b.func.sized_stack_slots[slot].size;
        *size = bytes.max(*size);
        self.b.ins().stack_addr(types::I64, slot, 0)
    }

    fn copy_lane(&mut self, lane: Type, from: Place, to: Place, at: ir::Value) {
        let [from, to] = [from, to].map(|p| {
            let (addr, disp) = self.near(p, 0);
            (self.b.ins().iadd(addr, at), disp)
        });
        let x = self.b.ins().load(int_type(lane.bits()), ACCESS, from.0, from.1);
        self.b.ins().store(ACCESS, x, to.0, to.1);
    }

    /// Runs the body with the offset of each lane whose mask is true, from the lowest on.
    fn each_wanted(&mut self, mask: &Lanes, lane: Type, body: impl FnOnce(&mut Self, ir::Value)) {
        let (inside, exit) = (self.b.create_block(), self.b.create_block());
        let left = self.b.append_block_param(inside, types::I64);
        let bits = self.mask_bits(mask);
        self.b.ins().brif(bits, inside, &[bits.into()], exit, &[]);

        self.enter(inside);
        let lowest = self.b.ins().ctz(left);
        let at = self.b.ins().ishl_imm_u(lowest, i64::from(lane.bytes().trailing_zeros()));
        body(self, at);
        let less = self.b.ins().iadd_imm_s(left, -1);
        let rest = self.b.ins().band(left, less);
        self.b.ins().brif(rest, inside, &[rest.into()], exit, &[]);
        self.b.seal_block(inside);
        self.b.seal_block(exit);
        self.enter(exit);
    }

    /// Goes on where the whole mask is true; gives the block where it is not.
    fn branch_all(&mut self, mask: &Lanes) -> ir::Block {
        let (fast, slow) = (self.b.create_block(), self.b.create_block());
        let all = self.all(mask);
        self.b.ins().brif(all, fast, &[], slow, &[]);
        self.enter(fast);
        self.b.seal_block(fast);
        slow
    }

    fn leave(&mut self, to: ir::Block, with: &Lanes) {
        let args: SmallVec<[ir::BlockArg; 4]> =
            self.parts(with).iter().map(|&v| v.into()).collect();
        self.b.ins().jump(to, &args);
    }
}

/// A number and which of its bits is meant.
type Bit = (ir::Value, u32);

/// What holds a vector of less than 128 bits in memory.
fn narrow_type(bytes: i64) -> Option<Type> {
    match bytes {
        2 => Some(types::I16),
        4 => Some(types::F32),
        8 => Some(types::F64),
        _ => None,
    }
}
