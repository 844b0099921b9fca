//! What a launch judges besides computing values.
//!
//! The executor is generic over a policy, so that the plain one pays nothing. Bounds of storage are
//! kept under every policy: they are what keeps the process alive.

/// What is judged.
pub trait Policy: Send + Sync + 'static {
    /// Accesses outside a tensor's logical view, though inside its storage.
    const VIEWS: bool;
}

/// Values only.
pub struct Plain;

impl Policy for Plain {
    const VIEWS: bool = false;
}

/// Everything that a run can tell.
pub struct Checked;

impl Policy for Checked {
    const VIEWS: bool = true;
}
