//! Each row of the table of [`super`], with a name for what comes out.

use super::*;
use crate::Signature;
use naiad_diag::Id;
use naiad_front::{KernelInfo, ParamInfo};

fn signature(annotation: Option<&str>, specialize: bool) -> Signature {
    let info = ParamInfo {
        name: "x".into(),
        annotation: annotation.map(str::to_string),
        has_default: false,
        is_constexpr: annotation == Some("tl.constexpr"),
        variadic: false,
    };
    let mut s = Signature::new(
        &KernelInfo { name: "k".into(), params: vec![info], places: Vec::new() },
        &[],
    );
    s.params[0].specialize = specialize;
    s
}

fn text(spec: &ParamSpec) -> String {
    match spec {
        ParamSpec::Value(ty) => ty.to_string(),
        ParamSpec::Constexpr(v) => format!("constexpr {v:?}"),
        ParamSpec::Tuple { items, .. } => {
            format!("({})", items.iter().map(text).collect::<Vec<_>>().join(", "))
        }
        ParamSpec::Descriptor(d) => format!("descriptor of blocks {}", d.block),
    }
}

fn push(signature: &Signature, value: Value) -> Result<(String, Vec<u64>)> {
    let mut s = Specialization::new(1);
    s.push(signature, value)?;
    let bits = s.values.args.iter().map(|a| match a {
        Arg::Scalar(bits) => *bits,
        Arg::Tensor(t) => t.address as u64,
    });
    Ok((text(&s.specs[0]), bits.collect()))
}

fn tensor(elem: Scalar) -> Value {
    Value::Tensor(Tensor {
        elem,
        address: 64,
        storage: 64..128,
        view: None,
        writable: true,
        location: Location::Host,
    })
}

#[test]
fn types_follow_values_and_annotations() {
    let none = || Value::Host(HostValue::None);
    // Annotation, whether specialized, value; specialization and run-time images wanted.
    type Case = (Option<&'static str>, bool, Value, &'static str, Vec<u64>);
    let cases: Vec<Case> = vec![
        (None, true, Value::from(7), "i32", vec![7]),
        (None, true, Value::from(-1), "i32", vec![0xffff_ffff]),
        (None, true, Value::from(1), "constexpr Int(1)", vec![]),
        (None, false, Value::from(1), "i32", vec![1]),
        (None, true, Value::from(1u64 << 31), "i64", vec![1 << 31]),
        (None, true, Value::from(1u64 << 63), "u64", vec![1 << 63]),
        (None, true, Value::from(true), "i1", vec![1]),
        (None, true, Value::from(1e300), "fp32", vec![f32::INFINITY.to_bits() as u64]),
        (None, true, none(), "constexpr None", vec![]),
        (None, true, tensor(Scalar::BF16), "*bf16", vec![64]),
        (
            None,
            true,
            Value::tuple(vec![Value::from(1), Value::from(2), none()]),
            "(constexpr Int(1), i32, constexpr None)",
            vec![2],
        ),
        // The elements of a tuple are specialized on all the same.
        (None, false, Value::tuple(vec![Value::from(1)]), "(constexpr Int(1))", vec![]),
        (Some("tl.int64"), true, Value::from(1), "i64", vec![1]),
        (Some("tl.int8"), true, Value::from(-1), "i8", vec![0xff]),
        (Some("tl.float64"), true, Value::from(3), "fp64", vec![3f64.to_bits()]),
        (Some("bool"), true, Value::from(3), "i1", vec![1]),
        (Some("int"), true, Value::from(true), "i32", vec![1]),
        (Some("tl.const"), true, tensor(Scalar::F32), "*kfp32", vec![64]),
        (Some("*fp16"), true, tensor(Scalar::I16), "*fp16", vec![64]),
        (Some("tl.constexpr"), true, Value::from(16), "constexpr Int(16)", vec![]),
        (Some("tl.constexpr"), true, Value::from("tanh"), "constexpr Str(\"tanh\")", vec![]),
        (Some("torch.Tensor"), true, tensor(Scalar::F32), "*fp32", vec![64]),
    ];
    for (annotation, specialize, value, want, bits) in cases {
        let what = format!("{value:?} under {annotation:?}");
        assert_eq!(
            push(&signature(annotation, specialize), value).unwrap(),
            (want.to_string(), bits),
            "{what}"
        );
    }
}

