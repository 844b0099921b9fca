//! Thread IR to machine code of this CPU, by way of Cranelift.
//!
//! ```text
//!   Function<Thread> --expand, cse, licm, dce--> writer --CLIF--> Cranelift --bytes--> code: Machine
//!
//!   writer.rs    the walk over the ops         lanes.rs    values as registers of 128 bits
//!   control.rs   loops, branches, guards       emit.rs     instructions on such values, shuffles
//!   memory.rs    accesses                      masks.rs    masks, choices
//!   frame.rs     places of scratch buffers     arith.rs    functions of numbers
//!   code.rs      memory for code               cast.rs     conversions
//!   aside.rs     calls that keep all registers wide.rs      calls of loops that crate::wide writes
//! ```
//!
//! A vector of any number of lanes is written as parts of at most 128 bits, the widest that Cranelift
//! takes; what a machine lacks is made of what it has, one lane at a time if nothing else is left.
//! Narrow vectors lie in the low lanes of one register, and what the other lanes hold is anything.
//! Results have the bits that [`naiad_ir::scalar`] defines, NaN payloads apart. Ops are emitted in
//! their order, all parts of one before the next: parts are independent, and a processor has other
//! work while it waits for one. Whoever makes Thread IR thereby chooses how much is alive at a time.
//!
//! The code calls nothing but the functions of its [`RuntimeTable`] and, on machines without fused
//! multiply-add or rounding instructions, a few functions of this crate.

mod arith;
mod aside;
mod cast;
mod code;
mod control;
mod emit;
mod frame;
mod lanes;
mod masks;
mod memory;
mod target;
#[cfg(test)]
pub(crate) mod tests;
mod wide;
mod writer;

use crate::native::expand;
use crate::wide::Level;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_frontend::FunctionBuilderContext;
use naiad_diag::{Diagnostic, Id};
use naiad_ir::Function;
use naiad_ir::thread::{RuntimeFn, Thread};
use target::Target;

/// A report of a fault of ours: the IR asks for what no writer can do, or Cranelift refused.
pub type Error = Box<Diagnostic>;

/// The addresses of the functions that compiled code may call.
#[derive(Clone, Debug)]
pub struct RuntimeTable([usize; RuntimeFn::ALL.len()]);

impl RuntimeTable {
    /// # Safety
    /// Each address must be that of a function of the C calling convention with the parameters and
    /// results of [`RuntimeFn::signature`] (`i64` and addresses as 64-bit integers, a boolean as a byte
    /// that is 0 or 1), which keeps its promises for as long as code that was written with this
    /// table is run.
    pub unsafe fn new(address: impl Fn(RuntimeFn) -> usize) -> RuntimeTable {
        let mut table = RuntimeTable([0; RuntimeFn::ALL.len()]);
        for (entry, &f) in table.0.iter_mut().zip(RuntimeFn::ALL) {
            *entry = address(f);
        }
        table
    }

    fn address(&self, f: RuntimeFn) -> usize {
        self.0[f as usize]
    }
}

/// What a guard that failed has to say.
#[repr(C)]
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct Report {
    pub site: u32,
    /// How many of the values are given.
    pub count: u32,
    pub values: [i64; 4],
}

/// A function as machine code. Its memory is freed with it.
pub struct Machine {
    code: code::Code,
    frame_bytes: usize,
    stack_bytes: usize,
    /// What the code loads: it knows the places in here, and is told where this is.
    constants: Box<[Aligned]>,
}

