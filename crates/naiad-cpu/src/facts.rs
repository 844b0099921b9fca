//! What is known of a launch's arguments when the kernel is compiled for them.

use crate::launch::Arg;

/// Facts on which compiled code is built; they are part of its key.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Facts {
    /// Pairs of pointer arguments `(i, j)`, `i < j`, whose storages share a byte, and one of which is
    /// written.
    overlapping: Vec<(u32, u32)>,
}

impl Facts {
    /// The facts of a launch; `written` says which arguments the kernel may write through.
    pub fn of(args: &[Arg], written: &[bool]) -> Facts {
        let storage = |i: usize| match &args[i] {
            Arg::Tensor { storage, .. } => Some(storage),
            Arg::Scalar(_) => None,
        };
        let mut overlapping = Vec::new();
        for j in 0..args.len() {
            let Some(b) = storage(j) else { continue };
            for i in 0..j {
                if let Some(a) = storage(i)
                    && (written[i] || written[j])
                    && a.start < b.end
                    && b.start < a.end
                {
                    overlapping.push((i as u32, j as u32));
                }
            }
        }
        Facts { overlapping }
    }

    /// Whether memory reached through one argument may be that reached through the other.
    pub fn may_overlap(&self, i: usize, j: usize) -> bool {
        i == j || self.overlapping.contains(&(i.min(j) as u32, i.max(j) as u32))
    }
}
