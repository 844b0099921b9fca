//! The function around the loop: what comes before it, its rounds, and its results.
//!
//! ```text
//!   rdi   the block of memory        rsi   the end of the index      rax   the index
//!   rdx, rcx, r8, r9, then others    where streams are
//! ```
//!
//! The index is that of the induction variable, from 0 on; a stream whose step is a scale of the machine
//! is addressed by it, others move themselves.

use super::{Place, STREAMS, Writer, block};
use crate::wide::code::Code;
use crate::wide::encode::{Jump, RAX, RSI, Rm};
use crate::wide::machine::{Class, Inst, Op, Reg};

/// Of the registers of streams, those from here on belong to the caller.
const SAVED: usize = 6;

/// How many streams start in registers when the loop is called.
pub const PASSED: usize = 4;

/// A loop as a function.
pub struct Written {
    pub bytes: Vec<u8>,
    /// Where in the block the starts of streams are expected that do not come in registers.
    pub starts: Vec<u32>,
    /// Where in the block it is expected how far a stream moves in a round.
    pub moves: Vec<Option<u32>>,
    pub block_bytes: u32,
}

/// Gives registers to everything, and writes it; none if there are more streams than registers.
pub fn write(code: &mut Code) -> Option<Written> {
    if code.streams.len() > STREAMS.len() {
        return None;
    }
    let starts: Vec<u32> = (PASSED..code.streams.len()).map(|_| code.room(8)).collect();
    let mut moves = Vec::new();
    let mut places = Vec::new();
    for i in 0..code.streams.len() {
        let step = code.streams[i].step;
        let round = step.and_then(|s| s.checked_mul(code.step)).map(i32::try_from);
        let (place, at) = match (step, round) {
            (Some(0), _) => (Place::Still, None),
            (Some(step @ (1 | 2 | 4 | 8)), _) => {
                let scale = step.trailing_zeros() as u8;
                (Place::Indexed { scale, step: step as i32 }, None)
            }
            (Some(_), Some(Ok(round))) if round.unsigned_abs() < 1 << 28 => {
                (Place::Moves { round }, None)
            }
            _ => {
                let at = code.room(8);
                (Place::Unknown { at }, Some(at))
            }
        };
        places.push(place);
        moves.push(at);
    }
    let mut w = Writer::new(code, places);
    w.function(&starts);
    let pool = w.code.pool.clone();
    let bytes = w.asm.finish(&pool);
    Some(Written { bytes, starts, moves, block_bytes: code.block_bytes.next_multiple_of(64) })
}

