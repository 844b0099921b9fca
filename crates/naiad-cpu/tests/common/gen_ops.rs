//! Statements of random kernels about memory.

use super::{Gen, LARGEST, Place, Use, Val, numel, shape, tile};
use naiad_ir::Scalar;
use std::fmt::Write;

/// Greatest number of elements of a carried tile.
const CARRIED: usize = 256;

impl Gen {
    pub(super) fn statement(&mut self) {
        let dims = self.used_dims();
        match self.r.below(34) {
            0..=4 => {
                self.load(&dims);
            }
            5..=8 => self.store(),
            9..=11 => self.compute(&dims),
            12 => {
                self.load(&[]);
            }
            13 | 14 => self.reduce(&dims),
            15 => self.scan(&dims),
            16 | 17 => self.rearrange(&dims),
            18 | 19 => self.shift(&dims),
            20 => self.dot(),
            21 => self.atomic(&dims),
            22 | 23 => self.counted(),
            24 => self.branch(),
            25 => self.tested(),
            26 => {
                let _ = writeln!(self.text, "  barrier");
            }
            27 => self.choose(&dims),
            28 => self.pairs(&dims),
            29 | 30 => self.stream(),
            31 | 32 => self.product(),
            _ => self.sort(&dims),
        }
    }

    fn any(&mut self, dims: &[usize]) -> Val {
        let have = self.values_like(|v| v.dims == dims);
        match self.late(&have) {
            Some(v) => v,
            None => self.load(dims),
        }
    }

    fn compute(&mut self, dims: &[usize]) {
        let v = self.any(dims);
        let w = self.typed(v.elem, dims);
        let f = match v.elem.is_float() {
            true => self.r.pick(&["add", "sub", "mul", "min", "max"]),
            false => self.r.pick(&["add", "sub", "mul", "min", "max", "and", "xor"]),
        };
        let name = self.binary(f, &v.name, &w, v.elem, dims);
        self.keep(name, v.elem, dims);
    }

    fn choose(&mut self, dims: &[usize]) {
        let v = self.any(dims);
        let w = self.typed(v.elem, dims);
        let mask = self.mask(dims);
        let name = self.op(&format!("select {mask}, {}, {w}", v.name), v.elem.name(), dims);
        self.keep(name, v.elem, dims);
    }

    /// A value whose sums are exact in every order: small whole numbers.
    pub(super) fn small(&mut self, v: &Val) -> Val {
        if !v.elem.is_float() {
            return v.clone();
        }
        let elem = v.elem;
        let lo = self.filled(-1, elem, &v.dims);
        let hi = self.filled(1, elem, &v.dims);
        let name = self.op(&format!("ternary.clamp {}, {lo}, {hi}", v.name), elem.name(), &v.dims);
        let name = self.op(&format!("unary.floor {name}"), elem.name(), &v.dims);
        // Zero has one sign.
        let zero = self.filled(0, elem, &v.dims);
        let name = self.binary("add", &name, &zero, elem, &v.dims);
        Val { name, ..v.clone() }
    }

    /// The text of a region that combines two numbers.
    pub(super) fn combination(&mut self, elem: Scalar) -> String {
        let f = match elem.is_float() {
            true => self.r.pick(&["add", "max", "min"]),
            false => self.r.pick(&["add", "max", "min", "and", "or", "xor", "mul"]),
        };
        let n = self.count;
        format!(
            "{{\n    ^(%a{n}: {elem}, %b{n}: {elem}):\n    %c{n} = binary.{f} %a{n}, %b{n} : {elem}\n    yield values=[%c{n}]\n  }}"
        )
    }

    fn reduce(&mut self, dims: &[usize]) {
        let v = self.any(dims);
        let v = self.small(&v);
        let axis = self.r.below(dims.len());
        let mut to = dims.to_vec();
        to.remove(axis);
        let body = self.combination(v.elem);
        let op = format!("reduce inputs=[{}] axis={axis} {body}", v.name);
        let name = self.op(&op, v.elem.name(), &to);
        self.keep(name.clone(), v.elem, &to);
        if self.r.below(2) == 0 {
            return;
        }
        // As in a softmax: the result beside what it was made from.
        let all = match to[..] {
            [] => self.splat(&name, v.elem.name(), dims),
            _ => {
                let mut one = dims.to_vec();
                one[axis] = 1;
                let e = self.op(&format!("expand_dims {name} axis={axis}"), v.elem.name(), &one);
                self.op(&format!("broadcast {e} shape={}", shape(dims)), v.elem.name(), dims)
            }
        };
        let f = if v.elem.is_bool() { "xor" } else { "sub" };
        let name = self.binary(f, &v.name, &all, v.elem, dims);
        self.keep(name, v.elem, dims);
    }

