//! Accesses: lanes to and from words of up to 16 bytes.
//!
//! Consecutive lanes under one predicate are one instruction, of as many bytes as an instruction
//! takes; where lanes have predicates of their own, an access falls into parts that have not. A lane
//! that is not read is 0, which its register holds before.

use crate::bytes::Byte;
use crate::emit::{Class, Emit, Lanes, Operand, tuple};
use naiad_ir::Scalar;
use naiad_ir::thread::{MAX_LANES, ThreadElem};
use naiad_ir::tile::{CacheModifier, Eviction, MemHints};

/// Bytes that one instruction moves at most.
const MOST_BYTES: usize = 16;

/// Where an access goes.
#[derive(Copy, Clone)]
pub struct Place {
    pub space: Space,
    pub base: Operand,
    pub disp: i64,
}

#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Space {
    Global,
    Shared,
}

impl Space {
    pub const fn name(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Shared => "shared",
        }
    }
}

/// Lanes that one instruction moves.
struct Piece {
    first: usize,
    count: usize,
    pred: Option<Operand>,
}

impl Emit {
    pub fn load(
        &mut self,
        elem: ThreadElem,
        lanes: usize,
        place: Place,
        mask: Option<&[Operand]>,
        hints: MemHints,
    ) -> Lanes {
        let mut out = Lanes::new();
        let opcode = opcode("ld", place.space, hints, LOADS);
        self.needs(hints_version(hints));
        let place = self.reachable(place);
        for piece in pieces(lanes, elem.size(), mask) {
            debug_assert_eq!(piece.first, out.len());
            let disp = place.disp + (piece.first * elem.size()) as i64;
            let lanes = self.load_piece(elem, &opcode, Place { disp, ..place }, &piece);
            out.extend(lanes);
        }
        out
    }

    fn load_piece(&mut self, elem: ThreadElem, opcode: &str, p: Place, piece: &Piece) -> Lanes {
        let class = memory_class(elem, piece.count);
        if piece.pred.and_then(Operand::known) == Some(0) {
            let zero = Operand::Imm(Class::of(elem), 0);
            return (0..piece.count).map(|_| zero).collect();
        }
        let bytes = piece.count * elem.size();
        let each = bytes.min(class.bits() as usize / 8);
        let words: Lanes = (0..bytes / each).map(|_| self.fresh(class)).collect();
        if piece.pred.is_some() {
            for &w in &words {
                self.mov(w, Operand::Imm(class, 0));
            }
        }
        let target = if words.len() == 1 { words[0].to_string() } else { tuple(&words) };
        let count = vector_suffix(words.len());
        let (ty, address) = (memory_type(elem, piece.count, each), address(p));
        self.guarded(piece.pred, format_args!("{opcode}{count}.{ty} {target}, {address}"));
        self.unpack(elem, piece.count, &words)
    }

    pub fn store(
        &mut self,
        elem: ThreadElem,
        value: &[Operand],
        place: Place,
        mask: Option<&[Operand]>,
        hints: MemHints,
    ) {
        let opcode = opcode("st", place.space, hints, STORES);
        self.needs(hints_version(hints));
        let place = self.reachable(place);
        for piece in pieces(value.len(), elem.size(), mask) {
            if piece.pred.and_then(Operand::known) == Some(0) {
                continue;
            }
            let p = Place { disp: place.disp + (piece.first * elem.size()) as i64, ..place };
            self.store_piece(elem, &opcode, p, &value[piece.first..][..piece.count], piece.pred);
        }
    }

    fn store_piece(
        &mut self,
        elem: ThreadElem,
        opcode: &str,
        p: Place,
        value: &[Operand],
        pred: Option<Operand>,
    ) {
        let words = self.packed(elem, value);
        let source = if words.len() == 1 { words[0].to_string() } else { tuple(&words) };
        let bytes = value.len() * elem.size() / words.len();
        let count = vector_suffix(words.len());
        let (ty, address) = (memory_type(elem, value.len(), bytes), address(p));
        self.guarded(pred, format_args!("{opcode}{count}.{ty} {address}, {source}"));
    }

    /// One lane by an instruction of this name, with its space.
    pub fn load_by(&mut self, opcode: &str, elem: ThreadElem, p: Place) -> Operand {
        self.load_piece(elem, opcode, p, &Piece { first: 0, count: 1, pred: None })[0]
    }

    pub fn store_by(&mut self, opcode: &str, elem: ThreadElem, p: Place, value: Operand) {
        self.store_piece(elem, opcode, p, &[value], None);
    }

    /// A lane at each address.
    pub fn gather(&mut self, elem: ThreadElem, at: &[Operand], mask: Option<&[Operand]>) -> Lanes {
        let lane = |(i, &base): (usize, &Operand)| {
            let place = Place { space: Space::Global, base, disp: 0 };
            self.load(elem, 1, place, mask.map(|m| &m[i..=i]), MemHints::default())[0]
        };
        at.iter().enumerate().map(lane).collect()
    }

    pub fn scatter(
        &mut self,
        elem: ThreadElem,
        value: &[Operand],
        at: &[Operand],
        mask: Option<&[Operand]>,
    ) {
        for (i, &base) in at.iter().enumerate() {
            let place = Place { space: Space::Global, base, disp: 0 };
            let mask = mask.map(|m| &m[i..=i]);
            self.store(elem, &value[i..=i], place, mask, MemHints::default());
        }
    }

