//! Passes on text: `tests/opt/*.tir`.
//!
//! A file is a list of cases, each of three parts:
//!
//! ```text
//! //// what the case shows: the passes that are run
//! tile @before(...) { ... }
//! // ----
//! tile @after(...) { ... }
//! ```
//!
//! The last name may be an analysis, whose findings stand below the kernel. `NAIAD_BLESS=1` rewrites
//! the last part.

use naiad_diag::Source;
use naiad_ir::thread::Thread;
use naiad_ir::tile::Tile;
use naiad_ir::{Dialect, Function, OpInfo, Value};
use naiad_opt::Room;
use naiad_opt::axis::Axis;
use naiad_opt::interval::Interval;
use naiad_opt::ranges::{Inputs, Param, Ranges};
use std::path::Path;

type Analysis<D> = fn(&Function<D>) -> String;

const PASSES: &[(&str, Generic<Tile>)] = &[
    ("canonicalize", naiad_opt::canonicalize),
    ("canonicalize_within", |func| {
        let ranges = Ranges::new(func, &Inputs::default());
        naiad_opt::canonicalize_within(func, &ranges);
    }),
    ("cse", naiad_opt::cse),
    ("dce", naiad_opt::dce),
    ("licm", naiad_opt::licm),
    ("split_carried", |func| {
        naiad_opt::split_carried(func);
    }),
    ("optimize", naiad_opt::optimize),
    ("optimize for loops that run once", |func| {
        let param = |range| Param { range, divisible: None };
        let params = naiad_opt::once(func).into_iter().map(param).collect();
        naiad_opt::optimize_for(func, &Inputs { grid: None, params });
    }),
    ("reuse", |func| naiad_opt::reuse(func, &Inputs::default(), ROOM)),
    ("reuse without branches", |func| {
        naiad_opt::reuse(func, &Inputs::default(), Room { branches: false, ..ROOM });
    }),
];

const ROOM: Room = Room { elements: 64, branches: true };

/// What an analysis says of each value, by its number in the text.
const ANALYSES: &[(&str, Analysis<Tile>)] = &[("ranges", ranges), ("axes", axes), ("once", once)];

/// The kernel, and a line for each value of which something is said.
fn listed(func: &Function<Tile>, say: impl Fn(Value) -> Option<String>) -> String {
    let mut values = func.params().to_vec();
    func.walk(&mut |inst| {
        values.extend(func.results(inst));
        func.op(inst).each_block(&mut |b| values.extend(func.block_params(b)));
    });
    let mut out = func.to_string();
    for (i, &value) in values.iter().enumerate() {
        if let Some(said) = say(value) {
            out += &format!("%{i}: {said}\n");
        }
    }
    out
}

fn ranges(func: &Function<Tile>) -> String {
    let ranges = Ranges::new(func, &Inputs::default());
    listed(func, |value| {
        let known = ranges.of(value)?;
        let all = func.ty(value).elem.scalar().map(Interval::of_type);
        let wraps = if ranges.may_wrap(value) { ", may wrap" } else { "" };
        (all != Some(known) || !wraps.is_empty()).then(|| format!("{known}{wraps}"))
    })
}

/// For each parameter the numbers for which loops run once.
fn once(func: &Function<Tile>) -> String {
    let once = naiad_opt::once(func);
    let said = once.iter().enumerate().filter_map(|(i, n)| Some(format!("%{i}: {}\n", (*n)?)));
    func.to_string() + &said.collect::<String>()
}

fn axes(func: &Function<Tile>) -> String {
    let info = naiad_opt::axis::axis_info(func);
    listed(func, |value| {
        let axes = info.axes(value);
        let show = |a: &Axis| {
            let any = a.divisibility >= 1 << 62;
            let by = if any { "any".to_string() } else { a.divisibility.to_string() };
            format!("contiguity {}, divisibility {by}, constancy {}", a.contiguity, a.constancy)
        };
        let known = axes.iter().any(|a| *a != Axis::NONE);
        known.then(|| axes.iter().map(show).collect::<Vec<_>>().join("; "))
    })
}

const CASE: &str = "//// ";
const BETWEEN: &str = "// ----\n";

/// A pass over any dialect, for one of them.
type Generic<D> = fn(&mut Function<D>);

/// Passes that Thread IR goes through too.
const ON_THREADS: &[(&str, Generic<Thread>)] =
    &[("cse", naiad_opt::cse), ("dce", naiad_opt::dce), ("licm", naiad_opt::licm)];

fn run(file: &str, title: &str, input: &str) -> String {
    if input.contains("thread @") {
        return run_as(ON_THREADS, &[], file, title, input);
    }
    run_as(PASSES, ANALYSES, file, title, input)
}

fn run_as<D: Dialect>(
    passes: &[(&str, Generic<D>)],
    analyses: &[(&str, Analysis<D>)],
    file: &str,
    title: &str,
    input: &str,
) -> String {
    let names = title.rsplit(": ").next().unwrap_or("");
    let parsed = naiad_ir::text::parse::<D>(&Source::new(file, input));
    let mut func = parsed.unwrap_or_else(|d| panic!("{file}: {title}: {}\n{input}", d.message));
    naiad_ir::verify(&func).unwrap_or_else(|d| panic!("{file}: {title}: {}", d.message));
    for name in names.split(", ") {
        if let Some((_, show)) = analyses.iter().find(|(n, _)| *n == name) {
            return show(&func);
        }
        let pass = passes.iter().find(|(n, _)| *n == name);
        pass.unwrap_or_else(|| panic!("{file}: {title}: no pass is called `{name}`")).1(&mut func);
        naiad_ir::verify(&func).unwrap_or_else(|d| panic!("{title}: {}\n{func}", d.message));
    }
    func.to_string()
}

#[test]
fn passes_give_the_text_that_stands_there() {
    let bless = std::env::var_os("NAIAD_BLESS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/opt");
    let mut paths: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "tir"));
    paths.sort();
    for path in paths {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let (head, cases) = text.split_once(CASE).unwrap_or_else(|| panic!("{file} has no case"));
        let mut out = head.to_string();
        for case in cases.split(&format!("\n{CASE}")) {
            let (title, rest) = case.split_once('\n').unwrap();
            let input = rest.split(BETWEEN).next().unwrap_or(rest);
            let gap = if out.is_empty() || out.ends_with("\n\n") { "" } else { "\n" };
            let input = input.trim_end();
            let result = run(&file, title, input);
            out += &format!("{gap}{CASE}{title}\n{input}\n{BETWEEN}{result}");
        }
        if bless {
            std::fs::write(&path, &out).unwrap();
        }
        if out != text && !bless {
            let line = out.lines().zip(text.lines()).take_while(|(a, b)| a == b).count() + 1;
            panic!("{file}, line {line} differs; NAIAD_BLESS=1 rewrites the file. Now:\n{out}");
        }
    }
}
