//! NaN and infinities: whether a tile has any, and which op made the first out of finite numbers.

use super::lanes::{Class, Lanes, as_rect, each_stretch, slice, whole};
use crate::engine::read_image;
use crate::tile::Tile;
use naiad_ir::{Inst, Scalar, Shape, Value};
use rustc_hash::FxHashMap;

/// The exponent that NaN and infinities have; none for formats of 8 bits, which saturate or wrap as
/// their users want.
fn exponent(ty: Scalar) -> Option<u64> {
    match ty {
        Scalar::F64 => Some(0x7ff << 52),
        Scalar::F32 => Some(0x7f80_0000),
        Scalar::BF16 => Some(0x7f80),
        Scalar::F16 => Some(0x7c00),
        _ => None,
    }
}

pub fn is_special(ty: Scalar, image: u64) -> bool {
    exponent(ty).is_some_and(|e| image & e == e)
}

pub fn is_nan(ty: Scalar, image: u64) -> bool {
    exponent(ty).is_some_and(|e| image & e == e && image & (ty.mask() >> 1) != e)
}

/// Whether a stretch of lanes has a NaN or an infinity.
unsafe fn stretch_has(at: *const u8, size: usize, n: usize, exponent: u64) -> bool {
    macro_rules! of {
        ($t:ty) => {{
            // SAFETY: the caller's promise: `n` aligned lanes.
            let lanes = unsafe { std::slice::from_raw_parts(at.cast::<$t>(), n) };
            let e = exponent as $t;
            lanes.iter().fold(false, |any, &x| any | (x & e == e))
        }};
    }
    match size {
        2 => of!(u16),
        4 => of!(u32),
        _ => of!(u64),
    }
}

/// Whether any lane is NaN or infinite.
pub fn any_special(x: &Tile, ty: Scalar, shape: &Shape) -> bool {
    let Some(e) = exponent(ty) else { return false };
    if let Some(image) = x.uniform() {
        return image & e == e;
    }
    let x = x.dense(ty, shape);
    // SAFETY: the tile has all lanes.
    unsafe { stretch_has(x.at(ty.size()), ty.size(), shape.numel(), e) }
}

/// The first lane that is NaN or infinite where the mask is true.
pub fn first_special(x: &Tile, ty: Scalar, shape: &Shape, mask: Option<&Tile>) -> Option<usize> {
    let e = exponent(ty)?;
    let all = Tile::Uniform(1);
    let mask = mask.unwrap_or(&all);
    if let Some(image) = x.uniform() {
        let some = image & e == e && mask.uniform() != Some(0);
        return some
            .then(|| slice(&mask.dense(Scalar::I1, shape), shape).iter().position(|&m| m != 0))?;
    }
    let x = x.dense(ty, shape);
    let size = ty.size();
    let mut found = None;
    // SAFETY: the tile has all lanes.
    let special = |i: usize| unsafe { read_image(x.at(size).add(i * size), size) } & e == e;
    match as_rect(mask, shape) {
        Some(r) => each_stretch(shape, &r, |start, n| {
            // SAFETY: a stretch of the tile's lanes.
            if found.is_none() && unsafe { stretch_has(x.at(size).add(start * size), size, n, e) } {
                found = (start..start + n).find(|&i| special(i));
            }
        }),
        None => {
            let mask = mask.dense(Scalar::I1, shape);
            found = slice(&mask, shape).iter().enumerate().position(|(i, &m)| m != 0 && special(i));
        }
    }
    found
}

/// Where the specials of values were made.
#[derive(Default)]
pub struct Trace {
    made: FxHashMap<Value, Origin>,
    first: Option<Origin>,
}

/// An op that made a NaN or an infinity, and of what.
#[derive(Clone)]
pub struct Origin {
    pub inst: Inst,
    pub lane: usize,
    pub shape: Shape,
    pub image: u64,
    pub ty: Scalar,
    pub operands: Vec<(Scalar, u64)>,
}

/// An operand or a result as the trace looks at it.
pub struct Seen<'a> {
    pub value: Value,
    pub tile: &'a Tile,
    pub ty: Scalar,
    pub shape: Shape,
    /// It came round a loop, or out of one.
    pub carried: bool,
}

