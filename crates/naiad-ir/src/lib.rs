//! The intermediate representation: what kernels mean between their source and any executor.
//!
//! A [`Function`] is SSA with structured control flow over a [`op::Dialect`], which is a closed set
//! of ops declared in one table, and of types. There are two dialects: [`tile::Tile`], what the author
//! wrote, and [`thread::Thread`], what one processor does.
//!
//! - [`types`]: scalars, pointers, shapes.
//! - [`scalar`]: the table of functions on numbers with their exact meaning, and conversions.
//! - [`math`]: elementary functions, each written once for all executors.
//! - [`ptx_asm`]: what inline assembly means, as far as it is arithmetic.
//! - [`op`]: what a table of ops provides; [`function`], [`verify()`], [`text`]: written once for all
//!   dialects.
//! - [`tile`], [`thread`]: the dialects, whose meanings are in their modules' documentation.

pub mod entities;
pub mod function;
pub mod math;
pub mod op;
pub mod ptx_asm;
pub mod scalar;
pub mod text;
pub mod thread;
pub mod tile;
pub mod types;
mod verify;

pub use entities::{Block, Inst, Value};
pub use function::{Def, Function};
/// Where an op of a [`Function`] stands.
pub use naiad_diag::Loc;
pub use op::{Dialect, Effects, OpInfo};
pub use types::{Elem, Kind, Pointer, Scalar, Shape, ShapeError, Type};
pub use verify::verify;
