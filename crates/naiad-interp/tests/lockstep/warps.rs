//! Shuffles, votes, matrix products.

use super::*;
use naiad_ir::Scalar;
use naiad_ir::scalar::{Rounding, cast_bits};
use naiad_ir::thread::MmaKind;
use naiad_ir::thread::fragments::{a_index, b_index, c_index, tile_index};

fn numbers(body: &str, threads: u32, n: i32) -> Vec<i32> {
    let (mut x, mut y) = (Vec::from_iter(0..threads as i32), vec![0; threads as usize]);
    run(body, threads, &mut x, &mut y, n);
    y
}

#[test]
fn shuffles_pass_values() {
    let own = |mode: &str| format!("%v = warp_shuffle.{mode} %t, %n : i32\n store %yt, %v disp=0");
    let lanes = |f: fn(i32) -> i32| Vec::from_iter((0..64).map(|t| t / 32 * 32 + f(t % 32)));
    assert_eq!(numbers(&own("index"), 64, 5), lanes(|_| 5));
    assert_eq!(numbers(&own("index"), 64, -1), lanes(|_| 31), "five bits count");
    assert_eq!(numbers(&own("xor"), 64, 5), lanes(|t| t ^ 5));
    assert_eq!(numbers(&own("up"), 64, 5), lanes(|t| if t < 5 { t } else { t - 5 }));
    assert_eq!(numbers(&own("down"), 64, 5), lanes(|t| if t > 26 { t } else { t + 5 }));
    let each = "%z = const value=31:i32 : i32
        %l = binary.and %t, %z : i32
        %o = binary.sub %z, %l : i32
        %v = warp_shuffle.index %t, %o : i32
        store %yt, %v disp=0";
    assert_eq!(numbers(each, 64, 0), lanes(|t| 31 - t));
}

/// Of two NaNs each thread takes its own, so that their payloads differ in a value that is the same in all.
#[test]
fn any_nan_is_the_same_number() {
    let body = "%one = const value=1:i32 : i32
        %low = binary.and %t, %one : i32
        %nan = const value=2143289344:i32 : i32
        %image = binary.add %nan, %low : i32
        %f = bitcast %image to=fp32 : fp32
        %o = warp_shuffle.xor %f, %one : fp32
        %m = binary.min %f, %o : fp32
        %is = compare.ne %m, %m : i1
        %v = cast %is to=i32 : i32
        store %yt, %v disp=0";
    assert_eq!(numbers(body, 32, 0), [1; 32]);
}

/// The sum over a block: within warps by shuffles, between them through shared memory.
#[test]
fn blocks_reduce() {
    let step = |from: &str, to: &str, by: u32| {
        format!(
            "%by{to} = const value={by}:i32 : i32
             %o{to} = warp_shuffle.xor {from}, %by{to} : i32
             %{to} = binary.add {from}, %o{to} : i32\n"
        )
    };
    let mut body = "%a0 = load %xt disp=0 elem=i32 : i32\n".to_string();
    for i in 0..5 {
        body += &step(&format!("%a{i}"), &format!("a{}", i + 1), 16 >> i);
    }
    // All threads of a warp write the same sum to the same place.
    body += "%five = const value=5:i32 : i32
        %warp = binary.shr %t, %five : i32
        %w4 = binary.mul %warp, %four : i32
        %sw = binary.add %base, %w4 : i32
        shared_store %sw, %a5 disp=0
        barrier
        %s = shared_load %base disp=0 elem=i32 lanes=4 : i32x4
        %e0 = extract %s lane=0 : i32
        %e1 = extract %s lane=1 : i32
        %e2 = extract %s lane=2 : i32
        %e3 = extract %s lane=3 : i32
        %e01 = binary.add %e0, %e1 : i32
        %e23 = binary.add %e2, %e3 : i32
        %e = binary.add %e01, %e23 : i32
        store %yt, %e disp=0";
    assert_eq!(numbers(&body, 128, 0), vec![127 * 64; 128]);
}

#[test]
fn warps_vote() {
    let body = "
        %c = compare.lt %t, %n : i1
        %any = warp_vote.any %c : i1
        %all = warp_vote.all %c : i1
        %a = cast %any to=i32 : i32
        %b = cast %all to=i32 : i32
        %v = binary.add %a, %b : i32
        store %yt, %v disp=0";
    let want = [2, 1, 0].map(|v| [v; 32]).concat();
    assert_eq!(numbers(body, 96, 40), want);
}

