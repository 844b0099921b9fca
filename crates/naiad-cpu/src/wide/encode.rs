//! Bytes of instructions.
//!
//! ```text
//!   VEX    c5 RvvvvLpp              opcode modrm [sib] [disp] [imm]      map 1, W 0, no high base or index
//!          c4 RXBmmmmm WvvvvLpp     opcode ...
//!   EVEX   62 RXBR0mmm Wvvvv1pp zLLbVaaa  opcode ...                     R, X, B, R', v, V' inverted
//! ```
//!
//! A displacement of one byte counts, under EVEX, in units of what the instruction reaches in memory.

use super::machine::{Form, Level, Op, Prefix, Reach, Row, Width};

/// General registers by their numbers.
pub type Gpr = u8;
pub const RAX: Gpr = 0;
pub const RSP: Gpr = 4;
pub const RSI: Gpr = 6;
pub const RDI: Gpr = 7;

/// Memory as an instruction addresses it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Mem {
    Base {
        base: Gpr,
        /// And the logarithm of its scale.
        index: Option<(Gpr, u8)>,
        disp: i32,
    },
    /// An offset in the constants.
    Pool(u32),
}

/// The last operand of an instruction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Rm {
    Reg(u8),
    Mem(Mem),
    /// One element in all lanes.
    Repeat(Mem),
}

/// Registers of a vector or mask instruction.
#[derive(Copy, Clone, Debug)]
pub struct Operands {
    pub width: Width,
    pub reg: u8,
    pub vvvv: u8,
    pub rm: Rm,
    /// The mask register, and whether lanes that it leaves out become 0.
    pub mask: Option<(u8, bool)>,
    pub imm: Option<u8>,
}

/// Code under construction.
#[derive(Default)]
pub struct Asm {
    pub bytes: Vec<u8>,
    /// Displacements that want the place of a constant: where they are, where their instruction ends,
    /// and the constant's offset.
    pool: Vec<(usize, usize, u32)>,
}

/// Condition codes of jumps, as they are encoded.
#[derive(Copy, Clone)]
pub enum Jump {
    Below = 2,
    AboveOrEqual = 3,
}

impl Asm {
    pub fn vector(&mut self, level: Level, row: &Row, o: Operands) {
        let evex = match row.prefix {
            Prefix::Evex => true,
            Prefix::Both => level == Level::Avx512,
            Prefix::Vex | Prefix::Mask(_) => false,
        };
        let (reg, vvvv) = match row.form {
            Form::Vm(extension) => (extension, o.reg),
            Form::Rm | Form::Mr => (o.reg, 0),
            Form::Rvm | Form::Mvr | Form::Fma | Form::Rvmr => (o.reg, o.vvvv),
        };
        if evex {
            self.evex(row, reg, vvvv, &o);
        } else {
            self.vex(row, reg, vvvv, &o);
        }
        self.bytes.push(row.opcode);
        let unit = if evex { unit(row, &o) } else { 1 };
        let imm_bytes = usize::from(o.imm.is_some());
        self.modrm(reg, o.rm, unit, imm_bytes);
        self.bytes.extend(o.imm);
    }

    fn vex(&mut self, row: &Row, reg: u8, vvvv: u8, o: &Operands) {
        let (x, b) = high_bits(o.rm);
        // What is ignored is 0, so that the short form fits. This one is 0 here and 1 under EVEX.
        let repeat = row.map == 2 && row.opcode == 0x59;
        let mask = matches!(row.prefix, Prefix::Mask(_));
        let w = if (row.map == 1 && !mask) || repeat { 0 } else { row.w };
        let length = match row.prefix {
            Prefix::Mask(l) => l,
            _ => u8::from(o.width == Width::Y),
        };
        let last = (!vvvv & 15) << 3 | length << 2 | row.pp;
        if row.map == 1 && w == 0 && !x && !b {
            self.bytes.extend([0xc5, u8::from(reg < 8) << 7 | last]);
        } else {
            let first = u8::from(reg < 8) << 7 | u8::from(!x) << 6 | u8::from(!b) << 5 | row.map;
            self.bytes.extend([0xc4, first, w << 7 | last]);
        }
    }

