//! Text form of a function: it parses back to the same IR.
//!
//! ```text
//! tile @add(%0 x: *fp32, %1 n: i32) {
//!   %2 = program_id axis=0 : i32
//!   %3, %4 = for %5, %6, %7 inits=[%8, %9] {
//!   ^(%10: i32, %11: fp32, %12: fp32):
//!     yield values=[%11, %12]
//!   } : fp32, fp32
//!   return
//! }
//! ```
//!
//! Values are numbered in the order of their appearance. The grammar knows no op: a line becomes a
//! [`RawOp`], from which the dialect's table makes the op. `#` starts a comment.

use crate::entities::{Block, Value};
use crate::function::Function;
use crate::op::{Dialect, OpInfo, RawAttr, RawOp};
use naiad_diag::{Diagnostic, Id, Loc, Place, Source};
use rustc_hash::FxHashMap;
use std::fmt::{self, Write};
use std::sync::Arc;

impl<D: Dialect> fmt::Display for Function<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer { func: self, names: FxHashMap::default(), out: String::new() };
        printer.function();
        f.write_str(&printer.out)
    }
}

struct Printer<'a, D: Dialect> {
    func: &'a Function<D>,
    names: FxHashMap<Value, usize>,
    out: String,
}

// Writing to a String cannot fail, so the results of `write!` are dropped.
impl<D: Dialect> Printer<'_, D> {
    fn function(&mut self) {
        let func = self.func;
        let _ = write!(self.out, "{} @{}(", D::KEYWORD, func.name);
        for (i, (&value, name)) in func.params().iter().zip(&func.param_names).enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            let number = self.define(value);
            let _ = write!(self.out, "{comma}%{number} {name}: {}", func.ty(value));
        }
        self.out.push_str(") {\n");
        self.ops(func.entry(), 1);
        self.out.push_str("}\n");
    }

    fn define(&mut self, value: Value) -> usize {
        let number = self.names.len();
        self.names.insert(value, number);
        number
    }

    /// A value that is used and not defined prints as `%?`: printing must not fail on broken IR.
    fn value(&self, value: Value) -> String {
        self.names.get(&value).map_or("%?".to_string(), |n| format!("%{n}"))
    }

    fn ops(&mut self, block: Block, depth: usize) {
        let func = self.func;
        for &inst in func.insts(block) {
            let indent = "  ".repeat(depth);
            let raw = func.op(inst).to_raw();
            let mut line = raw.name.clone();
            if let Some(suffix) = &raw.suffix {
                let _ = write!(line, ".{suffix}");
            }
            for (i, &v) in raw.operands.iter().enumerate() {
                let _ = write!(line, "{}{}", if i == 0 { " " } else { ", " }, self.value(v));
            }
            for (name, attr) in &raw.attrs {
                let _ = write!(line, " {name}={}", self.attr(attr));
            }
            let results = func.results(inst);
            let numbers: Vec<String> =
                results.iter().map(|&r| format!("%{}", self.define(r))).collect();
            self.out.push_str(&indent);
            if !numbers.is_empty() {
                let _ = write!(self.out, "{} = ", numbers.join(", "));
            }
            self.out.push_str(&line);
            for &region in &raw.regions {
                self.out.push_str(" {\n");
                let params = func.block_params(region);
                if !params.is_empty() {
                    let list: Vec<String> = params
                        .iter()
                        .map(|&p| format!("%{}: {}", self.define(p), func.ty(p)))
                        .collect();
                    let _ = writeln!(self.out, "{indent}^({}):", list.join(", "));
                }
                self.ops(region, depth + 1);
                let _ = write!(self.out, "{indent}}}");
            }
            if !results.is_empty() {
                let types: Vec<String> = results.iter().map(|&r| func.ty(r).to_string()).collect();
                let _ = write!(self.out, " : {}", types.join(", "));
            }
            self.out.push('\n');
        }
    }

    fn attr(&self, attr: &RawAttr) -> String {
        match attr {
            RawAttr::Word(w) => w.clone(),
            RawAttr::Value(v) => self.value(*v),
            RawAttr::List(list) => {
                let items: Vec<String> = list.iter().map(|a| self.attr(a)).collect();
                format!("[{}]", items.join(", "))
            }
        }
    }
}

