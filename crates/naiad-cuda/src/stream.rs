//! Queues of work, and points in time on them.

use crate::api::Handle;
use crate::{Context, Result};
use std::sync::Arc;

/// A stream of whomever's, as its address. The default is the stream that waits for all others that do
/// not decline.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RawStream(pub(crate) Handle);

// SAFETY: the driver's handles may be used by all threads.
unsafe impl Send for RawStream {}
// SAFETY: as above.
unsafe impl Sync for RawStream {}

impl RawStream {
    pub const DEFAULT: RawStream = RawStream(std::ptr::null_mut());

    /// Whether what is queued on it becomes part of a graph, and runs when that is launched.
    pub fn is_capturing(self, context: &Context) -> Result<bool> {
        let _here = context.enter()?;
        let mut status = 0;
        // SAFETY: there is room for the status; the stream lives, as its maker promised.
        let code = unsafe { (context.driver().api().stream_capturing)(self.0, &raw mut status) };
        context.check(code, "asking whether a stream is captured").map(|()| status != 0)
    }

    /// The stream that torch and others name by this number.
    ///
    /// # Safety
    ///
    /// It is a stream of the context that it is used with, and lives as long.
    pub unsafe fn from_address(address: usize) -> RawStream {
        RawStream(std::ptr::with_exposed_provenance_mut(address))
    }
}

impl Default for RawStream {
    fn default() -> RawStream {
        RawStream::DEFAULT
    }
}

/// A stream of our own.
pub struct Stream {
    context: Arc<Context>,
    raw: Handle,
}

// SAFETY: as for `RawStream`.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// One that runs beside the default stream.
    pub fn new(context: &Arc<Context>) -> Result<Stream> {
        const NON_BLOCKING: u32 = 1;
        let _here = context.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: there is room for a handle.
        let code = unsafe { (context.driver().api().stream_create)(&raw mut raw, NON_BLOCKING) };
        context.check(code, "making a stream")?;
        Ok(Stream { context: context.clone(), raw })
    }

    pub fn raw(&self) -> RawStream {
        RawStream(self.raw)
    }

    /// Waits for what was queued on it.
    pub fn synchronize(&self) -> Result<()> {
        let _here = self.context.enter()?;
        // SAFETY: the stream lives.
        let code = unsafe { (self.context.driver().api().stream_synchronize)(self.raw) };
        self.context.check(code, "waiting for a stream")
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let Ok(_here) = self.context.enter() else { return };
        // SAFETY: made by `new`; the driver keeps it until its work is done.
        unsafe { (self.context.driver().api().stream_destroy)(self.raw) };
    }
}

/// A point in time on a stream.
pub struct Event {
    context: Arc<Context>,
    raw: Handle,
}

// SAFETY: as for `RawStream`.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    pub fn new(context: &Arc<Context>) -> Result<Event> {
        let _here = context.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: there is room for a handle.
        let code = unsafe { (context.driver().api().event_create)(&raw mut raw, 0) };
        context.check(code, "making an event")?;
        Ok(Event { context: context.clone(), raw })
    }

    /// It is when all is done that was queued on the stream before.
    pub fn record(&self, stream: RawStream) -> Result<()> {
        let _here = self.context.enter()?;
        // SAFETY: the event lives, and the stream as long as its maker promised.
        let code = unsafe { (self.context.driver().api().event_record)(self.raw, stream.0) };
        self.context.check(code, "recording an event")
    }

    pub fn synchronize(&self) -> Result<()> {
        let _here = self.context.enter()?;
        // SAFETY: the event lives.
        let code = unsafe { (self.context.driver().api().event_synchronize)(self.raw) };
        self.context.check(code, "waiting for an event")
    }

    /// Milliseconds from an earlier event to this one; both are over.
    pub fn milliseconds_since(&self, earlier: &Event) -> Result<f32> {
        let _here = self.context.enter()?;
        let mut milliseconds = 0.0;
        let api = self.context.driver().api();
        // SAFETY: both events live; there is room for the number.
        let code = unsafe { (api.event_elapsed)(&raw mut milliseconds, earlier.raw, self.raw) };
        self.context.check(code, "asking for the time between events").map(|()| milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let Ok(_here) = self.context.enter() else { return };
        // SAFETY: made by `new`.
        unsafe { (self.context.driver().api().event_destroy)(self.raw) };
    }
}
