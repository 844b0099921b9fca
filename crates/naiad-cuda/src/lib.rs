//! The driver of NVIDIA's GPUs, loaded when it is first asked for.
