// SPDX-License-Identifier: GPL-2.0-only
//! What memory and I/O events cost: declared knobs, not measurements.
//!
//! The simulated machine has no memory, so `mem`, `memrun` and `iorun` become work whose length
//! follows from these figures. They are parameters of every rt-app workload; `docs/rtapp.md`
//! describes them.

use schedlab_units::Nanos;

use crate::load::ReadError;
use crate::nearest::did_you_mean;

macro_rules! knobs {
    ($( $(#[doc = $doc:literal])+ $field:ident : $kind:ident = $default:literal; )*) => {
        /// The knobs with their values.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(super) struct Costs {
            $( $(#[doc = $doc])+ pub(super) $field: u64, )*
        }

        impl Default for Costs {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        /// Names of the knobs.
        const NAMES: &[&str] = &[$( stringify!($field), )*];

        impl Costs {
            fn set_text(&mut self, name: &str, text: &str) -> Result<bool, String> {
                $(
                    if name == stringify!($field) {
                        self.$field = Kind::$kind.parse(text)?;
                        return Ok(true);
                    }
                )*
                Ok(false)
            }

            /// The values as parameters of a workload.
            pub(super) fn params(&self) -> Vec<(String, String)> {
                vec![$( (stringify!($field).to_string(), Kind::$kind.show(self.$field)), )*]
            }
        }
    };
}

knobs! {
    /// `mem`: bytes cleared in a second, in MB.
    mem_clear_mb_per_s: Rate = 10_000;
    /// `memrun` of type `read`: one access.
    memrun_read: Span = 1;
    /// `memrun` of type `write`: one access.
    memrun_write: Span = 1;
    /// `memrun` of type `chase`, pattern `sequential`: one hop, the next line being fetched ahead.
    memrun_chase_sequential: Span = 5;
    /// `memrun` of type `chase`, pattern `random`: one hop in a ring within `memrun_l2_bytes`.
    memrun_chase_l2: Span = 4;
    /// The same in a ring within `memrun_llc_bytes`.
    memrun_chase_llc: Span = 20;
    /// The same in a larger ring.
    memrun_chase_dram: Span = 90;
    /// Largest ring that stays in the second-level cache.
    memrun_l2_bytes: Count = 1_048_576;
    /// Largest ring that stays in the last-level cache.
    memrun_llc_bytes: Count = 33_554_432;
    /// `iorun`: one `write` call, in the kernel.
    iorun_call: Span = 500;
    /// `iorun` to another device than /dev/null: bytes copied in a second, in MB.
    iorun_copy_mb_per_s: Rate = 5_000;
}

enum Kind {
    Span,
    Rate,
    Count,
}

impl Kind {
    fn parse(&self, text: &str) -> Result<u64, String> {
        match self {
            Self::Span => Nanos::parse(text).map(Nanos::as_ns).map_err(|e| e.to_string()),
            Self::Rate | Self::Count => match text.parse() {
                Ok(n @ 1..=0xffff_ffff) => Ok(n),
                _ => Err(format!("`{text}` is not a number from 1 to {}", u32::MAX)),
            },
        }
    }

    fn show(&self, value: u64) -> String {
        match self {
            Self::Span => Nanos::from_ns(value).to_string(),
            Self::Rate | Self::Count => value.to_string(),
        }
    }
}

impl Costs {
    /// The defaults with some values replaced.
    pub(super) fn with(overrides: &[(String, String)]) -> Result<Self, ReadError> {
        let mut costs = Self::default();
        for (name, text) in overrides {
            let fail = |why| ReadError::Parameter(format!("parameter `{name}`: {why}"));
            if !costs.set_text(name, text).map_err(fail)? {
                let near = did_you_mean(name, NAMES.iter().copied());
                return Err(ReadError::Parameter(format!(
                    "there is no parameter `{name}`{near}; an rt-app file has: {}",
                    NAMES.join(", ")
                )));
            }
        }
        Ok(costs)
    }

    /// ns to clear `bytes` bytes.
    pub(super) fn mem(&self, bytes: u64) -> u64 {
        // bytes / (rate · 10^6 / 10^9 ns) = bytes · 1000 / rate; 31 + 10 bits.
        bytes * 1_000 / self.mem_clear_mb_per_s
    }

    /// ns of `hops` hops through a ring of `bytes` bytes.
    pub(super) fn chase(&self, bytes: u64, hops: u64, random: bool) -> u64 {
        let hop = match bytes {
            _ if !random => self.memrun_chase_sequential,
            n if n <= self.memrun_l2_bytes => self.memrun_chase_l2,
            n if n <= self.memrun_llc_bytes => self.memrun_chase_llc,
            _ => self.memrun_chase_dram,
        };
        hops.saturating_mul(hop)
    }

    /// ns to copy `bytes` bytes into the page cache.
    pub(super) fn copy(&self, bytes: u64) -> u64 {
        bytes * 1_000 / self.iorun_copy_mb_per_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_follow_the_knobs() {
        let set = [("memrun_chase_dram", "100ns"), ("mem_clear_mb_per_s", "1000")];
        let set = set.map(|(name, value)| (name.to_string(), value.to_string()));
        let costs = Costs::with(&set).expect("legal");
        assert_eq!(costs.mem(4_096), 4_096);
        assert_eq!(costs.chase(1 << 20, 10, true), 40);
        assert_eq!(costs.chase(1 << 25, 10, true), 200);
        assert_eq!(costs.chase((1 << 25) + 1, 10, true), 1_000);
        assert_eq!(costs.chase(1 << 30, 10, false), 50);
        assert_eq!(costs.copy(5_000), 1_000);
        assert!(costs.params().contains(&("memrun_chase_dram".into(), "100ns".into())));
    }

    #[test]
    fn costs_of_no_such_name_are_refused() {
        let set = [("memrun_chase_dam".to_string(), "1ns".to_string())];
        let Err(ReadError::Parameter(message)) = Costs::with(&set) else { panic!("accepted") };
        assert!(message.contains("did you mean `memrun_chase_dram`"), "{message}");
        let set = [("iorun_copy_mb_per_s".to_string(), "0".to_string())];
        assert!(Costs::with(&set).is_err());
    }
}
