//! Thread IR as PTX text.
