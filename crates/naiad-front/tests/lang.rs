//! Kernels with the messages that they must give.
//!
//! A file in `tests/lang` holds kernels. A line `# kernel(name: type, NAME=value)` above a kernel is
//! one signature to compile it for. On a line that must be reported stands
//! `# error: [id] part of the message`; a kernel without such a line must compile, and its text must
//! then parse back to the same text. Below a kernel `# ir: text` lines must occur in its IR in order.

use naiad_diag::{Diagnostic, Source};
use naiad_front::file::FileHost;
use naiad_front::{FnRef, HostValue, Options, ParamSpec, compile, inspect};
use naiad_ir::Type;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(name)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut out: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    out.retain(|p| p.extension().is_some_and(|e| e == "py"));
    out.sort();
    out
}

fn host_value(text: &str) -> HostValue {
    match text {
        "None" => HostValue::None,
        "True" => HostValue::Bool(true),
        "False" => HostValue::Bool(false),
        _ if text.starts_with('"') => HostValue::Str(text.trim_matches('"').to_string()),
        _ => match text.parse::<i128>() {
            Ok(i) => HostValue::Int(i),
            Err(_) => HostValue::Float(text.parse().unwrap_or_else(|_| panic!("bad value {text}"))),
        },
    }
}

/// The parameters' specializations from a signature's text.
fn specs(
    host: &FileHost,
    kernel: FnRef,
    signature: &str,
) -> Result<Vec<ParamSpec>, Box<Diagnostic>> {
    let info = inspect(host, kernel)?;
    let given: Vec<(&str, ParamSpec)> = signature
        .split(',')
        .map(str::trim)
        .filter(|p| !p.is_empty())
        .map(|p| match p.split_once('=') {
            Some((name, value)) => (name.trim(), ParamSpec::Constexpr(host_value(value.trim()))),
            None => {
                let (name, ty) = p.split_once(':').unwrap_or_else(|| panic!("bad parameter {p}"));
                (name.trim(), ParamSpec::Value(ty.trim().parse::<Type>().unwrap()))
            }
        })
        .collect();
    Ok(info
        .params
        .iter()
        .map(|p| match given.iter().find(|(n, _)| *n == p.name) {
            Some((_, spec)) => spec.clone(),
            None => panic!("`{}` is not in the signature `{signature}`", p.name),
        })
        .collect())
}

/// Lines `# kernel(...)`, each with the kernel defined below it.
fn signatures(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(rest) = line.trim().strip_prefix("# kernel(") else { continue };
        let below = lines[i..]
            .iter()
            .find_map(|l| l.trim().trim_start_matches("async ").strip_prefix("def "))
            .unwrap_or("");
        let name = below.split('(').next().unwrap_or("").to_string();
        out.push((name, rest.trim_end().trim_end_matches(')').to_string()));
    }
    out
}

/// The lines of a kernel's text, from its first decorator to the next one.
fn extent(text: &str, name: &str) -> (u32, u32) {
    let def = format!("def {name}(");
    let lines: Vec<&str> = text.lines().collect();
    let start = lines
        .iter()
        .position(|l| l.trim_start().trim_start_matches("async ").starts_with(&def))
        .unwrap_or(0);
    let end =
        lines[start + 1..].iter().position(|l| l.starts_with("@") || l.starts_with("# kernel("));
    (start as u32 + 1, end.map_or(lines.len(), |e| start + 1 + e) as u32 + 1)
}

