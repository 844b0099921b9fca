//! Prints a kernel's loops: `distribute FILE.tir`.

use naiad_diag::Source;
use naiad_ir::tile::Tile;

fn main() {
    let path = std::env::args().nth(1).expect("a file of Tile IR");
    let text = std::fs::read_to_string(&path).expect("the file can be read");
    let mut func = naiad_ir::text::parse::<Tile>(&Source::new(path, text)).expect("Tile IR");
    naiad_opt::optimize(&mut func);
    print!("{func}");
    match naiad_cpu::dist::distribute(&func, &naiad_cpu::facts::Facts::default()) {
        Ok(d) => {
            print!("{}", d.func);
            if let Err(e) = naiad_ir::verify(&d.func) {
                panic!("{}", e.message);
            }
        }
        Err(e) => println!("not compiled: {}", e.what),
    }
}
