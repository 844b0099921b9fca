//! Reductions and scans.
//!
//! A reduction combines what a thread has, then what lanes have by exchanging it with the lane whose
//! number differs in one bit, then what warps have through shared memory. All threads end with the
//! result, so that broadcasting it costs nothing.
//!
//! A scan's layout has the axis in order: registers, lanes, warps. Each thread scans its own elements;
//! then the totals of threads, and then of warps, are scanned and put before.

use super::{Lower, Lowered, Registers};
use crate::layout::{LANE_BITS, Layout, axis_bits, numel_bits};
use crate::placed::What;
use naiad_ir::scalar::Predicate;
use naiad_ir::tile::TileOp;
use naiad_ir::{Block, Shape, Value};

/// Elements that are combined together, one of each input.
type Element = Vec<Value>;

/// Which bits of the places go along an axis.
struct Along {
    registers: Vec<usize>,
    lanes: Vec<usize>,
    warps: Vec<usize>,
}

impl Along {
    fn of(layout: &Layout, shape: &Shape, axis: usize) -> Along {
        let (low, bits) = axis_bits(shape, axis);
        // In the order of the axis's bits.
        let order = |bases: &[u32]| -> Vec<usize> {
            let at = |bit: u32| bases.iter().position(|&b| b == 1 << bit);
            (low..low + bits).filter_map(at).collect()
        };
        Along {
            registers: order(layout.registers()),
            lanes: order(layout.lanes()),
            warps: order(layout.warps()),
        }
    }
}

