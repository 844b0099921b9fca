//! How a tile gets from one layout to another.
//!
//! | way | when | costs |
//! |---|---|---|
//! | registers | each thread has what it wants already | nothing |
//! | shuffles | what a register wants lies in one register of some lane of the same warp | an instruction a register |
//! | shared memory | otherwise | a write, a barrier, a read |
//!
//! Through shared memory a tile goes *swizzled*: neighbours of the writer lie together, and those bits
//! of the index by which the reader's lanes differ, but which would lie above the banks, are added to
//! the bits that choose a bank. Both sides then meet no bank twice, or seldom.

use super::memory::{Banks, Swizzle};
use super::{LANE_BITS, Layout, rank, solve};

/// A way from one layout to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Conversion {
    /// Register `i` takes what register `.0[i]` has.
    Registers(Vec<usize>),
    /// Register `i` takes what register `registers[i]` has in the lane whose number is the xor of
    /// `constants[i]` and of the bases of the own lane's bits.
    Shuffles { registers: Vec<usize>, constants: Vec<u32>, lanes: [u32; LANE_BITS] },
    /// Through shared memory.
    Shared,
}

/// The cheapest way.
pub fn conversion(from: &Layout, to: &Layout) -> Conversion {
    within_threads(from, to).or_else(|| within_warps(from, to)).unwrap_or(Conversion::Shared)
}

fn within_threads(from: &Layout, to: &Layout) -> Option<Conversion> {
    if from.lanes() != to.lanes() || from.warps() != to.warps() {
        return None;
    }
    let at = |r: usize| solve(from.registers(), to.register_part(r)).map(|x| x as usize);
    (0..to.count()).map(at).collect::<Option<_>>().map(Conversion::Registers)
}

fn within_warps(from: &Layout, to: &Layout) -> Option<Conversion> {
    if from.warps() != to.warps() {
        return None;
    }
    let mut lanes = [0; LANE_BITS];
    for (lane, &basis) in lanes.iter_mut().zip(to.lanes()) {
        *lane = solve(from.lanes(), basis)? as u32;
    }
    let all: Vec<u32> = from.registers().iter().chain(from.lanes()).copied().collect();
    let bits = from.registers().len();
    let (mut registers, mut constants) = (Vec::new(), Vec::new());
    for r in 0..to.count() {
        let place = solve(&all, to.register_part(r))?;
        registers.push(place as usize & ((1 << bits) - 1));
        constants.push((place >> bits) as u32);
    }
    Some(Conversion::Shuffles { registers, constants, lanes })
}

/// Where elements of `size` bytes lie on their way through shared memory, and how many neighbours each
/// side moves at once.
pub fn swizzle(from: &Layout, to: &Layout, bits: u32, size: u32) -> (Swizzle, [u32; 2]) {
    let most = (16 / size).trailing_zeros();
    let options = (0..=most).rev().filter_map(|vector| candidate(from, to, bits, size, vector));
    let cheapest = options.min_by_key(|(_, _, cost)| *cost);
    match cheapest {
        Some((swizzle, vectors, _)) => (swizzle, vectors),
        // Not reached: a vector of one is always possible.
        None => (Swizzle::new(&(0..bits).map(|b| 1 << b).collect::<Vec<u32>>()), [1, 1]),
    }
}

/// A swizzle whose lowest `vector` bits are register bits of the writer, and what it costs.
fn candidate(
    from: &Layout,
    to: &Layout,
    bits: u32,
    size: u32,
    vector: u32,
) -> Option<(Swizzle, [u32; 2], u32)> {
    let single = |b: &u32| b.is_power_of_two();
    let registers: Vec<u32> = from.registers().iter().copied().filter(single).collect();
    // What both sides have in registers comes first: both move it at once.
    let mut order: Vec<u32> = Vec::new();
    let both = registers.iter().copied().filter(|b| to.registers().contains(b));
    let all = both.chain(registers.iter().copied());
    for basis in all {
        if order.len() < vector as usize && !order.contains(&basis) {
            order.push(basis);
        }
    }
    if order.len() < vector as usize {
        return None;
    }
    let rest = from.lanes().iter().chain(from.warps()).chain(from.registers()).copied();
    for basis in rest.filter(single).chain((0..bits).map(|b| 1 << b)) {
        if !order.contains(&basis) {
            order.push(basis);
        }
    }
    let mut bases = vec![0; bits as usize];
    for (position, basis) in order.iter().enumerate() {
        bases[basis.trailing_zeros() as usize] = 1u32 << position;
    }
    let plain = Swizzle::new(&bases);
    // Bits that choose among the banks, those of a word apart.
    let bank_bits = vector.max((4 / size.min(4)).trailing_zeros())..(128 / size).trailing_zeros();
    let read = plain.of(to);
    let mut free: Vec<u32> = bank_bits
        .clone()
        .filter(|&b| !read.lanes().iter().any(|&l| l == 1 << b))
        .filter(|&b| b < bits)
        .collect();
    for &lane in read.lanes() {
        let high = lane.is_power_of_two() && lane.trailing_zeros() >= bank_bits.end;
        if high && !free.is_empty() {
            let bank = free.remove(0);
            for basis in &mut bases {
                if *basis == lane {
                    *basis |= 1 << bank;
                }
            }
        }
    }
    let swizzle = Swizzle::new(&bases);
    let [write, read] = [from, to].map(|side| swizzle.of(side));
    let vectors = [&write, &read].map(|side| 1 << side.neighbours(0, vector).len());
    let cost = |side: &Layout, vector: u32| {
        let accesses = (side.without_copies().count() as u32 / vector).max(1);
        // An access costs its issue besides its wavefronts.
        accesses * (Banks::of(side, size, vector).wavefronts + 1)
    };
    let total = cost(&write, vectors[0]) + cost(&read, vectors[1]);
    debug_assert_eq!(rank(swizzle.bases().iter().copied()), bits);
    Some((swizzle, vectors, total))
}
