//! In which order machine code combines numbers, as far as others can do the same.
//!
//! | op | order |
//! |---|---|
//! | product of matrices | that of [`multiply`], which starts from the accumulator |
//! | scan | along the axis |
//! | atomic op | lane after lane, of one program: others come in between |
//! | reduction | that of its loop nest, which only this compiler knows |
//!
//! The reference executor has the same for whoever asks it, so a kernel without such reductions gives the same
//! bits wherever it is run.

use naiad_ir::scalar::{BinaryFn, TernaryFn};
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Block, Effects, Function, Inst, OpInfo, Scalar, Value};
use std::cell::Cell;

pub use naiad_kernels::dot::dot as multiply;

/// Up to how many programs results depend on no order but those; 0 where they depend on others.
pub fn programs_in_order(func: &Function<Tile>) -> u64 {
    let updates = Cell::new(false);
    let known = |op: &TileOp| match op {
        // A product that is narrower than its sums is rounded where it is kept.
        TileOp::Dot { a, out, .. } => match out {
            Scalar::F32 => func.ty(*a).elem.scalar() != Some(Scalar::F64),
            out => *out == Scalar::F64,
        },
        TileOp::Scan { .. } => true,
        TileOp::AtomicRmw { .. } => {
            updates.set(true);
            true
        }
        _ => false,
    };
    match (naiad_opt::is_order_free_but(func, &known), updates.get()) {
        (false, _) => 0,
        (true, true) => 1,
        (true, false) => u64::MAX,
    }
}

/// Whether the passes may change in which order a kernel multiplies: whether a product may be added to
/// something.
pub fn multiplies_as_optimized(func: &Function<Tile>) -> bool {
    let (mut products, mut sums) = (false, false);
    func.walk(&mut |inst| match func.op(inst) {
        TileOp::Dot { acc: None, .. } => products = true,
        // What becomes a sum where an operand turns out to be a constant, too.
        TileOp::Binary { f: BinaryFn::Add | BinaryFn::Sub, a, .. }
        | TileOp::Ternary { f: TernaryFn::Fma | TernaryFn::FmaOdd, a, .. } => {
            let ty = func.ty(*a);
            sums |= ty.shape.rank() == 2 && ty.elem.scalar().is_some_and(Scalar::is_float);
        }
        _ => {}
    });
    products && sums
}

/// Makes products start from what they are added to.
///
/// ```text
///   %p = dot %a, %b
///   %y = binary.add %x, %p   ->   %y = dot %a, %b, %x
/// ```
///
/// Nothing is kept but the sums then. They are rounded in another order: whoever compares bits does so behind
/// this.
pub fn accumulate_products(func: &mut Function<Tile>) {
    let (mut uses, mut blocks, mut alone) = (vec![0u32; func.num_values()], Vec::new(), false);
    blocks.push(func.entry());
    func.walk(&mut |inst| {
        let op = func.op(inst);
        op.each_value(&mut |v| uses[v.index()] += 1);
        op.each_block(&mut |b| blocks.push(b));
        alone |= matches!(op, TileOp::Dot { acc: None, .. });
    });
    if alone {
        blocks.into_iter().for_each(|block| in_block(func, &uses, block));
    }
}

fn in_block(func: &mut Function<Tile>, uses: &[u32], block: Block) {
    let mut insts = func.take_insts(block);
    let mut at = 0;
    while at < insts.len() {
        if let Some((product, acc)) = added_product(func, uses, &insts[..=at])
            && let TileOp::Dot { a, b, out, precision, .. } = *func.op(insts[product])
        {
            *func.op_mut(insts[at]) = TileOp::Dot { a, b, acc: Some(acc), out, precision };
            insts.remove(product);
        } else {
            at += 1;
        }
    }
    func.set_insts(block, insts);
}

