// SPDX-License-Identifier: GPL-2.0-only
//! Scanning of byte strings: numbers, times, keys found from the right.

use schedlab_units::{Located, Time};

/// What is wrong with a line, and at which byte of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Byte offset in the text that was parsed.
    pub(crate) at: usize,
    /// A lower-case fragment.
    pub(crate) message: String,
    /// Advice; may be empty.
    pub(crate) hint: &'static str,
}

impl Fault {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), hint: "" }
    }
    pub(crate) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }
    /// The same fault in a text that has `by` more bytes in front.
    pub(crate) fn shifted(mut self, by: usize) -> Self {
        self.at += by;
        self
    }
    /// The fault in line `number`, whose bytes are `line`.
    pub(crate) fn in_line(self, number: usize, line: &[u8]) -> Located {
        let before = &line[..self.at.min(line.len())];
        let column = String::from_utf8_lossy(before).chars().count() + 1;
        Located::at(number, column, self.message).hint(self.hint)
    }
}

/// `text` without blanks at both ends.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// Length of the run of digits that `text` begins with.
pub(crate) fn n_digits(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// The value of `digits`; `None` when there is none or it does not fit.
pub(crate) fn unsigned(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// The unsigned number `text` begins with, and what follows.
pub(crate) fn take_unsigned(text: &[u8]) -> Option<(u64, &[u8])> {
    let (digits, rest) = text.split_at(n_digits(text));
    Some((unsigned(digits)?, rest))
}

/// The number `text` begins with, perhaps negative, and what follows.
pub(crate) fn take_signed(text: &[u8]) -> Option<(i64, &[u8])> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (value, rest) = take_unsigned(digits)?;
    let value = i64::try_from(value).ok()?;
    Some((if negative { -value } else { value }, rest))
}

/// A thread id and what follows.
pub(crate) fn take_pid(text: &[u8]) -> Option<(u32, &[u8])> {
    let (value, rest) = take_unsigned(text)?;
    Some((u32::try_from(value).ok()?, rest))
}

/// First place of `needle` in `hay`.
pub(crate) fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|w| w == needle)
}

/// How many places [`rfind_each`] offers: a name is too short to hold more look-alikes of a key.
const MAX_LOOK_ALIKES: usize = 8;

/// Places of `needle` in `hay`, rightmost first, at most [`MAX_LOOK_ALIKES`].
///
/// Names may contain text that looks like a key, so a parser tries one place after the other.
pub(crate) fn rfind_each<'a>(hay: &'a [u8], needle: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let mut end = hay.len();
    std::iter::from_fn(move || {
        let at = hay[..end].windows(needle.len()).rposition(|w| w == needle)?;
        // The next look-alike may overlap this one by all but its last byte.
        end = at + needle.len() - 1;
        Some(at)
    })
    .take(MAX_LOOK_ALIKES)
}

/// Reads `seconds.fraction` with one to nine decimals as an instant.
///
/// Integers throughout: a detour through floating point would lose nanoseconds after four months of
/// uptime.
pub(crate) fn time(text: &[u8]) -> Option<Time> {
    let (seconds, rest) = take_unsigned(text)?;
    let fraction = rest.strip_prefix(b".")?;
    let places = u32::try_from(fraction.len()).ok()?;
    if !(1..=9).contains(&places) {
        return None;
    }
    let part = unsigned(fraction)? * 10u64.pow(9 - places);
    Some(Time::from_ns(seconds.checked_mul(1_000_000_000)?.checked_add(part)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_exact_beyond_32_bits_of_microseconds_milliseconds_and_seconds() {
        let ns = |text: &str| time(text.as_bytes()).map(Time::as_ns);
        assert_eq!(ns("4294.967295999"), Some(4_294_967_295_999));
        assert_eq!(ns("4294.967296"), Some(4_294_967_296_000));
        assert_eq!(ns("4294967.296000001"), Some(4_294_967_296_000_001));
        assert_eq!(ns("4294967296.000000001"), Some(4_294_967_296_000_000_001));
        assert_eq!(ns("9007199.254740993"), Some(9_007_199_254_740_993), "beyond 53 bits");
        assert_eq!(ns("18446744073.709551615"), Some(u64::MAX));
        assert_eq!(ns("18446744073.709551616"), None);
        assert_eq!(ns("99999999999999999999.0"), None);
    }

    #[test]
    fn time_fraction_counts_its_places() {
        let ns = |text: &str| time(text.as_bytes()).map(Time::as_ns);
        assert_eq!(ns("1.5"), Some(1_500_000_000));
        assert_eq!(ns("1.000005"), Some(1_000_005_000));
        for wrong in ["1", "1.", ".5", "1.0000000001", "1,5", "-1.5", "1.5s", ""] {
            assert_eq!(ns(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn rfind_each_goes_from_right_to_left_with_overlaps() {
        assert_eq!(rfind_each(b"aXaXa", b"aXa").collect::<Vec<_>>(), [2, 0]);
        assert_eq!(rfind_each(b"", b"x").count(), 0);
        assert_eq!(rfind_each(&[b'x'; 100], b"x").count(), MAX_LOOK_ALIKES);
    }

    #[test]
    fn signed_takes_a_minus() {
        assert_eq!(take_signed(b"-1 x"), Some((-1, &b" x"[..])));
        assert_eq!(take_signed(b"120"), Some((120, &b""[..])));
        assert_eq!(take_signed(b"--1"), None);
        assert_eq!(take_signed(b""), None);
    }
}