/// Parses one function. The result is not verified.
pub fn parse<D: Dialect>(source: &Arc<Source>) -> Result<Function<D>, Box<Diagnostic>> {
    let mut parser = Parser::<D> {
        source,
        at: 0,
        func: Function::new(""),
        names: FxHashMap::default(),
        depth: 0,
    };
    parser.function()?;
    Ok(parser.func)
}

/// Deeper nesting than this is refused, so that no input overflows the stack.
const MAX_DEPTH: usize = 200;

struct Parser<'a, D: Dialect> {
    source: &'a Arc<Source>,
    at: usize,
    func: Function<D>,
    names: FxHashMap<String, Value>,
    depth: usize,
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

impl<D: Dialect> Parser<'_, D> {
    fn error<T>(&self, start: usize, message: impl Into<String>) -> Parsed<T> {
        let place = Place::new(self.source.clone(), start..self.at.max(start));
        Err(Box::new(Diagnostic::new(Id::IrSyntax, message).primary(place, "")))
    }

    fn function(&mut self) -> Parsed<()> {
        self.expect(D::KEYWORD)?;
        self.expect("@")?;
        self.func.name = self.word("the function's name")?;
        self.expect("(")?;
        while !self.eat(")") {
            let name = self.value_name()?;
            let param = self.word("the parameter's name")?;
            self.expect(":")?;
            let ty = self.ty()?;
            let value = self.func.add_param(param, ty);
            self.define(name, value)?;
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        self.expect("{")?;
        self.block(self.func.entry())?;
        self.skip_space();
        if self.at < self.source.text.len() {
            return self.error(self.at, "text after the function's end");
        }
        Ok(())
    }

    /// Ops up to and with the closing brace.
    fn block(&mut self, block: Block) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.error(self.at, "regions are nested too deeply");
        }
        if self.eat("^") {
            self.expect("(")?;
            while !self.eat(")") {
                let name = self.value_name()?;
                self.expect(":")?;
                let ty = self.ty()?;
                let value = self.func.add_block_param(block, ty);
                self.define(name, value)?;
                if !self.eat(",") {
                    self.expect(")")?;
                    break;
                }
            }
            self.expect(":")?;
        }
        while !self.eat("}") {
            self.op(block)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn op(&mut self, block: Block) -> Parsed<()> {
        self.skip_space();
        let start = self.at;
        let mut results = Vec::new();
        if self.peek() == Some('%') {
            results.push(self.value_name()?);
            while self.eat(",") {
                results.push(self.value_name()?);
            }
            self.expect("=")?;
        }
        let mut raw = RawOp::new(&self.word("an op's name")?);
        if self.peek_raw() == Some('.') {
            self.at += 1;
            raw.suffix = Some(self.word("a suffix")?);
        }
        // Operands stand on the op's own line: one on the next begins another op.
        if self.rest_of_line().trim_start().starts_with('%') {
            raw.operands.push(self.value()?);
            while self.eat(",") {
                raw.operands.push(self.value()?);
            }
        }
        loop {
            match self.peek() {
                // A word is an attribute only if `=` follows; otherwise it is the next op.
                Some(c) if is_word(c) => {
                    let mark = self.at;
                    let name = self.word("an attribute")?;
                    if !self.eat("=") {
                        self.at = mark;
                        break;
                    }
                    raw.attrs.push((name, self.attr()?));
                }
                Some('{') => {
                    self.expect("{")?;
                    let region = self.func.new_block();
                    raw.regions.push(region);
                    self.block(region)?;
                }
                _ => break,
            }
        }
        let mut types = Vec::new();
        if self.eat(":") {
            types.push(self.ty()?);
            while self.eat(",") {
                types.push(self.ty()?);
            }
        }
        raw.types = types.iter().map(D::Type::to_string).collect();
        let op = match D::Op::from_raw(raw) {
            Ok(op) => op,
            Err(e) => return self.error(start, e),
        };
        let inst = match self.func.push(block, op, Loc::NONE) {
            Ok(inst) => inst,
            Err(e) => return self.error(start, e),
        };
        let made: Vec<Value> = self.func.results(inst).to_vec();
        if made.len() != results.len() {
            let message = format!("the op has {} results, {} are named", made.len(), results.len());
            return self.error(start, message);
        }
        for (i, (name, value)) in results.into_iter().zip(made).enumerate() {
            let ty = self.func.ty(value);
            match types.get(i) {
                Some(&t) if t == ty => {}
                other => {
                    let said = other.map_or("nothing".to_string(), |t| t.to_string());
                    let message = format!("result {i} has type {ty}, the text says {said}");
                    return self.error(start, message);
                }
            }
            self.define(name, value)?;
        }
        Ok(())
    }

    fn attr(&mut self) -> Parsed<RawAttr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.error(self.at, "lists are nested too deeply");
        }
        let attr = match self.peek() {
            Some('%') => RawAttr::Value(self.value()?),
            Some('[') => {
                self.expect("[")?;
                let mut list = Vec::new();
                while !self.eat("]") {
                    list.push(self.attr()?);
                    if !self.eat(",") {
                        self.expect("]")?;
                        break;
                    }
                }
                RawAttr::List(list)
            }
            _ => RawAttr::Word(self.attr_word()?),
        };
        self.depth -= 1;
        Ok(attr)
    }

    /// A word of an attribute: anything up to white space, a comma or a closing bracket; text in
    /// parentheses, quotes or angle brackets may hold those.
    fn attr_word(&mut self) -> Parsed<String> {
        self.skip_space();
        let start = self.at;
        let (mut depth, mut quoted) = (0usize, false);
        while let Some(c) = self.peek_raw() {
            if quoted {
                if c == '\\' {
                    self.at += 1;
                } else if c == '"' {
                    quoted = false;
                }
            } else {
                match c {
                    '"' => quoted = true,
                    '(' | '<' => depth += 1,
                    ')' | '>' if depth > 0 => depth -= 1,
                    _ if depth > 0 => {}
                    ',' | ']' | '}' | '{' | ')' => break,
                    c if c.is_whitespace() => break,
                    _ => {}
                }
            }
            self.at += self.peek_raw().map_or(0, char::len_utf8);
        }
        if start == self.at {
            return self.error(start, "an attribute's value is missing");
        }
        Ok(self.source.text[start..self.at].to_string())
    }

    fn ty(&mut self) -> Parsed<D::Type> {
        self.skip_space();
        let start = self.at;
        let mut depth = 0usize;
        while let Some(c) = self.peek_raw() {
            match c {
                '<' => depth += 1,
                '>' if depth > 0 => depth -= 1,
                c if is_word(c) || c == '*' => {}
                _ => break,
            }
            self.at += c.len_utf8();
        }
        match self.source.text[start..self.at].parse() {
            Ok(ty) => Ok(ty),
            Err(e) => self.error(start, e),
        }
    }

    fn value_name(&mut self) -> Parsed<String> {
        self.expect("%")?;
        self.word("a value's name")
    }

    fn value(&mut self) -> Parsed<Value> {
        self.skip_space();
        let start = self.at;
        let name = self.value_name()?;
        match self.names.get(&name) {
            Some(&v) => Ok(v),
            None => self.error(start, format!("no value `%{name}` is defined before here")),
        }
    }

    fn define(&mut self, name: String, value: Value) -> Parsed<()> {
        if self.names.insert(name.clone(), value).is_some() {
            return self.error(self.at, format!("`%{name}` is defined twice"));
        }
        Ok(())
    }

    fn word(&mut self, what: &str) -> Parsed<String> {
        self.skip_space();
        let start = self.at;
        while self.peek_raw().is_some_and(is_word) {
            self.at += self.peek_raw().map_or(0, char::len_utf8);
        }
        if start == self.at {
            return self.error(start, format!("expected {what}"));
        }
        Ok(self.source.text[start..self.at].to_string())
    }

    fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { self.error(self.at, format!("expected `{token}`")) }
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.source.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.peek_raw()
    }

    fn rest_of_line(&self) -> &str {
        self.source.text[self.at..].split('\n').next().unwrap_or("")
    }

    fn peek_raw(&self) -> Option<char> {
        self.source.text[self.at..].chars().next()
    }

    fn skip_space(&mut self) {
        while let Some(c) = self.peek_raw() {
            if c == '#' {
                let rest = &self.source.text[self.at..];
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if c.is_whitespace() {
                self.at += c.len_utf8();
            } else {
                break;
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
