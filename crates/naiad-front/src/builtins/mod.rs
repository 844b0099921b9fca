//! What the public names build. Each function gets the arguments bound by its row in
//! [`crate::names`]; slot `i` is the row's parameter `i`.

pub(crate) mod create;
pub(crate) mod debug;
pub(crate) mod dot;
pub(crate) mod dtype;
pub(crate) mod libdevice;
pub(crate) mod math;
pub(crate) mod memory;
pub(crate) mod program;
pub(crate) mod python;
pub(crate) mod reduce;
pub(crate) mod shape;
pub(crate) mod target;
pub(crate) mod tile;
pub(crate) mod window;
