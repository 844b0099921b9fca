//! Tries the driver on this machine's device, each function of this crate once:
//! `cargo run -p naiad-cuda --example selftest`. Says what it found; fails if something is wrong, and
//! succeeds where there is no driver if it is told to expect none: `-- --absent`.

#![allow(clippy::print_stdout, reason = "a program for people")]

use naiad_cuda::{
    Code, Context, Driver, Error, Event, Function, JitOptions, Memory, Module, RawStream, Stream,
    link,
};
use std::ffi::{CStr, c_void};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// `z[i] = x[i] + y[i]` below `n`; each block reversed through dynamic shared memory; a stray write.
const PTX: &CStr = c"
.version 7.0
.target sm_80
.address_size 64

.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 z, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .b64 %a<5>;
    .reg .f32 %f<4>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r1, %r1, %r2, %r3;
    ld.param.u32 %r4, [n];
    setp.ge.u32 %p, %r1, %r4;
    @%p ret;
    mul.wide.u32 %a1, %r1, 4;
    ld.param.u64 %a2, [x];
    add.u64 %a2, %a2, %a1;
    ld.global.f32 %f1, [%a2];
    ld.param.u64 %a3, [y];
    add.u64 %a3, %a3, %a1;
    ld.global.f32 %f2, [%a3];
    add.f32 %f3, %f1, %f2;
    ld.param.u64 %a4, [z];
    add.u64 %a4, %a4, %a1;
    st.global.f32 [%a4], %f3;
    ret;
}

.extern .shared .align 16 .b8 room[];

.visible .entry reverse(.param .u64 x, .param .u32 words)
{
    .reg .b32 %r<8>;
    .reg .b64 %a<3>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r6, room;
    ld.param.u32 %r4, [words];
    ld.param.u64 %a1, [x];
    mul.wide.u32 %a2, %r1, 4;
    add.u64 %a1, %a1, %a2;
    ld.global.u32 %r2, [%a1];
    // The thread's word from the end of the block's memory on.
    sub.u32 %r3, %r4, %r1;
    mad.lo.u32 %r3, %r3, 4, %r6;
    st.shared.u32 [%r3+-4], %r2;
    bar.sync 0;
    mov.u32 %r5, %ntid.x;
    sub.u32 %r3, %r4, %r5;
    add.u32 %r3, %r3, %r1;
    mad.lo.u32 %r3, %r3, 4, %r6;
    ld.shared.u32 %r2, [%r3];
    st.global.u32 [%a1], %r2;
    ret;
}

.visible .entry stray(.param .u64 x)
{
    .reg .b64 %a<2>;
    ld.param.u64 %a1, [x];
    st.global.u64 [%a1], %a1;
    ret;
}
";

