//! Views with an order of their own that a kernel addresses as if they were contiguous.
//!
//! A run of neighbouring elements of memory that is longer than the view's unit-stride axis goes on in
//! the next row, column or whatever the memory's order has there, which for a transposed view is not the
//! next element. That is right where all tensors of a shape have the same strides, as in elementwise
//! kernels, so it is a note, and only where they differ.

use super::{Checked, Checker, P, checker, report_memory};
use crate::access::Target;
use crate::exec::{Exec, Shared};
use crate::fault::Site;
use crate::memory::{Memory, Origin, Tensor};
use crate::tile::Affine;
use naiad_ir::{Inst, Scalar};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// Arguments whose views are not in row-major order, and where they were read or written flat.
pub struct Views {
    odd: Vec<Option<Axis>>,
    met: Mutex<FxHashMap<u32, (Inst, u64)>>,
}

/// The unit-stride axis of a view, in elements.
#[derive(Copy, Clone)]
struct Axis {
    extent: i128,
    /// The stride of the next axis.
    next: i128,
}

impl Views {
    pub fn new(memory: &Memory<'_>) -> Views {
        let odd = memory.tensors.iter().map(|t| t.as_ref().and_then(axis)).collect();
        Views { odd, met: Mutex::default() }
    }
}

/// The unit-stride axis of a view that is not in row-major order.
fn axis(t: &Tensor<'_>) -> Option<Axis> {
    let view = t.view.as_ref()?;
    let mut axes: Vec<(i128, i128)> = view
        .shape
        .iter()
        .zip(&view.strides)
        .filter(|&(&n, &s)| n > 1 && s != 0)
        .map(|(&n, &s)| (s as i128, n as i128))
        .collect();
    let in_order = axes.windows(2).all(|w| w[0].0 >= w[1].0);
    if axes.len() < 2 || in_order || axes.iter().any(|a| a.0 < 0) {
        return None;
    }
    axes.sort_unstable();
    (axes[0].0 == 1).then(|| Axis { extent: axes[0].1, next: axes[1].0 })
}

/// Notes an access that runs past the end of the unit-stride axis.
pub fn touch(exec: &Exec<'_, Checked>, p: &P, inst: Inst, t: &Target<'_>) {
    let Origin::Arg(arg) = t.origin else { return };
    let views = &checker(exec).views;
    let Some(axis) = views.odd.get(arg as usize).copied().flatten() else { return };
    let Some(tensor) = exec.shared.memory.tensor(t.origin) else { return };
    let size = t.elem.size() as i64;
    let long: Vec<usize> = (0..t.shape.rank()).filter(|&d| t.shape.dim(d) > 1).collect();
    let Some(steps) = Affine::of(t.addresses, Scalar::I64, &t.shape) else { return };
    if long.len() != 1 || steps.steps[long[0]] != size {
        return;
    }
    let Some((lo, hi)) = super::regions::span(t) else { return };
    let at = (lo - tensor.address as i128) / i128::from(size);
    let n = (hi - lo) / i128::from(size);
    if at.rem_euclid(axis.next) + n <= axis.extent {
        return;
    }
    let mut met = views.met.lock().unwrap_or_else(PoisonError::into_inner);
    let place = met.entry(arg).or_insert((inst, p.number));
    if p.number < place.1 {
        *place = (inst, p.number);
    }
}

/// Says so where another tensor of the same shape has other strides.
pub fn finish(checker: &Checker, shared: &Shared<'_>) {
    let met = checker.views.met.lock().unwrap_or_else(PoisonError::into_inner);
    let mut met: Vec<_> = met.iter().map(|(&arg, &place)| (arg, place)).collect();
    met.sort_unstable_by_key(|m| m.0);
    for (arg, (inst, number)) in met {
        let Some(t) = shared.memory.tensor(Origin::Arg(arg)) else { continue };
        let Some(view) = &t.view else { continue };
        let others = shared.memory.tensors.iter().flatten().filter_map(|o| o.view.as_ref());
        let differ = others.into_iter().any(|o| o.shape == view.shape && o.strides != view.strides);
        if differ {
            let site = Site { func: &shared.code.func, inst, program: [0; 3], number };
            shared.findings.add(&site, report_memory::flat(&site, t, &view.shape, &view.strides));
        }
    }
}
