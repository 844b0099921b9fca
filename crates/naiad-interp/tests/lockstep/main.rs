//! The lockstep executor on Thread IR written by hand: what ops do, what is found wrong, what is counted.

mod alike;
mod counts;
mod faults;
mod flow;
mod memory;
mod warps;

use naiad_diag::Source;
use naiad_interp::lockstep::{BlockShape, Code, Fault, FaultKind, Options, Stats};
use naiad_interp::{Arg, TensorArg};
use naiad_ir::op::OpInfo;
use naiad_ir::thread::Thread;
use naiad_ir::thread::uniform::Uniform;
use naiad_ir::{Function, text, verify};
use std::sync::Arc;

/// A kernel with parameters `x`, `y` (addresses) and `n` (a number), `%x`, `%y` and `%n`, and with the
/// number of the thread in `%t`, its bytes among 4 bytes a thread in `%t4`, and the base of shared memory
/// in `%base`.
fn kernel(body: &str) -> Arc<Function<Thread>> {
    let text = format!(
        "thread @k(%x x: addr, %y y: addr, %n n: i32) {{
           %t = thread_id : i32
           %four = const value=4:i32 : i32
           %t4 = binary.mul %t, %four : i32
           %t4l = cast %t4 to=i64 rounding=rtne : i64
           %xt = addr_add %x, %t4l : addr
           %yt = addr_add %y, %t4l : addr
           %base = shared_base : i32
           %st = binary.add %base, %t4 : i32
           {body}
           return
         }}"
    );
    let func = text::parse(&Source::new("<test>", text)).unwrap_or_else(|e| panic!("{e:#?}"));
    verify(&func).unwrap_or_else(|e| panic!("{e:#?}"));
    Arc::new(func)
}

fn tensor<T>(elements: &mut [T]) -> Arg {
    let address = elements.as_mut_ptr() as usize;
    let storage = address..address + size_of_val(elements);
    Arg::Tensor(TensorArg { address, storage, view: None, writable: true })
}

/// A block of `threads` threads with 4096 bytes of shared memory.
fn run_with<T, U>(
    body: &str,
    threads: u32,
    blocks: [u32; 3],
    (x, y, n): (&mut [T], &mut [U], i32),
    options: &Options<'_>,
) -> (Arc<Function<Thread>>, Result<Stats, Box<Fault>>) {
    let func = kernel(body);
    let shape = BlockShape { threads, shared_bytes: 4096 };
    let code = Code::new(func.clone(), shape).unwrap_or_else(|e| panic!("{e:#?}"));
    let args = [tensor(x), tensor(y), Arg::Scalar(n as u32 as u64)];
    let options = &Options { claims: Some(&Uniform::new(&func)), ..*options };
    // SAFETY: the slices are there until the run has ended.
    let ended = unsafe { code.run(blocks, &args, options) };
    (func, ended)
}

/// Runs one block that must end well.
fn run<T, U>(body: &str, threads: u32, x: &mut [T], y: &mut [U], n: i32) -> Stats {
    let options = Options { count: true, ..Options::default() };
    match run_with(body, threads, [1, 1, 1], (x, y, n), &options) {
        (_, Ok(stats)) => stats,
        (func, Err(fault)) => panic!("{:#?}", fault.diagnostic(&func)),
    }
}

/// Runs one block of `threads` threads that must end with a fault, with 256 numbers in `x` and in `y`;
/// gives its kind, the ops and the message.
fn fault(body: &str, threads: u32) -> (FaultKind, String, Option<String>, String) {
    let (mut x, mut y) = ([1i32; 256], [0i32; 256]);
    let given = (&mut x[..], &mut y[..], 7);
    let (func, ended) = run_with(body, threads, [1, 1, 1], given, &Options::default());
    let fault = ended.expect_err("a fault");
    let name = |inst| func.op(inst).name().to_string();
    let message = fault.diagnostic(&func).message;
    (fault.kind, name(fault.inst), fault.other.map(name), message)
}
