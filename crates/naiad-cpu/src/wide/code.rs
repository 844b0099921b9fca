//! A loop as machine instructions on registers without number.
//!
//! ```text
//!   before     what is the same in every round, once
//!   carried    registers that a round passes on to the next, and how they start
//!   body       one round
//! ```
//!
//! Values that only memory holds have a *home*: constants, and what the code around the loop puts into
//! the loop's block. They are loaded once, before the loop, if a register is left for them, and else
//! are operands in memory.

use super::machine::{Addr, Class, Inst, Level, Op, Reg, Width};
use naiad_ir::Value;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What is known of a register.
#[derive(Copy, Clone, Debug)]
pub struct Info {
    pub class: Class,
    pub width: Width,
    /// Whether it is the same in every round.
    pub invariant: bool,
    pub home: Option<Home>,
}

/// Where a value is in memory.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Home {
    pub addr: Addr,
    /// Bytes of the one element that stands for all lanes.
    pub repeat: Option<u8>,
}

/// A register that a round passes on.
#[derive(Copy, Clone, Debug)]
pub struct Carried {
    pub param: Reg,
    pub init: Reg,
    pub next: Reg,
    /// Where in the block its last value is wanted.
    pub out: Option<u32>,
}

/// An address that moves on in every round.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The scalar that is its start when the induction variable has its first value.
    pub start: Value,
    /// Bytes that it moves when the induction variable grows by 1; else the code around the loop says
    /// how far it moves in a round.
    pub step: Option<i64>,
}

/// What the code around the loop puts into the block before the call.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Input {
    /// The scalar, with the induction variable at its first value.
    Scalar(Value),
    /// Lanes as they are in memory.
    Vector(Value),
}

#[derive(Clone)]
pub struct Code {
    pub level: Level,
    pub regs: Vec<Info>,
    pub before: Vec<Inst>,
    pub body: Vec<Inst>,
    pub carried: Vec<Carried>,
    pub streams: Vec<Stream>,
    /// What the induction variable grows by in a round.
    pub step: i64,
    pub inputs: Vec<(Input, u32)>,
    /// Where in the block the loop's results are.
    pub results: Vec<u32>,
    pub block_bytes: u32,
    pub pool: Vec<u8>,
    constants: FxHashMap<Vec<u8>, Reg>,
    same: FxHashMap<Key, Reg>,
}

/// Instructions with equal keys compute the same.
type Key = (Op, Width, SmallVec<[Reg; 4]>, Option<Reg>, Option<u8>);

impl Code {
    pub fn new(level: Level, step: i64) -> Code {
        Code {
            level,
            regs: Vec::new(),
            before: Vec::new(),
            body: Vec::new(),
            carried: Vec::new(),
            streams: Vec::new(),
            step,
            inputs: Vec::new(),
            results: Vec::new(),
            block_bytes: 0,
            pool: Vec::new(),
            constants: FxHashMap::default(),
            same: FxHashMap::default(),
        }
    }

    pub fn info(&self, r: Reg) -> &Info {
        &self.regs[r.0 as usize]
    }

    pub fn reg(&mut self, class: Class, width: Width, invariant: bool) -> Reg {
        self.regs.push(Info { class, width, invariant, home: None });
        Reg(self.regs.len() as u32 - 1)
    }

    fn at_home(&mut self, width: Width, home: Home) -> Reg {
        self.regs.push(Info { class: Class::Vector, width, invariant: true, home: Some(home) });
        Reg(self.regs.len() as u32 - 1)
    }

    /// Room in the block, aligned for any vector if it is for one.
    pub fn room(&mut self, bytes: u32) -> u32 {
        let align = if bytes > 8 { 64 } else { 8 };
        let at = self.block_bytes.next_multiple_of(align);
        self.block_bytes = at + bytes.next_multiple_of(8);
        at
    }

    /// An instruction that computes; equal ones are made once.
    pub fn op(&mut self, op: Op, width: Width, src: &[Reg]) -> Reg {
        self.full(op, width, width, src, None, None)
    }

    pub fn op_imm(&mut self, op: Op, width: Width, src: &[Reg], imm: u8) -> Reg {
        self.full(op, width, width, src, None, Some(imm))
    }

    /// The general form: `out` is the width of the result.
    pub fn full(
        &mut self,
        op: Op,
        width: Width,
        out: Width,
        src: &[Reg],
        mask: Option<Reg>,
        imm: Option<u8>,
    ) -> Reg {
        let key: Key = (op, width, src.into(), mask, imm);
        if let Some(&have) = self.same.get(&key) {
            return have;
        }
        let invariant = src.iter().chain(&mask).all(|&r| self.info(r).invariant);
        let dst = self.reg(op.class(), out, invariant);
        let inst = Inst { op, width, dst: Some(dst), src: src.into(), mem: None, mask, imm };
        if invariant {
            self.before.push(inst)
        } else {
            self.body.push(inst)
        }
        self.same.insert(key, dst);
        dst
    }

    /// An instruction that reads memory. What it reads of the loop's block never changes.
    pub fn load(
        &mut self,
        op: Op,
        width: Width,
        src: &[Reg],
        addr: Addr,
        mask: Option<Reg>,
    ) -> Reg {
        let invariant = matches!(addr, Addr::Block(_) | Addr::Pool(_))
            && src.iter().chain(&mask).all(|&r| self.info(r).invariant);
        let dst = self.reg(op.class(), width, invariant);
        let inst =
            Inst { op, width, dst: Some(dst), src: src.into(), mem: Some(addr), mask, imm: None };
        if invariant {
            self.before.push(inst)
        } else {
            self.body.push(inst)
        }
        dst
    }

