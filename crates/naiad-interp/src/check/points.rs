//! Combining points: where lanes meet, so that padding may change what data come to.
//!
//! A result is computed again from data alone, by the same tree with the flagged lanes left out, and the
//! two are compared where there are data at all. Mostly that is not needed: if every flagged lane holds
//! what the function leaves unchanged (0 in a sum, -inf in a maximum), nothing was changed.

use super::derive::source_of;
use super::lanes::{
    Class, Form, Lanes, Source, any_along, as_rect, each_stretch, fold_rows, slice, slice_mut,
    spread, tile_of_bytes,
};
use crate::code::Combine;
use crate::combine::{self, Job, shape_of, unless_scalar};
use crate::engine::{self, In, read_image};
use crate::fault::Fault;
use crate::loops;
use crate::ops::{Reg, Results};
use crate::shapes;
use crate::slab::Slab;
use crate::tile::{Dense, Rect, Tile};
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::{Scalar, Shape};
use smallvec::{SmallVec, smallvec};

/// What flagged lanes did at a combining point.
pub struct Suspect {
    pub class: Class,
    pub source: Option<Source>,
    /// Flagged lanes beside data, of how many lanes, and one of them with its image.
    pub flagged: usize,
    pub lanes: usize,
    pub example: Option<(usize, u64)>,
    /// What the operand's lanes are: for showing the image and the lane.
    pub classes: Lanes,
    pub ty: Scalar,
    pub shape: Shape,
    /// A lane of the result that is another without them.
    pub changed: bool,
    /// The results from data alone.
    pub live: Results,
}

/// What a combining point gives: the classes of its results, and what there is to be suspected.
pub struct Point {
    pub lanes: SmallVec<[Lanes; 1]>,
    pub suspect: Option<Suspect>,
}

impl Point {
    pub fn quiet(lanes: SmallVec<[Lanes; 1]>) -> Point {
        Point { lanes, suspect: None }
    }
}

/// The inputs of a point, seen together: where there are data, and what else there is.
struct Flagged {
    /// True in lanes that are K or V.
    live: Tile,
    inside: Class,
    outside: Class,
    source: Option<Source>,
    /// Whether `inside` lanes are V everywhere; otherwise the bytes tell.
    bytes: Option<Dense>,
}

fn together(inputs: &[&Lanes], shape: &Shape) -> Flagged {
    let mut source = None;
    let mut worst = Class::K;
    for lanes in inputs {
        if lanes.class.is_flagged() && (source.is_none() || lanes.class > worst) {
            source = lanes.source().or(source);
        }
        worst = worst.max(lanes.class);
    }
    // One input with a mask, beside others without flags.
    let flagged: SmallVec<[&&Lanes; 2]> = inputs.iter().filter(|l| l.class.is_flagged()).collect();
    let best = inputs.iter().filter(|l| !l.class.is_flagged()).map(|l| l.class).max();
    if let [one] = flagged.as_slice() {
        match one.form() {
            Some(Form::Split { mask, inside, outside }) if !inside.is_flagged() => {
                let inside = (*inside).max(best.unwrap_or(Class::K));
                return Flagged {
                    live: mask.clone(),
                    inside,
                    outside: *outside,
                    source,
                    bytes: None,
                };
            }
            None => {
                let live = Tile::Uniform(0);
                return Flagged { live, inside: Class::V, outside: one.class, source, bytes: None };
            }
            Some(_) => {}
        }
    }
    let mut all = Slab::new(shape.numel());
    let out = slice_mut(&mut all, shape.numel());
    out.fill(0);
    for lanes in inputs {
        let bytes = lanes.bytes(shape);
        for (o, &b) in out.iter_mut().zip(slice(&bytes, shape)) {
            *o = (*o).max(b);
        }
    }
    let mut live = Slab::new(shape.numel());
    for (l, &b) in slice_mut(&mut live, shape.numel()).iter_mut().zip(out.iter()) {
        *l = u8::from(b < Class::P as u8);
    }
    let bytes = Some(Dense::new(all));
    let live = Tile::Dense(Dense::new(live));
    Flagged { live, inside: Class::V, outside: worst, source, bytes }
}

