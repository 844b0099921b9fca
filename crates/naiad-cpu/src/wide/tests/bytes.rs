//! Some instructions to the byte, as other assemblers write them.

use crate::wide::encode::{Asm, Mem, Operands, Rm};
use crate::wide::machine::{Level, Op, Width};

fn bytes(level: Level, op: Op, o: Operands) -> Vec<u8> {
    let mut asm = Asm::default();
    asm.vector(level, op.row(), o);
    asm.bytes
}

fn operands(width: Width, reg: u8, vvvv: u8, rm: Rm) -> Operands {
    Operands { width, reg, vvvv, rm, mask: None, imm: None }
}

#[test]
fn registers() {
    let (avx2, avx512) = (Level::Avx2, Level::Avx512);
    let add = |level, reg, vvvv, rm, width| {
        bytes(level, Op::AddPs, operands(width, reg, vvvv, Rm::Reg(rm)))
    };
    // vaddps ymm1, ymm2, ymm3
    assert_eq!(add(avx2, 1, 2, 3, Width::Y), [0xc5, 0xec, 0x58, 0xcb]);
    // vaddps xmm9, xmm10, xmm11
    assert_eq!(add(avx2, 9, 10, 11, Width::X), [0xc4, 0x41, 0x28, 0x58, 0xcb]);
    // vaddps zmm1, zmm2, zmm3
    assert_eq!(add(avx512, 1, 2, 3, Width::Z), [0x62, 0xf1, 0x6c, 0x48, 0x58, 0xcb]);
    // vaddps zmm31, zmm23, zmm14
    assert_eq!(add(avx512, 31, 23, 14, Width::Z), [0x62, 0x41, 0x44, 0x40, 0x58, 0xfe]);
    // vaddps zmm9, zmm2, zmm27
    assert_eq!(add(avx512, 9, 2, 27, Width::Z), [0x62, 0x11, 0x6c, 0x48, 0x58, 0xcb]);
}

#[test]
fn memory() {
    let at = |base, index, disp| Mem::Base { base, index, disp };
    let add = |rm| bytes(Level::Avx512, Op::AddPs, operands(Width::Z, 0, 1, rm));
    // vaddps zmm0, zmm1, [rdi + 64]
    assert_eq!(add(Rm::Mem(at(7, None, 64))), [0x62, 0xf1, 0x74, 0x48, 0x58, 0x47, 0x01]);
    // vaddps zmm0, zmm1, [rdi + 4]{1to16}
    assert_eq!(add(Rm::Repeat(at(7, None, 4))), [0x62, 0xf1, 0x74, 0x58, 0x58, 0x47, 0x01]);
    // vaddps zmm0, zmm1, [r13 + rax * 4 + 8]
    assert_eq!(
        add(Rm::Mem(at(13, Some((0, 2)), 8))),
        [0x62, 0xd1, 0x74, 0x48, 0x58, 0x84, 0x85, 0x08, 0x00, 0x00, 0x00]
    );
    // vaddps zmm0, zmm1, [r12]
    assert_eq!(add(Rm::Mem(at(12, None, 0))), [0x62, 0xd1, 0x74, 0x48, 0x58, 0x04, 0x24]);
}

#[test]
fn masks_and_immediates() {
    let level = Level::Avx512;
    // vblendmps would do; this is vpblendmd zmm0{k3}, zmm1, zmm2
    let o = Operands { mask: Some((3, false)), ..operands(Width::Z, 0, 1, Rm::Reg(2)) };
    assert_eq!(bytes(level, Op::BlendD, o), [0x62, 0xf2, 0x75, 0x4b, 0x64, 0xc2]);
    // vcmplt_oqps k1, zmm1, zmm2
    let o = Operands { imm: Some(17), ..operands(Width::Z, 1, 1, Rm::Reg(2)) };
    assert_eq!(bytes(level, Op::CmpPsK, o), [0x62, 0xf1, 0x74, 0x48, 0xc2, 0xca, 0x11]);
    // vpslld zmm5, zmm6, 23
    let o = Operands { imm: Some(23), ..operands(Width::Z, 5, 0, Rm::Reg(6)) };
    assert_eq!(bytes(level, Op::ShlImmD, o), [0x62, 0xf1, 0x55, 0x48, 0x72, 0xf6, 0x17]);
    // kandq k1, k2, k3
    let o = operands(Width::X, 1, 2, Rm::Reg(3));
    assert_eq!(bytes(level, Op::KAnd, o), [0xc4, 0xe1, 0xec, 0x41, 0xcb]);
}
