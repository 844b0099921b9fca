//! Thread IR as PTX text, for chips from sm_80 on. It needs no CUDA.
//!
//! ```text
//!   Function<Thread> --naiad_ir::thread::expand--> what there are instructions for --writer--> text
//!
//!   native.rs    what there are instructions for      cast.rs      conversions
//!   writer.rs    the walk over the ops                memory.rs    accesses, packing
//!   control.rs   loops, branches, parallel moves      atomics.rs   atomic accesses
//!   emit.rs      registers, lines                     warp.rs      shuffles, votes, matrices
//!   arith.rs     functions of numbers                 assembly.rs  inline assembly
//!   bytes.rs     narrow lanes, where they lie together print.rs     prints
//!   lines.rs     the kernel's lines, for profilers
//! ```
//!
//! **Values.** Each lane is a register of its own, of the width of its type: `%pr` a predicate (i1),
//! `%hw` 16 bits, `%w` 32, `%dw` 64. They have no types: a `bitcast`, a `splat`, an `extract`, a
//! `shuffle` or a `pack` is no instruction. Eight bits are held in 32, extended after their type.
//! Constants are operands of the instructions that use them. Addresses are of global memory, where a
//! generic address is the same number.
//!
//! **Numbers.** Results have the bits that [`naiad_ir::scalar`] defines, NaN payloads apart. Every
//! float instruction names its rounding, so that nothing is contracted, and none flushes subnormals.
//! `native` ops alone are approximate; the bounds in the table are those of NVIDIA's manual.
//!
//! | op | PTX |
//! |---|---|
//! | `+ - *`, `fma`, `div`, `sqrt` of floats | `add.rn`, `mul.rn`, `fma.rn`, `div.rn`, `sqrt.rn` |
//! | `floor ceil trunc rint` | `cvt.rmi`, `.rpi`, `.rzi`, `.rni` to the same type |
//! | `min max` of floats | `min`, `max`; `min_nan max_nan` of fp32 `min.NaN`, of fp64 expanded |
//! | other functions of floats | expanded |
//! | integers | instructions of their width, 8 bits in 32 and extended again; `idiv rem` by 0 and -1 completed by `selp` |
//! | i1 | `and.pred`, `or.pred`, `xor.pred`, `not.pred` |
//! | conversions | `cvt`; from bf16 a move; fp8e5 and fp8e4nv by `cvt` from sm_89 on; other fp8, and roundings of fp8 toward zero, expanded |
//! | `load store`, `shared_*` | `ld`, `st` of up to 16 bytes, `.global` or `.shared`; a mask predicates as many lanes as have the same, which hold 0 before |
//! | hints | `.ca .cg .cs .cv .wb .wt`; else `.L1::evict_first`, `.L1::evict_last`; volatile is `ld.volatile` |
//! | atomics | `atom`, `ld.acquire`, `st.release`: see `atomics.rs` |
//! | `for while if` | labels and branches; carried values are registers, moved as if at once |
//! | `regs` | registers |
//! | `warp_shuffle warp_vote` | `shfl.sync`, 64 bits as two and fewer than 32 as one; `vote.sync`; of all 32 threads |
//! | `barrier warp_barrier block_vote` | `bar.sync 0`, `bar.warp.sync`, `bar.red` |
//! | `async_*` | `cp.async.cg` of 16 bytes, `.ca` of fewer; a mask is the source's size; `commit_group`, `wait_group` |
//! | `load_matrix` | `ldmatrix.sync.aligned.m8n8.xN.shared.b16`, `.trans` |
//! | `mma` | `mma.sync.aligned.mMnNkK.row.col`; of fp8 from sm_89 on |
//! | `native.exp2`, `log2` | `ex2.approx`: 2^-22 relative; `lg2.approx`: 2^-22, absolute from 0.5 to 2, else relative |
//! | `native.sin`, `cos` | `sin.approx`, `cos.approx`: 2^-20.5 absolute from -2π to 2π, 2^-14.7 to 100π |
//! | `native.tanh` | `tanh.approx`: 2^-11 relative, less than fp32 holds |
//! | `native.rsqrt`, `sqrt` | `rsqrt.approx`: 2^-22.9 relative; `sqrt.approx`: 2^-23 |
//! | `native.reciprocal`, `div` | `rcp.approx`: 1 ulp; `div.full`: 2 ulp |
//! | `asm` | the text in braces, with registers for `$0`, `$1`, …: see `assembly.rs` |
//! | `thread_id block_id num_blocks machine` | `%tid.x`, `%ctaid`, `%nctaid`, `%globaltimer`, `%smid` |
//! | `print` | a call of `vprintf`: see `print.rs` |
//! | `trap`, `exit`, `return` | `trap`, `exit`, `ret` |
//! | ops of a CPU | refused |
//!
//! The version of PTX is the oldest that knows the target and what is written, so that old drivers
//! take the text.

