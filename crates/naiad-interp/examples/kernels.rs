//! Times typical kernels on 1024 x 1024 fp32: `cargo run --release -p naiad-interp --example kernels`.

use naiad_diag::Source;
use naiad_interp::{Arg, Code, LaunchOptions, PolicyKind, TensorArg, launch};
use naiad_ir::Function;
use naiad_ir::tile::Tile;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

const N: usize = 1024;

/// Text of a kernel, line by line.
#[derive(Default)]
struct Text(String, usize);

impl Text {
    fn op(&mut self, op: &str, ty: &str) -> String {
        self.1 += 1;
        let _ = writeln!(self.0, "  %v{} = {op} : {ty}", self.1);
        format!("%v{}", self.1)
    }
    fn splat(&mut self, value: &str, n: usize, elem: &str) -> String {
        self.op(&format!("splat {value} shape=({n},)"), &format!("<{n}x{elem}>"))
    }
    fn float(&mut self, value: f64, n: usize) -> String {
        let c = self.op(&format!("const value={value:?}:fp32"), "fp32");
        self.splat(&c, n, "fp32")
    }
    /// Pointers to `n` elements of row `row`.
    fn row(&mut self, base: &str, row: &str, n: usize) -> String {
        let stride = self.op("const value=1024:i32", "i32");
        let start = self.op(&format!("binary.mul {row}, {stride}"), "i32");
        let base = self.op(&format!("ptr_add {base}, {start}"), "*fp32");
        let r = self.op(&format!("arange start=0 end={n}"), &format!("<{n}xi32>"));
        let base = self.splat(&base, n, "*fp32");
        self.op(&format!("ptr_add {base}, {r}"), &format!("<{n}x*fp32>"))
    }
    fn mask(&mut self, n: usize) -> String {
        let r = self.op(&format!("arange start=0 end={n}"), &format!("<{n}xi32>"));
        let limit = self.splat("%n", n, "i32");
        self.op(&format!("compare.lt {r}, {limit}"), &format!("<{n}xi1>"))
    }
    fn reduce(&mut self, x: &str, f: &str) -> String {
        let n = self.1;
        self.op(&format!("reduce inputs=[{x}] axis=0 {{\n ^(%a{n}: fp32, %b{n}: fp32):\n %c{n} = binary.{f} %a{n}, %b{n} : fp32\n yield values=[%c{n}]\n }}"), "fp32")
    }
    fn kernel(self, name: &str) -> Code {
        let text =
            format!("tile @{name}(%x x: *fp32, %y y: *fp32, %n n: i32) {{\n{}  return\n}}", self.0);
        let func: Function<Tile> = naiad_ir::text::parse(&Source::new("<bench>", text.clone()))
            .unwrap_or_else(|d| panic!("{}\n{text}", d.message));
        Code::new(Arc::new(func))
    }
}

const ROW: &str = "<1024xfp32>";

fn bias() -> Code {
    let mut t = Text::default();
    let pid = t.op("program_id axis=0", "i32");
    let zero = t.op("const value=0:i32", "i32");
    let m = t.mask(N);
    let (x, b, y) = (t.row("%x", &pid, N), t.row("%x", &zero, N), t.row("%y", &pid, N));
    let v = t.op(&format!("load {x} mask={m}"), ROW);
    let w = t.op(&format!("load {b} mask={m}"), ROW);
    let s = t.op(&format!("binary.add {v}, {w}"), ROW);
    let _ = writeln!(t.0, "  store {y}, {s} mask={m}");
    t.kernel("bias")
}

fn softmax() -> Code {
    let mut t = Text::default();
    let pid = t.op("program_id axis=0", "i32");
    let m = t.mask(N);
    let (x, y) = (t.row("%x", &pid, N), t.row("%y", &pid, N));
    let low = t.float(-1e30, N);
    let v = t.op(&format!("load {x} mask={m} other={low}"), ROW);
    let top = t.reduce(&v, "max");
    let top = t.splat(&top, N, "fp32");
    let d = t.op(&format!("binary.sub {v}, {top}"), ROW);
    let e = t.op(&format!("unary.exp {d}"), ROW);
    let s = t.reduce(&e, "add");
    let s = t.splat(&s, N, "fp32");
    let q = t.op(&format!("binary.div {e}, {s}"), ROW);
    let _ = writeln!(t.0, "  store {y}, {q} mask={m}");
    t.kernel("softmax")
}

fn gelu() -> Code {
    let mut t = Text::default();
    let pid = t.op("program_id axis=0", "i32");
    let m = t.mask(N);
    let (x, y) = (t.row("%x", &pid, N), t.row("%y", &pid, N));
    let v = t.op(&format!("load {x} mask={m}"), ROW);
    let (half, root, one) =
        (t.float(0.5, N), t.float(std::f64::consts::FRAC_1_SQRT_2, N), t.float(1.0, N));
    let a = t.op(&format!("binary.mul {v}, {root}"), ROW);
    let e = t.op(&format!("unary.erf {a}"), ROW);
    let p = t.op(&format!("binary.add {e}, {one}"), ROW);
    let h = t.op(&format!("binary.mul {v}, {half}"), ROW);
    let g = t.op(&format!("binary.mul {h}, {p}"), ROW);
    let _ = writeln!(t.0, "  store {y}, {g} mask={m}");
    t.kernel("gelu")
}

