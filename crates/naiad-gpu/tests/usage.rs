//! What becomes of kernels as they are measured on a GPU: `tests/ptx/kernels.txt`.
//!
//! A line for each kernel, configuration and chip: what `ptxas` says of registers and of what there should
//! be none of, shared memory, and how often instructions that matter stand in the text. So a change shows
//! what it costs. `NAIAD_BLESS=1` rewrites the file; where there is no `ptxas`, nothing is compared.
//! `cargo run -p xtask -- ptx` runs this too, and fails where there is no assembler.

#[path = "../../naiad-ptx/tests/common/assembler.rs"]
mod assembler;
#[path = "../../naiad-front/tests/common/mod.rs"]
#[allow(dead_code, reason = "what is compiled is listed here")]
mod sources;

use assembler::Assembler;
use naiad_diag::Source;
use naiad_front::file::FileHost;
use naiad_front::{Options, compile};
use naiad_ir::Function;
use naiad_ir::tile::Tile;
use naiad_opt::interval::Interval;
use naiad_opt::ranges::{Inputs, Param};
use naiad_ptx::{Kernel, Target};
use std::path::{Path, PathBuf};

/// A kernel as `bench/gpu.py` launches it.
struct Case {
    title: String,
    /// In the repository.
    file: &'static str,
    kernel: &'static str,
    signature: String,
    /// Values of integers; pointers are multiples of 16.
    numbers: String,
    warps: u32,
    stages: u32,
}

