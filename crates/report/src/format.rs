// SPDX-License-Identifier: GPL-2.0-only
//! How numbers look: one unit per column, thousands apart, real minus signs.

use crate::stats::{Change, Estimate};

/// Separates thousands; does not break a line.
const GROUP: char = '\u{a0}';

/// Unit of a section's figures; values are kept in ns, counts or fractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Microseconds, three decimals.
    Us,
    /// Milliseconds, three decimals.
    Ms,
    /// A plain number.
    Count,
    /// Parts of a hundred, of a fraction of one.
    Percent,
}

impl Unit {
    /// The unit of time that shows all of `values` (ns) with three decimals.
    ///
    /// Microseconds, unless even the smallest is long or the largest is very long.
    pub(crate) fn of_times(values: impl Iterator<Item = f64>) -> Self {
        let (mut least, mut most) = (f64::INFINITY, 0.0f64);
        for value in values.filter(|value| *value > 0.0) {
            (least, most) = (least.min(value), most.max(value));
        }
        if most >= 1e9 || (least.is_finite() && least >= 1e4) { Self::Ms } else { Self::Us }
    }

    /// As it stands in a heading.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Us => "µs",
            Self::Ms => "ms",
            Self::Count => "count",
            Self::Percent => "%",
        }
    }

    fn scale(self) -> f64 {
        match self {
            Self::Us => 1e-3,
            Self::Ms => 1e-6,
            Self::Count => 1.0,
            Self::Percent => 100.0,
        }
    }

    /// A value in this unit, without the unit's name.
    pub(crate) fn show(self, estimate: Estimate) -> String {
        let several = estimate.half_width.is_some();
        let decimals = match self {
            Self::Us | Self::Ms | Self::Percent => 3,
            Self::Count if several => 1,
            Self::Count => 0,
        };
        let mean = grouped(estimate.mean * self.scale(), decimals);
        match estimate.half_width {
            None => mean,
            Some(half) => format!("{mean} ±{}", grouped(half * self.scale(), decimals)),
        }
    }
}

/// `value` with `decimals` decimals and thousands apart.
fn grouped(value: f64, decimals: usize) -> String {
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = match plain.split_once('.') {
        Some((whole, fraction)) => (whole, format!(".{fraction}")),
        None => (plain.as_str(), String::new()),
    };
    let mut text = String::new();
    if value < 0.0 {
        text.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(GROUP);
        }
        text.push(digit);
    }
    text + &fraction
}

/// A whole number with thousands apart.
pub(crate) fn count(value: u64) -> String {
    grouped(value as f64, 0)
}

/// A change against the first policy: a percentage, or a factor where that says more.
pub(crate) fn change(change: Change) -> String {
    let ratio = change.ratio;
    if ratio == 1.0 {
        return "=".to_string();
    }
    if ratio.is_infinite() {
        return "from 0".to_string();
    }
    if ratio >= 10.0 {
        return format!("×{}", factor(ratio));
    }
    if ratio > 0.0 && ratio <= 0.1 {
        return format!("÷{}", factor(1.0 / ratio));
    }
    let percent = (ratio - 1.0) * 100.0;
    let sign = match percent {
        p if p.abs() < 0.05 => "",
        p if p < 0.0 => "−",
        _ => "+",
    };
    let text = format!("{sign}{:.1}", percent.abs());
    match change.half_width {
        None => format!("{text}{GROUP}%"),
        Some(half) => format!("{text} ±{:.1}{GROUP}%", half.abs() * 100.0),
    }
}

/// A factor of at least 1 with three significant digits, or all of a larger number.
pub(crate) fn factor(factor: f64) -> String {
    let decimals = match factor {
        f if f < 9.995 => 2,
        f if f < 99.95 => 1,
        _ => 0,
    };
    grouped(factor, decimals)
}

/// `text` in lines of at most `width` characters where its words allow.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut length = 0;
    for word in text.split(' ') {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > width {
            lines.push(String::new());
            length = 0;
        }
        let line = lines.last_mut().expect("there is always a line");
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += word_length;
    }
    lines
}

/// `name` cut to `max` characters by leaving out its middle.
pub(crate) fn elide(name: &str, max: usize) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= max {
        return name.to_string();
    }
    let (head, tail) = (max / 2, max - max / 2 - 1);
    let head: String = chars[..head].iter().collect();
    let tail: String = chars[chars.len() - tail..].iter().collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(mean: f64) -> Estimate {
        Estimate { mean, half_width: None }
    }

    #[test]
    fn number_forms() {
        assert_eq!(Unit::Us.show(one(41_234_567.0)), "41\u{a0}234.567");
        assert_eq!(Unit::Ms.show(one(41_234_567.0)), "41.235");
        assert_eq!(Unit::Percent.show(one(0.5)), "50.000");
        assert_eq!(Unit::Count.show(one(1_000_000.0)), "1\u{a0}000\u{a0}000");
        let several = Estimate { mean: 999.96, half_width: Some(12.0) };
        assert_eq!(Unit::Count.show(several), "1\u{a0}000.0 ±12.0");
    }

    #[test]
    fn change_forms() {
        for (ratio, shown) in [
            (1.0, "="),
            (1.25, "+25.0\u{a0}%"),
            (0.997, "−0.3\u{a0}%"),
            (0.9999, "0.0\u{a0}%"),
            (0.0, "−100.0\u{a0}%"),
            (34.28, "×34.3"),
            (0.0029, "÷345"),
            (2345.0, "×2\u{a0}345"),
            (f64::INFINITY, "from 0"),
        ] {
            let change_ = Change { ratio, half_width: None, significant: true };
            assert_eq!(change(change_), shown);
        }
        let paired = Change { ratio: 0.8, half_width: Some(0.013), significant: true };
        assert_eq!(change(paired), "−20.0 ±1.3\u{a0}%");
    }

    #[test]
    fn unit_of_time_fits_smallest_and_largest() {
        assert_eq!(Unit::of_times([500.0, 4e7].into_iter()), Unit::Us);
        assert_eq!(Unit::of_times([0.0, 2e4, 4e7].into_iter()), Unit::Ms);
        assert_eq!(Unit::of_times([500.0, 4e9].into_iter()), Unit::Ms);
        assert_eq!(Unit::of_times(std::iter::empty()), Unit::Us);
    }

    #[test]
    fn wrap_breaks_between_words_only() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("overlong a b", 3), ["overlong", "a b"]);
        assert_eq!(wrap("", 3), [""]);
    }

    #[test]
    fn elide_keeps_both_ends() {
        assert_eq!(elide("short", 9), "short");
        assert_eq!(elide("kworker/u16:3-events", 9), "kwor…ents");
    }
}
