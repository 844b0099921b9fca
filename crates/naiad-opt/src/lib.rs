//! Analyses and passes over Tile IR that know no target.

pub mod affine;
