//! Kernels of a `.py` file, without Python.

use crate::{Kernel, KernelOptions, Result};
use naiad_diag::{Diagnostic, Id, Source};
use naiad_front::file::FileHost;
use std::path::Path;
use std::sync::Arc;

/// A file of kernels.
pub struct Module {
    host: Arc<FileHost>,
    name: String,
}

impl Module {
    /// Reads a file of Python source; nothing in it is run.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Module> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|e| {
            Diagnostic::new(Id::BadEncoding, format!("`{name}` cannot be read: {e}"))
        })?;
        let text = String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            Diagnostic::new(
                Id::BadEncoding,
                format!("`{name}` is not UTF-8: byte {at} starts no character"),
            )
        })?;
        // Editors of some systems mark UTF-8 so; Python skips it too.
        let text = text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text);
        Module::from_source(name, text)
    }

    /// Takes source text; `name` stands in messages.
    pub fn from_source(name: impl Into<String>, text: impl Into<String>) -> Result<Module> {
        let name = name.into();
        let source = Source::new(name.clone(), text);
        let host = crate::guard("reading a file", || Ok(FileHost::new(source)?))?;
        Ok(Module { host: Arc::new(host), name })
    }

    /// The names of the kernels, in the order of the text.
    pub fn kernels(&self) -> Vec<&str> {
        self.host.kernels()
    }

    pub fn kernel(&self, name: &str) -> Result<Kernel<FileHost>> {
        let Some(function) = self.host.kernel(name) else {
            return Err(self.no_kernel(name).into());
        };
        Kernel::new(self.host.clone(), function, KernelOptions::default())
    }

    fn no_kernel(&self, name: &str) -> Diagnostic {
        let d = Diagnostic::new(Id::NoKernel, format!("`{}` has no kernel `{name}`", self.name));
        let kernels = self.kernels();
        match naiad_front::names::nearest(name, kernels.iter().copied()) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None if kernels.is_empty() => d.note("no function in it is under `@triton.jit`"),
            None => d.note(format!("its kernels are {}", kernels.join(", "))),
        }
    }
}
