//! Mutated kernels for the front end, mutated IR for its parser and verifier: whatever the text, the
//! answer is a kernel or a message, never a panic.
//!
//! Deterministic; `NAIAD_FUZZ_CASES` sets how many cases are tried (a few thousand otherwise), and
//! `NAIAD_FUZZ_SEED` where they start.

use naiad_diag::{Source, render};
use naiad_front::file::FileHost;
use naiad_front::{HostValue, Options, ParamSpec, compile, inspect};
use naiad_ir::{Scalar, Type};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Xorshift: enough to choose mutations.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Kernels of the tests and examples.
fn seeds() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut out = Vec::new();
    for folder in ["tests/lang", "tests/diag", "examples"] {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else { continue };
        let mut paths: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
        paths.sort();
        for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "py")) {
            out.push(std::fs::read_to_string(path).unwrap());
        }
    }
    out
}

/// Words, numbers and symbols, as pieces that mutations move around.
fn pieces(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let class = |c: char| {
        if c.is_alphanumeric() || c == '_' {
            1
        } else if c == ' ' {
            2
        } else {
            0
        }
    };
    let mut previous = 0;
    for (i, c) in text.char_indices() {
        let now = class(c);
        if i > start && (now == 0 || now != previous) {
            out.push(&text[start..i]);
            start = i;
        }
        previous = now;
    }
    out.push(&text[start..]);
    out
}

const INSERTS: &[&str] = &[
    "None",
    "0",
    "-1",
    "1e400",
    "99999999999999999999999999999999999999999999",
    "(",
    ")",
    "[",
    "]",
    ":",
    ",",
    "*",
    "**",
    "not ",
    "lambda: 0",
    "\"",
    "'''",
    "\\",
    "\n",
    "\t",
    "    ",
    "é",
    "\u{0}",
    "\u{feff}",
    "return",
    "if",
    "else",
    "for",
    "while",
    "tl.arange(0, 16)",
    "tl.dot",
    "x",
    "True",
    "...",
    "is",
    "%",
    "<16xfp32>",
    "%0",
    "^",
    "{",
    "}",
    "yield",
    "float('nan')",
];

fn mutate(text: &str, random: &mut Random) -> String {
    let mut parts: Vec<&str> = pieces(text);
    for _ in 0..1 + random.below(4) {
        if parts.is_empty() {
            break;
        }
        let (i, j) = (random.below(parts.len()), random.below(parts.len()));
        match random.below(6) {
            0 => drop(parts.remove(i)),
            1 => parts.insert(i, parts[j]),
            2 => parts.swap(i, j),
            3 => parts[i] = INSERTS[random.below(INSERTS.len())],
            4 => parts.insert(i, INSERTS[random.below(INSERTS.len())]),
            _ if random.below(8) == 0 => parts.truncate(i),
            _ => parts[i] = parts[j],
        }
    }
    parts.concat()
}

/// Everything the front end can be asked about a text.
fn front(text: &str) {
    let host = match FileHost::new(Source::new("fuzz.py", text)) {
        Ok(host) => host,
        Err(d) => return drop(render::human(&d, render::Style::PLAIN)),
    };
    for name in host.kernels() {
        let Some(kernel) = host.kernel(name) else { continue };
        let info = match inspect(&host, kernel) {
            Ok(info) => info,
            Err(d) => {
                render::human(&d, render::Style::PLAIN);
                continue;
            }
        };
        let specs: Vec<ParamSpec> = info
            .params
            .iter()
            .map(|p| match () {
                () if p.is_constexpr => ParamSpec::Constexpr(HostValue::Int(16)),
                () if p.name.len() > 1 || p.name == "x" => {
                    ParamSpec::Value(Type::pointer(Scalar::F32))
                }
                () => ParamSpec::Value(Type::I32),
            })
            .collect();
        match compile(&host, kernel, &specs, &Options::default()) {
            Ok(compiled) => naiad_ir::verify(&compiled.func).unwrap(),
            Err(d) => {
                assert_ne!(
                    d.id,
                    naiad_diag::Id::Internal,
                    "{}",
                    render::human(&d, render::Style::PLAIN)
                );
                let human = render::human(&d, render::Style::PLAIN);
                assert!(human.contains(d.id.name()));
                render::json(&d).to_string();
            }
        }
    }
}

fn ir(text: &str) {
    match naiad_ir::text::parse::<naiad_ir::tile::Tile>(&Source::new("fuzz.tir", text)) {
        // What parses and verifies prints as something that does so again.
        Ok(func) => {
            if naiad_ir::verify(&func).is_ok() {
                let again = func.to_string();
                let parsed = naiad_ir::text::parse::<naiad_ir::tile::Tile>(&Source::new(
                    "again.tir",
                    again.as_str(),
                ));
                assert_eq!(parsed.unwrap().to_string(), again);
            }
        }
        Err(d) => drop(render::human(&d, render::Style::PLAIN)),
    }
}

