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
//! `NAIAD_BLESS=1` rewrites the last part.

use naiad_diag::Source;
use naiad_ir::Function;
use naiad_ir::tile::Tile;
use std::path::Path;

type Pass = fn(&mut Function<Tile>);

const PASSES: &[(&str, Pass)] = &[
    ("canonicalize", naiad_opt::canonicalize),
    ("cse", naiad_opt::cse),
    ("dce", naiad_opt::dce),
    ("licm", naiad_opt::licm),
    ("split_carried", |func| {
        naiad_opt::split_carried(func);
    }),
    ("optimize", naiad_opt::optimize),
];

const CASE: &str = "//// ";
const BETWEEN: &str = "// ----\n";

fn run(file: &str, title: &str, input: &str) -> String {
    let passes = title.rsplit(": ").next().unwrap_or("");
    let parsed = naiad_ir::text::parse::<Tile>(&Source::new(file, input));
    let mut func = parsed.unwrap_or_else(|d| panic!("{file}: {title}: {}\n{input}", d.message));
    naiad_ir::verify(&func).unwrap_or_else(|d| panic!("{file}: {title}: {}", d.message));
    for name in passes.split(", ") {
        let pass = PASSES.iter().find(|(n, _)| *n == name);
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