/// Products of every kind against sums over the matrices, which are small enough to be exact.
#[test]
fn products_are_those_of_matrices() {
    for &kind in MmaKind::ALL {
        let [m, n, k] = kind.extents().map(|e| e as usize);
        let elem = kind.elem();
        let signed = elem != Scalar::U8;
        let number = |i: usize| (i * 7 % 5) as f64 - if signed { 2.0 } else { 0.0 };
        let image = |x: f64| cast_bits(Scalar::F64, elem, Rounding::Nearest, x.to_bits()) as u32;
        let a = |r: u32, c: u32| number((r * 3 + c) as usize);
        let b = |r: u32, c: u32| number((r + c * 11) as usize);
        let c = |r: u32, c: u32| f64::from(r * 8 + c);
        let sum = kind.sum();
        // Registers a, b, c of each thread behind each other in x, by the register.
        let mut x = vec![0u32; 10 * 32];
        for thread in 0..32 {
            let at = |register: u32| (register * 32 + thread) as usize;
            for part in 0..kind.per_register() {
                let shift = part * elem.bits();
                for register in 0..4 {
                    let (row, column) = a_index(kind, thread, register, part);
                    x[at(register)] |= image(a(row, column)) << shift;
                }
                for register in 0..2 {
                    let (row, column) = b_index(kind, thread, register, part);
                    x[at(4 + register)] |= image(b(row, column)) << shift;
                }
            }
            for register in 0..4 {
                let (row, column) = c_index(thread, register);
                let bits = c(row, column).to_bits();
                x[at(6 + register)] = cast_bits(Scalar::F64, sum, Rounding::Nearest, bits) as u32;
            }
        }
        let mut body = String::new();
        for register in 0..10 {
            let ty = if register < 6 { Scalar::I32 } else { sum };
            let disp = register * 128;
            body += &format!("%r{register} = load %xt disp={disp} elem={ty} : {ty}\n");
        }
        body += &format!(
            "%d0, %d1, %d2, %d3 = mma.{} a=[%r0, %r1, %r2, %r3] b=[%r4, %r5] c=[%r6, %r7, %r8, %r9] : {sum}, {sum}, {sum}, {sum}\n",
            kind.name()
        );
        for register in 0..4 {
            body += &format!("store %yt, %d{register} disp={}\n", register * 128);
        }
        let mut y = vec![0u32; 4 * 32];
        run(&body, 32, &mut x, &mut y, 0);
        for row in 0..m as u32 {
            for column in 0..n as u32 {
                let want =
                    c(row, column) + (0..k as u32).map(|i| a(row, i) * b(i, column)).sum::<f64>();
                let want = cast_bits(Scalar::F64, sum, Rounding::Nearest, want.to_bits()) as u32;
                let (register, thread) = (0..4)
                    .flat_map(|r| (0..32).map(move |t| (r, t)))
                    .find(|&(r, t)| c_index(t, r) == (row, column))
                    .unwrap();
                let have = y[(register * 32 + thread) as usize];
                assert_eq!(have, want, "{} at {row}, {column}", kind.name());
            }
        }
    }
}

#[test]
fn tf32_is_cut_off() {
    let body = "
        %one = const value=1065353216:i32 : i32
        %zero = const value=0:i32 : i32
        %f = const value=0.0:fp32 : fp32
        %d0, %d1, %d2, %d3 = mma.tf32 a=[%n, %zero, %zero, %zero] b=[%one, %one] c=[%f, %f, %f, %f] : fp32, fp32, fp32, fp32
        store %yt, %d0 disp=0";
    let (mut x, mut y) = ([0i32], [0f32; 32]);
    // 1 + 2^-10 + 2^-11: the last is below the ten bits that count.
    run(body, 32, &mut x, &mut y, 0x3f80_3000);
    assert_eq!(y, [4.0 * (1.0 + 1.0 / 1024.0); 32]);
}

#[test]
fn matrices_are_loaded() {
    for transposed in [false, true] {
        // Four tiles of 8 rows of 16 bytes, each row 32 bytes behind the last, so that two lie side by side.
        let body = format!(
            "%eight = const value=8:i32 : i32
            %v = load %xt disp=0 elem=i32 : i32
            shared_store %st, %v disp=0
            barrier
            %lane = binary.rem %t, %n : i32
            %row = binary.rem %lane, %eight : i32
            %tile = binary.idiv %lane, %eight : i32
            %two = const value=2:i32 : i32
            %side = binary.rem %tile, %two : i32
            %down = binary.idiv %tile, %two : i32
            %stride = const value=32:i32 : i32
            %sixteen = const value=16:i32 : i32
            %rows = const value=256:i32 : i32
            %o1 = binary.mul %row, %stride : i32
            %o2 = binary.mul %side, %sixteen : i32
            %o3 = binary.mul %down, %rows : i32
            %o4 = binary.add %o1, %o2 : i32
            %o5 = binary.add %o4, %o3 : i32
            %at = binary.add %base, %o5 : i32
            %m0, %m1, %m2, %m3 = load_matrix %at disp=0 count=4 transposed={transposed} : i32, i32, i32, i32
            store %yt, %m0 disp=0
            store %yt, %m1 disp=512
            store %yt, %m2 disp=1024
            store %yt, %m3 disp=1536"
        );
        let element = |row: usize, column: usize| (row * 16 + column) as u16;
        let mut x: Vec<u16> = (0..256).map(|i| element(i / 16, i % 16)).collect();
        let mut y = vec![0u32; 4 * 128];
        run(&body, 128, &mut x, &mut y, 32);
        for tile in 0..4 {
            for thread in 0..128 {
                let word = y[tile * 128 + thread];
                for part in 0..2 {
                    let (row, column) = tile_index(thread as u32 % 32, part);
                    let (row, column) = if transposed { (column, row) } else { (row, column) };
                    let want = element(tile / 2 * 8 + row as usize, tile % 2 * 8 + column as usize);
                    assert_eq!((word >> (16 * part)) as u16, want);
                }
            }
        }
    }
}
