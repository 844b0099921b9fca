//! Tiles in slots of shared memory: copied there from memory in the background, and read by matrices.

use super::access::in_memory;
use super::{Lower, Lowered, Registers};
use crate::layout::{LANE_BITS, Layout, Swizzle, numel_bits};
use crate::placed::{Place, Run};
use naiad_ir::scalar::Rounding;
use naiad_ir::thread::{ThreadElem, ThreadOp};
use naiad_ir::{Inst, Scalar, Value};

impl Lower<'_> {
    /// Allots shared memory that lives until it is freed; its address stands for it.
    pub fn alloc(&mut self, buffer: Value) -> Registers {
        if self.in_use.any() {
            self.sync();
        }
        let at = self.reserved.next_multiple_of(128);
        let (_, slots) = self.shared_form(buffer);
        self.reserved = at + self.slot_bytes(buffer) * slots;
        self.bytes = self.bytes.max(self.reserved);
        self.buffers.insert(buffer, at);
        vec![self.shared]
    }

    pub fn free(&mut self, buffer: Value) {
        self.reserved = self.buffers.get(&buffer).copied().unwrap_or(self.reserved);
    }

    fn shared_form(&self, buffer: Value) -> (Swizzle, u32) {
        match self.f.ty(buffer).place {
            Place::Shared { swizzle, slots } => (swizzle, slots),
            Place::Everywhere | Place::Spread(_) => panic!("{buffer} is not in shared memory"),
        }
    }

    fn slot_bytes(&self, buffer: Value) -> u32 {
        let size = in_memory(self.elem(buffer)).size() as u32;
        (size << numel_bits(&self.shape(buffer))).next_multiple_of(128)
    }

    /// Where a slot begins.
    fn slot(&mut self, buffer: Value, slot: Value) -> Value {
        let (bytes, number) = (self.slot_bytes(buffer), self.one(slot));
        let offset = self.mul(number, i64::from(bytes));
        let at = i64::from(self.buffers.get(&buffer).copied().unwrap_or(0));
        let base = self.add(self.shared, offset);
        self.add_constant(base, at)
    }

    pub fn copy_async(
        &mut self,
        inst: Inst,
        [buffer, slot, ptr]: [Value; 3],
        mask: Option<Value>,
        run: Run,
    ) -> Lowered<()> {
        let Some(layout) = self.layout(ptr) else {
            return self.unsupported("a copy without a layout");
        };
        self.guard(inst, ptr, mask, self.elem(buffer));
        let (swizzle, _) = self.shared_form(buffer);
        let size = in_memory(self.elem(buffer)).size();
        let base = self.slot(buffer, slot);
        let positions = swizzle.of(&layout);
        let (addresses, masks) = (self.get(ptr).clone(), mask.map(|m| self.get(m).clone()));
        let groups = self.groups(ptr, Some(&layout), run, size);
        // Replicas would write zeros over what the owner copies.
        let branch = self.owns(&layout).map(|owner| (owner, self.b.begin_branch()));
        for group in groups {
            let bytes = (group.len() * size) as u32;
            let (at, disp) = self.place_in(base, &positions, group[0], size as u32);
            let at = self.add_constant(at, disp);
            let (addr, far) = self.sum(addresses[group[0]]);
            let mask = masks.as_ref().map(|m| m[group[0]]);
            self.b.run(ThreadOp::AsyncCopy { at, addr, disp: far, bytes, mask });
        }
        if let Some((cond, branch)) = branch {
            let then = self.b.end_branch(branch, vec![]);
            let branch = self.b.begin_branch();
            let otherwise = self.b.end_branch(branch, vec![]);
            self.b.run(ThreadOp::If { cond, then, otherwise });
        }
        Ok(())
    }

    /// Takes a tile out of a slot: by matrices of 8 rows of 16 bytes, where it lies and is wanted so.
    pub fn read(&mut self, buffer: Value, slot: Value, result: Value) -> Lowered<Registers> {
        let Some(layout) = self.layout(result) else {
            return self.unsupported("a read without a layout");
        };
        let (swizzle, _) = self.shared_form(buffer);
        let elem = self.elem(result);
        let base = self.slot(buffer, slot);
        let positions = swizzle.of(&layout);
        if let Some(matrices) = Matrices::of(&positions, elem) {
            return Ok(self.by_matrices(base, &positions, &matrices, elem));
        }
        Ok(self.take_at(base, elem, &positions))
    }

    fn by_matrices(
        &mut self,
        base: Value,
        positions: &Layout,
        matrices: &Matrices,
        elem: ThreadElem,
    ) -> Registers {
        let size = elem.size() as u32;
        let each = 1usize << matrices.packed;
        let count = 1u32 << matrices.chosen.len();
        // Thread `8 j + i` says where row `i` of matrix `j` begins.
        let chosen = |i: usize| matrices.chosen.get(i).map_or(0, |&bit| positions.registers()[bit]);
        let [a, b, c] = matrices.rows;
        let lanes: [u32; LANE_BITS] = [a, b, c, chosen(0), chosen(1)];
        let rows = Layout::new(positions.registers(), lanes, positions.warps());
        let mut out: Vec<Option<Value>> = vec![None; positions.count()];
        let skip: usize =
            (0..matrices.packed).chain(matrices.chosen.iter().copied()).map(|b| 1usize << b).sum();
        for first in (0..positions.count()).filter(|r| r & skip == 0) {
            let (at, disp) = self.place_in(base, &rows, first, size);
            let transposed = matrices.transposed;
            let words = self.b.ops(ThreadOp::LoadMatrix { at, disp, count, transposed });
            for (j, &word) in words.iter().enumerate() {
                let which: usize =
                    matrices.chosen.iter().enumerate().map(|(i, bit)| (j >> i & 1) << bit).sum();
                let elements = self.unpacked(word, elem, each);
                for (i, element) in elements.into_iter().enumerate() {
                    out[first | which | i] = Some(element);
                }
            }
        }
        out.into_iter()
            .map(|v| match v {
                Some(v) => v,
                None => unreachable!("each register is in a matrix"),
            })
            .collect()
    }

    /// The elements of a 32-bit word; who puts them together again gets the word.
    fn unpacked(&mut self, word: Value, elem: ThreadElem, each: usize) -> Vec<Value> {
        let Some(ty) = elem.scalar() else { return vec![word; each] };
        if each == 1 {
            return vec![self.b.bitcast(word, elem)];
        }
        let bits = 32 / each as i64;
        let unsigned = if bits == 8 { Scalar::U8 } else { Scalar::U16 };
        let elements: Vec<Value> = (0..each as i64)
            .map(|i| {
                let moved = self.shift_right(word, i * bits);
                let raw = self.b.cast(moved, unsigned, Rounding::Nearest);
                self.b.bitcast(raw, ty)
            })
            .collect();
        self.words.insert(elements.clone(), word);
        elements
    }
}

