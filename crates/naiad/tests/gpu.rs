//! Code for GPUs as far as it goes without one.

#![cfg(feature = "cuda")]

use naiad::{Device, Gpu, Id, LaunchConfig, Module};

const SOURCE: &str = "
import triton
import triton.language as tl

@triton.jit
def add(x, y, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i * stride, tl.load(x + i, mask=i < n) + 1, mask=i < n)
";

fn ptx(signature: &str, capability: u32) -> naiad::Result<String> {
    let kernel = Module::from_source("gpu.py", SOURCE)?.kernel("add")?;
    Ok(kernel.ptx(signature, &LaunchConfig::default(), capability)?.text)
}

#[test]
fn ptx_needs_no_gpu() {
    let text = ptx("x=*fp32,y=*fp32,n=i32:16,stride=1,BLOCK=1024", 90).unwrap();
    assert!(text.contains(".target sm_90") && text.contains(".visible .entry add("), "{text}");
    assert!(text.contains("ld.global.v4"), "{text}");
    let text = ptx("x=*fp32,y=*fp32,n=i32:16,stride=1,BLOCK=1024", 80).unwrap();
    assert!(text.contains(".target sm_80"), "{text}");
}

/// A helper's ops are shown in the helper, with the call that led there.
#[test]
fn ptx_names_the_kernels_lines() {
    let source = "
import triton
import triton.language as tl

@triton.jit
def twice(x):
    return x + x

@triton.jit
def kernel(x):
    v = tl.load(x)
    tl.store(x, twice(v))
";
    let kernel = Module::from_source("lines.py", source).unwrap().kernel("kernel").unwrap();
    let text = kernel.ptx("x=*fp32", &LaunchConfig::default(), 90).unwrap().text;
    assert!(text.contains(".file 1 \"lines.py\"\n"), "{text}");
    let at = |loc: &str| {
        let (_, rest) = text
            .split_once(&format!("\t.loc 1 {loc}\n"))
            .unwrap_or_else(|| panic!("{loc}\n{text}"));
        rest.lines().next().unwrap_or("").trim().to_string()
    };
    assert!(at("11 9").starts_with("ld.global"), "{text}");
    let helper = at("7 12, function_name $helper0, inlined_at 1 12 17");
    assert!(helper.starts_with("add.rn.f32"), "{text}");
    assert!(!at("12 5").is_empty(), "{text}");
}

#[test]
fn types_say_by_what_arguments_are_divisible() {
    let text = ptx("x=*fp32:4,y=*fp32:4,n=i32:16,stride=1,BLOCK=1024", 90).unwrap();
    assert!(!text.contains(".v4") && !text.contains(".v2"), "{text}");
    let error = ptx("x=*fp32,y=*fp32,n=nothing:16,stride=1,BLOCK=1024", 90).unwrap_err();
    assert!(error.to_string().contains("`nothing` is no type"), "{error}");
}

#[test]
fn a_device_without_a_driver_is_an_error() {
    if Gpu::count() > 0 {
        return;
    }
    // SAFETY: nothing is launched.
    let error = unsafe { Device::cuda(0) }.unwrap_err();
    assert_eq!(error.id(), Id::Gpu);
    assert!(error.to_string().contains("GPU 0 cannot be used: there is no CUDA driver"), "{error}");
    // SAFETY: as above.
    let error = unsafe { Device::cuda(1000) }.unwrap_err();
    assert!(error.to_string().contains("there is no GPU 1000"), "{error}");
}
