//! References into a function: small numbers whose `Display` is the text syntax.

use std::fmt;

macro_rules! entity {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);

        impl $name {
            #[inline]
            pub const fn new(index: usize) -> $name { $name(index as u32) }
            #[inline]
            pub const fn index(self) -> usize { self.0 as usize }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, concat!($prefix, "{}"), self.0) }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{self}") }
        }
    };
}

entity! {
    /// An SSA value: the result of an op or a parameter of a block.
    Value, "%"
}
entity! {
    /// An op in its place.
    Inst, "inst"
}
entity! {
    /// A straight sequence of ops with parameters. Control flow is structured, so each region of an
    /// op (a loop's body, a branch) is one block.
    Block, "^"
}
