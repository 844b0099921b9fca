//! Layouts held against what they mean, place by place and element by element.

use super::mma::warps;
use super::*;
use crate::placed::rules;
use naiad_ir::Value;
use naiad_ir::thread::MmaKind;
use naiad_ir::thread::fragments::{a_index, b_index, c_index};
use naiad_ir::tile::TileOp;
use std::collections::BTreeSet;

const LANES: usize = 1 << LANE_BITS;
const ROUNDS: u64 = 300;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 33) % n as u64) as usize
    }

    fn shuffled<T>(&mut self, mut all: Vec<T>) -> Vec<T> {
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i + 1));
        }
        all
    }

    /// Up to `most` bits of index over up to four axes.
    fn shape(&mut self, most: u32) -> Shape {
        let mut left = self.below(most as usize + 1);
        let rank = 1 + self.below(4);
        let mut dims: Vec<i64> = Vec::new();
        for axis in 0..rank {
            let bits = if axis + 1 == rank { left } else { self.below(left + 1) };
            left -= bits;
            dims.push(1 << bits);
        }
        Shape::new(&self.shuffled(dims)).unwrap()
    }

    /// A sound layout of a tile: bits of indices, given to bits of places in any order, and replicas.
    fn layout(&mut self, shape: &Shape) -> Layout {
        let warps = self.below(4);
        self.layout_on(shape, warps)
    }

    fn layout_on(&mut self, shape: &Shape, warps: usize) -> Layout {
        let bits = numel_bits(shape) as usize;
        let threads = LANE_BITS + warps;
        // At times all is in registers, and at times they hold copies too.
        let registers = bits.saturating_sub(self.below(threads + 1)) + self.below(2);
        let registers = registers.max(bits.saturating_sub(threads));
        let mut bases: Vec<u32> = (0..bits).map(|b| 1 << b).collect();
        bases.resize(registers + threads, 0);
        let bases = self.shuffled(bases);
        let lanes = std::array::from_fn(|i| bases[registers + i]);
        Layout::new(&bases[..registers], lanes, &bases[registers + LANE_BITS..])
    }

    /// The same elements in other places: each basis may have others added to it.
    fn mixed(&mut self, layout: &Layout) -> Layout {
        let mut all: Vec<u32> = layout.bases().collect();
        for _ in 0..all.len() {
            let (to, from) = (self.below(all.len()), self.below(all.len()));
            if to != from {
                all[to] ^= all[from];
            }
        }
        let n = layout.registers().len();
        let lanes = std::array::from_fn(|i| all[n + i]);
        Layout::new(&all[..n], lanes, &all[n + LANE_BITS..])
    }
}

fn threads(layout: &Layout) -> impl Iterator<Item = (usize, usize)> + use<> {
    let warps = 1 << layout.warps().len();
    (0..warps).flat_map(|warp| (0..LANES).map(move |lane| (lane, warp)))
}

/// Elements that a thread holds.
fn held(layout: &Layout, (lane, warp): (usize, usize)) -> BTreeSet<u32> {
    (0..layout.count()).map(|r| layout.element(r, lane, warp)).collect()
}

fn coordinates(shape: &Shape, index: u32) -> Vec<usize> {
    (0..shape.rank())
        .map(|axis| {
            let behind: usize = (axis + 1..shape.rank()).map(|a| shape.dim(a)).product();
            index as usize / behind % shape.dim(axis)
        })
        .collect()
}

fn index(shape: &Shape, at: &[usize]) -> u32 {
    at.iter().enumerate().fold(0, |i, (axis, &x)| i * shape.dim(axis) + x) as u32
}

fn each(most: u32, mut check: impl FnMut(&mut Random, Shape, Layout)) {
    for seed in 0..ROUNDS {
        let mut r = Random(seed * 77 + 1);
        let shape = r.shape(most);
        let layout = r.layout(&shape);
        check(&mut r, shape, layout);
    }
}