    fn scan(&mut self, dims: &[usize]) {
        let v = self.any(dims);
        let v = self.small(&v);
        let axis = self.r.below(dims.len());
        let reverse = if self.r.below(2) == 0 { " reverse=true" } else { "" };
        let body = self.combination(v.elem);
        let op = format!("scan inputs=[{}] axis={axis}{reverse} {body}", v.name);
        let name = self.op(&op, v.elem.name(), dims);
        self.keep(name, v.elem, dims);
    }

    /// Two values combined at once: the greatest with its index, a sum with a greatest.
    fn pairs(&mut self, dims: &[usize]) {
        let v = self.any(dims);
        if v.elem.is_float() || v.elem.is_bool() {
            return;
        }
        let (e, n) = (v.elem.name(), self.count);
        let i = self.typed(Scalar::I32, dims);
        let axis = self.r.below(dims.len());
        let scan = self.r.below(3) == 0;
        let mut to = dims.to_vec();
        if !scan {
            to.remove(axis);
        }
        let body = match self.r.below(2) {
            0 => format!(
                "    %g{n} = compare.gt %a{n}, %b{n} : i1\n    %e{n} = compare.eq %a{n}, %b{n} : i1\n    %l{n} = compare.lt %i{n}, %j{n} : i1\n    %f{n} = binary.and %e{n}, %l{n} : i1\n    %h{n} = binary.or %g{n}, %f{n} : i1\n    %x{n} = select %h{n}, %a{n}, %b{n} : {e}\n    %y{n} = select %h{n}, %i{n}, %j{n} : i32\n"
            ),
            _ => format!(
                "    %x{n} = binary.add %a{n}, %b{n} : {e}\n    %y{n} = binary.max %i{n}, %j{n} : i32\n"
            ),
        };
        let op = if scan { "scan" } else { "reduce" };
        let (x, y) = (self.fresh(), self.fresh());
        let _ = writeln!(
            self.text,
            "  {x}, {y} = {op} inputs=[{}, {i}] axis={axis} {{\n    ^(%a{n}: {e}, %i{n}: i32, %b{n}: {e}, %j{n}: i32):\n{body}    yield values=[%x{n}, %y{n}]\n  }} : {}, {}",
            v.name,
            tile(e, &to),
            tile("i32", &to)
        );
        self.keep(x, v.elem, &to);
        self.keep(y, Scalar::I32, &to);
    }

