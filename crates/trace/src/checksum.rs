// SPDX-License-Identifier: GPL-2.0-only
//! The checksum over the bytes of a file.

/// FNV-1a, 64 bits: finds damage, does not withstand intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checksum(u64);

impl Checksum {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
    pub(super) fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    pub(super) const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Checksum;

    #[test]
    fn fnv_1a_matches_published_values() {
        for (text, sum) in [
            ("", 0xcbf2_9ce4_8422_2325u64),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut checksum = Checksum::new();
            checksum.update(text.as_bytes());
            assert_eq!(checksum.value(), sum, "{text:?}");
        }
    }
}
