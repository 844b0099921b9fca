//! Ops for all threads of a block or of a warp together.

use super::exec::{Exec, Run};
use super::fault::FaultKind;
use super::mask::Mask;
use super::shared::Access;
use naiad_ir::scalar::widen_slice;
use naiad_ir::thread::fragments::{a_index, b_index, c_index};
use naiad_ir::thread::{MmaKind, ShuffleMode, ThreadOp, VoteMode};
use naiad_ir::{Inst, Scalar, Value};

const WARP: usize = 32;

impl Exec<'_> {
    pub fn together(&mut self, inst: Inst, mask: &Mask) -> Run<()> {
        let code = self.code;
        let op = code.func.op(inst);
        if matches!(op, ThreadOp::Barrier {} | ThreadOp::BlockVote { .. }) {
            let all = self.full.without(&self.gone);
            if *mask != all {
                let absent = all.without(mask).threads().next();
                let what = format!(
                    "is reached by {} of the block's {} threads",
                    mask.count(),
                    all.count()
                );
                return self.fault(FaultKind::Divergence, inst, absent, what);
            }
            self.shared.barrier();
            self.stats.ops[inst.index()].warps += mask.warps().count() as u64;
            if let ThreadOp::BlockVote { mode, cond } = op {
                let holds = self.holds(*cond).and(&all);
                let vote = match mode {
                    VoteMode::Any => !holds.is_empty(),
                    VoteMode::All => holds == all,
                };
                self.every(code.func.results(inst)[0], |_, _| u64::from(vote));
            }
            return Ok(());
        }
        for warp in mask.warps() {
            if mask.warp(warp) != u32::MAX {
                let absent = warp * WARP + mask.warp(warp).trailing_ones() as usize;
                let present = mask.warp(warp).count_ones();
                let what = format!("is reached by {present} of the {WARP} threads of warp {warp}");
                return self.fault(FaultKind::Divergence, inst, Some(absent), what);
            }
            self.stats.ops[inst.index()].warps += 1;
        }
        match op {
            ThreadOp::WarpBarrier {} => {
                mask.warps().for_each(|warp| self.shared.warp_barrier(warp));
                Ok(())
            }
            ThreadOp::WarpShuffle { mode, src, lane } => {
                self.shuffle(inst, mask, *mode, [*src, *lane])
            }
            ThreadOp::WarpVote { mode, cond } => {
                let holds = Mask::of_lanes(self.values.row::<u8>(code.slot(*cond), 0));
                let result = code.slot(code.func.results(inst)[0]);
                for warp in mask.warps() {
                    let vote = match mode {
                        VoteMode::Any => holds.warp(warp) != 0,
                        VoteMode::All => holds.warp(warp) == u32::MAX,
                    };
                    let row = self.values.row_mut::<u8>(result, 0);
                    row[warp * WARP..][..WARP].fill(u8::from(vote));
                }
                Ok(())
            }
            ThreadOp::LoadMatrix { at, disp, count, transposed } => {
                self.load_matrix(inst, mask, (*at, *disp), *count as usize, *transposed)
            }
            ThreadOp::Mma { kind, a, b, c } => {
                mask.warps().for_each(|warp| self.mma(inst, warp, *kind, [a, b, c]));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn shuffle(
        &mut self,
        inst: Inst,
        mask: &Mask,
        mode: ShuffleMode,
        [src, lane]: [Value; 2],
    ) -> Run<()> {
        let (src, result) = (self.code.slot(src), self.code.slot(self.code.func.results(inst)[0]));
        for t in mask.threads() {
            let by = self.values.row::<u32>(self.code.slot(lane), 0)[t] as i32;
            if mode != ShuffleMode::Index && !(0..WARP as i32).contains(&by) {
                let what = format!("speaks of lane {by}, and a warp has lanes 0 to {}", WARP - 1);
                return self.fault(FaultKind::BadLane, inst, Some(t), what);
            }
            let own = (t % WARP) as i32;
            let from = match mode {
                ShuffleMode::Index => by & 31,
                ShuffleMode::Xor => own ^ by,
                ShuffleMode::Up => own - by,
                ShuffleMode::Down => own + by,
            };
            let from = if (0..WARP as i32).contains(&from) { from } else { own };
            let image = self.values.image(src, 0, t / WARP * WARP + from as usize);
            self.values.set(result, 0, t, image);
        }
        Ok(())
    }

    fn load_matrix(
        &mut self,
        inst: Inst,
        mask: &Mask,
        (at, disp): (Value, i64),
        count: usize,
        transposed: bool,
    ) -> Run<()> {
        let code = self.code;
        for warp in mask.warps() {
            let mut rows = [0u64; WARP];
            for (i, row) in rows.iter_mut().enumerate().take(8 * count) {
                let base = self.values.row::<u32>(code.slot(at), 0)[warp * WARP + i];
                *row = i64::from(base as i32).wrapping_add(disp) as u64;
            }
            for tile in 0..count {
                let rows = &rows[8 * tile..][..8];
                if self.options.count {
                    let mut lanes = [0; WARP];
                    lanes[..8].copy_from_slice(rows);
                    // One wavefront gives a tile.
                    self.stats.ops[inst.index()].banks(&lanes, 0xff, 0, 16);
                }
                let result = code.slot(code.func.results(inst)[tile]);
                for i in 0..WARP {
                    let thread = warp * WARP + i;
                    let mut image = [0; 4];
                    for (part, bytes) in image.chunks_exact_mut(2).enumerate() {
                        // The whole row of 16 bytes is asked for at once, so that it is to be aligned.
                        let (row, column) = match (i / 4, 2 * (i % 4) + part) {
                            (r, c) if transposed => (c, r),
                            place => place,
                        };
                        let a = Access { inst, thread, at: rows[row] };
                        match self.shared.read_part(a, 16, 2 * column, 2) {
                            Ok(element) => bytes.copy_from_slice(element),
                            Err(problem) => return self.problem(inst, thread, problem),
                        }
                    }
                    self.values.set(result, 0, thread, u64::from(u32::from_le_bytes(image)));
                }
            }
        }
        Ok(())
    }

    /// The product of one warp.
    fn mma(&mut self, inst: Inst, warp: usize, kind: MmaKind, [a, b, c]: [&[Value]; 3]) {
        let [_, n, k] = kind.extents().map(|e| e as usize);
        let (mut left, mut right) = ([0f64; 16 * 32], [0f64; 32 * 8]);
        for (register, &v) in a.iter().enumerate() {
            self.fragment(v, warp, kind, |thread, part, x| {
                let (row, column) = a_index(kind, thread, register as u32, part);
                left[row as usize * k + column as usize] = x;
            });
        }
        for (register, &v) in b.iter().enumerate() {
            self.fragment(v, warp, kind, |thread, part, x| {
                let (row, column) = b_index(kind, thread, register as u32, part);
                right[row as usize * n + column as usize] = x;
            });
        }
        // Products of the elements, and sums of integers, are exact; sums of floats are rounded once to
        // fp32, which no GPU does better.
        let mut sums = [0f64; 16 * 8];
        for (sums, left) in sums.chunks_exact_mut(n).zip(left.chunks_exact(k)) {
            for (&x, right) in left.iter().zip(right.chunks_exact(n)) {
                sums.iter_mut().zip(right).for_each(|(sum, &y)| *sum += x * y);
            }
        }
        let results = self.code.func.results(inst);
        for (register, (&v, &result)) in c.iter().zip(results).enumerate() {
            for i in 0..WARP {
                let (row, column) = c_index(i as u32, register as u32);
                let sum = sums[row as usize * n + column as usize];
                let before = self.values.row::<u32>(self.code.slot(v), 0)[warp * WARP + i];
                let after = match kind.sum() {
                    Scalar::F32 => ((f64::from(f32::from_bits(before)) + sum) as f32).to_bits(),
                    _ => (before as i32).wrapping_add(sum as i32) as u32,
                };
                let slot = self.code.slot(result);
                self.values.row_mut::<u32>(slot, 0)[warp * WARP + i] = after;
            }
        }
    }

    /// The elements of a register of a warp's threads, by thread and part.
    fn fragment(&self, v: Value, warp: usize, kind: MmaKind, mut f: impl FnMut(u32, u32, f64)) {
        let words = &self.values.row::<u32>(self.code.slot(v), 0)[warp * WARP..][..WARP];
        let per = kind.per_register() as usize;
        let mut bytes = [0u8; 4 * WARP];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            // The machine does not look at the low bits of what is fp32 to the program.
            let word = if kind == MmaKind::Tf32 { word & !0x1fff } else { *word };
            place.copy_from_slice(&word.to_le_bytes());
        }
        let mut elements = [0f32; 4 * WARP];
        widen_slice(kind.elem(), &bytes, &mut elements[..per * WARP]);
        for (i, &x) in elements[..per * WARP].iter().enumerate() {
            f((i / per) as u32, (i % per) as u32, f64::from(x));
        }
    }
}

const _: () = assert!(naiad_ir::thread::fragments::WARP as usize == WARP);
