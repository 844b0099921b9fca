//! Programs that wait for one another, as machine code.

#[path = "../../naiad-interp/tests/common/mod.rs"]
mod common;
#[path = "../../naiad-interp/tests/common/waiting.rs"]
mod kernels;
#[path = "common/machine.rs"]
mod machine;

use common::*;
use kernels::*;
use machine::{Machine, fault};
use naiad_diag::{Diagnostic, Id};
use naiad_interp::Arg;

/// Runs a kernel over one, two and three threads, as it is written and optimized, on memory that is made
/// anew for each; `judge` gets what it said and what the memory then is.
fn each(
    text: &str,
    programs: u32,
    memory: &[Vec<i32>],
    numbers: &[i64],
    judge: impl Fn(Result<(), Box<Diagnostic>>, &[Vec<i32>]),
) {
    let func = kernel(text);
    for optimize in [false, true] {
        for threads in [1, 2, 3] {
            let mut memory = memory.to_vec();
            let args = args(&mut memory, numbers);
            let machine = Machine::new(&func, &args, optimize);
            let said = machine.run([programs, 1, 1], &args, threads);
            judge(said, &memory);
        }
    }
}

fn args(memory: &mut [Vec<i32>], numbers: &[i64]) -> Vec<Arg> {
    let mut args: Vec<Arg> = memory.iter_mut().map(|m| tensor(m)).collect();
    args.extend(numbers.iter().map(|&n| int(n)));
    args
}

#[test]
fn a_spin_lock_excludes() {
    each(LOCK, 5000, &[vec![0], vec![0]], &[], |said, memory| {
        said.unwrap();
        assert_eq!(memory, [[0], [5000]]);
    });
}

#[test]
fn a_chain_of_flags_runs_backwards() {
    for n in [1, 2, 100, 3000] {
        let memory = [vec![0; n], vec![0; n]];
        each(CHAIN, n as u32, &memory, &[n as i64], |said, memory| {
            said.unwrap();
            assert_eq!(memory[1][0] as usize, n * (n - 1) / 2);
        });
    }
}

#[test]
fn all_programs_meet_at_a_barrier() {
    let n = 2000;
    each(BARRIER, n as u32, &[vec![0], vec![0; n], vec![0; n]], &[], |said, memory| {
        said.unwrap();
        assert!((0..n).all(|i| memory[2][i] as usize == (i + 1) % n));
    });
}

/// What goes wrong is told as the reference executor tells it.
#[test]
fn deadlocks_and_faults_of_who_is_waited_for() {
    let more = BARRIER.replace("compare.lt %now, %n", "compare.le %now, %n");
    for (text, programs, memory, numbers, id) in [
        // The lock is never free; there are not as many programs as are counted; program 1 reads outside.
        (LOCK, 5, vec![vec![1], vec![0]], vec![], Id::Deadlock),
        (LOCK, 1, vec![vec![1], vec![0]], vec![], Id::Deadlock),
        (&*more, 300, vec![vec![0], vec![0; 300], vec![0; 300]], vec![], Id::Deadlock),
        (CHAIN, 10, vec![vec![0; 10], vec![0; 5]], vec![10], Id::OutOfBounds),
    ] {
        let func = kernel(text);
        let mut fresh = memory.clone();
        let args = args(&mut fresh, &numbers);
        let expected = run(&func, [programs, 1, 1], &args, &PLAIN).map(|_| ()).unwrap_err();
        assert_eq!(expected.id, id);
        each(text, programs, &memory, &numbers, |said, _| {
            assert_eq!(fault(&said.unwrap_err()), fault(&expected));
        });
    }
}

/// Other kernels are as they would be if no program ever waited.
#[test]
fn programs_that_wait_for_nobody_pay_nothing() {
    let loops = |text: &str| {
        let facts = naiad_cpu::Facts::default();
        naiad_cpu::dist::distribute(&kernel(text), &facts, 16).unwrap().func.to_string()
    };
    let waits = |text: &str| {
        let loops = loops(text);
        (loops.contains("runtime_call.wait"), loops.contains(" writes:"))
    };
    assert_eq!(waits(LOCK), (true, true));
    // Its loop is one of a program alone.
    let (before, rest) = LOCK.split_once("    %got").unwrap();
    let alone = format!("{before}    %x = load %l : i32\n    %got{rest}")
        .replace("%got = atomic_cas %l, %zero, %one : i32", "%got = binary.add %x, %one : i32");
    assert_eq!(waits(&alone), (false, false));
}
