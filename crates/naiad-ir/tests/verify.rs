//! Each rule of the verifier is broken once, in text, and must be named.

use naiad_diag::Source;
use naiad_ir::text::parse;
use naiad_ir::tile::Tile;
use naiad_ir::verify;

/// The message for a function's text, from its parser or the verifier; none if it is sound.
fn message(text: &str) -> Option<String> {
    let parsed = parse::<Tile>(&Source::new("test.tir", text));
    parsed.and_then(|f| verify(&f)).err().map(|d| d.message)
}

fn broken(body: &str, want: &str) {
    let text = format!("tile @k(%x: *fp32, %n: i32, %c: i1) {{\n{body}\n}}\n")
        .replace("%x:", "%x x:")
        .replace("%n:", "%n n:")
        .replace("%c:", "%c c:");
    match message(&text) {
        Some(have) => assert!(have.contains(want), "wanted `{want}`, have `{have}`"),
        None => panic!("this is sound, `{want}` was wanted:\n{text}"),
    }
}

fn sound(body: &str) {
    let text = format!("tile @k(%x x: *fp32, %n n: i32, %c c: i1) {{\n{body}\n}}\n");
    assert_eq!(message(&text), None, "{text}");
    let func = parse::<Tile>(&Source::new("test.tir", text.as_str())).unwrap();
    let printed = func.to_string();
    let again = parse::<Tile>(&Source::new("again.tir", printed.as_str())).unwrap();
    assert_eq!(again.to_string(), printed);
}

#[test]
fn structure() {
    broken("", "has no op that ends it");
    broken("  %d = arange start=0 end=4 : <4xi32>", "stands in the wrong place");
    broken("  return\n  %d = arange start=0 end=4 : <4xi32>", "stands in the wrong place");
    broken("  %a = unary.neg %b : i32\n  return", "is defined before here");
    broken(
        "  if %c {\n    %a = const value=1:i32 : i32\n    yield\n  } {\n    yield\n  }\n  %b = unary.neg %a : i32\n  return",
        "not defined before it",
    );
    broken("  frob %c\n  return", "no op is called `frob`");
    broken(
        "  %a = const value=1:i32 : i32\n  %a = const value=2:i32 : i32\n  return",
        "defined twice",
    );
}

#[test]
fn an_op_without_operands_ends_with_its_line() {
    sound("  barrier\n  %d = arange start=0 end=4 : <4xi32>\n  return");
}

#[test]
fn operands_and_attributes() {
    broken("  %a = const value=1:i32 : i64\n  return", "result 0 has type i32, the text says i64");
    broken("  %a = const value=300:i8 : i8\n  return", "is no value of `value`");
    broken("  %a = const value=1:i32 size=3 : i32\n  return", "has no attribute `size`");
    broken("  %a = arange start=0 end=3 : <3xi32>\n  return", "NotPowerOfTwo(3)");
    broken("  %a = binary.add %n, %c : i32\n  return", "operand types differ");
    broken("  %a = binary.and %x, %x : i32\n  return", "wants numbers");
    broken("  %a = unary.exp %n : i32\n  return", "`exp` is not defined for i32");
    broken("  %a = program_id axis=3 : i32\n  return", "a grid has no axis 3");
    broken("  store %x, %n\n  return", "the pointer wants fp32");
    broken("  %v = load %x other=%n : fp32\n  return", "`other` without a mask");
    broken("  %v = load %n : fp32\n  return", "wants pointers");
    broken("  %v = load %x mask=%n : fp32\n  return", "wants i1, not i32");
    broken(
        "  %t = splat %n shape=(4,) : <4xi32>\n  %u = reshape %t shape=(8,) : <8xi32>\n  return",
        "has not the elements",
    );
    broken(
        "  %t = splat %n shape=(4, 2) : <4x2xi32>\n  %u = permute %t order=(0,0) : <4x4xi32>\n  return",
        "no permutation",
    );
}

#[test]
fn regions() {
    broken(
        "  %o = const value=1:i32 : i32\n  %r = for %n, %n, %o inits=[%n] {\n  ^(%i: i32, %a: i64):\n    yield values=[%a]\n  } : i32\n  return",
        "the loop's body has parameters",
    );
    broken(
        "  %o = const value=1:i32 : i32\n  %r = for %n, %n, %o inits=[%n] {\n  ^(%i: i32, %a: i32):\n    yield\n  } : i32\n  return",
        "the loop's body yields ()",
    );
    broken(
        "  %r = if %c {\n    yield values=[%n]\n  } {\n    yield values=[%c]\n  } : i32\n  return",
        "the second branch yields",
    );
    broken("  while {\n    yield\n  } {\n    yield\n  }\n  return", "must end in `condition`");
    let reduce = |body: &str| {
        format!(
            "  %t = splat %n shape=(4,) : <4xi32>\n  %r = reduce inputs=[%t] axis=0 {{\n  ^(%a: i32, %b: i32):\n{body}\n  }} : i32\n  return"
        )
    };
    broken(&reduce("    yield values=[%n]"), "from outside");
    broken(&reduce("    yield values=[%a, %b]"), "the combine function yields");
    broken(
        &reduce(
            "    %i = const value=0:i64 : i64\n    %p = bitcast %i to=*fp32 : *fp32\n    %l = load %p : fp32\n    yield values=[%a]",
        ),
        "may not contain `load`",
    );
    sound(&reduce("    %s = binary.add %a, %b : i32\n    yield values=[%s]"));
}

#[test]
fn constants_keep_their_bits() {
    for word in [
        "0.1:fp32",
        "-0.0:fp32",
        "0x7fc00001:fp32",
        "0xff800000:fp32",
        "1e-40:fp64",
        "1.5:bf16",
        "448.0:fp8e4nv",
        "-128:i8",
        "18446744073709551615:u64",
        "1:i1",
    ] {
        let ty = word.rsplit(':').next().unwrap();
        sound(&format!("  %a = const value={word} : {ty}\n  return"));
    }
}
