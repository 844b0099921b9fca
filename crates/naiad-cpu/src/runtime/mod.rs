//! What compiled code calls: library kernels on whole buffers, and the threads that it runs on.

pub mod fiber;
pub mod pool;
pub mod table;
pub mod waiting;
