//! Loops and branches of random kernels, and memory that is read and written in turn.

use super::{Generator, INPUT, Val, numel, shape, ty};
use naiad_ir::Scalar;
use std::fmt::Write;

/// Bytes at the start of a program's output that it reads and writes as it goes.
pub const SCRATCH: usize = 256;

/// Greatest number of elements of a carried tile.
const CARRIED: usize = 256;

const DEPTH: usize = 2;

/// A carried value on its way: what a region calls it, and what it is next.
struct Carried {
    param: Val,
    init: String,
}

impl Generator {
    pub(super) fn control(&mut self) {
        if self.depth >= DEPTH {
            return;
        }
        self.depth += 1;
        match self.random.below(4) {
            0 => self.branch(),
            1 => self.tested(),
            _ => self.counted(),
        }
        self.depth -= 1;
    }

    /// Values of an op with several results.
    fn results(&mut self, types: &[(Scalar, Vec<usize>)]) -> (String, Vec<Val>) {
        let mut out = Vec::new();
        for (elem, dims) in types {
            out.push(Val { name: self.name(), elem: *elem, dims: dims.clone() });
        }
        let names: Vec<&str> = out.iter().map(|v| v.name.as_str()).collect();
        let list =
            if names.is_empty() { String::new() } else { format!("{} = ", names.join(", ")) };
        (list, out)
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("%v{}", self.count - 1)
    }

    /// Runs `inner` on text of its own; what it defines is not seen after.
    fn region<T>(
        &mut self,
        params: &[Val],
        inner: impl FnOnce(&mut Generator) -> T,
    ) -> (String, T) {
        let around = std::mem::take(&mut self.text);
        let visible = self.values.len();
        self.values.extend_from_slice(params);
        let out = inner(self);
        self.values.truncate(visible);
        (std::mem::replace(&mut self.text, around), out)
    }

    fn few_ops(&mut self) {
        for _ in 0..1 + self.random.below(4) {
            self.op();
        }
    }

    fn branch(&mut self) {
        let cond = self.typed(Scalar::I1, &[]).name;
        let types: Vec<(Scalar, Vec<usize>)> = (0..self.random.below(3))
            .map(|_| self.any())
            .filter(|v| numel(&v.dims) <= CARRIED)
            .map(|v| (v.elem, v.dims))
            .collect();
        let arm = |g: &mut Generator| {
            g.region(&[], |g| {
                g.few_ops();
                let yields: Vec<String> =
                    types.iter().map(|(elem, dims)| g.typed(*elem, dims).name).collect();
                let _ = writeln!(g.text, "  yield values=[{}]", yields.join(", "));
            })
            .0
        };
        let (then, otherwise) = (arm(self), arm(self));
        self.control_op(&format!("if {cond} {{\n{then}  }} {{\n{otherwise}  }}"), &types);
    }

    fn control_op(&mut self, op: &str, types: &[(Scalar, Vec<usize>)]) {
        let (list, results) = self.results(types);
        let mut shown: Vec<String> = Vec::new();
        shown.extend(types.iter().map(|(elem, dims)| ty(elem.name(), dims)));
        let tail =
            if shown.is_empty() { String::new() } else { format!(" : {}", shown.join(", ")) };
        let _ = writeln!(self.text, "  {list}{op}{tail}");
        self.values.extend(results);
    }

    fn carried(&mut self) -> Vec<Carried> {
        let all: Vec<Val> = (0..1 + self.random.below(3)).map(|_| self.any()).collect();
        all.into_iter()
            .filter(|v| numel(&v.dims) <= CARRIED)
            .map(|v| Carried { param: Val { name: self.name(), ..v.clone() }, init: v.name })
            .collect()
    }

    /// The next values: unchanged, moved by a scalar, of another slot, or anything.
    fn next(&mut self, carried: &[Carried]) -> Vec<String> {
        let one = |g: &mut Generator, c: &Carried| {
            let Val { name, elem, dims } = &c.param;
            match g.random.below(6) {
                0 => name.clone(),
                1..=3 if elem.is_int() => {
                    let by = g.typed(*elem, &[]).name;
                    let by = if dims.is_empty() {
                        by
                    } else {
                        g.line(&format!("splat {by} shape={}", shape(dims)), *elem, dims).name
                    };
                    let f = g.random.pick(&["add", "add", "sub"]);
                    g.line(&format!("binary.{f} {name}, {by}"), *elem, dims).name
                }
                _ => g.typed(*elem, dims).name,
            }
        };
        carried.iter().map(|c| one(self, c)).collect()
    }