impl Writer<'_> {
    fn function(&mut self, starts: &[u32]) {
        let saved = &STREAMS[SAVED.min(self.places.len())..self.places.len()];
        for &reg in saved {
            self.asm.push(reg);
        }
        for (i, &at) in starts.iter().enumerate() {
            self.asm.load(STREAMS[PASSED + i], block(at));
        }
        self.pin();
        self.before();
        self.asm.clear(RAX);

        let step = self.code.step as i32;
        let unroll = self.unroll();
        let mut done = None;
        if unroll > 1 {
            let more = step * (unroll - 1);
            self.asm.compare_with(RSI, step * unroll);
            let short = self.asm.jump(Jump::Below);
            self.asm.add(RSI, -more);
            self.rounds(unroll);
            self.asm.add(RSI, more);
            self.asm.compare(RAX, RSI);
            done = Some(self.asm.jump(Jump::AboveOrEqual));
            let here = self.asm.here();
            self.asm.land(short, here);
        }
        self.rounds(1);
        if let Some(done) = done {
            let here = self.asm.here();
            self.asm.land(done, here);
        }
        self.results();
        self.asm.clear_upper_halves();
        for &reg in saved.iter().rev() {
            self.asm.pop(reg);
        }
        self.asm.ret();
    }

    /// How many rounds are written one behind the other: as many as make the loop's own instructions
    /// cheap.
    fn unroll(&self) -> i32 {
        if self.places.iter().any(|p| matches!(p, Place::Unknown { .. })) {
            return 1;
        }
        match self.code.body.len() {
            0..=6 => 4,
            7..=16 => 2,
            _ => 1,
        }
    }

    /// A loop over so many rounds at once, entered with at least that many.
    fn rounds(&mut self, count: i32) {
        self.asm.align(32);
        let start = self.asm.here();
        for ahead in 0..count {
            self.ahead = ahead;
            self.round();
        }
        self.ahead = 0;
        for (place, &stream) in self.places.iter().zip(&STREAMS) {
            match *place {
                Place::Still | Place::Indexed { .. } => {}
                Place::Moves { round } => self.asm.add(stream, round * count),
                Place::Unknown { at } => self.asm.add_mem(stream, block(at)),
            }
        }
        self.asm.add(RAX, self.code.step as i32 * count);
        self.asm.compare(RAX, RSI);
        self.asm.jump_back(Jump::Below, start);
    }

    fn round(&mut self) {
        self.begin(false);
        for i in 0..self.code.body.len() {
            let inst = self.code.body[i].clone();
            self.position = i as u32;
            let into = inst.dst.and_then(|d| self.carried_register(d));
            self.inst(&inst, into);
        }
        self.position = self.code.body.len() as u32;
        self.pass_on();
    }

    /// The pinned register that a value of the next round may be made in at once.
    fn carried_register(&self, made: Reg) -> Option<u8> {
        let carried = self.code.carried.iter().find(|c| c.next == made)?;
        let free = self.next_use(carried.param, self.position + 1).is_none();
        if free { self.home[carried.param.0 as usize] } else { None }
    }

    /// Moves what the next round takes to where it is expected.
    fn pass_on(&mut self) {
        let carried = self.code.carried.clone();
        let is_param = |r: Reg| carried.iter().any(|c| c.param == r);
        // What another one takes would be overwritten.
        let mut copies = Vec::new();
        for c in carried.iter().filter(|c| c.next != c.param) {
            if is_param(c.next) && !copies.iter().any(|(r, _)| *r == c.next) {
                let from = self.in_register(c.next, &[]);
                let width = self.code.info(c.next).width;
                let at = self.code.room(width.bytes());
                self.store(from, width, at);
                copies.push((c.next, at));
            }
        }
        for c in carried.iter().filter(|c| c.next != c.param) {
            let home = self.home[c.param.0 as usize];
            let width = self.code.info(c.param).width;
            let copy = copies.iter().find(|(r, _)| *r == c.next).map(|(_, at)| *at);
            if let Some(at) = copy {
                let through = home.unwrap_or_else(|| self.take(Class::Vector, &[]));
                self.plain(Op::Load, width, through, Rm::Mem(block(at)));
                if home.is_none() {
                    let to = self.slot_of(c.param);
                    self.store(through, width, to);
                }
                continue;
            }
            let now = self.at[c.next.0 as usize];
            match home {
                Some(home) if now == Some(home) => {}
                Some(home) => match now {
                    Some(from) => self.move_vector(home, from, width),
                    None => self.load_into(home, c.next),
                },
                None => {
                    let from = self.in_register(c.next, &[]);
                    let at = self.slot_of(c.param);
                    self.store(from, width, at);
                }
            }
        }
    }

    /// Puts the last values where the code around the loop looks for them.
    fn results(&mut self) {
        self.begin(false);
        for c in self.code.carried.clone() {
            let Some(out) = c.out else { continue };
            let from = self.in_register(c.param, &[]);
            self.store(from, self.code.info(c.param).width, out);
        }
    }

    fn before(&mut self) {
        self.begin(true);
        // What memory holds and a register waits for.
        for i in 0..self.code.regs.len() {
            let reg = Reg(i as u32);
            if let (Some(r), Some(_)) = (self.home[i], self.code.regs[i].home) {
                self.load_into(r, reg);
                self.at[i] = Some(r);
                self.holds[0][usize::from(r)] = Some(reg);
            }
        }
        for i in 0..self.code.before.len() {
            let inst = self.code.before[i].clone();
            self.position = i as u32;
            let Some(dst) = inst.dst else { continue };
            self.inst(&inst, self.home[dst.0 as usize]);
            if self.home[dst.0 as usize].is_none() && self.is_wanted_later(dst) {
                let from = self.in_register(dst, &[]);
                self.spill(dst, from);
            }
        }
        self.position = self.code.before.len() as u32;
        for c in self.code.carried.clone() {
            match self.home[c.param.0 as usize] {
                Some(home) => match self.at[c.init.0 as usize] {
                    Some(from) => self.move_vector(home, from, self.code.info(c.init).width),
                    None => self.load_into(home, c.init),
                },
                None => {
                    let from = self.in_register(c.init, &[]);
                    let at = self.slot_of(c.param);
                    self.store(from, self.code.info(c.param).width, at);
                    self.stored[c.param.0 as usize] = true;
                }
            }
        }
    }

    fn is_wanted_later(&self, reg: Reg) -> bool {
        let used = |i: &Inst| i.src.contains(&reg) || i.mask == Some(reg);
        self.code.body.iter().any(used)
            || self.code.carried.iter().any(|c| c.init == reg || c.next == reg)
    }
}
