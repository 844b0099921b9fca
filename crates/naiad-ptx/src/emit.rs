//! Registers and lines of text.

use crate::Target;
use crate::bytes::{Byte, Bytes};
use naiad_ir::Scalar;
use naiad_ir::thread::ThreadElem;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::fmt::{self, Display, Write};
use std::rc::Rc;

/// Kinds of registers. They have widths and no types: instructions say what they read bits as.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    Pred,
    Half,
    Word,
    Double,
}

impl Class {
    const ALL: [Class; 4] = [Class::Pred, Class::Half, Class::Word, Class::Double];

    /// The class that holds a lane. Eight bits are held in 32: integers extended after their type,
    /// other images by zeros.
    pub const fn of(elem: ThreadElem) -> Class {
        match elem.bits() {
            1 => Class::Pred,
            16 => Class::Half,
            64 => Class::Double,
            _ => Class::Word,
        }
    }

    /// Names of registers start with this. They are not what people call theirs in inline assembly.
    const fn prefix(self) -> &'static str {
        match self {
            Class::Pred => "%pr",
            Class::Half => "%hw",
            Class::Word => "%w",
            Class::Double => "%dw",
        }
    }

    /// The type as which a register is declared and moved.
    pub const fn ty(self) -> &'static str {
        match self {
            Class::Pred => "pred",
            Class::Half => "b16",
            Class::Word => "b32",
            Class::Double => "b64",
        }
    }

    pub const fn bits(self) -> u32 {
        match self {
            Class::Pred => 1,
            Class::Half => 16,
            Class::Word => 32,
            Class::Double => 64,
        }
    }
}

/// What an instruction reads: one lane of a value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    Reg(Class, u32),
    /// Bits, zero-extended from the class's width.
    Imm(Class, u64),
}

/// A value: an operand for each lane. Equal lanes may have equal operands.
pub type Lanes = SmallVec<[Operand; 4]>;

impl Operand {
    pub fn class(self) -> Class {
        match self {
            Operand::Reg(class, _) | Operand::Imm(class, _) => class,
        }
    }

    /// A constant that is kept in `class`, by its low bits.
    pub fn imm(class: Class, value: i64) -> Operand {
        Operand::Imm(class, value as u64 & u64::MAX >> (64 - class.bits()))
    }

    pub fn word(value: i64) -> Operand {
        Operand::imm(Class::Word, value)
    }

    /// The constant's bits.
    pub fn known(self) -> Option<u64> {
        match self {
            Operand::Imm(_, bits) => Some(bits),
            Operand::Reg(..) => None,
        }
    }

    /// The constant as a signed number.
    pub fn known_int(self) -> Option<i64> {
        let unused = 64 - self.class().bits();
        self.known().map(|bits| (bits << unused) as i64 >> unused)
    }

    /// As an operand of an instruction with this opcode, whose last type is that of its operands.
    fn show(self, opcode: &str) -> impl Display {
        let float = opcode.ends_with(".f32") || opcode.ends_with(".f64");
        fmt::from_fn(move |f| match self {
            Operand::Reg(class, n) => write!(f, "{}{n}", class.prefix()),
            Operand::Imm(Class::Word, bits) if float => write!(f, "0f{bits:08X}"),
            Operand::Imm(Class::Double, bits) if float => write!(f, "0d{bits:016X}"),
            Operand::Imm(Class::Pred | Class::Half, bits) => write!(f, "{bits}"),
            Operand::Imm(..) => match self.known_int() {
                Some(i64::MIN) | None => write!(f, "0x8000000000000000"),
                Some(value) => write!(f, "{value}"),
            },
        })
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show("").fmt(f)
    }
}

/// Operands in braces.
pub fn tuple(operands: &[Operand]) -> String {
    let names: Vec<String> = operands.iter().map(Operand::to_string).collect();
    format!("{{{}}}", names.join(", "))
}