    fn rearrange(&mut self, dims: &[usize]) {
        let v = self.any(dims);
        let (e, rank) = (v.elem.name(), dims.len());
        let axis = self.r.below(rank);
        match self.r.below(8) {
            0 | 1 if rank > 1 => {
                let mut order: Vec<usize> = (0..rank).collect();
                order.rotate_left(1 + self.r.below(rank - 1));
                let to: Vec<usize> = order.iter().map(|&i| dims[i]).collect();
                let name = self.op(&format!("permute {} order={}", v.name, shape(&order)), e, &to);
                self.keep(name, v.elem, &to);
            }
            2 => {
                let n = numel(dims);
                let a = 1 << self.r.below(n.trailing_zeros() as usize + 1);
                let to = self.r.pick(&[[1, n], [n, 1], [a, n / a]]);
                let to = if self.r.below(3) == 0 { vec![n] } else { to.to_vec() };
                let name = self.op(&format!("reshape {} shape={}", v.name, shape(&to)), e, &to);
                self.keep(name, v.elem, &to);
            }
            3 if numel(dims) < LARGEST => {
                let w = self.typed(v.elem, dims);
                let mut to = dims.to_vec();
                to.push(2);
                let j = self.op(&format!("join {}, {w}", v.name), e, &to);
                self.keep(j.clone(), v.elem, &to);
                if self.r.below(2) == 0 {
                    let (x, y) = (self.fresh(), self.fresh());
                    let t = tile(e, dims);
                    let _ = writeln!(self.text, "  {x}, {y} = split {j} : {t}, {t}");
                    self.keep(x, v.elem, dims);
                    self.keep(y, v.elem, dims);
                }
            }
            4 if numel(dims) < LARGEST => {
                let w = self.typed(v.elem, dims);
                let mut to = dims.to_vec();
                to[axis] *= 2;
                let name = self.op(&format!("cat {}, {w} axis={axis}", v.name), e, &to);
                self.keep(name, v.elem, &to);
            }
            5 => {
                let name = self.op(&format!("flip {} axis={axis}", v.name), e, dims);
                self.keep(name, v.elem, dims);
            }
            6 => {
                let i = self.typed(Scalar::I32, dims);
                let last = self.filled(dims[axis] as i128 - 1, Scalar::I32, dims);
                let i = self.binary("and", &i, &last, Scalar::I32, dims);
                let name = self.op(&format!("gather {}, {i} axis={axis}", v.name), e, dims);
                self.keep(name, v.elem, dims);
            }
            _ => {
                let mut to = dims.to_vec();
                to.insert(axis, 1);
                let name = self.op(&format!("expand_dims {} axis={axis}", v.name), e, &to);
                self.keep(name.clone(), v.elem, &to);
                to[axis] = self.r.pick(&[1, 2, 8]);
                if numel(&to) <= LARGEST {
                    let name = self.op(&format!("broadcast {name} shape={}", shape(&to)), e, &to);
                    self.keep(name, v.elem, &to);
                }
            }
        }
    }

    /// Reads elements and writes them to others that overlap them.
    fn shift(&mut self, dims: &[usize]) {
        let to = self.place(dims, Use::Store);
        let (ptr, e) = (format!("*{}", to.elem), to.elem.name());
        let by = self.r.pick(&[1, 1, -1, 2, 16]);
        let from = match self.parallel {
            true => to.name.clone(),
            false => {
                let by = self.filled(by, Scalar::I32, dims);
                self.op(&format!("ptr_add {}, {by}", to.name), &ptr, dims)
            }
        };
        let mask = self.masked(dims);
        let x = self.op(&format!("load {from}{mask}"), e, dims);
        self.keep(x.clone(), to.elem, dims);
        let mut value = x.clone();
        if dims.len() == 2 && dims[0] == dims[1] && self.r.below(3) == 0 {
            value = self.op(&format!("permute {x} order=(1,0)"), e, dims);
        }
        if self.r.below(2) == 0 {
            let w = self.typed(to.elem, dims);
            value = self.binary("add", &value, &w, to.elem, dims);
        }
        if self.r.below(6) == 0 {
            self.statement();
        }
        let _ = writeln!(self.text, "  store {}, {value}{mask}", to.name);
        if self.r.below(3) == 0 {
            let y = self.op(&format!("load {from}{mask}"), e, dims);
            self.keep(y, to.elem, dims);
        }
    }

