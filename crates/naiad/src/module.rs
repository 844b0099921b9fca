//! Kernels of a `.py` file, without Python.

use crate::{Kernel, KernelOptions, Result};
use naiad_diag::{Diagnostic, Id, Source};
use naiad_front::file::{FileHost, Files};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of kernels.
pub struct Module {
    host: Arc<FileHost>,
    name: String,
}

impl Module {
    /// Reads a file of Python source; nothing in it is run. Modules that it imports are read too, where
    /// Python would find them beside it.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Module> {
        let source = read(path.as_ref())?;
        Module::new(source, |source| FileHost::with_imports(source, Beside))
    }

    /// Takes source text; `name` stands in messages. Of what it imports only Triton and `math` are known.
    pub fn from_source(name: impl Into<String>, text: impl Into<String>) -> Result<Module> {
        Module::new(Source::new(name, text), FileHost::new)
    }

    fn new(
        source: Arc<Source>,
        host: impl FnOnce(Arc<Source>) -> std::result::Result<FileHost, Box<Diagnostic>>,
    ) -> Result<Module> {
        let name = source.name.clone();
        let host = crate::guard("reading a file", || Ok(host(source)?))?;
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

fn read(path: &Path) -> Result<Arc<Source>> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path)
        .map_err(|e| Diagnostic::new(Id::BadEncoding, format!("`{name}` cannot be read: {e}")))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Diagnostic::new(
            Id::BadEncoding,
            format!("`{name}` is not UTF-8: byte {at} starts no character"),
        )
    })?;
    // Editors of some systems mark UTF-8 so; Python skips it too.
    let text = text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text);
    Ok(Source::new(name, text))
}

/// Modules beside a file: relative ones, those of the folder that a script's own modules come from, and
/// those of the package that the file is in.
struct Beside;

impl Files for Beside {
    fn module(&self, path: &str, from: &Source) -> Option<Arc<Source>> {
        let file = std::fs::canonicalize(&from.name).ok()?;
        let dots = path.bytes().take_while(|b| *b == b'.').count();
        let parts: Vec<&str> = path[dots..].split('.').filter(|p| !p.is_empty()).collect();
        let found = match parts.first() {
            Some(top) if dots == 0 => {
                let folders = file.parent().into_iter().chain(package_folder(&file, top));
                folders.into_iter().find_map(|folder| module_file(folder, &parts))
            }
            _ => module_file(file.ancestors().nth(dots)?, &parts),
        }?;
        // Named as seen from where the command runs, as the file itself is.
        let here = std::env::current_dir().unwrap_or_default();
        read(found.strip_prefix(here).unwrap_or(&found)).ok()
    }
}

/// The folder that holds the package `top`, where the file is in that.
fn package_folder<'f>(file: &'f Path, top: &str) -> Option<&'f Path> {
    let package = file.ancestors().skip(1).find(|a| a.file_name().is_some_and(|n| n == top));
    package?.parent()
}

/// The file of a module in a folder, by the parts of its name; that of the folder itself if there are none.
fn module_file(folder: &Path, parts: &[&str]) -> Option<PathBuf> {
    let path = parts.iter().fold(folder.to_path_buf(), |path, part| path.join(part));
    let alone = (!parts.is_empty()).then(|| path.with_extension("py"));
    std::iter::once(path.join("__init__.py")).chain(alone).find(|p| p.is_file())
}
