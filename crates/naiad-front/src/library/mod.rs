//! Functions of the language that are written in the language: `standard.py`, compiled like a user's.
//!
//! They stand beside the user's functions behind one [`Host`], with numbers of their own, so that the
//! rest of the front end inlines them as it does any other.

use crate::file::FileHost;
use crate::host::{FnRef, FunctionSource, Host, HostError, HostValue, ObjRef};
use naiad_diag::Source;
use std::sync::OnceLock;

const TEXT: &str = include_str!("standard.py");

/// Numbers of the library's functions and objects begin here; a host counts its own up from 0.
const FIRST: u32 = 1 << 31;

fn library() -> &'static FileHost {
    static LIBRARY: OnceLock<FileHost> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Source::new("naiad/library/standard.py", TEXT);
        FileHost::new(source).expect("the library is Python, which the tests hold")
    })
}

/// The library's function of this name.
pub(crate) fn function(name: &str) -> Option<FnRef> {
    library().kernel(name).map(|f| FnRef(f.0 + FIRST))
}

/// The parameters of a function, as a row of the table of names writes them.
pub(crate) fn params(name: &str) -> String {
    let info = library().kernel(name).and_then(|f| crate::inspect(library(), f).ok());
    let params = info.map(|info| info.params).unwrap_or_default();
    let write =
        |p: &crate::ParamInfo| format!("{}{}", p.name, if p.has_default { "=" } else { "" });
    params.iter().map(write).collect::<Vec<_>>().join(", ")
}

/// A host, and beside it the library.
pub(crate) struct WithLibrary<'h>(pub &'h dyn Host);

impl WithLibrary<'_> {
    fn of_function(&self, f: FnRef) -> (&dyn Host, FnRef, bool) {
        match f.0.checked_sub(FIRST) {
            Some(own) => (library(), FnRef(own), true),
            None => (self.0, f, false),
        }
    }

    fn of_object(&self, o: ObjRef) -> (&dyn Host, ObjRef, bool) {
        match o.0.checked_sub(FIRST) {
            Some(own) => (library(), ObjRef(own), true),
            None => (self.0, o, false),
        }
    }
}

/// The library's answer with the numbers that it has here.
fn renumbered(value: HostValue, is_library: bool) -> HostValue {
    if !is_library {
        return value;
    }
    match value {
        HostValue::Function(f) => HostValue::Function(FnRef(f.0 + FIRST)),
        HostValue::Object(o, what) => HostValue::Object(ObjRef(o.0 + FIRST), what),
        HostValue::Constexpr(inner) => HostValue::Constexpr(Box::new(renumbered(*inner, true))),
        HostValue::Tuple { items, names } => {
            let items = items.into_iter().map(|v| renumbered(v, true)).collect();
            HostValue::Tuple { items, names }
        }
        other => other,
    }
}

impl Host for WithLibrary<'_> {
    fn source(&self, function: FnRef) -> Result<FunctionSource, HostError> {
        let (host, f, _) = self.of_function(function);
        host.source(f)
    }

    fn resolve(&self, function: FnRef, name: &str) -> Result<Option<HostValue>, HostError> {
        let (host, f, own) = self.of_function(function);
        Ok(host.resolve(f, name)?.map(|v| renumbered(v, own)))
    }

    fn attribute(&self, object: ObjRef, name: &str) -> Result<Option<HostValue>, HostError> {
        let (host, o, own) = self.of_object(object);
        Ok(host.attribute(o, name)?.map(|v| renumbered(v, own)))
    }

    fn default(&self, function: FnRef, param: &str) -> Result<HostValue, HostError> {
        let (host, f, own) = self.of_function(function);
        Ok(renumbered(host.default(f, param)?, own))
    }

    fn call(
        &self,
        object: ObjRef,
        args: &[HostValue],
        kwargs: &[(String, HostValue)],
    ) -> Result<HostValue, HostError> {
        let (host, o, own) = self.of_object(object);
        Ok(renumbered(host.call(o, args, kwargs)?, own))
    }
}
