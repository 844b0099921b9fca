//! What has to hold of an op of Placed IR.
//!
//! - A tile's layout covers it; a scalar has none. In shared memory each element has a position of its
//!   own, in one slot or more.
//! - Elements and shapes are those that the same op of Tile IR gives and takes; its operands are not in
//!   shared memory.
//! - An op that moves no element has its operands in the layouts that [`rules`] say for its results'.
//! - Operands of an op on memory are in one layout.
//! - `reduce`: the inputs are in one layout, the results in what is left of it.
//! - `convert`, `copy_async` and `read` keep the type; slots are i32.
//! - What loops and branches pass on keeps its type, its layout too.

use super::{Extra, Place, Placed, PlacedOp, PlacedType, What, rules};
use crate::layout::numel_bits;
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Block, Function, OpInfo, Scalar, Shape, Type, Value};
use std::fmt::Display;

type F = Function<Placed>;
type Checked = Result<(), String>;

fn check(ok: bool, message: impl FnOnce() -> String) -> Checked {
    if ok { Ok(()) } else { Err(message()) }
}

pub(super) fn op(f: &F, op: &PlacedOp) -> Checked {
    for ty in &op.results {
        sound(ty)?;
    }
    match &op.what {
        What::Tile(tile) => {
            types_of_tiles(f, tile, &op.results)?;
            on_tiles(f, tile, &op.results)
        }
        What::Extra(extra) => on_places(f, extra, &op.results),
    }
}

fn sound(ty: &PlacedType) -> Checked {
    match ty.place {
        Place::Everywhere => check(ty.ty.is_scalar(), || format!("{ty} has no layout")),
        Place::Spread(layout) => {
            check(layout.covers(&ty.ty.shape), || format!("{ty}: the layout does not cover it"))
        }
        Place::Shared { swizzle, slots } => {
            let fits =
                swizzle.is_invertible() && swizzle.bases().len() as u32 == numel_bits(&ty.ty.shape);
            check(fits, || format!("{ty}: elements have no positions of their own"))?;
            check(slots > 0, || format!("{ty}: there are no slots"))
        }
    }
}

fn types(f: &F, values: &[Value]) -> Vec<PlacedType> {
    values.iter().map(|&v| f.ty(v)).collect()
}

fn same<T: PartialEq + Display>(have: &[T], want: &[T], what: &str) -> Checked {
    let list = |types: &[T]| {
        let names: Vec<String> = types.iter().map(T::to_string).collect();
        format!("({})", names.join(", "))
    };
    check(have == want, || format!("{what} are {}, wants {}", list(have), list(want)))
}

/// Elements and shapes, wherever they are.
fn types_of_tiles(f: &F, op: &TileOp, results: &[PlacedType]) -> Checked {
    let scalar = |&v: &Value| f.ty(v).ty.with_shape(Shape::SCALAR);
    let plain = |values: &[Value]| -> Vec<Type> { values.iter().map(|&v| f.ty(v).ty).collect() };
    let have: Vec<Type> = results.iter().map(|r| r.ty).collect();
    match op {
        // Of these the yields and results are held against each other with their layouts.
        TileOp::While { .. } => return Ok(()),
        TileOp::If { cond, .. } => {
            return same(&plain(&[*cond]), &[Type::scalar(Scalar::I1)], "conditions");
        }
        TileOp::Map { inputs, pack, body } => {
            let want: Vec<Type> = inputs.iter().flat_map(|v| vec![scalar(v); *pack]).collect();
            same(&plain(f.block_params(*body)), &want, "parameters of the function")?;
            let shape = f.ty(inputs[0]).ty.shape;
            let given = plain(passed(f, *body));
            let want: Vec<Type> =
                given.iter().step_by((*pack).max(1)).map(|t| t.with_shape(shape)).collect();
            return same(&have, &want, "results");
        }
        TileOp::Reduce { inputs, body, .. } | TileOp::Scan { inputs, body, .. } => {
            let one: Vec<Type> = inputs.iter().map(scalar).collect();
            let two = [one.clone(), one.clone()].concat();
            same(&plain(f.block_params(*body)), &two, "parameters of the combine function")?;
            same(&plain(passed(f, *body)), &one, "yields of the combine function")?;
        }
        _ => {}
    }
    // The op on values of the same types, which are nowhere.
    let mut nowhere = Function::<Tile>::new("");
    let (mut mirrored, mut shared) = (op.clone(), None);
    mirrored.each_value_mut(&mut |v| {
        let ty = f.ty(*v);
        if matches!(ty.place, Place::Shared { .. }) {
            shared = Some(*v);
        }
        *v = nowhere.add_param("", ty.ty);
    });
    check(shared.is_none(), || "an operand is in shared memory".to_string())?;
    same(&have, &mirrored.infer(&nowhere)?, "results")
}