#[repr(align(16))]
struct Aligned(#[allow(dead_code, reason = "read by the code")] u128);

type Entry = unsafe extern "C" fn(*const u64, *mut u8, *mut Report, *const Aligned) -> u8;

impl Machine {
    /// The size of the scratch memory that a run needs.
    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// Bytes that the function itself needs of the stack.
    pub fn stack_bytes(&self) -> usize {
        self.stack_bytes
    }

    /// Bytes of code and of its constants.
    pub fn code_bytes(&self) -> usize {
        self.code.bytes().len()
    }

    /// The code, to be disassembled.
    pub fn code(&self) -> &[u8] {
        self.code.bytes()
    }

    /// Runs the function. Whether it came to its end; if not, a guard failed, and `report` says which.
    ///
    /// # Safety
    /// `slots[i]` holds parameter `i` in its low bits, for all parameters; `frame` is aligned to 64
    /// bytes and has room for [`Machine::frame_bytes`]; `report` may be written; and the memory that
    /// the function then reads and writes may be read and written.
    pub unsafe fn run(&self, slots: *const u64, frame: *mut u8, report: *mut Report) -> bool {
        target::clear_upper_halves();
        // SAFETY: the code was written with this signature.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(self.code.bytes().as_ptr()) };
        // SAFETY: the caller's promise, and the table's.
        unsafe { entry(slots, frame, report, self.constants.as_ptr()) != 0 }
    }
}

/// Writes the function for this machine.
pub fn write(func: &Function<Thread>, table: &RuntimeTable) -> Result<Machine, Error> {
    write_for(Target::host()?, func, table, [None; 2])
}

/// How a function is written.
#[derive(Copy, Clone, Debug)]
pub struct Options {
    /// Loops over such vectors beside Cranelift's code, or none.
    pub wide: Option<Level>,
    /// The parameter that is not 0 where the function writes more than the cache holds: stores that
    /// say so then go past it. Whoever runs the function orders them before what it does next, by a
    /// store fence.
    pub past_cache: Option<usize>,
    /// The parameter that is not 0 where the function reads memory beyond the cache: loops that go
    /// through scratch memory too then ask ahead for it.
    pub far: Option<usize>,
}

/// Writes the function for this machine; [`write`] takes the widest vectors that the machine has.
pub fn write_with(
    options: Options,
    func: &Function<Thread>,
    table: &RuntimeTable,
) -> Result<Machine, Error> {
    let flags = [options.past_cache, options.far];
    if options.wide == Level::host() {
        return write_for(Target::host()?, func, table, flags);
    }
    write_for(&Target::wide(options.wide)?, func, table, flags)
}

/// The function in Cranelift's IR as it is handed over, before any optimization.
pub fn text(func: &Function<Thread>, table: &RuntimeTable) -> Result<String, Error> {
    let mut context = Context::new();
    let func = prepare(func);
    let (out, none) = (&mut context.func, [None; 2]);
    writer::write(Target::host()?, &func, table, none, out, &mut Default::default())?;
    Ok(context.func.display().to_string())
}

fn write_for(
    target: &Target,
    func: &Function<Thread>,
    table: &RuntimeTable,
    flags: [Option<usize>; 2],
) -> Result<Machine, Error> {
    let func = prepare(func);
    let mut context = Context::new();
    let mut builder = FunctionBuilderContext::new();
    let needs = writer::write(target, &func, table, flags, &mut context.func, &mut builder)?;
    context
        .compile(&*target.isa, &mut ControlPlane::default())
        .map_err(|e| fault(&func.name, format!("Cranelift refused it: {:?}", e.inner)))?;
    let code = code::Code::new(&context, &needs.beside).map_err(|why| fault(&func.name, why))?;
    let constants = needs.constants.into_iter().map(Aligned).collect();
    let layout = context.compiled_code().and_then(|compiled| compiled.buffer.frame_layout());
    let stack_bytes = layout.map_or(0, |layout| layout.frame_to_fp_offset as usize);
    Ok(Machine { code, frame_bytes: needs.frame_bytes, stack_bytes, constants })
}

/// Cranelift is asked for no optimization, so that ops keep their order. What a loop need not
/// repeat, and what is computed twice, is seen to here.
fn prepare(func: &Function<Thread>) -> Function<Thread> {
    let mut func = expand(func).into_owned();
    naiad_opt::cse(&mut func);
    naiad_opt::licm(&mut func);
    naiad_opt::dce(&mut func);
    func
}

fn fault(name: &str, why: impl std::fmt::Display) -> Error {
    Box::new(Diagnostic::new(Id::Internal, format!("no machine code for `{name}`: {why}")))
}