/// A line of the kernel's, both from 1; files are counted from 1 too.
#[derive(PartialEq, Eq, Debug)]
pub struct Line {
    pub at: [u32; 3],
    /// The label of the helper that it is in, and the line where that is called.
    pub called_from: Option<(String, Rc<Line>)>,
}

/// The body of a kernel under construction.
pub struct Emit {
    pub target: Target,
    pub body: String,
    /// The line that the next instruction is of, and the one that the text stands at.
    pub line_of: Option<Rc<Line>>,
    shown: Option<Rc<Line>>,
    /// Registers made of each class.
    counts: [u32; 4],
    labels: u32,
    /// The version of PTX that is needed, times 10.
    pub version: u32,
    /// What registers hold bytes of other ones: see `bytes.rs`.
    pub bytes: FxHashMap<Operand, Bytes>,
    /// The words that doublewords were extended from, and whether with their sign. As of bytes, a word may
    /// be written again where nothing asks any more.
    pub widened: FxHashMap<Operand, (Operand, bool)>,
}

#[derive(Copy, Clone)]
pub struct Label(&'static str, u32);

impl Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}{}", self.0, self.1)
    }
}

// Writing to a String cannot fail, so the results of `write!` are dropped.
impl Emit {
    pub fn new(target: Target) -> Emit {
        let version = target.least_version();
        let bytes = FxHashMap::default();
        Emit {
            target,
            body: String::new(),
            line_of: None,
            shown: None,
            counts: [0; 4],
            labels: 0,
            version,
            bytes,
            widened: FxHashMap::default(),
        }
    }

    /// Says that what is written needs this version of PTX, times 10.
    pub fn needs(&mut self, version: u32) {
        self.version = self.version.max(version);
    }

    pub fn fresh(&mut self, class: Class) -> Operand {
        let count = &mut self.counts[class as usize];
        *count += 1;
        Operand::Reg(class, *count)
    }

    /// Declarations of all registers.
    pub fn declarations(&self) -> String {
        let mut out = String::new();
        for class in Class::ALL {
            let count = self.counts[class as usize];
            if count > 0 {
                let (ty, prefix) = (class.ty(), class.prefix());
                let _ = writeln!(out, "\t.reg .{ty} {prefix}<{}>;", count + 1);
            }
        }
        out
    }

    /// Says which line the instruction that follows is of, if that is another than before.
    fn show_line(&mut self) {
        let Some(line) = self.line_of.clone().filter(|line| Some(line) != self.shown.as_ref())
        else {
            return;
        };
        self.loc(&line);
        self.shown = Some(line);
    }

    /// A helper's line refers to the line of its call, which has to stand before, and means the latest
    /// that did: all of the chain is written but where the line before has the same callers.
    fn loc(&mut self, line: &Line) {
        let [file, number, column] = line.at;
        let Some((function, caller)) = &line.called_from else {
            let _ = writeln!(self.body, "\t.loc {file} {number} {column}");
            return;
        };
        let stands = self.shown.as_ref().is_some_and(|shown| {
            let same = shown.called_from.as_ref().is_some_and(|(_, before)| before == caller);
            // A function that calls itself may have hidden it.
            same && shown.at != caller.at
        });
        if !stands {
            self.loc(caller);
        }
        let [of, at, from] = caller.at;
        let _ = writeln!(
            self.body,
            "\t.loc {file} {number} {column}, function_name {function}, inlined_at {of} {at} {from}"
        );
        self.needs(72);
    }

    /// A whole instruction but for its semicolon.
    pub fn line(&mut self, text: fmt::Arguments<'_>) {
        self.show_line();
        let _ = writeln!(self.body, "\t{text};");
    }

    /// The same under a predicate, if there is one.
    pub fn guarded(&mut self, pred: Option<Operand>, text: fmt::Arguments<'_>) {
        match pred {
            None => self.line(text),
            Some(pred) => self.line(format_args!("@{pred} {text}")),
        }
    }

