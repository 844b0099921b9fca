//! A machine that runs PTX, for the instructions that the writer uses: one thread, line by line.
//!
//! Arithmetic is evaluated by `naiad_ir::ptx_asm`, an instruction at a time; here are registers, jumps
//! and memory. What PTX leaves open is made conspicuous: registers hold rubbish at first, a division
//! without a result gives some, and an access that is not aligned is a fault. Addresses are those of
//! this process.

use naiad_ir::Scalar;
use naiad_ir::ptx_asm::{Interface, Program, Registers};
use naiad_ir::scalar::BinaryFn;
use std::collections::HashMap;

/// What nobody expects.
const RUBBISH: u64 = 0xa5c3_a5c3_a5c3_a5c3;

/// Instructions that a run may take.
const PATIENCE: usize = 1_000_000;

/// A kernel's text, ready to be run.
pub struct Machine {
    lines: Vec<Line>,
    /// Registers of all classes, by name.
    names: HashMap<String, usize>,
}

struct Line {
    text: String,
    /// The register, and whether it must be false.
    guard: Option<(usize, bool)>,
    what: What,
}

enum What {
    Compute {
        program: Program,
        sources: Vec<usize>,
        targets: Vec<usize>,
        care: Care,
        all: Vec<Source>,
    },
    Load {
        targets: Vec<usize>,
        bytes: usize,
        signed: bool,
        at: Address,
    },
    Store {
        sources: Vec<Source>,
        bytes: usize,
        at: Address,
    },
    Atomic {
        f: Update,
        target: usize,
        at: Address,
        sources: Vec<Source>,
        bytes: usize,
    },
    Param {
        target: usize,
        index: usize,
        bits: u32,
        signed: bool,
    },
    Jump(usize),
    Nothing,
    End,
}

/// Where the result of an instruction is open, or not what `ptx_asm` has.
#[derive(Copy, Clone)]
enum Care {
    None,
    /// Integer division: signed, and of so many bits.
    Division(bool, u32),
    /// A float of so many bits to an integer of so many: a NaN gives the top bit.
    Integer(u32, u32),
}

struct Address {
    base: usize,
    disp: i64,
}

#[derive(Copy, Clone)]
enum Source {
    Register(usize),
    Image(u64),
}

#[derive(Copy, Clone)]
enum Update {
    Function(BinaryFn, Scalar),
    Exchange,
    Swap,
}

impl Machine {
    pub fn new(ptx: &str) -> Machine {
        let body = ptx.split_once("\n{\n").and_then(|(_, b)| b.rsplit_once('}')).expect("a body").0;
        let lines: Vec<&str> = body.lines().map(str::trim).collect();
        let lines: Vec<&str> =
            lines.into_iter().filter(|l| !l.is_empty() && !l.starts_with(".reg")).collect();
        let mut machine = Machine { lines: Vec::new(), names: HashMap::new() };
        let mut labels = HashMap::new();
        let mut count = 0;
        for line in &lines {
            match line.strip_suffix(':') {
                Some(label) => drop(labels.insert(label.to_string(), count)),
                None => count += 1,
            }
        }
        for line in lines.iter().filter(|l| !l.ends_with(':')) {
            let line = machine.line(line.trim_end_matches(';'), &labels);
            machine.lines.push(line);
        }
        machine
    }

    /// Runs the kernel with the images of its parameters.
    ///
    /// # Safety
    /// The memory that the kernel then reads and writes may be read and written.
    pub unsafe fn run(&self, params: &[u64]) {
        let mut registers = vec![RUBBISH; self.names.len()];
        let (mut inner, mut next) = (Registers::default(), 0);
        for _ in 0..PATIENCE {
            let Some(line) = self.lines.get(next) else { panic!("the text has no end") };
            next += 1;
            if line.guard.is_some_and(|(r, negated)| (registers[r] & 1 != 0) == negated) {
                continue;
            }
            match &line.what {
                What::Nothing => {}
                What::End => return,
                What::Jump(to) => next = *to,
                // SAFETY: the caller's promise.
                what => unsafe { what.run(&mut registers, params, &mut inner, &line.text) },
            }
        }
        panic!("the kernel does not end");
    }

    fn register(&mut self, name: &str) -> usize {
        let next = self.names.len();
        *self.names.entry(name.to_string()).or_insert(next)
    }