/// What most kernels have: two strides of a row each, of neighbours that lie together.
const X: &str = "x_row_stride: i32, x_col_stride: i32";
const BOTH: &str = "x_row_stride: i32, x_col_stride: i32, out_row_stride: i32, out_col_stride: i32";

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |title: &str, file, kernel, signature: String, numbers: String| {
        let title = title.to_string();
        cases.push(Case { title, file, kernel, signature, numbers, warps: 4, stages: 3 });
    };
    let rows = |n: u32| format!("n_cols={n}, x_row_stride={n}, x_col_stride=1");
    let both = |n: u32| format!("{}, out_row_stride={n}, out_col_stride=1", rows(n));
    for (title, kernel, block, width, n) in [
        ("bias add, row of 4096", "bias_add_kernel", 4096, 4096, 4096),
        ("bias add, 1024 at once", "bias_add_wide_kernel", 1024, 4096, 4096),
        ("bias add, row of 17, stride 32", "bias_add_kernel", 32, 32, 17),
    ] {
        add(
            title,
            "examples/bias_add.py",
            kernel,
            format!(
                "x_ptr: *fp32, bias_ptr: *fp32, out_ptr: *fp32, n_cols: i32, bias_stride: i32, {BOTH}, BLOCK={block}"
            ),
            format!("{}, n_cols={n}, bias_stride=1", both(width)),
        );
    }
    add(
        "GELU",
        "examples/gelu.py",
        "gelu_kernel",
        "x_ptr: *fp32, out_ptr: *fp32, n: i32, x_stride: i32, out_stride: i32, BLOCK=1024".into(),
        format!("n={}, x_stride=1, out_stride=1", 1 << 28),
    );
    for (n, block) in [(4096, 4096), (1000, 1024)] {
        add(
            &format!("mean and variance, row of {n}"),
            "examples/row_stats.py",
            "row_stats_kernel",
            format!(
                "x_ptr: *fp32, mean_ptr: *fp32, var_ptr: *fp32, n_cols: i32, {X}, BLOCK={block}"
            ),
            rows(n),
        );
        add(
            &format!("softmax, row of {n}"),
            "examples/softmax.py",
            "softmax_kernel",
            format!("x_ptr: *fp32, out_ptr: *fp32, n_cols: i32, {BOTH}, BLOCK={block}"),
            both(n),
        );
    }
    add(
        "row sum, 2048 at once",
        "examples/row_sum.py",
        "row_sum_kernel",
        format!("x_ptr: *fp32, out_ptr: *fp32, n_cols: i32, {X}, BLOCK=2048"),
        rows(65536),
    );
    for (rows, cols) in [(16384, 16384), (8191, 16385)] {
        for (title, elem, tile) in [
            ("tile 32", "fp32", [32, 32]),
            ("tile 64", "fp32", [64, 64]),
            ("tile 128x32", "fp32", [128, 32]),
            ("fp16, tile 32", "fp16", [32, 32]),
        ] {
            let [rows_at_once, cols_at_once] = tile;
            add(
                &format!("transpose {rows}x{cols}, {title}"),
                "examples/transpose.py",
                "transpose_kernel",
                format!(
                    "x_ptr: *{elem}, out_ptr: *{elem}, n_rows: i32, n_cols: i32, {BOTH}, BLOCK_ROWS={rows_at_once}, BLOCK_COLS={cols_at_once}"
                ),
                format!(
                    "n_rows={rows}, n_cols={cols}, x_row_stride={cols}, x_col_stride=1, out_row_stride={rows}, out_col_stride=1"
                ),
            );
        }
    }
    for (n, warps) in [(1024, 4), (4096, 8), (16384, 8)] {
        cases.push(Case {
            title: format!("layer norm fp16, row of {n}"),
            file: "bench/gpu_kernels.py",
            kernel: "layer_norm_kernel",
            signature: format!("x_ptr: *fp16, out_ptr: *fp16, weight_ptr: *fp16, bias_ptr: *fp16, row_stride: i32, n_cols: i32, eps: fp32, BLOCK={n}"),
            numbers: format!("row_stride={n}, n_cols={n}"),
            warps,
            stages: 3,
        });
    }
    for (n, block, warps) in [(1024, 1024, 4), (4096, 4096, 8), (16384, 16384, 8), (16384, 4096, 8)]
    {
        cases.push(Case {
            title: format!("layer norm in passes fp16, row of {n}, {block} at once"),
            file: "bench/gpu_kernels.py",
            kernel: "layer_norm_passes_kernel",
            signature: format!("x_ptr: *fp16, out_ptr: *fp16, weight_ptr: *fp16, bias_ptr: *fp16, mean_ptr: *fp32, rstd_ptr: *fp32, row_stride: i32, n_cols: i32, eps: fp32, BLOCK={block}"),
            numbers: format!("row_stride={n}, n_cols={n}"),
            warps,
            stages: 3,
        });
    }
    for (dtype, gelu) in [("fp16", "False"), ("fp16", "True"), ("bf16", "False"), ("tf32", "False")]
    {
        for ([m, n, k], warps, stages) in [
            ([128, 256, 64], 8, 3),
            ([128, 128, 64], 8, 3),
            ([128, 128, 64], 4, 4),
            ([128, 64, 64], 4, 4),
            ([64, 128, 32], 4, 4),
        ] {
            // Of four lines for each configuration one would do, where nothing else is different.
            if (dtype == "bf16" || gelu == "True") && (m, n, warps) != (128, 128, 8) {
                continue;
            }
            let (elem, k) = if dtype == "tf32" { ("fp32", k / 2) } else { (dtype, k) };
            let fused = if gelu == "True" { " + GELU" } else { "" };
            cases.push(Case {
                title: format!("matmul{fused} {dtype}, {m}x{n}x{k}, {warps} warps, {stages} stages"),
                file: "bench/gpu_kernels.py",
                kernel: "matmul_kernel",
                signature: format!("a_ptr: *{elem}, b_ptr: *{elem}, c_ptr: *{elem}, M: i32, N: i32, K: i32, a_row_stride: i32, a_col_stride: i32, b_row_stride: i32, b_col_stride: i32, c_row_stride: i32, c_col_stride: i32, PRECISION=\"tf32\", GELU={gelu}, BLOCK_M={m}, BLOCK_N={n}, BLOCK_K={k}, GROUP_M=8"),
                numbers: "M=4096, N=4096, K=4096, a_row_stride=4096, a_col_stride=1, b_row_stride=4096, b_col_stride=1, c_row_stride=4096, c_col_stride=1".into(),
                warps,
                stages,
            });
        }
    }
    cases
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Case {
    fn func(&self) -> Function<Tile> {
        let text = std::fs::read_to_string(root().join(self.file)).expect("a file of kernels");
        let wrong = |what: &str| -> ! { panic!("{}: {what}", self.title) };
        let host = FileHost::new(Source::new(self.file, text));
        let host = host.unwrap_or_else(|d| wrong(&d.message));
        let kernel = host.kernel(self.kernel).unwrap_or_else(|| wrong("there is no such kernel"));
        let made = sources::specs(&host, kernel, &self.signature)
            .and_then(|specs| compile(&host, kernel, &specs, &Options::default()));
        Function::clone(&made.unwrap_or_else(|d| wrong(&d.message)).func)
    }

    fn inputs(&self, func: &Function<Tile>) -> Inputs {
        let numbers: Vec<(&str, u64)> = self
            .numbers
            .split(',')
            .filter_map(|pair| pair.trim().split_once('='))
            .map(|(name, value)| (name, value.parse().expect("a number")))
            .collect();
        // The last one counts, so that a case may say otherwise.
        let known = |name: &str| numbers.iter().rev().find(|(n, _)| *n == name).map(|(_, v)| *v);
        let once = naiad_opt::once(func).into_iter();
        let params = func.params().iter().zip(&func.param_names).zip(once);
        let params = params.map(|((&param, name), once)| {
            if func.ty(param).elem.pointer().is_some() {
                return Param { range: None, divisible: Some(16) };
            }
            let Some(value) = known(name) else { return Param::default() };
            let number = Interval::point(value.into());
            Param {
                range: if value == 1 { Some(number) } else { once.filter(|n| n.contains(number)) },
                divisible: Some(1 << value.trailing_zeros().min(4)),
            }
        });
        Inputs { grid: None, params: params.collect() }
    }
}