#[test]
fn every_element_has_a_place_and_one_owner() {
    each(12, |r, shape, layout| {
        for layout in [layout, r.mixed(&layout)] {
            assert!(layout.covers(&shape), "{layout}");
            let mut places = vec![0; shape.numel()];
            let mut owned = vec![0; shape.numel()];
            let (lanes, warps) = layout.replicas();
            for (lane, warp) in threads(&layout) {
                let owner = lane as u32 & lanes == 0 && warp as u32 & warps == 0;
                for element in held(&layout, (lane, warp)) {
                    places[element as usize] += 1;
                    owned[element as usize] += u32::from(owner);
                }
            }
            assert!(places.iter().all(|&n| n > 0), "{layout}");
            assert!(owned.iter().all(|&n| n == 1), "{layout} of {shape}: {owned:?}");
        }
        let few = layout.without_copies();
        for register in 0..layout.count() {
            let at = layout.without_copies_at(register);
            assert_eq!(few.register_part(at), layout.register_part(register), "{layout}");
        }
    });
}

#[test]
fn what_is_not_sound_is_not_taken_for_it() {
    each(10, |r, shape, layout| {
        let bits = numel_bits(&shape);
        if bits == 0 {
            return;
        }
        let lost = 1 << r.below(bits as usize);
        assert!(!layout.map(|b| b & !lost).covers(&shape), "{layout} without {lost}");
        assert!(!layout.map(|b| b << 1).covers(&shape), "{layout} too far");
    });
}

#[test]
fn axes_are_taken_out_of_indices() {
    each(12, |r, shape, layout| {
        let axis = r.below(shape.rank());
        let less = layout.without_axis(&shape, axis);
        let to = shape.with_dim(axis, 1).unwrap();
        let wide = Shape::new(
            &(0..shape.rank())
                .map(|a| if r.below(2) == 0 { 1 } else { shape.dim(a) as i64 })
                .collect::<Vec<i64>>(),
        )
        .unwrap();
        let narrow = layout.unbroadcast(&shape, &wide);
        assert!(less.covers(&to) && narrow.covers(&wide), "{layout} of {shape}, {wide}");
        for (lane, warp) in threads(&layout) {
            for register in 0..layout.count() {
                let mut at = coordinates(&shape, layout.element(register, lane, warp));
                let from: Vec<usize> =
                    (0..at.len()).map(|a| if wide.dim(a) == 1 { 0 } else { at[a] }).collect();
                assert!(held(&narrow, (lane, warp)).contains(&index(&wide, &from)));
                at[axis] = 0;
                assert_eq!(less.element(register, lane, warp), index(&to, &at), "{layout}");
            }
        }
    });
}

#[test]
fn axes_change_places() {
    each(12, |r, shape, layout| {
        let order = r.shuffled((0..shape.rank() as u32).collect());
        let by: Vec<usize> = order.iter().map(|&a| a as usize).collect();
        let to = shape.permuted(&by);
        let other = layout.permuted(&shape, &order);
        for (lane, warp) in threads(&layout) {
            for register in 0..layout.count() {
                let at = coordinates(&shape, layout.element(register, lane, warp));
                let moved: Vec<usize> = by.iter().map(|&a| at[a]).collect();
                assert_eq!(other.element(register, lane, warp), index(&to, &moved));
            }
        }
    });
}

/// An op that only passes elements on, and which element of which operand an element of its result is.
struct Passing {
    op: TileOp,
    from: Shape,
    to: Shape,
    source: Box<dyn Fn(u32) -> u32>,
}