fn never_panics(what: &str, text: &str, f: impl Fn(&str)) {
    if catch_unwind(AssertUnwindSafe(|| f(text))).is_err() {
        panic!("{what} panicked on:\n{text}");
    }
}

#[test]
fn mutated_kernels() {
    let seeds = seeds();
    let mut random = Random(setting("NAIAD_FUZZ_SEED", 0x9e3779b97f4a7c15) | 1);
    for _ in 0..setting("NAIAD_FUZZ_CASES", 3000) {
        let seed = &seeds[random.below(seeds.len())];
        never_panics("the front end", &mutate(seed, &mut random), front);
    }
}

#[test]
fn mutated_ir() {
    let mut texts = Vec::new();
    for seed in seeds() {
        let Ok(host) = FileHost::new(Source::new("seed.py", seed)) else { continue };
        for name in host.kernels() {
            let Some(kernel) = host.kernel(name) else { continue };
            let Ok(info) = inspect(&host, kernel) else { continue };
            let specs = info.params.iter().map(|p| match () {
                () if p.is_constexpr => ParamSpec::Constexpr(HostValue::Int(16)),
                () if p.name == "n" || p.name.starts_with("n_") => ParamSpec::Value(Type::I32),
                () => ParamSpec::Value(Type::pointer(Scalar::F32)),
            });
            let specs: Vec<ParamSpec> = specs.collect();
            if let Ok(compiled) = compile(&host, kernel, &specs, &Options::default()) {
                texts.push(compiled.func.to_string());
            }
        }
    }
    assert!(texts.len() > 5, "too few kernels compile to be mutated");
    let mut random = Random(setting("NAIAD_FUZZ_SEED", 0x9e3779b97f4a7c15) | 1);
    for _ in 0..setting("NAIAD_FUZZ_CASES", 3000) {
        let seed = &texts[random.below(texts.len())];
        never_panics("the IR parser", &mutate(seed, &mut random), ir);
    }
}

#[test]
fn hostile_texts() {
    let deep = "(".repeat(100_000);
    let unary = format!("@triton.jit\ndef k(x):\n    y = {}1\n", "-".repeat(50_000));
    let nots = format!("@triton.jit\ndef k(x):\n    y = {}x\n", "not ".repeat(50_000));
    let sum = format!("@triton.jit\ndef k(x):\n    y = {}1\n", "1+".repeat(100_000));
    let attrs = format!("@triton.jit\ndef k(x):\n    y = x{}\n", ".a".repeat(50_000));
    let calls = format!("@triton.jit\ndef k(x):\n    y = x{}\n", "()".repeat(50_000));
    let index = format!("@triton.jit\ndef k(x):\n    y = x{}\n", "[0]".repeat(50_000));
    let elifs = format!(
        "@triton.jit\ndef k(x):\n    if x:\n        pass\n{}",
        "    elif x:\n        pass\n".repeat(2_000)
    );
    let blocks: String = (0..500).map(|i| format!("{}if x:\n", " ".repeat(i + 4))).collect();
    let blocks = format!("@triton.jit\ndef k(x):\n{blocks}{}pass\n", " ".repeat(510));
    let ternary = format!("@triton.jit\ndef k(x):\n    y = {}1\n", "1 if x else ".repeat(20_000));
    let lambdas = format!("x = {}1\n", "lambda a, b: ".repeat(20_000));
    let formatted = format!("x = {}1{}\n", "f'{(".repeat(5_000), ")}'".repeat(5_000));
    for text in [
        deep.as_str(),
        &lambdas,
        &formatted,
        &unary,
        &nots,
        &sum,
        &attrs,
        &calls,
        &index,
        &elifs,
        &blocks,
        &ternary,
        "",
        "\u{feff}",
        "\0",
        "@triton.jit",
    ] {
        never_panics("the front end", text, front);
        never_panics("the IR parser", text, ir);
    }
    // Long, and not deep: host code beside kernels often is.
    let rows = "    (1, 'it''s (', 2.5, -x.y, [a or b]),  # so (\n".repeat(20_000);
    let prompt =
        format!("p = f\"\"\"{}{{{{ ( }}}} {{x!r}}\"\"\"\n", "words (of a kind ".repeat(5_000));
    let text = format!("rows = [\n{rows}]\n{prompt}");
    if let Err(e) = FileHost::new(Source::new("long.py", text)) {
        panic!("{}", e.message);
    }
    let regions = format!("tile @k(%0 c: i1) {{ {}", "if %0 { ".repeat(50_000));
    let lists = format!("tile @k() {{ yield values={}", "[".repeat(100_000));
    for text in [regions.as_str(), &lists] {
        never_panics("the IR parser", text, ir);
    }
}
