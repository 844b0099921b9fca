//! A specialization written as text: `x=*fp32, n=i32, BLOCK=1024, ACT="gelu"`.

use crate::annotation::Annotation;
use crate::specialize::Specialization;
use crate::{Error, HostValue, Kernel, LiveHost, ParamSpec, Result, Value};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::{Shape, Type};

impl<H: LiveHost> Kernel<H> {
    /// Reads a specialization. Each parameter is given a type (`i32`, `*fp16`), or a value, which
    /// then counts as in a launch; those left out have their defaults. As in Triton, `i32:16` and
    /// `*fp16:16` say by what a number or an address is divisible, which is for GPUs.
    pub fn parse_specs(&self, text: &str) -> Result<Vec<ParamSpec>> {
        Ok(self.parse_hinted(text)?.0)
    }

    /// The same, with what is said of the arguments of the code: a type counts as one.
    fn parse_hinted(&self, text: &str) -> Result<(Vec<ParamSpec>, Vec<Option<u64>>)> {
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
        let mut divisors = Vec::new();
        for (param, given) in signature.params.iter().zip(given) {
            let value = match given {
                None if param.info.has_default => self.default(&param.info.name)?,
                None => return Err(bad(format!("the type of `{}` is missing", param.info.name))),
                Some(text) if !param.info.is_constexpr && hint(text).is_some() => {
                    let (ty, by) = hint(text).unwrap_or((text, 1));
                    let Annotation::Forced(elem) = Annotation::parse(ty) else {
                        return Err(bad(format!("`{ty}` is no type")));
                    };
                    special.specs.push(ParamSpec::Value(Type { elem, shape: Shape::SCALAR }));
                    divisors.push(Some(by));
                    continue;
                }
                Some(text) => match Annotation::parse(text) {
                    Annotation::Forced(elem) if param.info.is_constexpr => {
                        Value::Host(HostValue::DType(elem))
                    }
                    Annotation::Forced(elem) => {
                        special.specs.push(ParamSpec::Value(Type { elem, shape: Shape::SCALAR }));
                        divisors.push(None);
                        continue;
                    }
                    Annotation::Free | Annotation::ConstPointer => Value::Host(literal(text)?),
                },
            };
            special.push(signature, value)?;
            divisors.resize(divisors.len() + special.values.args.len(), None);
            special.values.args.clear();
        }
        Ok((special.specs, divisors))
    }
}

#[cfg(feature = "cuda")]
impl<H: LiveHost> Kernel<H> {
    /// PTX for a specialization in text and a chip of this compute capability, times 10; needs no GPU.
    /// Addresses are taken to be divisible by 16, as allocators give them, unless the text says otherwise.
    pub fn ptx(
        &self,
        text: &str,
        config: &crate::LaunchConfig,
        capability: u32,
    ) -> Result<crate::Ptx> {
        let (specs, divisors) = self.parse_hinted(text)?;
        let config = crate::LaunchConfig {
            cuda_capability: Some((capability / 10, capability % 10)),
            ..*config
        };
        let compiled = self.compile_as(&specs, &config)?;
        let func = &compiled.func;
        let param = |(&param, divisor): (&naiad_ir::Value, Option<u64>)| {
            let usual = func.ty(param).is_pointer().then_some(16);
            naiad_opt::ranges::Param { range: None, divisible: divisor.or(usual) }
        };
        let params = func.params().iter().zip(divisors).map(param).collect();
        let inputs = naiad_opt::ranges::Inputs { grid: None, params };
        crate::ptx(func, &inputs, &config.target(capability))
    }
}

/// A type with what it is divisible by: `i32:16`.
fn hint(text: &str) -> Option<(&str, u64)> {
    let (ty, by) = text.rsplit_once(':')?;
    let by: u64 = by.trim().parse().ok()?;
    Some((ty.trim(), by)).filter(|_| by.is_power_of_two())
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