    fn evex(&mut self, row: &Row, reg: u8, vvvv: u8, o: &Operands) {
        let (mut x, b) = high_bits(o.rm);
        if let Rm::Reg(rm) = o.rm {
            x = rm >= 16;
        }
        let inverted = |bit: bool, at: u8| u8::from(!bit) << at;
        let first = inverted(reg & 8 != 0, 7)
            | inverted(x, 6)
            | inverted(b, 5)
            | inverted(reg & 16 != 0, 4)
            | row.map;
        let second = row.w << 7 | (!vvvv & 15) << 3 | 4 | row.pp;
        let (mask, zero) = o.mask.unwrap_or((0, false));
        let repeat = matches!(o.rm, Rm::Repeat(_));
        let third = u8::from(zero) << 7
            | (o.width as u8) << 5
            | u8::from(repeat) << 4
            | inverted(vvvv & 16 != 0, 3)
            | mask;
        self.bytes.extend([0x62, first, second, third]);
    }

    /// ModRM and what follows it; `imm` bytes will come behind.
    fn modrm(&mut self, reg: u8, rm: Rm, unit: i32, imm: usize) {
        let reg = (reg & 7) << 3;
        let mem = match rm {
            Rm::Reg(rm) => return self.bytes.push(0xc0 | reg | rm & 7),
            Rm::Mem(mem) | Rm::Repeat(mem) => mem,
        };
        match mem {
            Mem::Pool(offset) => {
                self.bytes.push(reg | 5);
                let at = self.bytes.len();
                self.bytes.extend([0; 4]);
                self.pool.push((at, at + 4 + imm, offset));
            }
            Mem::Base { base, index, disp } => {
                let short = disp % unit == 0 && i8::try_from(disp / unit).is_ok();
                let mode = match disp {
                    // This mode means something else with these bases.
                    0 if base & 7 != 5 => 0,
                    _ if short => 0x40,
                    _ => 0x80,
                };
                match index {
                    Some((index, scale)) => {
                        self.bytes.push(mode | reg | 4);
                        self.bytes.push(scale << 6 | (index & 7) << 3 | base & 7);
                    }
                    None if base & 7 == RSP => self.bytes.extend([mode | reg | 4, 0x24]),
                    None => self.bytes.push(mode | reg | base & 7),
                }
                match mode {
                    0 => {}
                    0x40 => self.bytes.push((disp / unit) as u8),
                    _ => self.bytes.extend(disp.to_le_bytes()),
                }
            }
        }
    }

    /// An instruction on general registers of 64 bits.
    fn general(&mut self, opcode: u8, reg: u8, rm: Rm) {
        let (x, b) = high_bits(rm);
        self.bytes.push(0x48 | u8::from(reg >= 8) << 2 | u8::from(x) << 1 | u8::from(b));
        self.bytes.push(opcode);
        self.modrm(reg, rm, 1, 0);
    }

    /// Brings memory to the second cache.
    pub fn ahead(&mut self, mem: Mem) {
        let Row { opcode, form, .. } = Op::Ahead.row();
        let Form::Vm(hint) = *form else { return };
        let (x, b) = high_bits(Rm::Mem(mem));
        self.bytes.extend([0x40 | u8::from(x) << 1 | u8::from(b), 0x0f, *opcode]);
        self.modrm(hint, Rm::Mem(mem), 1, 0);
    }

    pub fn load(&mut self, dst: Gpr, mem: Mem) {
        self.general(0x8b, dst, Rm::Mem(mem));
    }

    pub fn add_mem(&mut self, dst: Gpr, mem: Mem) {
        self.general(0x03, dst, Rm::Mem(mem));
    }

    pub fn add(&mut self, dst: Gpr, by: i32) {
        self.arithmetic(0, dst, by);
    }

    pub fn compare(&mut self, a: Gpr, b: Gpr) {
        self.general(0x3b, a, Rm::Reg(b));
    }

    pub fn compare_with(&mut self, a: Gpr, b: i32) {
        self.arithmetic(7, a, b);
    }

