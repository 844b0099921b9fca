//! Which program wrote, and which read, each element of the memory that a launch writes.
//!
//! Elements are kept by chunks of 1024. A chunk is nothing, one program's, a few stretches, or a number
//! for each element, whichever is the least that tells; so a launch that writes in blocks needs a few
//! bytes for each block, and the worst one 4 bytes for each element and kind of access. Of elements of one
//! byte that would be too much: of who read them a byte is kept, which tells programs apart but for one
//! in 127 pairs. So a race may be missed there, and none is made up.

use smallvec::SmallVec;
use std::sync::{Mutex, PoisonError};

pub const CHUNK: usize = 1024;

/// A program, as its number and 1. Zero is none.
pub type Who = u32;

/// Of readers: this one, and others.
pub const AND_OTHERS: Who = 1 << 31;

/// Of writers: what it wrote had been there before.
pub const UNCHANGED: Who = 1 << 31;

/// Stretches from which on a chunk is a table.
const FEW: usize = 6;

#[derive(Default)]
enum Cells {
    #[default]
    Empty,
    All(Who),
    /// Stretches `lo..hi` that do not overlap.
    Few(SmallVec<[(u16, u16, Who); FEW]>),
    Table(Box<[Who]>),
    /// Marks of readers, see [`mark`]; the highest bit stands for [`AND_OTHERS`].
    Marks(Box<[u8]>),
}

const MARK_OTHERS: u8 = 1 << 7;

/// A program as one of 127 numbers.
fn mark(who: Who) -> Who {
    1 + who.wrapping_mul(0x9e37_79b1) % 127
}

#[derive(Default)]
struct Chunk {
    writers: Cells,
    readers: Cells,
}

/// The elements of one piece of memory.
pub struct Shadow {
    chunks: Vec<Mutex<Chunk>>,
    /// Readers are kept as marks.
    marked: bool,
}

/// Elements that another program had before.
pub struct Met {
    pub first: usize,
    pub n: usize,
    pub who: Who,
}

impl Cells {
    fn get(&self, i: usize) -> Who {
        match self {
            Cells::Empty => 0,
            Cells::All(who) => *who,
            Cells::Few(all) => {
                let holds =
                    |s: &&(u16, u16, Who)| (usize::from(s.0)..usize::from(s.1)).contains(&i);
                all.iter().find(holds).map_or(0, |s| s.2)
            }
            Cells::Table(all) => all[i],
            Cells::Marks(all) => {
                let others = if all[i] & MARK_OTHERS != 0 { AND_OTHERS } else { 0 };
                Who::from(all[i] & !MARK_OTHERS) | others
            }
        }
    }

    /// Who has an element, and how many up to `hi` are alike.
    fn stretch(&self, i: usize, hi: usize) -> (Who, usize) {
        let who = self.get(i);
        let n = match self {
            Cells::Empty | Cells::All(_) => hi - i,
            Cells::Few(_) | Cells::Table(_) | Cells::Marks(_) => {
                (i..hi).take_while(|&j| self.get(j) == who).count()
            }
        };
        (who, n)
    }

    fn table(&mut self) -> &mut [Who] {
        if !matches!(self, Cells::Table(_)) {
            let all: Box<[Who]> = (0..CHUNK).map(|i| self.get(i)).collect();
            *self = Cells::Table(all);
        }
        match self {
            Cells::Table(all) => all,
            Cells::Empty | Cells::All(_) | Cells::Few(_) | Cells::Marks(_) => &mut [],
        }
    }

    fn marks(&mut self) -> &mut [u8] {
        if !matches!(self, Cells::Marks(_)) {
            let byte = |who: Who| {
                let others = if who & AND_OTHERS != 0 { MARK_OTHERS } else { 0 };
                (who & !AND_OTHERS) as u8 | others
            };
            *self = Cells::Marks((0..CHUNK).map(|i| byte(self.get(i))).collect());
        }
        match self {
            Cells::Marks(all) => all,
            Cells::Empty | Cells::All(_) | Cells::Few(_) | Cells::Table(_) => &mut [],
        }
    }

    /// Sets a stretch that nobody else has; says whether it could be done without a table.
    fn claim(&mut self, lo: usize, hi: usize, who: Who) -> bool {
        match self {
            Cells::Empty if hi - lo == CHUNK => *self = Cells::All(who),
            Cells::Empty => *self = Cells::Few(smallvec::smallvec![(lo as u16, hi as u16, who)]),
            Cells::All(old) => return *old == who,
            Cells::Table(_) | Cells::Marks(_) => return false,
            Cells::Few(all) => {
                let (l, h) = (lo as u16, hi as u16);
                if all.iter().any(|s| s.2 == who && s.0 <= l && h <= s.1) {
                    return true;
                }
                if all.iter().any(|s| s.0 < h && l < s.1) {
                    return false;
                }
                match all.iter().position(|s| s.2 == who && (s.1 == l || s.0 == h)) {
                    Some(i) => (all[i].0, all[i].1) = (all[i].0.min(l), all[i].1.max(h)),
                    None if all.len() == FEW => return false,
                    None => all.push((l, h, who)),
                }
                if let [(0, end, who)] = all.as_slice()
                    && usize::from(*end) == CHUNK
                {
                    *self = Cells::All(*who);
                }
            }
        }
        true
    }