fn passed(f: &F, block: Block) -> &[Value] {
    match f.terminator(block) {
        Some(PlacedOp {
            what: What::Tile(TileOp::Yield { values } | TileOp::Condition { values, .. }),
            ..
        }) => values,
        _ => &[],
    }
}

fn on_tiles(f: &F, op: &TileOp, results: &[PlacedType]) -> Checked {
    match op {
        TileOp::For { lower, inits, body, .. } => {
            let carried = types(f, inits);
            same(results, &carried, "results")?;
            same(&types(f, passed(f, *body)), &carried, "yields")?;
            let params = [&[f.ty(*lower)], &carried[..]].concat();
            return same(&types(f, f.block_params(*body)), &params, "parameters of the body");
        }
        TileOp::While { inits, before, after } => {
            let (carried, given) = (types(f, inits), types(f, passed(f, *before)));
            same(&types(f, f.block_params(*before)), &carried, "parameters of the test")?;
            same(&types(f, f.block_params(*after)), &given, "parameters of the body")?;
            same(&types(f, passed(f, *after)), &carried, "yields")?;
            return same(results, &given, "results");
        }
        TileOp::If { then, otherwise, .. } => {
            same(&types(f, passed(f, *then)), results, "yields of the first branch")?;
            return same(&types(f, passed(f, *otherwise)), results, "yields of the second branch");
        }
        TileOp::Reduce { inputs, .. } => {
            one_layout(f, inputs)?;
            let Some(layout) = f.ty(inputs[0]).layout() else { return Ok(()) };
            let want = rules::result(op, |v| f.ty(v).ty.shape, &layout);
            let fits = results.iter().all(|r| r.ty.is_scalar() || r.layout() == want);
            return check(fits, || "a result is not in what is left of the layout".to_string());
        }
        TileOp::Store { ptr, value, mask, .. } => {
            let all: Vec<Value> = [*ptr, *value].into_iter().chain(*mask).collect();
            return one_layout(f, &all);
        }
        TileOp::AtomicStore { ptr, value, mask, .. } => {
            let all: Vec<Value> = [*ptr, *value].into_iter().chain(*mask).collect();
            return one_layout(f, &all);
        }
        TileOp::Assert { cond, mask, values, .. } => {
            let all: Vec<Value> = [*cond].into_iter().chain(*mask).chain(values.clone()).collect();
            return one_layout(f, &all);
        }
        _ => {}
    }
    let Some(PlacedType { ty, place: Place::Spread(layout) }) = results.first() else {
        return Ok(());
    };
    let Some(want) = rules::operands(op, |v| f.ty(v).ty.shape, &ty.shape, layout) else {
        return Ok(());
    };
    let mut fault = None;
    op.each_value(&mut |v| {
        if let Some(have) = f.ty(v).layout()
            && have != want
        {
            fault = Some(format!("{v} is in {have}, wants {want}"));
        }
    });
    fault.map_or(Ok(()), Err)
}

fn one_layout(f: &F, values: &[Value]) -> Checked {
    let first = f.ty(values[0]).layout();
    let fits = values.iter().all(|&v| f.ty(v).layout() == first);
    check(fits, || "operands are in different layouts".to_string())
}

fn on_places(f: &F, op: &Extra, results: &[PlacedType]) -> Checked {
    let shared = |v: Value| match f.ty(v) {
        PlacedType { ty, place: Place::Shared { .. } } => Ok(ty),
        other => Err(format!("wants shared memory, not {other}")),
    };
    let slot = |v: Value| {
        let want = PlacedType::scalar(Type::I32);
        check(f.ty(v) == want, || format!("a slot is i32, not {}", f.ty(v)))
    };
    match op {
        Extra::Convert { src } => {
            let fits = results.len() == 1 && f.ty(*src).ty == results[0].ty;
            check(fits, || "another tile than that which is converted".to_string())
        }
        Extra::Alloc => {
            let fits = matches!(results, [PlacedType { place: Place::Shared { .. }, .. }]);
            check(fits, || "gives shared memory".to_string())
        }
        Extra::Read { buffer, slot: at } => {
            slot(*at)?;
            let want = shared(*buffer)?;
            check(results.len() == 1 && results[0].ty == want, || format!("the slots hold {want}"))
        }
        Extra::CopyAsync { buffer, slot: at, ptr, mask, .. } => {
            slot(*at)?;
            let (want, from) = (shared(*buffer)?, f.ty(*ptr));
            let pointee = from.ty.elem.pointer().map(|p| p.pointee);
            let fits = pointee.is_some_and(|p| from.ty.with_elem(p) == want);
            check(fits, || format!("the slots are for {want}"))?;
            mask.map_or(Ok(()), |m| one_layout(f, &[*ptr, m]))
        }
        Extra::Free { buffer } => shared(*buffer).map(|_| ()),
        Extra::Commit | Extra::Wait { .. } => Ok(()),
    }
}