/// How matrices of 8 rows of 16 bytes cover what a thread wants.
struct Matrices {
    /// Bits of a register's number within a 32-bit word.
    packed: usize,
    /// Positions of rows that follow each other.
    rows: [u32; 3],
    /// Up to two bits of a register's number by which the matrices of one access differ.
    chosen: Vec<usize>,
    transposed: bool,
}

impl Matrices {
    fn of(positions: &Layout, elem: ThreadElem) -> Option<Matrices> {
        let size = elem.scalar()?.size();
        if size > 4 {
            return None;
        }
        let packed = (4 / size).trailing_zeros() as usize;
        if positions.registers().len() < packed {
            return None;
        }
        // The columns of a word and the two lane bits beside it; then the three bits of rows.
        let mut columns: Vec<u32> = positions.registers()[..packed].to_vec();
        columns.extend(&positions.lanes()[..2]);
        let rows: [u32; 3] = std::array::from_fn(|i| positions.lanes()[2 + i]);
        let together = |bases: &[u32]| bases.iter().enumerate().all(|(i, &b)| b == 1 << i);
        let low = (16 / size) as u32 - 1;
        let apart = |bases: &[u32]| bases.iter().all(|&b| b != 0 && b & low == 0);
        let rest: Vec<u32> =
            positions.registers()[packed..].iter().chain(positions.warps()).copied().collect();
        let aligned = rest.iter().all(|&b| b & low == 0);
        if !aligned {
            return None;
        }
        let chosen: Vec<usize> = (packed..positions.registers().len()).take(2).collect();
        if together(&columns) && apart(&rows) {
            return Some(Matrices { packed, rows, chosen, transposed: false });
        }
        // Elements of 16 bits may change rows with columns on the way.
        if size == 2 && together(&rows) && apart(&columns) {
            let rows = std::array::from_fn(|i| columns[i]);
            return Some(Matrices { packed, rows, chosen, transposed: true });
        }
        None
    }
}