    /// An instruction that writes memory.
    pub fn store(
        &mut self,
        op: Op,
        width: Width,
        src: &[Reg],
        addr: Addr,
        mask: Option<Reg>,
        imm: Option<u8>,
    ) {
        let inst = Inst { op, width, dst: None, src: src.into(), mem: Some(addr), mask, imm };
        self.body.push(inst);
    }

    /// Whether an instruction is in the loop.
    pub fn has(&self, op: Op) -> bool {
        self.body.iter().any(|inst| inst.op == op)
    }

    /// The same loop, which asks for nothing ahead.
    pub fn without_ahead(&self) -> Code {
        let mut code = self.clone();
        code.body.retain(|inst| inst.op != Op::Ahead);
        code
    }

    /// The streams of stores past the cache.
    pub fn past_streams(&self) -> Vec<usize> {
        let mut all: Vec<usize> = Vec::new();
        for inst in &self.body {
            if let (Op::StorePast, Some(Addr::Stream { stream, .. })) = (inst.op, inst.mem) {
                all.push(stream as usize);
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The same loop, all of whose stores go to the cache.
    pub fn to_cache(&self) -> Code {
        let mut code = self.clone();
        for inst in &mut code.body {
            if inst.op == Op::StorePast {
                inst.op = Op::Store;
            }
        }
        code
    }

    /// A constant with this image in all lanes.
    pub fn splat(&mut self, width: Width, bits: u32, image: u64) -> Reg {
        let word = (0..64 / bits).fold(0u64, |w, i| w | image << (i * bits));
        self.pattern(width, word)
    }

    /// A constant of the same 64 bits all over.
    fn pattern(&mut self, width: Width, word: u64) -> Reg {
        let bytes = word.to_le_bytes();
        match self.level {
            Level::Avx512 => {
                let repeat = Some(if word as u32 == (word >> 32) as u32 { 4 } else { 8 });
                self.constant(width, &bytes, repeat)
            }
            Level::Avx2 => self.constant(width, &bytes.repeat(4), None),
        }
    }

    /// A constant of these bytes.
    pub fn constant(&mut self, width: Width, bytes: &[u8], repeat: Option<u8>) -> Reg {
        let mut key = bytes.to_vec();
        key.push(width as u8);
        if let Some(&have) = self.constants.get(&key) {
            return have;
        }
        self.pool.resize(self.pool.len().next_multiple_of(bytes.len()), 0);
        let addr = Addr::Pool(self.pool.len() as u32);
        self.pool.extend(bytes);
        let reg = self.at_home(width, Home { addr, repeat });
        self.constants.insert(key, reg);
        reg
    }

    /// A scalar from outside in all lanes.
    pub fn scalar(&mut self, width: Width, bits: u32, value: Value) -> Reg {
        let at = self.input(Input::Scalar(value), 8);
        let repeat = match bits {
            32 => Some(4),
            64 => Some(8),
            _ => None,
        };
        if self.level == Level::Avx512 && repeat.is_some() {
            let home = Home { addr: Addr::Block(at), repeat };
            let found = self.regs.iter().position(|i| i.home == Some(home) && i.width == width);
            return match found {
                Some(found) => Reg(found as u32),
                None => self.at_home(width, home),
            };
        }
        let op = match bits {
            8 => Op::BroadcastB,
            16 => Op::BroadcastW,
            32 => Op::BroadcastD,
            _ => Op::BroadcastQ,
        };
        self.load(op, width, &[], Addr::Block(at), None)
    }

    /// A vector from outside; its parts lie one behind the other.
    pub fn vector(&mut self, value: Value, bytes: u32, width: Width) -> SmallVec<[Reg; 4]> {
        let at = self.input(Input::Vector(value), bytes.max(16));
        (0..bytes.div_ceil(width.bytes()))
            .map(|part| {
                let addr = Addr::Block(at + part * width.bytes());
                self.at_home(width, Home { addr, repeat: None })
            })
            .collect()
    }

    /// Where in the block the input is.
    pub fn input(&mut self, input: Input, bytes: u32) -> u32 {
        if let Some((_, at)) = self.inputs.iter().find(|(have, _)| *have == input) {
            return *at;
        }
        let at = self.room(bytes);
        self.inputs.push((input, at));
        at
    }

    /// Drops what nobody wants.
    pub fn sweep(&mut self) {
        let mut wanted = vec![false; self.regs.len()];
        for c in &self.carried {
            wanted[c.next.0 as usize] = true;
            wanted[c.init.0 as usize] = true;
        }
        for list in [&mut self.body, &mut self.before] {
            let mut kept = Vec::with_capacity(list.len());
            for inst in list.drain(..).rev() {
                if inst.dst.is_some_and(|d| !wanted[d.0 as usize]) {
                    continue;
                }
                inst.src.iter().chain(&inst.mask).for_each(|r| wanted[r.0 as usize] = true);
                kept.push(inst);
            }
            kept.reverse();
            *list = kept;
        }
    }
}