impl Lower<'_> {
    /// The region's function of two elements.
    fn combined(&mut self, body: Block, a: &[Value], b: &[Value]) -> Lowered<Element> {
        let args: Vec<Value> = a.iter().chain(b).copied().collect();
        self.call(body, &args)
    }

    fn row(inputs: &[Registers], register: usize) -> Element {
        inputs.iter().map(|registers| registers[register]).collect()
    }

    pub fn reduce(
        &mut self,
        inputs: &[Value],
        axis: usize,
        body: Block,
    ) -> Lowered<Vec<Registers>> {
        let all: Vec<Registers> = inputs.iter().map(|&v| self.get(v).clone()).collect();
        let Some(layout) = self.layout(inputs[0]) else { return Ok(all) };
        let shape = self.shape(inputs[0]);
        let along = Along::of(&layout, &shape, axis);
        // Registers that are copies are not combined.
        let copies: Vec<usize> =
            (0..layout.registers().len()).filter(|&i| layout.registers()[i] == 0).collect();
        let left_out = |r: usize, bits: &[usize]| bits.iter().any(|b| r >> b & 1 == 1);
        let mut elements: Vec<(usize, Element)> = (0..layout.count())
            .filter(|&r| !left_out(r, &copies))
            .map(|r| (r, Self::row(&all, r)))
            .collect();
        for &bit in &along.registers {
            elements = self.halved(elements, bit, body)?;
        }
        for &bit in &along.lanes {
            for (_, element) in &mut elements {
                let other: Element =
                    element.iter().map(|&v| self.shuffle_xor(v, 1 << bit)).collect();
                *element = self.combined(body, element, &other)?;
            }
        }
        // Through shared memory goes what one of them has.
        if along.warps.is_empty() && !along.lanes.is_empty() && !self.commutes(body) {
            // Of a row all lanes of the warp have the result.
            let all: Vec<usize> = (0..LANE_BITS).collect();
            let lanes = if shape.rank() == 1 { &all } else { &along.lanes };
            self.agree(&mut elements, lanes);
        }
        let mut results: Vec<Registers> =
            (0..inputs.len()).map(|i| elements.iter().map(|(_, e)| e[i]).collect()).collect();
        if !along.warps.is_empty() {
            results = self.across_warps(inputs, &results, &layout, &shape, axis, &along, body)?;
        }
        Ok(results)
    }

    /// Whether it is seen that the region gives the same for two elements whichever comes first.
    fn commutes(&self, body: Block) -> bool {
        let params = self.f.block_params(body);
        let (a, b) = params.split_at(params.len() / 2);
        let pair = |v: Value| a.iter().zip(b).find(|(x, y)| **x == v || **y == v);
        self.f.insts(body).iter().all(|&inst| match &self.f.op(inst).what {
            What::Tile(TileOp::Binary { f, a, b }) => {
                f.is_commutative() && a != b && pair(*a).is_some() && pair(*a) == pair(*b)
            }
            What::Tile(TileOp::Yield { values }) => !values.iter().any(|v| params.contains(v)),
            _ => false,
        })
    }

    /// Lanes that have combined the same elements, each with its own first, end with what the first of
    /// them has: of equal ones a region may prefer the first or the second, and threads that believe
    /// in different results would part.
    fn agree(&mut self, elements: &mut [(usize, Element)], lanes: &[usize]) {
        let others: i64 = lanes.iter().map(|bit| 1i64 << bit).sum();
        let lane = self.lane();
        let first = self.and(lane, !others);
        for (_, element) in elements {
            for value in element {
                *value = self.shuffle_from(*value, first);
            }
        }
    }

    /// Combines registers that differ in one bit.
    fn halved(
        &mut self,
        elements: Vec<(usize, Element)>,
        bit: usize,
        body: Block,
    ) -> Lowered<Vec<(usize, Element)>> {
        let (ones, zeros): (Vec<_>, Vec<_>) =
            elements.into_iter().partition(|(r, _)| r >> bit & 1 == 1);
        zeros
            .into_iter()
            .zip(ones)
            .map(|((r, a), (_, b))| Ok((r, self.combined(body, &a, &b)?)))
            .collect()
    }

    /// Combines what each warp has, all of which is in the layout of the result but for the warps.
    #[expect(clippy::too_many_arguments, reason = "all of one reduction")]
    fn across_warps(
        &mut self,
        inputs: &[Value],
        partial: &[Registers],
        layout: &Layout,
        shape: &Shape,
        axis: usize,
        along: &Along,
        body: Block,
    ) -> Lowered<Vec<Registers>> {
        let rest = layout.without_axis(shape, axis).without_copies();
        let bits = numel_bits(shape) - axis_bits(shape, axis).1;
        // Above the result's bits stands which warp along the axis it is from.
        let mut from_warps = rest.warps().to_vec();
        for (i, &warp) in along.warps.iter().enumerate() {
            from_warps[warp] = 1 << (bits + i as u32);
        }
        let lanes: [u32; LANE_BITS] = std::array::from_fn(|i| rest.lanes()[i]);
        let from = Layout::new(rest.registers(), lanes, &from_warps);
        let mut registers = rest.registers().to_vec();
        registers.extend((0..along.warps.len()).map(|i| 1 << (bits + i as u32)));
        let to = Layout::new(&registers, lanes, rest.warps());
        let wide = bits + along.warps.len() as u32;
        let flat = [1i64 << wide];
        let Ok(flat) = Shape::new(&flat) else { return self.unsupported("a tile of this size") };
        let gathered: Vec<Registers> = inputs
            .iter()
            .zip(partial)
            .map(|(&v, registers)| {
                let elem = self.elem(v);
                self.convert(registers, elem, &flat, &from, &to)
            })
            .collect();
        let mut elements: Vec<(usize, Element)> =
            (0..to.count()).map(|r| (r, Self::row(&gathered, r))).collect();
        for i in 0..along.warps.len() {
            elements = self.halved(elements, rest.registers().len() + i, body)?;
        }
        Ok((0..inputs.len()).map(|i| elements.iter().map(|(_, e)| e[i]).collect()).collect())
    }

    pub fn scan(
        &mut self,
        inputs: &[Value],
        axis: usize,
        reverse: bool,
        body: Block,
    ) -> Lowered<Vec<Registers>> {
        let mut all: Vec<Registers> = inputs.iter().map(|&v| self.get(v).clone()).collect();
        let Some(layout) = self.layout(inputs[0]) else { return Ok(all) };
        let along = Along::of(&layout, &self.shape(inputs[0]), axis);
        // Registers along the axis in the order in which they are combined; what else they hold.
        let spread = |bits: &[usize], i: usize| -> usize {
            bits.iter().enumerate().map(|(at, b)| (i >> at & 1) << b).sum()
        };
        let others: Vec<usize> =
            (0..layout.registers().len()).filter(|b| !along.registers.contains(b)).collect();
        let last = (1usize << along.registers.len()) - 1;
        let in_order = |i: usize| spread(&along.registers, if reverse { last - i } else { i });
        for other in 0..1usize << others.len() {
            let row = spread(&others, other);
            let mut sum = Self::row(&all, row | in_order(0));
            for i in 1..=last {
                let r = row | in_order(i);
                let own = Self::row(&all, r);
                sum = self.combined(body, &sum, &own)?;
                for (registers, &v) in all.iter_mut().zip(&sum) {
                    registers[r] = v;
                }
            }
            let total = sum;
            let before = self.before_in_warp(&total, &along, reverse, body)?;
            let (before, whole) = before;
            let before_warp = self.before_in_block(inputs, &whole, &along, reverse, body)?;
            for i in 0..=last {
                let r = row | in_order(i);
                for before in [&before, &before_warp].into_iter().flatten() {
                    let (exists, value) = before;
                    let own = Self::row(&all, r);
                    let with = self.combined(body, value, &own)?;
                    for ((registers, with), own) in all.iter_mut().zip(with).zip(own) {
                        registers[r] = self.b.select(*exists, with, own);
                    }
                }
            }
        }
        Ok(all)
    }

    /// What lanes before this one have together, with whether there are any; and what all lanes that
    /// share the axis have.
    fn before_in_warp(
        &mut self,
        total: &[Value],
        along: &Along,
        reverse: bool,
        body: Block,
    ) -> Lowered<(Option<(Value, Element)>, Element)> {
        if along.lanes.is_empty() {
            return Ok((None, total.to_vec()));
        }
        let lane = self.lane();
        let mut sum = total.to_vec();
        let mut lower = 0i64;
        for &bit in &along.lanes {
            // The last of the lanes of the other half.
            let (clear, set) = if reverse { (lower, 1 << bit) } else { (1 << bit, lower) };
            let cleared = self.and(lane, !clear);
            let set = self.i32(set);
            let from = self.b.binary(naiad_ir::scalar::BinaryFn::Or, cleared, set);
            let other: Element = sum.iter().map(|&v| self.shuffle_from(v, from)).collect();
            let with = self.combined(body, &other, &sum)?;
            let is_set = self.thread_bit(bit);
            for (s, with) in sum.iter_mut().zip(with) {
                *s = if reverse {
                    self.b.select(is_set, *s, with)
                } else {
                    self.b.select(is_set, with, *s)
                };
            }
            lower |= 1 << bit;
        }
        // Lanes along the axis are neighbours in number.
        let step = 1i64 << along.lanes[0];
        let (from, end, first) = if reverse { (step, 0, lower) } else { (-step, lower, 0) };
        let neighbour = self.add_constant(lane, from);
        // Whose there is none takes that of the other end, and drops it.
        let neighbour = self.and(neighbour, 31);
        let before: Element = sum.iter().map(|&v| self.shuffle_from(v, neighbour)).collect();
        let own = self.and(lane, lower);
        let first = self.i32(first);
        let exists = self.b.compare(Predicate::Ne, own, first);
        let cleared = self.and(lane, !lower);
        let end = self.i32(end);
        let at_end = self.b.binary(naiad_ir::scalar::BinaryFn::Or, cleared, end);
        let whole = sum.iter().map(|&v| self.shuffle_from(v, at_end)).collect();
        Ok((Some((exists, before)), whole))
    }

    /// What warps before this one have together, with whether there are any.
    fn before_in_block(
        &mut self,
        inputs: &[Value],
        whole: &[Value],
        along: &Along,
        reverse: bool,
        body: Block,
    ) -> Lowered<Option<(Value, Element)>> {
        if along.warps.is_empty() {
            return Ok(None);
        }
        // Each lane of each warp puts down what it has; each takes what its fellows in all warps have.
        let warp_bits = self.sharing.warp_bits as usize;
        let lanes: [u32; LANE_BITS] = std::array::from_fn(|i| 1 << i);
        let warps: Vec<u32> = (0..warp_bits).map(|i| 1 << (LANE_BITS + i)).collect();
        let from = Layout::new(&[], lanes, &warps);
        let gone: Vec<u32> = along.warps.iter().map(|&i| warps[i]).collect();
        let kept: Vec<u32> = warps.iter().map(|w| if gone.contains(w) { 0 } else { *w }).collect();
        let to = Layout::new(&gone, lanes, &kept);
        let Ok(flat) = Shape::new(&[1i64 << (LANE_BITS + warp_bits)]) else {
            return self.unsupported("a block of this size");
        };
        let gathered: Vec<Registers> = inputs
            .iter()
            .zip(whole)
            .map(|(&v, &value)| {
                let elem = self.elem(v);
                self.convert(&vec![value], elem, &flat, &from, &to)
            })
            .collect();
        let n = to.count();
        let mask: i64 = along.warps.iter().map(|w| 1i64 << (LANE_BITS + w)).sum();
        let own = self.and(self.thread, mask);
        let number = |i: usize| -> i64 {
            along
                .warps
                .iter()
                .enumerate()
                .map(|(at, w)| ((i >> at & 1) as i64) << (LANE_BITS + w))
                .sum()
        };
        let order = |i: usize| if reverse { n - 1 - i } else { i };
        let mut sum = Self::row(&gathered, order(0));
        let mut before = sum.clone();
        for i in 1..n - 1 {
            let next = Self::row(&gathered, order(i));
            sum = self.combined(body, &sum, &next)?;
            // It is for those that come behind this warp.
            let here = self.i32(number(order(i)));
            let behind =
                self.b.compare(if reverse { Predicate::Lt } else { Predicate::Gt }, own, here);
            for (before, &s) in before.iter_mut().zip(&sum) {
                *before = self.b.select(behind, s, *before);
            }
        }
        let first = self.i32(number(order(0)));
        let exists = self.b.compare(Predicate::Ne, own, first);
        Ok(Some((exists, before)))
    }
}
