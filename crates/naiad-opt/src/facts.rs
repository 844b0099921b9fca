//! What is known of a launch's arguments, and what of it was asked.
//!
//! ```text
//!   arguments ──> Facts ──> Asked ──> passes, writers of code
//!                             └─────> Key: the questions, with their answers
//! ```
//!
//! Code that was compiled for one launch serves every launch that gives the same answers to the
//! questions that were asked. A fact that nobody asked for is no reason to compile again, so nothing
//! looks at [`Facts`] but through [`Asked`]. To hold a key against a launch costs a few comparisons for
//! each question.
//!
//! | question | answers | what it is good for |
//! |---|---|---|
//! | do two arguments share memory? | disjoint, identical, may overlap | reads and writes may change places |
//! | by what is an argument divisible? | 1, 2, 4, 8, 16 | aligned vectors, masks without tails |
//! | is an integer 1? | yes, no | a stride of 1 makes neighbours of lanes |

use crate::interval::Interval;
use crate::ranges::{Inputs, Param};
use naiad_ir::scalar::BinaryFn;
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Elem, Function, Value};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::ops::Range;

/// An argument, as far as facts are made of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// The bits of a number, zero-extended; or an address of which no more is known.
    Bits(u64),
    /// The address of the first element, and those of the allocation that it is part of: nothing else
    /// is reached through the argument.
    Memory { address: usize, storage: Range<usize> },
}

/// How two arguments' memory lies.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Overlap {
    /// No byte is reached through both.
    Disjoint,
    /// They are one pointer: equal offsets reach equal addresses.
    Identical,
    /// A byte may be reached through both.
    May,
}

/// The arguments of a launch.
#[derive(Clone, Debug)]
pub struct Facts {
    arguments: Vec<Argument>,
}

impl Facts {
    pub fn new(arguments: Vec<Argument>) -> Facts {
        Facts { arguments }
    }

    fn answer(&self, question: Question) -> Answer {
        match question {
            Question::Overlap(a, b) => Answer::Overlap(self.overlap(a, b)),
            Question::Divisible(i) => Answer::Divisible(self.divisible(i)),
            Question::IsOne(i) => Answer::IsOne(self.argument(i) == Some(&Argument::Bits(1))),
        }
    }

    fn argument(&self, i: u32) -> Option<&Argument> {
        self.arguments.get(i as usize)
    }

    fn overlap(&self, a: u32, b: u32) -> Overlap {
        let (
            Some(Argument::Memory { address: x, storage: s }),
            Some(Argument::Memory { address: y, storage: t }),
        ) = (self.argument(a), self.argument(b))
        else {
            return Overlap::May;
        };
        if x == y && s == t {
            Overlap::Identical
        } else if s.start >= t.end || t.start >= s.end || s.is_empty() || t.is_empty() {
            Overlap::Disjoint
        } else {
            Overlap::May
        }
    }

    fn divisible(&self, i: u32) -> u8 {
        let number = match self.argument(i) {
            Some(Argument::Bits(bits)) => *bits,
            Some(Argument::Memory { address, .. }) => *address as u64,
            None => 1,
        };
        1 << number.trailing_zeros().min(4)
    }
}

/// Something that code may be built on. Arguments are known by their positions.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
enum Question {
    /// Of two arguments, the first before the second.
    Overlap(u32, u32),
    Divisible(u32),
    IsOne(u32),
}

#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
enum Answer {
    Overlap(Overlap),
    Divisible(u8),
    IsOne(bool),
}

/// Facts that are told to whoever asks, and note what was asked.
#[derive(Debug)]
pub struct Asked<'f> {
    facts: &'f Facts,
    answers: RefCell<FxHashMap<Question, Answer>>,
    order: RefCell<Vec<Question>>,
}

