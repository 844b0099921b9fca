//! A specialization written as text: `x=*fp32, n=i32, BLOCK=1024, ACT="gelu"`.

use crate::annotation::Annotation;
use crate::specialize::Specialization;
use crate::{Error, HostValue, Kernel, LiveHost, ParamSpec, Result, Value};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::{Shape, Type};

impl<H: LiveHost> Kernel<H> {
    /// Reads a specialization. Each parameter is given a type (`i32`, `*fp16`), or a value, which
    /// then counts as in a launch; those left out have their defaults.
    pub fn parse_specs(&self, text: &str) -> Result<Vec<ParamSpec>> {
        let signature = self.signature();
        let mut given: Vec<Option<&str>> = vec![None; signature.params.len()];
        for item in items(text) {
            let (name, value) =
                item.split_once('=').ok_or_else(|| bad(format!("`{item}` is not `name=type`")))?;
            let index = signature.index_of(name.trim());
            let index = index.ok_or_else(|| {
                bad(format!("`{}` has no parameter `{}`", self.name(), name.trim()))
            })?;
            given[index] = Some(value.trim());
        }
        let mut special = Specialization::new(signature.params.len());
        for (param, given) in signature.params.iter().zip(given) {
            let value = match given {
                None if param.info.has_default => self.default(&param.info.name)?,
                None => return Err(bad(format!("the type of `{}` is missing", param.info.name))),
                Some(text) => match Annotation::parse(text) {
                    Annotation::Forced(elem) if param.info.is_constexpr => {
                        Value::Host(HostValue::DType(elem))
                    }
                    Annotation::Forced(elem) => {
                        special.specs.push(ParamSpec::Value(Type { elem, shape: Shape::SCALAR }));
                        continue;
                    }
                    Annotation::Free | Annotation::ConstPointer => Value::Host(literal(text)?),
                },
            };
            special.push(signature, value)?;
        }
        Ok(special.specs)
    }
}

/// Splits at commas outside quotes.
fn items(text: &str) -> Vec<&str> {
    let mut quote = None;
    let split = text.split(move |c: char| {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(q), _) if q == c => quote = None,
            _ => {}
        }
        c == ',' && quote.is_none()
    });
    split.map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// A value as Python writes it.
fn literal(text: &str) -> Result<HostValue> {
    let quoted = ['"', '\''].iter().find_map(|&q| text.strip_prefix(q)?.strip_suffix(q));
    if let Some(inner) = quoted {
        return Ok(HostValue::Str(inner.to_string()));
    }
    match text {
        "None" => return Ok(HostValue::None),
        "True" => return Ok(HostValue::Bool(true)),
        "False" => return Ok(HostValue::Bool(false)),
        _ => {}
    }
    let int = text.parse().ok().map(HostValue::Int);
    int.or_else(|| text.parse().ok().map(HostValue::Float)).ok_or_else(|| {
        bad(format!("`{text}` is neither a type (`i32`, `*fp16`) nor a value (`16`, `0.5`, `True`, `None`, `\"text\"`)"))
    })
}

fn bad(message: String) -> Error {
    Diagnostic::new(Id::BadLaunch, message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_and_literals() {
        assert_eq!(items("x=*fp32, s=\"a,b\",n = 1,"), ["x=*fp32", "s=\"a,b\"", "n = 1"]);
        assert_eq!(literal("'a'").unwrap(), HostValue::Str("a".into()));
        assert_eq!(literal("-3").unwrap(), HostValue::Int(-3));
        assert_eq!(literal("1e-5").unwrap(), HostValue::Float(1e-5));
        assert!(literal("relu").is_err());
    }
}