/// Of the last op: the product that it adds to something and that nobody else wants, and to what.
fn added_product(func: &Function<Tile>, uses: &[u32], insts: &[Inst]) -> Option<(usize, Value)> {
    let TileOp::Binary { f: BinaryFn::Add, a, b } = *func.op(*insts.last()?) else {
        return None;
    };
    let product = |v: Value| {
        if uses[v.index()] != 1 || func.ty(v).shape.rank() != 2 {
            return None;
        }
        let TileOp::Dot { acc: None, out, .. } = *func.defining_op(v)? else { return None };
        // Where sums are wider than the product, the addition is of rounded ones.
        if !matches!(out, Scalar::F32 | Scalar::F64 | Scalar::I32) {
            return None;
        }
        let from = insts.iter().rposition(|&i| func.results(i) == [v])?;
        // Until then nothing may change what the operands lie in.
        let quiet = |&i: &Inst| matches!(func.op(i).effects(), Effects::Pure | Effects::Reads);
        insts[from..].iter().all(quiet).then_some(from)
    };
    // Where both are products, the first is what the second starts from.
    product(b).map(|p| (p, a)).or_else(|| product(a).map(|p| (p, b)))
}

#[cfg(test)]
mod tests {
    use super::{accumulate_products, multiplies_as_optimized, programs_in_order};
    use naiad_ir::Function;
    use naiad_ir::tile::Tile;

    fn kernel(body: &str) -> Function<Tile> {
        let text = format!(
            "tile @f(%q q: *fp32, %u u: fp32) {{
  %x = splat %u shape=(16,16) : <16x16xfp32>
{body}  return
}}
"
        );
        let func = naiad_ir::text::parse(&naiad_diag::Source::new("f", text)).expect("a kernel");
        naiad_ir::verify(&func).expect("a kernel");
        func
    }

    fn dots(body: &str) -> Vec<String> {
        let mut func = kernel(body);
        accumulate_products(&mut func);
        naiad_ir::verify(&func).expect("a kernel");
        let text = func.to_string();
        let ops = text.lines().filter_map(|line| line.trim().split_once(" = "));
        ops.map(|(_, op)| op.split(" : ").next().unwrap_or_default().to_string())
            .filter(|op| op.starts_with("dot") || op.starts_with("binary"))
            .collect()
    }

    const PRODUCT: &str = "dot %x, %x out=fp32 precision=ieee : <16x16xfp32>";

    #[test]
    fn products_start_from_what_they_are_added_to() {
        let sum = |sum: &str| format!("  %p = {PRODUCT}\n  %y = {sum} : <16x16xfp32>\n");
        for text in ["binary.add %x, %p", "binary.add %p, %x"] {
            let dots = dots(&sum(text));
            assert!(dots.len() == 1 && dots[0].contains("acc="), "{dots:?}");
        }
        // Twice the product, something else, and what another wants too.
        for text in ["binary.add %p, %p", "binary.sub %p, %x"] {
            assert_eq!(dots(&sum(text)).len(), 2);
        }
        let used = sum("binary.add %x, %p") + "  %z = binary.mul %y, %p : <16x16xfp32>\n";
        assert_eq!(dots(&used).len(), 3);
        // A chain of them.
        let chain = format!(
            "  %p = {PRODUCT}\n  %q1 = {PRODUCT}\n  %s = binary.add %p, %q1 : <16x16xfp32>
  %r = {PRODUCT}\n  %t = binary.add %r, %s : <16x16xfp32>\n"
        );
        let dots = dots(&chain);
        assert_eq!(dots.iter().filter(|dot| dot.contains("acc=")).count(), 2, "{dots:?}");
        assert!(dots.iter().all(|dot| dot.starts_with("dot")), "{dots:?}");
    }

    #[test]
    fn only_sums_of_floats_have_an_order_of_their_own() {
        let reduce = "  %s = reduce inputs=[%x] axis=0 {
    ^(%a: fp32, %b: fp32):
    %c = binary.add %a, %b : fp32
    yield values=[%c]
  } : <16xfp32>
";
        let product = kernel(&format!("  %p = {PRODUCT}\n"));
        assert!(programs_in_order(&product) > 1 && !multiplies_as_optimized(&product));
        let scan = kernel(&reduce.replace("reduce", "scan").replace("<16x", "<16x16x"));
        assert!(programs_in_order(&scan) > 1);
        assert_eq!(programs_in_order(&kernel(reduce)), 0);
        assert_eq!(programs_in_order(&kernel("  %o = atomic.add %q, %u : fp32\n")), 1);
        assert!(programs_in_order(&kernel(&reduce.replace("add", "max"))) > 1);
    }
}