fn main() -> ExitCode {
    let absent = std::env::args().any(|a| a == "--absent");
    let driver = match Driver::get() {
        Ok(driver) if driver.devices() > 0 => driver,
        Ok(driver) => {
            println!("a driver for CUDA {} and no device", driver.version());
            return ExitCode::from(u8::from(!absent));
        }
        Err(e) => {
            println!("{e}");
            return ExitCode::from(u8::from(!absent));
        }
    };
    match test(driver) {
        Ok(()) => {
            println!("all is well");
            ExitCode::SUCCESS
        }
        Err(e) => {
            println!("failed: {e}");
            ExitCode::FAILURE
        }
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn test(driver: &'static Driver) -> Outcome {
    let context = Context::primary(driver, 0)?;
    println!("driver for CUDA {}, {} devices", driver.version(), driver.devices());
    println!("{:?}", context.facts());
    println!("free and total memory: {:?}", context.memory_info()?);

    let start = Instant::now();
    let linked = link(&context, c"selftest.ptx", PTX, &JitOptions::default())?;
    println!("PTX to {} bytes of code: {:?}", linked.cubin.len(), start.elapsed());
    let start = Instant::now();
    // SAFETY: linked for this device.
    let module = unsafe { Module::load(&context, &linked.cubin)? };
    println!("loading them: {:?}", start.elapsed());
    compiler_log(&context)?;
    add(&context, &module.function(c"add", 0)?)?;
    shared(&context, &module)?;
    costs(&context, &module.function(c"add", 0)?)?;
    // The last: nothing works behind it.
    stray(&context, &module)
}

fn compiler_log(context: &Arc<Context>) -> Outcome {
    let wrong =
        c".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry f() { no.such.op; }";
    match link(context, c"wrong.ptx", wrong, &JitOptions::default()) {
        Err(Error::Compile { code, log }) if log.contains("no.such") || log.contains("line 4") => {
            println!("wrong PTX is refused with {code}, and this log:\n{log}");
            Ok(())
        }
        other => Err(format!("wrong PTX gave {other:?}").into()),
    }
}

fn add(context: &Arc<Context>, function: &Function) -> Outcome {
    println!("add uses {:?}", function.uses());
    let n = 1_000_003u32;
    let x: Vec<u8> = (0..n).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let y: Vec<u8> = (0..n).flat_map(|i| (0.5 * i as f32).to_le_bytes()).collect();
    let mut on_device = [&x, &y, &x].map(|m| Memory::new(context, m.len()));
    for (memory, bytes) in on_device.iter_mut().zip([&x, &y]) {
        memory.as_mut().map_err(|e| e.clone())?.write(bytes)?;
    }
    let [x, y, z] = on_device;
    let (x, y, mut z) = (x?, y?, z?);
    z.fill(0xff)?;
    let addresses = [x.address(), y.address(), z.address()];
    let mut params: Vec<*const c_void> =
        addresses.iter().map(|a| std::ptr::from_ref(a).cast()).collect();
    params.push(std::ptr::from_ref(&n).cast());
    let blocks = n.div_ceil(256);
    // SAFETY: the parameters are of the kernel's types, and the memory outlives the copy back, which
    // waits for it.
    unsafe { function.launch([blocks, 1, 1], 256, 0, RawStream::DEFAULT, &params)? };
    let mut found = vec![0u8; z.bytes()];
    z.read(&mut found)?;
    for (i, word) in found.as_chunks::<4>().0.iter().enumerate() {
        let (found, wanted) = (f32::from_le_bytes(*word), 1.5 * i as f32);
        if found != wanted {
            return Err(format!("element {i} is {found}, not {wanted}").into());
        }
    }
    // SAFETY: as above; nothing is launched, since no block has so many threads.
    match unsafe { function.launch([1, 1, 1], 4096, 0, RawStream::DEFAULT, &params) } {
        Err(e) if e.code() == Some(Code::InvalidValue) && !e.is_sticky() => {}
        other => return Err(format!("a block of 4096 threads gave {other:?}").into()),
    }
    Ok(context.synchronize()?)
}

fn shared(context: &Arc<Context>, module: &Arc<Module>) -> Outcome {
    let bytes = context.facts().shared_per_block_optin;
    let function = module.function(c"reverse", bytes)?;
    println!(
        "reverse with {bytes} bytes of shared memory: {} blocks on a multiprocessor",
        function.blocks_per_multiprocessor(256, bytes)?
    );
    let words: Vec<u8> = (0..256u32).flat_map(u32::to_le_bytes).collect();
    let mut memory = Memory::new(context, words.len())?;
    memory.write(&words)?;
    let (address, count) = (memory.address(), bytes / 4);
    let params = [std::ptr::from_ref(&address).cast(), std::ptr::from_ref(&count).cast()];
    let stream = Stream::new(context)?;
    // SAFETY: the parameters are of the kernel's types, and the stream is waited for.
    unsafe { function.launch([1, 1, 1], 256, bytes, stream.raw(), &params)? };
    stream.synchronize()?;
    let mut found = vec![0u8; words.len()];
    memory.read(&mut found)?;
    let reversed: Vec<u8> = (0..256u32).rev().flat_map(u32::to_le_bytes).collect();
    match found == reversed {
        true => Ok(()),
        false => Err("what went through shared memory came out otherwise".into()),
    }
}

/// What a launch costs the host, and how long an empty one takes between events.
fn costs(context: &Arc<Context>, function: &Function) -> Outcome {
    const LAUNCHES: u32 = 1000;
    let (address, n) = (0u64, 0u32);
    let one: *const c_void = std::ptr::from_ref(&address).cast();
    let params = [one, one, one, std::ptr::from_ref(&n).cast()];
    let (begin, end) = (Event::new(context)?, Event::new(context)?);
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        context.synchronize()?;
        begin.record(RawStream::DEFAULT)?;
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            // SAFETY: the kernel looks at no memory where `n` is 0.
            unsafe { function.launch([1, 1, 1], 128, 0, RawStream::DEFAULT, &params)? };
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(LAUNCHES));
        end.record(RawStream::DEFAULT)?;
        end.synchronize()?;
    }
    println!("a launch costs the host {best:.2} us (best of 5 rounds of {})", LAUNCHES);
    let apiece = f64::from(end.milliseconds_since(&begin)?) * 1e3 / f64::from(LAUNCHES);
    println!("and the device {apiece:.2} us, one behind the other");
    Ok(())
}

fn stray(context: &Arc<Context>, module: &Arc<Module>) -> Outcome {
    let function = module.function(c"stray", 0)?;
    let address = 8u64;
    let params = [std::ptr::from_ref(&address).cast()];
    // SAFETY: the device finds that nothing is there, and ends the kernel.
    unsafe { function.launch([1, 1, 1], 1, 0, RawStream::DEFAULT, &params)? };
    match context.synchronize() {
        Err(e) if e.is_sticky() => println!("a stray write: {e}"),
        other => return Err(format!("a stray write gave {other:?}").into()),
    }
    match context.synchronize() {
        Err(e) if e.is_sticky() => Ok(()),
        other => Err(format!("after a stray write the device gave {other:?}").into()),
    }
}
