// SPDX-License-Identifier: GPL-2.0-only
//! Bars as SVG: readable in light and dark, without script.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

use crate::experiment::Plot;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 44.0;
/// Colours that colour-blind readers tell apart (Okabe and Ito, 2008).
const COLOURS: [&str; 4] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7"];

/// The picture of a plot; values that are missing leave a gap.
pub fn svg(plot: &Plot, observed: &Map<String, Json>) -> String {
    let series: Vec<(&str, Vec<Option<f64>>)> = plot
        .series
        .iter()
        .map(|series| {
            (series.name.as_str(), series.values.iter().map(|v| of(v, observed)).collect())
        })
        .collect();
    let largest = series.iter().flat_map(|(_, v)| v).flatten().copied().fold(0.0, f64::max);
    let top = ceiling(largest);
    let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#777\">\n<title>{0}</title>\n\
         <text x=\"{LEFT}\" y=\"16\" font-size=\"14\">{0}</text>\n",
        escape(&plot.title)
    );
    for step in 0..=4 {
        let value = top * f64::from(step) / 4.0;
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{1:.1}\" y2=\"{1:.1}\" stroke=\"#777\" \
             stroke-opacity=\"0.35\"/>\n<text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\">{4}</text>",
            WIDTH - 10.0,
            y(value),
            LEFT - 6.0,
            y(value) + 4.0,
            escape(&format!("{}{}", short(value), plot.unit)),
        );
    }
    let slot = (WIDTH - LEFT - 10.0) / plot.labels.len().max(1) as f64;
    let bar = (slot * 0.8 / series.len().max(1) as f64).min(60.0);
    for (at, label) in plot.labels.iter().enumerate() {
        let middle = LEFT + slot * (at as f64 + 0.5);
        let _ = writeln!(
            out,
            "<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM + 18.0,
            escape(label)
        );
        for (index, (_, values)) in series.iter().enumerate() {
            let Some(value) = values.get(at).copied().flatten() else { continue };
            let x = middle + bar * (index as f64 - series.len() as f64 / 2.0);
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\">\
                 <title>{}</title></rect>",
                y(value),
                bar * 0.92,
                (y(0.0) - y(value)).max(0.5),
                COLOURS[index % COLOURS.len()],
                short(value)
            );
        }
    }
    for (index, (name, _)) in series.iter().enumerate() {
        let x = LEFT + 150.0 * index as f64;
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"26\" width=\"10\" height=\"10\" fill=\"{}\"/>\
             <text x=\"{}\" y=\"35\">{}</text>",
            COLOURS[index % COLOURS.len()],
            x + 15.0,
            escape(name)
        );
    }
    out.push_str("</svg>\n");
    out
}

/// A number, or the mean of an observed value.
fn of(value: &toml::Value, observed: &Map<String, Json>) -> Option<f64> {
    if let Some(name) = value.as_str() {
        return match observed.get(name)? {
            Json::Array(all) => {
                let numbers: Vec<f64> = all.iter().filter_map(Json::as_f64).collect();
                (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
            }
            one => one.as_f64(),
        };
    }
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64))
}

/// The next of 1, 2, 4, 5, 8 times a power of ten; 1 for nothing.
fn ceiling(x: f64) -> f64 {
    if x <= 0.0 || !x.is_finite() {
        return 1.0;
    }
    let mut power = 1.0;
    while power * 10.0 <= x {
        power *= 10.0;
    }
    while power > x {
        power /= 10.0;
    }
    let steps = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|top| *top >= x).unwrap_or(10.0 * power)
}

fn short(x: f64) -> String {
    let text = match x.abs() {
        0.0 => return "0".to_string(),
        x if x >= 1e9 => return format!("{:.3}G", x / 1e9).replace(".000", ""),
        x if x >= 1e6 => return format!("{:.2}M", x / 1e6).replace(".00", ""),
        x if x >= 1e4 => return format!("{:.1}k", x / 1e3).replace(".0", ""),
        x if x >= 10.0 => format!("{x:.1}"),
        _ => format!("{x:.4}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