impl Flagged {
    /// The classes of rows along an axis: V where there are data, else the greatest of the row.
    fn rows(&self, shape: &Shape, axis: usize) -> Lanes {
        let to = shape.without(axis);
        if let Some(bytes) = &self.bytes {
            // Data first, then the greater.
            let better = |a: u8, b: u8| match (a == Class::V as u8, b == Class::V as u8) {
                (true, _) => a,
                (_, true) => b,
                _ => a.max(b),
            };
            let rows = fold_rows(slice(bytes, shape), shape, axis, better);
            return Lanes::each(rows, &to, self.source);
        }
        if self.inside == Class::K {
            return Lanes::flagged(self.outside, self.source);
        }
        let some = any_along(&self.live, shape, axis);
        Lanes::split(&some, Class::V, self.outside, self.source)
    }
}

/// Results of a `reduce`; `results` are those over all lanes.
pub fn reduce(
    job: &Job<'_>,
    how: Combine,
    function: Option<BinaryFn>,
    inputs: &[Reg],
    lanes: &[&Lanes],
    results: &Results,
) -> Result<Point, Fault> {
    let flags = together(lanes, &job.shape);
    let rows = flags.rows(&job.shape, job.axis);
    let out: SmallVec<[Lanes; 1]> = results.iter().map(|_| rows.clone()).collect();
    let to = job.shape.without(job.axis);
    if rows.class.is_flagged() && rows.form().is_none() || uncut(&flags.live, &job.shape, job.axis)
    {
        return Ok(Point::quiet(out));
    }
    let quiet = function.is_some_and(|f| {
        unchanged(f, &inputs[0].tile, job.types[0], &job.shape, &flags.live, job.axis)
    });
    if quiet {
        return Ok(Point { lanes: out, suspect: undefined(&flags, job, inputs, results) });
    }
    let Some(live) = live_reduce(job, how, function, inputs, &flags.live)? else {
        return Ok(Point::quiet(out));
    };
    let data = data_mask(&rows, &to);
    let types = &job.types;
    let changed = results
        .iter()
        .zip(&live)
        .zip(types)
        .any(|((all, live), &ty)| differs(&all.tile, &live.tile, ty, &to, &data));
    if !changed {
        return Ok(Point { lanes: out, suspect: undefined(&flags, job, inputs, results) });
    }
    // Where there are no data the result stays what it is.
    let kept = live.into_iter().zip(results).zip(types);
    let live = kept.map(|((live, all), &ty)| Reg {
        tile: unless_scalar(choose(&data, &live.tile, &all.tile, ty, &to), ty, &to),
        origin: all.origin,
    });
    let live = live.collect();
    Ok(Point { lanes: out, suspect: Some(suspect(&flags, job, inputs, true, live)) })
}

/// Whether no row with data has flagged lanes, as far as a look at the mask's box tells.
fn uncut(live: &Tile, shape: &Shape, axis: usize) -> bool {
    match live {
        Tile::Rect(r) => r[axis] == (0, shape.dim(axis) as u32),
        Tile::Uniform(_) => true,
        Tile::Affine(_) | Tile::Dense(_) => false,
    }
}

/// Whether flagged lanes only follow the data, in the order of a scan, in whatever form the mask is kept.
fn all_behind(live: &Tile, shape: &Shape, axis: usize, reverse: bool) -> bool {
    let n = shape.dim(axis);
    match live {
        Tile::Rect(r) if reverse => r[axis].1 as usize == n,
        Tile::Rect(r) => r[axis].0 == 0,
        Tile::Uniform(_) => true,
        Tile::Affine(_) | Tile::Dense(_) => {
            let bytes = live.dense(Scalar::I1, shape);
            let lanes = slice(&bytes, shape);
            let apart: usize = (axis + 1..shape.rank()).map(|d| shape.dim(d)).product();
            let before = |i: usize| match (i / apart % n, reverse) {
                (0, false) => true,
                (at, true) if at + 1 == n => true,
                (_, false) => lanes[i - apart] != 0,
                (_, true) => lanes[i + apart] != 0,
            };
            (0..lanes.len()).all(|i| lanes[i] == 0 || before(i))
        }
    }
}