impl<'f> Asked<'f> {
    pub fn new(facts: &'f Facts) -> Asked<'f> {
        Asked { facts, answers: RefCell::default(), order: RefCell::default() }
    }

    /// How the memory of two arguments lies.
    pub fn overlap(&self, a: usize, b: usize) -> Overlap {
        if a == b {
            return Overlap::Identical;
        }
        match self.ask(Question::Overlap(a.min(b) as u32, a.max(b) as u32)) {
            Answer::Overlap(overlap) => overlap,
            Answer::Divisible(_) | Answer::IsOne(_) => Overlap::May,
        }
    }

    /// The greatest power of two, 16 at most, by which an integer or an address is divisible.
    pub fn divisible(&self, argument: usize) -> u64 {
        match self.ask(Question::Divisible(argument as u32)) {
            Answer::Divisible(by) => u64::from(by),
            Answer::Overlap(_) | Answer::IsOne(_) => 1,
        }
    }

    /// Whether an integer is 1.
    pub fn is_one(&self, argument: usize) -> bool {
        self.ask(Question::IsOne(argument as u32)) == Answer::IsOne(true)
    }

    fn ask(&self, question: Question) -> Answer {
        *self.answers.borrow_mut().entry(question).or_insert_with(|| {
            self.order.borrow_mut().push(question);
            self.facts.answer(question)
        })
    }

    /// What the code that was built holds for.
    pub fn into_key(self) -> Key {
        let answers = self.answers.into_inner();
        Key(self.order.into_inner().into_iter().map(|q| (q, answers[&q])).collect())
    }
}

/// The questions that were asked for a piece of code, with their answers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Key(Vec<(Question, Answer)>);

impl Key {
    /// Whether the code serves a launch.
    pub fn serves(&self, facts: &Facts) -> bool {
        self.0.iter().all(|&(question, answer)| facts.answer(question) == answer)
    }
}

/// What passes make use of: whether an integer that multiplies something is 1. Such are the strides of
/// tensors.
pub fn ask_ones(func: &Function<Tile>, asked: &Asked<'_>) -> Inputs {
    let mut inputs = Inputs::default();
    inputs.params.resize(func.params().len(), Param::default());
    let position: FxHashMap<Value, usize> =
        func.params().iter().enumerate().map(|(i, &p)| (p, i)).collect();
    func.walk(&mut |inst| {
        let &TileOp::Binary { f: BinaryFn::Mul, a, b } = func.op(inst) else { return };
        for factor in [a, b] {
            if let Some(&i) = position.get(&unwrapped(func, factor))
                && matches!(func.ty(func.params()[i]).elem, Elem::Scalar(s) if s.is_int())
                && asked.is_one(i)
            {
                inputs.params[i].range = Some(Interval::point(1));
            }
        }
    });
    inputs
}

/// And by what integers and addresses are divisible.
pub fn ask_divisors(func: &Function<Tile>, asked: &Asked<'_>, inputs: &mut Inputs) {
    inputs.params.resize(func.params().len(), Param::default());
    for (i, &param) in func.params().iter().enumerate() {
        let is_number = matches!(func.ty(param).elem, Elem::Scalar(s) if s.is_int());
        if is_number || func.ty(param).is_pointer() {
            inputs.params[i].divisible = Some(asked.divisible(i));
        }
    }
}

/// The scalar that a value is, in another type or in every lane.
fn unwrapped(func: &Function<Tile>, mut value: Value) -> Value {
    while let Some(
        &(TileOp::Cast { src, .. } | TileOp::Splat { src, .. } | TileOp::Broadcast { src, .. }),
    ) = func.defining_op(value)
    {
        value = src;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use naiad_diag::Source;

    fn memory(address: usize, storage: Range<usize>) -> Argument {
        Argument::Memory { address, storage }
    }

    #[test]
    fn memory_lies_apart_together_or_across() {
        let facts = Facts::new(vec![
            memory(0x1000, 0x1000..0x2000),
            memory(0x2000, 0x2000..0x3000),
            memory(0x1000, 0x1000..0x2000),
            memory(0x1800, 0x1000..0x2000),
            memory(0x1fff, 0x1fff..0x2001),
            memory(0x1800, 0x1800..0x1800),
            Argument::Bits(0x1000),
        ]);
        let asked = Asked::new(&facts);
        for (a, b, want) in [
            (0, 1, Overlap::Disjoint),
            (0, 2, Overlap::Identical),
            (0, 3, Overlap::May),
            (0, 4, Overlap::May),
            (1, 4, Overlap::May),
            (0, 5, Overlap::Disjoint),
            (0, 6, Overlap::May),
            (3, 3, Overlap::Identical),
        ] {
            assert_eq!(asked.overlap(a, b), want, "{a}, {b}");
            assert_eq!(asked.overlap(b, a), want, "{b}, {a}");
        }
    }

    #[test]
    fn a_key_holds_what_was_asked_and_no_more() {
        let launch = |n: u64, stride: u64, address: usize| {
            let storage = 0x1000..0x2000;
            Facts::new(vec![Argument::Bits(n), Argument::Bits(stride), memory(address, storage)])
        };
        let first = launch(48, 1, 0x1010);
        let asked = Asked::new(&first);
        assert!(asked.is_one(1) && asked.is_one(1));
        assert_eq!(asked.divisible(2), 16);
        let key = asked.into_key();
        assert!(key.serves(&launch(7, 1, 0x1020)), "nobody asked of the first");
        assert!(!key.serves(&launch(48, 2, 0x1010)));
        assert!(!key.serves(&launch(48, 1, 0x1018)));
        assert!(Asked::new(&first).into_key().serves(&launch(0, 0, 0x1001)));
        assert_eq!(Asked::new(&first).divisible(0), 16);
        assert_eq!(Asked::new(&launch(0, 0, 0)).divisible(0), 16);
        assert_eq!(Asked::new(&launch(6, 0, 0)).divisible(0), 2);
    }

    #[test]
    fn strides_are_asked_and_become_constants() {
        let text = "tile @k(%x x: *fp32, %n n: i32, %s s: i32, %t t: i32) {
  %r = arange start=0 end=16 : <16xi32>
  %ss = splat %s shape=(16,) : <16xi32>
  %o = binary.mul %r, %ss : <16xi32>
  %wide = cast %t to=i64 : i64
  %pid = program_id axis=0 : i32
  %row = cast %pid to=i64 : i64
  %start = binary.mul %wide, %row : i64
  %base = ptr_add %x, %start : *fp32
  %bs = splat %base shape=(16,) : <16x*fp32>
  %p = ptr_add %bs, %o : <16x*fp32>
  %ns = splat %n shape=(16,) : <16xi32>
  %m = compare.lt %r, %ns : <16xi1>
  %v = load %p mask=%m : <16xfp32>
  store %p, %v mask=%m
  return
}";
        let parsed = naiad_ir::text::parse::<Tile>(&Source::new("test", text));
        let mut func = parsed.unwrap_or_else(|d| panic!("{}", d.message));
        let args = |s, t| {
            let numbers = [16, s, t].map(Argument::Bits);
            Facts::new([memory(64, 64..640)].into_iter().chain(numbers).collect())
        };
        let facts = args(1, 33);
        let asked = Asked::new(&facts);
        let mut inputs = ask_ones(&func, &asked);
        crate::optimize_for(&mut func, &inputs);
        let ir = func.to_string();
        assert_eq!(ir.matches("binary.mul").count(), 1, "{ir}");
        let key = asked.into_key();
        assert!(key.serves(&args(1, 5)) && !key.serves(&args(2, 33)) && !key.serves(&args(1, 1)));

        let asked = Asked::new(&facts);
        ask_divisors(&func, &asked, &mut inputs);
        assert_eq!(
            inputs.params.iter().map(|p| p.divisible).collect::<Vec<_>>(),
            [64, 16, 1, 1].map(|d: u64| Some(d.min(16)))
        );
    }
}
