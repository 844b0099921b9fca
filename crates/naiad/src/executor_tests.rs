//! Which launches are run without machine code.

use super::*;
use naiad_diag::Source;
use naiad_interp::TensorArg;

/// A kernel over `block` lanes of `x`, whose body makes `%y` of `%x`.
fn code(block: usize, body: &str) -> naiad_interp::Code {
    let text = format!(
        "tile @k(%p p: *fp32, %n n: i32) {{
  %r = arange start=0 end={block} : <{block}xi32>
  %s = splat %p shape=({block},) : <{block}x*fp32>
  %q = ptr_add %s, %r : <{block}x*fp32>
  %x = load %q : <{block}xfp32>
  %zero = const value=0:i32 : i32
  %four = const value=4:i32 : i32
  %many = const value=1000000:i32 : i32
  %one = const value=1:i32 : i32
{body}
  store %q, %y
  return
}}"
    );
    let func = naiad_ir::text::parse::<Tile>(&Source::new("<test>", text)).unwrap();
    naiad_ir::verify(&func).unwrap();
    naiad_interp::Code::new(Arc::new(func))
}

fn doubled_in_a_loop(upper: &str) -> String {
    format!(
        "%y = for %zero, {upper}, %one inits=[%x] {{
  ^(%i: i32, %a: <64xfp32>):
    %b = binary.add %a, %a : <64xfp32>
    yield values=[%b]
  }} : <64xfp32>"
    )
}

/// The most programs of a first launch that is small.
fn small(code: &naiad_interp::Code) -> u64 {
    Small::of(code).programs
}

#[test]
fn what_is_small() {
    let add = "%y = binary.add %x, %x : <64xfp32>";
    let programs = small(&code(64, add));
    assert!((100..10_000).contains(&programs), "{programs}");
    assert!(small(&code(64, &doubled_in_a_loop("%four"))) < programs);
    // Too long, or nobody knows how long.
    let large = add.replace("64", "1048576");
    for (block, body) in [(1 << 20, &large), (64, &doubled_in_a_loop("%many"))] {
        assert_eq!(small(&code(block, body)), 0);
    }
    assert_eq!(small(&code(64, &doubled_in_a_loop("%n"))), 0);
    // A loop that may wait for another program.
    let waits = "while {
    %seen = atomic.add %p, %half : fp32
    %unset = compare.lt %seen, %half : i1
    condition %unset
  } {
    yield
  }";
    let half = "%half = const value=0.5:fp32 : fp32";
    assert_eq!(small(&code(64, &format!("{half}\n  {waits}\n  {add}"))), 0);
    // A sum depends on the order in which it is made, which only the compiler knows, and the greatest of
    // some numbers does not.
    let reduce = |source: &str, f: &str, ty: &str| {
        format!(
            "%t = reduce inputs=[{source}] axis=0 {{
  ^(%a: {ty}, %b: {ty}):
    %c = binary.{f} %a, %b : {ty}
    yield values=[%c]
  }} : {ty}
  print prefix=\"\" args=[%t]
  {add}"
        )
    };
    assert_eq!(small(&code(64, &reduce("%x", "add", "fp32"))), 0);
    assert!(small(&code(64, &reduce("%r", "max", "i32"))) > 0);
    assert!(small(&code(64, &reduce("%x", "max", "fp32"))) > 0);
}

#[test]
fn machine_code_is_made_for_the_second_launch() {
    let code = code(64, "%y = binary.add %x, %x : <64xfp32>");
    let mut data = vec![1.0f32; 64];
    let storage = data.as_mut_ptr_range();
    let tensor = TensorArg {
        address: storage.start as usize,
        storage: storage.start as usize..storage.end as usize,
        view: None,
        writable: true,
    };
    let args = [Arg::Tensor(tensor), Arg::Scalar(0)];
    let config = LaunchConfig::default();
    let made = |machine: &Compiled| machine.known.lock().unwrap().len();
    let run = |machine: &Compiled, executor, options: &LaunchOptions<'_>| {
        // SAFETY: the tensor is `data`.
        unsafe { run(machine, &code, [1, 1, 1], &args, executor, &config, options) }.unwrap();
        made(machine)
    };
    let plain = LaunchOptions::PLAIN;
    let auto = Compiled::default();
    assert_eq!(run(&auto, Executor::Auto, &plain), 0);
    assert_eq!(run(&auto, Executor::Auto, &plain), 1);
    assert_eq!(run(&auto, Executor::Auto, &plain), 1);
    // Checked launches say nothing of what follows.
    let checked = LaunchOptions { policy: PolicyKind::Checked, ..plain };
    let after = Compiled::default();
    assert_eq!(run(&after, Executor::Auto, &checked), 0);
    assert_eq!(run(&after, Executor::Auto, &plain), 0);
    assert_eq!(run(&Compiled::default(), Executor::Eager, &plain), 1);
    assert!(data.iter().all(|&x| x == 64.0), "{data:?}");
}
