//! Loops that go through memory and carry a tile, as random kernels about memory have them: one, or two
//! that read the same.

use super::{Base, Gen, Val, numel};
use naiad_ir::Scalar;
use std::fmt::Write;

/// What a loop goes through.
struct Way {
    base: Base,
    dims: Vec<usize>,
    /// Of a round's elements, from its first.
    index: String,
    bounds: [String; 3],
    mask: Mask,
    other: Option<i128>,
}

enum Mask {
    None,
    Any,
    /// The elements that compare so with the upper bound.
    Bound(&'static str),
}

impl Gen {
    /// A tile that takes in what each round loads, element by element, and what is made of it.
    pub(super) fn stream(&mut self) {
        let fits = |s: Scalar| s.is_int() || matches!(s, Scalar::F32 | Scalar::F64);
        let bases: Vec<_> = self
            .bases
            .iter()
            .filter(|b| fits(b.elem) && !(self.parallel && b.written))
            .cloned()
            .collect();
        if self.depth > 1 || bases.is_empty() {
            return;
        }
        let base = bases[self.r.below(bases.len())].clone();
        let dims = self.r.pick(&[&[64][..], &[128], &[256], &[1024], &[4, 64], &[64, 2]]).to_vec();
        let strides: Vec<i128> = (1..=dims.len()).map(|d| numel(&dims[d..]) as i128).collect();
        let index = self.sum_of_axes(&dims, &strides, None, Scalar::I32);
        let (lower, step) =
            self.r.pick(&[(0, 16), (0, 64), (0, 256), (0, 256), (5, 32), (-3, 16), (0, 3)]);
        let (lower, step) = (self.number(lower, Scalar::I32), self.number(step, Scalar::I32));
        let upper = match self.r.below(3) {
            0 => {
                let end = self.r.pick(&[0, 1, 64, 100, 257, 600]);
                self.number(end, Scalar::I32)
            }
            _ => "%n".to_string(),
        };
        let mask = match self.r.below(4) {
            0 => Mask::None,
            1 => Mask::Any,
            _ => Mask::Bound(self.r.pick(&["lt", "lt", "le", "ge"])),
        };
        let other = self.r.pick(&[None, Some(0), Some(1), Some(-1)]);
        let (index, bounds) = (index.name, [lower, upper, step]);
        let way = Way { base, dims, index, bounds, mask, other };
        self.pass(&way);
        if self.r.below(2) == 0 {
            if self.r.below(2) == 0 {
                self.store();
            }
            self.pass(&way);
        }
    }

    /// One loop, and mostly a reduction of what it carries.
    fn pass(&mut self, way: &Way) {
        let Way { base, dims, index, bounds: [lower, upper, step], .. } = way;
        let start = match self.r.below(4) {
            0 => self.typed(base.elem, dims),
            1 => self.filled(1, base.elem, dims),
            _ => self.filled(0, base.elem, dims),
        };
        let carried = Val { name: start, elem: base.elem, dims: dims.clone() };
        let carried = self.small(&carried);
        let (iv, param) = (self.fresh(), self.fresh());
        let (body, ()) = self.region(|g| {
            let first = g.splat(&iv, "i32", dims);
            let at = g.binary("add", index, &first, Scalar::I32, dims);
            let mask = match way.mask {
                Mask::None => String::new(),
                Mask::Any => format!(" mask={}", g.mask(dims)),
                Mask::Bound(p) => {
                    let end = g.splat(upper, "i32", dims);
                    let mask = g.op(&format!("compare.{p} {at}, {end}"), "i1", dims);
                    format!(" mask={mask}")
                }
            };
            let other = match way.other.filter(|_| !mask.is_empty()) {
                Some(other) => format!(" other={}", g.filled(other, base.elem, dims)),
                None => String::new(),
            };
            let pointer = format!("*{}", base.elem);
            let tile = g.splat(&base.name, &pointer, dims);
            let address = g.op(&format!("ptr_add {tile}, {at}"), &pointer, dims);
            let loaded = g.op(&format!("load {address}{mask}{other}"), base.elem.name(), dims);
            let mut x = Val { name: loaded, elem: base.elem, dims: dims.clone() };
            x = g.small(&x);
            let f = g.r.pick(&["add", "add", "max", "min"]);
            let (a, b) = match g.r.below(3) {
                0 => (&x.name, &param),
                _ => (&param, &x.name),
            };
            let next = g.binary(f, a, b, base.elem, dims);
            let _ = writeln!(g.text, "  yield values=[{next}]");
        });
        let types = [Val { name: String::new(), ..carried.clone() }];
        let shown = super::tile(base.elem.name(), dims);
        let op = format!(
            "for {lower}, {upper}, {step} inits=[{}] {{\n  ^({iv}: i32, {param}: {shown}):\n{body}  }}",
            carried.name
        );
        self.with_results(&op, &types, None);
        let Some(sums) = self.values.last().cloned() else { return };
        if self.r.below(4) == 0 {
            return;
        }
        // Nobody else sees the sums then, mostly.
        self.values.pop();
        let axis = self.r.below(dims.len());
        let mut to = dims.clone();
        to.remove(axis);
        let body = self.combination(base.elem);
        let op = format!("reduce inputs=[{}] axis={axis} {body}", sums.name);
        let name = self.op(&op, base.elem.name(), &to);
        self.keep(name, base.elem, &to);
    }
}
