//! Kernels as machine code of this CPU.

pub mod runtime;
