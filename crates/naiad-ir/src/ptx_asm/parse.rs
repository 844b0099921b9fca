//! From text and constraints to statements over slots.

use super::instr::{self, Shape, Ty};
use super::{Guard, Interface, Packing, Program, Refusal, Source, Statement, Target, mask};
use crate::scalar::{Rounding, cast_bits};
use crate::types::Scalar;
use rustc_hash::FxHashMap;

/// A name in a scope: `t`, or with a count `t<4>` for `t0` to `t3`.
#[derive(Copy, Clone)]
struct Register {
    slot: usize,
    bits: u32,
}

struct Parser {
    slots: usize,
    /// Registers of the blocks around, innermost last.
    scopes: Vec<FxHashMap<String, Register>>,
    /// `$0`, `$1`, ...
    operands: Vec<Register>,
    reads_clock: bool,
}

type Parsed<T> = Result<T, String>;

pub(super) fn program(
    text: &str,
    constraints: &str,
    interface: &Interface<'_>,
) -> Result<Program, Refusal> {
    let bad = |why: String| Refusal { statement: None, why };
    let (mut slots, mut outputs, mut inputs) = (0, Vec::new(), Vec::new());
    for word in constraints.split(',').map(str::trim).filter(|w| !w.is_empty()) {
        if word.starts_with('~') {
            continue;
        }
        let letter = word.trim_start_matches(['=', '&']);
        if let Ok(tied) = letter.parse::<usize>() {
            let register = outputs.get(tied).copied();
            inputs.push(register.ok_or_else(|| bad(format!("`{word}` ties to no output")))?);
            continue;
        }
        let bits = match letter {
            "r" | "f" => 32,
            "h" | "c" => 16,
            "l" | "d" | "n" | "i" => 64,
            "b" => 1,
            _ => return Err(bad(format!("the constraint `{word}` is not known here"))),
        };
        let list = if word.starts_with('=') { &mut outputs } else { &mut inputs };
        list.push(Register { slot: slots, bits });
        slots += 1;
    }
    let wanted = [("output", interface.results, &outputs), ("input", interface.args, &inputs)];
    for (what, widths, have) in wanted {
        let want = interface.registers(widths);
        if want != have.len() {
            return Err(bad(format!(
                "the constraints name {} {what} registers, the values fill {want}",
                have.len()
            )));
        }
    }
    let packings = |widths: &[u32], registers: &[Register]| -> Vec<Packing> {
        let mut rest = registers.iter().map(|r| r.slot);
        let packing = |&bits: &u32| {
            let per_register = interface.per_register(bits);
            let n = interface.pack.div_ceil(per_register);
            Packing { bits, per_register, slots: rest.by_ref().take(n).collect() }
        };
        widths.iter().map(packing).collect()
    };
    let (args, results) =
        (packings(interface.args, &inputs), packings(interface.results, &outputs));
    let operands = [outputs, inputs].concat();
    let mut parser =
        Parser { slots, scopes: vec![FxHashMap::default()], operands, reads_clock: false };
    let mut statements = Vec::new();
    for statement in split(text) {
        let refused = |why| Refusal { statement: Some(statement.replace('\u{1}', "")), why };
        statements.extend(parser.statement(&statement).map_err(refused)?);
    }
    let Parser { slots, reads_clock, .. } = parser;
    Ok(Program { slots, statements, args, results, pack: interface.pack, reads_clock })
}

/// Statements without comments and semicolons; a brace that opens or closes a block is one of its own.
fn split(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut now = String::new();
    let mut rest = text;
    // Braces around operands are part of their statement.
    let mut vector = false;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |i| &rest[i..]);
            continue;
        }
        if rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |i| &rest[i + 2..]);
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            ';' => out.push(std::mem::take(&mut now)),
            '{' | '}' if now.trim().is_empty() && !vector => out.push(c.to_string()),
            '}' if !vector => {
                out.push(std::mem::take(&mut now));
                out.push(c.to_string());
            }
            '{' | '}' => {
                vector = c == '{';
                now.push(c);
            }
            // In LLVM's text a dollar sign is written twice.
            '$' if rest.starts_with('$') => {
                rest = &rest[1..];
                now.push('$');
                now.push('\u{1}');
            }
            c => now.push(if c.is_whitespace() { ' ' } else { c }),
        }
    }
    out.push(now);
    let tidy = |s: &String| s.split_whitespace().collect::<Vec<_>>().join(" ");
    out.iter().map(tidy).filter(|s| !s.is_empty()).collect()
}