/// Instructions that matter, and what their lines begin with, after a guard.
const COUNTED: &[(&str, &str)] = &[
    ("mma", "mma."),
    ("ldmatrix", "ldmatrix."),
    ("cp.async", "cp.async.c"),
    ("barriers", "bar"),
    ("shuffles", "shfl."),
];

/// Accesses to memory by their width: `ld.global.v4.b32` moves 16 bytes.
const ACCESSES: &[&str] = &["ld.global", "st.global", "ld.shared", "st.shared"];

/// What stands in a text: `mma 32, ld.global 16 B x 8`.
fn counts(ptx: &str) -> String {
    let lines: Vec<&str> = ptx
        .lines()
        .map(|l| l.trim())
        .map(|l| if l.starts_with('@') { l.split_once(' ').map_or(l, |(_, rest)| rest) } else { l })
        .collect();
    let mut parts = Vec::new();
    for (name, start) in COUNTED {
        let n = lines.iter().filter(|l| l.starts_with(start)).count();
        if n > 0 {
            parts.push(format!("{name} {n}"));
        }
    }
    for access in ACCESSES {
        let mut widths = std::collections::BTreeMap::new();
        for line in lines.iter().filter(|l| l.starts_with(access)) {
            let opcode = line.split(' ').next().unwrap_or("");
            let lanes = opcode.split('.').find_map(|p| p.strip_prefix('v')?.parse::<u32>().ok());
            let bits =
                opcode.rsplit('.').next().unwrap_or("").trim_start_matches(char::is_alphabetic);
            let bytes = bits.parse::<u32>().unwrap_or(0) / 8 * lanes.unwrap_or(1);
            *widths.entry(bytes).or_insert(0) += 1;
        }
        parts.extend(widths.iter().rev().map(|(bytes, n)| format!("{access} {bytes} B x {n}")));
    }
    parts.join(", ")
}

