//! What compiled code calls: library kernels on whole buffers.