    fn line(&mut self, text: &str, labels: &HashMap<String, usize>) -> Line {
        let (guard, code) = match text.strip_prefix('@') {
            None => (None, text),
            Some(rest) => {
                let (name, code) = rest.split_once(' ').expect("an instruction");
                let negated = name.starts_with('!');
                (Some((self.register(name.trim_start_matches('!')), negated)), code)
            }
        };
        let (opcode, rest) = code.split_once(' ').unwrap_or((code, ""));
        let operands = operands(rest);
        let what = match opcode.split('.').next().unwrap_or("") {
            "ret" => What::End,
            "bra" => What::Jump(labels[rest]),
            "fence" => What::Nothing,
            "ld" if opcode.starts_with("ld.param") => {
                let index = operands[1].trim_start_matches("[param_").trim_end_matches(']');
                let (bytes, signed) = size(opcode);
                let index = index.parse().expect("a parameter");
                What::Param {
                    target: self.register(operands[0]),
                    index,
                    bits: 8 * bytes as u32,
                    signed,
                }
            }
            "ld" => {
                let (bytes, signed) = size(opcode);
                let targets = parts(operands[0]).map(|r| self.register(r)).collect();
                What::Load { targets, bytes, signed, at: self.address(operands[1]) }
            }
            "st" => {
                let sources = parts(operands[1]).map(|x| self.source(x)).collect();
                What::Store { sources, bytes: size(opcode).0, at: self.address(operands[0]) }
            }
            "atom" => self.atomic(opcode, &operands),
            "cvta" => self.compute("mov.b64", &operands),
            _ => self.compute(opcode, &operands),
        };
        Line { text: text.to_string(), guard, what }
    }

    fn address(&mut self, text: &str) -> Address {
        let inner = text.trim_start_matches('[').trim_end_matches(']');
        let (base, disp) = inner.split_once('+').unwrap_or((inner, "0"));
        Address { base: self.register(base), disp: disp.parse().expect("a displacement") }
    }

    fn source(&mut self, text: &str) -> Source {
        match text.strip_prefix("0x") {
            _ if text.starts_with('%') => Source::Register(self.register(text)),
            Some(hex) => Source::Image(u64::from_str_radix(hex, 16).expect("a number")),
            None => Source::Image(text.parse::<i64>().expect("a number") as u64),
        }
    }

    fn atomic(&mut self, opcode: &str, operands: &[&str]) -> What {
        let words: Vec<&str> = opcode.split('.').collect();
        let ty = words[words.len() - 1];
        let of = match ty {
            "u32" | "b32" => Scalar::U32,
            "s32" => Scalar::I32,
            "u64" | "b64" => Scalar::U64,
            "s64" => Scalar::I64,
            "f16" => Scalar::F16,
            "bf16" => Scalar::BF16,
            "f32" => Scalar::F32,
            "f64" => Scalar::F64,
            _ => Scalar::U16,
        };
        let name = words.iter().find_map(|w| match *w {
            "add" => Some(Update::Function(BinaryFn::Add, of)),
            "min" => Some(Update::Function(BinaryFn::Min, of)),
            "max" => Some(Update::Function(BinaryFn::Max, of)),
            "and" => Some(Update::Function(BinaryFn::And, of)),
            "or" => Some(Update::Function(BinaryFn::Or, of)),
            "xor" => Some(Update::Function(BinaryFn::Xor, of)),
            "exch" => Some(Update::Exchange),
            "cas" => Some(Update::Swap),
            _ => None,
        });
        What::Atomic {
            f: name.unwrap_or_else(|| panic!("`{opcode}`")),
            target: self.register(operands[0]),
            at: self.address(operands[1]),
            sources: operands[2..].iter().map(|x| self.source(x)).collect(),
            bytes: of.size(),
        }
    }

    /// One instruction as a text with operands: results first.
    fn compute(&mut self, opcode: &str, operands: &[&str]) -> What {
        let (mut text, mut words) = (String::new(), Vec::new());
        let (mut targets, mut sources) = (Vec::new(), Vec::new());
        let (mut results, mut args) = (Vec::new(), Vec::new());
        for (i, operand) in operands.iter().enumerate() {
            let mut out = Vec::new();
            for part in parts(operand) {
                if !part.starts_with('%') {
                    out.push(part.to_string());
                    continue;
                }
                let (letter, bits) = match part.trim_end_matches(|c: char| c.is_ascii_digit()) {
                    "%pr" => ("b", 1),
                    "%hw" => ("h", 16),
                    "%w" => ("r", 32),
                    "%dw" => ("l", 64),
                    other => panic!("`{other}` is no class of registers"),
                };
                out.push(format!("${}", words.len()));
                let register = self.register(part);
                if i == 0 {
                    words.push(format!("={letter}"));
                    targets.push(register);
                    results.push(bits);
                } else {
                    words.push(letter.to_string());
                    sources.push(register);
                    args.push(bits);
                }
            }
            let joined = out.join(", ");
            let operand = if operand.starts_with('{') { format!("{{{joined}}}") } else { joined };
            let separator = if i == 0 { "" } else { ", " };
            text += &format!("{separator}{operand}");
        }
        let text = format!("{opcode} {text};");
        let interface = Interface { args: &args, results: &results, pack: 1 };
        let program = Program::parse(&text, &words.join(","), &interface)
            .unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let care = care(opcode);
        // Only what `care` looks at has operands that are sources of their own.
        let all = match care {
            Care::None => Vec::new(),
            Care::Division(..) | Care::Integer(..) => {
                operands[1..].iter().map(|x| self.source(x)).collect()
            }
        };
        What::Compute { program, sources, targets, care, all }
    }
}

