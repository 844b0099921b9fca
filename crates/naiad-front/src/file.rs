//! A host for a bare `.py` file: no Python needed.

use crate::host::{FnRef, FunctionSource, Host, HostError, HostValue, ObjRef};
use naiad_diag::{Diagnostic, Source};
use std::sync::Arc;

/// The kernels and module-level names of one file.
pub struct FileHost {}

impl FileHost {
    /// Reads the module-level imports, constants and functions of a file's text.
    pub fn new(_source: Arc<Source>) -> Result<FileHost, Box<Diagnostic>> {
        todo!()
    }

    /// The names of the functions under `@triton.jit`, in the order of the text.
    pub fn kernels(&self) -> Vec<&str> {
        todo!()
    }

    pub fn kernel(&self, _name: &str) -> Option<FnRef> {
        todo!()
    }
}

impl Host for FileHost {
    fn source(&self, _: FnRef) -> Result<FunctionSource, HostError> {
        todo!()
    }
    fn resolve(&self, _: FnRef, _: &str) -> Result<Option<HostValue>, HostError> {
        todo!()
    }
    fn attribute(&self, _: ObjRef, _: &str) -> Result<Option<HostValue>, HostError> {
        todo!()
    }
    fn default(&self, _: FnRef, _: &str) -> Result<HostValue, HostError> {
        todo!()
    }
    fn call(&self, _: ObjRef, _: &[HostValue], _: &[(String, HostValue)]) -> Result<HostValue, HostError> {
        todo!()
    }
}
