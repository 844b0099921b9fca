//! Loops over vectors that are wider than Cranelift's.
//!
//! ```text
//!   a `for` of Thread IR
//!     select   straight-line, over vectors; scalars are invariant or affine
//!     lower    ops -> machine instructions; what is not written here stays with Cranelift
//!       arith    functions of numbers, masks           cast, format    conversions
//!       resize   lanes of another width
//!       code     values, constants, the loop's block of memory
//!     alloc    registers; alloc/function: the function around the loop
//!       machine  the table of instructions            encode   their bytes
//!   a function of the C calling convention of Unix: (block, end of the index, up to 4 addresses)
//! ```
//!
//! Cranelift's code around the loop computes its scalars, puts what the loop wants into the block, calls
//! the function if there is at least one round, and takes results from the block. Whatever the loop has
//! that is not written here, the whole loop is left to Cranelift, which so remains the portable writer
//! and the oracle of this one. Results are the same bits, NaN payloads apart.

mod alloc;
mod arith;
mod cast;
mod code;
mod encode;
mod format;
mod lower;
mod machine;
mod resize;
mod select;
#[cfg(test)]
mod tests;

pub use alloc::PASSED;
pub use code::Input;
pub use machine::Level;

use machine::Op;
use naiad_ir::thread::{Thread, ThreadOp};
use naiad_ir::{Block, Function, Inst, Value};
use naiad_kernels::Level as Processor;

/// A loop as a function, and what it expects of its caller.
pub struct Wide {
    pub bytes: Vec<u8>,
    /// Scalar ops of the body to be run first, with the induction variable at its first value.
    pub scalars: Vec<Inst>,
    /// What the induction variable grows by in a round, a power of 2.
    pub step: i64,
    /// Addresses to be passed: the first [`PASSED`] as arguments.
    pub streams: Vec<Stream>,
    pub inputs: Vec<(Input, u32)>,
    /// Where in the block the results are.
    pub results: Vec<u32>,
    pub block_bytes: u32,
    /// The same for launches that go beyond the cache.
    pub other: Option<Other>,
}

/// Bytes in a row that a loop has to write for its stores to go past the cache. Where they are few,
/// others that do not go there write the lines beside them, and both wait for one another.
const LONG: i64 = 1024;

/// A loop that stands in for another one.
pub struct Other {
    pub bytes: Vec<u8>,
    pub when: When,
}

/// In which launches a loop stands in for another one.
pub enum When {
    /// What the launch writes is more than the cache holds: stores go past it, where nobody reads soon what
    /// they write.
    Writes {
        /// The streams that must start at lines of cache: at multiples of 64.
        aligned: Vec<usize>,
        /// The least end of the index for which that is worth it.
        least: i64,
    },
    /// What the launch reads is beyond the cache: the loop asks for it ahead.
    Reads,
}

pub struct Stream {
    pub start: Value,
    /// Where in the block the start goes that is no argument.
    pub at: Option<u32>,
    /// Where in the block it goes by how much the address moves in a round.
    pub moves: Option<u32>,
}

impl Level {
    /// What this machine has.
    pub fn host() -> Option<Level> {
        match Processor::here() {
            Processor::Portable => None,
            Processor::Avx2 => Some(Level::Avx2),
            Processor::Avx512 | Processor::Avx512Vnni | Processor::Avx512Bf16 => {
                Some(Level::Avx512)
            }
        }
    }

    /// Bytes of the vectors that loops should be over: Cranelift's are of 16.
    pub fn vector_bytes(level: Option<Level>) -> u32 {
        level.map_or(16, Level::bytes)
    }
}

/// Writes a loop, if all of it can be written.
pub fn write(func: &Function<Thread>, op: &ThreadOp, level: Level) -> Option<Wide> {
    let ThreadOp::For { body, .. } = op else { return None };
    let l = select::Loop::new(func, op)?;
    let mut code = lower::lower(&l, level)?;
    // A loop has one that stands in for it at most: what asks ahead and stores past the cache always asks.
    let (plain, when) = if code.has(Op::StorePast) {
        let aligned = code.past_streams();
        let steps = aligned.iter().filter_map(|&s| code.streams[s].step);
        let least = LONG / steps.min().unwrap_or(1).max(1);
        (Some(code.to_cache()), When::Writes { aligned, least })
    } else if code.has(Op::Ahead) {
        (Some(code.without_ahead()), When::Reads)
    } else {
        (None, When::Reads)
    };
    let other = match plain {
        Some(plain) => {
            let mut other = std::mem::replace(&mut code, plain);
            Some(Other { bytes: alloc::write(&mut other)?.bytes, when })
        }
        None => None,
    };
    // One allocator gives both loops the same places in the block.
    let written = alloc::write(&mut code)?;
    let streams = code.streams.iter().enumerate().map(|(i, s)| Stream {
        start: s.start,
        at: i.checked_sub(PASSED).map(|i| written.starts[i]),
        moves: written.moves[i],
    });
    let streams: Vec<Stream> = streams.collect();
    let scalars = scalars(&l, *body, &code);
    Some(Wide {
        bytes: written.bytes,
        scalars,
        step: l.step,
        streams,
        inputs: code.inputs,
        results: code.results,
        block_bytes: written.block_bytes,
        other,
    })
}

fn scalars(l: &select::Loop<'_>, body: Block, code: &code::Code) -> Vec<Inst> {
    let inputs = code.inputs.iter().map(|(input, _)| match input {
        Input::Scalar(v) | Input::Vector(v) => *v,
    });
    l.slice(body, code.streams.iter().map(|s| s.start).chain(inputs))
}