    fn arithmetic(&mut self, extension: u8, reg: Gpr, imm: i32) {
        match i8::try_from(imm) {
            Ok(imm) => {
                self.general(0x83, extension, Rm::Reg(reg));
                self.bytes.push(imm as u8);
            }
            Err(_) => {
                self.general(0x81, extension, Rm::Reg(reg));
                self.bytes.extend(imm.to_le_bytes());
            }
        }
    }

    pub fn clear(&mut self, reg: Gpr) {
        self.general(0x33, reg, Rm::Reg(reg));
    }

    pub fn push(&mut self, reg: Gpr) {
        self.stack(0x50, reg);
    }

    pub fn pop(&mut self, reg: Gpr) {
        self.stack(0x58, reg);
    }

    fn stack(&mut self, opcode: u8, reg: Gpr) {
        if reg >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(opcode | reg & 7);
    }

    /// Marks the upper halves of the vector registers as unused; see `clif::target`.
    pub fn clear_upper_halves(&mut self) {
        self.bytes.extend([0xc5, 0xf8, 0x77]);
    }

    pub fn ret(&mut self) {
        self.bytes.push(0xc3);
    }

    /// Where the code is now.
    pub fn here(&self) -> usize {
        self.bytes.len()
    }

    /// A jump to code that exists.
    pub fn jump_back(&mut self, condition: Jump, to: usize) {
        let short = to as i64 - (self.here() as i64 + 2);
        if let Ok(short) = i8::try_from(short) {
            self.bytes.extend([0x70 | condition as u8, short as u8]);
            return;
        }
        let at = self.jump(condition);
        self.land(at, to);
    }

    /// A jump to where [`Asm::land`] will say.
    pub fn jump(&mut self, condition: Jump) -> usize {
        self.bytes.extend([0x0f, 0x80 | condition as u8, 0, 0, 0, 0]);
        self.here()
    }

    pub fn land(&mut self, jump: usize, to: usize) {
        let distance = to as i64 - jump as i64;
        self.bytes[jump - 4..jump].copy_from_slice(&(distance as i32).to_le_bytes());
    }

    /// Fills up to a multiple of so many bytes with instructions that do nothing.
    pub fn align(&mut self, to: usize) {
        const NOPS: [&[u8]; 9] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0f, 0x1f, 0x00],
            &[0x0f, 0x1f, 0x40, 0x00],
            &[0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
            &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
            &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
        ];
        let mut left = self.here().next_multiple_of(to) - self.here();
        while left > 0 {
            let n = left.min(NOPS.len());
            self.bytes.extend(NOPS[n - 1]);
            left -= n;
        }
    }

    /// The code, with its constants behind it.
    pub fn finish(mut self, pool: &[u8]) -> Vec<u8> {
        let start = self.here().next_multiple_of(64);
        for (at, end, offset) in std::mem::take(&mut self.pool) {
            let distance = (start + offset as usize) as i64 - end as i64;
            self.bytes[at..at + 4].copy_from_slice(&(distance as i32).to_le_bytes());
        }
        if !pool.is_empty() {
            self.bytes.resize(start, 0xcc);
            self.bytes.extend(pool);
        }
        self.bytes
    }
}

/// Bit 3 of the index and of the base, or of the register in the place of both.
fn high_bits(rm: Rm) -> (bool, bool) {
    match rm {
        Rm::Reg(rm) => (false, rm & 8 != 0),
        Rm::Mem(Mem::Base { base, index, .. }) | Rm::Repeat(Mem::Base { base, index, .. }) => {
            (index.is_some_and(|(i, _)| i >= 8), base >= 8)
        }
        Rm::Mem(Mem::Pool(_)) | Rm::Repeat(Mem::Pool(_)) => (false, false),
    }
}

/// What a displacement of one byte counts in.
fn unit(row: &Row, o: &Operands) -> i32 {
    let vector = o.width.bytes() as i32;
    match row.reach {
        Reach::Full(element) if matches!(o.rm, Rm::Repeat(_)) => element.into(),
        Reach::Full(_) | Reach::Whole => vector,
        Reach::Part(n) => vector / i32::from(n),
        Reach::Bytes(n) => n.into(),
    }
}