    fn write(&mut self, lo: usize, hi: usize, who: Who, met: &mut dyn FnMut(usize, usize, Who)) {
        if self.claim(lo, hi, who) {
            return;
        }
        let table = &mut self.table()[lo..hi];
        if table.iter().fold(0, |all, &x| all | x) != 0 {
            let mut i = 0;
            while i < table.len() {
                let old = table[i];
                let n = table[i..].iter().take_while(|&&x| x == old).count();
                if old != 0 && (old ^ who) & !UNCHANGED != 0 {
                    met(lo + i, n, old & !UNCHANGED);
                }
                i += n;
            }
        }
        table.fill(who);
    }

    /// A read by a program, which is given as its mark where marks are kept.
    fn read(&mut self, lo: usize, hi: usize, who: Who, marked: bool) {
        if self.claim(lo, hi, who) {
            return;
        }
        if marked {
            for old in &mut self.marks()[lo..hi] {
                if *old == 0 {
                    *old = who as u8;
                } else if *old & !MARK_OTHERS != who as u8 {
                    *old |= MARK_OTHERS;
                }
            }
            return;
        }
        for old in &mut self.table()[lo..hi] {
            if *old == 0 {
                *old = who;
            } else if *old & !AND_OTHERS != who {
                *old |= AND_OTHERS;
            }
        }
    }
}

impl Shadow {
    pub fn new(elements: usize, element_size: usize) -> Shadow {
        Shadow {
            chunks: (0..elements.div_ceil(CHUNK)).map(|_| Mutex::default()).collect(),
            marked: element_size == 1,
        }
    }

    fn reader(&self, who: Who) -> Who {
        if self.marked { mark(who) } else { who }
    }

    /// A program writes elements; `met` hears of those that another wrote before.
    pub fn write(&self, first: usize, n: usize, who: Who, met: &mut dyn FnMut(Met)) {
        self.each_part(first, n, |chunk, at, lo, hi| {
            chunk.writers.write(lo, hi, who, &mut |i, n, who| met(Met { first: at + i, n, who }));
        });
    }

    /// A program reads elements. What it wrote itself before does not count.
    pub fn read(&self, first: usize, n: usize, who: Who) {
        self.each_part(first, n, |chunk, _, lo, hi| {
            let mut i = lo;
            while i < hi {
                let (own, n) = chunk.writers.stretch(i, hi);
                if own & !UNCHANGED != who {
                    chunk.readers.read(i, i + n, self.reader(who), self.marked);
                }
                i += n;
            }
        });
    }

    /// Who wrote an element last.
    pub fn writer(&self, element: usize) -> Who {
        let mut who = 0;
        self.each_part(element, 1, |chunk, _, lo, _| who = chunk.writers.get(lo));
        who
    }

    /// Who wrote elements, for whoever reads them.
    pub fn writers(&self, first: usize, n: usize, met: &mut dyn FnMut(Met)) {
        self.each_part(first, n, |chunk, at, lo, hi| {
            let mut i = lo;
            while i < hi {
                let (who, n) = chunk.writers.stretch(i, hi);
                if who != 0 {
                    met(Met { first: at + i, n, who: who & !UNCHANGED });
                }
                i += n;
            }
        });
    }

    /// Whether some element was read and then, by whomever, written.
    pub fn has_updates(&self) -> bool {
        self.chunks.iter().any(|chunk| {
            let chunk = chunk.lock().unwrap_or_else(PoisonError::into_inner);
            let (w, r) = (&chunk.writers, &chunk.readers);
            let both = !matches!(w, Cells::Empty) && !matches!(r, Cells::Empty);
            both && (0..CHUNK).any(|i| w.get(i) != 0 && r.get(i) != 0)
        })
    }

