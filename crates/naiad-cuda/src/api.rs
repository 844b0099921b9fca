//! The functions of the driver that are called here: name, symbol, parameters.
//!
//! They are C's, and all return a code that is 0 where they succeeded. Handles are addresses that only
//! the driver looks behind; a device is a number; memory of a device is an address that no program of
//! the host may follow. Symbols with a version are those that CUDA's header has meant by the plain name
//! since CUDA 4 or, for the context's release, CUDA 11.

use crate::{Error, Result};
use libloading::Library;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// A handle.
pub type Handle = *mut c_void;

macro_rules! functions {
    ($( $name:ident = $symbol:literal ( $($arg:ident : $ty:ty),* ); )*) => {
        /// The driver's functions.
        pub struct Api {
            $( pub $name: unsafe extern "system" fn($($ty),*) -> c_int, )*
        }

        impl Api {
            /// Looks all of them up.
            pub(crate) fn load(library: &Library) -> Result<Api> {
                Ok(Api { $(
                    // SAFETY: these are the types that NVIDIA documents for the symbol.
                    $name: *unsafe { library.get($symbol.as_bytes()) }
                        .map_err(|_| Error::Outdated { symbol: $symbol })?,
                )* })
            }
        }
    };
}

functions! {
    init = "cuInit" (flags: c_uint);
    driver_version = "cuDriverGetVersion" (version: *mut c_int);
    error_name = "cuGetErrorName" (code: c_int, name: *mut *const c_char);
    error_text = "cuGetErrorString" (code: c_int, text: *mut *const c_char);

    device_count = "cuDeviceGetCount" (count: *mut c_int);
    device = "cuDeviceGet" (device: *mut c_int, ordinal: c_int);
    device_name = "cuDeviceGetName" (name: *mut c_char, len: c_int, device: c_int);
    device_memory = "cuDeviceTotalMem_v2" (bytes: *mut usize, device: c_int);
    device_attribute = "cuDeviceGetAttribute" (value: *mut c_int, attribute: c_int, device: c_int);
    retain_primary = "cuDevicePrimaryCtxRetain" (context: *mut Handle, device: c_int);
    release_primary = "cuDevicePrimaryCtxRelease_v2" (device: c_int);
    current = "cuCtxGetCurrent" (context: *mut Handle);
    set_current = "cuCtxSetCurrent" (context: Handle);
    synchronize = "cuCtxSynchronize" ();

    link_create = "cuLinkCreate_v2" (n: c_uint, options: *mut c_int, values: *mut *mut c_void, state: *mut Handle);
    link_add = "cuLinkAddData_v2" (
        state: Handle, kind: c_int, data: *mut c_void, size: usize, name: *const c_char,
        n: c_uint, options: *mut c_int, values: *mut *mut c_void
    );
    link_complete = "cuLinkComplete" (state: Handle, cubin: *mut *mut c_void, size: *mut usize);
    link_destroy = "cuLinkDestroy" (state: Handle);

    module_load = "cuModuleLoadData" (module: *mut Handle, image: *const c_void);
    module_unload = "cuModuleUnload" (module: Handle);
    module_function = "cuModuleGetFunction" (function: *mut Handle, module: Handle, name: *const c_char);
    function_attribute = "cuFuncGetAttribute" (value: *mut c_int, attribute: c_int, function: Handle);
    set_function_attribute = "cuFuncSetAttribute" (function: Handle, attribute: c_int, value: c_int);
    blocks_per_multiprocessor = "cuOccupancyMaxActiveBlocksPerMultiprocessor" (
        blocks: *mut c_int, function: Handle, threads: c_int, shared: usize
    );
    launch = "cuLaunchKernel" (
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle,
        params: *mut *mut c_void, extra: *mut *mut c_void
    );

    alloc = "cuMemAlloc_v2" (address: *mut u64, bytes: usize);
    free = "cuMemFree_v2" (address: u64);
    to_device = "cuMemcpyHtoD_v2" (to: u64, from: *const c_void, bytes: usize);
    to_host = "cuMemcpyDtoH_v2" (to: *mut c_void, from: u64, bytes: usize);
    host_alloc = "cuMemHostAlloc" (memory: *mut *mut c_void, bytes: usize, flags: c_uint);
    host_free = "cuMemFreeHost" (memory: *mut c_void);
    host_address = "cuMemHostGetDevicePointer_v2" (address: *mut u64, memory: *mut c_void, flags: c_uint);
    fill = "cuMemsetD8_v2" (address: u64, value: u8, bytes: usize);
    memory_info = "cuMemGetInfo_v2" (free: *mut usize, total: *mut usize);
    pointer_attribute = "cuPointerGetAttribute" (value: *mut c_void, attribute: c_int, address: u64);

    stream_create = "cuStreamCreate" (stream: *mut Handle, flags: c_uint);
    stream_destroy = "cuStreamDestroy_v2" (stream: Handle);
    stream_synchronize = "cuStreamSynchronize" (stream: Handle);
    stream_capturing = "cuStreamIsCapturing" (stream: Handle, status: *mut c_int);
    event_create = "cuEventCreate" (event: *mut Handle, flags: c_uint);
    event_destroy = "cuEventDestroy_v2" (event: Handle);
    event_record = "cuEventRecord" (event: Handle, stream: Handle);
    event_synchronize = "cuEventSynchronize" (event: Handle);
    event_elapsed = "cuEventElapsedTime" (milliseconds: *mut f32, from: Handle, to: Handle);
}
