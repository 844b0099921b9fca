//! Prints as text: both layouts, what is left out, filters, and the example of `docs/printing.md`.

use naiad::{Device, Module, PrintOptions, Printer};
use std::sync::{Arc, Mutex};

/// What one launch of `kernel` in `source` prints; program by program, since it runs on one thread.
fn printed(source: &str, options: &str, grid: i32, args: naiad::Args<'_>) -> String {
    let text = Arc::new(Mutex::new(String::new()));
    let sink = text.clone();
    let options: PrintOptions = options.parse().unwrap();
    let printer = Printer::new(options, move |t| sink.lock().unwrap().push_str(t));
    let module = Module::from_source("test.py", source).unwrap();
    let kernel = module.kernel(module.kernels()[0]).unwrap();
    let device = Device::cpu().threads(1).printer(printer);
    kernel.launch_on(&device, (grid,), args).unwrap();
    let text = text.lock().unwrap();
    text.clone()
}

fn source(body: &str) -> String {
    let mut text =
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef show(x, n):\n".to_string();
    body.lines().for_each(|l| text += &format!("    {l}\n"));
    text
}

fn show(body: &str, options: &str) -> String {
    let x = [0.1f32, -2.0, 3.5, 1e-9, f32::NAN, f32::INFINITY, 7.0, 8.0];
    printed(&source(body), options, 1, naiad::args![&x, 3])
}

const DOC: &str = include_str!("../../../docs/printing.md");

fn block(fence: &str) -> &str {
    let start = DOC.find(&format!("```{fence}\n")).unwrap() + fence.len() + 4;
    &DOC[start..start + DOC[start..].find("```").unwrap()]
}

#[test]
fn the_page_shows_what_is_printed() {
    let x = [0.5f32, 1.25, -3.0, 100.0, 0.1];
    for (fence, options) in [("text tile", ""), ("text lines", "layout=lines;program=1;lanes=0:2")]
    {
        let text = printed(block("python"), options, 2, naiad::args![&x, 5, BLOCK = 4]);
        assert_eq!(text, block(fence), "{options}");
    }
    assert!(DOC.contains("NAIAD_PRINT=\"layout=lines;program=1;lanes=0:2\""));
}

#[test]
fn scalars_stand_on_one_line() {
    let text = show(
        "tl.device_print('n =', n)\nprint('hello')\nprint(n + 1, n > 2)\nprint(n * 1.5, hex=True)",
        "",
    );
    assert_eq!(
        text,
        "show program (0, 0, 0)  n = 3 (int32)\n\
         show program (0, 0, 0)  hello\n\
         show program (0, 0, 0)\noperand 0: 4 (int32)\noperand 1: True (int1)\n\
         show program (0, 0, 0)  0x40900000 (float32)\n"
    );
}

#[test]
fn tiles_are_laid_out_in_columns() {
    let text = show("v = tl.load(x + tl.arange(0, 8))\nprint('v', tl.reshape(v, (2, 4)))", "");
    assert_eq!(
        text,
        "show program (0, 0, 0)  v: float32[2, 4]\n\
         [[ 0.1 -2.0  3.5 1e-9]\n \
          [ nan  inf  7.0  8.0]]\n"
    );
    let text = show("i = tl.arange(0, 8)\nprint(tl.reshape(i, (2, 2, 2)), hex=True)", "");
    assert_eq!(
        text,
        "show program (0, 0, 0)  int32[2, 2, 2]\n\
         [[[0x00000000 0x00000001]\n  [0x00000002 0x00000003]]\n\n \
          [[0x00000004 0x00000005]\n  [0x00000006 0x00000007]]]\n"
    );
    // Long rows go on in the next line, and large tiles lose their middle.
    let text = show("print(tl.arange(0, 64) + 1000)", "");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines[1].starts_with("[1000 1001") && lines[2].starts_with(" 10"));
    assert!(lines.iter().all(|l| l.len() <= 101) && lines[4].ends_with("1063]"), "{text}");
    let text = show("print(tl.reshape(tl.arange(0, 2048), (64, 32)))", "");
    assert_eq!(
        text,
        "show program (0, 0, 0)  int32[64, 32]\n\
         [[   0    1    2 ...   29   30   31]\n \
          [  32   33   34 ...   61   62   63]\n \
          [  64   65   66 ...   93   94   95]\n \
          ...\n \
          [1952 1953 1954 ... 1981 1982 1983]\n \
          [1984 1985 1986 ... 2013 2014 2015]\n \
          [2016 2017 2018 ... 2045 2046 2047]]\n"
    );
}

