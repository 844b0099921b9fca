//! Source texts, places in them, and diagnostics.
//!
//! ```text
//!   Source ── Place (source, byte range) ──┐
//!                                          ├── Diagnostic ── render::human | render::json
//!   Places: Loc ── (Place, called-from) ───┘
//! ```
//!
//! A finding may be silenced at its line: see [`Diagnostic::is_allowed`].
//!
//! A [`Diagnostic`] owns what it needs to be drawn, so it may outlive the compiler that made it.
//! IR carries a [`Loc`] on every op: four bytes, resolved through [`Places`].

mod allow;
mod diagnostic;
mod ids;
mod place;
pub mod render;

pub use diagnostic::{Diagnostic, Label, Severity};
pub use ids::Id;
pub use place::{Loc, Place, Places, Source};