/// The names in braces, two or four of them, which share the bits of a type.
fn vector(text: &str) -> Option<Parsed<Vec<&str>>> {
    let names = list(text.strip_prefix('{')?.strip_suffix('}')?);
    let plain = matches!(names.len(), 2 | 4) && names.iter().all(|n| !n.contains(['{', '}']));
    Some(plain.then_some(names).ok_or_else(|| format!("`{text}` is no vector of two or four")))
}

/// Operands, split at commas outside braces.
fn list(text: &str) -> Vec<&str> {
    let (mut out, mut start, mut depth) = (Vec::new(), 0, 0u32);
    for (i, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                out.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(text[start..].trim());
    if out == [""] { Vec::new() } else { out }
}

impl Parser {
    fn statement(&mut self, text: &str) -> Parsed<Option<Statement>> {
        match text {
            "{" => {
                self.scopes.push(FxHashMap::default());
                return Ok(None);
            }
            "}" => {
                // More are closed than were opened: the outermost is there for whoever goes on.
                if self.scopes.len() > 1 {
                    self.scopes.pop();
                }
                return Ok(None);
            }
            _ => {}
        }
        if let Some(rest) = text.strip_prefix(".reg") {
            self.declare(rest)?;
            return Ok(None);
        }
        let (guard, text) = match text.strip_prefix('@') {
            None => (None, text),
            Some(rest) => {
                let (name, rest) = rest.split_once(' ').ok_or("a guard without an instruction")?;
                let (negated, name) = match name.strip_prefix('!') {
                    Some(name) => (true, name),
                    None => (false, name),
                };
                (Some(Guard { slot: self.register(name)?.slot, negated }), rest)
            }
        };
        let (opcode, operands) = text.split_once(' ').unwrap_or((text, ""));
        let operands = list(operands);
        let Shape { f, target, sources } =
            instr::compile(opcode, operands.len()).ok_or("the instruction is not known here")?;
        if operands.len() != sources.len() + 1 {
            return Err(format!("takes {} operands", sources.len() + 1));
        }
        let targets = self.targets(operands[0], target)?;
        let sources = operands[1..].iter().zip(sources);
        let sources = sources
            .map(|(text, ty)| Ok((self.source(text, ty)?, mask(ty.bits()))))
            .collect::<Parsed<_>>()?;
        Ok(Some(Statement { guard, targets, sources, f }))
    }

    /// `.b32 a, t<4>`
    fn declare(&mut self, text: &str) -> Parsed<()> {
        let text = text.trim();
        let (ty, names) = text.split_once(' ').ok_or("declares no register")?;
        let ty = ty.strip_prefix('.').and_then(Ty::from_name).ok_or("of no type known here")?;
        let bits = ty.bits();
        for name in list(names) {
            let names = match name.split_once('<') {
                None => vec![name.to_string()],
                Some((stem, count)) => {
                    let count = count.strip_suffix('>').and_then(|c| c.trim().parse::<u32>().ok());
                    let count = count.filter(|&c| c <= 1024).ok_or("a count that is none")?;
                    (0..count).map(|i| format!("{stem}{i}")).collect()
                }
            };
            for name in names {
                let register = Register { slot: self.slots, bits };
                self.slots += 1;
                if let Some(scope) = self.scopes.last_mut() {
                    scope.insert(name, register);
                }
            }
        }
        Ok(())
    }

    fn register(&self, name: &str) -> Parsed<Register> {
        if let Some(number) = name.strip_prefix('$')
            && !number.starts_with('\u{1}')
        {
            let found = number.parse::<usize>().ok().and_then(|n| self.operands.get(n));
            return found.copied().ok_or_else(|| format!("`{name}` is no operand"));
        }
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        found.copied().ok_or_else(|| format!("`{name}` is no register"))
    }

    fn targets(&self, text: &str, ty: Ty) -> Parsed<Vec<Target>> {
        let (names, bits) = match vector(text).transpose()? {
            Some(names) => {
                let bits = ty.bits() / names.len() as u32;
                (names, bits)
            }
            // The second target of `setp` is the bit beside.
            None if ty == Ty::PRED => (text.split('|').map(str::trim).collect(), 1),
            None => (vec![text], ty.bits()),
        };
        let target = |(i, name): (usize, &&str)| {
            let register = if *name == "_" { None } else { Some(self.register(name)?) };
            let width = register.map_or(64, |r| r.bits);
            if register.is_some() && (width == 1) != (ty == Ty::PRED) {
                return Err(format!("`{name}` has not the type of the instruction"));
            }
            let slot = register.map(|r| r.slot);
            Ok(Target { slot, shift: i as u32 * bits, bits, width, signed: ty.is_signed() })
        };
        names.iter().enumerate().map(target).collect()
    }

    fn source(&mut self, text: &str, ty: Ty) -> Parsed<Source> {
        if let Some(names) = vector(text).transpose()? {
            let bits = ty.bits() / names.len() as u32;
            let part = Ty::bits_of(bits).ok_or("a vector of no width known here")?;
            let parts = names.iter().map(|n| self.source(n, part)).collect::<Parsed<_>>()?;
            return Ok(Source::Vector(parts, bits));
        }
        match text {
            "%globaltimer" | "%globaltimer_lo" => {
                self.reads_clock = true;
                return Ok(Source::Clock);
            }
            _ if text.starts_with('%') && self.register(text).is_err() => {
                return Err(format!("`{text}` is a register of the GPU"));
            }
            _ => {}
        }
        let (negated, name) = match text.strip_prefix('!') {
            Some(name) if ty == Ty::PRED => (true, name.trim()),
            _ => (false, text),
        };
        let digit = |c: char| c.is_ascii_digit() || c == '-' || c == '+' || c == '.';
        if name.starts_with(digit) {
            return literal(name, ty)
                .map(Source::Image)
                .ok_or_else(|| format!("`{name}` is no number here"));
        }
        let register = self.register(name)?;
        if (register.bits == 1) != (ty == Ty::PRED) {
            return Err(format!("`{name}` has not the type of the instruction"));
        }
        Ok(Source::Slot { slot: register.slot, negated })
    }
}

/// The image of a number: `12`, `-1`, `0x1fU`, `1.5`, `0f3F800000`, `0d3FF0000000000000`.
fn literal(text: &str, ty: Ty) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest.trim()),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let float = |x: f64| {
        let x = if negative { -x } else { x };
        let to = ty.float()?;
        Some(cast_bits(Scalar::F64, to, Rounding::Nearest, x.to_bits()))
    };
    let lower = digits.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0f").filter(|h| h.len() == 8) {
        let bits = u32::from_str_radix(hex, 16).ok()?;
        return match ty.float() {
            Some(_) => float(f64::from(f32::from_bits(bits))),
            None => Some(u64::from(bits) & mask(ty.bits())),
        };
    }
    if let Some(hex) = lower.strip_prefix("0d").filter(|h| h.len() == 16) {
        let bits = u64::from_str_radix(hex, 16).ok()?;
        return match ty.float() {
            Some(_) => float(f64::from_bits(bits)),
            None => Some(bits & mask(ty.bits())),
        };
    }
    let number = lower.trim_end_matches('u');
    let radix = |prefix: &str, radix| {
        number.strip_prefix(prefix).map(|d| i128::from_str_radix(d, radix).ok())
    };
    let octal = number.len() > 1 && number.chars().all(|c| c.is_ascii_digit());
    let integer = radix("0x", 16)
        .or_else(|| radix("0b", 2))
        .or_else(|| if octal { radix("0", 8) } else { None })
        .unwrap_or_else(|| number.parse().ok());
    match (integer, ty.float()) {
        (Some(x), None) => {
            Some((if negative { x.wrapping_neg() } else { x }) as u64 & mask(ty.bits()))
        }
        (Some(x), Some(_)) => float(x as f64),
        (None, Some(_)) => float(number.parse().ok()?),
        // `mov.b32 r, 1.0` writes the number's bits.
        (None, None) => {
            let x: f64 = number.parse().ok()?;
            let to = if ty.bits() == 64 { Scalar::F64 } else { Scalar::F32 };
            let x = if negative { -x } else { x };
            Some(cast_bits(Scalar::F64, to, Rounding::Nearest, x.to_bits()))
        }
    }
}