/// Undefined lanes beside data that changed nothing are worth a word all the same.
fn undefined(flags: &Flagged, job: &Job<'_>, inputs: &[Reg], results: &Results) -> Option<Suspect> {
    let found =
        (flags.outside == Class::U).then(|| suspect(flags, job, inputs, false, results.clone()));
    found.filter(|s| s.flagged > 0)
}

fn suspect(
    flags: &Flagged,
    job: &Job<'_>,
    inputs: &[Reg],
    changed: bool,
    live: Results,
) -> Suspect {
    let (ty, shape) = (job.types[0], job.shape);
    let values = inputs[0].tile.dense(ty, &shape);
    let size = ty.size();
    let alive = flags.live.dense(Scalar::I1, &shape);
    let some = any_along(&flags.live, &shape, job.axis);
    let beside = spread(&some, &shape, job.axis).dense(Scalar::I1, &shape);
    let lanes = slice(&alive, &shape).iter().zip(slice(&beside, &shape)).enumerate();
    let mut found = Suspect {
        class: flags.outside,
        source: flags.source,
        flagged: 0,
        lanes: shape.numel(),
        example: None,
        classes: Lanes::split(&flags.live, Class::V, flags.outside, None),
        ty,
        shape,
        changed,
        live,
    };
    for (i, (&live, &beside)) in lanes {
        if live == 0 && beside != 0 {
            found.flagged += 1;
            // SAFETY: the tile has all lanes.
            let image = unsafe { read_image(values.at(size).add(i * size), size) };
            // One that is not 0 shows more.
            if found.example.is_none_or(|(_, before)| before == 0 && image != 0) {
                found.example = Some((i, image));
            }
        }
    }
    found
}

/// Images that a function leaves the other operand unchanged by.
fn neutral(f: BinaryFn, ty: Scalar) -> SmallVec<[u64; 2]> {
    let mut all: SmallVec<[u64; 2]> = f.identity(ty).into_iter().collect();
    if ty.is_float() {
        use naiad_ir::scalar::{Rounding, cast_bits};
        let float = |x: f64| cast_bits(Scalar::F64, ty, Rounding::Nearest, x.to_bits());
        match f {
            BinaryFn::Add => all.push(float(0.0)),
            // A row of NaN alone would be another; the fill says that there is none.
            BinaryFn::Max | BinaryFn::MaxNan => all.push(float(f64::NEG_INFINITY)),
            BinaryFn::Min | BinaryFn::MinNan => all.push(float(f64::INFINITY)),
            _ => {}
        }
    }
    all
}

/// Whether all flagged lanes beside data hold what the function leaves unchanged.
fn unchanged(f: BinaryFn, x: &Tile, ty: Scalar, shape: &Shape, live: &Tile, axis: usize) -> bool {
    let images = neutral(f, ty);
    let is = |x: u64| images.contains(&x);
    if images.is_empty() {
        return false;
    }
    if let Some(x) = x.uniform() {
        return is(x);
    }
    let Some(r) = as_rect(live, shape) else {
        let (x, live) = (x.dense(ty, shape), live.dense(Scalar::I1, shape));
        let size = ty.size();
        return slice(&live, shape).iter().enumerate().all(|(i, &l)| {
            // SAFETY: the tile has all lanes.
            l != 0 || is(unsafe { read_image(x.at(size).add(i * size), size) })
        });
    };
    // The two parts of the rows with data that are beside the box.
    let n = shape.dim(axis) as u32;
    let part = |lo, hi| {
        let mut r = r.clone();
        r[axis] = (lo, hi);
        r
    };
    let (lo, hi) = r[axis];
    all_in(x, ty, shape, &[part(0, lo), part(hi, n)], &is)
}

/// Whether every lane in some boxes is as asked.
pub fn all_in(
    x: &Tile,
    ty: Scalar,
    shape: &Shape,
    boxes: &[Rect],
    is: &dyn Fn(u64) -> bool,
) -> bool {
    let dense = x.dense(ty, shape);
    let size = ty.size();
    let mut all = true;
    for r in boxes {
        each_stretch(shape, r, |start, n| {
            // SAFETY: the stretch is of the tile's lanes.
            all &= unsafe { stretch_is(dense.at(size).add(start * size), size, n, is) };
        });
    }
    all
}

