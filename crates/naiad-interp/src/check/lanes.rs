//! What the lanes of a value are owed to, in compressed form.
//!
//! | class | meaning |
//! |---|---|
//! | K | constant, index, scalar argument: owed to no memory |
//! | V | data from inside a tensor's view |
//! | P | padding: masked off where the program said what to take instead |
//! | U | undefined: masked off in a load without `other`; reads 0 |
//! | X | arbitrary bits: uninitialized memory, or an address outside the view |
//!
//! A value's classes are one for all lanes, or one inside a mask and another outside (what a masked
//! load gives, and what arithmetic keeps), or a byte for each lane. Inside a mask K and V are not told
//! apart: V stands for either. The order of the classes is that of the join.

use crate::shapes;
use crate::slab::Slab;
use crate::tile::{Dense, Rect, Tile, rect};
use naiad_ir::{Inst, Scalar, Shape};
use smallvec::SmallVec;
use std::rc::Rc;

#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum Class {
    #[default]
    K,
    V,
    P,
    U,
    X,
}

impl Class {
    pub fn is_flagged(self) -> bool {
        self >= Class::P
    }

    pub fn of_byte(byte: u64) -> Class {
        match byte {
            0 => Class::K,
            1 => Class::V,
            2 => Class::P,
            3 => Class::U,
            _ => Class::X,
        }
    }
}

/// Why lanes are X.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Arbitrary {
    OutsideView,
    Uninitialized,
}

/// Where flagged lanes came from: the load, and for X what was wrong with it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Source {
    pub inst: Inst,
    pub arbitrary: Option<Arbitrary>,
}

/// Classes that are not the same for all lanes.
#[derive(Clone)]
pub enum Form {
    /// One class where the mask is true, another where it is not.
    Split { mask: Tile, inside: Class, outside: Class },
    /// A class for each lane, as bytes.
    Each(Dense),
}

/// What is known of a value besides its numbers.
#[derive(Clone, Default)]
pub struct Lanes {
    /// The greatest class of any lane.
    pub class: Class,
    pub more: Option<Rc<More>>,
}

/// The rarer part of what is known.
#[derive(Clone, Default)]
pub struct More {
    /// None where all lanes have one class.
    pub form: Option<Form>,
    /// The load to which flagged lanes are owed.
    pub source: Option<Source>,
    /// What integers, or addresses, would be if none had wrapped.
    pub exact: Option<Exact>,
}

/// Numbers as they would be without wrapping, and the op that wrapped first.
#[derive(Clone)]
pub struct Exact {
    pub tile: Tile,
    pub at: Inst,
}

impl Lanes {
    pub fn all(class: Class) -> Lanes {
        Lanes { class, more: None }
    }

    pub fn flagged(class: Class, source: Option<Source>) -> Lanes {
        let more = source.map(|s| Rc::new(More { source: Some(s), ..More::default() }));
        Lanes { class, more }
    }

    /// One class where the mask is true and another elsewhere; the mask may be of any form.
    pub fn split(mask: &Tile, inside: Class, outside: Class, source: Option<Source>) -> Lanes {
        match mask.uniform() {
            Some(0) => Lanes::flagged(outside, source),
            Some(_) => Lanes::flagged(inside, source.filter(|_| inside.is_flagged())),
            None if inside == outside => Lanes::flagged(inside, source),
            None => {
                let form = Form::Split { mask: mask.clone(), inside, outside };
                let more = More { form: Some(form), source, exact: None };
                Lanes { class: inside.max(outside), more: Some(Rc::new(more)) }
            }
        }
    }

    /// A class for each lane; all alike are told as one.
    pub fn each(bytes: Dense, shape: &Shape, source: Option<Source>) -> Lanes {
        let lanes = slice(&bytes, shape);
        let (mut least, mut most) = (u8::MAX, 0);
        for &b in lanes {
            least = least.min(b);
            most = most.max(b);
        }
        let class = Class::of_byte(u64::from(most));
        let source = source.filter(|_| class.is_flagged());
        // K and V are told apart only where all lanes are alike.
        if least == most || !class.is_flagged() {
            return Lanes::flagged(class, source);
        }
        let more = More { form: Some(Form::Each(bytes)), source, exact: None };
        Lanes { class, more: Some(Rc::new(more)) }
    }

    pub fn form(&self) -> Option<&Form> {
        self.more.as_ref()?.form.as_ref()
    }

    pub fn source(&self) -> Option<Source> {
        self.more.as_ref()?.source
    }

    pub fn exact(&self) -> Option<&Exact> {
        self.more.as_ref()?.exact.as_ref()
    }

    /// Whether nothing but K and V is here, and nothing has wrapped.
    pub fn is_plain(&self) -> bool {
        self.more.is_none() && !self.class.is_flagged()
    }

