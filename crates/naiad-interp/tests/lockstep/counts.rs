//! Transactions that are counted.

use super::*;

/// Sums of the counts of the ops of a name.
fn counted(body: &str, threads: u32, name: &str) -> naiad_interp::lockstep::OpStats {
    let func = kernel(body);
    let stats = run(body, threads, &mut [0i32; 4096], &mut [0i32; 4096], 0);
    stats.sum(|inst| func.op(inst).name() == name)
}

#[test]
fn sectors_and_bytes_of_global_memory() {
    let c = counted("%v = load %xt disp=0 elem=i32 : i32", 64, "load");
    // The array may begin in the middle of a sector.
    assert!((8..=10).contains(&c.sectors), "{c:?}");
    assert_eq!((c.warps, c.bytes), (2, 256));
    let wide = "
        %k = const value=32:i64 : i64
        %tl = cast %t to=i64 : i64
        %o = binary.mul %tl, %k : i64
        %a = addr_add %x, %o : addr
        %v = load %a disp=0 elem=i32 : i32";
    let c = counted(wide, 32, "load");
    assert_eq!((c.warps, c.bytes, c.sectors), (1, 128, 32));
}

#[test]
fn wavefronts_of_shared_memory() {
    let column = |stride: u32| {
        format!(
            "%k = const value={stride}:i32 : i32
            %o = binary.mul %t, %k : i32
            %a = binary.add %base, %o : i32
            shared_store %a, %t disp=0"
        )
    };
    for (stride, wavefronts) in [(4, 1), (8, 2), (64, 16), (128, 32), (124, 1)] {
        let c = counted(&column(stride), 32, "shared_store");
        assert_eq!((c.warps, c.wavefronts, c.least_wavefronts), (1, wavefronts, 1), "{stride}");
    }
}

#[test]
fn barriers_and_products() {
    let body = "
        %z = const value=0:i32 : i32
        %e = const value=3:i32 : i32
        %o = const value=1:i32 : i32
        for %z, %e, %o {
        ^(%i: i32):
          barrier
          yield
        }";
    assert_eq!(counted(body, 128, "barrier").warps, 12);
}
