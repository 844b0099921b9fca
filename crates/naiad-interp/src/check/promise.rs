//! Promises about runs of numbers: `tl.multiple_of`, `tl.max_contiguous`, `tl.max_constancy`.

use super::{Checked, P, report};
use crate::casts;
use crate::engine::{self, In};
use crate::exec::{Exec, read};
use crate::loops;
use crate::tile::Tile;
use naiad_diag::{Id, Severity};
use naiad_ir::scalar::Rounding;
use naiad_ir::tile::HintKind;
use naiad_ir::{Inst, Scalar, Shape, Value};

pub fn check(
    exec: &Exec<'_, Checked>,
    p: &P,
    inst: Inst,
    src: Value,
    kind: HintKind,
    values: &[u32],
) {
    let code = exec.shared.code;
    let ty = code.func.ty(src);
    let site = exec.site(p, inst);
    if p.state.private.is_some()
        || !exec.shared.findings.wants(&site, Id::FalseHint, Severity::Warning)
    {
        return;
    }
    let value = read(code, p, src);
    let scalar = code.scalar(src);
    // Runs of addresses are counted in elements.
    let step = ty.elem.pointer().map_or(1, |p| p.pointee.size() as i64);
    let Some((lane, seen)) = broken(&value.reg.tile, scalar, &ty.shape, kind, values, step) else {
        return;
    };
    // Padding is nobody's number.
    if value.lanes.at(lane, &ty.shape).is_flagged() {
        return;
    }
    exec.shared.findings.add(&site, report::false_hint(&site, kind, values, &ty.shape, lane, seen));
}

/// The first lane in which a promise does not hold, with its number.
fn broken(
    tile: &Tile,
    ty: Scalar,
    shape: &Shape,
    kind: HintKind,
    values: &[u32],
    step: i64,
) -> Option<(usize, i64)> {
    if let (Some(image), HintKind::MultipleOf) = (tile.uniform(), kind) {
        let x = crate::tile::number(ty, image);
        let all = values.iter().all(|&v| v == 0 || x % i128::from(v) == 0);
        return (!all).then_some((0, x as i64));
    }
    // How far an address is aligned is no matter of elements.
    if shape.is_scalar() || step > 1 && kind == HintKind::MultipleOf {
        return None;
    }
    let how = casts::cast(ty, Scalar::I64, Rounding::Nearest, loops::wide());
    let wide = engine::cast(how, In { tile, ty }, Scalar::I64, shape).dense(Scalar::I64, shape);
    // SAFETY: the tile has all lanes.
    let x = unsafe { std::slice::from_raw_parts(wide.at(8).cast::<i64>(), shape.numel()) };
    for (&v, (n, stride)) in values.iter().zip(shape.dims().zip(shape.strides())) {
        let v = v.max(1) as usize;
        for i in (0..shape.numel()).filter(|_| n > 1) {
            let at = i / stride % n;
            let before = (at > 0).then(|| x[i - stride]);
            let holds = match kind {
                // Asked of where runs begin.
                HintKind::MultipleOf => {
                    before.is_some_and(|b| x[i] == b.wrapping_add(step)) || x[i] % v as i64 == 0
                }
                HintKind::MaxContiguous => {
                    at % v == 0 || before.is_some_and(|b| x[i] == b.wrapping_add(step))
                }
                HintKind::MaxConstancy => at % v == 0 || before == Some(x[i]),
            };
            if !holds {
                return Some((i, x[i]));
            }
        }
    }
    None
}