    pub fn with_exact(mut self, exact: Option<Exact>) -> Lanes {
        if exact.is_none() && self.exact().is_none() {
            return self;
        }
        let mut more = self.more.as_deref().cloned().unwrap_or_default();
        more.exact = exact;
        self.more = Some(Rc::new(more));
        self
    }

    /// The class of each lane, as bytes.
    pub fn bytes(&self, shape: &Shape) -> Dense {
        match self.form() {
            None => Tile::Uniform(self.class as u64).dense(Scalar::U8, shape),
            Some(Form::Each(bytes)) => bytes.row_major(1, shape),
            Some(Form::Split { mask, inside, outside }) => {
                let mask = mask.dense(Scalar::I1, shape);
                let mut out = Slab::new(shape.numel());
                let (yes, no) = (*inside as u8, *outside as u8);
                for (o, &m) in
                    slice_mut(&mut out, shape.numel()).iter_mut().zip(slice(&mask, shape))
                {
                    *o = if m != 0 { yes } else { no };
                }
                Dense::new(out)
            }
        }
    }

    /// The class of one lane.
    pub fn at(&self, lane: usize, shape: &Shape) -> Class {
        match self.form() {
            None => self.class,
            Some(Form::Each(_)) => {
                Class::of_byte(u64::from(slice(&self.bytes(shape), shape)[lane]))
            }
            Some(Form::Split { mask, inside, outside }) => {
                if mask_at(mask, lane, shape) {
                    *inside
                } else {
                    *outside
                }
            }
        }
    }

    /// The lanes as an op moves them: the op is given as what it does to a tile of a type.
    pub fn moved(&self, to: &Shape, f: impl Fn(&Tile, Scalar) -> Tile) -> Lanes {
        let Some(more) = &self.more else { return self.clone() };
        let exact = more.exact.as_ref();
        let exact = exact.map(|e| Exact { tile: f(&e.tile, Scalar::I64), at: e.at });
        let lanes = match &more.form {
            None => Lanes::flagged(self.class, more.source),
            Some(Form::Split { mask, inside, outside }) => {
                Lanes::split(&f(mask, Scalar::I1), *inside, *outside, more.source)
            }
            Some(Form::Each(bytes)) => {
                let bytes = f(&Tile::Dense(bytes.clone()), Scalar::U8);
                Lanes::each(bytes.dense(Scalar::U8, to), to, more.source)
            }
        };
        lanes.with_exact(exact)
    }

    /// Every flagged lane as padding: a value was put in its place.
    pub fn refilled(&self, shape: &Shape) -> Lanes {
        let to = |c: Class| if c.is_flagged() { Class::P } else { c };
        let Some(more) = &self.more else { return Lanes::all(to(self.class)) };
        match &more.form {
            None => Lanes::flagged(to(self.class), more.source),
            Some(Form::Split { mask, inside, outside }) => {
                Lanes::split(mask, to(*inside), to(*outside), more.source)
            }
            Some(Form::Each(_)) => {
                let mut bytes = self.bytes(shape).copied(1, shape);
                for b in slice_mut(&mut bytes.slab, shape.numel()) {
                    *b = (*b).min(Class::P as u8);
                }
                Lanes::each(bytes, shape, more.source)
            }
        }
    }
}

/// Whether a mask is true in a lane.
pub fn mask_at(mask: &Tile, lane: usize, shape: &Shape) -> bool {
    match mask {
        Tile::Uniform(x) => *x != 0,
        Tile::Rect(r) => {
            let index = shape.dims().zip(shape.strides()).map(|(n, s)| (lane / s % n) as u32);
            index.zip(r).all(|(i, &(lo, hi))| (lo..hi).contains(&i))
        }
        Tile::Affine(_) | Tile::Dense(_) => slice(&mask.dense(Scalar::I1, shape), shape)[lane] != 0,
    }
}

/// The bytes of a dense tile of one byte a lane.
pub fn slice<'a>(bytes: &'a Dense, shape: &Shape) -> &'a [u8] {
    debug_assert!(bytes.strides.is_none());
    // SAFETY: the tile has all lanes of its shape, in order.
    unsafe { std::slice::from_raw_parts(bytes.at(1), shape.numel()) }
}

/// The bytes of a new slab, before it is shared.
pub fn slice_mut(slab: &mut Slab, n: usize) -> &mut [u8] {
    // SAFETY: whoever made the slab is its only owner yet.
    unsafe { std::slice::from_raw_parts_mut(slab.as_mut_ptr(), n) }
}

/// Whether two masks are the same without a look at their lanes.
pub fn same_mask(a: &Tile, b: &Tile) -> bool {
    match (a, b) {
        (Tile::Rect(a), Tile::Rect(b)) => a == b,
        (Tile::Uniform(a), Tile::Uniform(b)) => a == b,
        (Tile::Dense(a), Tile::Dense(b)) => {
            a.slab.same(&b.slab) && a.offset == b.offset && a.strides == b.strides
        }
        _ => false,
    }
}

