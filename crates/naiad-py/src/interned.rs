//! Objects that the front end knows by number.
//!
//! A number is part of the keys of compiled variants, so it stands for one object forever and is
//! never given again, not even after the object has died.

use crate::convert::Hold;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use pyo3::{PyTraverseError, PyVisit};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct Interned(Mutex<Table>);

#[derive(Default)]
struct Table {
    slots: Vec<Held>,
    /// The number of the object that was last seen at an address.
    by_address: FxHashMap<usize, u32>,
}

pub enum Held {
    Strongly(Py<PyAny>),
    Weakly(Py<PyWeakrefReference>),
}

impl Held {
    pub fn new(obj: &Bound<'_, PyAny>, hold: Hold) -> Held {
        let weak = match hold {
            // Not every class allows references of this kind.
            Hold::Weakly => PyWeakrefReference::new(obj).ok(),
            Hold::Strongly => None,
        };
        match weak {
            Some(reference) => Held::Weakly(reference.unbind()),
            None => Held::Strongly(obj.clone().unbind()),
        }
    }

    /// None where the object has died.
    pub fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Held::Strongly(object) => Some(object.bind(py).clone()),
            Held::Weakly(reference) => reference.bind(py).upgrade(),
        }
    }

    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Held::Strongly(object) => visit.call(object),
            Held::Weakly(reference) => visit.call(reference),
        }
    }

    fn clone_ref(&self, py: Python<'_>) -> Held {
        match self {
            Held::Strongly(object) => Held::Strongly(object.clone_ref(py)),
            Held::Weakly(reference) => Held::Weakly(reference.clone_ref(py)),
        }
    }
}

impl Interned {
    /// Locked by threads that are attached to Python, and only while no Python can run.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn intern(&self, obj: &Bound<'_, PyAny>, hold: Hold) -> u32 {
        let py = obj.py();
        let address = obj.as_ptr() as usize;
        let new = Held::new(obj, hold);
        let mut table = self.lock();
        if let Some(&index) = table.by_address.get(&address)
            && let Some(held) = table.slots.get_mut(index as usize)
            && held.get(py).is_some_and(|o| o.is(obj))
        {
            if let (Held::Weakly(_), Held::Strongly(_)) = (&*held, &new) {
                *held = new;
            }
            return index;
        }
        let index = table.slots.len() as u32;
        table.slots.push(new);
        table.by_address.insert(address, index);
        index
    }

    pub fn get<'py>(&self, py: Python<'py>, index: u32) -> PyResult<Bound<'py, PyAny>> {
        let object = self.lock().slots.get(index as usize).and_then(|held| held.get(py));
        object.ok_or_else(gone)
    }

    /// The object as it is held here.
    pub fn held(&self, py: Python<'_>, index: u32) -> PyResult<Held> {
        let held = self.lock().slots.get(index as usize).map(|held| held.clone_ref(py));
        held.ok_or_else(gone)
    }

    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector waits for whoever holds the lock; if it is this thread, what is not shown
        // to the collector now merely lives until its next round.
        match self.0.try_lock() {
            Ok(table) => table.slots.iter().try_for_each(|held| held.visit(visit)),
            Err(_) => Ok(()),
        }
    }
}

fn gone() -> PyErr {
    PyKeyError::new_err("an object that this kernel was compiled for is gone")
}
