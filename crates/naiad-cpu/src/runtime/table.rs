//! The functions that compiled code calls, under the names by which it knows them.

use crate::clif::RuntimeTable;
use crate::launch::Context;
use naiad_ir::Scalar;
use naiad_ir::thread::RuntimeFn;
use naiad_ir::tile::AtomicOp;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// The table of this process.
pub fn table() -> &'static RuntimeTable {
    static TABLE: OnceLock<RuntimeTable> = OnceLock::new();
    // SAFETY: the functions are those of this crate, with the signatures that the table of Thread IR
    // says.
    TABLE.get_or_init(|| unsafe { RuntimeTable::new(address) })
}

fn address(f: RuntimeFn) -> usize {
    match f {
        RuntimeFn::Copy2d => naiad_kernels::copy::copy2d as *const () as usize,
        RuntimeFn::Dot => naiad_kernels::dot::dot as *const () as usize,
        RuntimeFn::Sort => naiad_kernels::rows::sort as *const () as usize,
        RuntimeFn::TopK => naiad_kernels::rows::topk as *const () as usize,
        RuntimeFn::Histogram => naiad_kernels::rows::histogram as *const () as usize,
        RuntimeFn::MayAccess => may_access as *const () as usize,
        RuntimeFn::Host => host as *const () as usize,
        RuntimeFn::AtomicRmw => atomic_rmw as *const () as usize,
        RuntimeFn::AtomicCas => atomic_cas as *const () as usize,
        RuntimeFn::Wait => wait as *const () as usize,
    }
}

/// # Safety
///
/// The context is that of the launch.
unsafe extern "C" fn may_access(
    context: *const Context<'_>,
    site: i64,
    address: usize,
    _: i64,
) -> u8 {
    // SAFETY: the caller's promise.
    let context = unsafe { &*context };
    u8::from(context.may_access(site as u32, address))
}

/// # Safety
///
/// The context is that of the launch, and the operands are those of the site.
unsafe extern "C" fn host(
    context: *const Context<'_>,
    site: i64,
    program: i64,
    operands: *const *mut u8,
) -> u8 {
    // SAFETY: the caller's promise.
    let context = unsafe { &*context };
    // SAFETY: the caller's promise.
    u8::from(unsafe { context.host(site as u32, program as u64, operands) })
}

/// # Safety
///
/// The context is that of the launch.
unsafe extern "C" fn wait(context: *const Context<'_>, site: i64, same: i64) -> u8 {
    // SAFETY: the caller's promise.
    let context = unsafe { &*context };
    u8::from(context.wait(site as u32, same != 0))
}

/// # Safety
///
/// The address is aligned and valid for an element of the type.
unsafe extern "C" fn atomic_rmw(address: usize, ty: i64, op: i64, value: i64) -> i64 {
    let ty = Scalar::ALL[ty as usize];
    let op = AtomicOp::ALL[op as usize];
    let value = value as u64 & ty.mask();
    macro_rules! at {
        ($Atomic:ty, $t:ty) => {{
            // SAFETY: the caller's promise.
            let cell = unsafe { <$Atomic>::from_ptr(address as *mut $t) };
            let old = cell
                .fetch_update(SeqCst, SeqCst, |old| Some(op.eval(ty, u64::from(old), value) as $t));
            old.map_or_else(u64::from, u64::from) as i64
        }};
    }
    match ty.size() {
        1 => at!(AtomicU8, u8),
        2 => at!(AtomicU16, u16),
        4 => at!(AtomicU32, u32),
        _ => at!(AtomicU64, u64),
    }
}

/// # Safety
///
/// The address is aligned and valid for so many bytes.
unsafe extern "C" fn atomic_cas(address: usize, bytes: i64, compare: i64, value: i64) -> i64 {
    macro_rules! at {
        ($Atomic:ty, $t:ty) => {{
            // SAFETY: the caller's promise.
            let cell = unsafe { <$Atomic>::from_ptr(address as *mut $t) };
            let done = cell.compare_exchange(compare as $t, value as $t, SeqCst, SeqCst);
            done.map_or_else(u64::from, u64::from) as i64
        }};
    }
    match bytes {
        1 => at!(AtomicU8, u8),
        2 => at!(AtomicU16, u16),
        4 => at!(AtomicU32, u32),
        _ => at!(AtomicU64, u64),
    }
}
