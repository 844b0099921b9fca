//! PTX to machine code, by the compiler in the driver.

use crate::{Code, Context, Error, Result};
use std::ffi::{CStr, c_int, c_uint, c_void};

/// How PTX is compiled.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct JitOptions {
    /// Most registers of a thread; what does not fit is kept in memory.
    pub max_registers: Option<u32>,
    /// From 0 to 4; the driver's choice is 4.
    pub optimization: Option<u32>,
    /// Keeps the lines that the PTX names, for profilers.
    pub line_info: bool,
}

/// Machine code, with what the compiler said about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Linked {
    pub cubin: Vec<u8>,
    pub log: String,
}

/// The driver's numbers for options of its compiler.
mod option {
    use std::ffi::c_int;
    pub const MAX_REGISTERS: c_int = 0;
    pub const INFO_LOG: c_int = 3;
    pub const INFO_LOG_BYTES: c_int = 4;
    pub const ERROR_LOG: c_int = 5;
    pub const ERROR_LOG_BYTES: c_int = 6;
    pub const OPTIMIZATION: c_int = 7;
    pub const TARGET: c_int = 9;
    pub const VERBOSE: c_int = 12;
    pub const LINE_INFO: c_int = 13;
}
const PTX: c_int = 1;
const LOG_BYTES: usize = 16 << 10;

/// Compiles PTX for the context's device; `name` stands in messages.
pub fn link(context: &Context, name: &CStr, ptx: &CStr, options: &JitOptions) -> Result<Linked> {
    let _here = context.enter()?;
    let (mut info, mut error) = (vec![0u8; LOG_BYTES], vec![0u8; LOG_BYTES]);
    let mut keys = vec![];
    let mut values: Vec<*mut c_void> = vec![];
    let mut set = |key: c_int, value: *mut c_void| {
        keys.push(key);
        values.push(value);
    };
    // Numbers stand where others have addresses.
    let number = |n: usize| std::ptr::without_provenance_mut::<c_void>(n);
    set(option::INFO_LOG, info.as_mut_ptr().cast());
    set(option::INFO_LOG_BYTES, number(LOG_BYTES));
    set(option::ERROR_LOG, error.as_mut_ptr().cast());
    set(option::ERROR_LOG_BYTES, number(LOG_BYTES));
    set(option::VERBOSE, number(1));
    if let Some(target) = specific_target(ptx) {
        set(option::TARGET, number(target));
    }
    if let Some(n) = options.max_registers {
        set(option::MAX_REGISTERS, number(n as usize));
    }
    if let Some(level) = options.optimization {
        set(option::OPTIMIZATION, number(level as usize));
    }
    if options.line_info {
        set(option::LINE_INFO, number(1));
    }

    let driver = context.driver();
    let api = driver.api();
    let mut state = std::ptr::null_mut();
    // SAFETY: as many values as keys, each of the kind that its key demands; the logs outlive the state,
    // which writes them.
    unsafe {
        let n = keys.len() as c_uint;
        let code = (api.link_create)(n, keys.as_mut_ptr(), values.as_mut_ptr(), &raw mut state);
        driver.check(code, "starting the driver's compiler")?;
        let nothing = std::ptr::null_mut::<c_void>;
        let mut code = (api.link_add)(
            state,
            PTX,
            ptx.as_ptr().cast_mut().cast(),
            // The end of the text counts.
            ptx.count_bytes() + 1,
            name.as_ptr(),
            0,
            nothing().cast(),
            nothing().cast(),
        );
        let (mut cubin, mut size) = (nothing(), 0);
        if code == 0 {
            code = (api.link_complete)(state, &raw mut cubin, &raw mut size);
        }
        let made = match code {
            // The code is the state's, so it is copied before that is gone.
            0 => Some(std::slice::from_raw_parts(cubin.cast::<u8>(), size).to_vec()),
            _ => None,
        };
        (api.link_destroy)(state);
        match made {
            Some(cubin) => Ok(Linked { cubin, log: text(&info) }),
            None => {
                let log = [text(&error), text(&info)].join("\n").trim().to_string();
                Err(Error::Compile { code: Code::of(code), log })
            }
        }
    }
}

/// The text in a log up to its end.
fn text(log: &[u8]) -> String {
    let end = log.iter().position(|&b| b == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).trim().to_string()
}

/// The driver's number for a target that stands for one chip only, as `sm_90a` does; others the driver
/// knows from the context.
fn specific_target(ptx: &CStr) -> Option<usize> {
    const ACCELERATED: usize = 0x10000;
    let text = ptx.to_str().ok()?;
    let line = text.lines().find_map(|l| l.trim().strip_prefix(".target"))?;
    let name = line.split([',', ' ', '\t']).find(|w| !w.is_empty())?;
    let number: usize = name.trim().strip_prefix("sm_")?.strip_suffix('a')?.parse().ok()?;
    Some(number + ACCELERATED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_of_one_chip_is_named_to_the_driver() {
        assert_eq!(specific_target(c".version 8.7\n.target sm_90a\n"), Some(90 + 0x10000));
        assert_eq!(
            specific_target(c".version 8.7\n.target\tsm_100a, debug\n"),
            Some(100 + 0x10000)
        );
        assert_eq!(specific_target(c".version 8.7\n.target sm_90\n"), None);
        assert_eq!(specific_target(c""), None);
    }
}
