//! Matrix products.
//!
//! The matrix units take fragments that the operands' layouts provide, register by register. What they
//! do not do (fp64, fp32 to the bit, small or odd shapes) is multiplied and added by each thread for the
//! sums that it holds, with the operands in shared memory.

use super::access::in_memory;
use super::{Lower, Lowered, Registers};
use crate::layout::{Layout, Operand, axis_bits, numel_bits, operand};
use naiad_ir::scalar::{BinaryFn, Rounding, TernaryFn};
use naiad_ir::thread::{Lanes, MmaKind, ThreadOp};
use naiad_ir::tile::{Constant, TileOp};
use naiad_ir::{Scalar, Value};

impl Lower<'_> {
    pub fn dot(
        &mut self,
        op: &TileOp,
        result: Value,
        a: Value,
        b: Value,
        acc: Option<Value>,
    ) -> Lowered<Registers> {
        let (Some(layout), Some(out)) = (self.layout(result), self.scalar_of(result)) else {
            return self.unsupported("a product without a layout");
        };
        match self.mma_kind(op, a, b, result) {
            Some(kind) => {
                let mut sums = match acc {
                    Some(acc) => self.get(acc).clone(),
                    None => self.zeros(out, layout.count()),
                };
                for sum in &mut sums {
                    *sum = self.b.cast(*sum, kind.sum(), Rounding::Nearest);
                }
                self.by_matrix_units(kind, &layout, result, a, b, &mut sums);
                Ok(sums.into_iter().map(|s| self.b.cast(s, out, Rounding::Nearest)).collect())
            }
            None => self.by_multiply_add(&layout, result, out, a, b, acc),
        }
    }

    fn zeros(&mut self, ty: Scalar, count: usize) -> Registers {
        let zero = self.b.constant(Constant { ty, bits: 0 }, 1);
        vec![zero; count]
    }

    /// The matrix units' op whose fragments the operands are in, if that is where placement put them.
    fn mma_kind(&self, op: &TileOp, a: Value, b: Value, result: Value) -> Option<MmaKind> {
        let TileOp::Dot { out, .. } = op else { return None };
        let kind = match self.scalar_of(a)? {
            Scalar::F16 => MmaKind::F16,
            Scalar::BF16 => MmaKind::Bf16,
            Scalar::F32 => MmaKind::Tf32,
            Scalar::I8 => MmaKind::S8,
            Scalar::U8 => MmaKind::U8,
            Scalar::F8E4NV => MmaKind::E4m3,
            Scalar::F8E5 => MmaKind::E5m2,
            _ => return None,
        };
        let sums = self.shape(result);
        let [_, _, k] = kind.extents();
        let rank = sums.rank();
        let depth = self.shape(a).dim(rank - 1);
        if out.is_float() != (kind.sum() == Scalar::F32)
            || depth < k as usize
            || sums.dim(rank - 2) < 16
            || sums.dim(rank - 1) < 8
        {
            return None;
        }
        let packed = (k / 8).trailing_zeros();
        let fits = |which, v: Value| {
            let want = operand(which, &self.shape(v), &sums, packed, self.sharing.warp_bits);
            self.layout(v) == Some(want)
        };
        let placed =
            self.layout(result) == Some(crate::layout::accumulator(&sums, self.sharing.warp_bits));
        (fits(Operand::A, a) && fits(Operand::B, b) && placed).then_some(kind)
    }

    fn by_matrix_units(
        &mut self,
        kind: MmaKind,
        layout: &Layout,
        result: Value,
        a: Value,
        b: Value,
        sums: &mut Registers,
    ) {
        let [_, _, k] = kind.extents();
        let each = (k / 8) as usize;
        let (sums_shape, a_shape, b_shape) = (self.shape(result), self.shape(a), self.shape(b));
        let words = |lower: &mut Self, v: Value| -> Vec<Value> {
            let (registers, ty) = (lower.get(v).clone(), lower.scalar_of(v).unwrap_or(Scalar::I32));
            let chunks = registers.chunks(each);
            chunks.map(|c| lower.fragment_word(c, ty)).collect()
        };
        let (a_words, b_words) = (words(self, a), words(self, b));
        let (Some(a_layout), Some(b_layout)) = (self.layout(a), self.layout(b)) else { return };
        let depth = a_shape.dim(a_shape.rank() - 1) / k as usize;
        // A word's number is the register's without the bits within a word.
        let word_at = |layout: &Layout, element: u32| -> Option<usize> {
            crate::layout::solve(layout.registers(), element).map(|r| r as usize / each)
        };
        let rank = sums_shape.rank();
        let (m_low, m_bits) = axis_bits(&sums_shape, rank - 2);
        let (n_low, n_bits) = axis_bits(&sums_shape, rank - 1);
        let (ak_low, _) = axis_bits(&a_shape, rank - 1);
        let (am_low, _) = axis_bits(&a_shape, rank - 2);
        let (bk_low, _) = axis_bits(&b_shape, rank - 2);
        let (bn_low, _) = axis_bits(&b_shape, rank - 1);
        for step in 0..depth {
            for first in (0..layout.count()).step_by(4) {
                let part = layout.register_part(first);
                let m = part >> m_low & ((1 << m_bits) - 1);
                let n = part >> n_low & ((1 << n_bits) - 1);
                let batch = part >> (m_low + m_bits);
                let k0 = step as u32 * k;
                let half = k / 2;
                let a_bits = numel_bits(&a_shape) - (numel_bits(&sums_shape) - m_low - m_bits);
                let b_bits = numel_bits(&b_shape) - (numel_bits(&sums_shape) - m_low - m_bits);
                let a_at = |m: u32, k: u32| batch << a_bits | m << am_low | k << ak_low;
                let b_at = |k: u32, n: u32| batch << b_bits | k << bk_low | n << bn_low;
                let places =
                    [a_at(m, k0), a_at(m + 8, k0), a_at(m, k0 + half), a_at(m + 8, k0 + half)];
                let fragments: Option<Vec<Value>> =
                    places.iter().map(|&p| word_at(&a_layout, p).map(|w| a_words[w])).collect();
                let places = [b_at(k0, n), b_at(k0 + half, n)];
                let others: Option<Vec<Value>> =
                    places.iter().map(|&p| word_at(&b_layout, p).map(|w| b_words[w])).collect();
                let (Some(a), Some(b)) = (fragments, others) else {
                    unreachable!("an operand does not hold what its product needs")
                };
                let c = sums[first..first + 4].to_vec();
                let new = self.b.ops(ThreadOp::Mma { kind, a, b, c });
                sums[first..first + 4].copy_from_slice(&new);
            }
        }
    }

    /// Elements of a fragment that lie in one register.
    fn fragment_word(&mut self, elements: &[Value], ty: Scalar) -> Value {
        match elements {
            [one] => self.b.bitcast(*one, Scalar::I32),
            all => self.word(all, ty),
        }
    }

    fn by_multiply_add(
        &mut self,
        layout: &Layout,
        result: Value,
        out: Scalar,
        a: Value,
        b: Value,
        acc: Option<Value>,
    ) -> Lowered<Registers> {
        let compute = out.compute_type();
        let sums = match acc {
            Some(acc) => self.get(acc).clone(),
            None => self.zeros(out, layout.count()),
        };
        let sums: Registers =
            sums.into_iter().map(|s| self.b.cast(s, compute, Rounding::Nearest)).collect();
        let (shape, a_shape, b_shape) = (self.shape(result), self.shape(a), self.shape(b));
        let (a_elem, b_elem) = (self.elem(a), self.elem(b));
        let (a_size, b_size) = (in_memory(a_elem).size() as u32, in_memory(b_elem).size() as u32);
        let a_bytes = (a_shape.numel() as u32 * a_size).next_multiple_of(16);
        let b_bytes = b_shape.numel() as u32 * b_size;
        let (Some(a_from), Some(b_from)) = (self.layout(a), self.layout(b)) else {
            return self.unsupported("a product without layouts");
        };
        let room = self.begin_use(a_bytes + b_bytes);
        let (a_registers, b_registers) = (self.get(a).clone(), self.get(b).clone());
        let at = [room.at, room.at + a_bytes];
        self.put_at(&a_registers, a_elem, &a_from, at[0]);
        self.put_at(&b_registers, b_elem, &b_from, at[1]);
        self.sync();
        // Where in an operand a sum's row, or column, begins.
        let rank = shape.rank();
        let (m_low, m_bits) = axis_bits(&shape, rank - 2);
        let (_, n_bits) = axis_bits(&shape, rank - 1);
        let (k_low, k_bits) = axis_bits(&b_shape, rank - 2);
        let a_rows = layout.map(|i| i >> m_low << k_bits);
        let b_columns =
            layout.map(|i| i & ((1 << n_bits) - 1) | i >> (m_low + m_bits) << (k_bits + n_bits));
        let zero = self.i32(0);
        let (depth, one) = (self.i32(1 << k_bits), self.i32(1));
        let l = self.b.begin_for([zero, depth, one], sums);
        let a_step = self.mul(l.iv, i64::from(a_size));
        let b_step = self.mul(l.iv, i64::from(b_size) << k_low);
        let mut sums = l.carried.clone();
        let mut rows: Vec<(u32, Value)> = Vec::new();
        let mut columns: Vec<(u32, Value)> = Vec::new();
        let sides = [(&a_rows, a_step, a_elem, a_size), (&b_columns, b_step, b_elem, b_size)];
        for (r, sum) in sums.iter_mut().enumerate() {
            let mut pair = [zero; 2];
            for (i, (positions, step, elem, size)) in sides.into_iter().enumerate() {
                let known = if i == 0 { &mut rows } else { &mut columns };
                let key = positions.register_part(r);
                if let Some((_, value)) = known.iter().find(|(k, _)| *k == key) {
                    pair[i] = *value;
                    continue;
                }
                let (place, disp) = self.place(positions, r, size);
                let place = self.add(place, step);
                let disp = disp + i64::from(at[i]);
                let elem = in_memory(elem);
                let value = self.b.op(ThreadOp::SharedLoad {
                    at: place,
                    disp,
                    elem,
                    lanes: Lanes(1),
                    mask: None,
                });
                let value = self.b.cast(value, compute, Rounding::Nearest);
                let known = if i == 0 { &mut rows } else { &mut columns };
                known.push((key, value));
                pair[i] = value;
            }
            let [x, y] = pair;
            *sum = match compute.is_float() {
                true => self.b.op(ThreadOp::Ternary { f: TernaryFn::Fma, a: x, b: y, c: *sum }),
                false => {
                    let product = self.b.binary(BinaryFn::Mul, x, y);
                    self.b.binary(BinaryFn::Add, *sum, product)
                }
            };
        }
        let sums = self.b.end_for(l, sums);
        self.end_use(room);
        Ok(sums.into_iter().map(|s| self.b.cast(s, out, Rounding::Nearest)).collect())
    }
}
