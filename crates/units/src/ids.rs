// SPDX-License-Identifier: GPL-2.0-only
//! Dense indices of CPUs and tasks.

use core::fmt;

macro_rules! index_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index into a dense table.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of table slot `index`.
            ///
            /// # Panics
            /// When `index` does not fit 32 bits.
            #[inline]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("index fits 32 bits"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

index_type! {
    /// A logical CPU, counted from 0.
    CpuId
}
index_type! {
    /// A task, the schedulable thread: index into the task table.
    ///
    /// Slots of reaped tasks are used again, last in first out, so ids are deterministic.
    TaskId
}