    /// An instruction whose result goes into a register that exists.
    pub fn put(&mut self, opcode: &str, dst: Operand, sources: &[Operand]) {
        self.show_line();
        let _ = write!(self.body, "\t{opcode} {dst}");
        for s in sources {
            let _ = write!(self.body, ", {}", s.show(opcode));
        }
        self.body.push_str(";\n");
    }

    /// An instruction with a result in a new register.
    pub fn ins<const N: usize>(
        &mut self,
        opcode: &str,
        class: Class,
        sources: [Operand; N],
    ) -> Operand {
        let dst = self.fresh(class);
        self.put(opcode, dst, &sources);
        dst
    }

    /// A comparison: `setp.lt.s32`.
    pub fn setp(&mut self, opcode: &str, x: Operand, y: Operand) -> Operand {
        self.ins(opcode, Class::Pred, [x, y])
    }

    pub fn mov(&mut self, dst: Operand, src: Operand) {
        self.put(&format!("mov.{}", dst.class().ty()), dst, &[src]);
    }

    /// The operand in a register, for instructions that take no constants.
    pub fn reg(&mut self, x: Operand) -> Operand {
        if matches!(x, Operand::Reg(..)) {
            return x;
        }
        let dst = self.fresh(x.class());
        self.mov(dst, x);
        dst
    }

    /// The operand in a register that nothing else reads or writes.
    pub fn copy(&mut self, x: Operand) -> Operand {
        let dst = self.fresh(x.class());
        self.mov(dst, x);
        dst
    }

    /// Moves as if all happened at once: a target may be the source of another move.
    pub fn moves(&mut self, targets: &[Operand], sources: &[Operand]) {
        let pairs = targets.iter().copied().zip(sources.iter().copied());
        let mut left: Vec<(Operand, Operand)> = pairs.filter(|(t, s)| t != s).collect();
        while !left.is_empty() {
            let free = left.iter().position(|&(t, _)| left.iter().all(|&(_, s)| s != t));
            match free {
                Some(i) => {
                    let (target, source) = left.swap_remove(i);
                    self.mov(target, source);
                }
                // Only circles are left. What one of the targets holds is saved for its reader.
                None => {
                    let (target, _) = left[0];
                    let saved = self.copy(target);
                    for (_, source) in &mut left {
                        if *source == target {
                            *source = saved;
                        }
                    }
                }
            }
        }
    }

    pub fn new_label(&mut self, name: &'static str) -> Label {
        self.labels += 1;
        Label(name, self.labels)
    }

    pub fn place(&mut self, label: Label) {
        let _ = writeln!(self.body, "{label}:");
    }

    pub fn jump(&mut self, label: Label) {
        self.line(format_args!("bra.uni {label}"));
    }

    /// Jumps where the predicate is `when`.
    pub fn branch(&mut self, pred: Operand, when: bool, label: Label) {
        let pred = self.reg(pred);
        let not = if when { "" } else { "!" };
        self.line(format_args!("@{not}{pred} bra {label}"));
    }

    /// Brings a word whose low 8 bits count to the form in which 8-bit values are held.
    pub fn extend_byte(&mut self, of: ThreadElem, x: Operand) -> Operand {
        let signed = of.scalar().is_some_and(Scalar::is_signed);
        if let Some(bits) = x.known() {
            return Operand::word(if signed { bits as i8 as i64 } else { bits as u8 as i64 });
        }
        let low = self.bytes_of(x)[0];
        if signed {
            // The last byte's sign in the others.
            let selector = Operand::word(0x8880);
            let extended = self.ins("prmt.b32", Class::Word, [x, Operand::word(0), selector]);
            return self.holds(extended, [low, Byte::Unknown, Byte::Unknown, Byte::Unknown]);
        }
        let extended = self.ins("and.b32", Class::Word, [x, Operand::word(0xff)]);
        self.holds(extended, [low, Byte::Zero, Byte::Zero, Byte::Zero])
    }
}
