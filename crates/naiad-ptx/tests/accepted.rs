//! `ptxas` takes the text of every function of numbers and of every conversion, for every target.

mod common;

use common::Assembler;
use common::scalars::{rows, straight};
use naiad_ptx::{Kernel, Target};

#[test]
fn ptxas_takes_every_function() {
    let Some(assembler) = Assembler::find() else { return };
    for capability in [80, 89, 90] {
        let (mut version, mut entries) = (String::new(), String::new());
        for row in rows() {
            let func = straight(&row, 2);
            let kernel =
                Kernel { func: &func, threads: 32, shared_bytes: 0, max_regs: None, lines: false };
            let ptx = naiad_ptx::write(&kernel, Target { capability }).expect("a text");
            let (head, entry) = ptx.split_once("\n\n").expect("a head");
            // Of one length, so that the greatest is the newest.
            version = version.max(head.lines().next().unwrap_or("").to_string());
            entries += entry;
        }
        let module = format!("{version}\n.target sm_{capability}\n.address_size 64\n{entries}");
        if let Err(why) = assembler.accepts(&module, capability) {
            panic!("sm_{capability}: {}", &why[..why.len().min(2000)]);
        }
    }
}
