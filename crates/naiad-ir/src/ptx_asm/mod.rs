//! Inline PTX, evaluated without a GPU.
//!
//! ```text
//! text, constraints --parse.rs--> statements over slots --call--> images of the results
//!                        \-- instr.rs, convert.rs: an opcode and its types -> a function of images
//! ```
//!
//! What kernels write in inline assembly is mostly arithmetic that the language lacks: conversions of
//! packed floats, byte permutations, three-input logic. All of that is a straight line of instructions
//! over registers, which is what is understood here: no memory, no branches, nothing that asks one
//! thread about others. Whatever else stands in the text is refused by name.
//!
//! Registers are *slots* of 64 bits, kept zero-extended. Approximate instructions (`ex2.approx`) give what
//! this crate's own functions give, which is nearer to the truth than a GPU's.

mod convert;
mod instr;
mod parse;

use instr::Function;

/// Why a text is not run, in a sentence; `statement` is the instruction that it is about.
#[derive(Clone, PartialEq, Debug)]
pub struct Refusal {
    pub statement: Option<String>,
    pub why: String,
}

/// Widths of what goes in and out, in bits.
pub struct Interface<'a> {
    pub args: &'a [u32],
    pub results: &'a [u32],
    /// Consecutive elements that one call handles.
    pub pack: usize,
}

impl Interface<'_> {
    /// Elements of this width that share a register: sub-32-bit ones fill one of 32 bits.
    fn per_register(&self, bits: u32) -> usize {
        (32 / bits as usize).clamp(1, self.pack)
    }

    fn registers(&self, widths: &[u32]) -> usize {
        widths.iter().map(|&bits| self.pack.div_ceil(self.per_register(bits))).sum()
    }
}

/// A text that was understood.
pub struct Program {
    slots: usize,
    statements: Vec<Statement>,
    args: Vec<Packing>,
    results: Vec<Packing>,
    pack: usize,
    reads_clock: bool,
}

/// How the elements of an argument or result lie in registers.
struct Packing {
    bits: u32,
    per_register: usize,
    slots: Vec<usize>,
}

struct Statement {
    guard: Option<Guard>,
    targets: Vec<Target>,
    /// With the bits that the instruction looks at.
    sources: Vec<(Source, u64)>,
    f: Function,
}

struct Guard {
    slot: usize,
    negated: bool,
}

/// Bits of a statement's result and where they go.
struct Target {
    /// None for `_`, which drops them.
    slot: Option<usize>,
    shift: u32,
    bits: u32,
    /// Of the slot's register; a signed result is extended to it.
    width: u32,
    signed: bool,
}

enum Source {
    Slot {
        slot: usize,
        negated: bool,
    },
    Image(u64),
    /// Nanoseconds.
    Clock,
    /// Registers side by side, the lowest first, with the width of each.
    Vector(Vec<Source>, u32),
}

fn mask(bits: u32) -> u64 {
    if bits == 0 { 0 } else { u64::MAX >> (64 - bits.min(64)) }
}

/// Registers of a [`Program`], to be used for one call after another.
#[derive(Default)]
pub struct Registers {
    slots: Vec<u64>,
    sources: Vec<u64>,
}

impl Program {
    pub fn parse(
        text: &str,
        constraints: &str,
        interface: &Interface<'_>,
    ) -> Result<Program, Refusal> {
        parse::program(text, constraints, interface)
    }

    /// Whether a call depends on when it is made.
    pub fn reads_clock(&self) -> bool {
        self.reads_clock
    }

    /// Runs the text on `pack` elements of each argument, the first argument's first; `results` gets as
    /// many of each result.
    pub fn call(
        &self,
        registers: &mut Registers,
        args: &[u64],
        results: &mut [u64],
        clock: &mut dyn FnMut() -> u64,
    ) {
        let Registers { slots, sources } = registers;
        slots.clear();
        slots.resize(self.slots, 0);
        for (packing, elements) in self.args.iter().zip(args.chunks(self.pack)) {
            let groups = elements.chunks(packing.per_register);
            for (&slot, group) in packing.slots.iter().zip(groups) {
                let join = |all, &x: &u64| all << packing.bits | x & mask(packing.bits);
                // The last element is the highest; one of 64 bits is alone.
                slots[slot] = match group {
                    [one] => one & mask(packing.bits),
                    _ => group.iter().rev().fold(0u64, join),
                };
            }
        }
        for s in &self.statements {
            if s.guard.as_ref().is_some_and(|g| (slots[g.slot] != 0) == g.negated) {
                continue;
            }
            sources.clear();
            let image = |(source, mask): &(Source, u64)| source.image(slots, clock) & mask;
            sources.extend(s.sources.iter().map(image));
            let image = (s.f)(sources);
            for t in &s.targets {
                let part = image >> t.shift.min(63) & mask(t.bits);
                let negative = t.signed && t.bits > 0 && part >> (t.bits - 1) & 1 != 0;
                let extended = if negative { part | !mask(t.bits) } else { part };
                if let Some(slot) = t.slot {
                    slots[slot] = extended & mask(t.width);
                }
            }
        }
        for (packing, elements) in self.results.iter().zip(results.chunks_mut(self.pack)) {
            let groups = elements.chunks_mut(packing.per_register);
            for (&slot, group) in packing.slots.iter().zip(groups) {
                for (i, element) in group.iter_mut().enumerate() {
                    *element = slots[slot] >> (i as u32 * packing.bits) & mask(packing.bits);
                }
            }
        }
    }
}

impl Source {
    fn image(&self, slots: &[u64], clock: &mut dyn FnMut() -> u64) -> u64 {
        match self {
            Source::Slot { slot, negated: false } => slots[*slot],
            Source::Slot { slot, negated: true } => u64::from(slots[*slot] == 0),
            Source::Image(image) => *image,
            Source::Clock => clock(),
            Source::Vector(parts, bits) => parts
                .iter()
                .rev()
                .fold(0, |all, part| all << (bits & 63) | part.image(slots, clock) & mask(*bits)),
        }
    }
}

#[cfg(test)]
mod tests;