fn layer_norm() -> Code {
    let mut t = Text::default();
    let pid = t.op("program_id axis=0", "i32");
    let m = t.mask(N);
    let (x, y) = (t.row("%x", &pid, N), t.row("%y", &pid, N));
    let v = t.op(&format!("load {x} mask={m}"), ROW);
    let scale = t.op("const value=0.0009765625:fp32", "fp32");
    let s = t.reduce(&v, "add");
    let mean = t.op(&format!("binary.mul {s}, {scale}"), "fp32");
    let mean = t.splat(&mean, N, "fp32");
    let d = t.op(&format!("binary.sub {v}, {mean}"), ROW);
    let q = t.op(&format!("binary.mul {d}, {d}"), ROW);
    let s = t.reduce(&q, "add");
    let var = t.op(&format!("binary.mul {s}, {scale}"), "fp32");
    let inv = t.op(&format!("unary.rsqrt {var}"), "fp32");
    let inv = t.splat(&inv, N, "fp32");
    let z = t.op(&format!("binary.mul {d}, {inv}"), ROW);
    let _ = writeln!(t.0, "  store {y}, {z} mask={m}");
    t.kernel("layer_norm")
}

/// Offsets `(row + i) * 1024 + col + j` of a square tile.
fn tile_pointers(t: &mut Text, base: &str, row: &str, col: &str, edge: usize) -> String {
    let line = format!("<{edge}xi32>");
    let square = format!("<{edge}x{edge}xi32>");
    let r = t.op(&format!("arange start=0 end={edge}"), &line);
    let rows = t.splat(row, edge, "i32");
    let rows = t.op(&format!("binary.add {rows}, {r}"), &line);
    let cols = t.splat(col, edge, "i32");
    let cols = t.op(&format!("binary.add {cols}, {r}"), &line);
    let rows = t.op(&format!("expand_dims {rows} axis=1"), &format!("<{edge}x1xi32>"));
    let cols = t.op(&format!("expand_dims {cols} axis=0"), &format!("<1x{edge}xi32>"));
    let stride = t.op("const value=1024:i32", "i32");
    let stride = t.op(&format!("splat {stride} shape=({edge},1)"), &format!("<{edge}x1xi32>"));
    let rows = t.op(&format!("binary.mul {rows}, {stride}"), &format!("<{edge}x1xi32>"));
    let rows = t.op(&format!("broadcast {rows} shape=({edge},{edge})"), &square);
    let cols = t.op(&format!("broadcast {cols} shape=({edge},{edge})"), &square);
    let offsets = t.op(&format!("binary.add {rows}, {cols}"), &square);
    let base =
        t.op(&format!("splat {base} shape=({edge},{edge})"), &format!("<{edge}x{edge}x*fp32>"));
    t.op(&format!("ptr_add {base}, {offsets}"), &format!("<{edge}x{edge}x*fp32>"))
}

fn transpose() -> Code {
    let mut t = Text::default();
    let (i, j) = (t.op("program_id axis=0", "i32"), t.op("program_id axis=1", "i32"));
    let edge = t.op("const value=32:i32", "i32");
    let (i, j) = (
        t.op(&format!("binary.mul {i}, {edge}"), "i32"),
        t.op(&format!("binary.mul {j}, {edge}"), "i32"),
    );
    let x = tile_pointers(&mut t, "%x", &i, &j, 32);
    let y = tile_pointers(&mut t, "%y", &j, &i, 32);
    let v = t.op(&format!("load {x}"), "<32x32xfp32>");
    let w = t.op(&format!("permute {v} order=(1,0)"), "<32x32xfp32>");
    let _ = writeln!(t.0, "  store {y}, {w}");
    t.kernel("transpose")
}

