//! Registers for values.
//!
//! A round is straight-line code, and nothing but what is carried lives from one to the next. So
//! registers are given out in one walk over it: a value gets a register where it is made; where none is
//! left, the one goes whose value is wanted latest (Belady). Beside those, registers are *pinned* for
//! the whole loop: for what is carried, and, as far as they go, for what is the same in every round.

mod function;

pub use function::{PASSED, write};

use super::code::{Code, Home};
use super::encode::{Asm, Gpr, Mem, Operands, RAX, RDI, Rm};
use super::machine::{Addr, Class, Form, Inst, Level, Op, Prefix, Reach, Reg, Width};
use smallvec::SmallVec;

/// Registers of streams.
const STREAMS: [Gpr; 12] = [2, 1, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15];

/// Vector registers that are left for a round at least.
const LEAST: usize = 6;

/// How a stream is addressed.
#[derive(Copy, Clone)]
enum Place {
    Still,
    Indexed {
        scale: u8,
        step: i32,
    },
    Moves {
        round: i32,
    },
    /// By what the block says.
    Unknown {
        at: u32,
    },
}

struct Writer<'c> {
    code: &'c mut Code,
    level: Level,
    asm: Asm,
    places: Vec<Place>,
    /// The register that holds a value.
    at: Vec<Option<u8>>,
    /// What a register holds: of vectors, and of masks.
    holds: [[Option<Reg>; 32]; 2],
    pinned: [[bool; 32]; 2],
    /// The register that a value has in the whole loop.
    home: Vec<Option<u8>>,
    /// Where in the block a value is kept, and whether it is there.
    slot: Vec<Option<u32>>,
    stored: Vec<bool>,
    /// Positions at which a value is used, in the instructions that are being written.
    uses: Vec<SmallVec<[u32; 4]>>,
    position: u32,
    /// Added to the displacements of streams: rounds after the one at the index.
    ahead: i32,
}

