//! Kernels from source: the reference executor gives the same bits before and after the passes.
//!
//! `tests/opt/kernels.py` and every kernel of `tests/lang` that compiles, the examples from a table.
//! All arguments point into the middle of memory of their own, or all into one, which a kernel that
//! reads what another argument wrote can tell.

#[path = "../../naiad-interp/tests/common/mod.rs"]
mod common;
#[path = "../../naiad-interp/tests/common/generator.rs"]
mod generator;
#[path = "../../naiad-front/tests/common/mod.rs"]
mod sources;

use common::{PLAIN, run};
use generator::{Random, images};
use naiad_diag::Source;
use naiad_front::file::FileHost;
use naiad_front::{Options, compile};
use naiad_interp::{Arg, TensorArg};
use naiad_ir::tile::Tile;
use naiad_ir::{Elem, Function, Scalar};
use std::path::Path;
use std::sync::Arc;

const BYTES: usize = 1 << 15;

/// File, kernel, signature and arguments of the examples.
const EXAMPLES: &[(&str, &str, &str, &str)] = &[
    (
        "bias_add",
        "bias_add_kernel",
        "x_ptr: *fp32, bias_ptr: *fp32, out_ptr: *fp32, n_cols: i32, x_row_stride: i32, x_col_stride: i32, bias_stride: i32, out_row_stride: i32, out_col_stride: i32, BLOCK=64",
        "n_cols=50, x_row_stride=50, x_col_stride=1, bias_stride=1, out_row_stride=50, out_col_stride=1",
    ),
    (
        "bias_add",
        "bias_add_wide_kernel",
        "x_ptr: *fp16, bias_ptr: *fp16, out_ptr: *fp16, n_cols: i32, x_row_stride: i32, x_col_stride: i32, bias_stride: i32, out_row_stride: i32, out_col_stride: i32, BLOCK=16",
        "n_cols=29, x_row_stride=1, x_col_stride=2, bias_stride=1, out_row_stride=32, out_col_stride=1",
    ),
    (
        "gelu",
        "gelu_kernel",
        "x_ptr: *fp32, out_ptr: *fp32, n: i32, x_stride: i32, out_stride: i32, BLOCK=32",
        "n=50, x_stride=1, out_stride=2",
    ),
    (
        "matmul",
        "matmul_kernel",
        "a_ptr: *fp32, b_ptr: *fp32, c_ptr: *fp32, M: i32, N: i32, K: i32, a_row_stride: i32, a_col_stride: i32, b_row_stride: i32, b_col_stride: i32, c_row_stride: i32, c_col_stride: i32, ACTIVATION=\"relu\", BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, GROUP_M=2",
        "M=20, N=33, K=21, a_row_stride=21, a_col_stride=1, b_row_stride=33, b_col_stride=1, c_row_stride=33, c_col_stride=1",
    ),
    (
        "row_stats",
        "row_stats_kernel",
        "x_ptr: *fp32, mean_ptr: *fp32, var_ptr: *fp32, n_cols: i32, x_row_stride: i32, x_col_stride: i32, BLOCK=64",
        "n_cols=50, x_row_stride=50, x_col_stride=1",
    ),
    (
        "row_stats",
        "row_stats_streaming_kernel",
        "x_ptr: *fp32, mean_ptr: *fp32, var_ptr: *fp32, n_cols: i32, x_row_stride: i32, x_col_stride: i32, BLOCK=16",
        "n_cols=50, x_row_stride=50, x_col_stride=1",
    ),
    (
        "row_sum",
        "row_sum_kernel",
        "x_ptr: *fp32, out_ptr: *fp32, n_cols: i32, x_row_stride: i32, x_col_stride: i32, BLOCK=16",
        "n_cols=50, x_row_stride=50, x_col_stride=1",
    ),
    (
        "softmax",
        "softmax_kernel",
        "x_ptr: *fp32, out_ptr: *fp32, n_cols: i32, x_row_stride: i32, x_col_stride: i32, out_row_stride: i32, out_col_stride: i32, BLOCK=32",
        "n_cols=30, x_row_stride=30, x_col_stride=1, out_row_stride=30, out_col_stride=1",
    ),
    (
        "transpose",
        "transpose_kernel",
        "x_ptr: *fp32, out_ptr: *fp32, n_rows: i32, n_cols: i32, x_row_stride: i32, x_col_stride: i32, out_row_stride: i32, out_col_stride: i32, BLOCK_ROWS=16, BLOCK_COLS=8",
        "n_rows=20, n_cols=19, x_row_stride=19, x_col_stride=1, out_row_stride=20, out_col_stride=1",
    ),
];

