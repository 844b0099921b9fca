//! Block pointers and tensor descriptors: tiles of a strided tensor in memory.
//!
//! Both are values of this front end alone: a base pointer with extents and strides. A load or store
//! makes pointers and a mask of them.

use super::memory;
use crate::lower::{Args, Lower, Operand};
use crate::source::Result;
use crate::value::{Padding, Val, Window, WindowKind, type_name};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::tile::{AtomicOp, MemHints, Scope, Sem, TileOp};
use naiad_ir::{Elem, Pointer, Scalar, Shape, Type, Value};
use std::rc::Rc;

/// Ranks that a descriptor can have.
const DESCRIPTOR_RANKS: std::ops::RangeInclusive<usize> = 1..=5;

/// Integer scalars, as values of type `to`.
fn integers(l: &mut Lower<'_>, o: &Operand, to: Scalar) -> Result<Vec<Value>> {
    let mut out = Vec::new();
    for item in l.each(o) {
        let v = l.tensor(&item)?;
        match l.ty(v) {
            ty if ty.is_scalar() && ty.elem.scalar().is_some_and(Scalar::is_int) => {
                out.push(l.b.cast(v, to)?);
            }
            ty => {
                let what = type_name(ty);
                let message = format!("integer scalars are wanted here, not {what}");
                return Err(l.error(Id::TypeMismatch, message, o.range, ""));
            }
        }
    }
    Ok(out)
}

/// Whether the lists have one item for each of `rank` axes.
fn same_rank(l: &mut Lower<'_>, a: &Args, rank: usize, lists: &[(&str, usize)]) -> Result<()> {
    match lists.iter().find(|(_, n)| *n != rank) {
        None => Ok(()),
        Some((what, n)) => {
            let message = format!("the tensor has {rank} axes, {n} {what} are given");
            Err(l.error(Id::BadArgument, message, a.range, ""))
        }
    }
}

fn base(l: &mut Lower<'_>, o: &Operand) -> Result<(Value, Pointer)> {
    let (v, p) = memory::pointer(l, o)?;
    if l.ty(v).is_scalar() {
        return Ok((v, p));
    }
    let what = type_name(l.ty(v));
    let message = format!("the base must be one pointer, not {what}");
    Err(l.error(Id::BadArgument, message, o.range, ""))
}

/// `tl.make_block_ptr(base, shape, strides, offsets, block_shape, order)`. The order is advice about
/// the layout.
pub fn make_block_ptr(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (base, _) = base(l, a.need(0))?;
    let shape = integers(l, a.need(1), Scalar::I64)?;
    let strides = integers(l, a.need(2), Scalar::I64)?;
    let offsets = integers(l, a.need(3), Scalar::I64)?;
    let block = l.shape(std::slice::from_ref(a.need(4)), a.need(4).range)?;
    let order = l.dims(std::slice::from_ref(a.need(5)), "the order")?;
    let lists = [
        ("strides", strides.len()),
        ("offsets", offsets.len()),
        ("extents of a block", block.rank()),
        ("axes in the order", order.len()),
    ];
    same_rank(l, a, shape.len(), &lists)?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted.iter().enumerate().any(|(i, &axis)| axis != i as i64) {
        let range = a.need(5).range;
        let message = format!("the order {order:?} is no permutation of the axes");
        return Err(l.error(Id::BadArgument, message, range, ""));
    }
    let kind = WindowKind::BlockPointer;
    let (padding, round_tf32) = (Padding::Zero, false);
    Ok(Val::Window(Rc::new(Window {
        kind,
        base,
        shape,
        strides,
        offsets,
        block,
        padding,
        round_tf32,
    })))
}

/// `tl.advance(block_pointer, offsets)`.
pub fn advance(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let w = window(l, a.need(0), WindowKind::BlockPointer)?;
    let by = integers(l, a.need(1), Scalar::I64)?;
    same_rank(l, a, w.block.rank(), &[("offsets", by.len())])?;
    let mut moved = (*w).clone();
    for (offset, by) in moved.offsets.iter_mut().zip(by) {
        *offset = l.b.binary(BinaryFn::Add, *offset, by)?;
    }
    Ok(Val::Window(Rc::new(moved)))
}