mod arith;
mod assembly;
mod atomics;
mod bytes;
mod cast;
mod control;
mod emit;
mod lines;
mod memory;
mod native;
mod print;
mod warp;
mod writer;

use lines::Lines;
use naiad_ir::Function;
use naiad_ir::thread::{Thread, expand};
use std::fmt::{self, Write};

/// The GPU that a text is for.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    /// The chip's compute capability times 10: 80, 89, 90.
    pub capability: u32,
}

impl Target {
    /// The first version of PTX, times 10, that knows the target.
    fn least_version(self) -> u32 {
        match self.capability {
            0..=80 => 70,
            81..=86 => 71,
            87 => 74,
            88..=90 => 78,
            _ => 87,
        }
    }
}

/// A function and the block of threads that runs it.
#[derive(Copy, Clone, Debug)]
pub struct Kernel<'a> {
    pub func: &'a Function<Thread>,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block, which are given at the launch.
    pub shared_bytes: u32,
    /// Registers that a thread may have; what does not fit goes to memory.
    pub max_regs: Option<u32>,
    /// Whether the text names the kernel's lines.
    pub lines: bool,
}

/// Why there is no text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    pub kernel: String,
    /// The op that cannot be written.
    pub op: &'static str,
    /// What is missing, in a sentence.
    pub why: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no PTX for `{}`: {}: {}", self.kernel, self.op, self.why)
    }
}

impl std::error::Error for Error {}

/// The kernel as a module of its own, with an entry called [`entry_name`].
pub fn write(kernel: &Kernel<'_>, target: Target) -> Result<String, Error> {
    let name = entry_name(&kernel.func.name);
    let shared = format!("{name}_shared");
    let func = expand(kernel.func, &|func, op| native::is_native(target, func, op));
    let body = writer::write(kernel, &func, [&name, &shared], target)?;
    let version = body.emit.version;
    let mut out = String::new();
    // Writing to a String cannot fail, so the results of `write!` are dropped.
    let _ = writeln!(out, ".version {}.{}", version / 10, version % 10);
    let _ = writeln!(out, ".target sm_{}", target.capability);
    let _ = writeln!(out, ".address_size 64\n");
    out += &body.lines.as_ref().map_or(String::new(), Lines::files);
    if body.uses_shared {
        let _ = writeln!(out, ".extern .shared .align 128 .b8 {shared}[];\n");
    }
    out += &body.prints.outside(&name);
    let params = body.params.iter().enumerate();
    let params: Vec<String> = params.map(|(i, ty)| format!("\n\t.param .{ty} param_{i}")).collect();
    let _ = writeln!(out, ".visible .entry {name}({})", params.join(","));
    let _ = writeln!(out, ".reqntid {}", kernel.threads);
    if let Some(most) = kernel.max_regs {
        let _ = writeln!(out, ".maxnreg {most}");
    }
    let declared = body.prints.inside() + &body.emit.declarations();
    let _ = writeln!(out, "{{\n{declared}\n{}}}", body.emit.body);
    out += &body.lines.as_ref().map_or(String::new(), Lines::helpers);
    Ok(out)
}

/// The name of a kernel's entry: letters, digits and underscores as they are, other characters as
/// `$` and their number in hexadecimal digits, which is what PTX has room for.
pub fn entry_name(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            out.push(c);
        } else {
            let _ = write!(out, "${:x}$", u32::from(c));
        }
    }
    // A digit alone, or an underscore alone, begins no name.
    if out.starts_with(|c: char| c.is_ascii_digit()) || out == "_" {
        out.insert(0, '$');
    }
    if out.is_empty() { "$_".to_string() } else { out }
}

#[cfg(test)]
mod tests {
    use super::entry_name;

    #[test]
    fn names_of_entries() {
        let cases = [
            ("add", "add"),
            ("_add_2", "_add_2"),
            ("mod.add", "mod$2e$add"),
            ("été", "$e9$t$e9$"),
            ("2x", "$2x"),
            ("_", "$_"),
            ("", "$_"),
        ];
        for (name, entry) in cases {
            assert_eq!(entry_name(name), entry);
        }
    }
}