/// Runs a kernel and gives the memory of each argument after that.
fn outcome(
    func: &Arc<Function<Tile>>,
    numbers: &str,
    shared: bool,
) -> Result<Vec<Vec<u64>>, String> {
    let given = |name: &str| {
        let pairs = numbers.split(',').filter_map(|p| p.split_once('='));
        let mut found = pairs.filter(|(n, _)| n.trim() == name);
        found.next().map_or(5, |(_, v)| v.trim().parse::<i64>().unwrap())
    };
    let params: Vec<(String, Elem)> = func
        .param_names
        .iter()
        .cloned()
        .zip(func.params().iter().map(|&p| func.ty(p).elem))
        .collect();
    let mut random = Random(99);
    let mut memory: Vec<Vec<u64>> = vec![vec![0; BYTES / 8]; params.len()];
    let mut args = Vec::new();
    for (i, (name, elem)) in params.iter().enumerate() {
        let Some(pointer) = elem.pointer() else {
            args.push(Arg::Scalar(given(name) as u64));
            continue;
        };
        // Small numbers, so that sums of them mean something.
        let size = pointer.pointee.size();
        let block = &mut memory[if shared { 0 } else { i }];
        let start = block.as_mut_ptr() as usize;
        for at in 0..BYTES / size {
            let x = (random.next() % 64) as f64 / 8.0;
            let (from, x) = match pointer.pointee.is_float() {
                true => (Scalar::F64, x.to_bits()),
                false => (Scalar::I64, x as u64),
            };
            let rounding = naiad_ir::scalar::Rounding::Nearest;
            let image = naiad_ir::scalar::cast_bits(from, pointer.pointee, rounding, x);
            let shift = at * size % 8 * 8;
            let word = &mut block[at * size / 8];
            *word = *word & !(pointer.pointee.mask() << shift) | image << shift;
        }
        args.push(Arg::Tensor(TensorArg {
            address: start + BYTES / 2 + if shared { 8 * i } else { 0 },
            storage: start..start + BYTES,
            view: None,
            writable: true,
        }));
    }
    run(func, [2, 2, 1], &args, &PLAIN).map_err(|d| d.message.clone())?;
    let bytes =
        |block: &Vec<u64>| -> Vec<u8> { block.iter().flat_map(|x| x.to_le_bytes()).collect() };
    let elem = |elem: &Elem| elem.pointer().map_or(Scalar::I64, |p| p.pointee);
    let all = memory.iter().zip(&params);
    Ok(all.map(|(block, (_, e))| images(&bytes(block), elem(e), BYTES / elem(e).size())).collect())
}

fn check(path: &Path, name: &str, signature: &str, numbers: &str) -> bool {
    let text = std::fs::read_to_string(path).unwrap();
    let file = path.file_name().unwrap().to_string_lossy().into_owned();
    let host = FileHost::new(Source::new(file.as_str(), text)).unwrap();
    let kernel = host.kernel(name).unwrap_or_else(|| panic!("{file} has no kernel `{name}`"));
    let compiled = sources::specs(&host, kernel, signature)
        .and_then(|s| compile(&host, kernel, &s, &Options::default()));
    let Ok(compiled) = compiled else { return false };
    let before = compiled.func;
    let mut after = Function::clone(&before);
    naiad_opt::optimize(&mut after);
    let after = Arc::new(after);
    for shared in [false, true] {
        let (a, b) = (outcome(&before, numbers, shared), outcome(&after, numbers, shared));
        assert!(
            a == b,
            "{file}: {name}({signature}): {:?}, {:?}\n{before}\n{after}",
            a.err(),
            b.err()
        );
        if path.ends_with("opt/kernels.py") {
            assert!(a.is_ok() || shared, "{name}: {:?}", a.err());
        }
    }
    true
}

#[test]
fn examples() {
    for (file, name, signature, numbers) in EXAMPLES {
        let path = sources::folder("../examples").join(format!("{file}.py"));
        assert!(check(&path, name, signature, numbers), "{file}: {name} does not compile");
    }
}

#[test]
fn kernels_of_test_files() {
    let mut ran = 0;
    for folder in ["opt", "lang"] {
        for path in sources::files(&sources::folder(folder)) {
            let text = std::fs::read_to_string(&path).unwrap();
            let numbers: Vec<(String, String)> = {
                let with = text.replace("# kernel(", "# skipped(").replace("# with(", "# kernel(");
                sources::signatures(&with)
            };
            for (name, signature) in sources::signatures(&text) {
                let given = numbers.iter().find(|(n, _)| *n == name);
                let ok = check(&path, &name, &signature, given.map_or("", |(_, n)| n));
                assert!(ok || folder == "lang", "{name} does not compile");
                ran += usize::from(ok);
            }
        }
    }
    assert!(ran > 40, "{ran} kernels");
}
