//! Every scalar function as PTX, with inputs and the results that it must give: for a test on a GPU.
//!
//! `cargo run -p naiad-ptx --example scalars -- FOLDER [CAPABILITY]` writes
//!
//! - `scalars.ptx`: a module with an entry for each row. Its parameters are the addresses of one array
//!   for each operand and of one for the results, and their length, an i32; blocks of 128 threads, a
//!   thread for an element.
//! - `scalars.txt`: a line for each entry: its name, the length of its arrays, the types of operands
//!   and of results, the number of operands, and the byte in `scalars.bin` where its data begin.
//! - `scalars.bin`: the operands' arrays and the array of results, one entry after the other.
//!
//! Results agree if they are equal bytes, or both NaN.

#[path = "../tests/common/scalars.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod scalars;

use naiad_ptx::{Kernel, Target, entry_name};
use scalars::{Row, THREADS, over_arrays, rows};
use std::fmt::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("the folder to write to is missing")?;
    let capability = arguments.next().map_or(Ok(90), |c| c.parse())?;
    let (mut head, mut entries) = (String::new(), String::new());
    let (mut index, mut data) = (String::new(), Vec::new());
    for row in rows() {
        let func = over_arrays(&row);
        let kernel = Kernel { func: &func, threads: THREADS, shared_bytes: 0, max_regs: None };
        let ptx = naiad_ptx::write(&kernel, Target { capability })?;
        let (version, entry) = ptx.split_once("\n\n").ok_or("a text without a head")?;
        // Of one length, so that the greatest is the newest.
        head = head.max(version.to_string());
        entries += entry;
        let inputs = row.inputs();
        let (name, of, result) = (entry_name(&row.name()), row.of, row.result);
        let (length, arity, at) = (inputs.len(), row.arity(), data.len());
        writeln!(index, "{name} {length} {of} {result} {arity} {at}")?;
        append(&mut data, &row, &inputs);
    }
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("scalars.ptx"), format!("{head}\n\n{entries}"))?;
    std::fs::write(folder.join("scalars.txt"), index)?;
    std::fs::write(folder.join("scalars.bin"), data)?;
    Ok(())
}

fn append(data: &mut Vec<u8>, row: &Row, inputs: &[Vec<u64>]) {
    for operand in 0..row.arity() {
        for x in inputs {
            data.extend_from_slice(&x[operand].to_le_bytes()[..row.of.size()]);
        }
    }
    for x in inputs {
        data.extend_from_slice(&row.eval(x).to_le_bytes()[..row.result.size()]);
    }
}