fn padding(
    l: &mut Lower<'_>,
    o: Option<&Operand>,
    p: Pointer,
    unless_said: Padding,
) -> Result<Padding> {
    let find = |w: &str| match w {
        "" => Some(unless_said),
        "zero" => Some(Padding::Zero),
        "nan" => Some(Padding::Nan),
        _ => None,
    };
    let padding = l.option(o, "padding", unless_said, find, &["zero", "nan"])?;
    match o {
        Some(o) if padding == Padding::Nan && !p.pointee.has_nan() => {
            let message = format!("{} has no NaN to pad with", p.pointee.triton_name());
            Err(l.error(Id::BadArgument, message, o.range, ""))
        }
        _ => Ok(padding),
    }
}

/// `tl.make_tensor_descriptor(base, shape, strides, block_shape, padding_option)`.
pub fn make_tensor_descriptor(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (base, p) = base(l, a.need(0))?;
    // Of 32 bits, as hardware has them, unless one has 64: then none may be cut.
    let wide = l.each(a.need(1)).iter().any(|o| is_wide(l, o));
    let shape = integers(l, a.need(1), if wide { Scalar::I64 } else { Scalar::I32 })?;
    let last_is_one = match l.each(a.need(2)).last().map(|o| o.val.clone()) {
        Some(Val::Const(c)) => c == crate::value::Const::Int(1),
        _ => false,
    };
    if !last_is_one {
        let range = a.need(2).range;
        let message = "the last stride of a tensor descriptor must be the constexpr 1";
        return Err(l.error(Id::BadArgument, message, range, ""));
    }
    let strides = integers(l, a.need(2), Scalar::I64)?;
    let block = l.shape(std::slice::from_ref(a.need(3)), a.need(3).range)?;
    same_rank(
        l,
        a,
        shape.len(),
        &[("strides", strides.len()), ("extents of a block", block.rank())],
    )?;
    if let Err(why) = descriptor_block(block, p.pointee) {
        let range = a.need(3).range;
        return Err(l.error(Id::BadShape, why, range, ""));
    }
    let padding = padding(l, a.opt(4), p, Padding::Zero)?;
    let (kind, offsets) = (WindowKind::Descriptor, Vec::new());
    let w = Window { kind, base, shape, strides, offsets, block, padding, round_tf32: false };
    Ok(Val::Window(Rc::new(w)))
}

/// What hardware demands of a descriptor's block.
pub(crate) fn descriptor_block(block: Shape, elem: Scalar) -> std::result::Result<(), String> {
    if !DESCRIPTOR_RANKS.contains(&block.rank()) {
        return Err(format!("a tensor descriptor has 1 to 5 axes, not {}", block.rank()));
    }
    let bytes = block.dim(block.rank() - 1) * elem.size();
    if bytes < 16 {
        return Err(format!(
            "the last axis of a descriptor's block must hold at least 16 bytes, not {bytes}"
        ));
    }
    Ok(())
}

fn window(l: &mut Lower<'_>, o: &Operand, kind: WindowKind) -> Result<Rc<Window>> {
    match &o.val {
        Val::Window(w) if w.kind == kind => Ok(w.clone()),
        other => {
            let what = l.describe(other);
            let wanted = kind.name();
            Err(l.error(
                Id::BadArgument,
                format!("{wanted} is wanted here, not {what}"),
                o.range,
                "",
            ))
        }
    }
}

/// Where the elements of a tile are, and which of them exist.
struct Lanes {
    ptr: Value,
    mask: Option<Value>,
    pointee: Scalar,
}

impl Lower<'_> {
    /// `0, 1, …` along one axis of `shape`, as i64, with extents of 1 elsewhere.
    fn along(&mut self, shape: Shape, axis: usize) -> Result<Value> {
        let end = shape.dim(axis) as i64;
        let lanes = self.b.op(TileOp::Arange { start: 0, end })?;
        let lanes = self.b.cast(lanes, Scalar::I64)?;
        self.aligned(lanes, shape, axis)
    }

    /// A tile of one axis as that axis of `shape`, with extents of 1 elsewhere.
    fn aligned(&mut self, v: Value, shape: Shape, axis: usize) -> Result<Value> {
        let dims: Vec<i64> =
            (0..shape.rank()).map(|d| if d == axis { shape.dim(d) as i64 } else { 1 }).collect();
        let to = Shape::new(&dims).map_err(|e| self.bad_shape(e, Default::default()))?;
        if self.ty(v).shape == to {
            return Ok(v);
        }
        Ok(self.b.op(TileOp::Reshape { src: v, shape: to })?)
    }

    /// `f` of two values after broadcasting; a scalar too.
    fn both(&mut self, f: BinaryFn, a: Value, b: Value) -> Result<Value> {
        let shape = naiad_ir::tile::broadcast_shapes(self.ty(a).shape, self.ty(b).shape);
        let shape = shape.unwrap_or(self.ty(a).shape);
        let (a, b) = (self.b.broadcast_to(a, shape)?, self.b.broadcast_to(b, shape)?);
        Ok(self.b.binary(f, a, b)?)
    }

    fn compare_both(&mut self, p: Predicate, a: Value, b: Value) -> Result<Value> {
        let shape = self.ty(a).shape;
        let b = self.b.broadcast_to(b, shape)?;
        Ok(self.b.compare(p, a, b)?)
    }
}

