//! Kernels as machine code of this CPU.

pub mod clif;
pub mod dist;
pub mod facts;
pub mod runtime;
