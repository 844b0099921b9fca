//! The assembler that texts are tried with, and functions to try.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(unused_imports, reason = "each test uses a part")]

mod assembler;
pub mod machine;
pub mod probe;
pub mod scalars;

pub use assembler::Assembler;
