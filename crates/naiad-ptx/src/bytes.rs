//! Where the bytes of a register come from.
//!
//! Narrow lanes are taken out of words, and put together again: for a store, for a matrix product, for
//! a conversion of two at a time. Whoever makes Thread IR says the latter with shifts and `or`, as it
//! has no other way. Here it is known of every such register which bytes of which registers it holds,
//! so that the whole is found where it lies, or is one instruction; the instructions that took it
//! apart are then without use, and `ptxas` drops them.
//!
//! A register that loops write again may be a source: until then, what was made of it stands, and
//! behind that it is not asked for.

use crate::emit::{Class, Emit, Operand, tuple};

/// A byte of a register.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Byte {
    Zero,
    /// The byte of this number of a register, a word or a half.
    Of(Operand, u8),
    Unknown,
}

/// The bytes of a word, the lowest first.
pub type Bytes = [Byte; 4];

impl Emit {
    /// What is known of a word or a half.
    pub fn bytes_of(&self, x: Operand) -> Bytes {
        if let Some(&bytes) = self.bytes.get(&x) {
            return bytes;
        }
        let own = match x {
            Operand::Reg(Class::Word, _) => 4,
            Operand::Reg(Class::Half, _) => 2,
            Operand::Imm(_, 0) => return [Byte::Zero; 4],
            Operand::Reg(..) | Operand::Imm(..) => 0,
        };
        std::array::from_fn(|i| if i < own { Byte::Of(x, i as u8) } else { Byte::Unknown })
    }

    /// Remembers what a new register holds.
    pub fn holds(&mut self, x: Operand, bytes: Bytes) -> Operand {
        if bytes.iter().any(|b| *b != Byte::Unknown) {
            self.bytes.insert(x, bytes);
        }
        x
    }

    /// A word with these bytes, if it is there or one instruction makes it. Of those given as not known
    /// nothing is promised.
    pub fn word_of(&mut self, want: Bytes) -> Option<Operand> {
        let whole = |x: Operand| {
            let fits = |(i, b): (usize, &Byte)| *b == Byte::Of(x, i as u8) || *b == Byte::Unknown;
            want.iter().enumerate().all(fits)
        };
        let mut sources: Vec<Operand> = Vec::new();
        for byte in want {
            if let Byte::Of(x, _) = byte
                && !sources.contains(&x)
            {
                sources.push(x);
            }
        }
        let first = *sources.first()?;
        if first.class() == Class::Word && whole(first) {
            // A copy by halves, not the word itself: vector loads and matrix products want their
            // registers side by side, and `ptxas`, which sees through a plain move, ties the one to the
            // other and spills where this leaves it free.
            let pair = self.halves(first);
            return Some(self.pack_halves(pair));
        }
        let is_half = |i: usize, x: Operand| {
            x.class() == Class::Half && want[i..i + 2] == [Byte::Of(x, 0), Byte::Of(x, 1)]
        };
        if let [low, high] = *sources.as_slice()
            && is_half(0, low)
            && is_half(2, high)
        {
            return Some(self.pack_halves([low, high]));
        }
        if let [half] = *sources.as_slice()
            && is_half(0, half)
            && !want[2..].iter().any(|b| matches!(b, Byte::Of(..)))
        {
            let word = self.ins("cvt.u32.u16", Class::Word, [half]);
            return Some(self.holds(word, [want[0], want[1], Byte::Zero, Byte::Zero]));
        }
        if sources.len() > 2 || sources.iter().any(|x| x.class() != Class::Word) {
            return None;
        }
        // A selector of 4 bits for each byte, out of the first and then the second source.
        let zero = Operand::word(0);
        let second = sources.get(1).copied().unwrap_or(zero);
        let mut selector = 0;
        for (i, byte) in want.into_iter().enumerate() {
            let from = match byte {
                Byte::Of(x, i) if x == first => i64::from(i),
                Byte::Of(_, i) => 4 + i64::from(i),
                Byte::Zero if second == zero => 4,
                Byte::Zero => return None,
                Byte::Unknown => i as i64,
            };
            selector |= from << (4 * i);
        }
        let word = self.ins("prmt.b32", Class::Word, [first, second, Operand::word(selector)]);
        Some(self.holds(word, want))
    }

