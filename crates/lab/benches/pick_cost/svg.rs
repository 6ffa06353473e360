// SPDX-License-Identifier: GPL-2.0-only
//! A log-log figure as plain SVG, for light and dark pages alike.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// One line of a panel.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    /// Run-queue length, ns.
    pub(crate) points: Vec<(f64, f64)>,
}

/// One diagram.
pub(crate) struct Panel {
    pub(crate) title: &'static str,
    pub(crate) series: Vec<Series>,
}

/// Colours of middling lightness that people with any colour vision tell apart (after P. Tol's
/// schemes); the dash and the name at the end of each line say the same without colour.
const COLOURS: [&str; 10] = [
    "#cc3311", "#4477aa", "#009988", "#999933", "#aa4499", "#ee7733", "#33a5dd", "#888888",
    "#44aa66", "#9966cc",
];
const DASHES: [&str; 3] = ["none", "7 3", "2 3"];
const GREY: &str = "#808080";
const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 470.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 390.0;
const PANEL_WIDTH: f64 = 340.0;
const X_DECADES: f64 = 4.0;

/// Where a panel's points lie.
struct Scale {
    left: f64,
    /// Decimal logarithm of the lowest and the highest ns.
    low: f64,
    high: f64,
}

impl Scale {
    fn x(&self, n: f64) -> f64 {
        self.left + PANEL_WIDTH * n.log10() / X_DECADES
    }
    fn y(&self, ns: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * (ns.log10() - self.low) / (self.high - self.low)
    }
}

/// The whole figure; `origin` is its last line.
pub(crate) fn figure(panels: &[Panel; 2], origin: &str) -> String {
    let all = panels.iter().flat_map(|p| &p.series).flat_map(|s| &s.points).map(|p| p.1);
    let (min, max) = all.fold((f64::MAX, 1.0_f64), |(lo, hi), ns| (lo.min(ns), hi.max(ns)));
    let (low, high) = (min.log10().floor(), max.log10().ceil());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"{GREY}\">\n\
         <title>Cost of a choice against the length of the run queue</title>\n"
    );
    for (index, panel) in panels.iter().enumerate() {
        let scale = Scale { left: 62.0 + 480.0 * index as f64, low, high };
        draw_axes(&mut out, &scale, panel.title);
        draw_lines(&mut out, &scale, &panel.series);
    }
    let middle = WIDTH / 2.0;
    text(&mut out, middle, HEIGHT - 12.0, "middle", GREY, origin);
    out.push_str("</svg>\n");
    out
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, fill: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(
        out,
        "<text x=\"{x:.0}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{fill}\">{text}</text>"
    )
    .expect("strings take everything");
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    writeln!(
        out,
        "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{GREY}\" stroke-opacity=\"0.35\"/>"
    )
    .expect("strings take everything");
}

fn draw_axes(out: &mut String, scale: &Scale, title: &str) {
    let right = scale.left + PANEL_WIDTH;
    for n in [1.0, 10.0, 100.0, 1000.0, 10_000.0] {
        let x = scale.x(n);
        line(out, (x, TOP), (x, BOTTOM));
        text(out, x, BOTTOM + 18.0, "middle", GREY, &n.to_string());
    }
    for decade in scale.low as i32..=scale.high as i32 {
        let ns = 10_f64.powi(decade);
        let y = scale.y(ns);
        line(out, (scale.left, y), (right, y));
        text(out, scale.left - 6.0, y + 4.0, "end", GREY, &ns.to_string());
    }
    // How a linear cost rises, whatever its factor.
    let foot = 10_f64.powf(scale.low);
    line(out, (scale.x(10.0), scale.y(foot)), (scale.x(10_000.0), scale.y(1000.0 * foot)));
    text(out, scale.x(30.0) + 8.0, scale.y(3.0 * foot) + 8.0, "start", GREY, "slope of O(n)");
    let middle = scale.left + PANEL_WIDTH / 2.0;
    text(out, middle, TOP - 14.0, "middle", GREY, &format!("{title}, ns for each operation"));
    text(out, middle, BOTTOM + 38.0, "middle", GREY, "runnable tasks on the CPU");
}

fn draw_lines(out: &mut String, scale: &Scale, series: &[Series]) {
    // Names at the ends of the lines, pushed apart from below where they would overlap.
    let last = |s: &Series| s.points.last().map_or(BOTTOM, |p| scale.y(p.1));
    let mut order: Vec<usize> = (0..series.len()).collect();
    order.sort_by(|a, b| last(&series[*b]).total_cmp(&last(&series[*a])));
    let mut below = f64::INFINITY;
    for index in order {
        let (series, colour) = (&series[index], COLOURS[index % COLOURS.len()]);
        let mut path = String::new();
        for (i, (n, ns)) in series.points.iter().enumerate() {
            let step = if i == 0 { 'M' } else { 'L' };
            write!(path, "{step}{:.1} {:.1}", scale.x(*n), scale.y(*ns)).expect("a string");
        }
        writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-dasharray=\"{}\"/>",
            DASHES[index % DASHES.len()],
        )
        .expect("strings take everything");
        below = last(series).min(below - 14.0);
        text(out, scale.left + PANEL_WIDTH + 6.0, below + 4.0, "start", colour, series.name);
    }
}

/// Today's date (UTC) as year-month-day, by the calendar of 400-year cycles that begin in March.
pub(crate) fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    // Day 0 is 1 March 0000; 719 468 days before 1970.
    let days = since.as_secs() / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}
