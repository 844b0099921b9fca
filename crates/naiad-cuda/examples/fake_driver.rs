//! A library with the driver's functions and no device behind them, for tests on machines without one.
//!
//! It is found where the driver's library would be: `LD_LIBRARY_PATH=target/debug/examples`. Its one
//! device has the figures of an H200. Memory is the host's, and what is launched is not run but noted:
//!
//! | variable | what it does |
//! |---|---|
//! | `FAKE_CUDA_LOG` | names a file that gets a line for each launch |
//! | `FAKE_CUDA_FAIL` | `cuLaunchKernel=700`: this function fails with this code, and where a kernel breaks a context so does every later call |
//! | `FAKE_CUDA_RECORD` | `3=1,2,3`: launches write these words where parameter 3 points |
//! | `FAKE_CUDA_CAPTURES` | `0=1`: streams are being captured |
//! | `FAKE_CUDA_FACTS` | `97=65536,8=49152`: other attributes of the device |
//! | `FAKE_CUDA_USES` | `4=255,3=16,0=128`: other attributes of functions |

#![allow(non_snake_case, reason = "the driver's names")]
#![allow(unused_unsafe, reason = "most of these follow pointers, and some do not")]
#![allow(clippy::missing_safety_doc, reason = "as the driver documents them")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock};

type Handle = *mut c_void;

/// The code that every call gives since a kernel broke the context.
static BROKEN: AtomicI32 = AtomicI32::new(0);

/// What a call of this name gives before it does anything.
fn fault(name: &str) -> c_int {
    static FAIL: OnceLock<Option<(String, c_int)>> = OnceLock::new();
    let fail = FAIL.get_or_init(|| {
        let text = std::env::var("FAKE_CUDA_FAIL").ok()?;
        let (name, code) = text.split_once('=')?;
        Some((name.to_string(), code.parse().ok()?))
    });
    let broken = BROKEN.load(Ordering::Relaxed);
    match fail {
        _ if broken != 0 => broken,
        Some((n, code)) if n == name => {
            // A launch is queued; its fault comes back later.
            if (700..720).contains(code) && *code != 701 {
                BROKEN.store(*code, Ordering::Relaxed);
                return if name == "cuLaunchKernel" { 0 } else { *code };
            }
            *code
        }
        _ => 0,
    }
}

/// The number that a variable gives for an attribute, else the usual one.
fn setting(variable: &str, attribute: c_int, usual: c_int) -> c_int {
    let text = std::env::var(variable).unwrap_or_default();
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let mut found = pairs.filter(|(a, _)| a.parse() == Ok(attribute));
    found.find_map(|(_, value)| value.parse().ok()).unwrap_or(usual)
}

/// Has a launch write words where one of its parameters points.
///
/// # Safety
///
/// As for a launch; there is room for the words.
unsafe fn record(function: &Function, params: *mut *mut c_void) {
    let Ok(text) = std::env::var("FAKE_CUDA_RECORD") else { return };
    let Some((at, words)) = text.split_once('=') else { return };
    let Some(i) = at.parse().ok().filter(|&i: &usize| i < function.params.len()) else { return };
    // SAFETY: the caller's promise.
    unsafe {
        let address = params.add(i).read().cast::<usize>().read();
        let to = std::ptr::with_exposed_provenance_mut::<u64>(address);
        for (i, word) in words.split(',').filter_map(|w| w.parse().ok()).enumerate() {
            to.add(i).write(word);
        }
    }
}

macro_rules! driver {
    ($( fn $name:ident($($arg:ident : $ty:ty),*) $body:block )*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $name($($arg: $ty),*) -> c_int {
            match fault(stringify!($name)) {
                // SAFETY: the caller keeps to the driver's rules.
                0 => unsafe { $body },
                code => code,
            }
        }
    )* };
}

macro_rules! give {
    ($($place:ident = $value:expr),* $(,)?) => {{ $( *$place = $value; )* 0 }};
}

/// A function of a module, by its name and the sizes of its parameters.
struct Function {
    name: String,
    params: Vec<usize>,
}

/// The functions that PTX declares.
fn functions(ptx: &str) -> Vec<Function> {
    let entries = ptx.split(".entry").skip(1);
    let one = |text: &str| {
        let (name, rest) = text.split_once('(')?;
        let (params, _) = rest.split_once(')')?;
        let size = |param: &str| {
            let ty = param.split_whitespace().find(|w| w[1..].starts_with(['u', 's', 'b', 'f']))?;
            ty.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().ok()
        };
        let params = params.split(',').filter_map(size).map(|bits| bits / 8).collect();
        Some(Function { name: name.trim().to_string(), params })
    };
    entries.filter_map(one).collect()
}

