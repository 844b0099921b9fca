//! A small picture of a tile: which of its lanes are data and which are not.
//!
//! ```text
//! the tile's 128 lanes, 2 a character: # data (100), . padding (28)
//! ##################################################..............
//!
//! the tile's 32 x 16 lanes: # data (465), . padding (47)
//! rows  0..30  ###############.
//! row  31      ................
//! ```
//!
//! Rows that look alike are drawn once, so that most tiles, whose masks are boxes, take two lines. What
//! is too wide or has too many different rows is drawn smaller: a character then stands for a block of
//! lanes, and `%` for one that holds several kinds.

use std::fmt;

/// What a lane is, where that matters.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LaneKind {
    Data,
    Padding,
    Undefined,
    Inside,
    Outside,
    Unwritten,
    Off,
}

/// Each kind with its character and its name, in the order of the legend.
const KINDS: [(LaneKind, char, &str); 7] = [
    (LaneKind::Data, '#', "data"),
    (LaneKind::Inside, '#', "inside"),
    (LaneKind::Padding, '.', "padding"),
    (LaneKind::Undefined, '?', "undefined"),
    (LaneKind::Off, '.', "masked off"),
    (LaneKind::Unwritten, '?', "never written"),
    (LaneKind::Outside, 'x', "outside"),
];

const SEVERAL: char = '%';
const MAX_WIDTH: usize = 64;
const MAX_LINES: usize = 16;

/// A drawn tile of one or two axes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    /// Extents of the tile.
    pub shape: Vec<usize>,
    /// How many lanes there are of each kind that occurs.
    pub counts: Vec<(LaneKind, usize)>,
    /// Rows and columns of lanes that a character stands for.
    pub scale: (usize, usize),
    /// Rows from the first to the one behind the last, and how they look.
    pub lines: Vec<(usize, usize, String)>,
}

impl LaneKind {
    fn row(self) -> (LaneKind, char, &'static str) {
        KINDS.into_iter().find(|row| row.0 == self).unwrap_or(KINDS[0])
    }

    pub fn name(self) -> &'static str {
        self.row().2
    }
}

impl Picture {
    /// Draws a tile whose lanes are numbered in row-major order; none where there is nothing to see,
    /// since all lanes are alike, or no way to draw it, since it has no axis or more than two.
    pub fn new(shape: &[usize], kind: impl Fn(usize) -> LaneKind) -> Option<Picture> {
        let (rows, columns) = match *shape {
            [n] => (1, n),
            [m, n] => (m, n),
            _ => return None,
        };
        let counts: Vec<(LaneKind, usize)> = KINDS
            .iter()
            .map(|row| (row.0, (0..rows * columns).filter(|&i| kind(i) == row.0).count()))
            .filter(|&(_, n)| n > 0)
            .collect();
        if counts.len() < 2 {
            return None;
        }
        let across = columns.div_ceil(MAX_WIDTH).next_power_of_two();
        let cell = |top: usize, down: usize, left: usize| -> char {
            let lanes = (top..(top + down).min(rows))
                .flat_map(|r| (left..(left + across).min(columns)).map(move |c| r * columns + c));
            let mut glyphs = lanes.map(|i| kind(i).row().1);
            let first = glyphs.next().unwrap_or(SEVERAL);
            if glyphs.all(|g| g == first) { first } else { SEVERAL }
        };
        let mut down = 1;
        loop {
            let mut lines: Vec<(usize, usize, String)> = Vec::new();
            for top in (0..rows).step_by(down) {
                let text: String =
                    (0..columns).step_by(across).map(|left| cell(top, down, left)).collect();
                let end = (top + down).min(rows);
                match lines.last_mut() {
                    Some(last) if last.2 == text => last.1 = end,
                    _ => lines.push((top, end, text)),
                }
            }
            if lines.len() <= MAX_LINES {
                return Some(Picture {
                    shape: shape.to_vec(),
                    counts,
                    scale: (down, across),
                    lines,
                });
            }
            down *= 2;
        }
    }
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        write!(f, "the tile's {} lanes", extents.join(" x "))?;
        match (self.scale, self.shape.len()) {
            ((1, 1), _) => {}
            ((_, across), 1) => write!(f, ", {across} a character")?,
            ((down, across), _) => write!(f, ", {down} x {across} a character")?,
        }
        for (i, &(kind, n)) in self.counts.iter().enumerate() {
            let (_, glyph, name) = kind.row();
            write!(f, "{} {glyph} {name} ({n})", if i == 0 { ":" } else { "," })?;
        }
        if self.lines.iter().any(|line| line.2.contains(SEVERAL)) {
            write!(f, ", {SEVERAL} several of these")?;
        }
        let width = self.lines.last().map_or(0, |line| (line.1 - 1).to_string().len());
        for &(start, end, ref text) in &self.lines {
            let last = end - 1;
            match (self.shape.len(), start == last) {
                (1, _) => write!(f, "\n{text}")?,
                (_, true) => write!(f, "\nrow  {start:>width$}  {:width$}  {text}", "")?,
                (_, false) => write!(f, "\nrows {start:>width$}..{last:<width$}  {text}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shape: &[usize], kind: impl Fn(usize) -> LaneKind, want: &str) {
        let have = Picture::new(shape, kind).map_or(String::new(), |p| p.to_string());
        assert_eq!(have, want.trim_matches('\n'), "\n{have}");
    }

    fn data_if(is: bool) -> LaneKind {
        if is { LaneKind::Data } else { LaneKind::Padding }
    }

    #[test]
    fn one_axis() {
        check(&[4], |i| data_if(i < 3), "the tile's 4 lanes: # data (3), . padding (1)\n###.");
        let wide = "the tile's 256 lanes, 4 a character: # data (101), . padding (155), % several of these\n\
                    #########################%......................................";
        check(&[256], |i| data_if(i < 101), wide);
    }

    #[test]
    fn rows_that_look_alike_are_one_line() {
        let want = "
the tile's 32 x 4 lanes: # inside (90), x outside (38)
rows  0..29  ###x
rows 30..31  xxxx";
        let kind = |i: usize| match i % 4 < 3 && i / 4 < 30 {
            true => LaneKind::Inside,
            false => LaneKind::Outside,
        };
        check(&[32, 4], kind, want);
        let want = "
the tile's 3 x 2 lanes: # data (2), ? undefined (4)
row  0     ??
row  1     ##
row  2     ??";
        let kind = |i: usize| if i / 2 == 1 { LaneKind::Data } else { LaneKind::Undefined };
        check(&[3, 2], kind, want);
    }

    #[test]
    fn what_is_too_large_is_drawn_smaller() {
        let want = "
the tile's 64 x 32 lanes, 4 x 1 a character: # data (1552), . padding (496), % several of these
rows  0..3   #%%%............................
rows  4..7   #####%%%........................
rows  8..11  #########%%%....................
rows 12..15  #############%%%................
rows 16..19  #################%%%............
rows 20..23  #####################%%%........
rows 24..27  #########################%%%....
rows 28..31  #############################%%%
rows 32..63  ################################";
        check(&[64, 32], |i| data_if(i % 32 <= i / 32), want);
    }

    #[test]
    fn nothing_to_see() {
        check(&[8], |_| LaneKind::Data, "");
        check(&[], data_if_first, "");
        check(&[2, 2, 2], data_if_first, "");
    }

    fn data_if_first(i: usize) -> LaneKind {
        data_if(i == 0)
    }
}
