// SPDX-License-Identifier: GPL-2.0-only
//! Instants, spans, tick rates and jiffies.

use alloc::string::{String, ToString};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A span of real time in nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Nanos {
    /// The empty span.
    pub const ZERO: Self = Self(0);
    /// The longest span, about 584 years; stands for "for ever".
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ns` nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }
    /// A span of `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// A span of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// A span of `s` seconds.
    pub const fn from_s(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// The span in nanoseconds.
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0
    }
    /// Whether the span is empty.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// `self - other`, or zero where that would be negative.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// `self + other`, or [`Nanos::MAX`].
    #[inline]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
    /// `self × n`, or [`Nanos::MAX`].
    #[inline]
    pub const fn saturating_mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }

    /// Reads a duration with its unit: `10ns`, `4us`, `2.5ms`, `1s`, `2m`, `1h`.
    ///
    /// A fraction is taken exactly; it must come out in whole nanoseconds.
    ///
    /// # Errors
    /// [`DurationError`] says what is wrong and what a duration looks like.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let fail = |why| DurationError { text: text.to_string(), why };
        let text_trimmed = text.trim();
        if text_trimmed.starts_with('-') {
            return Err(fail("a duration cannot be negative"));
        }
        let unit_at = text_trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
            .ok_or_else(|| fail("the unit is missing"))?;
        let (number, unit) = text_trimmed.split_at(unit_at);
        let scale: u64 = match unit.trim_start() {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(fail("unknown unit")),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || (fraction.is_empty() && number.contains('.')) {
            return Err(fail("the number is malformed"));
        }
        let digits = |s: &str| -> Result<u64, DurationError> {
            let mut value = 0u64;
            for c in s.chars().filter(|c| *c != '_') {
                let digit = c.to_digit(10).ok_or_else(|| fail("the number is malformed"))?;
                value = value
                    .checked_mul(10)
                    .and_then(|v| v.checked_add(u64::from(digit)))
                    .ok_or_else(|| fail("the duration does not fit 64 bits of nanoseconds"))?;
            }
            Ok(value)
        };
        let too_long = || fail("the duration does not fit 64 bits of nanoseconds");
        let mut ns = digits(whole)?.checked_mul(scale).ok_or_else(too_long)?;
        if !fraction.is_empty() {
            let places = u32::try_from(fraction.len()).map_err(|_| too_long())?;
            let denominator = 10u64.checked_pow(places).ok_or_else(too_long)?;
            let numerator = u128::from(digits(fraction)?) * u128::from(scale);
            if numerator % u128::from(denominator) != 0 {
                return Err(fail("the fraction is finer than a nanosecond"));
            }
            let part =
                u64::try_from(numerator / u128::from(denominator)).map_err(|_| too_long())?;
            ns = ns.checked_add(part).ok_or_else(too_long)?;
        }
        Ok(Self(ns))
    }
}

impl fmt::Display for Nanos {
    /// The shortest exact form with a unit, such as `2.5ms`; [`Nanos::parse`] reads it back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0 => return f.pad("0ns"),
            n if n >= 1_000_000_000 => (1_000_000_000, "s"),
            n if n >= 1_000_000 => (1_000_000, "ms"),
            n if n >= 1_000 => (1_000, "us"),
            _ => (1, "ns"),
        };
        let (whole, rest) = (self.0 / scale, self.0 % scale);
        if rest == 0 {
            return f.pad(&alloc::format!("{whole}{unit}"));
        }
        let width = scale.ilog10() as usize;
        let fraction = alloc::format!("{rest:0width$}");
        f.pad(&alloc::format!("{whole}.{}{unit}", fraction.trim_end_matches('0')))
    }
}