    fn counted(&mut self) {
        let iv_ty = self.random.pick(&[Scalar::I32, Scalar::I32, Scalar::I64, Scalar::U8]);
        let (lower, upper, step) = self.random.pick(&[
            (0, 3, 1),
            (0, 4, 1),
            (0, 1, 1),
            (0, 0, 1),
            (2, 7, 2),
            (5, 0, -2),
            (0, 8, 3),
            (3, 3, 5),
        ]);
        let step = if iv_ty.is_signed() { step } else { i64::abs(step) };
        let bound = |g: &mut Generator, x: i64| {
            g.line(&format!("const value={x}:{iv_ty}"), iv_ty, &[]).name
        };
        let (lower, step) = (bound(self, lower), bound(self, step));
        let upper = match self.random.below(3) {
            0 if iv_ty == Scalar::I32 => "%few".to_string(),
            _ => bound(self, upper),
        };
        let carried = self.carried();
        let iv = Val { name: self.name(), elem: iv_ty, dims: vec![] };
        let mut params = vec![iv];
        params.extend(carried.iter().map(|c| c.param.clone()));
        let pointer = self.pointer();
        let (body, ()) = self.region(&params, |g| {
            let moved = pointer.as_ref().map(|p| g.follow(p));
            g.few_ops();
            let mut next = g.next(&carried);
            next.extend(moved);
            let _ = writeln!(g.text, "  yield values=[{}]", next.join(", "));
        });
        let mut inits: Vec<&str> = carried.iter().map(|c| c.init.as_str()).collect();
        let mut heads: Vec<String> =
            params.iter().map(|p| format!("{}: {}", p.name, ty(p.elem.name(), &p.dims))).collect();
        if let Some(p) = &pointer {
            inits.push(&p.init);
            heads.push(format!("{}: {}", p.param, p.ty));
        }
        let op = format!(
            "for {lower}, {upper}, {step} inits=[{}] {{\n  ^({}):\n{body}  }}",
            inits.join(", "),
            heads.join(", ")
        );
        let types: Vec<(Scalar, Vec<usize>)> =
            carried.iter().map(|c| (c.param.elem, c.param.dims.clone())).collect();
        let Some(p) = pointer else {
            return self.control_op(&op, &types);
        };
        let (list, results) = self.results(&types);
        let last = self.name();
        let list = list.trim_end_matches(" = ").to_string();
        let comma = if list.is_empty() { "" } else { ", " };
        let mut shown: Vec<String> =
            types.iter().map(|(elem, dims)| ty(elem.name(), dims)).collect();
        shown.push(p.ty.clone());
        let _ = writeln!(self.text, "  {list}{comma}{last} = {op} : {}", shown.join(", "));
        self.values.extend(results);
        self.line(&format!("load {last}"), Scalar::I32, &p.dims);
    }

    /// A pointer, or a tile of them, that a loop moves.
    fn pointer(&mut self) -> Option<MovedPointer> {
        if self.random.below(2) == 0 {
            return None;
        }
        let dims = if self.random.below(3) == 0 { vec![] } else { vec![16] };
        let ty = ty("*i32", &dims);
        let mut init = self.raw("bitcast %in to=*i32", "*i32", &[]);
        if !dims.is_empty() {
            init = self.raw(
                "splat {init} shape=(16,)".replace("{init}", &init).as_str(),
                "*i32",
                &[16],
            );
            let i = self.raw("arange start=0 end=16", "i32", &[16]);
            init = self.raw(&format!("ptr_add {init}, {i}"), "*i32", &[16]);
        }
        Some(MovedPointer { param: self.name(), init, ty, dims })
    }

    /// Reads through a pointer and moves it; gives its next value.
    fn follow(&mut self, p: &MovedPointer) -> String {
        let mut at = p.param.clone();
        for _ in 0..1 + self.random.below(2) {
            if self.random.below(3) > 0 {
                self.line(&format!("load {at}"), Scalar::I32, &p.dims);
            }
            let elem = self.random.pick(&[Scalar::I32, Scalar::I64, Scalar::I8, Scalar::U8]);
            let by = self.random.below(INPUT / 4 / 4 / 16 / 4) as i64 % 100;
            let by = if elem.is_signed() && self.random.below(3) == 0 { -by / 8 } else { by };
            let mut by = self.raw(&format!("const value={by}:{elem}"), elem.name(), &[]);
            if !p.dims.is_empty() {
                by =
                    self.raw(&format!("splat {by} shape={}", shape(&p.dims)), elem.name(), &p.dims);
            }
            at = self.raw(&format!("ptr_add {at}, {by}"), "*i32", &p.dims);
        }
        at
    }

