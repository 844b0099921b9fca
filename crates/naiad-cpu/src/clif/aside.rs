//! Calls that keep every register.
//!
//! The C convention of x86-64 Unix keeps no vector register over a call. A check of one lane that is
//! called once in a launch, if ever, would make the register allocator put the accumulators of every loop
//! around it into memory. Such functions are called through [`keep_all`], which saves what it uses
//! itself, and compiled code knows that by Cranelift's `PreserveAll`. A function called so gives nothing
//! back in registers: its result goes to an address.

use cranelift_codegen::isa::CallConv;

/// Whether there are such calls on this machine.
pub const AVAILABLE: bool = cfg!(all(target_arch = "x86_64", unix));

/// How compiled code calls [`address`].
pub const CONVENTION: CallConv = CallConv::PreserveAll;

/// The address of what stands between: of five arguments, the first four are those of the function, if it
/// takes as many, the fifth is where its result goes, a byte, and the sixth is its address.
pub fn address() -> usize {
    #[cfg(all(target_arch = "x86_64", unix))]
    return keep_all as *const () as usize;
    #[cfg(not(all(target_arch = "x86_64", unix)))]
    0
}

#[cfg(all(target_arch = "x86_64", unix))]
#[unsafe(naked)]
extern "C" fn keep_all() {
    // Nine registers and the return address: 80 bytes, which is a multiple of 16, as calls want it.
    std::arch::naked_asm!(
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "sub rsp, 256",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "movups [rsp + 128], xmm8",
        "movups [rsp + 144], xmm9",
        "movups [rsp + 160], xmm10",
        "movups [rsp + 176], xmm11",
        "movups [rsp + 192], xmm12",
        "movups [rsp + 208], xmm13",
        "movups [rsp + 224], xmm14",
        "movups [rsp + 240], xmm15",
        "call r9",
        // Where the result goes: r8 as it was pushed, above r9, r10 and r11.
        "mov rcx, [rsp + 280]",
        "mov [rcx], al",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "movups xmm8, [rsp + 128]",
        "movups xmm9, [rsp + 144]",
        "movups xmm10, [rsp + 160]",
        "movups xmm11, [rsp + 176]",
        "movups xmm12, [rsp + 192]",
        "movups xmm13, [rsp + 208]",
        "movups xmm14, [rsp + 224]",
        "movups xmm15, [rsp + 240]",
        "add rsp, 256",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "ret",
    )
}
