//! A device and its primary context, which is the one that CUDA's runtime and torch use too.

use crate::api::Handle;
use crate::{Driver, Result};
use std::ffi::c_int;
use std::marker::PhantomData;
use std::sync::Arc;

/// A device that is ready for work.
pub struct Context {
    driver: &'static Driver,
    ordinal: u32,
    device: c_int,
    raw: Handle,
    facts: Facts,
}

// SAFETY: the driver's handles may be used by all threads.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

macro_rules! facts {
    ($( $(#[$doc:meta])* $name:ident = $attribute:literal; )*) => {
        /// What a device is. Sizes are in bytes, rates in kHz.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct Facts {
            pub name: String,
            /// All of its memory.
            pub memory: usize,
            $( $(#[$doc])* pub $name: u32, )*
        }

        impl Facts {
            fn read(driver: &Driver, device: c_int) -> Result<Facts> {
                let api = driver.api();
                let mut name = [0u8; 256];
                let mut memory = 0;
                // SAFETY: there is room for what the driver writes; it is told how much.
                unsafe {
                    let len = name.len() as c_int;
                    let code = (api.device_name)(name.as_mut_ptr().cast(), len, device);
                    driver.check(code, "asking for a device's name")?;
                    let code = (api.device_memory)(&raw mut memory, device);
                    driver.check(code, "asking for a device's memory")?;
                }
                let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
                let name = String::from_utf8_lossy(&name[..end]).into_owned();
                let attribute = |number: c_int| {
                    let mut value = 0;
                    // SAFETY: there is room for one number.
                    let code = unsafe { (api.device_attribute)(&raw mut value, number, device) };
                    driver.check(code, "asking what a device is")?;
                    Ok(u32::try_from(value).unwrap_or(0))
                };
                Ok(Facts { name, memory, $( $name: attribute($attribute)?, )* })
            }
        }
    };
}

facts! {
    major = 75;
    minor = 76;
    multiprocessors = 16;
    warp_size = 10;
    /// Most threads of a block.
    max_threads = 1;
    max_threads_per_multiprocessor = 39;
    /// Most blocks along each axis of a grid.
    max_grid_x = 5;
    max_grid_y = 6;
    max_grid_z = 7;
    /// Registers of 32 bits.
    registers_per_block = 12;
    registers_per_multiprocessor = 82;
    /// Shared memory that a block has without asking.
    shared_per_block = 8;
    /// Shared memory that a block may have if its function asks.
    shared_per_block_optin = 97;
    shared_per_multiprocessor = 81;
    l2_cache = 38;
    clock = 13;
    memory_clock = 36;
    /// In bits.
    memory_bus_width = 37;
}

impl Facts {
    /// The compute capability times 10: 90 for 9.0.
    pub fn capability(&self) -> u32 {
        10 * self.major + self.minor
    }
}

impl Context {
    /// The primary context of a device. All that is made of it keeps it alive.
    pub fn primary(driver: &'static Driver, ordinal: u32) -> Result<Arc<Context>> {
        let (mut device, mut raw) = (0, std::ptr::null_mut());
        // SAFETY: there is room for what is given; `Drop` releases what is retained.
        unsafe {
            let api = driver.api();
            let number = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
            driver.check((api.device)(&raw mut device, number), "looking for a device")?;
            let facts = Facts::read(driver, device)?;
            driver.check((api.retain_primary)(&raw mut raw, device), "starting a device")?;
            Ok(Arc::new(Context { driver, ordinal, device, raw, facts }))
        }
    }

    pub fn driver(&self) -> &'static Driver {
        self.driver
    }

    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Waits until all that was queued is done; what went wrong with it comes back here.
    pub fn synchronize(&self) -> Result<()> {
        let _here = self.enter()?;
        // SAFETY: the context is current.
        self.check(unsafe { (self.driver.api().synchronize)() }, "waiting for a device")
    }

    /// Bytes that are free, and bytes that there are.
    pub fn memory_info(&self) -> Result<(usize, usize)> {
        let _here = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: there is room for both.
        let code = unsafe { (self.driver.api().memory_info)(&raw mut free, &raw mut total) };
        self.check(code, "asking for free memory").map(|()| (free, total))
    }

    /// Makes this the thread's context until the guard is dropped. Where it was already, as nearly
    /// always, that costs one question of some 20 ns.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        let api = self.driver.api();
        let mut before = std::ptr::null_mut();
        // SAFETY: there is room for a handle; the context lives as long as `self`.
        unsafe {
            self.check((api.current)(&raw mut before), "asking for the current context")?;
            if before != self.raw {
                self.check((api.set_current)(self.raw), "making a context current")?;
            }
        }
        Ok(Entered { context: self, before, here: PhantomData })
    }

    #[inline]
    pub(crate) fn check(&self, code: c_int, doing: &'static str) -> Result<()> {
        self.driver.check(code, doing)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once by `primary`. At the end of a process the driver may be gone before, and
        // says so.
        unsafe { (self.driver.api().release_primary)(self.device) };
    }
}

/// While it lives, its context is the thread's.
pub(crate) struct Entered<'c> {
    context: &'c Context,
    before: Handle,
    /// It concerns this thread only.
    here: PhantomData<*const ()>,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        // Where there was none before, this one may as well stay: the next call finds it.
        if self.before != self.context.raw && !self.before.is_null() {
            // SAFETY: it was current a moment ago.
            unsafe { (self.context.driver.api().set_current)(self.before) };
        }
    }
}
