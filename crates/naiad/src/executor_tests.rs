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
fn small_programs(code: &naiad_interp::Code) -> u64 {
    Small::of(code).programs
}

#[test]
fn what_is_small() {
    let add = "%y = binary.add %x, %x : <64xfp32>";
    let programs = small_programs(&code(64, add));
    assert!((100..10_000).contains(&programs), "{programs}");
    assert!(small_programs(&code(64, &doubled_in_a_loop("%four"))) < programs);
    // Too long, or nobody knows how long.
    let large = add.replace("64", "1048576");
    for (block, body) in [(1 << 20, &large), (64, &doubled_in_a_loop("%many"))] {
        assert_eq!(small_programs(&code(block, body)), 0);
    }
    assert_eq!(small_programs(&code(64, &doubled_in_a_loop("%n"))), 0);
    // A loop that may wait for another program.
    let waits = "while {
    %seen = atomic.add %p, %half : fp32
    %unset = compare.lt %seen, %half : i1
    condition %unset
  } {
    yield
  }";
    let half = "%half = const value=0.5:fp32 : fp32";
    assert_eq!(small_programs(&code(64, &format!("{half}\n  {waits}\n  {add}"))), 0);
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
    assert_eq!(small_programs(&code(64, &reduce("%x", "add", "fp32"))), 0);
    assert!(small_programs(&code(64, &reduce("%r", "max", "i32"))) > 0);
    assert!(small_programs(&code(64, &reduce("%x", "max", "fp32"))) > 0);
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

/// What depends on an order is the same bits in a first launch and in machine code.
#[test]
fn small_launches_combine_in_the_order_of_machine_code() {
    let matrices = "%u = reshape %x shape=(16,16) : <16x16xfp32>
  %d = dot %u, %u out=fp32 precision=ieee : <16x16xfp32>
  %e = binary.add %u, %d : <16x16xfp32>
  %y = reshape %e shape=(256,) : <256xfp32>";
    let recurrence = "%y, %z = scan inputs=[%x, %x] axis=0 {
  ^(%a: fp32, %c: fp32, %b: fp32, %d: fp32):
    %e = binary.mul %a, %b : fp32
    %f = binary.mul %c, %b : fp32
    %g = binary.add %f, %d : fp32
    yield values=[%e, %g]
  } : <256xfp32>, <256xfp32>";
    let sum = "%y = scan inputs=[%x] axis=0 reverse=true {
  ^(%a: fp32, %b: fp32):
    %c = binary.add %a, %b : fp32
    yield values=[%c]
  } : <256xfp32>";
    let update = "%same = splat %p shape=(256,) : <256x*fp32>
  %o = atomic.add %same, %x : <256xfp32>
  %y = binary.add %o, %x : <256xfp32>";
    for body in [matrices, recurrence, sum, update] {
        let code = code(256, body);
        let run = |executor| {
            let mut data: Vec<f32> = (0..256).map(|i| 1.0 / (i as f32 + 1.1)).collect();
            let storage = data.as_mut_ptr_range();
            let storage = storage.start as usize..storage.end as usize;
            let address = storage.start;
            let tensor = TensorArg { address, storage, view: None, writable: true };
            let args = [Arg::Tensor(tensor), Arg::Scalar(0)];
            let (machine, config) = (Compiled::default(), LaunchConfig::default());
            let options = LaunchOptions::PLAIN;
            // SAFETY: the tensor is `data`.
            unsafe { run(&machine, &code, [1, 1, 1], &args, executor, &config, &options) }.unwrap();
            let made = !machine.known.lock().unwrap().is_empty();
            (made, data.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
        };
        let ((first, small), (second, machine)) = (run(Executor::Auto), run(Executor::Eager));
        assert!(!first && second, "{body}");
        assert_eq!(small, machine, "{body}");
        // With more programs others come in between.
        let programs = small_programs(&code);
        assert!(if body == update { programs == 1 } else { programs > 1 }, "{body}");
    }
}
