//! What the annotation of a kernel's parameter says about the argument's type.

use naiad_ir::{Elem, Pointer, Scalar};

/// The demand that an annotation makes on a run-time parameter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Annotation {
    /// None, or one that says nothing about the type (`tl.tensor`, `torch.Tensor`, a comment).
    Free,
    /// The type, whatever the argument's own: `tl.int64`, `"fp16"`, `int`, `"*fp16"`.
    Forced(Elem),
    /// `tl.const`: a pointer through which nothing is stored.
    ConstPointer,
}

impl Annotation {
    /// Reads an annotation's text, quotes taken off.
    pub fn parse(text: &str) -> Annotation {
        let text = text.trim();
        if let Some(inner) = call_argument(text, "pointer_type") {
            let (element, rest) = inner.split_once(',').unwrap_or((inner, ""));
            let is_const = rest.replace(' ', "").contains("const=True");
            return match scalar(element) {
                Some(pointee) => Annotation::Forced(Elem::Pointer(Pointer { pointee, is_const })),
                None => Annotation::Free,
            };
        }
        if last_name(text) == "const" {
            return Annotation::ConstPointer;
        }
        match (scalar(text), text.parse::<Elem>()) {
            (Some(s), _) => Annotation::Forced(Elem::Scalar(s)),
            (None, Ok(elem @ Elem::Pointer(_))) => Annotation::Forced(elem),
            _ => Annotation::Free,
        }
    }
}

/// The scalar type that a name stands for: Python's own, Triton's (`tl.float16`), the short one
/// (`fp16`).
fn scalar(text: &str) -> Option<Scalar> {
    let text = text.trim();
    match text {
        "int" => return Some(Scalar::I32),
        "float" => return Some(Scalar::F32),
        "bool" | "u1" => return Some(Scalar::I1),
        _ => {}
    }
    Scalar::from_triton_name(last_name(text)).or_else(|| Scalar::from_name(text))
}

/// The last name of a dotted path: what it is does not depend on how the module was imported.
fn last_name(text: &str) -> &str {
    text.rsplit('.').next().unwrap_or(text).trim()
}

/// `inner` of `path.name(inner)`.
fn call_argument<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (callee, rest) = text.split_once('(')?;
    let inner = rest.trim_end().strip_suffix(')')?;
    (last_name(callee.trim()) == name).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_and_what_they_demand() {
        let forced = |s: Scalar| Annotation::Forced(s.into());
        let pointer =
            |pointee, is_const| Annotation::Forced(Elem::Pointer(Pointer { pointee, is_const }));
        let cases = [
            ("tl.int64", forced(Scalar::I64)),
            ("triton.language.uint32", forced(Scalar::U32)),
            ("i64", forced(Scalar::I64)),
            ("int", forced(Scalar::I32)),
            ("float", forced(Scalar::F32)),
            ("fp64", forced(Scalar::F64)),
            ("bool", forced(Scalar::I1)),
            ("tl.const", Annotation::ConstPointer),
            ("tl.pointer_type(tl.float16)", pointer(Scalar::F16, false)),
            ("tl.pointer_type(tl.int8, const=True)", pointer(Scalar::I8, true)),
            ("*fp16", pointer(Scalar::F16, false)),
            ("*kfp32", pointer(Scalar::F32, true)),
            ("tl.tensor", Annotation::Free),
            ("torch.Tensor", Annotation::Free),
            ("pointer to the input", Annotation::Free),
            ("float32[:]", Annotation::Free),
        ];
        for (text, want) in cases {
            assert_eq!(Annotation::parse(text), want, "{text}");
        }
    }
}
