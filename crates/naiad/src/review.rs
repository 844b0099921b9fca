//! A kernel reviewed without a launch.

use crate::{Compiled, Diagnostic};
use naiad_opt::interval::Interval;
use naiad_opt::ranges::{Inputs, Param};
use std::collections::BTreeMap;

/// What the source declares of a kernel's launches.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Declared {
    /// The largest numbers that arguments may be, by the names of their parameters. They are sizes, so
    /// the smallest is 0.
    pub at_most: BTreeMap<String, i128>,
    /// Programs along each axis.
    pub grid: Option<[u32; 3]>,
}

/// What can be said of a compiled kernel without a launch, besides what compiling it found.
pub fn review(compiled: &Compiled, declared: &Declared) -> Vec<Diagnostic> {
    let func = &compiled.func;
    let params = func.param_names.iter().map(|name| Param {
        range: declared.at_most.get(name).map(|&most| Interval::new(0, most)),
        divisible: None,
    });
    let inputs = Inputs { grid: declared.grid, params: params.collect() };
    naiad_opt::lint(func, &inputs)
}
