// SPDX-License-Identifier: GPL-2.0-only
//! The page of a policy in `docs/policies/`, made from its declarations.

use std::fmt::Write as _;

use schedlab_policy_api::{
    PolicyInfo, Starvation, TickPhase, TimerBase, Tunable, Variant, WorkConservation,
};

/// Markdown with variants and tunables of a policy; ends with a newline.
pub fn policy_page(info: &PolicyInfo) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, info);
    page
}

fn write_page(page: &mut String, info: &PolicyInfo) -> std::fmt::Result {
    writeln!(page, "# {}\n\n{}.\n", info.name, sentence(info.about))?;
    let phase = match info.time.phase {
        TickPhase::Aligned => "all CPUs tick together",
        TickPhase::Skewed => "CPUs tick one after the other",
    };
    let timers = match info.time.timers {
        TimerBase::Jiffies | TimerBase::Local(_) => "sleeps end on ticks",
        TimerBase::HighRes => "sleeps end to the nanosecond",
    };
    writeln!(page, "- HZ {}; {phase}; {timers}.", info.time.hz.get())?;
    for promise in promises(info) {
        writeln!(page, "- {promise}.")?;
    }
    if info.variants.iter().any(|variant| !variant.name.is_empty()) {
        writeln!(page, "\n## Variants\n\nThe first is the default.\n")?;
        writeln!(page, "| variant | what it is | sets |\n|---|---|---|")?;
        for variant in info.variants {
            let set = preset(info, variant);
            writeln!(
                page,
                "| `{}@{}` | {} | {set} |",
                info.name,
                variant.name,
                cell(variant.about)
            )?;
        }
    }
    if info.tunables.is_empty() {
        return Ok(());
    }
    writeln!(page, "\n## Tunables\n")?;
    writeln!(page, "| tunable | default | range | what it does | source |\n|---|---|---|---|---|")?;
    for tunable in info.tunables {
        let (default, range) = (tunable.show(tunable.default), tunable.range());
        let (doc, source) = (cell(tunable.doc), cell(tunable.source));
        writeln!(page, "| `{}` | {default} | {range} | {doc} | {source} |", tunable.name)?;
    }
    Ok(())
}

/// What a policy promises about idle CPUs and about waiting tasks, each with its reason; sentences
/// without full stops.
pub fn promises(info: &PolicyInfo) -> [String; 2] {
    let idle = match info.work_conserving {
        WorkConservation::Always => {
            "Work-conserving: no CPU idles while a task waits that it may run".to_string()
        }
        WorkConservation::Ticks(n, why) => {
            let ticks = if n == 1 { "1 tick".to_string() } else { format!("{n} ticks") };
            format!("A CPU idles for at most {ticks} while a task waits that it may run: {why}")
        }
        WorkConservation::Unbounded(why) => {
            format!("CPUs may idle while a task waits that they may run: {why}")
        }
    };
    let wait = match info.starvation {
        Starvation { bound: Some(why), except: None } => {
            format!("The wait of a task that always wants its CPU is bounded: {why}")
        }
        Starvation { bound: Some(why), except: Some(except) } => format!(
            "The wait of a task that always wants its CPU is bounded: {why}; but not {except}"
        ),
        Starvation { bound: None, except } => format!(
            "The wait of a task that always wants its CPU is not bounded: {}",
            except.unwrap_or_default()
        ),
    };
    [idle, wait]
}

/// The tunables that a variant sets, as a policy spec would.
fn preset(info: &PolicyInfo, variant: &Variant) -> String {
    let shown = variant.set.iter().map(|(name, value)| {
        let found: Option<&Tunable> = info.tunables.iter().find(|tunable| tunable.name == *name);
        found.map_or_else(|| (*name).to_string(), |t| format!("`{name}={}`", t.show(*value)))
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Text for a table cell: one line, bars escaped.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
