//! Random functions of one thread: their PTX, run line by line, leaves in memory what the evaluator of
//! Thread IR does; and `ptxas` takes it.

mod common;

use common::Assembler;
use common::machine::Machine;
use common::probe::probe;
use naiad_ptx::{Kernel, Target};

const FUNCTIONS: u64 = 400;

#[test]
fn random_functions() {
    for seed in 0..FUNCTIONS {
        let probe = probe(seed);
        let func = &probe.func;
        let kernel = Kernel { func, threads: 32, shared_bytes: 0, max_regs: None, lines: false };
        let capability = [80, 89, 90][seed as usize % 3];
        let ptx =
            naiad_ptx::write(&kernel, Target { capability }).unwrap_or_else(|e| panic!("{e}"));
        let machine = Machine::new(&ptx);
        for round in 0..4 {
            let mut want = probe.buffer(round);
            let mut have = want.clone();
            probe.evaluate(&mut want);
            // SAFETY: the function accesses the buffer only.
            unsafe { machine.run(&[have.as_mut_ptr() as u64]) };
            if let Some(difference) = probe.difference(&want, &have) {
                panic!(
                    "{}, round {round}, sm_{capability}: {difference}\n{func}\n{ptx}",
                    func.name
                );
            }
        }
    }
}

#[test]
fn ptxas_takes_random_functions() {
    let Some(assembler) = Assembler::find() else { return };
    for capability in [80, 90] {
        let (mut head, mut entries) = (String::new(), String::new());
        for seed in 0..60 {
            let func = probe(seed).func;
            let kernel =
                Kernel { func: &func, threads: 32, shared_bytes: 0, max_regs: None, lines: false };
            let ptx = naiad_ptx::write(&kernel, Target { capability }).expect("a text");
            let (version, entry) = ptx.split_once("\n\n").expect("a head");
            // Of one length, so that the greatest is the newest.
            head = head.max(version.to_string());
            entries += entry;
        }
        if let Err(why) = assembler.accepts(&format!("{head}\n\n{entries}"), capability) {
            panic!("sm_{capability}: {}", &why[..why.len().min(2000)]);
        }
    }
}
