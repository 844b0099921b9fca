//! `map`: a function of elements on every one of a tile, or on every few.
//!
//! A region that works lane by lane is run once, with whole tiles for its scalars; of a pack's elements
//! each is a tile then, a view of every `pack`-th lane. One that loops is run for each pack.

use crate::code::Combine;
use crate::combine::{shape_of, slice, unless_scalar};
use crate::engine::{read_image, write_image};
use crate::fault::Fault;
use crate::memory::Origin;
use crate::ops::{Env, Reg, Results};
use crate::region::{self, Region};
use crate::shapes;
use crate::slab::Slab;
use crate::strided::{self, Dim};
use crate::tile::{Dense, Tile};
use naiad_ir::{Block, Scalar, Shape};
use smallvec::SmallVec;

pub struct Job<'a> {
    pub env: Env<'a>,
    pub body: Block,
    pub pack: usize,
    /// Of the inputs.
    pub types: SmallVec<[Scalar; 2]>,
    /// Of the results.
    pub outs: SmallVec<[Scalar; 2]>,
    pub shape: Shape,
}

pub fn map(job: &Job<'_>, how: Combine, inputs: &[Reg]) -> Result<Results, Fault> {
    match how {
        Combine::Elements => elements(job, inputs),
        Combine::Tiles | Combine::Function { .. } => tiles(job, inputs),
    }
}

fn tiles(job: &Job<'_>, inputs: &[Reg]) -> Result<Results, Fault> {
    let pack = job.pack;
    if pack == 1 {
        let env = Env { lift: Some(job.shape), ..job.env };
        let mut results = region::evaluate(&env, job.body, inputs)?;
        for (reg, &ty) in results.iter_mut().zip(&job.outs) {
            let tile = std::mem::replace(&mut reg.tile, Tile::Uniform(0));
            reg.tile = unless_scalar(tile, ty, &job.shape);
        }
        return Ok(results);
    }
    let groups = job.shape.numel() / pack;
    let (whole, part) = (shape_of(&[groups, pack, 1]), shape_of(&[groups, 1, 1]));
    let mut arguments = Results::new();
    for (reg, &ty) in inputs.iter().zip(&job.types) {
        let rows = shapes::reshape(&reg.tile, ty, &job.shape, &whole);
        for i in 0..pack {
            let tile = slice(&rows, ty, &whole, &part, i);
            arguments.push(Reg { tile, origin: reg.origin });
        }
    }
    let env = Env { lift: Some(part), ..job.env };
    let parts = region::evaluate(&env, job.body, &arguments)?;
    drop(arguments);
    let weave = |(parts, &ty): (&[Reg], &Scalar)| {
        let size = ty.size();
        let slab = Slab::new(job.shape.numel() * size);
        for (i, reg) in parts.iter().enumerate() {
            let src = reg.tile.dense(ty, &part);
            let dim = Dim { n: groups, dst: (pack * size) as isize, src: size as isize };
            // SAFETY: every `pack`-th lane of the slab, which has room for all.
            unsafe { strided::copy(slab.as_mut_ptr().add(i * size), src.at(size), &[dim], size) };
        }
        let origin = parts.first().map_or(Origin::Unknown, |p| p.origin);
        let same = parts.iter().all(|p| p.origin == origin);
        let tile = Tile::Dense(Dense::new(slab));
        Reg { tile, origin: if same { origin } else { Origin::Unknown } }
    };
    Ok(parts.chunks(pack).zip(&job.outs).map(weave).collect())
}

fn elements(job: &Job<'_>, inputs: &[Reg]) -> Result<Results, Fault> {
    let pack = job.pack;
    let numel = job.shape.numel();
    let sources: SmallVec<[Dense; 2]> =
        inputs.iter().zip(&job.types).map(|(reg, &ty)| reg.tile.dense(ty, &job.shape)).collect();
    let slabs: SmallVec<[Slab; 2]> =
        job.outs.iter().map(|ty| Slab::new(numel * ty.size())).collect();
    let mut origins: SmallVec<[Option<Origin>; 2]> = SmallVec::from_elem(None, job.outs.len());
    let env = Env { lift: None, ..job.env };
    let mut region = Region::new(&env);
    let mut arguments = Results::new();
    for start in (0..numel).step_by(pack) {
        arguments.clear();
        for ((src, &ty), reg) in sources.iter().zip(&job.types).zip(inputs) {
            let size = ty.size();
            arguments.extend((start..start + pack).map(|at| Reg {
                // SAFETY: a lane of the tile.
                tile: Tile::Uniform(unsafe { read_image(src.at(size).add(at * size), size) }),
                origin: reg.origin,
            }));
        }
        let results = region.call(job.body, &arguments)?;
        let places = slabs.iter().zip(&job.outs).zip(&mut origins);
        for (((slab, &ty), origin), group) in places.zip(results.chunks(pack)) {
            let size = ty.size();
            for (i, reg) in group.iter().enumerate() {
                let image = reg.tile.uniform().unwrap_or(0);
                // SAFETY: a lane of the result.
                unsafe { write_image(slab.as_mut_ptr().add((start + i) * size), size, image) };
                let before = origin.unwrap_or(reg.origin);
                *origin = Some(if before == reg.origin { before } else { Origin::Unknown });
            }
        }
    }
    let done = |((slab, &ty), origin): ((Slab, &Scalar), Option<Origin>)| Reg {
        tile: unless_scalar(Tile::Dense(Dense::new(slab)), ty, &job.shape),
        origin: origin.unwrap_or_default(),
    };
    Ok(slabs.into_iter().zip(&job.outs).zip(origins).map(done).collect())
}
