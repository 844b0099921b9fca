//! How many programs a launch runs.

use crate::Result;
use naiad_diag::{Diagnostic, Id};

/// Counts of programs along the three axes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Grid(pub(crate) [u32; 3]);

impl Grid {
    /// One to three counts, none negative.
    pub fn new(counts: &[i128]) -> Result<Grid> {
        if !(1..=3).contains(&counts.len()) {
            return Err(Grid::error(format!(
                "a grid has 1 to 3 counts, this one has {}",
                counts.len()
            )));
        }
        let mut grid = [1u32; 3];
        for (axis, (slot, &count)) in grid.iter_mut().zip(counts).enumerate() {
            // CUDA's bound for axis 0, which is the most that program ids of 32 bits can number.
            *slot =
                u32::try_from(count).ok().filter(|&c| c <= i32::MAX as u32).ok_or_else(|| {
                    let why = if count < 0 { "is negative" } else { "is more than 2147483647" };
                    Grid::error(format!("the grid's count along axis {axis} {why}: {count}"))
                })?;
        }
        Ok(Grid(grid))
    }

    /// An error about what was given for a grid.
    pub fn error(message: impl Into<String>) -> crate::Error {
        Diagnostic::new(Id::BadGrid, message)
            .help("give a tuple of one to three counts of programs, such as `(4,)` or `(8, 2)`")
            .into()
    }

    pub fn counts(self) -> [u32; 3] {
        self.0
    }

    /// Nothing is run where one count is zero.
    pub fn is_empty(self) -> bool {
        self.0.contains(&0)
    }
}

/// What can be given for a grid: a [`Grid`], or a tuple or array of one to three integers.
pub trait IntoGrid {
    fn into_grid(self) -> Result<Grid>;
}

impl IntoGrid for Grid {
    fn into_grid(self) -> Result<Grid> {
        Ok(self)
    }
}

macro_rules! into_grid {
    ($($int:ty)*) => { $(
        impl IntoGrid for ($int,) {
            fn into_grid(self) -> Result<Grid> { Grid::new(&[self.0 as i128]) }
        }
        impl IntoGrid for ($int, $int) {
            fn into_grid(self) -> Result<Grid> { Grid::new(&[self.0 as i128, self.1 as i128]) }
        }
        impl IntoGrid for ($int, $int, $int) {
            fn into_grid(self) -> Result<Grid> {
                Grid::new(&[self.0 as i128, self.1 as i128, self.2 as i128])
            }
        }
        impl<const N: usize> IntoGrid for [$int; N] {
            fn into_grid(self) -> Result<Grid> { Grid::new(&self.map(|c| c as i128)) }
        }
    )* };
}

into_grid! { i32 u32 i64 u64 usize }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids() {
        assert_eq!((4,).into_grid().unwrap().counts(), [4, 1, 1]);
        assert_eq!([2usize, 3, 4].into_grid().unwrap().counts(), [2, 3, 4]);
        assert!((3, 0).into_grid().unwrap().is_empty());
        for bad in [&[][..], &[1, 1, 1, 1], &[-1], &[1, 1 << 31]] {
            assert_eq!(Grid::new(bad).unwrap_err().id(), Id::BadGrid, "{bad:?}");
        }
    }
}
