// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab policies`: what there is to run, and every knob of it.

use schedlab_lab::nearest;
use schedlab_policy_api::{PolicyInfo, TickPhase, TimerBase, Tunable, Variant};
use schedlab_report::{promises, wrap};

use crate::args::NameArgs;
use crate::exit::{Exit, Failure};
use crate::output::Destination;
use crate::terminal;

/// Lists all policies or shows one.
///
/// # Errors
/// When there is no policy of that name.
pub(crate) fn policies(args: &NameArgs) -> Result<Exit, Failure> {
    let width = terminal::width();
    let text = match &args.name {
        None => list(width),
        Some(name) => match schedlab_policies::infos().find(|info| info.name == name) {
            Some(info) => show(info, width),
            None => return Err(unknown(name)),
        },
    };
    Destination::Stdout.write(text.as_bytes())?;
    Ok(Exit::Done)
}

fn unknown(name: &str) -> Failure {
    let names = schedlab_policies::NAMES;
    let near = nearest(name, names.iter().copied());
    let hint = match near.as_slice() {
        [] => format!("there are: {}", names.join(", ")),
        near => format!("did you mean `{}`?", near.join("` or `")),
    };
    Failure::new(Exit::Usage, format!("there is no policy `{name}`; {hint}"))
}

fn list(width: usize) -> String {
    let name_width = schedlab_policies::NAMES.iter().map(|name| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for info in schedlab_policies::infos() {
        indented(&mut text, &format!("{:name_width$}  ", info.name), info.about, width);
        let variants: Vec<&str> =
            info.variants.iter().map(|v| v.name).filter(|name| !name.is_empty()).collect();
        if !variants.is_empty() {
            let variants = format!("variants: {}", variants.join(", "));
            indented(&mut text, &format!("{:name_width$}  ", ""), &variants, width);
        }
    }
    text + "\nThe first variant is the default. `schedlab policies NAME` shows one in full.\n"
}

fn show(info: &PolicyInfo, width: usize) -> String {
    let mut text = String::new();
    indented(&mut text, &format!("{}  ", info.name), info.about, width);
    let phase = match info.time.phase {
        TickPhase::Aligned => "all CPUs tick at once",
        TickPhase::Skewed => "CPUs tick one after the other",
    };
    let timers = match info.time.timers {
        TimerBase::Jiffies | TimerBase::Local(_) => "sleeps end on ticks",
        TimerBase::HighRes => "sleeps end at the nanosecond",
    };
    text += &format!("\nHZ {}; {phase}; {timers}\n", info.time.hz.get());
    for promise in promises(info) {
        text += &(wrap(&promise, width).join("\n") + "\n");
    }
    if info.variants.iter().any(|variant| !variant.name.is_empty()) {
        text += "\nVariants (the first is the default)\n";
        for variant in info.variants {
            show_variant(&mut text, info, variant, width);
        }
    }
    if !info.tunables.is_empty() {
        text += "\nTunables\n";
        for tunable in info.tunables {
            show_tunable(&mut text, tunable, width);
        }
    }
    text
}

fn show_variant(text: &mut String, info: &PolicyInfo, variant: &Variant, width: usize) {
    indented(text, &format!("  {}@{}  ", info.name, variant.name), variant.about, width);
    let show = |(name, value): &(&str, i64)| {
        let tunable = info.tunables.iter().find(|tunable| tunable.name == *name);
        tunable.map(|tunable| format!("{name}={}", tunable.show(*value)))
    };
    let settings: Vec<String> = variant.set.iter().filter_map(show).collect();
    if !settings.is_empty() {
        indented(text, "      ", &settings.join(" "), width);
    }
}

fn show_tunable(text: &mut String, tunable: &Tunable, width: usize) {
    let default = tunable.show(tunable.default);
    text.push_str(&format!("  {} = {default}  ({})\n", tunable.name, tunable.range()));
    indented(text, "      ", &tunable.doc.replace('\n', " "), width);
    indented(text, "      ", &format!("[{}]", tunable.source), width);
}

/// Adds `body` in lines of at most `width` characters, `head` before the first, blanks before the
/// others.
fn indented(text: &mut String, head: &str, body: &str, width: usize) {
    let indent = head.chars().count();
    for (index, line) in
        wrap(&body.split_whitespace().collect::<Vec<_>>().join(" "), width - indent)
            .iter()
            .enumerate()
    {
        let head = if index == 0 { head.to_string() } else { " ".repeat(indent) };
        text.push_str(format!("{head}{line}").trim_end());
        text.push('\n');
    }
}
