//! What is known to be uniform, and which ops are reached by parts of a warp or block.

use naiad_diag::Source;
use naiad_ir::thread::uniform::{Uniform, Uniformity, check};
use naiad_ir::thread::{Thread, ThreadOp};
use naiad_ir::{Function, text, verify};

/// A function whose last op but `return` is `regs_set`, which marks the value that is asked for.
fn function(body: &str) -> Function<Thread> {
    let text = format!(
        "thread @k(%p p: addr, %n n: i32) {{
           %t = thread_id : i32
           %zero = const value=0:i32 : i32
           %one = const value=1:i32 : i32
           %five = const value=5:i32 : i32
           {body}
           return
         }}"
    );
    let func = text::parse(&Source::new("<test>", text)).unwrap_or_else(|e| panic!("{e:#?}"));
    verify(&func).unwrap_or_else(|e| panic!("{e:#?}"));
    func
}

/// How uniform `%v` is.
#[track_caller]
fn is(body: &str, want: Uniformity) {
    let func = function(&format!("{body}\n shared_store %zero, %v disp=0"));
    let uniform = Uniform::new(&func);
    let marked = func.insts(func.entry()).iter().rev().find_map(|&i| match func.op(i) {
        ThreadOp::SharedStore { value, .. } => Some(*value),
        _ => None,
    });
    assert_eq!(uniform.of(marked.unwrap()), want);
}

use Uniformity::{Block, Thread as Own, Warp};

#[test]
fn numbers_of_threads_and_warps() {
    is("%v = binary.add %t, %n : i32", Own);
    is("%v = block_id axis=1 : i32", Block);
    is("%v = binary.mul %n, %five : i32", Block);
    is("%v = binary.shr %t, %five : i32", Warp);
    is("%v = binary.shr %t, %one : i32", Own);
    // Lane 3 of each row of four threads, and the row, and the same for all behind all shifts.
    is(
        "%w = binary.shl %t, %one : i32\n %six = const value=6:i32 : i32\n %v = binary.shr %w, %six : i32",
        Warp,
    );
    is("%m = const value=992:i32 : i32\n %v = binary.and %t, %m : i32", Warp);
    is("%m = const value=31:i32 : i32\n %v = binary.and %t, %m : i32", Own);
    is("%m = const value=-1024:i32 : i32\n %v = binary.and %t, %m : i32", Block);
    is(
        "%l = cast %t to=i64 : i64\n %k = const value=5:i64 : i64\n %v = binary.shr %l, %k : i64",
        Warp,
    );
    is(
        "%k = const value=4:i32 : i32\n %b = binary.mul %t, %k : i32\n %s = const value=7:i32 : i32\n %v = binary.shr %b, %s : i32",
        Warp,
    );
    // A carry goes up.
    is("%a = binary.add %t, %one : i32\n %v = binary.shr %a, %five : i32", Own);
    is("%c = compare.lt %t, %n : i1\n %v = select %c, %n, %n : i32", Own);
}

#[test]
fn memory_and_machine() {
    is("%v = load %p disp=0 elem=i32 : i32", Block);
    is("%v = load %p disp=0 elem=i32 hints=volatile : i32", Own);
    is(
        "%l = cast %t to=i64 : i64\n %a = addr_add %p, %l : addr\n %v = load %a disp=0 elem=i32 : i32",
        Own,
    );
    is("%w = binary.shr %t, %five : i32\n %v = shared_load %w disp=0 elem=i32 : i32", Warp);
    is("%v = atomic.add %p, %one : i32", Own);
    is("%v = machine.smid : i32", Own);
}

#[test]
fn warps_together() {
    is("%c = compare.lt %t, %n : i1\n %v = warp_vote.any %c : i1", Warp);
    is("%c = compare.lt %zero, %n : i1\n %v = warp_vote.all %c : i1", Block);
    is("%v = warp_shuffle.index %t, %zero : i32", Warp);
    is("%v = warp_shuffle.index %t, %t : i32", Own);
    is("%v = warp_shuffle.xor %n, %one : i32", Block);
    is("%v = warp_shuffle.up %t, %one : i32", Own);
    // All steps of a butterfly, and all but one.
    let butterfly = |steps: &[u32]| {
        let mut text = "%f = cast %t to=fp32 : fp32\n %a0 = binary.mul %f, %f : fp32\n".to_string();
        for (i, by) in steps.iter().enumerate() {
            let next = i + 1;
            text += &format!(
                "%k{i} = const value={by}:i32 : i32
                 %o{i} = warp_shuffle.xor %a{i}, %k{i} : fp32
                 %a{next} = binary.add %a{i}, %o{i} : fp32\n"
            );
        }
        format!("{text} %v = unary.neg %a{} : fp32", steps.len())
    };
    is(&butterfly(&[16, 8, 4, 2, 1]), Warp);
    is(&butterfly(&[1, 2, 4, 8, 16]), Warp);
    is(&butterfly(&[16, 8, 4, 2]), Own);
    is("%a = warp_shuffle.xor %t, %one : i32\n %v = binary.sub %t, %a : i32", Own);
}

