//! Library kernels that compiled code calls on whole buffers: copies, matrix products, conversions,
//! sorting, counting.
//!
//! ```text
//!   entry (`extern "C"`, in copy, dot, convert, rows)
//!     |-- dispatch.rs   one table: which kernels each level of processor runs
//!     |-- cpu.rs        the levels, and which one this processor has
//!     '-- kernels       written once over traits of vectors, compiled for each level
//! ```
//!
//! Entries take integers of 64 bits and addresses. Strides are in bytes, may be anything, and data may
//! lie at any address. A type is its position in [`Scalar::ALL`](naiad_ir::Scalar::ALL). No entry
//! panics, allocates or blocks.
//!
//! This is a crate of its own for the sake of how it is compiled: the standard library checks every
//! load and store where debug assertions are on, and a vector whose address a check takes is kept in
//! memory, which makes a product three times slower.
//!
//! **Legacy SSE code is slow while the upper halves of registers are in use**, by 50 times and more, and
//! Cranelift writes such code. Functions with target features of 256 bits and more therefore end in
//! `vzeroupper`; the compiler sees to it, and a test looks at the registers that each entry leaves.

pub mod convert;
pub mod copy;
mod cpu;
mod dispatch;
pub mod dot;
pub mod rows;
#[cfg(test)]
mod testing;
#[cfg(all(test, target_arch = "x86_64"))]
mod upper;
mod word;

pub use cpu::Level;
