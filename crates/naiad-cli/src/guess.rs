//! Types of a kernel's arguments, guessed.
//!
//! Names and annotations come first: `x_ptr`, `Q` and the like are pointers, `eps` is a float, most
//! others are integers. Where the kernel does not compile with that, it says where: then one parameter
//! after the other is taken for something else, those of the line first, until the compiler comes
//! further. A guess that compiles may still be wrong, so what it says about types is not repeated.

use naiad::{
    Annotation, Compiled, Diagnostic, Elem, HostValue, Id, Kernel, LiveHost, Param, ParamSpec,
    Pointer, Scalar, Type, Value,
};
use std::sync::Arc;

/// Compilations that one kernel may take.
const MAX_TRIES: usize = 200;

/// A specialization made up from what the text says.
pub struct Guess {
    params: Vec<Choice>,
}

struct Choice {
    name: String,
    /// What it is, and whether the text says so.
    spec: ParamSpec,
    said: bool,
    is_constexpr: bool,
}

impl Guess {
    pub fn new<H: LiveHost>(kernel: &Kernel<H>) -> Guess {
        let params = kernel.signature().params.iter().map(|param| {
            let said = said(kernel, param);
            Choice {
                name: param.info.name.clone(),
                said: said.is_some(),
                spec: said.unwrap_or_else(|| guessed(kernel, param)),
                is_constexpr: param.info.is_constexpr,
            }
        });
        Guess { params: params.collect() }
    }

    /// Compiles the kernel, changing what was guessed until it does or nothing helps. Says besides
    /// whether the text said all there was to know.
    pub fn compile<H: LiveHost>(
        mut self,
        kernel: &Kernel<H>,
    ) -> (bool, Result<Arc<Compiled>, Box<Diagnostic>>) {
        let all_said = self.params.iter().all(|c| c.said);
        let mut tries = 0;
        let mut attempt = |params: &[Choice]| {
            tries += 1;
            let specs: Vec<ParamSpec> = params.iter().map(|c| c.spec.clone()).collect();
            let done = kernel.compile(&specs).map_err(|e| e.into_diagnostic());
            (done, tries >= MAX_TRIES)
        };
        let mut failed = match attempt(&self.params) {
            (Ok(compiled), _) => return (all_said, Ok(compiled)),
            (Err(e), _) => e,
        };
        'further: loop {
            if all_said || bears(&failed) {
                return (all_said, Err(failed));
            }
            for change in self.changes(&failed) {
                let before: Vec<ParamSpec> = self.params.iter().map(|c| c.spec.clone()).collect();
                for (i, spec) in change {
                    self.params[i].spec = spec;
                }
                let (done, last) = attempt(&self.params);
                match done {
                    Ok(compiled) => return (all_said, Ok(compiled)),
                    Err(e) if reached(&e) > reached(&failed) && !last => {
                        failed = e;
                        continue 'further;
                    }
                    Err(_) => {
                        self.params.iter_mut().zip(before).for_each(|(c, spec)| c.spec = spec)
                    }
                }
                if last {
                    return (all_said, Err(failed));
                }
            }
            return (all_said, Err(failed));
        }
    }

    /// What to try next: integers behind all pointers, since operators of integers want two; then each parameter as something else.
    fn changes(&self, failed: &Diagnostic) -> Vec<Vec<(usize, ParamSpec)>> {
        let order = self.order(failed);
        let is_pointer = |&i: &usize| self.params[i].spec == pointer(Scalar::F32);
        let all: Vec<usize> = order.iter().copied().filter(is_pointer).collect();
        let integers = all.iter().map(|&i| (i, pointer(Scalar::I32))).collect();
        let single = order.iter().flat_map(|&i| {
            let others = alternatives(&self.params[i]).into_iter();
            others.map(move |spec| vec![(i, spec)])
        });
        std::iter::once(integers).filter(|c: &Vec<_>| c.len() > 1).chain(single).collect()
    }

    /// Parameters that were guessed: first those that stand where it fails.
    fn order(&self, failed: &Diagnostic) -> Vec<usize> {
        let place = failed.called_from.last().or(failed.place());
        let text = place.map_or("", |p| {
            let text = &p.source.text;
            let start = text.get(..p.range.start).and_then(|t| t.rfind('\n')).map_or(0, |i| i + 1);
            let end = text
                .get(p.range.end..)
                .and_then(|t| t.find('\n'))
                .map_or(text.len(), |i| p.range.end + i);
            text.get(start..end).unwrap_or("")
        });
        let named = |i: &usize| naiad::names_in(text).any(|n| n == self.params[*i].name);
        let open: Vec<usize> = (0..self.params.len()).filter(|&i| !self.params[i].said).collect();
        let (mut first, rest): (Vec<usize>, Vec<usize>) = open.into_iter().partition(named);
        first.extend(rest);
        first
    }
}

/// How far the compiler came: in the kernel, and in what it calls there.
fn reached(e: &Diagnostic) -> (usize, usize) {
    let at = |p: Option<&naiad::Place>| p.map_or(0, |p| p.range.start);
    (at(e.called_from.last().or(e.place())), at(e.place()))
}