    fn dot(&mut self) {
        let batch = if self.r.below(5) == 0 { vec![2] } else { vec![] };
        // An operand of two products is no larger than a program's part.
        let all = if batch.is_empty() { &[1, 2, 4, 16, 16, 32][..] } else { &[1, 2, 4, 16, 16] };
        let (m, k, n) = (self.r.pick(all), self.r.pick(all), self.r.pick(all));
        let with = |a: usize, b: usize| [&batch[..], &[a, b]].concat();
        let (elem, out) = self.r.pick(&[
            (Scalar::F32, Scalar::F32),
            (Scalar::F32, Scalar::F32),
            (Scalar::F16, Scalar::F32),
            (Scalar::F16, Scalar::F16),
            (Scalar::BF16, Scalar::F32),
            (Scalar::F64, Scalar::F64),
            (Scalar::I8, Scalar::I32),
            (Scalar::U8, Scalar::I32),
            (Scalar::F8E5, Scalar::F32),
            (Scalar::F8E4NV, Scalar::F32),
            (Scalar::F8E4NV, Scalar::F16),
        ]);
        let a = match self.r.below(4) {
            0 => {
                let order = if batch.is_empty() { "(1,0)" } else { "(0,2,1)" };
                let t = self.operand(elem, &with(k, m));
                self.op(&format!("permute {t} order={order}"), elem.name(), &with(m, k))
            }
            _ => self.operand(elem, &with(m, k)),
        };
        let b = self.operand(elem, &with(k, n));
        let to = with(m, n);
        let mut rest = String::new();
        if self.r.below(2) == 0 {
            let acc = Val { name: self.typed(out, &to), elem: out, dims: to.clone() };
            let acc = self.small(&acc);
            let _ = write!(rest, " acc={}", acc.name);
            self.keep(acc.name, out, &to);
        }
        let op = format!("dot {a}, {b}{rest} out={out} precision=ieee");
        let name = self.op(&op, out.name(), &to);
        self.keep(name.clone(), out, &to);
        if self.r.below(2) == 0 {
            let w = Val { name: self.typed(out, &to), elem: out, dims: to.clone() };
            let w = self.small(&w);
            let name = self.binary("add", &w.name, &name, out, &to);
            self.keep(name, out, &to);
        }
    }

    /// An operand of a product: small numbers, as they are in memory where those are integers.
    fn operand(&mut self, elem: Scalar, dims: &[usize]) -> String {
        let direct = self.bases.iter().any(|b| b.elem == elem) && self.r.below(2) == 0;
        let mut v = Val { name: String::new(), elem, dims: dims.to_vec() };
        for _ in 0..3 {
            if direct && v.name.is_empty() {
                let x = self.load(dims);
                if x.elem == elem {
                    v = x;
                }
            }
        }
        if v.name.is_empty() {
            v.name = self.typed(elem, dims);
        }
        self.small(&v).name
    }

    fn atomic(&mut self, dims: &[usize]) {
        self.polls |= self.depth > 0;
        let dims = if self.r.below(4) == 0 { vec![] } else { dims.to_vec() };
        let p = self.place(&dims, Use::Atomic);
        let all: &[&str] = match p.elem {
            Scalar::I32 | Scalar::U32 | Scalar::I64 => {
                &["add", "max", "min", "and", "or", "xor", "xchg", "cas", "load", "store"]
            }
            Scalar::F32 | Scalar::F64 => &["add", "max", "xchg", "load", "store"],
            Scalar::F16 | Scalar::BF16 => &["add", "load", "store"],
            _ => &["load", "store"],
        };
        let f = self.r.pick(all);
        let value = self.typed(p.elem, &dims);
        let mask = self.masked(&dims);
        let (e, at) = (p.elem.name(), &p.name);
        let sem = match f {
            "store" => self.r.pick(&["", " sem=release", " sem=relaxed"]),
            "load" => self.r.pick(&["", " sem=acquire", " sem=relaxed"]),
            _ => self.r.pick(&["", "", " sem=acquire", " sem=release", " sem=relaxed"]),
        };
        let scope = self.r.pick(&["", "", " scope=cta", " scope=sys"]);
        let how = [sem, scope].concat();
        let old = match f {
            "store" => {
                let _ = writeln!(self.text, "  atomic_store {at}, {value}{mask}{how}");
                return;
            }
            "load" => self.op(&format!("atomic_load {at}{mask}{how}"), e, &dims),
            "cas" => {
                let compare = self.typed(p.elem, &dims);
                self.op(&format!("atomic_cas {at}, {compare}, {value}{how}"), e, &dims)
            }
            f => self.op(&format!("atomic.{f} {at}, {value}{mask}{how}"), e, &dims),
        };
        self.keep(old, p.elem, &dims);
    }