    /// Bytes, each the lowest of its word, as a word; what is above two is anything.
    pub fn pack_bytes(&mut self, bytes: &[Operand]) -> Operand {
        let known: Vec<Byte> = bytes.iter().map(|&x| self.bytes_of(x)[0]).collect();
        if !known.contains(&Byte::Unknown) {
            let want = std::array::from_fn(|i| known.get(i).copied().unwrap_or(Byte::Unknown));
            if let Some(word) = self.word_of(want) {
                return word;
            }
        }
        let two = |e: &mut Emit, low, high| {
            e.ins("prmt.b32", Class::Word, [low, high, Operand::word(0x0040)])
        };
        match *bytes {
            [a, b, c, d] => {
                let (low, high) = (two(self, a, b), two(self, c, d));
                self.ins("prmt.b32", Class::Word, [low, high, Operand::word(0x5410)])
            }
            [a, b, ..] => two(self, a, b),
            _ => bytes.first().copied().unwrap_or(Operand::word(0)),
        }
    }

    /// Two halves as a word.
    pub fn pack_halves(&mut self, pair: [Operand; 2]) -> Operand {
        let [[a, b, ..], [c, d, ..]] = pair.map(|x| self.bytes_of(x));
        let word = self.fresh(Class::Word);
        self.line(format_args!("mov.b32 {word}, {}", tuple(&pair)));
        self.holds(word, [a, b, c, d])
    }

    /// Two bytes as a half.
    pub fn byte_pair(&mut self, low: Operand, high: Operand) -> Operand {
        let [low_byte, high_byte] = [low, high].map(|x| self.bytes_of(x)[0]);
        match self.half_of([low_byte, high_byte]) {
            Some(half) => half,
            None => {
                let word = self.pack_bytes(&[low, high]);
                self.ins("cvt.u16.u32", Class::Half, [word])
            }
        }
    }

    /// The half that these bytes are, or are of a word.
    pub fn half_of(&mut self, want: [Byte; 2]) -> Option<Operand> {
        let [Byte::Of(x, low), Byte::Of(y, high)] = want else { return None };
        if x != y || low % 2 != 0 || high != low + 1 {
            return None;
        }
        if x.class() == Class::Half { Some(x) } else { Some(self.halves(x)[low as usize / 2]) }
    }

    /// A word as its low and its high half.
    pub fn halves(&mut self, word: Operand) -> [Operand; 2] {
        let [low, high] = [self.fresh(Class::Half), self.fresh(Class::Half)];
        self.line(format_args!("mov.b32 {}, {word}", tuple(&[low, high])));
        let [a, b, c, d] = self.bytes_of(word);
        self.holds(low, [a, b, Byte::Unknown, Byte::Unknown]);
        self.holds(high, [c, d, Byte::Unknown, Byte::Unknown]);
        [low, high]
    }
}

/// The bytes of `x` shifted to the left by so many bits, or to the right by as many if negative.
pub fn shifted(x: Bytes, by: i64) -> Bytes {
    let whole = by % 8 == 0;
    std::array::from_fn(|i| match usize::try_from(i as i64 - by / 8) {
        _ if !whole => Byte::Unknown,
        Ok(from) => x.get(from).copied().unwrap_or(Byte::Zero),
        Err(_) => Byte::Zero,
    })
}

/// What `x | y` holds.
pub fn joined(x: Bytes, y: Bytes) -> Bytes {
    std::array::from_fn(|i| match (x[i], y[i]) {
        (Byte::Zero, b) | (b, Byte::Zero) => b,
        _ => Byte::Unknown,
    })
}
