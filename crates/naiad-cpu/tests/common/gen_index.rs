//! Indices, masks and addresses of random kernels about memory.

use super::{Base, Gen, Index, PART, Place, Use, Val, numel, shape};
use naiad_ir::Scalar;

/// A stride that the kernel gets as an argument.
const RUNTIME: i128 = 1 << 100;

impl Gen {
    /// Indices along one axis.
    pub(super) fn axis(&mut self, n: usize, elem: Scalar) -> String {
        let start = match self.r.below(8) {
            0 => self.r.below(5),
            _ => 0,
        };
        let v = self.op(&format!("arange start={start} end={}", start + n), "i32", &[n]);
        match elem {
            Scalar::I32 => v,
            _ => self.op(&format!("cast {v} to={elem}"), elem.name(), &[n]),
        }
    }

    /// A tile of rank 1 along an axis of a larger one.
    pub(super) fn along(&mut self, v: &str, elem: &str, axis: usize, dims: &[usize]) -> String {
        let (mut name, mut now) = (v.to_string(), vec![dims[axis]]);
        for d in 0..dims.len() {
            if d != axis {
                now.insert(d, 1);
                name = self.op(&format!("expand_dims {name} axis={d}"), elem, &now);
            }
        }
        if now != dims {
            name = self.op(&format!("broadcast {name} shape={}", shape(dims)), elem, dims);
        }
        name
    }

    /// A scalar that is added to indices or bounds them.
    fn offset(&mut self, elem: Scalar) -> String {
        let scalar = match self.r.below(9) {
            0 | 1 => return self.number(0, elem),
            2 | 3 => {
                let c = self.r.pick(&[1, 2, 5, 16, 40, 100, -1, -3]);
                return self.number(c, elem);
            }
            4 => "%n".to_string(),
            5 | 6 => {
                let pid = self.op("program_id axis=0", "i32", &[]);
                let block = self.r.pick(&[1, 16, 64, 100]);
                let block = self.number(block, Scalar::I32);
                self.binary("mul", &pid, &block, Scalar::I32, &[])
            }
            _ => {
                let numbers = self.values_like(|v| v.dims.is_empty() && v.elem == Scalar::I32);
                let name = self.late(&numbers).map(|v| v.name).unwrap_or_default();
                // Whatever was computed is brought near.
                let near = self.number(127, Scalar::I32);
                self.binary("and", &name, &near, Scalar::I32, &[])
            }
        };
        match elem {
            Scalar::I32 => scalar,
            _ => self.op(&format!("cast {scalar} to={elem}"), elem.name(), &[]),
        }
    }

    /// Indices of elements, mostly a formula of rows and columns.
    fn index(&mut self, dims: &[usize]) -> Index {
        let known: Vec<Index> = self.indices.iter().filter(|i| i.v.dims == dims).cloned().collect();
        if self.r.below(3) > 0
            && let Some(i) = self.late(&known)
        {
            return i;
        }
        let i = match self.r.below(10) {
            _ if self.parallel => Index { v: self.own_index(dims), apart: true },
            0 | 1 => Index { v: self.computed_index(dims), apart: false },
            _ => self.formula(dims),
        };
        self.indices.push(i.clone());
        i
    }

    /// Indices whose lanes lie apart.
    fn index_apart(&mut self, dims: &[usize]) -> Index {
        for _ in 0..4 {
            let i = self.index(dims);
            if i.apart {
                return i;
            }
        }
        let base = self.offset(Scalar::I32);
        let strides: Vec<i128> = (1..=dims.len()).map(|d| numel(&dims[d..]) as i128).collect();
        let v = self.sum_of_axes(dims, &strides, Some(base), Scalar::I32);
        let i = Index { v, apart: true };
        self.indices.push(i.clone());
        i
    }