impl Trace {
    /// Looks at what an op made of its operands, lane by lane where it works so: others may move lanes
    /// about. Padding is not looked at.
    pub fn see(
        &mut self,
        (inst, lanewise): (Inst, bool),
        operands: &[Seen<'_>],
        result: &Seen<'_>,
        lanes: &Lanes,
    ) {
        let (ty, shape) = (result.ty, result.shape);
        self.made.remove(&result.value);
        if !any_special(result.tile, ty, &shape) || operands.is_empty() {
            return;
        }
        let inherited = operands.iter().find_map(|o| self.origin(o)).cloned();
        if let Some(origin) = inherited {
            self.made.insert(result.value, origin);
            return;
        }
        let n = shape.numel();
        let out = result.tile.dense(ty, &shape);
        let classes = lanes.bytes(&shape);
        let images = |o: &Seen<'_>, i: usize| {
            let dense = o.tile.dense(o.ty, &o.shape);
            // SAFETY: a lane of the tile.
            unsafe { read_image(dense.at(o.ty.size()).add(i * o.ty.size()), o.ty.size()) }
        };
        let lanewise = lanewise && operands.iter().all(|o| o.shape == shape);
        // Dense once, where lanes are compared one by one.
        let dense: Vec<_> = operands.iter().map(|o| o.tile.dense(o.ty, &o.shape)).collect();
        let any = |test: fn(Scalar, u64) -> bool| {
            operands
                .iter()
                .any(|o| o.ty.is_float() && (0..o.shape.numel()).any(|i| test(o.ty, images(o, i))))
        };
        let (mut tile_nan, mut tile_special) = (None, None);
        for (i, &class) in slice(&classes, &shape).iter().enumerate().take(n) {
            // SAFETY: a lane of the tile.
            let image = unsafe { read_image(out.at(ty.size()).add(i * ty.size()), ty.size()) };
            if class >= Class::P as u8 || !is_special(ty, image) {
                continue;
            }
            let test: fn(Scalar, u64) -> bool = if is_nan(ty, image) { is_nan } else { is_special };
            let owed = if lanewise {
                operands.iter().zip(&dense).any(|(o, d)| {
                    // SAFETY: a lane of the tile, which has the result's shape.
                    o.ty.is_float()
                        && test(o.ty, unsafe {
                            read_image(d.at(o.ty.size()).add(i * o.ty.size()), o.ty.size())
                        })
                })
            } else if is_nan(ty, image) {
                *tile_nan.get_or_insert_with(|| any(is_nan))
            } else {
                *tile_special.get_or_insert_with(|| any(is_special))
            };
            if owed {
                continue;
            }
            let shown = |o: &Seen<'_>| (o.ty, images(o, i));
            let operands = if lanewise { operands.iter().map(shown).collect() } else { Vec::new() };
            let origin = Origin { inst, lane: i, shape, image, ty, operands };
            self.first.get_or_insert_with(|| origin.clone());
            self.made.insert(result.value, origin);
            return;
        }
    }

    /// Where the specials of a value come from; of one that came round a loop, where the first were made.
    pub fn origin(&self, seen: &Seen<'_>) -> Option<&Origin> {
        let first = || {
            self.first
                .as_ref()
                .filter(|_| seen.carried && any_special(seen.tile, seen.ty, &seen.shape))
        };
        self.made.get(&seen.value).or_else(first)
    }
}

/// Zeros among the lanes of an integer divisor that are no padding: the first one.
pub fn zero_lane(x: &Tile, ty: Scalar, shape: &Shape, lanes: &Lanes) -> Option<(usize, Class)> {
    match x {
        Tile::Uniform(image) if *image != 0 => return None,
        Tile::Affine(a) if a.range(shape).0 > 0 => return None,
        Tile::Uniform(_) | Tile::Affine(_) | Tile::Rect(_) | Tile::Dense(_) => {}
    }
    let x = x.dense(ty, shape);
    let size = ty.size();
    let mut classes = None;
    let mut found = None;
    each_stretch(shape, &whole(shape), |start, n| {
        for i in start..start + n {
            // SAFETY: a lane of the tile.
            if found.is_none() && unsafe { read_image(x.at(size).add(i * size), size) } == 0 {
                let classes = classes.get_or_insert_with(|| lanes.bytes(shape));
                let class = Class::of_byte(u64::from(slice(classes, shape)[i]));
                if !class.is_flagged() {
                    found = Some((i, class));
                }
            }
        }
    });
    found
}
