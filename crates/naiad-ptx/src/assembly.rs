//! Inline assembly: a text with operands `$0`, `$1`, … and LLVM's constraints.
//!
//! The text stands in braces, so that its registers and labels are its own. Operands are registers, or
//! constants where the constraint asks for one. A value of fewer bits than its register is extended by
//! zeros, and of a result the low bits count, as [`naiad_ir::ptx_asm`] has it.

use crate::emit::{Class, Emit, Lanes, Operand};
use naiad_ir::Scalar;
use naiad_ir::thread::ThreadElem;
use smallvec::smallvec;
use std::fmt::Write;

impl Emit {
    pub fn assembly(
        &mut self,
        text: &str,
        constraints: &str,
        args: &[(ThreadElem, Operand)],
        results: &[Scalar],
    ) -> Result<Vec<Lanes>, String> {
        let words: Vec<&str> = constraints
            .split(',')
            .map(str::trim)
            .filter(|w| !w.is_empty() && !w.starts_with('~'))
            .collect();
        let is_output = |w: &&&str| w.starts_with('=');
        let outputs: Vec<&str> = words.iter().filter(is_output).copied().collect();
        let inputs: Vec<&str> = words.iter().filter(|w| !is_output(w)).copied().collect();
        if (outputs.len(), inputs.len()) != (results.len(), args.len()) {
            return Err(format!(
                "the constraints `{constraints}` name {} registers for results and {} for operands; there are {} and {}",
                outputs.len(),
                inputs.len(),
                results.len(),
                args.len()
            ));
        }
        let mut operands = Vec::new();
        for word in &outputs {
            let class = class(word).ok_or_else(|| unknown(word))?;
            operands.push(self.fresh(class));
        }
        for (word, &(elem, x)) in inputs.iter().zip(args) {
            let operand = match word.parse::<usize>() {
                Ok(tied) => {
                    let target = *operands[..outputs.len()]
                        .get(tied)
                        .ok_or_else(|| format!("the constraint `{word}` ties to no result"))?;
                    let x = self.fitted(elem, x, target.class(), word)?;
                    self.mov(target, x);
                    target
                }
                Err(_) if matches!(*word, "n" | "i") => match x {
                    Operand::Imm(..) => x,
                    Operand::Reg(..) => {
                        return Err(format!("the constraint `{word}` wants a constant"));
                    }
                },
                Err(_) => {
                    let class = class(word).ok_or_else(|| unknown(word))?;
                    let x = self.fitted(elem, x, class, word)?;
                    // The text may write to its operands.
                    self.copy(x)
                }
            };
            operands.push(operand);
        }
        let text = substituted(text, &operands)?;
        let end = if is_open(&text) { "\n;" } else { "" };
        let _ = writeln!(self.body, "\t{{\n{text}{end}\n\t}}");
        results
            .iter()
            .zip(&operands)
            .map(|(&of, &register)| Ok(smallvec![self.taken(of, register)?]))
            .collect()
    }

    /// An operand in a register of this class.
    fn fitted(
        &mut self,
        elem: ThreadElem,
        x: Operand,
        class: Class,
        word: &str,
    ) -> Result<Operand, String> {
        if elem.bits() == 8 && class.bits() >= 16 {
            let byte = self.extend_byte(Scalar::U8.into(), x);
            return Ok(self.resized(byte, class));
        }
        if elem.bits() > class.bits() || elem.bits() == 1 && class != Class::Pred {
            return Err(format!("{elem} does not fit the constraint `{word}`"));
        }
        Ok(self.resized(x, class))
    }

    /// A result out of its register.
    fn taken(&mut self, of: Scalar, register: Operand) -> Result<Operand, String> {
        if of.bits() > register.class().bits() || of.is_bool() != (register.class() == Class::Pred)
        {
            return Err(format!(
                "a result of {of} is in a register of {} bits",
                register.class().bits()
            ));
        }
        let x = self.resized(register, Class::of(of.into()));
        Ok(if of.bits() == 8 { self.extend_byte(of.into(), x) } else { x })
    }

    /// An image in another class, extended by zeros or cut.
    fn resized(&mut self, x: Operand, class: Class) -> Operand {
        if x.class() == class {
            return x;
        }
        let x = self.reg(x);
        self.ins(&format!("cvt.u{}.u{}", class.bits(), x.class().bits()), class, [x])
    }
}

/// Whether the last statement lacks its semicolon, which [`naiad_ir::ptx_asm`] does without.
fn is_open(text: &str) -> bool {
    let code = |line: &str| line.split("//").next().unwrap_or_default().trim_end().to_string();
    let last = text.lines().rev().map(code).find(|line| !line.is_empty());
    last.is_some_and(|line| !line.ends_with([';', '}', ':']))
}

fn unknown(word: &str) -> String {
    format!(
        "the constraint `{word}` is not known here: there are r, f, h, c, l, d, b, n, i and numbers"
    )
}

/// The registers that a constraint stands for.
fn class(word: &str) -> Option<Class> {
    match word.trim_start_matches(['=', '&']) {
        "r" | "f" => Some(Class::Word),
        "h" | "c" => Some(Class::Half),
        "l" | "d" => Some(Class::Double),
        "b" => Some(Class::Pred),
        _ => None,
    }
}

/// The text with `$0` or `${0}` replaced, and `$$` by a dollar sign.
fn substituted(text: &str, operands: &[Operand]) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let braced = after.strip_prefix('{');
        let digits = braced.unwrap_or(after);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let (number, after) = digits.split_at(end);
        let operand = number.parse::<usize>().ok().and_then(|n| operands.get(n));
        let operand = operand.ok_or_else(|| format!("`${number}` is no operand"))?;
        let _ = write!(out, "{operand}");
        rest = match braced {
            None => after,
            // What follows a colon says how to print an operand, of which a register has one way.
            Some(_) => after.split_once('}').ok_or("`${` has no end")?.1,
        };
    }
    out.push_str(rest);
    Ok(out)
}
