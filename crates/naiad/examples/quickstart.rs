//! A kernel written in Python, run from Rust alone: no Python here, neither built in nor called.
//!
//! `cargo run -p naiad --example quickstart`

use naiad::{Device, Module, SliceView, args};

fn main() -> naiad::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gelu.py");
    let module = Module::from_file(path)?;
    let gelu = module.kernel("gelu_kernel")?;

    // Arguments by position, then by name. The slices are borrowed for the launch, `y` mutably.
    let x: Vec<f32> = (0..1000).map(|i| i as f32 / 100.0 - 5.0).collect();
    let mut y = vec![0.0f32; x.len()];
    let block = 256;
    let grid = (x.len().div_ceil(block),);
    gelu.launch(grid, args![&x, &mut y, x.len(), 1, 1, BLOCK = block])?;
    print(&x, &y);

    // A mistake is an error with the kernel's line: here every second element is to be written, and
    // under the checker nothing else may be.
    let every_second = SliceView::of_mut(&mut y).shape(&[500]).strides(&[2]);
    let checked = Device::cpu().checked(true);
    if let Err(error) =
        gelu.launch_on(&checked, (2,), args![&x, every_second, 500, 1, 1, BLOCK = block])
    {
        print_error(&error);
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example shows its result")]
fn print(x: &[f32], y: &[f32]) {
    for i in (0..x.len()).step_by(200) {
        println!("gelu({:5.2}) = {:8.5}", x[i], y[i]);
    }
}

#[expect(clippy::print_stdout, reason = "an example shows its result")]
fn print_error(error: &naiad::Error) {
    println!("\nand with the stride of the output forgotten:\n\n{error}");
}