fn check(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let source = Source::new(path.file_name().unwrap().to_str().unwrap(), text.as_str());
    let host = FileHost::new(source.clone()).unwrap_or_else(|d| panic!("{}", render(&d)));
    let signatures = signatures(&text);
    assert!(!signatures.is_empty(), "{} has no `# kernel(...)` line", path.display());
    for (name, signature) in signatures {
        let kernel = host.kernel(&name).unwrap_or_else(|| panic!("no kernel `{name}`"));
        let (first, last) = extent(&text, &name);
        let wanted: Vec<(u32, &str)> = text
            .lines()
            .enumerate()
            .map(|(i, l)| (i as u32 + 1, l))
            .filter(|(i, _)| (first..last).contains(i))
            .filter_map(|(i, l)| Some((i, l.split_once("# error: ")?.1.trim())))
            .collect();
        let result = specs(&host, kernel, &signature)
            .and_then(|s| compile(&host, kernel, &s, &Options::default()));
        match (result, wanted.as_slice()) {
            (Err(d), []) => panic!("{name}: unexpected\n{}", render(&d)),
            (Ok(_), [(line, _), ..]) => panic!("{name}: line {line} should be reported"),
            (Err(d), [(line, want)]) => {
                let have = format!("[{}] {}", d.id, d.message);
                assert!(have.starts_with(want), "{name}: wanted `{want}`, have `{have}`");
                let at = outermost_line(&d, &source);
                assert_eq!(at, Some(*line), "{name}: wrong line\n{}", render(&d));
            }
            (Err(_), _) => panic!("{name}: only one error can be reported for a kernel"),
            (Ok(compiled), []) => {
                let ir = compiled.func.to_string();
                let again = naiad_ir::text::parse::<naiad_ir::tile::Tile>(&Source::new(
                    "<ir>",
                    ir.as_str(),
                ));
                let again = again.unwrap_or_else(|d| panic!("{name}: {}", render(&d)));
                naiad_ir::verify(&again).unwrap_or_else(|d| panic!("{name}: {}", render(&d)));
                assert_eq!(again.to_string(), ir, "{name}: the text does not round-trip");
                expect_ir(&text, (first, last), &name, &ir);
            }
        }
    }
}

/// The line in this file that the message is about: its own, or that of the call that led there.
fn outermost_line(d: &Diagnostic, source: &Arc<Source>) -> Option<u32> {
    let place = d.place()?;
    Arc::ptr_eq(&place.source, source).then(|| place.line())
}

fn expect_ir(text: &str, (first, last): (u32, u32), name: &str, ir: &str) {
    let mut rest = ir;
    for (i, line) in text.lines().enumerate() {
        if !(first..last).contains(&(i as u32 + 1)) {
            continue;
        }
        let Some((_, want)) = line.split_once("# ir: ") else { continue };
        let want = want.trim();
        match rest.find(want) {
            Some(at) => rest = &rest[at + want.len()..],
            None => panic!("{name}: `{want}` does not occur (in order) in\n{ir}"),
        }
    }
}

fn render(d: &Diagnostic) -> String {
    naiad_diag::render::human(d, naiad_diag::render::Style::PLAIN)
}

#[test]
fn lang() {
    for path in files(&folder("lang")) {
        check(&path);
    }
}

/// `tests/diag/<name>.py` renders to `<name>.txt` beside it. `NAIAD_BLESS=1` rewrites those.
#[test]
fn diag() {
    let bless = std::env::var_os("NAIAD_BLESS").is_some();
    for path in files(&folder("diag")) {
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let source = Source::new(path.file_name().unwrap().to_str().unwrap(), text.as_str());
        let mut out = String::new();
        match FileHost::new(source) {
            Err(d) => out = render(&d) + "\n",
            Ok(host) => {
                for (name, signature) in signatures(&text) {
                    let kernel = host.kernel(&name).unwrap_or_else(|| panic!("no kernel `{name}`"));
                    match specs(&host, kernel, &signature)
                        .and_then(|s| compile(&host, kernel, &s, &Options::default()))
                    {
                        Ok(_) => panic!("{name} compiles"),
                        Err(d) => out += &(render(&d) + "\n\n"),
                    }
                }
            }
        }
        let golden = path.with_extension("txt");
        if bless {
            std::fs::write(&golden, &out).unwrap();
        }
        let want = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(out, want, "{}: NAIAD_BLESS=1 rewrites the golden file", path.display());
    }
}
