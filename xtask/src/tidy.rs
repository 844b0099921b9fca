//! `tidy`: invariants that no compiler checks.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What each crate may depend on, of ours and of others. The same table stands in ARCHITECTURE.md.
const EDGES: &[(&str, &[&str])] = &[
    ("naiad-diag", &[]),
    ("naiad-ir", &["naiad-diag"]),
    ("naiad-front", &["naiad-diag", "naiad-ir"]),
    ("naiad-interp", &["naiad-diag", "naiad-ir"]),
    ("naiad-opt", &["naiad-diag", "naiad-ir"]),
    ("naiad-kernels", &["naiad-ir"]),
    ("naiad-cpu", &["naiad-diag", "naiad-ir", "naiad-opt", "naiad-kernels"]),
    ("naiad-gpu", &["naiad-diag", "naiad-ir", "naiad-opt"]),
    ("naiad-ptx", &["naiad-ir"]),
    ("naiad-cuda", &[]),
    (
        "naiad",
        &[
            "naiad-diag",
            "naiad-ir",
            "naiad-front",
            "naiad-interp",
            "naiad-opt",
            "naiad-cpu",
            "naiad-gpu",
            "naiad-ptx",
            "naiad-cuda",
        ],
    ),
    ("naiad-cli", &["naiad"]),
    ("naiad-py", &["naiad", "naiad-cli"]),
    ("xtask", &[]),
];

/// Libraries that one crate alone may see, since their interfaces change or their weight matters.
const PRIVATE: &[(&str, &str)] = &[
    ("ruff_python_parser", "naiad-front"),
    ("ruff_python_ast", "naiad-front"),
    ("ruff_text_size", "naiad-front"),
    ("cranelift-codegen", "naiad-cpu"),
    ("cranelift-frontend", "naiad-cpu"),
    ("cranelift-jit", "naiad-cpu"),
    ("annotate-snippets", "naiad-diag"),
    ("clap", "naiad-cli"),
    ("pyo3", "naiad-py"),
];

/// Lines past which a file has to be split by meaning.
const MAX_LINES: usize = 700;

/// Crates below the API: no files, environment, clock or printing.
const PURE: &[&str] = &[
    "naiad-diag",
    "naiad-ir",
    "naiad-front",
    "naiad-interp",
    "naiad-opt",
    "naiad-kernels",
    "naiad-cpu",
    "naiad-gpu",
    "naiad-ptx",
];
const FORBIDDEN: &[&str] =
    &["std::fs", "std::env", "std::process", "println!", "eprintln!", "Instant::now", "SystemTime"];

pub fn run(root: &Path) -> ExitCode {
    let mut faults = Vec::new();
    dependencies(root, &mut faults);
    files(root, &mut faults);
    architecture(root, &mut faults);
    for fault in &faults {
        eprintln!("tidy: {fault}");
    }
    println!("tidy: {} faults", faults.len());
    ExitCode::from(u8::from(!faults.is_empty()))
}

/// Direct dependencies of each of our crates, those for tests apart.
fn metadata(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root)
        .output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let json: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let mut out = BTreeMap::new();
    for package in json["packages"].as_array().into_iter().flatten() {
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let normal =
            dependencies.filter(|d| d["kind"].is_null()).filter_map(|d| d["name"].as_str());
        let name = package["name"].as_str().unwrap_or("").to_string();
        out.insert(name, normal.map(str::to_string).collect());
    }
    out
}

fn dependencies(root: &Path, faults: &mut Vec<String>) {
    let metadata = metadata(root);
    if metadata.is_empty() {
        faults.push("`cargo metadata` gives nothing".to_string());
    }
    for (name, deps) in &metadata {
        let Some((_, allowed)) = EDGES.iter().find(|(n, _)| n == name) else {
            faults.push(format!(
                "the crate `{name}` has no row in xtask/src/tidy.rs and ARCHITECTURE.md"
            ));
            continue;
        };
        for dep in deps {
            let ours = metadata.contains_key(dep);
            if ours && !allowed.contains(&dep.as_str()) {
                faults.push(format!("`{name}` may not depend on `{dep}`"));
            }
            if let Some((_, owner)) = PRIVATE.iter().find(|(lib, _)| lib == dep)
                && owner != name
            {
                faults.push(format!("only `{owner}` may see `{dep}`, not `{name}`"));
            }
        }
    }
}

fn files(root: &Path, faults: &mut Vec<String>) {
    let mut all = Vec::new();
    for top in ["crates", "xtask", "python", "tools", "examples", "bench"] {
        walk(&root.join(top), &mut all);
    }
    all.sort();
    for path in all {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let lines = text.lines().count();
        if lines > MAX_LINES {
            faults.push(format!(
                "{shown} has {lines} lines; split it by meaning (at most {MAX_LINES})"
            ));
        }
        let pure = PURE.iter().any(|c| shown.starts_with(&format!("crates/{c}/src/")));
        if !pure {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if let Some(word) = FORBIDDEN.iter().find(|w| code.contains(**w)) {
                faults.push(format!(
                    "{shown}:{} uses `{word}`, which belongs above this crate",
                    number + 1
                ));
            }
        }
    }
}

fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && name != "__pycache__" && !name.starts_with('.') {
                walk(&path, out);
            }
        } else if name.ends_with(".rs") || name.ends_with(".py") {
            out.push(path);
        }
    }
}

/// ARCHITECTURE.md has a row ``| `crate` | … | may depend on |`` for each crate, equal to `EDGES`.
fn architecture(root: &Path, faults: &mut Vec<String>) {
    let Ok(text) = std::fs::read_to_string(root.join("ARCHITECTURE.md")) else {
        faults.push("there is no ARCHITECTURE.md".to_string());
        return;
    };
    for (name, allowed) in EDGES {
        let start = format!("| `{name}` |");
        let Some(row) = text.lines().find(|l| l.starts_with(&start)) else {
            faults.push(format!("ARCHITECTURE.md has no row for `{name}`"));
            continue;
        };
        let last = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or("");
        let said: BTreeSet<&str> = last.split('`').skip(1).step_by(2).collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        if said != allowed {
            faults.push(format!(
                "ARCHITECTURE.md says that `{name}` may depend on {said:?}; it is {allowed:?}"
            ));
        }
    }
    for word in text.split('`').skip(1).step_by(2) {
        let is_path = word.starts_with("crates/")
            || word.starts_with("docs/")
            || word.starts_with("tests/")
            || word.starts_with("python/");
        if is_path && !word.contains(['*', '<', ' ']) && !root.join(word).exists() {
            faults.push(format!("ARCHITECTURE.md names `{word}`, which does not exist"));
        }
    }
}
