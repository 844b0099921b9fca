//! What kernels become on a GPU, as text.
//!
//! | file | from | to |
//! |---|---|---|
//! | `tests/place/*.tir` | Tile IR | Placed IR |
//! | `tests/lower/gpu/*.tir` | Tile IR | Thread IR |
//!
//! A case is a title behind `////`, a function of Tile IR and, behind a line `// ----`, what becomes of
//! it. Behind a `|` the title may say what it is compiled for: `sm_80 warps=8 stages=1`, and `aligned` if
//! all its pointers and integers are multiples of 16, `few` if it is for few programs. `NAIAD_BLESS=1` rewrites the last part. A case of
//! `tests/place/refused.tir` is wrong Placed IR, and its last part what the verifier says.

use naiad_diag::Source;
use naiad_gpu::Options;
use naiad_gpu::placed::Placed;
use naiad_ir::thread::{Thread, uniform};
use naiad_ir::tile::Tile;
use naiad_ir::{Dialect, Function};
use naiad_opt::ranges::{Inputs, Param};
use std::path::{Path, PathBuf};

const CASE: &str = "//// ";
const BETWEEN: &str = "// ----\n";

/// What the title of a case asks for.
struct Asked {
    options: Options,
    aligned: bool,
}

fn asked(title: &str) -> Asked {
    let options = Options {
        capability: 80,
        num_warps: 4,
        num_stages: 3,
        precise: false,
        guarded: false,
        few_programs: false,
        prints: None,
    };
    let mut asked = Asked { options, aligned: false };
    let words = title.split_once('|').map_or("", |(_, words)| words);
    for word in words.split_whitespace() {
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{title}: `{word}`"));
        let options = &mut asked.options;
        match word.split_once(['=', '_']) {
            None if word == "aligned" => asked.aligned = true,
            None if word == "precise" => options.precise = true,
            None if word == "guarded" => options.guarded = true,
            None if word == "few" => options.few_programs = true,
            Some(("sm", n)) => options.capability = number(n),
            Some(("warps", n)) => options.num_warps = number(n),
            Some(("stages", n)) => options.num_stages = number(n),
            _ => panic!("{title}: `{word}` is nothing to ask for"),
        }
    }
    asked
}

impl Asked {
    fn inputs(&self, func: &Function<Tile>) -> Inputs {
        let divisible = self.aligned.then_some(16);
        let params = func.params().iter().map(|_| Param { range: None, divisible }).collect();
        Inputs { grid: None, params }
    }
}

fn parse<D: Dialect>(title: &str, text: &str) -> Function<D> {
    let parsed = naiad_ir::text::parse::<D>(&Source::new("<case>", text));
    parsed.unwrap_or_else(|d| {
        let line = d.place().map_or(0, |p| p.line());
        panic!("{title}, line {line}: {}\n{text}", d.message)
    })
}

/// Parsed, verified, and nothing lost in its text.
fn whole<D: Dialect>(title: &str, text: &str) -> Function<D> {
    let func = parse::<D>(title, text);
    naiad_ir::verify(&func).unwrap_or_else(|d| panic!("{title}: {}\n{text}", d.message));
    assert_eq!(func.to_string(), parse::<D>(title, &func.to_string()).to_string(), "{title}");
    func
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(name)
}

fn files(name: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder(name)).expect("a folder of cases");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "tir"));
    paths.sort();
    paths
}

/// Holds the last part of each case of a file against what `make` gives.
fn hold(path: &Path, make: impl Fn(&str, &str) -> String) {
    let file = std::fs::read_to_string(path).expect("a file of cases");
    let mut cases = file.split(CASE);
    let mut blessed = cases.next().unwrap_or("").to_string();
    for case in cases {
        let input = case.split(BETWEEN).next().unwrap_or("").trim_end();
        let (title, source) = input.split_once('\n').expect("a title");
        let made = make(title, source);
        let spaced = if blessed.ends_with("\n\n") { "" } else { "\n" };
        blessed += &format!("{spaced}{CASE}{input}\n{BETWEEN}{}\n", made.trim_end());
    }
    if std::env::var_os("NAIAD_BLESS").is_some() {
        std::fs::write(path, blessed).expect("the file may be written");
    } else {
        let name = path.display();
        assert!(
            blessed == file,
            "{name}: run with NAIAD_BLESS=1 and look at the difference:\n{blessed}"
        );
    }
}

