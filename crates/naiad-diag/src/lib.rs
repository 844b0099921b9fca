//! Source texts, places in them, and diagnostics.
//!
//! ```text
//!   Source ── Place (source, byte range) ──┐
//!   Places: Loc ── (Place, called-from) ───┼── Diagnostic ── render::human | json | github
//!   Picture (kinds of a tile's lanes) ─────┘   several ───── render::sarif
//! ```
//!
//! A finding may be silenced at its line: see [`Diagnostic::is_allowed`].
//!
//! A [`Diagnostic`] owns what it needs to be drawn, so it may outlive the compiler that made it.
//! IR carries a [`Loc`] on every op: four bytes, resolved through [`Places`].

mod allow;
mod diagnostic;
mod ids;
mod picture;
mod place;
pub mod render;
pub mod text;

pub use diagnostic::{Diagnostic, Label, Severity};
pub use ids::Id;
pub use picture::{LaneKind, Picture};
pub use place::{Loc, Place, Places, Source};