    fn sort(&mut self, dims: &[usize]) {
        let v = self.any(dims);
        if v.elem.is_float() || v.elem.is_bool() {
            return;
        }
        let last = dims[dims.len() - 1];
        match self.r.below(3) {
            0 if dims.len() == 1 => {
                let mask = self.masked(dims);
                let name = self.op(&format!("histogram {}{mask} bins=16", v.name), "i32", &[16]);
                self.keep(name, Scalar::I32, &[16]);
            }
            1 => {
                let op = format!("sort {} descending=false", v.name);
                let name = self.op(&op, v.elem.name(), dims);
                self.keep(name, v.elem, dims);
            }
            _ => {
                let mut to = dims.to_vec();
                let k = (last / 2).max(1);
                to[dims.len() - 1] = k;
                let op = format!("topk {} k={k} descending=true", v.name);
                let name = self.op(&op, v.elem.name(), &to);
                self.keep(name, v.elem, &to);
            }
        }
    }

    /// What is made inside is forgotten behind a region.
    pub(super) fn region<T>(&mut self, inner: impl FnOnce(&mut Gen) -> T) -> (String, T) {
        let around = std::mem::take(&mut self.text);
        let seen = [self.values.len(), self.masks.len(), self.indices.len()];
        let (places, loads) = (self.places.len(), self.loads.len());
        self.depth += 1;
        let out = inner(self);
        self.depth -= 1;
        self.values.truncate(seen[0]);
        self.masks.truncate(seen[1]);
        self.indices.truncate(seen[2]);
        self.places.truncate(places);
        self.loads.truncate(loads);
        (std::mem::replace(&mut self.text, around), out)
    }

    fn few(&mut self) {
        for _ in 0..1 + self.r.below(4) {
            self.statement();
        }
    }

    /// Values that a region takes and gives.
    fn some_values(&mut self) -> Vec<Val> {
        let mut out = Vec::new();
        for _ in 0..self.r.below(3) {
            let v = self.values[self.r.below(self.values.len())].clone();
            if numel(&v.dims) <= CARRIED {
                out.push(v);
            }
        }
        out
    }

    fn branch(&mut self) {
        if self.depth > 1 {
            return;
        }
        let cond = match self.r.below(2) {
            0 => "%c".to_string(),
            _ => {
                let (a, b) = (self.typed(Scalar::I32, &[]), self.number(3, Scalar::I32));
                self.op(&format!("compare.gt {a}, {b}"), "i1", &[])
            }
        };
        let types = self.some_values();
        let arm = |g: &mut Gen| {
            g.region(|g| {
                if g.r.below(4) > 0 {
                    g.few();
                }
                let values: Vec<String> = types.iter().map(|v| g.typed(v.elem, &v.dims)).collect();
                let _ = writeln!(g.text, "  yield values=[{}]", values.join(", "));
            })
            .0
        };
        let (then, otherwise) = (arm(self), arm(self));
        self.with_results(&format!("if {cond} {{\n{then}  }} {{\n{otherwise}  }}"), &types, None);
    }

    pub(super) fn with_results(&mut self, op: &str, types: &[Val], place: Option<&Place>) {
        let (mut names, mut shown) = (Vec::new(), Vec::new());
        for v in types {
            let name = self.fresh();
            names.push(name.clone());
            shown.push(tile(v.elem.name(), &v.dims));
            self.keep(name, v.elem, &v.dims);
        }
        if let Some(p) = place {
            let name = self.fresh();
            names.push(name.clone());
            shown.push(tile(&format!("*{}", p.elem), &p.dims));
            self.places.push(Place { name, ..p.clone() });
        }
        let (head, tail) = match names.is_empty() {
            true => (String::new(), String::new()),
            false => (names.join(", ") + " = ", format!(" : {}", shown.join(", "))),
        };
        let _ = writeln!(self.text, "  {head}{op}{tail}");
    }

    /// Next values of what is carried: changed by something, of another slot, or as they are.
    fn next(&mut self, carried: &[Val]) -> Vec<String> {
        let mut out = Vec::new();
        for v in carried {
            out.push(match self.r.below(5) {
                0 => v.name.clone(),
                1 => {
                    let w = self.typed(v.elem, &v.dims);
                    let f = if v.elem.is_bool() { "xor" } else { "add" };
                    self.binary(f, &v.name, &w, v.elem, &v.dims)
                }
                _ => self.typed(v.elem, &v.dims),
            });
        }
        out
    }

    fn renamed(&mut self, all: &[Val]) -> Vec<Val> {
        all.iter().map(|v| Val { name: self.fresh(), ..v.clone() }).collect()
    }

