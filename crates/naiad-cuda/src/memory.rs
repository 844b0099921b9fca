//! Bytes on a device.

use crate::{Context, Result};
use std::sync::Arc;

/// Memory of a device, freed when dropped: the driver waits for what still uses it.
pub struct Memory {
    context: Arc<Context>,
    address: u64,
    bytes: usize,
}

impl Memory {
    /// Not initialized.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<Memory> {
        let _here = context.enter()?;
        let mut address = 0;
        if bytes > 0 {
            // SAFETY: there is room for an address.
            let code = unsafe { (context.driver().api().alloc)(&raw mut address, bytes) };
            context.check(code, "allocating memory of a device")?;
        }
        Ok(Memory { context: context.clone(), address, bytes })
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Overwrites the beginning, behind all that was queued on the default stream.
    ///
    /// # Panics
    ///
    /// If there are more bytes than this has.
    pub fn write(&mut self, from: &[u8]) -> Result<()> {
        assert!(from.len() <= self.bytes, "{} bytes do not fit {}", from.len(), self.bytes);
        if from.is_empty() {
            return Ok(());
        }
        let _here = self.context.enter()?;
        let api = self.context.driver().api();
        // SAFETY: both have as many bytes.
        let code = unsafe { (api.to_device)(self.address, from.as_ptr().cast(), from.len()) };
        self.context.check(code, "copying to a device")
    }

    /// Reads the beginning, behind all that was queued on the default stream.
    ///
    /// # Panics
    ///
    /// If more bytes are wanted than this has.
    pub fn read(&self, to: &mut [u8]) -> Result<()> {
        assert!(to.len() <= self.bytes, "there are no {} bytes in {}", to.len(), self.bytes);
        if to.is_empty() {
            return Ok(());
        }
        let _here = self.context.enter()?;
        let api = self.context.driver().api();
        // SAFETY: both have as many bytes.
        let code = unsafe { (api.to_host)(to.as_mut_ptr().cast(), self.address, to.len()) };
        self.context.check(code, "copying from a device")
    }

    /// Sets every byte.
    pub fn fill(&mut self, byte: u8) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let _here = self.context.enter()?;
        // SAFETY: there are as many bytes.
        let code = unsafe { (self.context.driver().api().fill)(self.address, byte, self.bytes) };
        self.context.check(code, "filling memory of a device")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Ok(_here) = self.context.enter() else { return };
        if self.address != 0 {
            // SAFETY: allocated by `new`, and nobody has the address any more.
            unsafe { (self.context.driver().api().free)(self.address) };
        }
    }
}
