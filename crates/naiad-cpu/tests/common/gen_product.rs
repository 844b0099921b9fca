//! Loops that fetch operands of a product, as random kernels about memory have them.

use super::ops::head;
use super::{Base, Gen, Place, Val, shape};
use naiad_ir::Scalar;
use std::fmt::Write;

/// One operand: a tile of it is loaded in each round.
struct Operand {
    base: Base,
    /// As it lies in memory.
    dims: [usize; 2],
    /// Which axis is summed over.
    summed: usize,
    /// The other way round than the product wants it.
    turned: bool,
    /// Elements between rows.
    stride: i128,
    /// Of a round's elements, from its first.
    index: String,
}

impl Operand {
    /// Elements from one round to the next, by elements along the summed axis.
    fn step(&self) -> i128 {
        if self.summed == 0 { self.stride } else { 1 }
    }
}

impl Gen {
    /// A product over a long axis, part after part.
    pub(super) fn product(&mut self) {
        let out = |elem| match elem {
            Scalar::F16 | Scalar::BF16 | Scalar::F32 => Some(Scalar::F32),
            Scalar::F64 => Some(Scalar::F64),
            Scalar::I8 | Scalar::U8 => Some(Scalar::I32),
            _ => None,
        };
        let fits = |b: &&Base| out(b.elem).is_some() && !(self.parallel && b.written);
        let bases: Vec<Base> = self.bases.iter().filter(fits).cloned().collect();
        if self.depth > 1 || bases.is_empty() {
            return;
        }
        let base = self.r.pick(&bases.iter().collect::<Vec<_>>()).clone();
        let alike: Vec<&Base> = bases.iter().filter(|b| b.elem == base.elem).collect();
        let other = self.r.pick(&alike).clone();
        let Some(out) = out(base.elem) else { return };
        let (m, n, k) =
            (self.r.pick(&[16, 16, 32]), self.r.pick(&[16, 16, 32]), self.r.pick(&[16, 32]));
        let a = self.operand_in_memory(base, [m, k], 1);
        let b = self.operand_in_memory(other, [k, n], 0);
        let lower = self.number(0, Scalar::I32);
        let step = self.number(k as i128, Scalar::I32);
        let upper = match self.r.below(3) {
            0 => {
                let end = self.r.pick(&[0, 1, 16, 32, 48, 64]);
                self.number(end, Scalar::I32)
            }
            _ => "%n".to_string(),
        };
        let masked = self.r.below(4) > 0;
        let start = match self.r.below(3) {
            0 => {
                let acc = Val { name: self.typed(out, &[m, n]), elem: out, dims: vec![m, n] };
                self.small(&acc)
            }
            _ => Val { name: self.filled(0, out, &[m, n]), elem: out, dims: vec![m, n] },
        };
        // A carried pointer now and then, mostly an offset made anew.
        let moved = (self.r.below(3) == 0).then(|| self.first_place(&a));
        let (iv, param) = (self.fresh(), Val { name: self.fresh(), ..start.clone() });
        let inner = moved.as_ref().map(|p| Place { name: self.fresh(), ..p.clone() });
        let (body, ()) = self.region(|g| {
            let x = g.round(&a, inner.as_ref(), &iv, &upper, masked);
            let y = g.round(&b, None, &iv, &upper, masked);
            let next = match g.r.below(4) {
                0 => {
                    let op = format!("dot {x}, {y} out={out} precision=ieee");
                    let product = g.op(&op, out.name(), &[m, n]);
                    g.binary("add", &param.name, &product, out, &[m, n])
                }
                _ => {
                    let op = format!("dot {x}, {y} acc={} out={out} precision=ieee", param.name);
                    g.op(&op, out.name(), &[m, n])
                }
            };
            let mut yields = vec![next];
            if let Some(p) = &inner {
                let by = g.filled(k as i128 * a.step(), Scalar::I32, &p.dims);
                let op = format!("ptr_add {}, {by}", p.name);
                yields.push(g.op(&op, &format!("*{}", p.elem), &p.dims));
            }
            let _ = writeln!(g.text, "  yield values=[{}]", yields.join(", "));
        });
        let mut heads = vec![format!("{iv}: i32"), head(&param)];
        let mut inits = vec![start.name.as_str()];
        if let (Some(p), Some(i)) = (&moved, &inner) {
            inits.push(&p.name);
            heads.push(format!("{}: {}", i.name, super::tile(&format!("*{}", p.elem), &p.dims)));
        }
        let op = format!(
            "for {lower}, {upper}, {step} inits=[{}] {{\n  ^({}):\n{body}  }}",
            inits.join(", "),
            heads.join(", ")
        );
        self.with_results(&op, &[start], moved.as_ref());
    }

