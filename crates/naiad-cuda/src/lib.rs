//! The driver of NVIDIA's GPUs, loaded when it is first asked for, and all that is foreign about it.
//!
//! ```text
//! api      one table: the driver's functions that are called here
//! error    one table: the driver's errors by their names, and what else can go wrong
//! driver   the library, opened once; a clear error where there is none
//! context  a device: what it is, its primary context (torch's too), waiting for it
//! link     PTX -> machine code, with the log of the driver's compiler
//! module   machine code that is loaded; functions, what they use, launching them
//! memory   bytes on the device
//! stream   queues of work, and points in time on them
//! ```
//!
//! Nothing here is needed to build Naiad or to run it on a CPU: no header, no toolkit, no link-time
//! library. [`Driver::get`] says whether there is a driver, and everything else begins with it.
//!
//! Work is queued and runs later. A call that fails may thus tell of work that was queued before it, and
//! where that has broken the context ([`Error::is_sticky`]) every later call fails in the same way, in
//! this process, until its end.
//!
//! A process that forks after the first call must not call again in the child: the driver refuses.

mod api;
mod context;
mod driver;
mod error;
mod link;
mod memory;
mod module;
mod stream;

pub use context::{Context, Facts};
pub use driver::Driver;
pub use error::{Code, Error, Result};
pub use link::{JitOptions, Linked, link};
pub use memory::{Mapped, Memory};
pub use module::{Function, Module, Uses};
pub use stream::{Event, RawStream, Stream};
