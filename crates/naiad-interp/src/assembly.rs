//! Inline assembly, called on every few consecutive elements of its operands.

use crate::combine::unless_scalar;
use crate::engine::{In, read_image, write_image};
use crate::slab::Slab;
use crate::tile::{Dense, Tile};
use naiad_ir::ptx_asm::{Program, Registers};
use naiad_ir::{Scalar, Shape};
use smallvec::SmallVec;

pub struct Job<'a> {
    pub program: &'a Program,
    pub shape: Shape,
    pub pack: usize,
    /// Of the results.
    pub outs: SmallVec<[Scalar; 2]>,
}

pub fn run(
    job: &Job<'_>,
    operands: &[In<'_>],
    clock: &mut dyn FnMut() -> u64,
) -> SmallVec<[Tile; 2]> {
    let Job { program, shape, pack, ref outs } = *job;
    let numel = shape.numel();
    let sources: SmallVec<[Dense; 4]> =
        operands.iter().map(|o| o.tile.dense(o.ty, &shape)).collect();
    let slabs: SmallVec<[Slab; 2]> = outs.iter().map(|ty| Slab::new(numel * ty.size())).collect();
    let mut registers = Registers::default();
    let mut args = vec![0; operands.len() * pack];
    let mut results = vec![0; outs.len() * pack];
    for start in (0..numel).step_by(pack) {
        // A scalar fills the first place of a pack alone.
        let n = pack.min(numel - start);
        for ((place, src), o) in args.chunks_mut(pack).zip(&sources).zip(operands) {
            let size = o.ty.size();
            for (i, image) in place[..n].iter_mut().enumerate() {
                // SAFETY: a lane of the tile.
                *image = unsafe { read_image(src.at(size).add((start + i) * size), size) };
            }
        }
        program.call(&mut registers, &args, &mut results, clock);
        for ((place, slab), ty) in results.chunks(pack).zip(&slabs).zip(outs) {
            let size = ty.size();
            for (i, &image) in place[..n].iter().enumerate() {
                // SAFETY: a lane of the result. Images come masked to the type, as lanes of `i1` must be.
                unsafe { write_image(slab.as_mut_ptr().add((start + i) * size), size, image) };
            }
        }
    }
    let tile = |(slab, &ty)| unless_scalar(Tile::Dense(Dense::new(slab)), ty, &shape);
    slabs.into_iter().zip(outs).map(tile).collect()
}
