//! Machine code on a device, and launching it.

use crate::api::Handle;
use crate::stream::RawStream;
use crate::{Context, Result};
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::Arc;

/// Code that is loaded.
pub struct Module {
    context: Arc<Context>,
    raw: Handle,
}

// SAFETY: the driver's handles may be used by all threads.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// A kernel of a module.
pub struct Function {
    module: Arc<Module>,
    raw: Handle,
    uses: Uses,
}

// SAFETY: as for a module.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// What a function uses of a device.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Uses {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of memory of a thread, nearly always registers that there was no room for.
    pub local_bytes: u32,
    /// Bytes of shared memory that the code itself declares; a launch may ask for more.
    pub shared_bytes: u32,
    /// Threads that a block of it can have, as its registers allow.
    pub max_threads: u32,
}

/// The driver's numbers for what is asked of a function.
mod attribute {
    use std::ffi::c_int;
    pub const MAX_THREADS: c_int = 0;
    pub const SHARED_BYTES: c_int = 1;
    pub const LOCAL_BYTES: c_int = 3;
    pub const REGISTERS: c_int = 4;
    pub const MAX_DYNAMIC_SHARED: c_int = 8;
}
/// More than this much shared memory a function has to ask for.
const PLAIN_SHARED: u32 = 48 << 10;

impl Module {
    /// Loads machine code, or PTX that the driver then compiles without a word of explanation.
    ///
    /// # Safety
    ///
    /// `image` is what [`crate::link`] gave for a device of this kind, or PTX that ends in a zero byte:
    /// the driver is not told its length.
    pub unsafe fn load(context: &Arc<Context>, image: &[u8]) -> Result<Arc<Module>> {
        let _here = context.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the caller's promise; there is room for a handle.
        let code =
            unsafe { (context.driver().api().module_load)(&raw mut raw, image.as_ptr().cast()) };
        context.check(code, "loading a module")?;
        Ok(Arc::new(Module { context: context.clone(), raw }))
    }

    /// The function of that name, which may then use `dynamic_shared` bytes of shared memory besides
    /// what its code declares.
    pub fn function(self: &Arc<Module>, name: &CStr, dynamic_shared: u32) -> Result<Function> {
        let context = &self.context;
        let _here = context.enter()?;
        let api = context.driver().api();
        let mut raw = std::ptr::null_mut();
        // SAFETY: there is room for a handle; the module is loaded.
        let code = unsafe { (api.module_function)(&raw mut raw, self.raw, name.as_ptr()) };
        context.check(code, "looking for a function")?;
        if dynamic_shared > PLAIN_SHARED {
            let bytes = c_int::try_from(dynamic_shared).unwrap_or(c_int::MAX);
            // SAFETY: the function was just given.
            let code =
                unsafe { (api.set_function_attribute)(raw, attribute::MAX_DYNAMIC_SHARED, bytes) };
            context.check(code, "asking for shared memory")?;
        }
        let ask = |attribute: c_int| {
            let mut value = 0;
            // SAFETY: there is room for one number.
            let code = unsafe { (api.function_attribute)(&raw mut value, attribute, raw) };
            context.check(code, "asking what a function uses")?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let uses = Uses {
            registers: ask(attribute::REGISTERS)?,
            local_bytes: ask(attribute::LOCAL_BYTES)?,
            shared_bytes: ask(attribute::SHARED_BYTES)?,
            max_threads: ask(attribute::MAX_THREADS)?,
        };
        Ok(Function { module: self.clone(), raw, uses })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // A context that a kernel has broken refuses, and then there is nothing left to unload.
        let Ok(_here) = self.context.enter() else { return };
        // SAFETY: loaded by `load`, and every function of it holds it.
        unsafe { (self.context.driver().api().module_unload)(self.raw) };
    }
}

impl Function {
    pub fn uses(&self) -> Uses {
        self.uses
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.module.context
    }

    /// Blocks of it that one multiprocessor runs at a time.
    pub fn blocks_per_multiprocessor(&self, threads: u32, dynamic_shared: u32) -> Result<u32> {
        let context = self.context();
        let _here = context.enter()?;
        let mut blocks = 0;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: there is room for one number.
        let code = unsafe {
            (context.driver().api().blocks_per_multiprocessor)(
                &raw mut blocks,
                self.raw,
                threads,
                dynamic_shared as usize,
            )
        };
        context.check(code, "asking for the occupancy")?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// Queues a launch on a stream; nothing is waited for.
    ///
    /// # Safety
    ///
    /// `params` has an address for each parameter of the function, at which there is a value of its
    /// type. Whatever memory the kernel touches through them is there until it has run.
    #[inline]
    pub unsafe fn launch(
        &self,
        grid: [u32; 3],
        threads: u32,
        dynamic_shared: u32,
        stream: RawStream,
        params: &[*const c_void],
    ) -> Result<()> {
        let context = &*self.module.context;
        let _here = context.enter()?;
        // SAFETY: the caller's promise. The driver reads the values before it returns, and writes none.
        let code = unsafe {
            (context.driver().api().launch)(
                self.raw,
                grid[0],
                grid[1],
                grid[2],
                threads as c_uint,
                1,
                1,
                dynamic_shared,
                stream.0,
                params.as_ptr().cast_mut().cast(),
                std::ptr::null_mut(),
            )
        };
        context.check(code, "launching a kernel")
    }
}