    fn operand_in_memory(&mut self, base: Base, dims: [usize; 2], summed: usize) -> Operand {
        let turned = self.r.below(3) == 0;
        let (dims, summed) = if turned { ([dims[1], dims[0]], 1 - summed) } else { (dims, summed) };
        let stride = match self.r.below(3) {
            0 => dims[1] as i128,
            _ => self.r.pick(&[16, 20, 32, 40]),
        };
        let index = self.sum_of_axes(&dims, &[stride, 1], None, Scalar::I32).name;
        Operand { base, dims, summed, turned, stride, index }
    }

    fn first_place(&mut self, x: &Operand) -> Place {
        let (dims, elem, pointer) = (x.dims.to_vec(), x.base.elem, x.base.pointer);
        let ptr = format!("*{elem}");
        let all = self.splat(&x.base.name, &ptr, &dims);
        let name = self.op(&format!("ptr_add {all}, {}", x.index), &ptr, &dims);
        Place { name, elem, dims, pointer, apart: false }
    }

    /// What a round loads of an operand, as the product wants it.
    fn round(
        &mut self,
        x: &Operand,
        at: Option<&Place>,
        iv: &str,
        upper: &str,
        masked: bool,
    ) -> String {
        let (dims, elem, e) = (&x.dims[..], x.base.elem, x.base.elem.name());
        let address = match at {
            Some(place) => place.name.clone(),
            None => {
                let by = self.number(x.step(), Scalar::I32);
                let by = self.binary("mul", iv, &by, Scalar::I32, &[]);
                let by = self.splat(&by, "i32", dims);
                let index = self.binary("add", &x.index, &by, Scalar::I32, dims);
                let all = self.splat(&x.base.name, &format!("*{elem}"), dims);
                self.op(&format!("ptr_add {all}, {index}"), &format!("*{elem}"), dims)
            }
        };
        let mut rest = String::new();
        if masked {
            let along = &dims[x.summed..=x.summed];
            let k = self.axis(along[0], Scalar::I32);
            let first = self.splat(iv, "i32", along);
            let k = self.binary("add", &k, &first, Scalar::I32, along);
            let end = self.splat(upper, "i32", along);
            let inside = self.op(&format!("compare.lt {k}, {end}"), "i1", along);
            let _ = write!(rest, " mask={}", self.along(&inside, "i1", x.summed, dims));
            if self.r.below(3) > 0 {
                let zero = self.filled(0, elem, dims);
                let _ = write!(rest, " other={zero}");
            }
        }
        let mut name = self.op(&format!("load {address}{rest}"), e, dims);
        let v = Val { name: name.clone(), elem, dims: dims.to_vec() };
        // Sums of small numbers are exact in every order.
        let computed = self.r.below(5) == 0;
        if elem.is_float() && (computed || !x.base.still) {
            name = self.small(&v).name;
        } else if computed {
            name = self.binary("add", &name, &name, elem, dims);
        }
        if x.turned {
            let to = [dims[1], dims[0]];
            name = self.op(&format!("permute {name} order={}", shape(&[1, 0])), e, &to);
        }
        name
    }
}
