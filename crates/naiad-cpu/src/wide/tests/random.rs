//! Random loops of all ops that are written.
