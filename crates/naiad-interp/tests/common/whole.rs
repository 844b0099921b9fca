//! Ops of random kernels that combine elements of tiles: products, reductions, scans, functions of elements.

use super::{Generator, Kind, Val, numel, ty};
use naiad_ir::Scalar;
use naiad_ir::scalar::BinaryFn;
use std::fmt::Write;

impl Generator {
    /// A product of matrices, or of several.
    pub(super) fn dot(&mut self, v: &Val) {
        let Val { name, elem, dims } = v;
        let ([.., m, k], true) = (&dims[..], numel(dims) <= 1024) else { return };
        let out = match elem {
            Scalar::I8 | Scalar::U8 => Scalar::I32,
            _ if self.kind == Kind::Exact => return,
            Scalar::F64 => Scalar::F64,
            Scalar::F32 | Scalar::F16 | Scalar::BF16 | Scalar::F8E5 | Scalar::F8E4NV => Scalar::F32,
            _ => return,
        };
        let n = self.random.pick(&[1, 4, 16]);
        let outer = &dims[..dims.len() - 2];
        if outer.len() > 1 {
            return;
        }
        let w = self.typed(*elem, &[outer, &[*k, n]].concat());
        let to = [outer, &[*m, n]].concat();
        let acc = self.typed(out, &to);
        let acc = match self.random.below(2) {
            0 => format!(" acc={}", acc.name),
            _ => String::new(),
        };
        let op = format!("dot {name}, {}{acc} out={out} precision=ieee", w.name);
        self.line(&op, out, &to);
    }

    /// The greater of two values, and whether it was the first; or in packs, with a loop now and then.
    pub(super) fn map(&mut self, v: &Val) {
        let w = self.typed(v.elem, &v.dims);
        let (e, n) = (v.elem.name(), self.count);
        let pack = if numel(&v.dims) > 1 { self.random.pick(&[1, 2]) } else { 1 };
        let looped = numel(&v.dims) <= 256 && self.random.below(3) == 0;
        let names =
            |x: &str| -> Vec<String> { (0..pack).map(|i| format!("%{x}{n}_{i}")).collect() };
        let (a, b) = (names("a"), names("b"));
        let params: Vec<String> = a.iter().chain(&b).map(|x| format!("{x}: {e}")).collect();
        let mut body = String::new();
        for i in 0..pack {
            let (x, y) = (&a[i], &b[i]);
            let _ = writeln!(body, "    %g{n}_{i} = compare.gt {x}, {y} : i1");
            let last = if looped {
                let _ = writeln!(
                    body,
                    "    %z{n}_{i} = const value=0:i32 : i32\n    %t{n}_{i} = const value=2:i32 : i32\n    %s{n}_{i} = const value=1:i32 : i32\n    %l{n}_{i} = for %z{n}_{i}, %t{n}_{i}, %s{n}_{i} inits=[{y}] {{\n    ^(%k{n}_{i}: i32, %c{n}_{i}: {e}):\n      %d{n}_{i} = select %g{n}_{i}, {x}, %c{n}_{i} : {e}\n      yield values=[%d{n}_{i}]\n    }} : {e}"
                );
                format!("%l{n}_{i}")
            } else {
                let _ = writeln!(
                    body,
                    "    %m{n}_{i} = if %g{n}_{i} {{\n      yield values=[{x}]\n    }} {{\n      yield values=[{y}]\n    }} : {e}"
                );
                format!("%m{n}_{i}")
            };
            let _ = writeln!(body, "    %r{n}_{i} = bitcast {last} to={e} : {e}");
        }
        let yields: Vec<String> = names("r").into_iter().chain(names("g")).collect();
        let (x, y) = (format!("%v{n}"), format!("%v{}", n + 1));
        self.count += 2;
        let _ = writeln!(
            self.text,
            "  {x}, {y} = map inputs=[{}, {}] pack={pack} {{\n    ^({}):\n{body}    yield values=[{}]\n  }} : {}, {}",
            v.name,
            w.name,
            params.join(", "),
            yields.join(", "),
            ty(e, &v.dims),
            ty("i1", &v.dims)
        );
        self.values.push(Val { name: x, elem: v.elem, dims: v.dims.clone() });
        self.values.push(Val { name: y, elem: Scalar::I1, dims: v.dims.clone() });
    }

