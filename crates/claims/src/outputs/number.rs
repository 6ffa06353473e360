// SPDX-License-Identifier: GPL-2.0-only
//! Observed values as text.

use schedlab_units::Nanos;
use serde_json::Value as Json;

/// An observed value; names that end in `_ns` are durations. Several seeds are shown as their mean
/// with the smallest and largest.
pub(super) fn observed(name: &str, value: &Json) -> String {
    let Json::Array(all) = value else { return one(name, value) };
    let numbers: Vec<f64> = all.iter().filter_map(Json::as_f64).collect();
    if numbers.len() != all.len() || numbers.is_empty() {
        let texts: Vec<String> = all.iter().map(|value| one(name, value)).collect();
        return texts.join(" ");
    }
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shown = |x| number(name, x);
    if least == most {
        return format!("{} ({} seeds)", shown(mean), numbers.len());
    }
    format!("{} ({} … {}, {} seeds)", shown(mean), shown(least), shown(most), numbers.len())
}

fn one(name: &str, value: &Json) -> String {
    match value {
        Json::Null => "–".to_string(),
        Json::Bool(true) => "yes".to_string(),
        Json::Bool(false) => "no".to_string(),
        Json::String(text) => text.clone(),
        _ => value.as_f64().map_or_else(|| value.to_string(), |x| number(name, x)),
    }
}

fn number(name: &str, x: f64) -> String {
    if name.ends_with("_ns") {
        let span = Nanos::from_ns(x.abs().round() as u64);
        return format!("{}{}", if x < 0.0 { "−" } else { "" }, rounded(span));
    }
    let sign = if x < 0.0 { "−" } else { "" };
    let x = x.abs();
    let digits = match x {
        x if x == x.trunc() && x < 1e15 => 0,
        x if x >= 1000.0 => 0,
        x if x >= 100.0 => 1,
        x if x >= 10.0 => 2,
        x if x >= 0.01 => 4,
        x if x >= 0.0001 => 6,
        _ => 9,
    };
    format!("{sign}{x:.digits$}")
}

/// A span with four significant digits.
fn rounded(span: Nanos) -> String {
    let ns = span.as_ns();
    let (unit, per) = match ns {
        0..1_000 => return format!("{ns}ns"),
        1_000..1_000_000 => ("us", 1e3),
        1_000_000..1_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let x = ns as f64 / per;
    let digits = if x >= 100.0 {
        1
    } else if x >= 10.0 {
        2
    } else {
        3
    };
    format!("{x:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn observed_values_show_what_they_are() {
        assert_eq!(observed("ratio", &json!(0.67412)), "0.6741");
        assert_eq!(observed("n", &json!(12_345.0)), "12345");
        assert_eq!(observed("wait_ns", &json!(26_012_345_678u64)), "26.01s");
        assert_eq!(observed("change", &json!(-0.032)), "−0.0320");
        assert_eq!(observed("x", &json!(null)), "–");
        assert_eq!(observed("x", &json!([1.0, 2.0, 3.0])), "2 (1 … 3, 3 seeds)");
        assert_eq!(observed("same", &json!([true, false])), "yes no");
    }
}