fn care(opcode: &str) -> Care {
    let words: Vec<&str> = opcode.split('.').collect();
    let bits = |ty: &str| ty[1..].parse::<u32>().unwrap_or(0);
    match words.as_slice() {
        ["div" | "rem", ty] => Care::Division(ty.starts_with('s'), bits(ty)),
        ["cvt", "rzi", to, from]
            if !to.starts_with('f') && (bits(to) == 64 || bits(from) == 64) =>
        {
            Care::Integer(bits(from), bits(to))
        }
        _ => Care::None,
    }
}

impl What {
    /// # Safety
    /// Memory at the addresses may be accessed.
    unsafe fn run(&self, registers: &mut [u64], params: &[u64], inner: &mut Registers, text: &str) {
        let place = |registers: &[u64], at: &Address, bytes: usize, i: usize| {
            let address = registers[at.base].wrapping_add_signed(at.disp);
            address.wrapping_add((bytes * i) as u64)
        };
        let aligned = |address: u64, bytes: usize| {
            assert!(address.is_multiple_of(bytes as u64), "{text}: {address:#x} is not aligned");
        };
        let value = |registers: &[u64], s: &Source| match *s {
            Source::Register(r) => registers[r],
            Source::Image(x) => x,
        };
        match self {
            What::Compute { program, sources, targets, care, all } => {
                let args: Vec<u64> = sources.iter().map(|&r| registers[r]).collect();
                let mut results = vec![0; targets.len()];
                program.call(inner, &args, &mut results, &mut || 0);
                let all: Vec<u64> = all.iter().map(|s| value(registers, s)).collect();
                care.taken(&all, &mut results[0]);
                for (&r, x) in targets.iter().zip(results) {
                    registers[r] = x;
                }
            }
            What::Load { targets, bytes, signed, at } => {
                aligned(place(registers, at, 0, 0), bytes * targets.len());
                let first = place(registers, at, 0, 0);
                for (i, &r) in targets.iter().enumerate() {
                    // SAFETY: the caller's promise.
                    let x = unsafe { read(first + (bytes * i) as u64, *bytes) };
                    registers[r] = if *signed { x as i8 as i32 as u32 as u64 } else { x };
                }
            }
            What::Store { sources, bytes, at } => {
                aligned(place(registers, at, 0, 0), bytes * sources.len());
                for (i, s) in sources.iter().enumerate() {
                    // SAFETY: the caller's promise.
                    unsafe { write(place(registers, at, *bytes, i), value(registers, s), *bytes) };
                }
            }
            What::Atomic { f, target, at, sources, bytes } => {
                let address = place(registers, at, 0, 0);
                aligned(address, *bytes);
                // SAFETY: the caller's promise.
                let old = unsafe { read(address, *bytes) };
                let first = value(registers, &sources[0]) & mask(*bytes);
                let new = match f {
                    Update::Function(f, of) => f.eval(*of, old, first).expect("of this type"),
                    Update::Exchange => first,
                    Update::Swap if old == first => value(registers, &sources[1]),
                    Update::Swap => old,
                };
                // SAFETY: the caller's promise.
                unsafe { write(address, new, *bytes) };
                registers[*target] = old;
            }
            What::Param { target, index, bits, signed } => {
                let x = params[*index] & u64::MAX >> (64 - bits);
                registers[*target] = if *signed { x as i8 as i32 as u32 as u64 } else { x };
            }
            What::Jump(_) | What::Nothing | What::End => {}
        }
    }
}

impl Care {
    fn taken(self, args: &[u64], result: &mut u64) {
        match self {
            Care::None => {}
            Care::Division(signed, bits) => {
                let least = 1 << (bits - 1);
                let all = u64::MAX >> (64 - bits);
                let (x, y) = (args[0] & all, args[1] & all);
                if y == 0 || signed && x == least && y == all {
                    *result = RUBBISH & all;
                }
            }
            Care::Integer(from, to) => {
                let is_nan = match from {
                    32 => f32::from_bits(args[0] as u32).is_nan(),
                    _ => f64::from_bits(args[0]).is_nan(),
                };
                if is_nan {
                    *result = 1 << (to - 1);
                }
            }
        }
    }
}

fn mask(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}

unsafe fn read(address: u64, bytes: usize) -> u64 {
    let mut image = [0; 8];
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, image.as_mut_ptr(), bytes) };
    u64::from_le_bytes(image)
}

unsafe fn write(address: u64, image: u64, bytes: usize) {
    let image = image.to_le_bytes();
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(image.as_ptr(), address as *mut u8, bytes) };
}

/// Bytes of the type that an opcode ends in, and whether they are extended by their sign.
fn size(opcode: &str) -> (usize, bool) {
    let ty = opcode.rsplit('.').next().expect("a type");
    let bits: usize = ty[1..].parse().expect("a width");
    (bits / 8, ty.starts_with('s'))
}

/// Operands, split at commas outside of braces.
fn operands(text: &str) -> Vec<&str> {
    let (mut out, mut start, mut depth) = (Vec::new(), 0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text.is_empty() {
        out.push(text[start..].trim());
    }
    out
}

/// What stands in braces, or the one operand.
fn parts(operand: &str) -> impl Iterator<Item = &str> {
    operand.trim_matches(['{', '}']).split(',').map(str::trim)
}
