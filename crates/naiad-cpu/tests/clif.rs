//! The writer's text: `tests/lower/clif.tir`.
//!
//! A case is a title behind `////`, a function of Thread IR and, behind a line `// ----`, what the
//! writer hands to Cranelift. `NAIAD_BLESS=1` rewrites the latter.

use naiad_cpu::clif::{RuntimeTable, text};
use naiad_diag::Source;
use naiad_ir::Function;
use naiad_ir::thread::Thread;
use std::path::Path;

const CASE: &str = "//// ";
const BETWEEN: &str = "// ----\n";

#[test]
#[cfg(target_arch = "x86_64")]
fn text_is_as_it_was() {
    // The text names the instructions that this sort of machine has.
    if !is_x86_feature_detected!("sse4.1") {
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lower/clif.tir");
    let file = std::fs::read_to_string(&path).expect("the file of cases");
    // SAFETY: nothing is run.
    let table = unsafe { RuntimeTable::new(|f| 0x1000 + 16 * f as usize) };
    let mut cases = file.split(CASE);
    let mut blessed = cases.next().unwrap_or("").to_string();
    for case in cases {
        let input = case.split(BETWEEN).next().unwrap_or("").trim_end();
        let (title, source) = input.split_once('\n').expect("a title");
        let parsed = naiad_ir::text::parse::<Thread>(&Source::new("clif.tir", source));
        let func: Function<Thread> = parsed.unwrap_or_else(|e| panic!("{title}: {}", e.message));
        naiad_ir::verify(&func).unwrap_or_else(|e| panic!("{title}: {}", e.message));
        let clif = text(&func, &table).unwrap_or_else(|e| panic!("{title}: {}", e.message));
        let spaced = if blessed.ends_with("\n\n") { "" } else { "\n" };
        blessed += &format!("{spaced}{CASE}{input}\n{BETWEEN}{}\n", clif.trim_end());
    }
    if std::env::var_os("NAIAD_BLESS").is_some() {
        std::fs::write(&path, blessed).expect("the file may be written");
    } else {
        assert!(blessed == file, "run with NAIAD_BLESS=1 and look at the difference:\n{blessed}");
    }
}
