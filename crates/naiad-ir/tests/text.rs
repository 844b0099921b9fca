//! Attributes of the user's text come through the text form of IR unharmed.

use naiad_diag::Source;
use naiad_ir::op::Attr;
use naiad_ir::text::parse;
use naiad_ir::thread::Thread;
use naiad_ir::tile::{Builder, Scalars, Text, Texts, Tile, TileOp};
use naiad_ir::{Scalar, Shape, verify};

const TEXTS: &[&str] = &[
    "",
    " ",
    "plain",
    "with \"quotes\" and 'others'",
    "\"",
    "\\",
    "\\\"",
    "line\nline\r\n\ttab\0",
    "é 漢字 🦀 \u{200b}\u{7f}\u{1}",
    "a, b) c] d} {e <f> # no comment % not a value",
    "%x = const value=1:i32 : i32",
    "\\u{41} \\n",
    "ends with a backslash \\",
];

fn text(s: &str) -> Text {
    Text(s.into())
}

#[test]
fn words_come_back() {
    for s in TEXTS {
        let t = text(s);
        assert_eq!(Text::from_word(&t.to_word()), Some(t), "{s:?}");
    }
    for n in 0..TEXTS.len() {
        for start in [0, n / 2] {
            let all: Texts = TEXTS[start..n].iter().map(|s| text(s)).collect();
            assert_eq!(Texts::from_word(&all.to_word()), Some(all));
        }
    }
    for n in 0..Scalar::ALL.len() {
        let all: Scalars = Scalar::ALL[..n].iter().copied().collect();
        assert_eq!(Scalars::from_word(&all.to_word()), Some(all));
    }
    for bad in ["", "\"", "x", "\"a\"b\"", "\"\\u{d800}\"", "\"\\u{}\"", "(\"a\""] {
        assert_eq!(Text::from_word(bad), None, "{bad}");
    }
    for bad in ["", "(\"a)", "(i32", "(a)"] {
        assert_eq!(Texts::from_word(bad), None, "{bad}");
        assert_eq!(Scalars::from_word(bad), None, "{bad}");
    }
}

#[test]
fn functions_come_back() {
    let mut b = Builder::new("k");
    let x = b.func.add_param("x", naiad_ir::Type::I32);
    let c = b.func.add_param("c", naiad_ir::Type::scalar(Scalar::I1));
    for (i, s) in TEXTS.iter().enumerate() {
        let names: Texts = TEXTS[..i].iter().rev().map(|s| text(s)).collect();
        let values = vec![x; i];
        b.ops(TileOp::Print { prefix: text(s), args: values.clone(), hex: i % 2 == 0 }).unwrap();
        let mask = (i % 3 == 0).then_some(c);
        b.ops(TileOp::Assert { cond: c, mask, message: text(s), values, names }).unwrap();
        let results: Scalars = Scalar::ALL[..1 + i].iter().copied().collect();
        b.ops(TileOp::InlineAsm {
            text: text(s),
            constraints: text("=r,=&l,r,~{memory}"),
            args: vec![x],
            shape: Shape::SCALAR,
            results,
            is_pure: i % 2 == 1,
            pack: 1 + i,
        })
        .unwrap();
    }
    b.ops(TileOp::Return {}).unwrap();
    verify(&b.func).unwrap();
    let printed = b.func.to_string();
    let again = parse::<Tile>(&Source::new("again.tir", printed.as_str()))
        .unwrap_or_else(|d| panic!("{}\n{printed}", d.message));
    verify(&again).unwrap();
    assert_eq!(again.to_string(), printed);
    let ops = |f: &naiad_ir::Function<Tile>| -> Vec<TileOp> {
        f.insts(f.entry()).iter().map(|&i| f.op(i).clone()).collect()
    };
    assert_eq!(ops(&again), ops(&b.func));
}

#[test]
fn thread_ir_reads_back_what_it_prints() {
    let text = "\
thread @axpy(%0 x: addr, %1 n: i64, %2 a: fp32) {
  %3 = const value=0:i64 : i64
  %4 = const value=4:i64 : i64
  %5 = const value=-0.0:fp32 lanes=4 : fp32x4
  %6 = splat %2 lanes=4 : fp32x4
  %7 = for %3, %1, %4 inits=[%5] {
  ^(%8: i64, %9: fp32x4):
    %10 = binary.mul %8, %4 : i64
    %11 = addr_add %0, %10 : addr
    %12 = load %11 disp=16 elem=fp32 lanes=4 : fp32x4
    %13 = ternary.fma %6, %12, %9 : fp32x4
    yield values=[%13]
  } : fp32x4
  %14 = shuffle %7, %7 order=(2,3) : fp32x2
  %15 = extract %14 lane=0 : fp32
  %16 = regs elem=fp32 count=8 : <8*fp32>
  regs_set %16, %15 index=7
  store %0, %15 disp=0
  return
}
";
    let func = parse::<Thread>(&Source::new("k.thread", text)).unwrap();
    verify(&func).unwrap();
    assert_eq!(func.to_string(), text);
}