/// The lanes of a tile of `shape` whose index along each axis is given, as i64 with extents of 1 along
/// the others. Axes in `checked` are held against the tensor's extents.
fn lanes(
    l: &mut Lower<'_>,
    w: &Window,
    shape: Shape,
    indices: &[Value],
    checked: &[bool],
) -> Result<Lanes> {
    let mut offset: Option<Value> = None;
    let mut mask: Option<Value> = None;
    for (d, &index) in indices.iter().enumerate() {
        let step = l.both(BinaryFn::Mul, index, w.strides[d])?;
        offset = Some(match offset {
            None => step,
            Some(sum) => l.both(BinaryFn::Add, sum, step)?,
        });
        if checked[d] {
            let zero = l.b.int(Scalar::I64, 0)?;
            let extent = l.b.cast(w.shape[d], Scalar::I64)?;
            let above = l.compare_both(Predicate::Ge, index, zero)?;
            let below = l.compare_both(Predicate::Lt, index, extent)?;
            let inside = l.b.binary(BinaryFn::And, above, below)?;
            mask = Some(match mask {
                None => inside,
                Some(mask) => l.both(BinaryFn::And, mask, inside)?,
            });
        }
    }
    let ptr = l.b.broadcast_to(w.base, shape)?;
    let ptr = match offset {
        Some(offset) => {
            let offset = l.b.broadcast_to(offset, shape)?;
            l.b.op(TileOp::PtrAdd { ptr, offset })?
        }
        None => ptr,
    };
    let mask = match mask {
        Some(mask) => Some(l.b.broadcast_to(mask, shape)?),
        None => None,
    };
    let pointee = l.ty(w.base).elem.pointer().map_or(Scalar::I8, |p| p.pointee);
    Ok(Lanes { ptr, mask, pointee })
}

/// The lanes of the window's block at `offsets`.
fn block(l: &mut Lower<'_>, w: &Window, offsets: &[Value], checked: &[bool]) -> Result<Lanes> {
    let mut indices = Vec::new();
    for (d, &offset) in offsets.iter().enumerate() {
        let along = l.along(w.block, d)?;
        let offset = l.b.cast(offset, Scalar::I64)?;
        indices.push(l.both(BinaryFn::Add, along, offset)?);
    }
    lanes(l, w, w.block, &indices, checked)
}

/// What memory ops on a block pointer get beside it.
pub(super) struct BlockOptions<'a> {
    pub boundary_check: Option<&'a Operand>,
    pub padding: Option<&'a Operand>,
    /// Arguments that a block pointer takes the place of.
    pub refused: &'a [(&'static str, Option<&'a Operand>)],
}

fn checked_axes(l: &mut Lower<'_>, w: &Window, options: &BlockOptions<'_>) -> Result<Vec<bool>> {
    for (name, o) in options.refused {
        if let Some(o) = o {
            let message = format!("`{name}` cannot be given with a block pointer");
            let e = l.error(Id::BadArgument, message, o.range, "");
            return Err(Box::new((*e).help(
                "`boundary_check=(0, 1)` masks the axes that it names; or use plain pointers",
            )));
        }
    }
    let mut checked = vec![false; w.block.rank()];
    for o in options.boundary_check.map(|o| l.each(o)).unwrap_or_default() {
        let axis = l.axis(&o, w.block.rank())?;
        checked[axis] = true;
    }
    Ok(checked)
}

