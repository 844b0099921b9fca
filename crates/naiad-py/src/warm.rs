//! Launches like those before, which nearly all are: the hot path.
//!
//! ```text
//!   call --> as many arguments, the same keywords, the same constants? --> run-time values --> launch
//!                |  no Python runs                                            |  the rules of any launch
//!                '-- no ------------------ the long way ------------ no ------'
//! ```
//!
//! What is kept of a launch is which argument of the call is whose, and the variant that came of it. Sound is
//! that as nothing but what is compared here can change the outcome. Keywords, options and constants are
//! compared as objects that never change; each is held, so that none of another value can get its address.
//! Run-time values are read anew and judged by the rules of any launch, and must become what they became.
//! What the kernel reads of its surroundings is watched as for any launch.

use crate::call::Call;
use crate::compiled::PyCompiled;
use crate::convert::{int, is_a, jit_function_class};
use crate::dtype::DType;
use crate::kernel::{PyKernel, Ready};
use crate::tensor::Trouble;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};
use pyo3::{Borrowed, PyTraverseError, PyVisit};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many kinds of launches of one kernel are kept, the latest first.
const MOST: usize = 8;

#[derive(Default)]
pub struct Warm(Mutex<Vec<Arc<Kind>>>);

/// What is kept of a launch.
struct Kind {
    /// How many arguments are given by position.
    positional: usize,
    /// The names of the others.
    names: Vec<Py<PyString>>,
    /// Where in the call options and constants stand, and which they are.
    constants: Vec<(usize, Constant)>,
    /// The other parameters, in their order, each with what it is given.
    values: Vec<(usize, Given)>,
    ready: Ready,
    /// What the launch returned.
    compiled: Py<PyCompiled>,
}

/// An object that stays as it is.
struct Constant(Py<PyAny>);

enum Given {
    /// At this place in the call.
    Argument(usize),
    Default(Py<PyAny>),
}

impl Warm {
    /// Locked by threads that are attached to Python, and only while no Python can run.
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Kind>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The launch that a call asks for, if it is like one before, with what that returned. An error is one
    /// that an argument has raised, as it would the long way; to read it again may raise none.
    pub fn launch<'py>(
        &self,
        kernel: &PyKernel,
        py: Python<'py>,
        call: &Call<'_, 'py>,
    ) -> PyResult<Option<(naiad::Launch, Bound<'py, PyCompiled>)>> {
        let mut from = 0;
        // Not locked while values are read, which may run Python.
        while let Some((at, kind)) = self.alike(call, from) {
            if let Some(launch) = kind.launch(kernel, py, call)? {
                return Ok(Some((launch, kind.compiled.bind(py).clone())));
            }
            from = at + 1;
        }
        Ok(None)
    }

    /// The first of those from a place on that have the form and the constants of a call.
    fn alike(&self, call: &Call<'_, '_>, from: usize) -> Option<(usize, Arc<Kind>)> {
        let kinds = self.lock();
        let at = (from..kinds.len()).find(|&at| kinds[at].is_of(call))?;
        Some((at, kinds[at].clone()))
    }

    /// Keeps what a launch of this call came to.
    pub fn remember<'py>(
        &self,
        kernel: &PyKernel,
        call: &Call<'_, 'py>,
        ready: Ready,
        compiled: &Bound<'py, PyCompiled>,
    ) {
        // What can never be seen to hold at a glance is not worth keeping.
        if !ready.holds(&kernel.core) {
            return;
        }
        let Some(kind) = Kind::new(kernel, call, ready, compiled) else { return };
        let mut kinds = self.lock();
        kinds.insert(0, Arc::new(kind));
        let kept = kinds.len().min(MOST);
        let dropped = kinds.split_off(kept);
        drop(kinds);
        drop(dropped);
    }

    pub fn clear(&self) {
        let dropped = std::mem::take(&mut *self.lock());
        drop(dropped);
    }

    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // If this thread holds the lock, what is not shown now lives until the collector's next round.
        let Ok(kinds) = self.0.try_lock() else { return Ok(()) };
        for kind in &*kinds {
            kind.names.iter().try_for_each(|name| visit.call(name))?;
            kind.constants.iter().try_for_each(|(_, constant)| visit.call(&constant.0))?;
            for (_, given) in &kind.values {
                if let Given::Default(object) = given {
                    visit.call(object)?;
                }
            }
            visit.call(&kind.compiled)?;
        }
        Ok(())
    }
}