#[test]
fn what_is_no_argument_is_explained() {
    let cases = [
        (None, Value::from("gelu"), "argument `x` of `k` cannot be the str \"gelu\""),
        (None, Value::from(HostValue::DType(Scalar::F32.into())), "cannot be the dtype float32"),
        (None, Value::from(HostValue::Int(1 << 64)), "it has more than 64 bits"),
        (
            Some("tl.constexpr"),
            tensor(Scalar::F32),
            "is constexpr and cannot be a tensor of float32",
        ),
        (Some("tl.int8"), Value::from(300), "is annotated int8, which cannot hold 300"),
        (Some("tl.int32"), Value::from(0.5), "is annotated int32 and cannot be the float 0.5"),
        (Some("tl.int32"), tensor(Scalar::F32), "is annotated int32, which no tensor can be"),
        (Some("*fp16"), Value::from(4096), "is annotated a pointer and cannot be the int 4096"),
    ];
    for (annotation, value, want) in cases {
        let error = push(&signature(annotation, true), value).unwrap_err();
        assert_eq!(error.id(), Id::BadLaunch);
        assert!(error.to_string().contains(want), "{error}");
    }
}

#[test]
fn keys_tell_values_apart() {
    let values = [
        HostValue::None,
        HostValue::Bool(true),
        HostValue::Int(1),
        HostValue::Float(1.0),
        HostValue::Float(0.0),
        HostValue::Float(-0.0),
        HostValue::Str("a".into()),
        HostValue::Builtin("a".into()),
        HostValue::DType(Scalar::F32.into()),
        HostValue::Tuple { items: vec![HostValue::Int(1)], names: None },
        HostValue::Tuple { items: vec![HostValue::Int(1)], names: Some(["n".to_string()].into()) },
        HostValue::Constexpr(Box::new(HostValue::Int(1))),
    ];
    let key = |v: &HostValue| {
        let mut out = Vec::new();
        encode(v, &mut out);
        out
    };
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate() {
            assert_eq!(key(a) == key(b), i == j, "{a:?} {b:?}");
        }
    }
    assert_eq!(key(&HostValue::Float(f64::NAN)), key(&HostValue::Float(f64::NAN)));
}

#[test]
fn specs_are_the_same_where_their_encodings_are() {
    let constants = [
        HostValue::None,
        HostValue::Bool(true),
        HostValue::Int(1),
        HostValue::Int(2),
        HostValue::Float(1.0),
        HostValue::Float(0.0),
        HostValue::Float(-0.0),
        HostValue::Float(f64::NAN),
        HostValue::Str("a".into()),
        HostValue::Function(crate::FnRef(1)),
        HostValue::Constexpr(Box::new(HostValue::Int(1))),
    ];
    let mut specs: Vec<ParamSpec> = constants.map(ParamSpec::Constexpr).to_vec();
    let pointer = Pointer::to(Scalar::F32);
    for elem in [
        Elem::Scalar(Scalar::I32),
        Elem::Scalar(Scalar::F32),
        Elem::Pointer(pointer),
        Elem::Pointer(Pointer { is_const: true, ..pointer }),
    ] {
        specs.push(ParamSpec::Value(Type { elem, shape: Shape::SCALAR }));
    }
    specs.push(ParamSpec::Tuple { items: specs.clone(), names: None });
    let encoded = |spec| {
        let mut out = Vec::new();
        encode_spec(spec, &mut out);
        out
    };
    for a in &specs {
        for b in &specs {
            assert_eq!(same_spec(a, b), encoded(a) == encoded(b), "{a:?} {b:?}");
        }
    }
}