/// Whether wherever `a` is true `b` is: exactly, by lanes where there is no other way.
pub fn implies(a: &Tile, b: &Tile, shape: &Shape) -> bool {
    if a.uniform() == Some(0) || b.uniform() == Some(1) || same_mask(a, b) {
        return true;
    }
    if let (Tile::Rect(a), Tile::Rect(b)) = (a, b) {
        return a.iter().zip(b).all(|(x, y)| x.0 >= y.0 && x.1 <= y.1);
    }
    let (a, b) = (a.dense(Scalar::I1, shape), b.dense(Scalar::I1, shape));
    slice(&a, shape).iter().zip(slice(&b, shape)).all(|(&x, &y)| x <= y)
}

pub fn whole(shape: &Shape) -> Rect {
    shape.dims().map(|n| (0, n as u32)).collect()
}

/// The box of a mask, where it is one.
pub fn as_rect(mask: &Tile, shape: &Shape) -> Option<Rect> {
    match mask {
        Tile::Rect(r) => Some(r.clone()),
        Tile::Uniform(x) if *x != 0 => Some(whole(shape)),
        Tile::Uniform(_) | Tile::Affine(_) | Tile::Dense(_) => None,
    }
}

pub fn intersection(a: &Rect, b: &Rect, shape: &Shape) -> Tile {
    let both = a.iter().zip(b).map(|(&(l, h), &(m, i))| (l.max(m), h.min(i)));
    rect(both.collect(), shape)
}

/// Axes, as bits, along which a box does not reach from end to end.
pub fn cut_axes(r: &Rect, within: &Rect) -> u32 {
    let cut = r.iter().zip(within).enumerate().filter(|(_, (a, b))| a != b);
    cut.fold(0, |axes, (d, _)| axes | 1 << d)
}

/// Calls `f` with the first lane and the length of each stretch of a box along the last axis.
pub fn each_stretch(shape: &Shape, r: &Rect, mut f: impl FnMut(usize, usize)) {
    let rank = shape.rank();
    if r.iter().any(|&(lo, hi)| lo >= hi) {
        return;
    }
    if rank == 0 {
        return f(0, 1);
    }
    let strides: SmallVec<[usize; 4]> = shape.strides().collect();
    let (lo, hi) = r[rank - 1];
    let mut index: SmallVec<[u32; 4]> = r[..rank - 1].iter().map(|p| p.0).collect();
    loop {
        let row: usize = index.iter().zip(&strides).map(|(&i, s)| i as usize * s).sum();
        f(row + lo as usize, (hi - lo) as usize);
        let mut axis = rank - 1;
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            if index[axis] < r[axis].1 {
                break;
            }
            index[axis] = r[axis].0;
        }
    }
}

/// The mask of a tile's rows: true where any lane along the axis is.
pub fn any_along(mask: &Tile, shape: &Shape, axis: usize) -> Tile {
    let to = shape.without(axis);
    match mask {
        Tile::Uniform(x) => Tile::Uniform(*x),
        Tile::Rect(r) => {
            let mut r = r.clone();
            r.remove(axis);
            if to.is_scalar() { Tile::Uniform(1) } else { rect(r, &to) }
        }
        Tile::Affine(_) | Tile::Dense(_) => {
            let lanes = mask.dense(Scalar::I1, shape);
            let out = fold_rows(slice(&lanes, shape), shape, axis, |a, b| a | b);
            tile_of_bytes(out, &to)
        }
    }
}

/// Bytes combined along an axis.
pub fn fold_rows(lanes: &[u8], shape: &Shape, axis: usize, f: impl Fn(u8, u8) -> u8) -> Dense {
    let inner: usize = shape.dims().skip(axis + 1).product();
    let n = shape.dim(axis);
    let mut slab = Slab::new(shape.numel() / n);
    let out = slice_mut(&mut slab, shape.numel() / n);
    for (row, block) in out.chunks_mut(inner).zip(lanes.chunks(n * inner)) {
        row.copy_from_slice(&block[..inner]);
        for next in block.chunks(inner).skip(1) {
            for (o, &x) in row.iter_mut().zip(next) {
                *o = f(*o, x);
            }
        }
    }
    Dense::new(slab)
}

/// A tile of bytes, as its image where it has no axes.
pub fn tile_of_bytes(bytes: Dense, shape: &Shape) -> Tile {
    if shape.is_scalar() {
        return Tile::Uniform(u64::from(slice(&bytes, shape)[0]));
    }
    Tile::Dense(bytes)
}

/// A tile without one axis, as every lane along that axis again.
pub fn spread(tile: &Tile, shape: &Shape, axis: usize) -> Tile {
    let without = shape.without(axis);
    let Ok(one) = shape.with_dim(axis, 1) else { return tile.clone() };
    let lifted = shapes::expand_dims(tile, &without, &one, axis);
    shapes::broadcast(&lifted, &one, shape)
}