pub(super) fn load_block(
    l: &mut Lower<'_>,
    w: &Window,
    options: &BlockOptions<'_>,
    hints: MemHints,
) -> Result<Val> {
    let checked = checked_axes(l, w, options)?;
    let p = l.ty(w.base).elem.pointer().unwrap_or(Pointer::to(Scalar::I8));
    let padding = padding(l, options.padding, p, Padding::Unsaid)?;
    let at = block(l, w, &w.offsets, &checked)?;
    load_lanes(l, &at, padding, hints)
}

fn load_lanes(l: &mut Lower<'_>, at: &Lanes, padding: Padding, hints: MemHints) -> Result<Val> {
    let &Lanes { ptr, mask, pointee } = at;
    let fill = match (mask, padding) {
        (None, _) | (_, Padding::Unsaid) => None,
        (Some(_), Padding::Nan) => Some(l.b.float(pointee, f64::NAN)?),
        (Some(_), Padding::Zero) if pointee.is_float() => Some(l.b.float(pointee, 0.0)?),
        (Some(_), Padding::Zero) => Some(l.b.int(pointee, 0)?),
    };
    let shape = l.ty(ptr).shape;
    let other = match fill {
        Some(fill) => Some(l.b.broadcast_to(fill, shape)?),
        None => None,
    };
    Ok(Val::Tensor(l.b.op(TileOp::Load { ptr, mask, other, hints })?))
}

pub(super) fn store_block(
    l: &mut Lower<'_>,
    w: &Window,
    (ptr, value): (&Operand, &Operand),
    options: &BlockOptions<'_>,
    hints: MemHints,
) -> Result<Val> {
    let checked = checked_axes(l, w, options)?;
    let at = block(l, w, &w.offsets, &checked)?;
    store_lanes(l, &at, ptr, value, hints)
}

fn store_lanes(
    l: &mut Lower<'_>,
    at: &Lanes,
    target: &Operand,
    value: &Operand,
    hints: MemHints,
) -> Result<Val> {
    let p = l.ty(at.ptr).elem.pointer().unwrap_or(Pointer::to(at.pointee));
    memory::writable(l, target, p)?;
    let shape = l.ty(at.ptr).shape;
    let raw = memory::value(l, value, at.pointee)?;
    let value = memory::fit(l, "value", raw, value, target, shape)?;
    l.b.ops(TileOp::Store { ptr: at.ptr, value, mask: at.mask, hints })?;
    Ok(Val::NONE)
}

fn is_wide(l: &Lower<'_>, o: &Operand) -> bool {
    let scalar = l.runtime_type(&o.val).and_then(|t| t.elem.scalar());
    scalar.is_some_and(|s| s.bits() > 32)
}

/// Offsets in a descriptor's tensor.
fn offsets_of(l: &mut Lower<'_>, o: &Operand) -> Result<Vec<Value>> {
    if l.each(o).iter().any(|o| is_wide(l, o)) {
        let message = "the offsets of a tensor descriptor have 32 bits";
        let e = l.error(Id::TypeMismatch, message, o.range, "one has 64");
        return Err(Box::new((*e).help("cast it: `.to(tl.int32)`")));
    }
    integers(l, o, Scalar::I32)
}

/// The descriptor, and its block's lanes at the offsets that an argument gives.
fn described(l: &mut Lower<'_>, a: &Args, offsets: usize) -> Result<(Rc<Window>, Lanes)> {
    let w = window(l, a.need(0), WindowKind::Descriptor)?;
    let offsets = offsets_of(l, a.need(offsets))?;
    let rank = w.block.rank();
    same_rank(l, a, rank, &[("offsets", offsets.len())])?;
    let at = block(l, &w, &offsets, &vec![true; rank])?;
    Ok((w, at))
}

pub fn descriptor_load(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (w, at) = described(l, a, 1)?;
    load_described(l, &w, &at)
}

fn load_described(l: &mut Lower<'_>, w: &Window, at: &Lanes) -> Result<Val> {
    match load_lanes(l, at, w.padding, MemHints::default())? {
        Val::Tensor(v) if w.round_tf32 && at.pointee == Scalar::F32 => {
            Ok(Val::Tensor(rounded_to_tf32(l, v)?))
        }
        loaded => Ok(loaded),
    }
}