impl<'c> Writer<'c> {
    fn new(code: &'c mut Code, places: Vec<Place>) -> Writer<'c> {
        let n = code.regs.len();
        Writer {
            level: code.level,
            code,
            asm: Asm::default(),
            places,
            at: vec![None; n],
            holds: [[None; 32]; 2],
            pinned: [[false; 32]; 2],
            home: vec![None; n],
            slot: vec![None; n],
            stored: vec![false; n],
            uses: vec![SmallVec::new(); n],
            position: 0,
            ahead: 0,
        }
    }

    // What is pinned.

    fn pin(&mut self) {
        self.count_uses(false);
        let [mut vectors, masks] = self.pressure().map(|p| p + 2);
        let all = self.level.registers(Class::Vector).len();
        vectors = vectors.clamp(LEAST, all);
        let room = all - LEAST;
        let params: Vec<Reg> = self.code.carried.iter().map(|c| c.param).collect();
        for &param in params.iter().take(room) {
            self.pin_register(param);
        }
        let mut left = (all - vectors).saturating_sub(params.len().min(room));
        let mut left_masks = self.level.registers(Class::Mask).len().saturating_sub(masks);

        let mut wanted: Vec<(u32, Reg)> = Vec::new();
        for i in 0..self.code.regs.len() {
            let reg = Reg(i as u32);
            if self.code.regs[i].invariant && !self.uses[i].is_empty() {
                wanted.push((self.worth(reg), reg));
            }
        }
        wanted.sort_by_key(|&(worth, reg)| (std::cmp::Reverse(worth), reg));
        for (_, reg) in wanted {
            let left = match self.code.info(reg).class {
                Class::Vector => &mut left,
                Class::Mask => &mut left_masks,
            };
            if *left > 0 {
                *left -= 1;
                self.pin_register(reg);
            }
        }
    }

    fn pin_register(&mut self, reg: Reg) {
        let class = self.code.info(reg).class;
        let found = self
            .level
            .registers(class)
            .rev()
            .find(|&r| !self.pinned[class as usize][usize::from(r)]);
        if let Some(r) = found {
            self.pinned[class as usize][usize::from(r)] = true;
            self.home[reg.0 as usize] = Some(r);
        }
    }

    /// What it is worth to keep an invariant in a register: a load for each use, or only a place in
    /// memory as an operand.
    fn worth(&self, reg: Reg) -> u32 {
        let mut worth = 0;
        for inst in &self.code.body {
            for (i, &src) in inst.src.iter().enumerate() {
                if src == reg {
                    worth += if self.folds(inst, i, reg) { 1 } else { 4 };
                }
            }
            worth += 4 * u32::from(inst.mask == Some(reg));
        }
        worth
    }

    /// The most values of each class that live at once in a round and are not pinned.
    fn pressure(&self) -> [usize; 2] {
        let mut live = vec![false; self.code.regs.len()];
        let (mut now, mut most) = ([0usize; 2], [0; 2]);
        let local = |r: Reg| {
            let info = self.code.info(r);
            !info.invariant && !self.code.carried.iter().any(|c| c.param == r)
        };
        for c in &self.code.carried {
            if local(c.next) && !live[c.next.0 as usize] {
                live[c.next.0 as usize] = true;
                now[self.code.info(c.next).class as usize] += 1;
            }
        }
        for inst in self.code.body.iter().rev() {
            if let Some(dst) = inst.dst
                && std::mem::take(&mut live[dst.0 as usize])
            {
                now[self.code.info(dst).class as usize] -= 1;
            }
            for &r in inst.src.iter().chain(&inst.mask) {
                if local(r) && !std::mem::replace(&mut live[r.0 as usize], true) {
                    now[self.code.info(r).class as usize] += 1;
                }
            }
            most = [most[0].max(now[0]), most[1].max(now[1])];
        }
        most
    }
    /// Begins to write instructions: those before the loop, or those of a round.
    fn begin(&mut self, before: bool) {
        self.count_uses(before);
        self.position = 0;
        self.at.fill(None);
        self.holds = [[None; 32]; 2];
        for i in 0..self.code.regs.len() {
            let reg = Reg(i as u32);
            let info = self.code.regs[i];
            let param = self.code.carried.iter().any(|c| c.param == reg);
            if !info.invariant && !param {
                self.stored[i] = false;
            }
            if let (Some(r), false) = (self.home[i], before) {
                self.at[i] = Some(r);
                self.holds[info.class as usize][usize::from(r)] = Some(reg);
            }
        }
    }

    fn count_uses(&mut self, before: bool) {
        self.uses.iter_mut().for_each(SmallVec::clear);
        let list = if before { &self.code.before } else { &self.code.body };
        for (i, inst) in list.iter().enumerate() {
            for r in inst.src.iter().chain(&inst.mask) {
                self.uses[r.0 as usize].push(i as u32);
            }
        }
        for c in &self.code.carried {
            let last = if before { c.init } else { c.next };
            self.uses[last.0 as usize].push(list.len() as u32);
        }
    }

    fn next_use(&self, reg: Reg, from: u32) -> Option<u32> {
        self.uses[reg.0 as usize].iter().copied().find(|&u| u >= from)
    }

    // Registers.

    /// A register for something new. None that holds one of `keep`.
    fn take(&mut self, class: Class, keep: &[Reg]) -> u8 {
        let mut furthest: Option<(u32, u8)> = None;
        for r in self.level.registers(class) {
            if self.pinned[class as usize][usize::from(r)] {
                continue;
            }
            let Some(held) = self.holds[class as usize][usize::from(r)] else { return r };
            if keep.contains(&held) {
                continue;
            }
            let next = self.next_use(held, self.position).unwrap_or(u32::MAX);
            if furthest.is_none_or(|(f, _)| next > f) {
                furthest = Some((next, r));
            }
        }
        let Some((_, r)) = furthest else {
            unreachable!("an instruction has fewer operands than there are registers")
        };
        self.evict(class, r);
        r
    }

    fn evict(&mut self, class: Class, r: u8) {
        let Some(held) = self.holds[class as usize][usize::from(r)].take() else { return };
        if self.at[held.0 as usize] != Some(r) {
            return;
        }
        self.at[held.0 as usize] = None;
        if self.next_use(held, self.position).is_some() {
            self.spill(held, r);
        }
    }

    /// Sees that memory has the value.
    fn spill(&mut self, reg: Reg, from: u8) {
        let i = reg.0 as usize;
        if self.code.regs[i].home.is_some() || self.stored[i] {
            return;
        }
        self.stored[i] = true;
        let at = self.slot_of(reg);
        match self.code.info(reg).class {
            Class::Vector => self.store(from, self.code.info(reg).width, at),
            Class::Mask => self.plain(Op::KStore, Width::X, from, Rm::Mem(block(at))),
        }
    }

    fn slot_of(&mut self, reg: Reg) -> u32 {
        let info = *self.code.info(reg);
        let bytes = match info.class {
            Class::Vector => info.width.bytes(),
            Class::Mask => 8,
        };
        match self.slot[reg.0 as usize] {
            Some(at) => at,
            None => *self.slot[reg.0 as usize].insert(self.code.room(bytes)),
        }
    }

    /// The register of a value, which is loaded if it is not in one.
    fn in_register(&mut self, reg: Reg, keep: &[Reg]) -> u8 {
        if let Some(r) = self.at[reg.0 as usize] {
            return r;
        }
        let class = self.code.info(reg).class;
        let r = self.take(class, keep);
        self.load_into(r, reg);
        self.at[reg.0 as usize] = Some(r);
        self.holds[class as usize][usize::from(r)] = Some(reg);
        r
    }

    fn memory_of(&self, reg: Reg) -> Option<Home> {
        let i = reg.0 as usize;
        match (self.code.regs[i].home, self.slot[i]) {
            (Some(home), _) => Some(home),
            (None, Some(at)) if self.stored[i] => {
                Some(Home { addr: Addr::Block(at), repeat: None })
            }
            _ => None,
        }
    }

    fn load_into(&mut self, r: u8, reg: Reg) {
        let Some(home) = self.memory_of(reg) else {
            unreachable!("{reg:?} is neither in a register nor in memory")
        };
        let info = *self.code.info(reg);
        let mem = Rm::Mem(self.mem(home.addr));
        let op = match (info.class, home.repeat) {
            (Class::Mask, _) => Op::KMov,
            (Class::Vector, None) => Op::Load,
            (Class::Vector, Some(4)) => Op::BroadcastD,
            (Class::Vector, Some(_)) => Op::BroadcastQ,
        };
        self.plain(op, info.width, r, mem);
    }

    fn move_vector(&mut self, to: u8, from: u8, width: Width) {
        if to != from {
            self.plain(Op::Move, width, to, Rm::Reg(from));
        }
    }

    fn store(&mut self, from: u8, width: Width, at: u32) {
        self.plain(Op::Store, width, from, Rm::Mem(block(at)));
    }

    /// An instruction with one operand and one result.
    fn plain(&mut self, op: Op, width: Width, reg: u8, rm: Rm) {
        let o = Operands { width, reg, vvvv: 0, rm, mask: None, imm: None };
        self.asm.vector(self.level, op.row(), o);
    }

    fn mem(&self, addr: Addr) -> Mem {
        match addr {
            Addr::Block(at) => block(at),
            Addr::Pool(at) => Mem::Pool(at),
            Addr::Stream { stream, disp } => {
                let base = STREAMS[stream as usize];
                let ahead = self.ahead;
                let (index, plus) = match self.places[stream as usize] {
                    Place::Still | Place::Unknown { .. } => (None, 0),
                    Place::Indexed { scale, step } => {
                        (Some((RAX, scale)), step * self.code.step as i32 * ahead)
                    }
                    Place::Moves { round } => (None, round * ahead),
                };
                Mem::Base { base, index, disp: disp + plus }
            }
        }
    }

    // Instructions.

    /// Whether operand `i` may stay in memory.
    fn folds(&self, inst: &Inst, i: usize, reg: Reg) -> bool {
        let row = inst.op.row();
        let evex = self.level == Level::Avx512 && row.prefix != Prefix::Vex;
        let place = match row.form {
            Form::Rm => i == 0,
            Form::Vm(_) => i == 0 && evex,
            Form::Rvm => i == 1 || i == 0 && row.commutes,
            Form::Fma => true,
            Form::Rvmr => i == 1,
            Form::Mr | Form::Mvr => false,
        };
        let info = self.code.info(reg);
        let twice = inst.src.iter().filter(|&&s| s == reg).count() > 1;
        if !place || twice || inst.mem.is_some() || info.class == Class::Mask {
            return false;
        }
        match (self.memory_of(reg), row.reach) {
            (Some(Home { repeat: None, .. }), Reach::Full(_) | Reach::Whole) => {
                info.width >= inst.width
            }
            (Some(Home { repeat: Some(n), addr }), Reach::Full(m)) => {
                // A constant of 4 bytes lies there twice.
                evex && (n == m || n == 4 && matches!(addr, Addr::Pool(_)))
            }
            _ => false,
        }
    }

    fn rm_of(&self, reg: Reg) -> Rm {
        let Some(home) = self.memory_of(reg) else { unreachable!("{reg:?} is not in memory") };
        let mem = self.mem(home.addr);
        if home.repeat.is_some() { Rm::Repeat(mem) } else { Rm::Mem(mem) }
    }

    fn is_in_register(&self, reg: Reg) -> bool {
        self.at[reg.0 as usize].is_some()
    }

    /// Writes an instruction; its result goes `into` a register that is given.
    fn inst(&mut self, inst: &Inst, into: Option<u8>) {
        if inst.op.row().form == Form::Fma {
            return self.fma(inst, into);
        }
        if let (Op::Ahead, Some(addr)) = (inst.op, inst.mem) {
            return self.asm.ahead(self.mem(addr));
        }
        let mut src = inst.src.clone();
        let keep: SmallVec<[Reg; 6]> = src.iter().chain(&inst.mask).copied().collect();
        // At most one operand stays in memory, in the last place.
        let mut folded = None;
        for i in (0..src.len()).rev() {
            if !self.is_in_register(src[i]) && self.folds(inst, i, src[i]) {
                if inst.op.row().form == Form::Rvm {
                    src.swap(i, 1);
                    folded = Some(1);
                } else {
                    folded = Some(i);
                }
                break;
            }
        }
        let mut regs: SmallVec<[u8; 4]> = SmallVec::new();
        for (i, &s) in src.iter().enumerate() {
            regs.push(if folded == Some(i) { 0 } else { self.in_register(s, &keep) });
        }
        let mask = inst.mask.map(|m| {
            let zero = inst.dst.is_some() && inst.mem.is_some();
            (self.in_register(m, &keep), zero)
        });
        let memory = match (inst.mem, folded) {
            (Some(addr), _) => Some(Rm::Mem(self.mem(addr))),
            (None, Some(i)) => Some(self.rm_of(src[i])),
            (None, None) => None,
        };
        self.release(&keep);
        let dst = inst.dst.map_or(0, |d| self.make(d, into));
        let row = inst.op.row();
        let get = |i: usize| regs.get(i).copied().unwrap_or(0);
        let rm = |i: usize| memory.unwrap_or(Rm::Reg(get(i)));
        let (reg, vvvv, rm, imm) = match row.form {
            Form::Rm => (dst, 0, rm(0), inst.imm),
            Form::Rvm => (dst, get(0), rm(1), inst.imm),
            Form::Vm(_) => (dst, 0, rm(0), inst.imm),
            Form::Rvmr => (dst, get(0), rm(1), Some(get(2) << 4)),
            // To memory, or to a register in its place.
            Form::Mr => (get(0), 0, memory.unwrap_or(Rm::Reg(dst)), inst.imm),
            Form::Mvr => (get(1), get(0), rm(2), None),
            Form::Fma => unreachable!("written elsewhere"),
        };
        let o = Operands { width: inst.width, reg, vvvv, rm, mask, imm };
        self.asm.vector(self.level, row, o);
    }

    /// Registers whose value nobody wants any more are free.
    fn release(&mut self, used: &[Reg]) {
        for &reg in used {
            let Some(r) = self.at[reg.0 as usize] else { continue };
            let class = self.code.info(reg).class as usize;
            if !self.pinned[class][usize::from(r)]
                && self.next_use(reg, self.position + 1).is_none()
            {
                self.holds[class][usize::from(r)] = None;
                self.at[reg.0 as usize] = None;
            }
        }
    }

    /// The register in which a value is made.
    fn make(&mut self, dst: Reg, into: Option<u8>) -> u8 {
        let class = self.code.info(dst).class;
        let r = match into {
            Some(r) => {
                if let Some(old) = self.holds[class as usize][usize::from(r)] {
                    self.at[old.0 as usize] = None;
                }
                r
            }
            // What is wanted at this position has been read.
            None => {
                self.position += 1;
                let r = self.take(class, &[]);
                self.position -= 1;
                r
            }
        };
        self.at[dst.0 as usize] = Some(r);
        self.holds[class as usize][usize::from(r)] = Some(dst);
        r
    }

    /// `a * b + c`, in the form that overwrites a value which nobody wants any more.
    fn fma(&mut self, inst: &Inst, into: Option<u8>) {
        let [a, b, c] = [inst.src[0], inst.src[1], inst.src[2]];
        let keep = [a, b, c];
        let memory =
            [c, b, a].into_iter().find(|&r| !self.is_in_register(r) && self.folds(inst, 0, r));
        for r in keep {
            if memory != Some(r) {
                self.in_register(r, &keep);
            }
        }
        let at = |w: &Self, r: Reg| w.at[r.0 as usize].unwrap_or(0);
        let ends = |w: &Self, r: Reg| {
            let here = at(w, r);
            memory != Some(r)
                && (into == Some(here)
                    || !w.pinned[0][usize::from(here)] && w.next_use(r, w.position + 1).is_none())
        };
        // The factor that stays one if the other ends or is in memory.
        let (x, y) =
            if memory == Some(a) || !ends(self, a) && ends(self, b) { (b, a) } else { (a, b) };
        let single = inst.op == Op::Fma213Ps;
        let [f132, f213, f231] = if single {
            [Op::Fma132Ps, Op::Fma213Ps, Op::Fma231Ps]
        } else {
            [Op::Fma132Pd, Op::Fma213Pd, Op::Fma231Pd]
        };
        let rm = |w: &Self, r: Reg| {
            if memory == Some(r) { w.rm_of(r) } else { Rm::Reg(at(w, r)) }
        };
        // (overwritten, second, third)
        let (op, over, second, third) = if memory == Some(y) {
            // x * [y] + c
            if ends(self, c) || !ends(self, x) { (f231, c, x, y) } else { (f132, x, c, y) }
        } else if ends(self, c) && (into == Some(at(self, c)) || !ends(self, x) || x == y) {
            (f231, c, x, y)
        } else if ends(self, x) || memory == Some(c) || !ends(self, c) && x != y {
            (f213, x, y, c)
        } else {
            (f231, c, x, y)
        };
        let overwrites = ends(self, over) && over != second && over != third;
        let (second, third, width) = (at(self, second), rm(self, third), inst.width);
        let Some(dst) = inst.dst else { return };
        let from = at(self, over);
        if overwrites {
            self.release(&keep);
            // The register passes from the one to the other.
            self.holds[0][usize::from(from)] = None;
            self.at[over.0 as usize] = None;
            let o = Operands { width, reg: from, vvvv: second, rm: third, mask: None, imm: None };
            self.at[dst.0 as usize] = Some(from);
            self.holds[0][usize::from(from)] = Some(dst);
            return self.asm.vector(self.level, op.row(), o);
        }
        let to = self.take(Class::Vector, &keep);
        self.move_vector(to, from, width);
        self.release(&keep);
        self.at[dst.0 as usize] = Some(to);
        self.holds[0][usize::from(to)] = Some(dst);
        let o = Operands { width, reg: to, vvvv: second, rm: third, mask: None, imm: None };
        self.asm.vector(self.level, op.row(), o);
    }
}

fn block(at: u32) -> Mem {
    Mem::Base { base: RDI, index: None, disp: at as i32 }
}