fn matmul() -> Code {
    let mut t = Text::default();
    let (i, j) = (t.op("program_id axis=0", "i32"), t.op("program_id axis=1", "i32"));
    let edge = t.op("const value=64:i32", "i32");
    let zero = t.op("const value=0:i32", "i32");
    let n = t.op("const value=1024:i32", "i32");
    let (i, j) = (
        t.op(&format!("binary.mul {i}, {edge}"), "i32"),
        t.op(&format!("binary.mul {j}, {edge}"), "i32"),
    );
    let start = t.op("const value=0.0:fp32", "fp32");
    let start = t.op(&format!("splat {start} shape=(64,64)"), "<64x64xfp32>");
    let mut b = Text(String::new(), 1000);
    let a = tile_pointers(&mut b, "%x", &i, "%k", 64);
    let c = tile_pointers(&mut b, "%x", "%k", &j, 64);
    let a = b.op(&format!("load {a}"), "<64x64xfp32>");
    let c = b.op(&format!("load {c}"), "<64x64xfp32>");
    let d = b.op(&format!("dot {a}, {c} acc=%acc out=fp32"), "<64x64xfp32>");
    let sum = t.op(
        &format!("for {zero}, {n}, {edge} inits=[{start}] {{\n ^(%k: i32, %acc: <64x64xfp32>):\n{} yield values=[{d}]\n }}", b.0),
        "<64x64xfp32>",
    );
    let y = tile_pointers(&mut t, "%y", &i, &j, 64);
    let _ = writeln!(t.0, "  store {y}, {sum}");
    t.kernel("matmul")
}

/// A million programs of a few scalars.
fn tiny() -> Code {
    let mut t = Text::default();
    let pid = t.op("program_id axis=0", "i32");
    let x = t.op(&format!("ptr_add %x, {pid}"), "*fp32");
    let y = t.op(&format!("ptr_add %y, {pid}"), "*fp32");
    let v = t.op(&format!("load {x}"), "fp32");
    let w = t.op(&format!("binary.add {v}, {v}"), "fp32");
    let _ = writeln!(t.0, "  store {y}, {w}");
    t.kernel("tiny")
}

/// Row `r` is row `(7 r) mod 1024`, by addresses that are no formula.
fn gather() -> Code {
    let mut t = Text::default();
    let pid = t.op("program_id axis=0", "i32");
    let (x, y) = (t.row("%x", &pid, N), t.row("%y", &pid, N));
    let r = t.op("arange start=0 end=1024", "<1024xi32>");
    let c = t.op("const value=511:i32", "i32");
    let c = t.splat(&c, N, "i32");
    let i = t.op(&format!("binary.xor {r}, {c}"), "<1024xi32>");
    let d = t.op(&format!("binary.sub {i}, {r}"), "<1024xi32>");
    let x = t.op(&format!("ptr_add {x}, {d}"), "<1024x*fp32>");
    let v = t.op(&format!("load {x}"), ROW);
    let _ = writeln!(t.0, "  store {y}, {v}");
    t.kernel("gather")
}

fn tensor(data: &mut [f32]) -> Arg {
    let range = data.as_mut_ptr_range();
    let (address, end) = (range.start as usize, range.end as usize);
    Arg::Tensor(TensorArg { address, storage: address..end, view: None, writable: true })
}

#[allow(clippy::print_stdout, reason = "printing is what this program is for")]
fn main() {
    let mut x: Vec<f32> = (0..N * N).map(|i| ((i * 7919) % 1000) as f32 / 500.0 - 1.0).collect();
    let mut y = vec![0f32; N * N];
    let kernels = [
        ("bias add", bias(), [1024, 1, 1]),
        ("gelu", gelu(), [1024, 1, 1]),
        ("softmax", softmax(), [1024, 1, 1]),
        ("layer norm", layer_norm(), [1024, 1, 1]),
        ("transpose", transpose(), [32, 32, 1]),
        ("gather", gather(), [1024, 1, 1]),
        ("matmul", matmul(), [16, 16, 1]),
        ("million", tiny(), [1 << 20, 1, 1]),
        ("one", tiny(), [1, 1, 1]),
        ("four rows", bias(), [4, 1, 1]),
        ("100 rows", bias(), [100, 1, 1]),
    ];
    println!(
        "{:12} {:>12} {:>12} {:>12} {:>12}",
        "kernel", "1 thread", "2 threads", "naive", "checked"
    );
    let only = std::env::args().nth(1);
    for (name, code, grid) in &kernels {
        if only.as_ref().is_some_and(|o| !name.starts_with(o.as_str())) {
            continue;
        }
        let mut best = [f64::INFINITY; 4];
        let plain = PolicyKind::Plain;
        let ways = [
            (1, false, plain),
            (2, false, plain),
            (2, true, plain),
            (2, false, PolicyKind::Checked),
        ];
        for (slot, (threads, naive, policy)) in best.iter_mut().zip(ways) {
            for _ in 0..5 {
                let options = LaunchOptions { policy, naive, threads, ..LaunchOptions::PLAIN };
                let args = [tensor(&mut x), tensor(&mut y), Arg::Scalar(1000)];
                let start = Instant::now();
                // SAFETY: both vectors outlive the call.
                unsafe { launch(code, *grid, &args, &options) }
                    .unwrap_or_else(|d| panic!("{}", d.message));
                *slot = slot.min(start.elapsed().as_secs_f64() * 1e3);
            }
        }
        println!(
            "{name:12} {:>9.3} ms {:>9.3} ms {:>9.3} ms {:>9.3} ms",
            best[0], best[1], best[2], best[3]
        );
    }
}