/// Debug mode asks for more of everything, but the assembler takes it; and lines.
#[test]
fn guarded_kernels_are_taken() {
    let Some(assembler) = Assembler::find() else { return };
    for case in cases() {
        let func = case.func();
        let options = naiad_gpu::Options {
            capability: 80,
            num_warps: case.warps,
            num_stages: case.stages,
            precise: false,
            guarded: true,
            few_programs: false,
            prints: None,
        };
        let code = naiad_gpu::compile(&func, &case.inputs(&func), &options);
        let code = code.unwrap_or_else(|why| panic!("{}: {}", case.title, why.what));
        assert!(code.watch.is_some(), "{} watches nothing", case.title);
        let (threads, shared_bytes) = (code.threads, code.shared_bytes);
        let kernel =
            Kernel { func: &code.func, threads, shared_bytes, max_regs: None, lines: true };
        let ptx = naiad_ptx::write(&kernel, Target { capability: 80 });
        let ptx = ptx.unwrap_or_else(|d| panic!("{}: {d:?}", case.title));
        assembler.accepts(&ptx, 80).unwrap_or_else(|why| panic!("{}: {why}", case.title));
    }
}

#[test]
fn kernels_use_what_they_used() {
    let Some(assembler) = Assembler::find() else { return };
    let head =
        format!("# What ptxas {} makes of kernels as they are measured.\n", assembler.version());
    let mut usage = head.clone();
    let mut spilled = Vec::new();
    for case in cases() {
        let func = case.func();
        usage += &format!("\n{}\n", case.title);
        for capability in [80, 90] {
            let options = naiad_gpu::Options {
                capability,
                num_warps: case.warps,
                num_stages: case.stages,
                precise: false,
                guarded: false,
                few_programs: false,
                prints: None,
            };
            let code = naiad_gpu::compile(&func, &case.inputs(&func), &options);
            let code = match code {
                Ok(code) => code,
                Err(why) => {
                    usage += &format!("  sm_{capability}: no code: {}\n", why.what);
                    continue;
                }
            };
            let kernel = Kernel {
                func: &code.func,
                threads: code.threads,
                shared_bytes: code.shared_bytes,
                max_regs: None,
                lines: false,
            };
            let ptx = naiad_ptx::write(&kernel, Target { capability });
            let ptx = ptx.unwrap_or_else(|d| panic!("{}: {d:?}", case.title));
            let used = assembler.run(&ptx, capability);
            let used = used.unwrap_or_else(|why| panic!("{}: sm_{capability}: {why}", case.title));
            if used.contains("spill") || used.contains("stack") {
                // These two products want more registers than a thread may have: by how much stands in
                // the table.
                let known =
                    ["matmul fp16, 128x256x64, 8 warps", "matmul fp16, 128x128x64, 4 warps"];
                if !known.iter().any(|title| case.title.starts_with(title)) {
                    spilled.push(format!("{}: sm_{capability}: {used}", case.title));
                }
            }
            usage += &format!(
                "  sm_{capability}: {} threads, {} programs, {} bytes shared; {used}; {}\n",
                code.threads,
                code.programs,
                code.shared_bytes,
                counts(&ptx)
            );
        }
    }
    let path = root().join("tests/ptx/kernels.txt");
    if std::env::var_os("NAIAD_BLESS").is_some() {
        std::fs::write(&path, &usage).expect("the file may be written");
    } else {
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        // Another version may take other registers.
        let other = !before.starts_with(&head);
        assert!(
            other || before == usage,
            "run with NAIAD_BLESS=1 and look at the difference:\n{usage}"
        );
    }
    assert!(spilled.is_empty(), "registers are spilled:\n{}", spilled.join("\n"));
}
