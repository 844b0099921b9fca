//! What is not a whole vector inside the bounds of a row: the rest of the lanes inside, and those past the
//! end.

use super::Dist;
use super::access::{Access, Reach};
use super::group::{Group, Root};
use super::lanes::{Bound, Map, Nest, Status, identity};
use super::nest::{Job, Made, Target};
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, cast_bits};
use naiad_ir::tile::{Constant, TileOp};
use naiad_ir::{Def, Value};
use naiad_opt::origin::Origin;

impl Dist<'_> {
    /// Whether the lanes that whole vectors inside the bounds leave over can be one vector more, whose
    /// lanes past the end are masked off.
    ///
    /// Elements one by one take much longer, but only loops that are written beside Cranelift have masked
    /// accesses, and these are of consecutive elements.
    pub(super) fn masks_rest(
        &mut self,
        group: &Group,
        accesses: &[(Access, Map)],
        bounds: &[Bound],
        va: usize,
    ) -> bool {
        let along = |b: &Bound| match b {
            Bound::Below(d, _) | Bound::From(d, _) => usize::from(*d) == va,
            Bound::Uniform(_) => false,
        };
        let from_zero = !bounds.iter().any(|b| along(b) && matches!(b, Bound::From(..)));
        let least = if self.vector_bytes >= 64 { 1 } else { 4 };
        self.vector_bytes > 16
            && group.shape.dim(va) > 1
            && from_zero
            && bounds.iter().any(along)
            && accesses.iter().all(|(access, map)| {
                let follows = map.iter().position(|to| *to == Some(va as u8));
                let Some(axis) = follows else { return true };
                let size = access.elem.size() as i64;
                let address = self.analysis.address(access.ptr);
                size >= least
                    && matches!(self.plan.origin(access.ptr), Origin::Arg(_))
                    && address.is_some_and(|a| a.offset.steps[axis].constant() == Some(size))
            })
    }

    /// What is reduced without a constant that is combined with each element, as a sum that starts at 0 is.
    /// Combined once with the result it does the same, if it stays the same when combined with itself.
    pub(super) fn apart_from_constant(&self, v: Value, f: BinaryFn) -> (Value, Option<Constant>) {
        let none = (v, None);
        let Def::Result(inst, _) = self.f.def(v) else { return none };
        let TileOp::Binary { f: inner, a, b } = *self.f.op(inst) else { return none };
        if inner != f || self.places.has(v) || self.is_pending(v) {
            return none;
        }
        for (constant, other) in [(a, b), (b, a)] {
            let Some(&TileOp::Splat { src, .. }) = self.f.defining_op(constant) else { continue };
            let Some(&TileOp::Const { value: c }) = self.f.defining_op(src) else { continue };
            // A narrow float would be rounded beside each element, and not beside their sum.
            if c.ty == c.ty.compute_type() && f.eval(c.ty, c.bits, c.bits) == Some(c.bits) {
                return (other, Some(c));
            }
        }
        none
    }

    /// For each sum of a row the constant that all of its lanes have where the masks are false, if nothing
    /// else is to be done there and however many of them are one.
    pub(super) fn constants_outside(
        &mut self,
        n: &Nest,
        job: &Job,
    ) -> Option<Vec<(Constant, BinaryFn)>> {
        if n.reaches.values().any(|r| matches!(r, Reach::Lanes)) {
            return None;
        }
        let own = identity(job.rank);
        let mut constants = Vec::new();
        for made in &job.roots {
            match (&made.root, &made.into) {
                (Root::Store { inst } | Root::Check { inst }, _) => {
                    let mask = self.access(*inst).and_then(|a| a.mask)?;
                    if self.status(n, mask, &own) != Status::False {
                        return None;
                    }
                }
                (Root::Reduce { input, f, .. }, Target::Row { .. }) => {
                    let c = self.constant_of(n, *input, &own)?;
                    let ty = self.sum_type(*input);
                    let bits = cast_bits(c.ty, ty, Rounding::Nearest, c.bits);
                    if f.eval(ty, bits, bits) != Some(bits) {
                        return None;
                    }
                    constants.push((Constant { ty, bits }, *f));
                }
                (Root::Reduce { .. } | Root::Keep { .. }, _) => return None,
            }
        }
        Some(constants)
    }

    /// The constant that every lane of a value is, by what is known of masks.
    fn constant_of(&mut self, n: &Nest, v: Value, map: &Map) -> Option<Constant> {
        let Def::Result(inst, _) = self.f.def(v) else { return None };
        let scalar = self.f.ty(v).elem.scalar();
        let op = self.f.op(inst).clone();
        match &op {
            TileOp::Const { value } => return Some(*value),
            TileOp::Load { mask: Some(mask), other, .. } => {
                return match (self.status(n, *mask, map), other) {
                    (Status::False, Some(other)) => self.constant_of(n, *other, map),
                    (Status::False, None) => Some(Constant { ty: scalar?, bits: 0 }),
                    (Status::True | Status::Lanes, _) => None,
                };
            }
            TileOp::Select { cond, yes, no } => {
                let chosen = match self.status(n, *cond, map) {
                    Status::True => *yes,
                    Status::False => *no,
                    Status::Lanes => return None,
                };
                return self.constant_of(n, chosen, map);
            }
            _ => {}
        }
        if super::plan::class(self.f, inst) != super::plan::Class::Virtual {
            return None;
        }
        let mut args: smallvec::SmallVec<[Constant; 3]> = smallvec::SmallVec::new();
        for (v, map) in self.operands(inst, map) {
            args.push(self.constant_of(n, v, &map)?);
        }
        let ty = args.first()?.ty;
        let bits = |i: usize| args.get(i).map(|c| c.bits);
        let image = match op {
            TileOp::Splat { .. }
            | TileOp::ExpandDims { .. }
            | TileOp::Broadcast { .. }
            | TileOp::Permute { .. }
            | TileOp::Reshape { .. }
            | TileOp::Hint { .. } => bits(0),
            TileOp::Unary { f, .. } => f.eval(ty, bits(0)?),
            TileOp::Binary { f, .. } => f.eval(ty, bits(0)?, bits(1)?),
            TileOp::Ternary { f, .. } => f.eval(ty, bits(0)?, bits(1)?, bits(2)?),
            TileOp::Compare { p, .. } => p.eval(ty, bits(0)?, bits(1)?).map(u64::from),
            TileOp::Cast { to, rounding, .. } => Some(cast_bits(ty, to, rounding, bits(0)?)),
            _ => None,
        };
        Some(Constant { ty: scalar?, bits: image? })
    }

    /// Where sums of single lanes start, if there are such lanes beside them that are all one constant.
    pub(super) fn start_outside(
        &mut self,
        job: &Job,
        constants: &[(Constant, BinaryFn)],
        [from, to]: [Value; 2],
        one: &mut [Value],
    ) {
        let any = self.b.compare(Predicate::Lt, from, to);
        let starts: Vec<Constant> = job.roots.iter().filter_map(|made| self.start(made)).collect();
        for ((&(c, f), start), one) in constants.iter().zip(starts).zip(one) {
            let both = f.eval(c.ty, start.bits, c.bits).unwrap_or(c.bits);
            if both != start.bits {
                let constant = self.b.constant(Constant { bits: both, ..c }, 1);
                *one = self.pick(any, constant, *one);
            }
        }
    }

    /// What a row's sum of single lanes starts at.
    pub(super) fn start(&self, made: &Made) -> Option<Constant> {
        match (&made.root, &made.into) {
            (Root::Reduce { input, f, start, .. }, Target::Row { .. }) => {
                let ty = self.sum_type(*input);
                Some(start.unwrap_or(Constant { ty, bits: f.identity(ty).unwrap_or(0) }))
            }
            _ => None,
        }
    }
}