    pub(super) fn combine(&mut self, v: &Val) {
        let axis = self.random.below(v.dims.len());
        let mut to = v.dims.clone();
        let scan = self.random.below(2) == 0;
        if !scan {
            to.remove(axis);
        }
        let reverse = if scan && self.random.below(2) == 0 { " reverse=true" } else { "" };
        let op = if scan { "scan" } else { "reduce" };
        let e = v.elem.name();
        if scan && v.elem.is_int() && !v.elem.is_bool() && self.random.below(4) == 0 {
            return self.affine(v, axis, reverse);
        }
        if self.random.below(2) == 0 {
            let f = self.random.pick(BinaryFn::ALL);
            use BinaryFn::{Add, And, Max, MaxNan, Min, MinNan, Mul, Or, Xor};
            let exact = match f {
                Min | Max | MinNan | MaxNan => true,
                Add | Mul | And | Or | Xor => !v.elem.is_float(),
                _ => false,
            };
            if f.accepts(v.elem) && f.is_commutative() && (exact || self.kind == Kind::All) {
                self.line(
                    &format!("{op} inputs=[{}] axis={axis}{reverse} {{\n    ^(%a{n}: {e}, %b{n}: {e}):\n    %c{n} = binary.{} %a{n}, %b{n} : {e}\n    yield values=[%c{n}]\n  }}", v.name, f.name(), n = self.count),
                    v.elem,
                    &to,
                );
            }
            return;
        }
        // The greater value with its index; an `if` in the region now and then.
        if v.elem.is_float() && self.kind == Kind::Exact {
            return;
        }
        let i = self.typed(Scalar::I32, &v.dims);
        let n = self.count;
        let greater = match self.kind {
            Kind::All => format!("%g{n} = compare.gt %a{n}, %b{n} : i1"),
            // Of equal values the one with the smaller index, wherever it stands.
            Kind::Exact => format!(
                "%m{n} = compare.gt %a{n}, %b{n} : i1\n    %e{n} = compare.eq %a{n}, %b{n} : i1\n    %l{n} = compare.lt %i{n}, %j{n} : i1\n    %f{n} = binary.and %e{n}, %l{n} : i1\n    %g{n} = binary.or %m{n}, %f{n} : i1"
            ),
        };
        let choice = if self.random.below(2) == 0 {
            format!(
                "%s{n} = select %g{n}, %a{n}, %b{n} : {e}\n    %t{n} = select %g{n}, %i{n}, %j{n} : i32"
            )
        } else {
            format!(
                "%s{n}, %t{n} = if %g{n} {{\n      yield values=[%a{n}, %i{n}]\n    }} {{\n      yield values=[%b{n}, %j{n}]\n    }} : {e}, i32"
            )
        };
        let (x, y) = (format!("%v{n}"), format!("%v{}", n + 1));
        self.count += 2;
        let _ = writeln!(
            self.text,
            "  {x}, {y} = {op} inputs=[{}, {}] axis={axis}{reverse} {{\n    ^(%a{n}: {e}, %i{n}: i32, %b{n}: {e}, %j{n}: i32):\n    {greater}\n    {choice}\n    yield values=[%s{n}, %t{n}]\n  }} : {}, {}",
            v.name,
            i.name,
            ty(e, &to),
            ty("i32", &to)
        );
        self.values.push(Val { name: x, elem: v.elem, dims: to.clone() });
        self.values.push(Val { name: y, elem: Scalar::I32, dims: to });
    }

    /// A scan whose order matters: of `x -> a x + b`, one after the other.
    fn affine(&mut self, v: &Val, axis: usize, reverse: &str) {
        let (w, e, n) = (self.typed(v.elem, &v.dims), v.elem.name(), self.count);
        let (x, y) = (format!("%v{n}"), format!("%v{}", n + 1));
        self.count += 2;
        let t = ty(e, &v.dims);
        let _ = writeln!(
            self.text,
            "  {x}, {y} = scan inputs=[{}, {}] axis={axis}{reverse} {{\n    ^(%a{n}: {e}, %b{n}: {e}, %c{n}: {e}, %d{n}: {e}):\n    %p{n} = binary.mul %a{n}, %c{n} : {e}\n    %q{n} = binary.mul %b{n}, %c{n} : {e}\n    %r{n} = binary.add %q{n}, %d{n} : {e}\n    yield values=[%p{n}, %r{n}]\n  }} : {t}, {t}",
            v.name, w.name
        );
        for name in [x, y] {
            self.values.push(Val { name, ..v.clone() });
        }
    }
}