    /// The place with a register as its base and room for what a whole vector adds to its
    /// displacement, which has 32 bits.
    pub fn reachable(&mut self, place: Place) -> Place {
        let Place { space, base, disp } = place;
        let base = self.reg(base);
        let most = i64::from(i32::MAX) - (MAX_LANES * 8) as i64;
        if space == Space::Shared || (i64::from(i32::MIN)..most).contains(&disp) {
            return Place { base, ..place };
        }
        let offset = Operand::imm(Class::Double, disp);
        Place { base: self.ins("add.s64", Class::Double, [base, offset]), disp: 0, space }
    }

    /// Lanes out of the words in which they lie in memory.
    fn unpack(&mut self, elem: ThreadElem, count: usize, words: &[Operand]) -> Lanes {
        let whole = words.len() == count && !matches!(elem.bits(), 1 | 8);
        if whole {
            return words.into();
        }
        if elem.bits() == 16 {
            return words.iter().flat_map(|&w| self.halves(w)).collect();
        }
        let byte = |e: &mut Emit, i: usize| {
            let word = words[i / 4];
            if elem.bits() == 1 {
                let mask = Operand::word(0xff << (8 * (i % 4)));
                let byte =
                    if count == 1 { word } else { e.ins("and.b32", Class::Word, [word, mask]) };
                return e.setp("setp.ne.u32", byte, Operand::word(0));
            }
            if count == 1 {
                // Extended by the load.
                return word;
            }
            // The byte, and three of 0 or of its sign.
            let (i, signed) = ((i % 4) as i64, elem.scalar().is_some_and(Scalar::is_signed));
            let rest = if signed { 8 + i } else { 4 };
            let selector = Operand::word(rest << 12 | rest << 8 | rest << 4 | i);
            let byte = e.ins("prmt.b32", Class::Word, [word, Operand::word(0), selector]);
            let above = if signed { Byte::Unknown } else { Byte::Zero };
            e.holds(byte, [e.bytes_of(word)[i as usize], above, above, above])
        };
        (0..count).map(|i| byte(self, i)).collect()
    }

    /// Lanes as the words in which they lie in memory.
    fn packed(&mut self, elem: ThreadElem, lanes: &[Operand]) -> Lanes {
        match elem.bits() {
            1 => {
                let byte = |&x: &Operand| self.select(x, Operand::word(1), Operand::word(0));
                let bytes: Lanes = lanes.iter().map(byte).collect();
                self.packed(Scalar::U8.into(), &bytes)
            }
            8 if lanes.len() > 1 => lanes.chunks(4).map(|bytes| self.pack_bytes(bytes)).collect(),
            16 if lanes.len() > 1 => {
                let pair = |pair: &[Operand]| {
                    let pair = [self.reg(pair[0]), self.reg(pair[1])];
                    self.pack_halves(pair)
                };
                lanes.chunks_exact(2).map(pair).collect()
            }
            _ => lanes.into(),
        }
    }
}

/// The lanes in parts that one instruction moves: as many as are under one predicate.
fn pieces(lanes: usize, size: usize, mask: Option<&[Operand]>) -> Vec<Piece> {
    let mut out = Vec::new();
    let most = (MOST_BYTES / size).max(1);
    let mut first = 0;
    while first < lanes {
        let mut count = most.min(lanes - first);
        let pred = mask.map(|m| m[first]);
        while mask.is_some_and(|m| m[first..first + count].iter().any(|&p| Some(p) != pred))
            || !first.is_multiple_of(count)
        {
            count /= 2;
        }
        let pred = pred.filter(|p| p.known() != Some(1));
        out.push(Piece { first, count, pred });
        first += count;
    }
    out
}

/// The registers that a piece is read into.
fn memory_class(elem: ThreadElem, count: usize) -> Class {
    match elem.bits() {
        16 if count == 1 => Class::Half,
        64 => Class::Double,
        _ => Class::Word,
    }
}

/// The type of words of so many bytes. A single byte is extended after its type.
fn memory_type(elem: ThreadElem, count: usize, bytes: usize) -> &'static str {
    match bytes {
        1 if count == 1 && elem.scalar().is_some_and(Scalar::is_signed) => "s8",
        1 => "u8",
        2 if count == 1 => "b16",
        2 => "u16",
        4 => "b32",
        _ => "b64",
    }
}

fn vector_suffix(words: usize) -> &'static str {
    match words {
        1 => "",
        2 => ".v2",
        _ => ".v4",
    }
}

pub fn address(p: Place) -> String {
    match p.disp {
        0 => format!("[{}]", p.base),
        // A plus sign, whatever the number.
        disp => format!("[{}+{disp}]", p.base),
    }
}

/// Cache modifiers that there are for an access. What an access has not is advice for the other kind.
const LOADS: &[CacheModifier] =
    &[CacheModifier::Ca, CacheModifier::Cg, CacheModifier::Cs, CacheModifier::Cv];
const STORES: &[CacheModifier] =
    &[CacheModifier::Wb, CacheModifier::Cg, CacheModifier::Cs, CacheModifier::Wt];

/// An instruction with its space and hints; it takes one of these, the strongest.
fn opcode(name: &str, space: Space, hints: MemHints, known: &[CacheModifier]) -> String {
    let space = space.name();
    if hints.volatile {
        return format!("{name}.volatile.{space}");
    }
    if known.contains(&hints.cache) {
        return format!("{name}.{space}{}", hints.cache.name());
    }
    match hints.evict {
        Eviction::None | Eviction::Normal => format!("{name}.{space}"),
        evict => format!("{name}.{space}.L1::{}", evict.name()),
    }
}

fn hints_version(hints: MemHints) -> u32 {
    if matches!(hints.evict, Eviction::First | Eviction::Last) { 74 } else { 0 }
}