fn passing(r: &mut Random, from: Shape) -> Passing {
    let src = Value::new(0);
    let numel = from.numel() as i64;
    let dims: Vec<i64> = from.dims().map(|d| d as i64).collect();
    let (op, to): (TileOp, Shape) = match r.below(5) {
        0 => (
            TileOp::Reshape { src, shape: Shape::new(&[numel]).unwrap() },
            Shape::new(&[numel]).unwrap(),
        ),
        1 => {
            let order = r.shuffled((0..from.rank() as u32).collect());
            let by: Vec<usize> = order.iter().map(|&a| a as usize).collect();
            let to = from.permuted(&by);
            let source = move |e| {
                let at = coordinates(&to, e);
                let mut was = at.clone();
                by.iter().enumerate().for_each(|(i, &axis)| was[axis] = at[i]);
                index(&from, &was)
            };
            let op = TileOp::Permute { src, order: order.into_iter().collect() };
            return Passing { op, from, to, source: Box::new(source) };
        }
        2 => {
            let to = Shape::new(&[&dims[..], &[2]].concat()).unwrap();
            let op = TileOp::Join { a: src, b: src };
            return Passing { op, from, to, source: Box::new(|e| e >> 1) };
        }
        3 => {
            let axis = r.below(from.rank());
            let mut wide = dims;
            wide[axis] *= 2;
            let to = Shape::new(&wide).unwrap();
            let source = move |e| {
                let mut at = coordinates(&to, e);
                at[axis] %= from.dim(axis);
                index(&from, &at)
            };
            let op = TileOp::Cat { a: src, b: src, axis };
            return Passing { op, from, to, source: Box::new(source) };
        }
        _ => {
            let mut wide = dims;
            for d in &mut wide {
                if *d == 1 && r.below(2) == 0 {
                    *d = 1 << r.below(4);
                }
            }
            let to = Shape::new(&wide).unwrap();
            let source = move |e| {
                let at = coordinates(&to, e);
                let was: Vec<usize> =
                    at.iter().enumerate().map(|(a, &x)| x % from.dim(a)).collect();
                index(&from, &was)
            };
            let op = TileOp::Broadcast { src, shape: to };
            return Passing { op, from, to, source: Box::new(source) };
        }
    };
    Passing { op, from, to, source: Box::new(|e| e) }
}

/// Each thread has what the elements of a result come from.
fn fits(p: &Passing, operand: &Layout, result: &Layout) {
    assert!(operand.covers(&p.from), "{:?}: {operand} for {result}", p.op);
    assert!(result.covers(&p.to), "{:?}: {operand} gives {result}", p.op);
    for thread in threads(result) {
        let has = held(operand, thread);
        for element in held(result, thread) {
            let wants = (p.source)(element);
            assert!(has.contains(&wants), "{:?}: {operand} gives {result}", p.op);
        }
    }
}

#[test]
fn rules_say_where_elements_come_from() {
    let mut both = 0;
    each(9, |r, from, layout| {
        let p = passing(r, from);
        let shape_of = |_: Value| p.from;
        if let Some(result) = rules::result(&p.op, shape_of, &layout) {
            fits(&p, &layout, &result);
        }
        let result = r.layout(&p.to);
        if let Some(operand) = rules::operands(&p.op, shape_of, &p.to, &result) {
            fits(&p, &operand, &result);
            both += 1;
        }
    });
    assert!(both > ROUNDS / 2, "{both}");
}

#[test]
fn halves_are_split_within_threads() {
    each(10, |r, shape, _| {
        let half = shape;
        let dims: Vec<i64> = half.dims().map(|d| d as i64).chain([2]).collect();
        let whole = Shape::new(&dims).unwrap();
        let op = TileOp::Split { src: Value::new(0) };
        let result = r.layout(&half);
        let operand = rules::operands(&op, |_| whole, &half, &result).unwrap();
        assert!(operand.covers(&whole));
        for thread in threads(&result) {
            let wants = held(&result, thread).into_iter().flat_map(|e| [e << 1, e << 1 | 1]);
            assert_eq!(held(&operand, thread), wants.collect());
        }
        assert_eq!(rules::result(&op, |_| whole, &operand), Some(result));
    });
}

#[test]
fn linear_systems_are_solved() {
    for seed in 0..ROUNDS {
        let mut r = Random(seed);
        let vectors: Vec<u32> = (0..r.below(9)).map(|_| r.below(1 << 7) as u32).collect();
        let span: BTreeSet<u32> = (0..1 << vectors.len()).map(|x| xor(&vectors, x)).collect();
        assert_eq!(1 << rank(vectors.iter().copied()), span.len());
        for target in 0..1 << 7 {
            let found = solve(&vectors, target);
            assert_eq!(found.is_some(), span.contains(&target), "{vectors:?}, {target}");
            assert!(found.is_none_or(|x| xor(&vectors, x as usize) == target));
        }
    }
}

#[test]
fn text_is_read_back() {
    each(12, |r, shape, layout| {
        for layout in [layout, r.mixed(&layout)] {
            assert_eq!(layout.to_string().parse(), Ok(layout));
        }
        let other = r.layout(&shape);
        let (way, _) = swizzle(&layout, &other, numel_bits(&shape), 4);
        assert_eq!(way.to_string().parse(), Ok(way));
    });
    for wrong in ["", "r", "r1l1w1", "r1_2l1_2_4_8_16", "r1l1_2_4_8_16w1x", "r1_l_1w"] {
        assert!(wrong.parse::<Layout>().is_err(), "{wrong}");
    }
}

