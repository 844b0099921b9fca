//! Prints, by the function `vprintf` that the driver gives every module.
//!
//! It takes C's format as a text in global memory, and the arguments as C lays them out one behind the
//! other, which is done in memory of the thread's own. A line is what Triton prints of an element:
//! `pid (x, y, z) idx (i, j) prefix: (operand k) value`, each index as wide as its axis's extent.

use crate::emit::{Class, Operand};
use crate::writer::{Made, Writer};
use naiad_ir::scalar::Rounding;
use naiad_ir::thread::ThreadOp;
use naiad_ir::tile::print_label;
use naiad_ir::{Elem, Scalar, Type, Value};
use std::fmt::Write as _;

/// What a module's prints need outside of the function.
#[derive(Default)]
pub struct Prints {
    /// The formats, each once.
    formats: Vec<String>,
    /// Bytes that the arguments of one print take at most.
    bytes: usize,
}

impl Prints {
    fn format(&mut self, format: String) -> usize {
        let known = self.formats.iter().position(|f| *f == format);
        known.unwrap_or_else(|| {
            self.formats.push(format);
            self.formats.len() - 1
        })
    }

    /// In front of the function.
    pub fn outside(&self, kernel: &str) -> String {
        let mut out = String::new();
        if self.formats.is_empty() {
            return out;
        }
        out += ".extern .func (.param .b32 done) vprintf\n(\n\t.param .b64 format,\n\t.param .b64 arguments\n);\n\n";
        for (i, format) in self.formats.iter().enumerate() {
            let bytes: Vec<String> = format.bytes().chain([0]).map(|b| b.to_string()).collect();
            let (n, list) = (bytes.len(), bytes.join(", "));
            let _ = writeln!(out, "// {}", format.escape_default());
            let _ = writeln!(out, ".global .align 1 .b8 {kernel}_print{i}[{n}] = {{{list}}};\n");
        }
        out
    }

    /// Among the function's declarations.
    pub fn inside(&self) -> String {
        if self.bytes == 0 {
            return String::new();
        }
        format!("\t.local .align 8 .b8 printed[{}];\n", self.bytes)
    }
}

/// The conversion of C's for a value, and the type that it is passed as.
fn conversion(of: Type, hex: bool) -> (String, Scalar) {
    let Elem::Scalar(s) = of.elem else { return pointer(hex) };
    let wide = s.bits() == 64;
    if hex {
        let digits = s.bits().div_ceil(4);
        return match wide {
            true => (format!("0x%0{digits}llx"), Scalar::U64),
            false => (format!("0x%0{digits}x"), Scalar::U32),
        };
    }
    let (text, passed) = match (s.is_float(), s.is_signed(), wide) {
        (true, ..) => ("%f", Scalar::F64),
        (_, true, true) => ("%lld", Scalar::I64),
        (_, true, false) => ("%d", Scalar::I32),
        (_, false, true) => ("%llu", Scalar::U64),
        (_, false, false) => ("%u", Scalar::U32),
    };
    (text.to_string(), passed)
}

fn pointer(hex: bool) -> (String, Scalar) {
    let text = if hex { "0x%016llx" } else { "0x%llx" };
    (text.to_string(), Scalar::U64)
}

impl Writer<'_> {
    pub fn print(&mut self, op: &ThreadOp) -> Result<Made, String> {
        let ThreadOp::Print { prefix, hex, of, operand, operands, program, index, value } = op
        else {
            return Err("it is no print".to_string());
        };
        // What the user wrote is no format.
        let label = print_label(&prefix.0, *operands as usize).replace('%', "%%");
        let mut format = "pid (%u, %u, %u)".to_string();
        let mut passed = Vec::new();
        for &v in program {
            passed.push(self.one(v)?);
        }
        if let Some(value) = value {
            let widths = of.shape.dims().map(|n| format!("%{}u", n.to_string().len()));
            let widths: Vec<String> = widths.collect();
            for &v in index {
                passed.push(self.one(v)?);
            }
            let _ = write!(format, " idx ({})", widths.join(", "));
            format += &label;
            if *operands > 1 {
                let _ = write!(format, "(operand {operand}) ");
            }
            let (text, to) = conversion(*of, *hex);
            format += &text;
            passed.push(self.as_passed(*value, *hex, to)?);
        } else {
            format += &label;
        }
        format.push('\n');
        self.call_vprintf(format, &passed);
        Ok(Made::new())
    }

    /// A value as what C's conversion reads: its bits for a hexadecimal one, else its number.
    fn as_passed(&mut self, value: Value, hex: bool, to: Scalar) -> Result<Operand, String> {
        let x = self.one(value)?;
        let Some(from) = self.vector(value)?.elem.scalar() else { return Ok(x) };
        if !hex || from.is_bool() {
            return Ok(self.emit.cast(from, to, Rounding::Nearest, &[x])[0]);
        }
        let bits = match from.bits() {
            8 => Scalar::U8,
            16 => Scalar::U16,
            _ => return Ok(x),
        };
        let x = self.emit.bitcast(from.into(), bits.into(), x);
        Ok(self.emit.cast(bits, to, Rounding::Nearest, &[x])[0])
    }

    fn call_vprintf(&mut self, format: String, passed: &[Operand]) {
        let number = self.prints.format(format);
        let e = &mut self.emit;
        let mut at = 0usize;
        for &x in passed {
            let size = x.class().bits() as usize / 8;
            at = at.next_multiple_of(size);
            let x = e.reg(x);
            e.line(format_args!("st.local.{} [printed+{at}], {x}", x.class().ty()));
            at += size;
        }
        self.prints.bytes = self.prints.bytes.max(at.next_multiple_of(8));
        let pointer = |e: &mut crate::emit::Emit, space: &str, name: String| {
            let dst = e.fresh(Class::Double);
            e.line(format_args!("mov.u64 {dst}, {name}"));
            e.ins(&format!("cvta.{space}.u64"), Class::Double, [dst])
        };
        let text = pointer(e, "global", format!("{}_print{number}", self.name));
        let arguments = pointer(e, "local", "printed".to_string());
        let done = e.fresh(Class::Word);
        // Threads may come here one by one.
        e.body.push_str(
            "\t{\n\t.param .b64 format;\n\t.param .b64 arguments;\n\t.param .b32 done;\n",
        );
        e.line(format_args!("st.param.b64 [format], {text}"));
        e.line(format_args!("st.param.b64 [arguments], {arguments}"));
        e.line(format_args!("call (done), vprintf, (format, arguments)"));
        e.line(format_args!("ld.param.b32 {done}, [done]"));
        e.body.push_str("\t}\n");
    }
}