/// Whether `n` lanes are as asked; equal neighbours are asked for once.
unsafe fn stretch_is(at: *const u8, size: usize, n: usize, is: &dyn Fn(u64) -> bool) -> bool {
    macro_rules! of {
        ($t:ty) => {{
            // SAFETY: the caller's promise: `n` aligned lanes.
            let lanes = unsafe { std::slice::from_raw_parts(at.cast::<$t>(), n) };
            let Some(&first) = lanes.first() else { return true };
            if lanes.iter().fold(0, |all, &x| all | (x ^ first)) == 0 {
                return is(u64::from(first));
            }
            lanes.iter().all(|&x| is(u64::from(x)))
        }};
    }
    match size {
        1 => of!(u8),
        2 => of!(u16),
        4 => of!(u32),
        _ => of!(u64),
    }
}

/// A mask of the lanes whose class is V or K.
pub fn data_mask(lanes: &Lanes, shape: &Shape) -> Tile {
    match lanes.form() {
        None => Tile::bool(!lanes.class.is_flagged()),
        Some(Form::Split { mask, inside, outside })
            if !inside.is_flagged() && outside.is_flagged() =>
        {
            mask.clone()
        }
        Some(_) => {
            let bytes = lanes.bytes(shape);
            let mut slab = Slab::new(shape.numel());
            for (o, &b) in slice_mut(&mut slab, shape.numel()).iter_mut().zip(slice(&bytes, shape))
            {
                *o = u8::from(b < Class::P as u8);
            }
            tile_of_bytes(Dense::new(slab), shape)
        }
    }
}

pub fn choose(cond: &Tile, yes: &Tile, no: &Tile, ty: Scalar, shape: &Shape) -> Tile {
    match cond.uniform() {
        Some(0) => return no.clone(),
        Some(_) => return yes.clone(),
        None => {}
    }
    let bits = crate::ops::bits_type(ty);
    let ins =
        [In { tile: cond, ty: Scalar::I1 }, In { tile: yes, ty: bits }, In { tile: no, ty: bits }];
    engine::map(loops::select(ty.size(), loops::wide()), &ins, bits, shape)
}

/// Whether two tiles differ as numbers in a lane where the mask is true: zeros of either sign are the
/// same, and so are all NaN.
pub fn differs(a: &Tile, b: &Tile, ty: Scalar, shape: &Shape, mask: &Tile) -> bool {
    let one = |x: u64, y: u64| {
        x != y
            && (!ty.is_float() || Predicate::Eq.eval(ty, x, y) != Some(true) && !both_nan(ty, x, y))
    };
    if let (Some(x), Some(y)) = (a.uniform(), b.uniform()) {
        return mask.uniform() != Some(0) && one(x, y);
    }
    let (a, b) = (a.dense(ty, shape), b.dense(ty, shape));
    let mask = mask.dense(Scalar::I1, shape);
    let size = ty.size();
    slice(&mask, shape).iter().enumerate().any(|(i, &m)| {
        // SAFETY: both tiles have all lanes.
        m != 0
            && unsafe {
                one(
                    read_image(a.at(size).add(i * size), size),
                    read_image(b.at(size).add(i * size), size),
                )
            }
    })
}

pub fn both_nan(ty: Scalar, x: u64, y: u64) -> bool {
    let nan = |x: u64| Predicate::Ne.eval(ty, x, x) == Some(true);
    nan(x) && nan(y)
}