/// Whether an error holds whatever the arguments are.
pub fn bears(d: &Diagnostic) -> bool {
    match d.id {
        Id::SyntaxError | Id::UnknownTlName | Id::BadGlobal | Id::Internal => true,
        // Whoever raises refuses something, which may be a guess.
        Id::UnsupportedPython => d.place().is_none_or(|p| !p.text().starts_with("raise")),
        // A name that nothing assigns; one that some path assigns may depend on a guess.
        Id::UndefinedName => d.place().is_some_and(|p| !is_assigned(&p.source.text, p.text())),
        // Of literals only: an extent made from a guess is no news.
        Id::BadShape => d.place().is_some_and(|place| {
            naiad::names_in(place.text())
                .all(|w| ["tl", "triton", "language", "arange", "zeros", "full"].contains(&w))
        }),
        _ => false,
    }
}

/// Whether a name stands where a text may assign to it: ahead of an `=`, or in the head of a loop.
fn is_assigned(text: &str, name: &str) -> bool {
    let has = |part: &str| naiad::names_in(part).any(|n| n == name);
    text.lines().any(|line| {
        let line = line.split('#').next().unwrap_or(line);
        let ahead = line.rsplit_once('=').is_some_and(|(ahead, _)| has(ahead));
        ahead || line.trim_start().starts_with("for ") && has(line)
    })
}

/// What default and annotation say.
fn said<H: LiveHost>(kernel: &Kernel<H>, param: &Param) -> Option<ParamSpec> {
    if param.info.variadic {
        return Some(ParamSpec::Tuple { items: Vec::new(), names: None });
    }
    if let Annotation::Forced(elem) = param.annotation {
        return Some(ParamSpec::Value(Type { elem, ..Type::I32 }));
    }
    match kernel.default(&param.info.name) {
        Ok(Value::Host(value)) if param.info.has_default && param.info.is_constexpr => {
            Some(ParamSpec::Constexpr(value))
        }
        _ => None,
    }
}

fn pointer(pointee: Scalar) -> ParamSpec {
    ParamSpec::Value(Type::pointer(pointee))
}

fn number(scalar: Scalar) -> ParamSpec {
    ParamSpec::Value(Type { elem: Elem::Scalar(scalar), ..Type::I32 })
}

const INDEX_WORDS: &[&str] = &[
    "idx", "index", "indices", "ids", "seqlen", "cu_", "table", "label", "target", "slot",
    "offsets", "lens",
];
const FLOAT_WORDS: &[&str] =
    &["eps", "scale", "alpha", "beta", "momentum", "temperature", "theta", "softcap", "prob", "lr"];
const SIZE_WORDS: &[&str] =
    &["stride", "num", "size", "len", "dim", "rows", "cols", "count", "seed", "batch", "heads"];

fn guessed<H: LiveHost>(kernel: &Kernel<H>, param: &Param) -> ParamSpec {
    let name = param.info.name.as_str();
    let lower = name.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|w| lower.contains(w));
    if param.info.is_constexpr {
        return ParamSpec::Constexpr(match () {
            () if lower.contains("dtype") => HostValue::DType(Elem::Scalar(Scalar::F32)),
            () if lower.starts_with("act") => HostValue::Str(String::new()),
            () => HostValue::Int(16),
        });
    }
    if let Annotation::ConstPointer = param.annotation {
        return ParamSpec::Value(Type {
            elem: Elem::Pointer(Pointer { pointee: Scalar::F32, is_const: true }),
            ..Type::I32
        });
    }
    if param.info.has_default
        && let Ok(Value::Host(value)) = kernel.default(name)
    {
        match value {
            HostValue::Int(_) => return number(Scalar::I32),
            HostValue::Float(_) => return number(Scalar::F32),
            HostValue::Bool(_) => return number(Scalar::I1),
            _ => {}
        }
    }
    let is_pointer = lower.contains("ptr") || lower.contains("pointer");
    let is_capital = name.starts_with(|c: char| c.is_ascii_uppercase());
    match () {
        () if is_pointer && has(INDEX_WORDS) => pointer(Scalar::I32),
        () if is_pointer => pointer(Scalar::F32),
        () if ["m", "n", "k", "b", "h"].contains(&lower.as_str()) => number(Scalar::I32),
        () if has(SIZE_WORDS) => number(Scalar::I32),
        () if has(FLOAT_WORDS) => number(Scalar::F32),
        () if is_capital || name.len() == 1 => pointer(Scalar::F32),
        () => number(Scalar::I32),
    }
}

fn alternatives(choice: &Choice) -> Vec<ParamSpec> {
    let all = if choice.is_constexpr {
        let integers = [16, 1, 0, 32, 64, 128, 4].map(HostValue::Int);
        let others = [
            HostValue::Bool(false),
            HostValue::None,
            HostValue::DType(Elem::Scalar(Scalar::F32)),
            HostValue::Str(String::new()),
        ];
        integers.into_iter().chain(others).map(ParamSpec::Constexpr).collect()
    } else {
        vec![
            pointer(Scalar::F32),
            number(Scalar::I32),
            pointer(Scalar::I32),
            number(Scalar::F32),
            pointer(Scalar::F16),
            pointer(Scalar::I8),
            pointer(Scalar::I1),
            ParamSpec::Constexpr(HostValue::None),
        ]
    };
    all.into_iter().filter(|spec: &ParamSpec| *spec != choice.spec).collect()
}
