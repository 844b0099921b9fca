//! Kernels of test files: which there are, and what types they are compiled for.

use naiad_diag::Diagnostic;
use naiad_front::file::FileHost;
use naiad_front::{FnRef, HostValue, ParamSpec, inspect};
use naiad_ir::Type;
use std::path::{Path, PathBuf};

/// A folder of the repository's tests.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(name)
}

/// The Python files in a folder, by name.
pub fn files(folder: &Path) -> Vec<PathBuf> {
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
pub fn specs(
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
pub fn signatures(text: &str) -> Vec<(String, String)> {
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