static CURRENT: Mutex<usize> = Mutex::new(0);
const CONTEXT: usize = 0x1000;

driver! {
    fn cuInit(_flags: c_uint) { 0 }
    fn cuDriverGetVersion(version: *mut c_int) { give!(version = 13000) }
    fn cuDeviceGetCount(count: *mut c_int) { give!(count = 1) }
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) {
        if ordinal == 0 { give!(device = 0) } else { 101 }
    }
    fn cuDeviceGetName(name: *mut c_char, _len: c_int, _device: c_int) {
        std::ptr::copy_nonoverlapping(c"fake H200".as_ptr(), name, 10);
        0
    }
    fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) { give!(bytes = 140 << 30) }
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) {
        let usual = match attribute {
            75 => 9,
            76 => 0,
            16 => 132,
            10 => 32,
            1 => 1024,
            39 => 2048,
            5 => i32::MAX,
            6 | 7 => 65535,
            12 | 82 => 65536,
            8 => 48 << 10,
            97 => 227 << 10,
            81 => 228 << 10,
            38 => 60 << 20,
            13 => 1_980_000,
            36 => 3_201_000,
            37 => 6144,
            _ => return 1,
        };
        give!(value = setting("FAKE_CUDA_FACTS", attribute, usual))
    }
    fn cuDevicePrimaryCtxRetain(context: *mut Handle, _device: c_int) {
        give!(context = std::ptr::without_provenance_mut(CONTEXT))
    }
    fn cuDevicePrimaryCtxRelease_v2(_device: c_int) { 0 }
    fn cuCtxGetCurrent(context: *mut Handle) {
        give!(context = std::ptr::without_provenance_mut(*CURRENT.lock().unwrap()))
    }
    fn cuCtxSetCurrent(context: Handle) {
        *CURRENT.lock().unwrap() = context.addr();
        0
    }
    fn cuCtxSynchronize() { 0 }

    fn cuLinkCreate_v2(n: c_uint, options: *mut c_int, values: *mut *mut c_void, state: *mut Handle) {
        let find = |key| (0..n as usize).find(|&i| *options.add(i) == key).map(|i| *values.add(i));
        let log = find(5).unwrap_or(std::ptr::null_mut()).expose_provenance();
        give!(state = Box::into_raw(Box::new((log, Vec::<u8>::new()))).cast())
    }
    fn cuLinkAddData_v2(
        state: Handle, _kind: c_int, data: *mut c_void, size: usize, _name: *const c_char,
        _n: c_uint, _options: *mut c_int, _values: *mut *mut c_void
    ) {
        let (log, cubin) = &mut *state.cast::<(usize, Vec<u8>)>();
        let ptx = std::slice::from_raw_parts(data.cast::<u8>(), size);
        let text = String::from_utf8_lossy(ptx);
        if let Some(line) = text.lines().position(|l| l.contains("no.such")) {
            let said = format!("line {}: no.such is no instruction\0", line + 1);
            let log = std::ptr::with_exposed_provenance_mut(*log);
            std::ptr::copy_nonoverlapping(said.as_ptr(), log, said.len());
            return 218;
        }
        cubin.extend_from_slice(b"FAKE");
        cubin.extend_from_slice(ptx);
        0
    }
    fn cuLinkComplete(state: Handle, cubin: *mut *mut c_void, size: *mut usize) {
        let (_, code) = &mut *state.cast::<(usize, Vec<u8>)>();
        give!(cubin = code.as_mut_ptr().cast(), size = code.len())
    }
    fn cuLinkDestroy(state: Handle) {
        drop(Box::from_raw(state.cast::<(usize, Vec<u8>)>()));
        0
    }

    fn cuModuleLoadData(module: *mut Handle, image: *const c_void) {
        let image = CStr::from_ptr(image.cast()).to_string_lossy();
        let Some(ptx) = image.strip_prefix("FAKE") else { return 200 };
        give!(module = Box::into_raw(Box::new(functions(ptx))).cast())
    }
    fn cuModuleUnload(module: Handle) {
        drop(Box::from_raw(module.cast::<Vec<Function>>()));
        0
    }
    fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) {
        let name = CStr::from_ptr(name).to_string_lossy();
        let functions = &mut *module.cast::<Vec<Function>>();
        let Some(found) = functions.iter_mut().find(|f| f.name == name) else { return 500 };
        give!(function = std::ptr::from_mut(found).cast())
    }
    fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, _function: Handle) {
        let usual = match attribute { 0 => 1024, 4 => 32, _ => 0 };
        give!(value = setting("FAKE_CUDA_USES", attribute, usual))
    }
    fn cuFuncSetAttribute(_function: Handle, _attribute: c_int, _value: c_int) { 0 }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int, _function: Handle, threads: c_int, _shared: usize
    ) { give!(blocks = 2048 / threads.max(64)) }
    fn cuLaunchKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, _block_y: c_uint, _block_z: c_uint, shared: c_uint, stream: Handle,
        params: *mut *mut c_void, _extra: *mut *mut c_void
    ) {
        static LOG: OnceLock<Option<Mutex<std::fs::File>>> = OnceLock::new();
        let log = LOG.get_or_init(|| {
            let path = std::env::var_os("FAKE_CUDA_LOG")?;
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
            file.ok().map(Mutex::new)
        });
        let function = &*function.cast::<Function>();
        record(function, params);
        let Some(log) = log else { return 0 };
        let value = |(i, &size): (usize, &usize)| {
            let mut bytes = [0u8; 8];
            let from = (*params.add(i)).cast::<u8>();
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), size.min(8));
            u64::from_le_bytes(bytes).to_string()
        };
        let params: Vec<String> = function.params.iter().enumerate().map(value).collect();
        let line = format!(
            "{} grid={grid_x},{grid_y},{grid_z} threads={block_x} shared={shared} stream={} params={}\n",
            function.name, stream.addr(), params.join(",")
        );
        c_int::from(log.lock().unwrap().write_all(line.as_bytes()).is_err())
    }

    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) {
        let memory = vec![0u128; bytes.div_ceil(16)].into_boxed_slice();
        give!(address = Box::leak(memory).as_mut_ptr().expose_provenance() as u64)
    }
    // Not given back: a test that uses it afterwards is to fail in its own words.
    fn cuMemFree_v2(_address: u64) { 0 }
    fn cuMemFreeHost(_memory: *mut c_void) { 0 }
    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) {
        let to = std::ptr::with_exposed_provenance_mut::<u8>(to as usize);
        std::ptr::copy_nonoverlapping(from.cast(), to, bytes);
        0
    }
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) {
        let from = std::ptr::with_exposed_provenance::<u8>(from as usize);
        std::ptr::copy_nonoverlapping(from, to.cast(), bytes);
        0
    }
    fn cuMemHostAlloc(memory: *mut *mut c_void, bytes: usize, _flags: c_uint) {
        let words = vec![0u128; bytes.div_ceil(16)].into_boxed_slice();
        give!(memory = Box::leak(words).as_mut_ptr().cast())
    }
    fn cuMemHostGetDevicePointer_v2(address: *mut u64, memory: *mut c_void, _flags: c_uint) {
        give!(address = memory.expose_provenance() as u64)
    }
    fn cuMemsetD8_v2(address: u64, value: u8, bytes: usize) {
        std::ptr::write_bytes(std::ptr::with_exposed_provenance_mut::<u8>(address as usize), value, bytes);
        0
    }
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        give!(free = 139 << 30, total = 140 << 30)
    }
    // Every address is the device's, and none is shared with the host.
    fn cuPointerGetAttribute(value: *mut c_void, attribute: c_int, _address: u64) {
        if attribute != 9 {
            return 1;
        }
        *value.cast::<c_int>() = 0;
        0
    }

    fn cuStreamCreate(stream: *mut Handle, _flags: c_uint) {
        give!(stream = std::ptr::without_provenance_mut(0x2000))
    }
    fn cuStreamDestroy_v2(_stream: Handle) { 0 }
    fn cuStreamSynchronize(_stream: Handle) { 0 }
    fn cuStreamIsCapturing(_stream: Handle, status: *mut c_int) {
        give!(status = setting("FAKE_CUDA_CAPTURES", 0, 0))
    }
    fn cuEventCreate(event: *mut Handle, _flags: c_uint) {
        give!(event = std::ptr::without_provenance_mut(0x3000))
    }
    fn cuEventDestroy_v2(_event: Handle) { 0 }
    fn cuEventRecord(_event: Handle, _stream: Handle) { 0 }
    fn cuEventSynchronize(_event: Handle) { 0 }
    fn cuEventElapsedTime(milliseconds: *mut f32, _from: Handle, _to: Handle) {
        give!(milliseconds = 1.0)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuGetErrorName(_code: c_int, name: *mut *const c_char) -> c_int {
    // SAFETY: as in the driver, there is room for the text.
    unsafe { *name = c"FAKE_ERROR".as_ptr() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuGetErrorString(_code: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: as above.
    unsafe { *text = c"the fake driver was told to fail".as_ptr() };
    0
}