/// Of each place the element that a conversion brings there.
#[test]
fn conversions_bring_each_place_its_element() {
    let mut ways = [0; 3];
    for seed in 0..4 * ROUNDS {
        let mut r = Random(seed);
        let shape = r.shape(10);
        let warps = r.below(4);
        let from = r.layout_on(&shape, warps);
        let mut to = r.layout_on(&shape, warps);
        // Alike in warps, and in lanes now and then, so that all ways are met.
        let same = r.below(3);
        if same > 0 {
            let registers = r.shuffled(from.registers().to_vec());
            let mut lanes = from.lanes().to_vec();
            if same == 1 {
                lanes = r.shuffled(lanes);
            }
            to = Layout::new(&registers, std::array::from_fn(|i| lanes[i]), from.warps());
        }
        let plan = conversion(&from, &to);
        for (lane, warp) in threads(&to) {
            for register in 0..to.count() {
                let got = match &plan {
                    Conversion::Registers(of) => from.element(of[register], lane, warp),
                    Conversion::Shuffles { registers, constants, lanes } => {
                        let source = xor(lanes, lane) ^ constants[register];
                        from.element(registers[register], source as usize, warp)
                    }
                    Conversion::Shared => continue,
                };
                assert_eq!(got, to.element(register, lane, warp), "{from} to {to}: {plan:?}");
            }
        }
        ways[match plan {
            Conversion::Registers(_) => 0,
            Conversion::Shuffles { .. } => 1,
            Conversion::Shared => 2,
        }] += 1;
    }
    assert!(ways.iter().all(|&n| n > 100), "{ways:?}");
}

#[test]
fn swizzles_are_invertible() {
    each(12, |r, shape, from| {
        let to = r.layout_on(&shape, from.warps().len());
        let bits = numel_bits(&shape);
        for size in [1, 2, 4, 8] {
            let (way, vectors) = swizzle(&from, &to, bits, size);
            let positions: BTreeSet<u32> = (0..1 << bits).map(|i| way.position(i)).collect();
            assert_eq!(positions.len(), shape.numel(), "{from} to {to}");
            assert!(positions.iter().all(|&p| (p as usize) < shape.numel()));
            for (side, vector) in [&from, &to].into_iter().zip(vectors) {
                // So many registers hold neighbours, and together they are aligned.
                let side = way.of(side);
                let bits = vector.trailing_zeros();
                assert_eq!(side.neighbours(0, bits).len(), bits as usize);
            }
        }
    });
}

/// Rows are written and columns read, or the other way, without asking a bank twice.
#[test]
fn transpositions_spread_over_the_banks() {
    let shape = Shape::new(&[32, 32]).unwrap();
    let bits = |r: std::ops::Range<u32>| r.map(|b| 1 << b).collect::<Vec<u32>>();
    for (size, vector) in [(4, 2), (4, 0), (2, 3), (2, 0), (8, 1), (8, 0)] {
        for warps in [0, 2] {
            let rows = Layout::in_order(bits(0..10), vector, warps);
            let columns = Layout::in_order([bits(5..10), bits(0..5)].concat(), vector, warps);
            assert!(rows.covers(&shape) && columns.covers(&shape));
            for (from, to) in [(&rows, &columns), (&columns, &rows)] {
                let (way, vectors) = swizzle(from, to, 10, size);
                let banks = [from, to].map(|side| way.of(side));
                let banks: Vec<Banks> = banks
                    .iter()
                    .zip(vectors)
                    .map(|(side, vector)| Banks::of(side, size, vector))
                    .collect();
                for side in &banks {
                    assert_eq!(
                        side.wavefronts,
                        side.least,
                        "{size} bytes, {} at once, {from} to {to} by {way:?}: {banks:?}, {vectors:?}",
                        1 << vector
                    );
                }
            }
        }
    }
}

