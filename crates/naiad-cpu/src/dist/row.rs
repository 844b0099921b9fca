//! One row of a loop nest: loops over whole vectors, then one over single lanes, in the parts that the
//! picture in `nest.rs` shows.

use super::elementwise;
use super::group::Root;
use super::lanes::{Bound, Nest, identity};
use super::nest::{Job, Target};
use super::{Dist, Result};
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding};
use naiad_ir::thread::ThreadElem;
use naiad_ir::tile::Constant;
use naiad_ir::{Inst, Scalar, Value};

/// Accumulators of a row: lanes, and one for single elements.
#[derive(Clone, Default)]
pub(super) struct Sums {
    pub lanes: Vec<Value>,
    pub one: Vec<Value>,
}

impl Dist<'_> {
    /// One row: all lanes along the vector axis.
    pub(super) fn row(&mut self, n: &mut Nest, job: &Job) -> Result<Sums> {
        n.known.clear();
        for made in &job.roots {
            for (v, map) in made.root.operands(self, job.rank) {
                self.hoist(n, v, &map)?;
            }
        }
        self.hoist_rows(n);
        let mut sums = self.sums(n, job);
        let (zero, count) = (self.b.i64(0), self.b.i64(n.shape.dim(n.va) as i64));
        let (lo, hi) = job.range[n.va];
        let width = self.b.i64(i64::from(n.lanes));
        let inside = self.row_is_inside(n, job);
        // in: lo..whole
        let covered = self.b.sub(hi, lo);
        let covered = self.whole_vectors(covered, n.lanes);
        let whole = self.b.add(lo, covered);
        let whole = self.when(inside, whole, zero);
        let first = self.when(inside, lo, zero);
        n.known = job.bounds.iter().map(|b| (b.clone(), true)).collect();
        self.vectors(n, job, [first, whole, width], &mut sums)?;
        let mut end = self.when(inside, hi, zero);
        let mut single = Vec::new();
        let va = n.va;
        let along = |b: &Bound| match b {
            Bound::Below(d, _) | Bound::From(d, _) => usize::from(*d) == va,
            Bound::Uniform(_) => false,
        };
        if job.masked {
            let round = self.b.i64(i64::from(n.lanes) - 1);
            let up = self.b.add(end, round);
            end = self.whole_vectors(up, n.lanes);
            n.known.retain(|(b, _)| !along(b));
            self.vectors(n, job, [whole, end, width], &mut sums)?;
        } else {
            single.push((whole, end));
        }
        if job.outside {
            let past = self.b.sub(count, end);
            let past = self.whole_vectors(past, n.lanes);
            let past = self.b.add(end, past);
            let past = self.when(inside, past, zero);
            // A lower bound beyond the upper one may hold or not.
            n.known = job
                .bounds
                .iter()
                .filter(|b| !along(b) || matches!(b, Bound::Below(..)))
                .map(|b| (b.clone(), !along(b)))
                .collect();
            let has_end = job.bounds.iter().any(|b| matches!(b, Bound::Below(..)) && along(b));
            if has_end {
                let rest = self.when(inside, count, zero);
                match self.constants_outside(n, job) {
                    Some(constants) => {
                        self.start_outside(job, &constants, [end, rest], &mut sums.one)
                    }
                    None => {
                        self.vectors(n, job, [end, past, width], &mut sums)?;
                        single.push((past, rest));
                    }
                }
            }
            single.push((zero, first));
            let others: Vec<&Bound> = job.bounds.iter().filter(|b| !along(b)).collect();
            if !others.is_empty() {
                let off = self.row_is_off(inside, job);
                let off = self.when(Some(off), count, zero);
                n.known = match others[..] {
                    [only] => vec![(only.clone(), false)],
                    _ => Vec::new(),
                };
                self.vectors(n, job, [zero, off, width], &mut sums)?;
            }
        }
        n.known.clear();
        if let Some(ok) = job.ok {
            // Not fast: every lane by itself.
            let slow = self.b.select(ok, zero, count);
            single.push((zero, slow));
        }
        self.singles(n, job, single, &mut sums)?;
        self.end_row(n, job, sums)
    }

    /// Whether the fast version may run this row inside the bounds; none where it always may.
    fn row_is_inside(&mut self, n: &Nest, job: &Job) -> Option<Value> {
        let mut inside = job.ok;
        if !job.outside {
            return inside;
        }
        for b in &job.bounds {
            let cond = match b {
                Bound::Below(d, _) | Bound::From(d, _) if usize::from(*d) == n.va => continue,
                Bound::Below(d, _) => {
                    let d = usize::from(*d);
                    self.b.compare(Predicate::Lt, n.index[d], job.range[d].1)
                }
                Bound::From(d, _) => {
                    let d = usize::from(*d);
                    self.b.compare(Predicate::Ge, n.index[d], job.range[d].0)
                }
                Bound::Uniform(v) => match self.scalar(*v) {
                    Ok(v) => v,
                    Err(_) => continue,
                },
            };
            inside = Some(match inside {
                Some(i) => self.b.binary(BinaryFn::And, i, cond),
                None => cond,
            });
        }
        inside
    }

    /// Whether the fast version runs the row, outside the bounds.
    fn row_is_off(&mut self, inside: Option<Value>, job: &Job) -> Value {
        let Some(inside) = inside else { return self.b.bool(false) };
        let off = self.b.unary(naiad_ir::scalar::UnaryFn::Not, inside);
        match job.ok {
            Some(ok) => self.b.binary(BinaryFn::And, ok, off),
            None => off,
        }
    }

    fn when(&mut self, cond: Option<Value>, yes: Value, no: Value) -> Value {
        match cond {
            Some(cond) => self.pick(cond, yes, no),
            None => yes,
        }
    }

    /// The largest multiple of the lane count.
    fn whole_vectors(&mut self, count: Value, lanes: u32) -> Value {
        match self.b.known_int(count) {
            Some(c) => self.b.i64(c & -i64::from(lanes)),
            None => {
                let mask = self.b.i64(-i64::from(lanes));
                self.b.binary(BinaryFn::And, count, mask)
            }
        }
    }

    /// Accumulators of a row as they start.
    fn sums(&mut self, n: &Nest, job: &Job) -> Sums {
        let mut sums = Sums::default();
        for made in &job.roots {
            if let (Root::Reduce { input, f, .. }, Target::Row { .. }) = (&made.root, &made.into) {
                let ty = self.sum_type(*input);
                let start = Constant { ty, bits: f.identity(ty).unwrap_or(0) };
                sums.lanes.push(self.b.constant(start, n.lanes));
            }
            if let Some(start) = self.start(made) {
                sums.one.push(self.b.constant(start, 1));
            }
        }
        sums
    }

    /// A loop over whole vectors.
    fn vectors(
        &mut self,
        n: &mut Nest,
        job: &Job,
        [from, to, width]: [Value; 3],
        sums: &mut Sums,
    ) -> Result<()> {
        let known = (self.b.known_int(from), self.b.known_int(to));
        if from == to || matches!(known, (Some(a), Some(b)) if a >= b) {
            return Ok(());
        }
        let l = self.b.begin_for([from, to, width], sums.lanes.clone());
        n.index[n.va] = l.iv;
        n.vector = n.lanes > 1;
        n.open();
        let mut next = l.carried.clone();
        self.body(n, job, &mut next)?;
        n.close();
        n.vector = false;
        sums.lanes = self.b.end_for(l, next);
        Ok(())
    }

    /// A loop over single lanes of several ranges.
    fn singles(
        &mut self,
        n: &mut Nest,
        job: &Job,
        ranges: Vec<(Value, Value)>,
        sums: &mut Sums,
    ) -> Result<()> {
        let mut parts = Vec::new();
        for (from, to) in ranges {
            let count = self.b.sub(to, from);
            if from != to && self.b.known_int(count) != Some(0) {
                parts.push((from, count));
            }
        }
        if parts.is_empty() {
            return Ok(());
        }
        let zero = self.b.i64(0);
        let mut total = zero;
        for &(_, count) in &parts {
            total = self.b.add(total, count);
        }
        let one = self.b.i64(1);
        let l = self.b.begin_for([zero, total, one], sums.one.clone());
        // The k-th lane of all ranges.
        let mut index = l.iv;
        let mut start = zero;
        for (i, &(from, count)) in parts.iter().enumerate() {
            let within = self.b.sub(l.iv, start);
            let here = self.b.add(from, within);
            index = match i {
                0 => here,
                _ => {
                    let reached = self.b.compare(Predicate::Ge, l.iv, start);
                    self.b.select(reached, here, index)
                }
            };
            start = self.b.add(start, count);
        }
        n.index[n.va] = index;
        n.vector = false;
        n.open();
        let mut next = l.carried.clone();
        self.body(n, job, &mut next)?;
        n.close();
        sums.one = self.b.end_for(l, next);
        Ok(())
    }

    /// What is done for each element, or for several at once.
    fn body(&mut self, n: &mut Nest, job: &Job, sums: &mut [Value]) -> Result<()> {
        let own = identity(job.rank);
        let mut row = 0;
        for made in &job.roots {
            match (&made.root, &made.into) {
                (Root::Store { inst }, _) => self.store_lanes(n, *inst, &own)?,
                (Root::Keep { value, .. }, Target::Tile(buffer)) => {
                    let x = self.eval(n, *value, &own)?;
                    self.write_buffer(n, buffer, &own, x);
                }
                (Root::Reduce { input, f, inst, .. }, Target::Row { .. }) => {
                    let x = self.eval(n, *input, &own)?;
                    sums[row] = self.combine(*inst, *f, sums[row], x)?;
                    row += 1;
                }
                (Root::Reduce { input, f, inst, .. }, Target::Rows { buffer, map }) => {
                    let x = self.eval(n, *input, &own)?;
                    let addr = self.buffer_address(n, buffer, map);
                    let lanes = if n.vector { n.lanes } else { 1 };
                    let ty = naiad_ir::thread::Vector::of(buffer.elem, lanes);
                    let old = self.b.load(addr, 0, ty);
                    let new = self.combine(*inst, *f, old, x)?;
                    self.b.store(addr, 0, new);
                }
                (Root::Check { inst }, _) => {
                    let value = self.f.results(*inst)[0];
                    self.eval(n, value, &own)?;
                }
                (Root::Keep { .. } | Root::Reduce { .. }, _) => {}
            }
        }
        Ok(())
    }

    /// An accumulator with one more element, or with one for each lane.
    fn combine(&mut self, inst: Inst, f: BinaryFn, acc: Value, x: Value) -> Result<Value> {
        let ty = self.b.vector(acc).elem;
        let x = match ty {
            ThreadElem::Scalar(s) => self.b.cast(x, s, Rounding::Nearest),
            ThreadElem::Addr => x,
        };
        let mut args = [acc, x];
        elementwise::unify(&mut self.b, &mut args);
        match elementwise::binary(&mut self.b, f, args[0], args[1]) {
            Some(v) => Ok(v),
            None => self.unsupported(inst, format!("a reduction by {f}")),
        }
    }

    /// Folds the lanes of a row's accumulators, and puts the results where they belong.
    fn end_row(&mut self, n: &mut Nest, job: &Job, sums: Sums) -> Result<Sums> {
        let mut results = Vec::new();
        let mut row = 0;
        for made in &job.roots {
            let (Root::Reduce { inst, f, input, .. }, Target::Row { buffer, map }) =
                (&made.root, &made.into)
            else {
                continue;
            };
            let mut acc = sums.lanes[row];
            let mut width = self.b.vector(acc).lanes;
            while width > 1 {
                width /= 2;
                let low = self.b.permute(acc, 0..width);
                let high = self.b.permute(acc, width..2 * width);
                acc = self.combine(*inst, *f, low, high)?;
            }
            let all = self.combine(*inst, *f, acc, sums.one[row])?;
            let ty = self.f.ty(*input).elem.scalar().unwrap_or(Scalar::I64);
            let all = self.as_type(all, ty);
            if let Some(buffer) = buffer {
                self.write_buffer(n, buffer, map, all);
            }
            results.push(all);
            row += 1;
        }
        Ok(Sums { lanes: Vec::new(), one: results })
    }
}
