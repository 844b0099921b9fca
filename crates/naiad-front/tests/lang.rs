//! Kernels with the messages that they must give.
//!
//! A file in `tests/lang` holds kernels. A line `# kernel(name: type, NAME=value)` above a kernel is
//! one signature to compile it for. On a line that must be reported stands
//! `# error: [id] part of the message`; a kernel without such a line must compile, and its text must
//! then parse back to the same text. Below a kernel `# ir: text` lines must occur in its IR in order.

mod common;

use common::{files, folder, signatures, specs};
use naiad_diag::{Diagnostic, Source};
use naiad_front::file::FileHost;
use naiad_front::{Options, compile};
use std::path::Path;
use std::sync::Arc;

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
