//! Prints what a kernel becomes: `distribute FILE.tir tile|peeled|thread|clif|code`; code as it is, in bytes.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use naiad_cpu::Level;
use naiad_diag::Source;
use naiad_ir::tile::Tile;
use std::io::Write;

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("a file of Tile IR");
    let stage = args.next().unwrap_or_else(|| "thread".to_string());
    let text = std::fs::read_to_string(&path).expect("the file can be read");
    let mut func =
        naiad_ir::text::parse::<Tile>(&Source::new(path, text)).expect("the file holds Tile IR");
    naiad_cpu::optimize(&mut func);
    if stage == "tile" {
        return print!("{func}");
    }
    naiad_cpu::peel(&mut func);
    if stage == "peeled" {
        return print!("{func}");
    }
    let vector = Level::vector_bytes(Level::host());
    let loops = match naiad_cpu::dist::distribute(&func, &naiad_cpu::Facts::default(), vector) {
        Ok(loops) => loops.func,
        Err(e) => panic!("{}", e.message),
    };
    naiad_ir::verify(&loops).expect("the loops are well formed");
    let table = naiad_cpu::runtime::table::table();
    match stage.as_str() {
        "thread" => print!("{loops}"),
        "clif" => print!("{}", naiad_cpu::clif::text(&loops, table).expect("CLIF")),
        _ => {
            let options =
                naiad_cpu::clif::Options { wide: Level::host(), past_cache: None, far: None };
            let machine =
                naiad_cpu::clif::write_with(options, &loops, table).expect("machine code");
            std::io::stdout().write_all(machine.code()).expect("the code can be written");
        }
    }
}