/// The reduction of live lanes alone, by the same tree; none where the region can only be run element
/// by element.
fn live_reduce(
    job: &Job<'_>,
    how: Combine,
    function: Option<BinaryFn>,
    inputs: &[Reg],
    live: &Tile,
) -> Result<Option<Results>, Fault> {
    if let (Some(f), &[ty]) = (function, job.types.as_slice())
        && let Some(identity) = f.identity(ty)
    {
        let tile = choose(live, &inputs[0].tile, &Tile::Uniform(identity), ty, &job.shape);
        let input = Reg { tile, origin: inputs[0].origin };
        return combine::reduce(job, how, smallvec![input]).map(Some);
    }
    if let Combine::Elements = how {
        return Ok(None);
    }
    let (outer, mut n, inner) = (job.outer(), job.n(), job.inner());
    let mut parts = job.folded(inputs);
    let mut alive = shapes::reshape(live, Scalar::I1, &job.shape, &shape_of(&[outer, n, inner]));
    while n > 1 {
        let (whole, half) = (shape_of(&[outer, n, inner]), shape_of(&[outer, n / 2, inner]));
        let cut = |start: usize| -> Results {
            let piece = |(reg, &ty): (&Reg, &Scalar)| Reg {
                tile: combine::slice(&reg.tile, ty, &whole, &half, start),
                origin: reg.origin,
            };
            parts.iter().zip(&job.types).map(piece).collect()
        };
        let of = |start| combine::slice(&alive, Scalar::I1, &whole, &half, start);
        let (a, b, la, lb) = (cut(0), cut(n / 2), of(0), of(n / 2));
        let both = job.apply(&a, &b, half)?;
        parts = both
            .into_iter()
            .zip(a.iter().zip(&b))
            .zip(&job.types)
            .map(|((both, (a, b)), &ty)| {
                let with_b = choose(&lb, &both.tile, &a.tile, ty, &half);
                Reg { tile: choose(&la, &with_b, &b.tile, ty, &half), origin: both.origin }
            })
            .collect();
        alive = choose(&la, &Tile::Uniform(1), &lb, Scalar::I1, &half);
        n /= 2;
    }
    let (last, to) = (shape_of(&[outer, 1, inner]), job.shape.without(job.axis));
    for (part, &ty) in parts.iter_mut().zip(&job.types) {
        part.tile = unless_scalar(shapes::reshape(&part.tile, ty, &last, &to), ty, &to);
    }
    Ok(Some(parts))
}

/// Results of a `scan`, judged where there are data.
pub fn scan(
    job: &Job<'_>,
    how: Combine,
    function: Option<BinaryFn>,
    inputs: &[Reg],
    lanes: &[&Lanes],
    results: &Results,
    reverse: bool,
) -> Result<Point, Fault> {
    let flags = together(lanes, &job.shape);
    // A lane of the result keeps the class of its own lane: what padding lanes come to is padding.
    let own = match &flags.bytes {
        Some(bytes) => Lanes::each(bytes.clone(), &job.shape, flags.source),
        None => Lanes::split(&flags.live, flags.inside, flags.outside, flags.source),
    };
    let out: SmallVec<[Lanes; 1]> = results.iter().map(|_| own.clone()).collect();
    if all_behind(&flags.live, &job.shape, job.axis, reverse)
        || uncut(&flags.live, &job.shape, job.axis)
    {
        return Ok(Point::quiet(out));
    }
    let (Some(f), &[ty]) = (function, job.types.as_slice()) else { return Ok(Point::quiet(out)) };
    let Some(identity) = f.identity(ty) else { return Ok(Point::quiet(out)) };
    if unchanged(f, &inputs[0].tile, ty, &job.shape, &flags.live, job.axis) {
        return Ok(Point { lanes: out, suspect: undefined(&flags, job, inputs, results) });
    }
    let tile = choose(&flags.live, &inputs[0].tile, &Tile::Uniform(identity), ty, &job.shape);
    let live = combine::scan(job, how, smallvec![Reg { tile, origin: inputs[0].origin }], reverse)?;
    if !differs(&results[0].tile, &live[0].tile, ty, &job.shape, &flags.live) {
        return Ok(Point { lanes: out, suspect: undefined(&flags, job, inputs, results) });
    }
    Ok(Point { lanes: out, suspect: Some(suspect(&flags, job, inputs, true, live)) })
}

/// An operand of a point with lanes of its own.
#[derive(Copy, Clone)]
pub struct Input<'a> {
    pub tile: &'a Tile,
    pub lanes: &'a Lanes,
    pub ty: Scalar,
    pub shape: Shape,
}

