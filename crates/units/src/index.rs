//! Numbers of one kind as a type: macros that declare them, and the indices that several crates
//! share. An index is a zero-based position, not a count and not a size.

/// Declares a kind of number as a type of its own, so that kinds are not mixed up. The caller's
/// crate needs `serde`.
#[macro_export]
macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize,
            ::serde::Deserialize,
        )]
        pub struct $name($int);

        impl $name {
            /// Creates it from a plain integer; indices count from zero.
            #[must_use]
            pub const fn new(number: $int) -> Self {
                Self(number)
            }

            /// Returns the plain integer.
            #[must_use]
            pub const fn get(self) -> $int {
                self.0
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

/// Declares a [`number!`] that indexes slices; its integer has at most 32 bits.
#[macro_export]
macro_rules! index {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $crate::number!($(#[$doc])* $name, $int);

        impl $name {
            /// Returns the number as an index into a slice.
            #[must_use]
            pub const fn as_usize(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index!(
    /// A track of a platter, in the order in which tracks are written.
    TrackIndex,
    u32
);
index!(
    /// A layer of a track: which sector of the stack, the deepest first.
    LayerIndex,
    u16
);
index!(
    /// A storage slot of a library.
    SlotIndex,
    u32
);
index!(
    /// A read drive of a library.
    DriveIndex,
    u16
);
index!(
    /// A shuttle of a library.
    ShuttleIndex,
    u16
);