/// To the nearest number with 10 bits of mantissa, ties to even.
fn rounded_to_tf32(l: &mut Lower<'_>, v: Value) -> Result<Value> {
    let ty = l.ty(v).with_elem(Scalar::U32);
    let bits = l.b.op(TileOp::Bitcast { src: v, to: Elem::Scalar(Scalar::U32) })?;
    let constant = |l: &mut Lower<'_>, x: i128| l.b.full(ty, x);
    let (thirteen, one) = (constant(l, 13)?, constant(l, 1)?);
    let (half, kept) = (constant(l, 0xfff)?, constant(l, 0xffff_e000)?);
    let odd = l.b.binary(BinaryFn::Shr, bits, thirteen)?;
    let odd = l.b.binary(BinaryFn::And, odd, one)?;
    let up = l.b.binary(BinaryFn::Add, bits, half)?;
    let up = l.b.binary(BinaryFn::Add, up, odd)?;
    let cut = l.b.binary(BinaryFn::And, up, kept)?;
    let rounded = l.b.op(TileOp::Bitcast { src: cut, to: Elem::Scalar(Scalar::F32) })?;
    // A NaN has nothing to be rounded, and its payload could carry into the sign.
    let number = l.b.compare(Predicate::Eq, v, v)?;
    Ok(l.b.select(number, rounded, v)?)
}

pub fn descriptor_store(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (w, at) = described(l, a, 1)?;
    let value = a.need(2).clone();
    let v = l.tensor(&value)?;
    whole_block(l, &w, v, &value)?;
    store_lanes(l, &at, a.need(0), &value, MemHints::default())
}

fn whole_block(l: &mut Lower<'_>, w: &Window, v: Value, o: &Operand) -> Result<()> {
    let own = l.ty(v).shape;
    if own == w.block {
        return Ok(());
    }
    let message = format!("the value has shape {own}, the descriptor's block {}", w.block);
    Err(l.error(Id::ShapeMismatch, message, o.range, ""))
}

/// `desc.atomic_add(offsets, value)` and its kin: nothing is given back.
pub fn descriptor_atomic(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (w, at) = described(l, a, 1)?;
    let word = a.entry.path.rsplit('_').next().unwrap_or("");
    let f = AtomicOp::from_name(word).unwrap_or(AtomicOp::Add);
    let s = at.pointee;
    let half = matches!(s, Scalar::F16 | Scalar::BF16);
    let fits = match f {
        AtomicOp::Add => {
            (s.is_int() && s.bits() >= 32 && s != Scalar::I64) || s == Scalar::F32 || half
        }
        AtomicOp::Max | AtomicOp::Min => (s.is_int() && s.bits() >= 32) || half,
        _ => s.is_int() && s.bits() >= 32,
    };
    if !fits {
        let message =
            format!("`.atomic_{word}` of a descriptor is not defined for {}", s.triton_name());
        return Err(l.error(Id::TypeMismatch, message, a.range, ""));
    }
    let p = l.ty(at.ptr).elem.pointer().unwrap_or(Pointer::to(s));
    memory::writable(l, a.need(0), p)?;
    let o = a.need(2).clone();
    let raw = memory::value(l, &o, s)?;
    whole_block(l, &w, raw, &o)?;
    let (sem, scope) = (Sem::Relaxed, Scope::Gpu);
    l.b.ops(TileOp::AtomicRmw { f, ptr: at.ptr, value: raw, mask: at.mask, sem, scope })?;
    Ok(Val::NONE)
}

/// Rows of a tensor by their numbers, from column `y` on.
fn rows(l: &mut Lower<'_>, a: &Args, x: usize, y: usize) -> Result<(Rc<Window>, Lanes)> {
    let w = window(l, a.need(0), WindowKind::Descriptor)?;
    let xo = a.need(x).clone();
    let (rows, s) = l.number_tile(&xo)?;
    let count = l.ty(rows).shape;
    if w.block.rank() != 2 || w.block.dim(0) != 1 {
        let message =
            format!("rows are gathered by a descriptor of blocks (1, n), not {}", w.block);
        return Err(l.error(Id::BadShape, message, a.range, ""));
    }
    if count.rank() != 1 || count.dim(0) < 8 || !matches!(s, Scalar::I16 | Scalar::I32) {
        let what = type_name(l.ty(rows));
        let message = format!("the rows are a tile of at least 8 int32 or int16, not {what}");
        return Err(l.error(Id::BadArgument, message, xo.range, ""));
    }
    let columns = w.block.dim(1);
    let pointee = l.ty(w.base).elem.pointer().map_or(Scalar::I8, |p| p.pointee);
    let least = 32 / pointee.bits() as usize * 8;
    if columns < least {
        let message = format!(
            "a row must have at least {least} columns of {}, not {columns}",
            pointee.triton_name()
        );
        return Err(l.error(Id::BadShape, message, a.range, ""));
    }
    let shape = Shape::new(&[count.dim(0) as i64, columns as i64]);
    let shape = shape.map_err(|e| l.bad_shape(e, a.range))?;
    let rows = l.b.cast(rows, Scalar::I64)?;
    let rows = l.aligned(rows, shape, 0)?;
    let first = offsets_of(l, a.need(y))?;
    let &[first] = first.as_slice() else {
        let message = "one column is wanted, where the rows begin";
        return Err(l.error(Id::BadArgument, message, a.need(y).range, ""));
    };
    let first = l.b.cast(first, Scalar::I64)?;
    let along = l.along(shape, 1)?;
    let columns = l.both(BinaryFn::Add, along, first)?;
    let at = lanes(l, &w, shape, &[rows, columns], &[true, true])?;
    Ok((w, at))
}