/// `acc op t` round a loop: where one side is data and the other is not, it should change nothing.
/// `own` are the classes by the rules for lane-by-lane ops.
pub fn recurrence(acc: Input<'_>, t: Input<'_>, result: &Reg, own: Lanes) -> Point {
    let (shape, ty) = (acc.shape, acc.ty);
    if !acc.lanes.class.is_flagged() && !t.lanes.class.is_flagged() {
        return Point::quiet(smallvec![own]);
    }
    let classes = (acc.lanes.bytes(&shape), t.lanes.bytes(&shape));
    let n = shape.numel();
    let (mut left, mut right, mut out) = (Slab::new(n), Slab::new(n), Slab::new(n));
    let lanes = slice(&classes.0, &shape).iter().zip(slice(&classes.1, &shape));
    let masks = slice_mut(&mut left, n).iter_mut().zip(slice_mut(&mut right, n));
    let (v, p) = (Class::V as u8, Class::P as u8);
    let (mut flagged, mut worst, mut lane) = (0, Class::K, None);
    for (i, ((l, r), (&a, &b))) in masks.zip(lanes).enumerate() {
        // Which of the two is data while the other is not.
        (*l, *r) = (u8::from(a == v && b >= p), u8::from(b == v && a >= p));
        if *l | *r != 0 {
            flagged += 1;
            worst = worst.max(Class::of_byte(u64::from(a.max(b))));
            lane = lane.or(Some((i, *l != 0)));
        }
    }
    let source = source_of(acc.lanes, t.lanes);
    for (o, (&a, &b)) in slice_mut(&mut out, n)
        .iter_mut()
        .zip(slice(&classes.0, &shape).iter().zip(slice(&classes.1, &shape)))
    {
        *o = if a == v || b == v { v } else { a.max(b) };
    }
    // What was tested here is data from here on.
    let joined = Lanes::each(Dense::new(out), &shape, source);
    if flagged == 0 {
        return Point::quiet(smallvec![joined]);
    }
    let (left, right) = (Tile::Dense(Dense::new(left)), Tile::Dense(Dense::new(right)));
    let kept = choose(&left, acc.tile, &result.tile, ty, &shape);
    let live = choose(&right, t.tile, &kept, ty, &shape);
    let changed = differs(&result.tile, &live, ty, &shape, &Tile::Uniform(1));
    let example = lane.map(|(i, is_t)| {
        let from = if is_t { t.tile } else { acc.tile }.dense(ty, &shape);
        // SAFETY: the tile has all lanes.
        (i, unsafe { read_image(from.at(ty.size()).add(i * ty.size()), ty.size()) })
    });
    let suspect = (changed || worst == Class::U).then(|| Suspect {
        class: worst,
        source,
        flagged,
        lanes: n,
        example,
        classes: if t.lanes.class.is_flagged() { t.lanes } else { acc.lanes }.clone(),
        ty,
        shape,
        changed,
        live: smallvec![Reg { tile: unless_scalar(live, ty, &shape), origin: result.origin }],
    });
    Point { lanes: smallvec![joined], suspect }
}

/// The first padding lane, where a mask is true, whose value an atomic function would not leave memory
/// unchanged by; with its image.
pub fn first_with_effect(
    f: BinaryFn,
    value: &Tile,
    ty: Scalar,
    lanes: &Lanes,
    mask: Option<&Tile>,
    shape: &Shape,
) -> Option<(usize, u64)> {
    let images = neutral(f, ty);
    let (classes, values) = (lanes.bytes(shape), value.dense(ty, shape));
    let mask = mask.map(|m| m.dense(Scalar::I1, shape));
    let size = ty.size();
    slice(&classes, shape).iter().enumerate().find_map(|(i, &c)| {
        // SAFETY: the tile has all lanes.
        let image = unsafe { read_image(values.at(size).add(i * size), size) };
        let live = mask.as_ref().is_none_or(|m| slice(m, shape)[i] != 0);
        (live && c >= Class::P as u8 && !images.contains(&image)).then_some((i, image))
    })
}