    /// Elements that were written by one program and read by another: element, writer, reader, and
    /// whether the write changed it.
    pub fn crossings(&self, met: &mut dyn FnMut(usize, Who, Who, bool)) {
        for (number, chunk) in self.chunks.iter().enumerate() {
            let chunk = chunk.lock().unwrap_or_else(PoisonError::into_inner);
            match (&chunk.writers, &chunk.readers) {
                (Cells::Empty, _) | (_, Cells::Empty) => continue,
                (Cells::All(w), Cells::All(r)) if self.reader(w & !UNCHANGED) == *r => continue,
                _ => {}
            }
            for i in 0..CHUNK {
                let (w, r) = (chunk.writers.get(i), chunk.readers.get(i));
                let own = w & !UNCHANGED;
                if w != 0 && r != 0 && r != self.reader(own) {
                    // Of a mark nothing is known but that it is another program's.
                    let r = if self.marked { own | AND_OTHERS } else { r };
                    met(number * CHUNK + i, own, r, own == w);
                }
            }
        }
    }

    fn each_part(
        &self,
        first: usize,
        n: usize,
        mut f: impl FnMut(&mut Chunk, usize, usize, usize),
    ) {
        let mut at = first;
        while at < first + n {
            let (number, lo) = (at / CHUNK, at % CHUNK);
            let hi = (lo + first + n - at).min(CHUNK);
            let Some(chunk) = self.chunks.get(number) else { return };
            let mut chunk = chunk.lock().unwrap_or_else(PoisonError::into_inner);
            f(&mut chunk, number * CHUNK, lo, hi);
            at += hi - lo;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random stretches against one number for each element.
    #[test]
    fn chunks_tell_what_a_table_would() {
        let n = 5000;
        let mut seed = 7u64;
        let mut random = move |below: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % below
        };
        for round in 0..30 {
            let marked = round % 3 == 0;
            let shadow = Shadow::new(n, if marked { 1 } else { 4 });
            let (mut writers, mut readers) = (vec![0; n], vec![0; n]);
            for _ in 0..60 {
                let who = 1 + random(4) as Who;
                let first = if round % 2 == 0 { random(20) * 250 } else { random(n - 1) };
                let len = (1 + random(2000)).min(n - first);
                if random(2) == 0 {
                    let mut want = Vec::new();
                    for (i, old) in writers.iter_mut().enumerate().skip(first).take(len) {
                        if *old != 0 && *old != who {
                            want.push((i, *old));
                        }
                        *old = who;
                    }
                    let mut got = Vec::new();
                    shadow.write(first, len, who, &mut |m| {
                        got.extend((m.first..m.first + m.n).map(|i| (i, m.who)))
                    });
                    assert_eq!(got, want);
                } else {
                    shadow.read(first, len, who);
                    for (i, old) in readers.iter_mut().enumerate().skip(first).take(len) {
                        *old = match *old {
                            old if writers[i] == who => old,
                            0 => who,
                            r if r & !AND_OTHERS == who => r,
                            r => r | AND_OTHERS,
                        };
                    }
                }
            }
            let mut got = Vec::new();
            shadow.crossings(&mut |i, w, r, changed| got.push((i, w, r, changed)));
            let want = (0..n).map(|i| (i, writers[i], readers[i], true));
            let want = want.filter(|&(_, w, r, _)| w != 0 && r != 0 && w != r);
            let unnamed =
                |(i, w, r, changed)| (i, w, if marked { w | AND_OTHERS } else { r }, changed);
            assert_eq!(got, want.map(unnamed).collect::<Vec<_>>());
        }
    }

    /// Four bytes for each byte of memory, of types of one byte five, whatever programs do.
    #[test]
    fn tables_take_no_more_than_is_said() {
        for (element, most) in [(1, 5), (2, 4), (4, 2)] {
            let shadow = Shadow::new(CHUNK, element);
            for i in 0..CHUNK {
                shadow.write(i, 1, 1 + i as Who, &mut |_| {});
                shadow.read(i, 1, 9000 + (i * 7) as Who);
            }
            let chunk = shadow.chunks[0].lock().unwrap();
            let bytes = |cells: &Cells| match cells {
                Cells::Empty | Cells::All(_) => 0,
                Cells::Few(_) => unreachable!("each element is another program's"),
                Cells::Table(all) => all.len() * 4,
                Cells::Marks(all) => all.len(),
            };
            assert!(bytes(&chunk.writers) + bytes(&chunk.readers) <= most * element * CHUNK);
        }
    }

    /// Programs that read what they write themselves race with nobody, marked or not.
    #[test]
    fn marks_make_up_no_race() {
        let shadow = Shadow::new(CHUNK, 1);
        for i in 0..CHUNK {
            shadow.read(i, 1, 1 + i as Who);
            shadow.write(i, 1, 1 + i as Who, &mut |_| unreachable!("each writes its own"));
        }
        shadow.crossings(&mut |i, _, _, _| unreachable!("{i}"));
        shadow.read(5, 1, 99);
        let mut met = 0;
        shadow.crossings(&mut |i, w, r, _| {
            assert_eq!((i, w, r), (5, 6, 6 | AND_OTHERS));
            met += 1;
        });
        assert_eq!(met, 1);
    }
}
