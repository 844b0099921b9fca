//! Machine code without a GPU, by NVIDIA's assembler where it is installed.

use naiad::{Diagnostic, Error, Id, Ptx, Result};
use object::{Object, ObjectSection};
use std::process::Command;

/// Machine code, with what the assembler says of it.
pub struct Assembled {
    pub cubin: Vec<u8>,
    said: String,
}

/// Has `ptxas` on the PATH assemble a kernel.
pub fn run(ptx: &Ptx) -> Result<Assembled> {
    let folder = std::env::temp_dir().join(format!("naiad-ptxas-{}", std::process::id()));
    let assembled = (|| {
        std::fs::create_dir_all(&folder)?;
        let (from, to) = (folder.join("kernel.ptx"), folder.join("kernel.cubin"));
        std::fs::write(&from, &ptx.text)?;
        let chip = format!("-arch={}", target(&ptx.text));
        let done = Command::new("ptxas")
            .args(["-v", "-lineinfo", &chip, "-o"])
            .arg(&to)
            .arg(&from)
            .output()?;
        let said = String::from_utf8_lossy(&done.stderr) + String::from_utf8_lossy(&done.stdout);
        match done.status.success() {
            true => Ok(Ok(Assembled { cubin: std::fs::read(&to)?, said: said.into_owned() })),
            false => Ok(Err(said.into_owned())),
        }
    })();
    // It is in the folder for what is temporary: whoever cleans up there will.
    let _ = std::fs::remove_dir_all(&folder);
    match assembled {
        Ok(Ok(assembled)) => Ok(assembled),
        Ok(Err(said)) => {
            let report = Diagnostic::new(Id::Internal, "`ptxas` refuses the PTX of the kernel");
            Err(report.note(said).into())
        }
        Err(e) => {
            let e: std::io::Error = e;
            let message = format!("`ptxas` cannot be run: {e}");
            let help = "install CUDA's toolkit, or `pip install nvidia-cuda-nvcc`, and put the folder of `ptxas` on the PATH; a kernel that was launched on a GPU says the same by `n_regs`, `n_spills` and `asm`";
            Err(Error::from(Diagnostic::new(Id::Gpu, message).help(help)))
        }
    }
}

/// What a kernel uses.
pub fn stats(ptx: &Ptx) -> Result<String> {
    let Assembled { cubin, said } = run(ptx)?;
    let number = |before: &str, after: &str| {
        let at = said.find(after).map_or("", |end| &said[..end]);
        let digits = at.rsplit(|c: char| !c.is_ascii_digit()).find(|w| !w.is_empty());
        digits.filter(|_| said.contains(before)).unwrap_or("0").to_string()
    };
    let code = &ptx.code;
    let mut out = format!("{} for {}\n", code.func.name, target(&ptx.text));
    for (what, value) in [
        ("threads of a block", code.threads.to_string()),
        ("programs of a block", code.programs.to_string()),
        ("registers of a thread", number("Used", " registers")),
        ("bytes of stack", number("stack", " bytes stack frame")),
        ("bytes spilled", number("spill", " bytes spill stores")),
        ("bytes reloaded", number("spill", " bytes spill loads")),
        ("bytes of shared memory", code.shared_bytes.to_string()),
        ("bytes of code", code_bytes(&cubin).to_string()),
    ] {
        out += &format!("{what:<24}{value:>8}\n");
    }
    Ok(out)
}

/// The instructions, without names, lines and what else stands in the file.
fn code_bytes(cubin: &[u8]) -> u64 {
    let Ok(file) = object::File::parse(cubin) else { return 0 };
    let code = file.sections().filter(|s| s.name().is_ok_and(|name| name.starts_with(".text.")));
    code.map(|section| section.size()).sum()
}

/// The chip that a text is for.
fn target(ptx: &str) -> &str {
    let line = ptx.lines().find_map(|line| line.trim().strip_prefix(".target"));
    line.and_then(|names| names.split([',', ' ']).find(|n| !n.is_empty())).unwrap_or("sm_90")
}
