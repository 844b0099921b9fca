pub mod math;
pub mod scalar;
pub mod types;