pub fn descriptor_gather(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (w, at) = rows(l, a, 1, 2)?;
    load_described(l, &w, &at)
}

pub fn descriptor_scatter(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (_, at) = rows(l, a, 2, 3)?;
    store_lanes(l, &at, a.need(0), &a.need(1).clone(), MemHints::default())
}

/// A descriptor that came with the launch: its parts are parameters of their own.
pub(crate) fn parameter(l: &mut Lower<'_>, name: &str, spec: &crate::DescriptorSpec) -> Val {
    let mut param = |name: String, ty: Type| l.b.func.add_param(name, ty);
    let rank = spec.block.rank();
    let base =
        param(name.to_string(), Type { elem: Elem::Pointer(spec.pointer), shape: Shape::SCALAR });
    let shape = (0..rank).map(|d| param(format!("{name}.shape.{d}"), Type::I32)).collect();
    let strides = (0..rank)
        .map(|d| param(format!("{name}.strides.{d}"), Type::scalar(Scalar::I64)))
        .collect();
    let padding = if spec.pad_with_nan { Padding::Nan } else { Padding::Zero };
    Val::Window(Rc::new(Window {
        kind: WindowKind::Descriptor,
        base,
        shape,
        strides,
        offsets: Vec::new(),
        block: spec.block,
        padding,
        round_tf32: spec.round_f32_to_tf32,
    }))
}

/// An attribute of a block pointer or a descriptor.
pub(crate) fn attribute(l: &Lower<'_>, w: &Window, name: &str) -> Option<Val> {
    let tuple = |values: &[Value]| Val::tuple(values.iter().map(|&v| Val::Tensor(v)).collect());
    let elem = l.ty(w.base);
    let pointee = elem.elem.pointer().map_or(Scalar::I8, |p| p.pointee);
    Some(match (name, w.kind) {
        ("dtype", WindowKind::Descriptor) => Val::DType(Type::scalar(pointee)),
        // Kernels write `bp.dtype.element_ty` and `bp.type.element_ty` for the type of an element.
        ("dtype" | "type", WindowKind::BlockPointer) => Val::DType(elem),
        ("shape", _) => tuple(&w.shape),
        ("strides", _) => tuple(&w.strides),
        ("offsets", WindowKind::BlockPointer) => tuple(&w.offsets),
        ("block_shape", _) => Val::tuple(w.block.dims().map(|d| Val::int(d as i128)).collect()),
        ("block_type", WindowKind::Descriptor) => Val::DType(Type::tile(pointee, w.block)),
        _ => return None,
    })
}

/// For a memory op on plain pointers: what is only for block pointers must not be there.
pub(super) fn no_block_options(
    l: &mut Lower<'_>,
    options: &BlockOptions<'_>,
) -> Option<Box<Diagnostic>> {
    let given = [("boundary_check", options.boundary_check), ("padding_option", options.padding)];
    let (name, range) = given.into_iter().find_map(|(name, o)| {
        let says_something = match &o?.val {
            Val::Tuple(t) => !t.items.is_empty(),
            Val::Const(c) => c.truthy(),
            _ => true,
        };
        says_something.then_some((name, o?.range))
    })?;
    let e = l.error(Id::BadArgument, format!("`{name}` is for block pointers"), range, "");
    Some(Box::new((*e).help("plain pointers take `mask=` and `other=`")))
}