impl Kind {
    /// None where something counts that may be another value in the same object.
    fn new<'py>(
        kernel: &PyKernel,
        call: &Call<'_, 'py>,
        ready: Ready,
        compiled: &Bound<'py, PyCompiled>,
    ) -> Option<Kind> {
        let signature = kernel.core.signature();
        let params = &signature.params;
        if params.iter().any(|p| p.info.variadic) {
            return None;
        }
        let mut given: Vec<Option<usize>> = vec![None; params.len()];
        let mut constants = Vec::new();
        let positional = call.positional();
        given.iter_mut().take(positional).enumerate().for_each(|(i, slot)| *slot = Some(i));
        for (i, name) in call.names().iter().enumerate() {
            match signature.index_of(name.to_str().ok()?) {
                Some(param) => given[param] = Some(positional + i),
                None => {
                    constants.push((positional + i, Constant::new(call.values()[positional + i])?))
                }
            }
        }
        let mut values = Vec::with_capacity(params.len());
        for (index, param) in params.iter().enumerate() {
            let argument = given[index];
            let constant = argument
                .filter(|_| param.info.is_constexpr)
                .and_then(|at| Some((at, Constant::new(call.values()[at])?)));
            match (constant, argument) {
                (Some(constant), _) => constants.push(constant),
                (None, Some(at)) => values.push((index, Given::Argument(at))),
                (None, None) => {
                    let default = kernel.defaults[index].as_ref()?.bind(compiled.py());
                    // A constant that the kernel holds is what it was.
                    if !param.info.is_constexpr || Constant::new(default.as_borrowed()).is_none() {
                        values.push((index, Given::Default(default.clone().unbind())));
                    }
                }
            }
        }
        Some(Kind {
            positional,
            names: call.names().iter().map(|name| Bound::clone(name).unbind()).collect(),
            constants,
            values,
            ready,
            compiled: compiled.clone().unbind(),
        })
    }

    /// Whether a call has the same form and the same constants. Runs no Python.
    fn is_of(&self, call: &Call<'_, '_>) -> bool {
        self.positional == call.positional()
            && self.names.len() == call.names().len()
            && self.names.iter().zip(call.names()).all(|(then, now)| now.is(then))
            && self.constants.iter().all(|(at, constant)| constant.is(call.values()[*at]))
    }

    /// The launch, if its values become what they became.
    fn launch<'py>(
        &self,
        kernel: &PyKernel,
        py: Python<'py>,
        call: &Call<'_, 'py>,
    ) -> PyResult<Option<naiad::Launch>> {
        let Some(mut again) = self.ready.again(&kernel.core) else { return Ok(None) };
        for (param, given) in &self.values {
            let is_constexpr = kernel.core.signature().params[*param].info.is_constexpr;
            let object = match given {
                Given::Argument(at) => &call.values()[*at],
                Given::Default(object) => object.bind(py),
            };
            let value = match kernel.value(object, is_constexpr) {
                Ok(value) => value,
                // What is wrong with it, the long way tells.
                Err(Trouble::Unfit { .. }) => return Ok(None),
                Err(trouble) => return Err(kernel.refuse_argument(object, *param, trouble)),
            };
            if !again.give(*param, value) {
                return Ok(None);
            }
        }
        Ok(again.launch())
    }
}

impl Constant {
    /// None where an object of this class may change, or be equal to others in its own way.
    fn new(object: Borrowed<'_, '_, PyAny>) -> Option<Constant> {
        let fixed = object.is_none()
            || object.is_exact_instance_of::<PyBool>()
            || object.is_exact_instance_of::<PyInt>()
            || object.is_exact_instance_of::<PyFloat>()
            || object.is_exact_instance_of::<PyString>()
            || object.is_exact_instance_of::<DType>()
            // Stands for itself; what it says is watched.
            || jit_function_class(object.py()).is_ok_and(|class| is_a(&object, class));
        fixed.then(|| Constant(Bound::clone(&object).unbind()))
    }

    fn is(&self, now: Borrowed<'_, '_, PyAny>) -> bool {
        let then = self.0.bind_borrowed(now.py());
        if now.is(then) {
            return true;
        }
        // What is computed for each launch is a new object.
        if let (Ok(then), Ok(now)) = (then.cast_exact::<PyInt>(), now.cast_exact::<PyInt>()) {
            return matches!((int(&then), int(&now)), (Ok(a), Ok(b)) if a == b);
        }
        if let (Ok(then), Ok(now)) = (then.cast_exact::<PyFloat>(), now.cast_exact::<PyFloat>()) {
            return then.value().to_bits() == now.value().to_bits();
        }
        match (then.cast_exact::<PyString>(), now.cast_exact::<PyString>()) {
            (Ok(then), Ok(now)) => {
                matches!((then.to_str(), now.to_str()), (Ok(a), Ok(b)) if a == b)
            }
            _ => false,
        }
    }
}
