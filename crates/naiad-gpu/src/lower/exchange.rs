//! What goes from thread to thread: conversions of layouts, and all that goes through shared memory.

use super::access::in_memory;
use super::room::Room;
use super::{Lower, Registers};
use crate::layout::{Conversion, Layout, Swizzle, conversion, numel_bits, swizzle};
use naiad_ir::scalar::{Predicate, Rounding};
use naiad_ir::thread::{Lanes, ShuffleMode, ThreadElem, ThreadOp};
use naiad_ir::{Scalar, Shape, Value};

impl Lower<'_> {
    /// A tile in another layout.
    pub fn convert(
        &mut self,
        src: &Registers,
        elem: ThreadElem,
        shape: &Shape,
        from: &Layout,
        to: &Layout,
    ) -> Registers {
        match conversion(from, to) {
            Conversion::Registers(order) => order.into_iter().map(|r| src[r]).collect(),
            Conversion::Shuffles { registers, constants, lanes } => {
                let layout = Layout::new(&[], lanes, &[]);
                let lane = self.linear(&layout);
                let same = lanes == [1, 2, 4, 8, 16];
                (registers.into_iter().zip(constants))
                    .map(|(r, by)| match (same, by) {
                        (true, 0) => src[r],
                        (true, by) => self.shuffle_xor(src[r], by),
                        (false, by) => {
                            let by = self.i32(i64::from(by));
                            let from = self.xor(lane, by);
                            self.shuffle_from(src[r], from)
                        }
                    })
                    .collect()
            }
            Conversion::Shared => {
                let size = in_memory(elem).size() as u32;
                let (way, _) = swizzle(from, to, numel_bits(shape), size);
                let room = self.put(src, elem, &way.of(from), numel_bits(shape));
                self.sync();
                let out = self.take(room, elem, &way.of(to), 0);
                self.end_use(room);
                out
            }
        }
    }

    /// Writes a tile to shared memory, each element at its position.
    pub fn put(
        &mut self,
        src: &Registers,
        elem: ThreadElem,
        positions: &Layout,
        bits: u32,
    ) -> Room {
        let room = self.begin_use((in_memory(elem).size() as u32) << bits);
        self.put_at(src, elem, positions, room.at);
        room
    }

    /// The same where there is room for it already.
    pub fn put_at(&mut self, src: &Registers, elem: ThreadElem, positions: &Layout, at: u32) {
        let size = in_memory(elem).size() as u32;
        let owner = self.owns(positions);
        for (register, group) in vectors(positions, size) {
            let place = self.place(positions, register, size);
            let values: Vec<Value> = group.iter().map(|&r| self.stored(src[r])).collect();
            let value = self.pack(&values);
            let mask = owner.map(|o| self.b.splat(o, values.len() as u32));
            let (place, disp) = (place.0, place.1 + i64::from(at));
            self.b.run(ThreadOp::SharedStore { at: place, value, disp, mask });
        }
    }

    /// Reads a tile from shared memory, from the positions of its elements xor `offset`.
    pub fn take(
        &mut self,
        room: Room,
        elem: ThreadElem,
        positions: &Layout,
        offset: u32,
    ) -> Registers {
        self.take_xor(self.shared, elem, positions, offset, room.at)
    }

    /// Reads a tile from a part of shared memory that begins at `base`.
    pub fn take_at(&mut self, base: Value, elem: ThreadElem, positions: &Layout) -> Registers {
        self.take_xor(base, elem, positions, 0, 0)
    }

    fn take_xor(
        &mut self,
        base: Value,
        elem: ThreadElem,
        positions: &Layout,
        offset: u32,
        at: u32,
    ) -> Registers {
        let memory = in_memory(elem);
        let size = memory.size() as u32;
        let mut out = vec![None; positions.count()];
        for (register, group) in vectors(positions, size) {
            // Neighbours stay together only if the offset leaves their bits alone.
            let whole = offset & (group.len() as u32 - 1) == 0;
            let parts: Vec<&[usize]> = if whole { vec![&group] } else { group.chunks(1).collect() };
            for part in parts {
                let first = if whole { register } else { part[0] };
                let (place, disp) = self.place_from(base, positions, first, size, offset);
                let all = self.b.op(ThreadOp::SharedLoad {
                    at: place,
                    disp: disp + i64::from(at),
                    elem: memory,
                    lanes: Lanes(part.len() as u32),
                    mask: None,
                });
                for (i, &r) in part.iter().enumerate() {
                    out[r] = Some(self.b.extract(all, i as u32));
                }
            }
        }
        let kept = positions.registers().iter().enumerate().filter(|(_, b)| **b != 0);
        let kept: usize = kept.map(|(i, _)| 1 << i).sum();
        (0..out.len())
            .map(|r| match out[r & kept] {
                Some(value) => self.loaded(value, elem),
                None => unreachable!("each register that is no copy is read"),
            })
            .collect()
    }

    fn stored(&mut self, value: Value) -> Value {
        match self.b.vector(value).elem {
            ThreadElem::Scalar(Scalar::I1) => self.b.cast(value, Scalar::U8, Rounding::Nearest),
            _ => value,
        }
    }

    fn loaded(&mut self, value: Value, elem: ThreadElem) -> Value {
        if elem != ThreadElem::Scalar(Scalar::I1) {
            return value;
        }
        let zero = self.b.constant(naiad_ir::tile::Constant::int(Scalar::U8, 0), 1);
        self.b.compare(Predicate::Ne, value, zero)
    }

    /// The address of a register's element, and what is to be added to it as a constant.
    pub fn place(&mut self, positions: &Layout, register: usize, size: u32) -> (Value, i64) {
        self.place_xor(positions, register, size, 0)
    }

    fn place_xor(
        &mut self,
        positions: &Layout,
        register: usize,
        size: u32,
        offset: u32,
    ) -> (Value, i64) {
        self.place_from(self.shared, positions, register, size, offset)
    }

    /// The same where another part of shared memory begins at `base`.
    pub fn place_in(
        &mut self,
        base: Value,
        positions: &Layout,
        register: usize,
        size: u32,
    ) -> (Value, i64) {
        self.place_from(base, positions, register, size, 0)
    }

    fn place_from(
        &mut self,
        base: Value,
        positions: &Layout,
        register: usize,
        size: u32,
        offset: u32,
    ) -> (Value, i64) {
        let bytes = positions.map(|b| b * size);
        let own = (positions.register_part(register) ^ offset) * size;
        let taken = Self::linear_bits(&bytes);
        let mut at = self.linear(&bytes);
        if own & taken != 0 {
            let by = self.i32(i64::from(own & taken));
            at = self.xor(at, by);
        }
        (self.add(base, at), i64::from(own & !taken))
    }

    /// A tile whose element along an axis is that at the other end.
    pub fn flip(&mut self, src: Value, axis: usize) -> Registers {
        let registers = self.get(src).clone();
        let Some(layout) = self.layout(src) else { return registers };
        let shape = self.shape(src);
        let (low, bits) = crate::layout::axis_bits(&shape, axis);
        let along = ((1u32 << bits) - 1) << low;
        let elem = self.elem(src);
        self.exchanged(&registers, elem, &shape, &layout, along)
    }

    /// Of each element that one whose index differs in these bits.
    pub fn exchanged(
        &mut self,
        src: &Registers,
        elem: ThreadElem,
        shape: &Shape,
        layout: &Layout,
        bits: u32,
    ) -> Registers {
        let number = |bases: &[u32]| -> u32 {
            bases.iter().enumerate().filter(|(_, b)| **b & bits != 0).map(|(i, _)| 1 << i).sum()
        };
        let (registers, lanes) = (number(layout.registers()) as usize, number(layout.lanes()));
        if number(layout.warps()) == 0 {
            return (0..src.len())
                .map(|r| match lanes {
                    0 => src[r ^ registers],
                    lanes => self.shuffle_xor(src[r ^ registers], lanes),
                })
                .collect();
        }
        let plain = Swizzle::new(&(0..numel_bits(shape)).map(|b| 1 << b).collect::<Vec<u32>>());
        let room = self.put(src, elem, &plain.of(layout), numel_bits(shape));
        self.sync();
        let out = self.take(room, elem, &plain.of(layout), bits);
        self.end_use(room);
        out
    }

    /// What the first thread of the program has, for all.
    pub fn told_to_all(&mut self, value: Value) -> Value {
        if self.sharing.warp_bits == 0 {
            let lane = self.i32(0);
            return self.b.op(ThreadOp::WarpShuffle { mode: ShuffleMode::Index, src: value, lane });
        }
        let elem = self.b.vector(value).elem;
        let replicas = Layout::new(&[], [0; 5], &vec![0; self.sharing.warp_bits as usize]);
        let room = self.put(&vec![value], elem, &replicas, 0);
        self.sync();
        let out = self.take(room, elem, &replicas, 0);
        self.end_use(room);
        out[0]
    }
}

/// The registers that are moved at once: those whose positions are neighbours, without copies.
fn vectors(positions: &Layout, size: u32) -> Vec<(usize, Vec<usize>)> {
    let bits = positions.neighbours(0, (16 / size).trailing_zeros());
    let lowest = (1u32 << bits.len()) - 1;
    // No other basis may touch the bits by which neighbours differ.
    let others = positions.registers().iter().chain(positions.lanes()).chain(positions.warps());
    let alone = others.filter(|&&b| !b.is_power_of_two() || b > lowest).all(|&b| b & lowest == 0);
    let bits = if alone { bits } else { Vec::new() };
    let leads = |r: usize| {
        let copy =
            positions.registers().iter().enumerate().any(|(i, &b)| b == 0 && r >> i & 1 == 1);
        !copy && bits.iter().all(|b| r >> b & 1 == 0)
    };
    (0..positions.count())
        .filter(|&r| leads(r))
        .map(|r| {
            let member = |i: usize| {
                r | bits.iter().enumerate().map(|(at, b)| (i >> at & 1) << b).sum::<usize>()
            };
            (r, (0..1 << bits.len()).map(member).collect())
        })
        .collect()
}