    fn tested(&mut self) {
        let carried = self.carried();
        let rounds = self.random.below(4);
        let zero = self.line("const value=0:i32", Scalar::I32, &[]).name;
        let end = self.line(&format!("const value={rounds}:i32"), Scalar::I32, &[]).name;
        let counter = |g: &mut Generator| Val { name: g.name(), elem: Scalar::I32, dims: vec![] };
        let renamed = |g: &mut Generator| -> Vec<Val> {
            carried.iter().map(|c| Val { name: g.name(), ..c.param.clone() }).collect()
        };
        let (i, j) = (counter(self), counter(self));
        let (tested, in_body) = (renamed(self), renamed(self));
        let with = |first: &Val, rest: &[Val]| {
            let mut all = vec![first.clone()];
            all.extend_from_slice(rest);
            all
        };
        let (test_params, body_params) = (with(&i, &tested), with(&j, &in_body));
        let (test, ()) = self.region(&test_params, |g| {
            if g.random.below(2) == 0 {
                g.few_ops();
            }
            let cond = g.line(&format!("compare.lt {}, {end}", i.name), Scalar::I1, &[]).name;
            let mut passed = vec![i.name.clone()];
            for p in &tested {
                let other = g.random.below(5) == 0;
                passed.push(if other { g.typed(p.elem, &p.dims).name } else { p.name.clone() });
            }
            let _ = writeln!(g.text, "  condition {cond} values=[{}]", passed.join(", "));
        });
        let (body, ()) = self.region(&body_params, |g| {
            g.few_ops();
            let one = g.raw("const value=1:i32", "i32", &[]);
            let mut next = vec![g.raw(&format!("binary.add {}, {one}", j.name), "i32", &[])];
            let slots: Vec<Carried> =
                in_body.iter().map(|p| Carried { param: p.clone(), init: String::new() }).collect();
            next.extend(g.next(&slots));
            let _ = writeln!(g.text, "  yield values=[{}]", next.join(", "));
        });
        let heads = |all: &[Val]| -> String {
            let heads: Vec<String> =
                all.iter().map(|p| format!("{}: {}", p.name, ty(p.elem.name(), &p.dims))).collect();
            heads.join(", ")
        };
        let mut inits = vec![zero.as_str()];
        inits.extend(carried.iter().map(|c| c.init.as_str()));
        let op = format!(
            "while inits=[{}] {{\n  ^({}):\n{test}  }} {{\n  ^({}):\n{body}  }}",
            inits.join(", "),
            heads(&test_params),
            heads(&body_params)
        );
        let types: Vec<(Scalar, Vec<usize>)> =
            body_params.iter().map(|p| (p.elem, p.dims.clone())).collect();
        self.control_op(&op, &types);
    }

    /// Reads a row of the scratch and writes it, or another value, to one that overlaps it.
    pub(super) fn shift_in_place(&mut self) {
        let base = self.raw("ptr_add %out, %base", "*i8", &[]);
        let base = self.raw(&format!("bitcast {base} to=*i32"), "*i32", &[]);
        let base = self.raw(&format!("splat {base} shape=(16,)"), "*i32", &[16]);
        let i = self.raw("arange start=0 end=16", "i32", &[16]);
        let row = |g: &mut Generator| {
            let at = g.random.below(SCRATCH / 4 - 16).min(g.random.below(20));
            let at = g.raw(&format!("const value={at}:i32"), "i32", &[]);
            let at = g.raw(&format!("splat {at} shape=(16,)"), "i32", &[16]);
            let at = g.raw(&format!("binary.add {i}, {at}"), "i32", &[16]);
            g.raw(&format!("ptr_add {base}, {at}"), "*i32", &[16])
        };
        let (from, to) = (row(self), row(self));
        let mask = match self.random.below(3) {
            0 => format!(" mask={}", self.typed(Scalar::I1, &[16]).name),
            _ => String::new(),
        };
        let x = self.line(&format!("load {from}{mask}"), Scalar::I32, &[16]);
        let value = if self.random.below(2) == 0 { x } else { self.typed(Scalar::I32, &[16]) };
        let _ = writeln!(self.text, "  store {to}, {}{mask}", value.name);
    }
}

pub(super) struct MovedPointer {
    param: String,
    init: String,
    ty: String,
    dims: Vec<usize>,
}
