//! Shows what a kernel in Tile IR becomes on its way to a GPU.
//!
//! `stages FILE.tir [placed|thread|ptx] [WARPS]`

use naiad_diag::Source;
use naiad_gpu::Options;
use naiad_ir::tile::Tile;
use naiad_ir::{Function, text};
use naiad_opt::ranges::{Inputs, Param};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, rest @ ..] = &args[..] else {
        return eprintln!("stages FILE.tir [placed|thread|ptx] [WARPS]");
    };
    let stage = rest.first().map_or("thread", String::as_str);
    let num_warps = rest.get(1).and_then(|w| w.parse().ok()).unwrap_or(4);
    let options = Options {
        capability: 90,
        num_warps,
        num_stages: 3,
        precise: false,
        guarded: false,
        few_programs: false,
        prints: None,
    };
    let text = std::fs::read_to_string(path).expect("a file to read");
    let func: Function<Tile> = match text::parse(&Source::new(path, text)) {
        Ok(func) => func,
        Err(e) => return eprintln!("{}", e.message),
    };
    let params = func.params().iter().map(|_| Param { divisible: Some(16), ..Param::default() });
    let inputs = Inputs { params: params.collect(), ..Inputs::default() };
    if stage == "placed" {
        return match naiad_gpu::placed(&func, &inputs, &options) {
            Ok((func, sharing)) => println!("# {sharing:?}\n{func}"),
            Err(e) => eprintln!("{}", e.what),
        };
    }
    match naiad_gpu::compile(&func, &inputs, &options) {
        Ok(code) if stage == "ptx" => {
            let (threads, shared_bytes) = (code.threads, code.shared_bytes);
            let kernel = naiad_ptx::Kernel {
                func: &code.func,
                threads,
                shared_bytes,
                max_regs: None,
                lines: false,
            };
            match naiad_ptx::write(&kernel, naiad_ptx::Target { capability: 90 }) {
                Ok(text) => println!("{text}"),
                Err(e) => eprintln!("{e}"),
            }
        }
        Ok(code) => {
            println!("# {} threads, {} bytes\n{}", code.threads, code.shared_bytes, code.func)
        }
        Err(e) => eprintln!("{}", e.what),
    }
}
