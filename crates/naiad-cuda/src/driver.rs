//! The driver's library.

use crate::api::Api;
use crate::{Code, Error, Result};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

/// The driver, which is the same for the whole process.
pub struct Driver {
    api: Api,
    version: u32,
    devices: u32,
}

/// What the library is called. The plain name that headers come with may be a stub for linking.
const NAMES: &[&str] =
    if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] };

impl Driver {
    /// Opens and starts the driver, the first time; says why where there is none.
    pub fn get() -> Result<&'static Driver> {
        static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
        DRIVER.get_or_init(Driver::open).as_ref().map_err(Error::clone)
    }

    fn open() -> Result<Driver> {
        let mut why = String::new();
        for name in NAMES {
            // SAFETY: the driver's library may be opened at any time, and is never closed.
            match unsafe { Library::new(*name) } {
                Ok(library) => {
                    // Whatever was started in it goes on until the process ends.
                    let library: &'static Library = Box::leak(Box::new(library));
                    return Driver::start(Api::load(library)?);
                }
                Err(e) if why.is_empty() => why = chain(&e),
                Err(_) => {}
            }
        }
        Err(Error::NoDriver { why })
    }

    fn start(api: Api) -> Result<Driver> {
        let mut driver = Driver { api, version: 0, devices: 0 };
        // SAFETY: plain calls, with room for what they give.
        unsafe {
            let started = (driver.api.init)(0);
            // A driver without devices is there all the same.
            if Code::of(started) == Code::NoDevice {
                return Ok(driver);
            }
            driver.check(started, "starting the CUDA driver")?;
            let (mut version, mut devices) = (0, 0);
            driver
                .check((driver.api.driver_version)(&raw mut version), "asking for its version")?;
            driver.check((driver.api.device_count)(&raw mut devices), "counting devices")?;
            driver.version = u32::try_from(version).unwrap_or(0);
            driver.devices = u32::try_from(devices).unwrap_or(0);
        }
        Ok(driver)
    }

    /// The newest CUDA that it knows, times 1000: 13000 for 13.0.
    pub fn version(&self) -> u32 {
        self.version
    }

    pub fn devices(&self) -> u32 {
        self.devices
    }

    /// The device whose memory an address is of; none for memory of the host alone.
    pub fn device_of(&self, address: usize) -> Result<Option<u32>> {
        const DEVICE_ORDINAL: c_int = 9;
        let mut found: c_int = 0;
        // SAFETY: the attribute is a number; the driver looks the address up and does not follow it.
        let code = unsafe {
            (self.api.pointer_attribute)((&raw mut found).cast(), DEVICE_ORDINAL, address as u64)
        };
        match Code::of(code) {
            Code::InvalidValue => Ok(None),
            _ => self.check(code, "looking an address up").map(|()| u32::try_from(found).ok()),
        }
    }

    /// Whether the device may use this memory of the host: it was made to be shared with it.
    pub fn shares(&self, address: usize) -> bool {
        const DEVICE_POINTER: c_int = 3;
        let mut found = 0u64;
        // SAFETY: the attribute is an address; the driver looks the given one up and does not follow it.
        unsafe {
            (self.api.pointer_attribute)((&raw mut found).cast(), DEVICE_POINTER, address as u64)
                == 0
        }
    }

    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    /// The error that a call's code stands for.
    #[inline]
    pub(crate) fn check(&self, code: c_int, doing: &'static str) -> Result<()> {
        match code {
            0 => Ok(()),
            _ => Err(self.error(code, doing)),
        }
    }

    #[cold]
    fn error(&self, code: c_int, doing: &'static str) -> Error {
        let ask = |ask: unsafe extern "system" fn(c_int, *mut *const c_char) -> c_int| {
            let mut text = std::ptr::null();
            // SAFETY: the driver gives a text of its own, which stays, or null.
            unsafe {
                match ask(code, &raw mut text) {
                    0 if !text.is_null() => CStr::from_ptr(text).to_string_lossy().into_owned(),
                    _ => "the driver says no more".to_string(),
                }
            }
        };
        let mut text = ask(self.api.error_text);
        let code = Code::of(code);
        if let Code::Other(number) = code {
            text = format!("{} ({text})", ask(self.api.error_name));
            debug_assert_ne!(number, 0);
        }
        Error::Call { code, doing, text }
    }
}

/// An error with its causes, as one sentence.
fn chain(e: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(e), |e| e.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