    fn counted(&mut self) {
        if self.depth > 1 {
            return;
        }
        let inits = self.some_values();
        let place = (self.r.below(2) == 0 && !self.parallel).then(|| {
            let dims = if self.r.below(4) == 0 { vec![] } else { self.used_dims() };
            let to = self.r.pick(&[Use::Read, Use::Store]);
            self.place(&dims, to)
        });
        let (lower, step) = self.r.pick(&[(0, 1), (0, 1), (0, 2), (1, 1), (3, -1)]);
        let (lower, step) = (self.number(lower, Scalar::I32), self.number(step, Scalar::I32));
        let upper = match self.r.below(3) {
            0 => self.number(2, Scalar::I32),
            _ => "%few".to_string(),
        };
        let iv = self.fresh();
        let params = self.renamed(&inits);
        let moved = place.as_ref().map(|p| Place { name: self.fresh(), ..p.clone() });
        let (body, ()) = self.region(|g| {
            g.keep(iv.clone(), Scalar::I32, &[]);
            g.values.extend(params.iter().cloned());
            g.places.extend(moved.iter().cloned());
            g.few();
            let mut next = g.next(&params);
            if let Some(p) = &moved {
                let by = g.r.pick(&[1, 16, 64, -1]);
                let by = g.filled(by, Scalar::I32, &p.dims);
                let op = format!("ptr_add {}, {by}", p.name);
                next.push(g.op(&op, &format!("*{}", p.elem), &p.dims));
            }
            let _ = writeln!(g.text, "  yield values=[{}]", next.join(", "));
        });
        let mut heads = vec![format!("{iv}: i32")];
        heads.extend(params.iter().map(head));
        let mut names: Vec<&str> = inits.iter().map(|v| v.name.as_str()).collect();
        if let (Some(p), Some(m)) = (&place, &moved) {
            names.push(&p.name);
            heads.push(format!("{}: {}", m.name, tile(&format!("*{}", p.elem), &p.dims)));
        }
        let op = format!(
            "for {lower}, {upper}, {step} inits=[{}] {{\n  ^({}):\n{body}  }}",
            names.join(", "),
            heads.join(", ")
        );
        self.with_results(&op, &inits, place.as_ref());
    }

    fn tested(&mut self) {
        if self.depth > 1 {
            return;
        }
        let mut carried = self.some_values();
        let zero = self.number(0, Scalar::I32);
        carried.insert(0, Val { name: zero, elem: Scalar::I32, dims: vec![] });
        let rounds = self.r.pick(&[0, 1, 3]);
        let end = self.number(rounds, Scalar::I32);
        let (tested, inner) = (self.renamed(&carried), self.renamed(&carried));
        let (test, ()) = self.region(|g| {
            g.values.extend(tested[1..].iter().cloned());
            if g.r.below(2) == 0 {
                g.few();
            }
            let cond = g.op(&format!("compare.lt {}, {end}", tested[0].name), "i1", &[]);
            let names: Vec<&str> = tested.iter().map(|v| v.name.as_str()).collect();
            let _ = writeln!(g.text, "  condition {cond} values=[{}]", names.join(", "));
        });
        let (body, ()) = self.region(|g| {
            g.values.extend(inner[1..].iter().cloned());
            g.few();
            let one = g.number(1, Scalar::I32);
            let mut next = vec![g.binary("add", &inner[0].name, &one, Scalar::I32, &[])];
            next.extend(g.next(&inner[1..]));
            let _ = writeln!(g.text, "  yield values=[{}]", next.join(", "));
        });
        let heads = |all: &[Val]| all.iter().map(head).collect::<Vec<_>>().join(", ");
        let inits: Vec<&str> = carried.iter().map(|v| v.name.as_str()).collect();
        let op = format!(
            "while inits=[{}] {{\n  ^({}):\n{test}  }} {{\n  ^({}):\n{body}  }}",
            inits.join(", "),
            heads(&tested),
            heads(&inner)
        );
        self.with_results(&op, &inner, None);
    }
}

/// A parameter of a region, with its type.
pub(super) fn head(v: &Val) -> String {
    format!("{}: {}", v.name, tile(v.elem.name(), &v.dims))
}
