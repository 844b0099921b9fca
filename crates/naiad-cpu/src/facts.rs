//! What is known of a launch's arguments when the kernel is compiled for them.

/// Facts on which compiled code is built; they are part of its key.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Facts {
    /// For each pair of pointer arguments `(i, j)`, `i < j`, whose storages share a byte.
    pub overlapping: Vec<(u32, u32)>,
}

impl Facts {
    /// Whether memory reached through one argument may be that reached through the other.
    pub fn may_overlap(&self, i: usize, j: usize) -> bool {
        i == j || self.overlapping.contains(&(i.min(j) as u32, i.max(j) as u32))
    }
}