#[test]
fn kernels_are_placed() {
    for path in files("place") {
        if path.ends_with("refused.tir") {
            continue;
        }
        hold(&path, |title, source| {
            let func = whole::<Tile>(title, source);
            let asked = asked(title);
            let placed = naiad_gpu::placed(&func, &asked.inputs(&func), &asked.options);
            let (placed, _) = placed.unwrap_or_else(|why| panic!("{title}: {}", why.what));
            let text = placed.to_string();
            assert_eq!(text, whole::<Placed>(title, &text).to_string(), "{title}");
            text
        });
    }
}

#[test]
fn kernels_are_lowered() {
    for path in files("lower/gpu") {
        hold(&path, |title, source| {
            let func = whole::<Tile>(title, source);
            let asked = asked(title);
            let code = naiad_gpu::compile(&func, &asked.inputs(&func), &asked.options);
            let code = code.unwrap_or_else(|why| panic!("{title}: {}", why.what));
            let text = code.func.to_string();
            let func = whole::<Thread>(title, &text);
            uniform::check(&func).unwrap_or_else(|d| panic!("{title}: {}", d.message));
            let (threads, programs, shared) = (code.threads, code.programs, code.shared_bytes);
            format!("// {threads} threads, {programs} programs, {shared} bytes shared\n{text}")
        });
    }
}

#[test]
fn wrong_placed_ir_is_refused() {
    hold(&folder("place/refused.tir"), |title, source| {
        let func = parse::<Placed>(title, source);
        match naiad_ir::verify(&func) {
            Ok(()) => panic!("{title}: is taken\n{source}"),
            Err(d) => d.message.clone(),
        }
    });
}

/// How many programs of a kernel share a block, and its threads.
#[test]
fn programs_share_blocks() {
    let rows = |columns: u32, elem: &str| {
        format!(
            "tile @rows(%x x: *{elem}, %y y: *{elem}) {{
                %i = arange start=0 end={columns} : <{columns}xi32>
                %p = splat %x shape=({columns},) : <{columns}x*{elem}>
                %at = ptr_add %p, %i : <{columns}x*{elem}>
                %v = load %at : <{columns}x{elem}>
                %s = reduce inputs=[%v] axis=0 {{
                  ^(%a: {elem}, %b: {elem}):
                  %c = binary.add %a, %b : {elem}
                  yield values=[%c]
                }} : {elem}
                store %y, %s
                return
            }}"
        )
    };
    let of = |title: &str, source: &str| {
        let (func, asked) = (whole::<Tile>(title, source), asked(title));
        let code = naiad_gpu::compile(&func, &asked.inputs(&func), &asked.options).unwrap();
        (code.programs, code.threads, naiad_gpu::minds_few_programs(&func, false, &asked.options))
    };
    assert_eq!(of("many | aligned", &rows(1024, "fp16")), (4, 128, true));
    assert_eq!(of("few | aligned few", &rows(1024, "fp16")), (1, 128, true));
    // A warp loads no more than 2048 bytes of a row.
    assert_eq!(of("many | aligned", &rows(1024, "fp32")), (1, 128, false));
    assert_eq!(of("many | aligned", &rows(512, "fp32")), (4, 128, false));
    assert_eq!(of("many | aligned", &rows(2048, "fp16")), (1, 128, false));
    // A thread has registers for so many elements.
    assert_eq!(of("many | aligned", &rows(8192, "fp32")), (1, 128, false));
    assert_eq!(of("many | aligned", &rows(16384, "fp32")), (1, 256, false));
    assert_eq!(of("many | aligned", &rows(65536, "fp32")), (1, 512, false));
    assert_eq!(of("many | aligned", &rows(131072, "fp32")), (1, 1024, false));
    // Smaller ones are as fast with a warp each.
    assert_eq!(of("few | aligned few", &rows(512, "fp16")), (4, 128, false));
}