    /// Indices within a program's part.
    fn own_index(&mut self, dims: &[usize]) -> Val {
        let mut order: Vec<usize> = (0..dims.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, self.r.below(i + 1));
        }
        let mut strides = vec![1; dims.len()];
        let mut stride = 1;
        for &d in &order {
            strides[d] = stride;
            stride *= dims[d] as i128;
        }
        // An axis may start a little later.
        let room = PART - numel(dims);
        let base = if room > 0 { self.r.below(room + 1) as i128 } else { 0 };
        let low = self.number(PART as i128 - 1, Scalar::I32);
        let base = self.number(base, Scalar::I32);
        let v = self.sum_of_axes(dims, &strides, Some(base), Scalar::I32);
        match self.r.below(3) {
            // Inside, whatever the axes' starts are; no formula any more.
            0 => {
                let low = self.splat(&low, "i32", dims);
                let name = self.binary("and", &v.name, &low, Scalar::I32, dims);
                Val { name, ..v }
            }
            // The same by a formula, which holds as long as the part is not left.
            _ => {
                let part = self.filled(PART as i128, Scalar::I32, dims);
                let name = self.binary("rem", &v.name, &part, Scalar::I32, dims);
                Val { name, ..v }
            }
        }
    }

    fn formula(&mut self, dims: &[usize]) -> Index {
        let elem = self.r.pick(&[
            Scalar::I32,
            Scalar::I32,
            Scalar::I32,
            Scalar::I32,
            Scalar::I32,
            Scalar::I64,
            Scalar::I64,
            Scalar::U32,
            Scalar::I16,
            Scalar::U8,
            Scalar::I8,
        ]);
        let row_major = self.r.below(3) > 0;
        let mut strides: Vec<i128> = vec![0; dims.len()];
        let mut step = 1;
        for d in (0..dims.len()).rev() {
            strides[d] = match self.r.below(10) {
                _ if row_major => step,
                0 | 1 => 0,
                2 => -1,
                3 => 1,
                4 => 2,
                5 => RUNTIME,
                _ => step,
            };
            step *= dims[d] as i128;
        }
        if !row_major && self.r.below(2) == 0 {
            strides.reverse();
        }
        let base = (self.r.below(3) > 0).then(|| self.offset(elem));
        let v = self.sum_of_axes(dims, &strides, base, elem);
        let apart = apart(dims, &strides, elem);
        let by = match self.r.below(14) {
            0 => return Index { v: self.there_and_back(v), apart },
            1 => {
                let m = self.r.pick(&[1, 16, 100, 127]);
                self.filled(m, elem, dims)
            }
            2 => {
                let m = self.op(&format!("cast %n to={elem}"), elem.name(), &[]);
                self.splat(&m, elem.name(), dims)
            }
            _ => return Index { v, apart },
        };
        let name = self.binary("rem", &v.name, &by, elem, dims);
        Index { v: Val { name, ..v }, apart: false }
    }

    /// Sums that pass the limit of their type and come back.
    fn there_and_back(&mut self, v: Val) -> Val {
        let far = v.elem.int_max() - self.r.below(20) as i128;
        let far = match self.r.below(3) {
            0 => far / 2,
            _ => far,
        };
        let a = self.filled(far, v.elem, &v.dims);
        let name = self.binary("add", &v.name, &a, v.elem, &v.dims);
        // Seen from a wider type there is no way back.
        let elem = if self.r.below(3) == 0 { Scalar::I64 } else { v.elem };
        let name = self.converted(&Val { name, ..v.clone() }, elem);
        let b = self.filled(far, elem, &v.dims);
        let name = self.binary("sub", &name, &b, elem, &v.dims);
        Val { name, elem, ..v }
    }

    pub(super) fn sum_of_axes(
        &mut self,
        dims: &[usize],
        strides: &[i128],
        base: Option<String>,
        elem: Scalar,
    ) -> Val {
        let mut sum: Option<String> = None;
        // The base at the start, as in `pid * BLOCK + arange`, or at the end.
        let early = self.r.below(2) == 0;
        for d in 0..dims.len() {
            let mut i = self.axis(dims[d], elem);
            if let (true, 0, 1, Some(base)) = (early, d, strides[d], &base) {
                let base = self.splat(base, elem.name(), &[dims[d]]);
                i = self.binary("add", &i, &base, elem, &[dims[d]]);
            }
            let first = self.r.below(2) == 0;
            if !first {
                i = self.along(&i, elem.name(), d, dims);
            }
            let at: &[usize] = if first { &dims[d..=d] } else { dims };
            let stride = match strides[d] {
                1 => None,
                RUNTIME => {
                    let s = match elem {
                        Scalar::I32 => "%s".to_string(),
                        _ => self.op(&format!("cast %s to={elem}"), elem.name(), &[]),
                    };
                    Some(self.splat(&s, elem.name(), at))
                }
                c => Some(self.filled(c, elem, at)),
            };
            if let Some(s) = stride {
                i = self.binary("mul", &i, &s, elem, at);
            }
            if first {
                i = self.along(&i, elem.name(), d, dims);
            }
            sum = Some(match sum {
                Some(sum) => self.binary("add", &sum, &i, elem, dims),
                None => i,
            });
        }
        let mut name = sum.unwrap_or_default();
        if let Some(base) = base.filter(|_| !early || strides[0] != 1) {
            let base = self.splat(&base, elem.name(), dims);
            name = self.binary("add", &name, &base, elem, dims);
        }
        Val { name, elem, dims: dims.to_vec() }
    }

    /// Indices out of data, near element 0.
    fn computed_index(&mut self, dims: &[usize]) -> Val {
        let ints = self.values_like(|v| v.dims == dims && v.elem.is_int() && !v.elem.is_bool());
        let Some(v) = self.late(&ints) else { return self.formula(dims).v };
        let elem = v.elem;
        if self.r.below(2) == 0 {
            let low = self.r.pick(&[3, 15, 63, 127]);
            let low = self.filled(low, elem, dims);
            let name = self.binary("and", &v.name, &low, elem, dims);
            return Val { name, ..v };
        }
        let lo = self.filled(if elem.is_signed() { -20 } else { 0 }, elem, dims);
        let hi = self.filled(100, elem, dims);
        let name = self.op(&format!("ternary.clamp {}, {lo}, {hi}", v.name), elem.name(), dims);
        Val { name, ..v }
    }

    /// A mask: bounds of the axes, and more.
    pub(super) fn mask(&mut self, dims: &[usize]) -> String {
        let known: Vec<Val> = self.masks.iter().filter(|v| v.dims == dims).cloned().collect();
        if self.r.below(3) > 0
            && let Some(v) = self.late(&known)
        {
            return v.name;
        }
        if dims.is_empty() {
            return "%c".to_string();
        }
        let mut mask = self.part_of_mask(dims);
        for _ in 1..self.r.pick(&[1, 1, 2, 2, 3]) {
            let part = self.part_of_mask(dims);
            let f = self.r.pick(&["and", "and", "and", "and", "or", "xor"]);
            mask = self.binary(f, &mask, &part, Scalar::I1, dims);
        }
        self.masks.push(Val { name: mask.clone(), elem: Scalar::I1, dims: dims.to_vec() });
        mask
    }

    fn part_of_mask(&mut self, dims: &[usize]) -> String {
        let d = self.r.below(dims.len());
        match self.r.below(10) {
            0 => {
                let v = self.index(dims).v;
                let bound = self.offset(v.elem);
                let bound = self.splat(&bound, v.elem.name(), dims);
                let p = self.r.pick(&["lt", "ge", "ne", "eq"]);
                self.op(&format!("compare.{p} {}, {bound}", v.name), "i1", dims)
            }
            1 => {
                let c = match self.r.below(3) {
                    0 => "%c".to_string(),
                    1 => {
                        let (a, b) = (self.offset(Scalar::I32), self.offset(Scalar::I32));
                        self.op(&format!("compare.lt {a}, {b}"), "i1", &[])
                    }
                    _ => {
                        let c = self.r.below(2);
                        self.op(&format!("const value={c}:i1"), "i1", &[])
                    }
                };
                self.splat(&c, "i1", dims)
            }
            2 => {
                // Lanes that data choose.
                let v = self.typed(Scalar::I32, dims);
                let bound = self.filled(3, Scalar::I32, dims);
                let p = self.r.pick(&["lt", "gt"]);
                self.op(&format!("compare.{p} {v}, {bound}"), "i1", dims)
            }
            3 if dims.len() > 1 => {
                // Below or on the diagonal.
                let e = (d + 1) % dims.len();
                let (i, j) = (self.axis(dims[d], Scalar::I32), self.axis(dims[e], Scalar::I32));
                let (i, j) = (self.along(&i, "i32", d, dims), self.along(&j, "i32", e, dims));
                let p = self.r.pick(&["ge", "gt", "eq"]);
                self.op(&format!("compare.{p} {i}, {j}"), "i1", dims)
            }
            _ => self.bound(d, dims),
        }
    }

    fn bound(&mut self, d: usize, dims: &[usize]) -> String {
        let elem = self.r.pick(&[
            Scalar::I32,
            Scalar::I32,
            Scalar::I32,
            Scalar::I64,
            Scalar::I8,
            Scalar::U32,
        ]);
        let n = [dims[d]];
        let mut i = self.axis(dims[d], elem);
        if self.r.below(2) == 0 {
            let base = self.offset(elem);
            let base = self.splat(&base, elem.name(), &n);
            i = self.binary("add", &i, &base, elem, &n);
        }
        let bound = match self.r.below(4) {
            0 => self.number(dims[d] as i128, elem),
            1 => self.number(dims[d] as i128 / 2, elem),
            _ => self.offset(elem),
        };
        let p = self.r.pick(&["lt", "lt", "lt", "le", "ge", "gt"]);
        let early = self.r.below(2) == 0;
        if !early {
            i = self.along(&i, elem.name(), d, dims);
        }
        let at: &[usize] = if early { &n } else { dims };
        let bound = self.splat(&bound, elem.name(), at);
        let (a, b) = if self.r.below(4) == 0 { (bound, i) } else { (i, bound) };
        let m = self.op(&format!("compare.{p} {a}, {b}"), "i1", at);
        if early { self.along(&m, "i1", d, dims) } else { m }
    }

    /// Addresses for some use.
    pub(super) fn place(&mut self, dims: &[usize], to: Use) -> Place {
        let (written, stored) = (to != Use::Read, to == Use::Store);
        let fits = |p: &&Place| {
            p.dims == dims && (!written || p.pointer.is_multiple_of(2)) && (!stored || p.apart)
        };
        let known: Vec<Place> = self.places.iter().filter(fits).cloned().collect();
        if self.r.below(3) > 0
            && let Some(p) = self.late(&known)
        {
            return p;
        }
        let bases: Vec<Base> =
            self.bases.iter().filter(|b| b.written || !written).cloned().collect();
        let base = bases[self.r.below(bases.len())].clone();
        let ptr = format!("*{}", base.elem);
        let mut at = base.name.clone();
        let mut apart = true;
        if dims.is_empty() {
            let by = match self.parallel {
                true => self.number(5, Scalar::I32),
                false => self.offset(Scalar::I32),
            };
            at = self.op(&format!("ptr_add {at}, {by}"), &ptr, &[]);
        } else {
            if self.r.below(4) == 0 && !self.parallel {
                let by = self.offset(Scalar::I32);
                at = self.op(&format!("ptr_add {at}, {by}"), &ptr, &[]);
            }
            if self.r.below(20) == 0 && !self.parallel {
                at = self.op(&format!("ptr_add {at}, %w"), &ptr, &[]);
            }
            at = self.splat(&at, &ptr, dims);
            let i = if stored { self.index_apart(dims) } else { self.index(dims) };
            apart = i.apart;
            at = self.op(&format!("ptr_add {at}, {}", i.v.name), &ptr, dims);
            if self.r.below(5) == 0 && !self.parallel {
                let by = self.r.pick(&[1, 1, -1, 16, 64]);
                let by = self.filled(by, Scalar::I32, dims);
                at = self.op(&format!("ptr_add {at}, {by}"), &ptr, dims);
            }
        }
        let (elem, pointer) = (base.elem, base.pointer);
        let place = Place { name: at, elem, dims: dims.to_vec(), pointer, apart };
        self.places.push(place.clone());
        place
    }
}

/// Whether lanes lie apart, also where numbers of the type wrap: sorted by size, each stride passes what
/// the smaller ones cover.
fn apart(dims: &[usize], strides: &[i128], elem: Scalar) -> bool {
    let mut axes: Vec<(u128, u128)> = dims
        .iter()
        .zip(strides)
        .filter(|(n, _)| **n > 1)
        .map(|(&n, s)| (s.unsigned_abs(), n as u128))
        .collect();
    axes.sort_unstable();
    let mut covered = 1;
    let in_turn = axes.into_iter().all(|(stride, n)| {
        let passes = stride >= covered && stride != RUNTIME as u128;
        covered += stride.min(1 << 64) * (n - 1);
        passes
    });
    in_turn && covered <= 1 << elem.bits()
}
