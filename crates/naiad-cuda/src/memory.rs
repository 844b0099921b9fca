//! Bytes on a device, and words of the host that a device writes.

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

/// Words of the host's memory that a device reads and writes too. They outlive what a kernel does to its
/// context.
pub struct Mapped {
    context: Arc<Context>,
    words: *mut u64,
    count: usize,
    address: u64,
}

// SAFETY: the memory is anyone's who has the value.
unsafe impl Send for Mapped {}
// SAFETY: as above; words are read whole, and written by whoever has it alone.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// All 0.
    pub fn new(context: &Arc<Context>, count: usize) -> Result<Mapped> {
        const MAPPED: u32 = 2;
        let _here = context.enter()?;
        let api = context.driver().api();
        let mut memory = std::ptr::null_mut();
        // SAFETY: there is room for an address.
        let code = unsafe { (api.host_alloc)(&raw mut memory, 8 * count.max(1), MAPPED) };
        context.check(code, "allocating memory that a device shares")?;
        let words: *mut u64 = memory.cast();
        let mut mapped = Mapped { context: context.clone(), words, count, address: 0 };
        mapped.clear();
        // SAFETY: the memory was just allocated so; there is room for an address.
        let code = unsafe { (api.host_address)(&raw mut mapped.address, memory, 0) };
        context.check(code, "asking for a device's address of memory").map(|()| mapped)
    }

    /// Where the device finds it.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// What the words are now; what kernels wrote that were waited for is there.
    pub fn read(&self) -> Vec<u64> {
        // SAFETY: there are so many words. A device may be writing them.
        (0..self.count).map(|i| unsafe { self.words.add(i).read_volatile() }).collect()
    }

    /// Sets all words to 0.
    pub fn clear(&mut self) {
        for i in 0..self.count {
            // SAFETY: there are so many words.
            unsafe { self.words.add(i).write_volatile(0) };
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let Ok(_here) = self.context.enter() else { return };
        // SAFETY: allocated by `new`.
        unsafe { (self.context.driver().api().host_free)(self.words.cast()) };
    }
}