/// Fragments of each matrix of the product are those of the instruction.
#[test]
fn products_are_in_fragments() {
    for &kind in MmaKind::ALL {
        let [m, n, k] = kind.extents();
        let packed = kind.per_register().trailing_zeros();
        for (tiles_m, tiles_n, tiles_k, warp_bits) in
            [(1, 1, 1, 0), (2, 4, 2, 0), (4, 4, 1, 2), (1, 1, 2, 2), (8, 16, 4, 3)]
        {
            let shape = |a: u32, b: u32| Shape::new(&[i64::from(a), i64::from(b)]).unwrap();
            let sums = shape(m * tiles_m, n * tiles_n);
            let (sa, sb) = (shape(m * tiles_m, k * tiles_k), shape(k * tiles_k, n * tiles_n));
            let c = accumulator(&sums, warp_bits);
            let a = operand(Operand::A, &sa, &sums, packed, warp_bits);
            let b = operand(Operand::B, &sb, &sums, packed, warp_bits);
            assert!(c.covers(&sums) && a.covers(&sa) && b.covers(&sb), "{kind:?} {sums}");
            // Within a block of the instruction's extents, at its first place.
            let within = |shape: &Shape, element: u32, rows: u32, columns: u32| {
                let at = coordinates(shape, element);
                (at[0] as u32 % rows, at[1] as u32 % columns)
            };
            for (lane, warp) in threads(&c) {
                let thread = lane as u32;
                for register in 0..c.count() {
                    let at = within(&sums, c.element(register, lane, warp), m, n);
                    assert_eq!(at, c_index(thread, register as u32 % 4), "{kind:?} c");
                }
                let part = |register: usize| register as u32 % kind.per_register();
                for register in 0..a.count() {
                    let at = within(&sa, a.element(register, lane, warp), m, k);
                    let word = register as u32 / kind.per_register() % 4;
                    assert_eq!(at, a_index(kind, thread, word, part(register)), "{kind:?} a");
                }
                for register in 0..b.count() {
                    let at = within(&sb, b.element(register, lane, warp), k, n);
                    let word = register as u32 / kind.per_register() % 2;
                    assert_eq!(at, b_index(kind, thread, word, part(register)), "{kind:?} b");
                }
            }
            // The warp that has a sum has the row and the column that it is of.
            let has = |layout: &Layout, shape: &Shape, axis: usize| {
                let mut all: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); 1 << warp_bits];
                for (lane, warp) in threads(layout) {
                    let held = held(layout, (lane, warp));
                    all[warp].extend(held.iter().map(|&e| coordinates(shape, e)[axis]));
                }
                all
            };
            assert_eq!(has(&a, &sa, 0), has(&c, &sums, 0), "{kind:?} {sums}");
            assert_eq!(has(&b, &sb, 1), has(&c, &sums, 1), "{kind:?} {sums}");
            let shared = warps(&sums, warp_bits);
            assert!(shared.along_m + shared.along_n <= warp_bits);
        }
    }
}

#[test]
fn sectors_are_counted() {
    each(10, |r, shape, layout| {
        let axis = r.below(shape.rank());
        let size = 1 << r.below(4);
        let (low, bits) = axis_bits(&shape, axis);
        let most = layout.neighbours(low, bits).len();
        let vector = 1usize << r.below(most + 1);
        // Bytes of a row, which begin at a multiple of a sector, as far as rows go.
        let address = |element: u32| {
            let mut at = coordinates(&shape, element);
            let along = at[axis];
            at[axis] = 0;
            index(&shape, &at) as usize * (1 << 16) + along * size
        };
        let mut total = 0;
        let mut done = vec![false; layout.count()];
        for first in 0..layout.count() {
            if done[first] {
                continue;
            }
            // Registers that go with it: those whose elements are the next in all threads.
            let start = layout.register_part(first);
            let of = |i: usize| {
                let wanted = start ^ (i as u32) << low;
                let by = solve(layout.registers(), wanted ^ start).unwrap() as usize;
                first ^ by
            };
            let group: Vec<usize> = (0..vector).map(of).collect();
            group.iter().for_each(|&register| done[register] = true);
            for warp in 0..1 << layout.warps().len() {
                let mut touched = BTreeSet::new();
                for lane in 0..LANES {
                    for &register in &group {
                        let byte = address(layout.element(register, lane, warp));
                        touched.extend((byte..byte + size).map(|b| b / 32));
                    }
                }
                total += touched.len();
            }
        }
        assert_eq!(sectors(&layout, &shape, axis, size, vector), total, "{layout} of {shape}");
    });
}
