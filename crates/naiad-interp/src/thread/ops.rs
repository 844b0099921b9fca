//! Ops without effects.

use super::{Evaluator, Lanes, accepted, binary, compare};
use naiad_ir::Scalar;
use naiad_ir::op::OpInfo;
use naiad_ir::scalar::cast_bits;
use naiad_ir::thread::{ThreadElem, ThreadOp};
use smallvec::smallvec;

/// The bits that an image may have set.
pub fn mask(elem: ThreadElem) -> u64 {
    elem.scalar().map_or(u64::MAX, Scalar::mask)
}

impl Evaluator<'_> {
    /// The lanes of an op that only computes.
    pub fn pure(&self, op: &ThreadOp) -> Lanes {
        match op {
            ThreadOp::Const { value, lanes } => smallvec![value.bits; lanes.0 as usize],
            ThreadOp::Iota { elem, lanes } => {
                (0..u64::from(lanes.0)).map(|i| i & mask(*elem)).collect()
            }
            ThreadOp::Splat { src, lanes } => smallvec![self.one(*src); lanes.0 as usize],
            ThreadOp::Extract { src, lane } => smallvec![self.get(*src)[*lane as usize]],
            ThreadOp::Shuffle { a, b, order } => {
                let both = [self.get(*a).as_slice(), self.get(*b).as_slice()].concat();
                order.0.iter().map(|&i| both[i as usize]).collect()
            }
            ThreadOp::Any { mask } => smallvec![u64::from(self.get(*mask).iter().any(|&m| m != 0))],
            ThreadOp::All { mask } => smallvec![u64::from(self.get(*mask).iter().all(|&m| m != 0))],
            ThreadOp::Unary { f, x } => {
                let ty = self.scalar(*x);
                self.get(*x).iter().map(|&x| accepted(f.eval(ty, x), f, ty)).collect()
            }
            ThreadOp::Binary { f, a, b } => {
                let ty = self.scalar(*a);
                let lanes = self.get(*a).iter().zip(self.get(*b));
                lanes.map(|(&x, &y)| binary(*f, ty, x, y)).collect()
            }
            ThreadOp::Ternary { f, a, b, c } => {
                let ty = self.scalar(*a);
                let lanes = self.get(*a).iter().zip(self.get(*b)).zip(self.get(*c));
                lanes.map(|((&x, &y), &z)| accepted(f.eval(ty, x, y, z), f, ty)).collect()
            }
            ThreadOp::Compare { p, a, b } => {
                // Addresses are compared as the numbers that they are.
                let ty = self.vector(*a).elem.scalar().unwrap_or(Scalar::U64);
                let lanes = self.get(*a).iter().zip(self.get(*b));
                lanes.map(|(&x, &y)| compare(*p, ty, x, y)).collect()
            }
            ThreadOp::Select { cond, yes, no } => {
                let lanes = self.get(*cond).iter().zip(self.get(*yes)).zip(self.get(*no));
                lanes.map(|((&c, &x), &y)| if c != 0 { x } else { y }).collect()
            }
            ThreadOp::Cast { src, to, rounding } => {
                let from = self.scalar(*src);
                self.get(*src).iter().map(|&x| cast_bits(from, *to, *rounding, x)).collect()
            }
            ThreadOp::Bitcast { src, to: _ } => self.get(*src).clone(),
            ThreadOp::AddrAdd { addr, offset } => {
                let lanes = self.get(*addr).iter().zip(self.get(*offset));
                lanes.map(|(&x, &y)| x.wrapping_add(y)).collect()
            }
            other => panic!("`{}` does more than compute", other.name()),
        }
    }
}
