//! Thread IR as PTX text.

mod arith;
mod assembly;
mod atomics;
mod cast;
mod control;
mod emit;
mod memory;
mod native;
mod warp;
mod writer;

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
    let body = writer::write(kernel, &func, &shared, target)?;
    let version = body.emit.version;
    let mut out = String::new();
    // Writing to a String cannot fail, so the results of `write!` are dropped.
    let _ = writeln!(out, ".version {}.{}", version / 10, version % 10);
    let _ = writeln!(out, ".target sm_{}", target.capability);
    let _ = writeln!(out, ".address_size 64\n");
    if body.uses_shared {
        let _ = writeln!(out, ".extern .shared .align 128 .b8 {shared}[];\n");
    }
    let params = body.params.iter().enumerate();
    let params: Vec<String> = params.map(|(i, ty)| format!("\n\t.param .{ty} param_{i}")).collect();
    let _ = writeln!(out, ".visible .entry {name}({})", params.join(","));
    let _ = writeln!(out, ".reqntid {}", kernel.threads);
    if let Some(most) = kernel.max_regs {
        let _ = writeln!(out, ".maxnreg {most}");
    }
    let _ = writeln!(out, "{{\n{}\n{}}}", body.emit.declarations(), body.emit.body);
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
