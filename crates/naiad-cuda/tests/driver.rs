//! The crate against a library that only looks like the driver's: see `examples/fake_driver.rs`. Each
//! test is a process, since a process has one driver.

use naiad_cuda::{Code, Context, Driver, Error, JitOptions, Memory, Module, RawStream, link};
use std::ffi::{CStr, c_void};
use std::process::Command;
use std::sync::Arc;

const PTX: &CStr = c"
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u8 flag, .param .u32 n) { ret; }
";

/// Runs a test of this file by its name in a process of its own, where the fake driver is found.
fn with_fake(test: &str, variables: &[(&str, &str)]) {
    let me = std::env::current_exe().unwrap();
    // target/debug/deps/driver-..., beside target/debug/examples.
    let examples = me.parent().unwrap().parent().unwrap().join("examples");
    let mut command = Command::new(&me);
    command.args(["--exact", test, "--ignored", "--nocapture"]).env("LD_LIBRARY_PATH", examples);
    let out = command.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && text.contains("1 passed"), "{text}");
}

fn context() -> Arc<Context> {
    Context::primary(Driver::get().unwrap(), 0).unwrap()
}

fn load(context: &Arc<Context>) -> Arc<Module> {
    let linked = link(context, c"k.ptx", PTX, &JitOptions::default()).unwrap();
    // SAFETY: linked just now.
    unsafe { Module::load(context, &linked.cubin).unwrap() }
}

#[test]
fn no_driver_is_an_error_with_its_cause() {
    match Driver::get() {
        Err(e @ Error::NoDriver { .. }) => {
            let text = e.to_string();
            assert!(text.starts_with("there is no CUDA driver: "), "{text}");
            assert!(text.contains("libcuda.so.1"), "{text}");
            assert!(!e.is_sticky());
        }
        // A machine that has one is tested by the example `selftest`.
        other => assert!(other.is_ok()),
    }
}

#[test]
fn all_of_it() {
    with_fake("everything", &[]);
}

#[test]
#[ignore = "run by `all_of_it`"]
fn everything() {
    let context = context();
    let facts = context.facts();
    assert_eq!((facts.capability(), facts.multiprocessors), (90, 132));
    assert_eq!(facts.name, "fake H200");
    let missing = Context::primary(Driver::get().unwrap(), 1).err().unwrap();
    assert_eq!(missing.code(), Some(Code::InvalidDevice));

    let function = load(&context).function(c"k", 100 << 10).unwrap();
    assert_eq!(function.uses().registers, 32);
    let absent = load(&context).function(c"l", 0).err().unwrap();
    assert_eq!(absent.code(), Some(Code::NotFound));

    let mut memory = Memory::new(&context, 8).unwrap();
    memory.write(&[1, 2, 3]).unwrap();
    let mut back = [0; 3];
    memory.read(&mut back).unwrap();
    assert_eq!(back, [1, 2, 3]);
    memory.fill(7).unwrap();
    memory.read(&mut back).unwrap();
    assert_eq!(back, [7; 3]);
    let mut empty = Memory::new(&context, 0).unwrap();
    empty.write(&[]).and_then(|()| empty.fill(1)).unwrap();

    let wrong = link(&context, c"w.ptx", c"\nno.such.op;", &JitOptions::default()).unwrap_err();
    let text = wrong.to_string();
    assert!(text.contains("CUDA_ERROR_INVALID_PTX (218)"), "{text}");
    assert!(text.contains("line 2: no.such"), "{text}");
    // SAFETY: ends in a zero byte.
    let foreign = unsafe { Module::load(&context, b"nothing\0") }.err().unwrap();
    assert_eq!(foreign.code(), Some(Code::InvalidImage));
}

#[test]
fn launches_arrive() {
    let log = std::env::temp_dir().join(format!("naiad-cuda-{}.log", std::process::id()));
    let _ = std::fs::remove_file(&log);
    with_fake("launch", &[("FAKE_CUDA_LOG", log.to_str().unwrap())]);
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(&log).unwrap();
    assert_eq!(
        text,
        "k grid=3,2,1 threads=128 shared=64 stream=0 params=1311768467463790320,1,4294967295\n"
    );
}

#[test]
#[ignore = "run by `launches_arrive`"]
fn launch() {
    let function = load(&context()).function(c"k", 0).unwrap();
    let values = [0x1234_5678_9abc_def0u64, 1, 0xffff_ffff];
    let params: Vec<*const c_void> = values.iter().map(|v| std::ptr::from_ref(v).cast()).collect();
    // SAFETY: three parameters of at most eight bytes, and no kernel runs.
    unsafe { function.launch([3, 2, 1], 128, 64, RawStream::DEFAULT, &params).unwrap() };
}

#[test]
fn a_kernel_that_breaks_the_context_is_told_from_a_call_that_fails() {
    with_fake("sticky", &[("FAKE_CUDA_FAIL", "cuLaunchKernel=700")]);
    with_fake("passing", &[("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2")]);
}

#[test]
#[ignore = "run by another test"]
fn sticky() {
    let context = context();
    let function = load(&context).function(c"k", 0).unwrap();
    let params = [std::ptr::from_ref(&0u64).cast::<c_void>(); 3];
    // SAFETY: as in `launch`.
    unsafe { function.launch([1, 1, 1], 32, 0, RawStream::DEFAULT, &params).unwrap() };
    for _ in 0..2 {
        let e = context.synchronize().unwrap_err();
        assert_eq!((e.code(), e.is_sticky()), (Some(Code::IllegalAddress), true));
    }
}

#[test]
#[ignore = "run by another test"]
fn passing() {
    let context = context();
    let e = Memory::new(&context, 1 << 40).err().unwrap();
    assert_eq!((e.code(), e.is_sticky()), (Some(Code::OutOfMemory), false));
    assert!(
        e.to_string()
            .starts_with("allocating memory of a device failed with CUDA_ERROR_OUT_OF_MEMORY (2)"),
        "{e}"
    );
    context.synchronize().unwrap();
}