#[test]
fn lines_are_as_triton_writes_them() {
    let text = show("v = tl.load(x + tl.arange(0, 8))\ntl.device_print('v', v)", "layout=lines");
    let values =
        ["0.100000", "-2.000000", "3.500000", "0.000000", "nan", "inf", "7.000000", "8.000000"];
    let want: String = values
        .iter()
        .enumerate()
        .map(|(i, v)| format!("pid (0, 0, 0) idx ({i}) v: {v}\n"))
        .collect();
    assert_eq!(text, want);
    // Indices are as wide as the extent; operands are numbered; a prefix may have its colon.
    let body = "i = tl.arange(0, 16)\ntl.device_print('i: ', i, n)\ntl.device_print('', n.to(tl.uint8), hex=True)\nprint('done')";
    let text = show(body, "layout=lines;lanes=8:12");
    assert_eq!(
        text,
        "pid (0, 0, 0) idx ( 8) i: (operand 0) 8\n\
         pid (0, 0, 0) idx ( 9) i: (operand 0) 9\n\
         pid (0, 0, 0) idx (10) i: (operand 0) 10\n\
         pid (0, 0, 0) idx (11) i: (operand 0) 11\n\
         pid (0, 0, 0) idx () i: (operand 1) 3\n\
         pid (0, 0, 0) idx (): 0x03\n\
         pid (0, 0, 0) done\n"
    );
}

#[test]
fn programs_and_lanes_are_chosen() {
    let text = source("p = tl.program_id(0)\nprint('i', tl.reshape(tl.arange(0, 32), (4, 8)) + p)");
    let x = [0f32];
    let run = |options: &str| printed(&text, options, 3, naiad::args![&x, 3]);
    assert_eq!(
        run("program=2,*; lanes=1, 6:"),
        "show program (2, 0, 0)  i: int32[4, 8] lanes [1:2, 6:8]\n[[16 17]]\n"
    );
    assert_eq!(run("program=3"), "");
    assert_eq!(run("layout=off"), "");
    assert_eq!(run("layout=lines;program=0,1"), "");
    assert_eq!(run("layout=lines;lanes=9"), "");
    assert_eq!(run("lanes=*,0;program=0").lines().count(), 5);
    assert_eq!(run("lanes=:0;program=1").lines().count(), 1);
}

#[test]
fn wrong_settings_teach() {
    for (text, want) in [
        ("layuot=lines", "`layuot=lines`: printing has no setting `layuot`"),
        ("lines", "`lines`: printing has no setting `lines`"),
        ("layout=rows", "`layout=rows`: there is no layout `rows`"),
        ("program=a", "`program=a`: `a` is neither a coordinate nor `*`"),
        ("program=0,0,0,0", "`program=0,0,0,0`: a grid has at most three axes"),
        ("lanes=1-3", "`lanes=1-3`: `1-3` is no index, no range such as `0:4` and not `*`"),
    ] {
        let error = text.parse::<PrintOptions>().unwrap_err();
        assert_eq!(error.diagnostic().message, want);
        assert!(error.diagnostic().help[0].contains("layout=lines"));
    }
    assert_eq!(" ; ".parse::<PrintOptions>().unwrap(), PrintOptions::default());
}