#[test]
fn ways_and_loops() {
    let both = |cond: &str| {
        format!(
            "%w = binary.shr %t, %five : i32
             %c = compare.lt {cond}, %n : i1
             %v = if %c {{
               yield values=[%one]
             }} {{
               yield values=[%five]
             }} : i32"
        )
    };
    is(&both("%t"), Own);
    is(&both("%w"), Warp);
    is(&both("%n"), Block);
    let count = |upper: &str, add: &str| {
        format!(
            "%v = for %zero, {upper}, %one inits=[%zero] {{
             ^(%i: i32, %a: i32):
               %b = binary.add %a, {add} : i32
               yield values=[%b]
             }} : i32"
        )
    };
    is(&count("%n", "%i"), Block);
    is(&count("%n", "%t"), Own);
    is(&count("%t", "%i"), Own);
    let until = |step: &str| {
        format!(
            "%v = while inits=[%zero] {{
             ^(%a: i32):
               %c = compare.lt %a, %n : i1
               condition %c values=[%a]
             }} {{
             ^(%b: i32):
               %d = binary.add %b, {step} : i32
               yield values=[%d]
             }} : i32"
        )
    };
    is(&until("%one"), Block);
    is(&until("%t"), Own);
    is(
        "%r = regs elem=i32 count=2 : <2*i32>\n regs_set %r, %n index=0\n %v = regs_get %r index=0 : i32",
        Block,
    );
    is(
        "%r = regs elem=i32 count=2 : <2*i32>
         %c = compare.lt %t, %n : i1
         if %c {
           regs_set %r, %n index=0
           yield
         } {
           yield
         }
         %v = regs_get %r index=0 : i32",
        Own,
    );
}

/// Whether an op under `cond`, a comparison, is sound.
fn under(cond: &str, op: &str) -> Result<(), String> {
    let func = function(&format!(
        "%w = binary.shr %t, %five : i32
         %c = {cond} : i1
         if %c {{
           {op}
           yield
         }} {{
           yield
         }}"
    ));
    check(&func).map_err(|e| e.message)
}

#[test]
fn barriers_are_for_all() {
    let barrier = |cond| under(cond, "barrier");
    assert_eq!(barrier("compare.lt %n, %five"), Ok(()));
    let each =
        "broken IR in `k`: `barrier` is reached as each thread decides, and wants all of them";
    assert_eq!(barrier("compare.lt %t, %n"), Err(each.to_string()));
    assert_eq!(barrier("compare.lt %w, %n"), Err(each.replace("thread", "warp")));
    for op in [
        "warp_barrier",
        "%z = warp_shuffle.xor %t, %one : i32",
        "%z = warp_vote.any %c : i1",
        "%z = load_matrix %zero disp=0 count=1 transposed=false : i32",
    ] {
        assert!(under("compare.lt %t, %n", op).is_err(), "{op}");
        assert_eq!(under("compare.lt %w, %n", op), Ok(()));
    }
}

#[test]
fn loops_that_threads_leave_one_by_one_have_no_barriers() {
    let loops = |upper: &str| {
        check(&function(&format!(
            "for %zero, {upper}, %one {{
             ^(%i: i32):
               barrier
               yield
             }}"
        )))
    };
    assert!(loops("%n").is_ok());
    assert!(loops("%t").is_err());
    let test = |of: &str| {
        check(&function(&format!(
            "while {{
               barrier
               %v = {of} : i32
               %c = compare.lt %v, %n : i1
               condition %c
             }} {{
               yield
             }}"
        )))
    };
    assert!(test("load %p disp=0 elem=i32").is_ok());
    assert!(test("atomic.add %p, %one").is_err());
}
