//! The assembler that texts are tried with.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A `ptxas`. It needs no GPU.
pub struct Assembler {
    path: PathBuf,
}

impl Assembler {
    /// The one that `NAIAD_PTXAS` names, or that `make ptxas` installed. Where there is none, says so.
    pub fn find() -> Option<Assembler> {
        if let Some(path) = std::env::var_os("NAIAD_PTXAS") {
            return Some(Assembler { path: path.into() });
        }
        let libraries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
        let mut folders: Vec<PathBuf> = inside(&libraries)
            .iter()
            .flat_map(|python| inside(&python.join("site-packages/nvidia")))
            .collect();
        folders.sort();
        let found = folders.into_iter().map(|f| f.join("bin/ptxas")).find(|p| p.exists());
        if found.is_none() {
            let note = "skipped: there is no ptxas; `make ptxas` installs it\n";
            let _ = std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes());
        }
        found.map(|path| Assembler { path })
    }

    /// `13.5.37`.
    pub fn version(&self) -> String {
        let output = Command::new(&self.path).arg("--version").output();
        let said = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
        let said = said.unwrap_or_default();
        let version = said.split_whitespace().find_map(|word| word.strip_prefix('V'));
        version.unwrap_or("of no known version").to_string()
    }

    /// What the text's kernel uses on this target, or what is wrong with the text.
    pub fn run(&self, ptx: &str, capability: u32) -> Result<String, String> {
        self.start(ptx, capability, &["-v"]).map(|said| usage(&said))
    }

    /// What is wrong with the text and its lines, without any effort to make good code of it.
    pub fn accepts(&self, ptx: &str, capability: u32) -> Result<(), String> {
        self.start(ptx, capability, &["-O0", "-lineinfo"]).map(drop)
    }

    fn start(&self, ptx: &str, capability: u32, options: &[&str]) -> Result<String, String> {
        let folder = std::env::temp_dir();
        let id = std::thread::current().id();
        let path = folder.join(format!("naiad-{}-{id:?}.ptx", std::process::id()));
        std::fs::write(&path, ptx).map_err(|e| e.to_string())?;
        let output = Command::new(&self.path)
            .arg(format!("-arch=sm_{capability}"))
            .args(options)
            .args(["-o", "/dev/null"])
            .arg(&path)
            .output();
        let _ = std::fs::remove_file(&path);
        let output = output.map_err(|e| format!("{}: {e}", self.path.display()))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        if output.status.success() && !said.contains("warning") { Ok(said) } else { Err(said) }
    }
}

fn inside(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| e.path()).collect()
}

/// `24 registers`, and what there should be none of: stack and spills.
fn usage(said: &str) -> String {
    // Behind the names of the kernels, which may be anything.
    let said = said.split_once("Function properties for").map_or(said, |(_, said)| said);
    let said = said.split_once('\n').map_or(said, |(_, said)| said);
    let number = |what: &str| {
        let before = said.split_once(what)?.0;
        before.split_whitespace().next_back().filter(|n| *n != "0")
    };
    let all = ["registers", "barriers", "bytes smem", "bytes stack frame", "bytes spill stores"];
    let parts = all.iter().filter_map(|what| Some(format!("{} {what}", number(what)?)));
    parts.collect::<Vec<_>>().join(", ")
}