impl Add for Nanos {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
impl Sub for Nanos {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}
impl SubAssign for Nanos {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}
impl Mul<u64> for Nanos {
    type Output = Self;
    #[inline]
    fn mul(self, n: u64) -> Self {
        Self(self.0 * n)
    }
}
impl Div<u64> for Nanos {
    type Output = Self;
    #[inline]
    fn div(self, n: u64) -> Self {
        Self(self.0 / n)
    }
}
impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

/// An instant: nanoseconds since boot, or since the start of the simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of time.
    pub const ZERO: Self = Self(0);
    /// The end of time; stands for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the start.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }
    /// Nanoseconds since the start.
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0
    }
    /// The span since `earlier`, or zero if that lies ahead.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
    /// `self + span`, or [`Time::MAX`].
    #[inline]
    pub const fn saturating_add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl fmt::Display for Time {
    /// Seconds with nine decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl Add<Nanos> for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Nanos) -> Self {
        Self(self.0 + span.0)
    }
}
impl Sub for Time {
    type Output = Nanos;
    /// The span from `earlier` to `self`.
    ///
    /// # Panics
    /// When `earlier` lies ahead.
    #[inline]
    fn sub(self, earlier: Self) -> Nanos {
        Nanos(self.0 - earlier.0)
    }
}

/// A tick rate in ticks per second, 1 … 100 000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hz(u32);

impl Hz {
    /// A rate of `hz` ticks per second.
    ///
    /// # Panics
    /// When `hz` is outside 1 … 100 000.
    pub const fn new(hz: u32) -> Self {
        assert!(hz >= 1 && hz <= 100_000, "a tick rate lies in 1..=100000");
        Self(hz)
    }
    /// Ticks per second.
    pub const fn get(self) -> u32 {
        self.0
    }
    /// Length of a tick, rounded to the nearest nanosecond.
    ///
    /// Source: kernel `TICK_NSEC`; spec cfs-eevdf §2.
    pub const fn tick(self) -> Nanos {
        let hz = self.0 as u64;
        Nanos((1_000_000_000 + hz / 2) / hz)
    }
}

/// A count of ticks since boot; wraps as the kernel's does.
///
/// Not `Ord`: a wrapping comparison is no total order. Use [`Jiffies::after`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Jiffies(pub u64);

impl Jiffies {
    /// Whether `self` lies after `other` (kernel `time_after`).
    #[inline]
    pub const fn after(self, other: Self) -> bool {
        (other.0.wrapping_sub(self.0) as i64) < 0
    }
    /// The count `n` ticks later; wraps.
    #[inline]
    pub const fn wrapping_add(self, n: u64) -> Self {
        Self(self.0.wrapping_add(n))
    }
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationError {
    text: String,
    why: &'static str,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a duration: {}; write a number with its unit, such as `250us`, `4ms` or `1s`",
            self.text, self.why
        )
    }
}

impl core::error::Error for DurationError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tick_length_of_usual_rates_matches_the_specs() {
        for (hz, ns) in [(100, 10_000_000), (250, 4_000_000), (300, 3_333_333), (1000, 1_000_000)] {
            assert_eq!(Hz::new(hz).tick().as_ns(), ns, "HZ {hz}");
        }
    }

    #[test]
    fn duration_text_round_trips() {
        for ns in [0, 1, 999, 1_000, 1_500, 2_500_000, 1_000_000_001, 60_000_000_000] {
            let span = Nanos::from_ns(ns);
            assert_eq!(Nanos::parse(&span.to_string()), Ok(span));
        }
        assert_eq!(Nanos::parse("2m"), Ok(Nanos::from_s(120)));
    }

    #[test]
    fn duration_malformed_is_refused() {
        for text in ["", "5", "-4ms", "4 parsecs", ".5ms", "1.ms", "0.5ns", "99999999999s", "1..2s"]
        {
            assert!(Nanos::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn jiffies_after_wraps() {
        assert!(Jiffies(1).after(Jiffies(u64::MAX)));
        assert!(!Jiffies(u64::MAX).after(Jiffies(1)));
    }
}
