//! The lines that a kernel's text names for profilers: of helpers with the calls that led there.

#[path = "../../naiad-ptx/tests/common/assembler.rs"]
mod assembler;
#[path = "../../naiad-front/tests/common/mod.rs"]
#[allow(dead_code, reason = "what is compiled is written here")]
mod sources;

use assembler::Assembler;
use naiad_diag::Source;
use naiad_front::file::FileHost;
use naiad_opt::ranges::Inputs;
use naiad_ptx::{Kernel, Target};

const KERNEL: &str = r#"import triton
import triton.language as tl

@triton.jit
def inner(x):
    return tl.exp(x)

@triton.jit
def outer(x):
    y = inner(x)
    return y * x

@triton.jit
def power(x, n: tl.constexpr):
    if n == 0:
        return x
    return power(x, n - 1) * x

@triton.jit
def plain(x_ptr):
    i = tl.arange(0, 32)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + 1.0)

@triton.jit
def calls(x_ptr):
    i = tl.arange(0, 32)
    x = tl.load(x_ptr + i)
    x = outer(x)
    x = outer(x) - inner(x)
    tl.store(x_ptr + i, power(x, 2))
"#;

fn ptx(kernel: &str, capability: u32) -> String {
    let host = FileHost::new(Source::new("kernels.py", KERNEL)).unwrap();
    let function = host.kernel(kernel).unwrap();
    let specs = sources::specs(&host, function, "x_ptr: *fp32").unwrap();
    let compiled = naiad_front::compile(&host, function, &specs, &Default::default()).unwrap();
    let options = naiad_gpu::Options {
        capability,
        num_warps: 1,
        num_stages: 1,
        precise: false,
        guarded: false,
        few_programs: false,
        prints: None,
    };
    let code = naiad_gpu::compile(&compiled.func, &Inputs::default(), &options).unwrap();
    let (threads, shared_bytes) = (code.threads, code.shared_bytes);
    let kernel = Kernel { func: &code.func, threads, shared_bytes, max_regs: None, lines: true };
    naiad_ptx::write(&kernel, Target { capability }).unwrap()
}

/// What stands of lines in a text up to its first store, each with the instruction behind it, and the names
/// of helpers.
fn lines(ptx: &str) -> String {
    let mut out = String::new();
    let mut of_line = false;
    let (code, names) = ptx.split_once(".section .debug_str").unwrap_or((ptx, ""));
    for line in code.lines().map(str::trim) {
        let is_line = line.starts_with(".loc");
        let opcode = line.split(' ').next().unwrap_or("");
        if is_line || line.starts_with(".file") {
            out += &format!("{line}\n");
        } else if of_line {
            out += &format!("    {opcode}\n");
        }
        of_line = is_line;
        if opcode.starts_with("st.global") {
            break;
        }
    }
    for line in names.lines().map(str::trim) {
        if let Some(bytes) = line.strip_prefix(".b8 ") {
            let bytes: Vec<u8> = bytes.split(", ").map(|b| b.parse().unwrap()).collect();
            out += &format!("    {:?}\n", String::from_utf8(bytes).unwrap());
        } else if line.starts_with('$') {
            out += &format!("{line}\n");
        }
    }
    out
}

#[test]
fn helpers_name_the_calls_that_led_there() {
    let text = ptx("calls", 80);
    let want = r#".file 1 "kernels.py"
.loc 1 30 5
    @!%pr1
.loc 1 27 17
    cvt.s64.s32
.loc 1 27 9
    ld.global.b32
.loc 1 28 9
.loc 1 10 9, function_name $helper0, inlined_at 1 28 9
.loc 1 6 12, function_name $helper1, inlined_at 1 10 9
    mul.rn.f32
.loc 1 28 9
.loc 1 11 12, function_name $helper0, inlined_at 1 28 9
    mul.rn.f32
.loc 1 29 9
.loc 1 10 9, function_name $helper0, inlined_at 1 29 9
.loc 1 6 12, function_name $helper1, inlined_at 1 10 9
    mul.rn.f32
.loc 1 29 9
.loc 1 11 12, function_name $helper0, inlined_at 1 29 9
    mul.rn.f32
.loc 1 29 9
    sub.rn.f32
.loc 1 30 25
.loc 1 17 12, function_name $helper2, inlined_at 1 30 25
.loc 1 17 12, function_name $helper2, inlined_at 1 17 12
    mul.rn.f32
.loc 1 30 25
.loc 1 17 12, function_name $helper2, inlined_at 1 30 25
    mul.rn.f32
.loc 1 30 5
    st.global.b32
$helper0:
    "outer\0"
$helper1:
    "inner\0"
$helper2:
    "power\0"
"#;
    assert_eq!(lines(&text), want);
    assert!(text.starts_with(".version 7.2\n"), "{text}");
}

/// Without helpers nothing is asked of newer drivers.
#[test]
fn kernels_without_helpers_name_lines_alone() {
    let text = ptx("plain", 80);
    assert!(text.starts_with(".version 7.0\n") && !text.contains("inlined_at"), "{text}");
}

#[test]
fn ptxas_keeps_the_lines() {
    let Some(assembler) = Assembler::find() else { return };
    for kernel in ["plain", "calls"] {
        for capability in [80, 90] {
            let text = ptx(kernel, capability);
            assembler.accepts(&text, capability).unwrap_or_else(|why| panic!("{why}\n{text}"));
        }
    }
}
