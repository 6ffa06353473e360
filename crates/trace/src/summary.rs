// SPDX-License-Identifier: GPL-2.0-only
//! What a reader found, in numbers.

use std::collections::BTreeMap;
use std::fmt;

use schedlab_policy_api::{RecordEvent, Recording, TraceRecord};
use schedlab_units::Time;

use crate::format::Format;

/// A trace that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// The events.
    pub recording: Recording,
    /// What was found, and what must be known before trusting it.
    pub summary: ReadSummary,
}

/// Numbers about a trace that was read; [`fmt::Display`] prints them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadSummary {
    /// Form of the trace.
    pub format: Format,
    /// What the file says of its origin in one sentence; empty when it says nothing.
    pub origin: String,
    /// Lines of the file; 0 for binary forms.
    pub lines: u64,
    /// Records kept.
    pub records: u64,
    /// Events kept, by kernel name.
    pub events: BTreeMap<&'static str, u64>,
    /// Events not kept, by their name in the file: other tracepoints, and scheduler ones that say
    /// nothing a replay needs.
    pub other_events: BTreeMap<String, u64>,
    /// Kept events followed by fields we do not know.
    pub extra_fields: u64,
    /// Events the kernel or the tool says were lost, where it says how many.
    pub lost_events: u64,
    /// Notices of losses of unknown size.
    pub lost_unknown: u64,
    /// Records whose time lies before an earlier record of the same CPU; sorted in.
    pub out_of_order: u64,
    /// Records so far out of order that later ones had been handed out before them.
    pub late: u64,
    /// Records whose context had no thread id.
    pub unknown_contexts: u64,
    /// Lines of call chains, passed over.
    pub call_chain_lines: u64,
    /// Whether the last line ended with a line feed. If not, and the file was cut there, its last
    /// number may be short.
    pub final_newline: bool,
    /// Number of CPUs: one more than the highest seen.
    pub n_cpus: u32,
    /// Time of the first and the last record.
    pub span: Option<(Time, Time)>,
}

impl ReadSummary {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            origin: String::new(),
            lines: 0,
            records: 0,
            events: BTreeMap::new(),
            other_events: BTreeMap::new(),
            extra_fields: 0,
            lost_events: 0,
            lost_unknown: 0,
            out_of_order: 0,
            late: 0,
            unknown_contexts: 0,
            call_chain_lines: 0,
            final_newline: true,
            n_cpus: 0,
            span: None,
        }
    }
    pub(crate) fn count(&mut self, record: &TraceRecord) {
        self.records += 1;
        *self.events.entry(event_name(&record.event)).or_default() += 1;
    }
    pub(crate) fn count_other(&mut self, name: &[u8]) {
        let name = String::from_utf8_lossy(name);
        match self.other_events.get_mut(name.as_ref()) {
            Some(n) => *n += 1,
            None => {
                self.other_events.insert(name.into_owned(), 1);
            }
        }
    }
    pub(crate) fn span(&mut self, now: Time) {
        let (first, last) = self.span.unwrap_or((now, now));
        self.span = Some((first.min(now), last.max(now)));
    }
    /// Number of events that were there but not kept.
    pub fn n_other(&self) -> u64 {
        self.other_events.values().sum()
    }
}

/// The kernel's name of an event; `lost` for a notice of lost ones.
pub fn event_name(event: &RecordEvent) -> &'static str {
    match event {
        RecordEvent::Switch { .. } => "sched_switch",
        RecordEvent::Waking { .. } => "sched_waking",
        RecordEvent::Wakeup { .. } => "sched_wakeup",
        RecordEvent::WakeupNew { .. } => "sched_wakeup_new",
        RecordEvent::Migrate { .. } => "sched_migrate_task",
        RecordEvent::Fork { .. } => "sched_process_fork",
        RecordEvent::Exec { .. } => "sched_process_exec",
        RecordEvent::Exit { .. } => "sched_process_exit",
        RecordEvent::StatRuntime { .. } => "sched_stat_runtime",
        RecordEvent::Lost { .. } => "lost",
    }
}

impl fmt::Display for ReadSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = |events: &mut dyn Iterator<Item = (&str, u64)>| {
            events.map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
        };
        let kept = counts(&mut self.events.iter().map(|(name, n)| (*name, *n)));
        let lines = if self.lines > 0 { format!("{} lines, ", self.lines) } else { String::new() };
        writeln!(f, "{}: {lines}{} records ({kept})", self.format, self.records)?;
        if !self.origin.is_empty() {
            writeln!(f, "origin: {}", self.origin)?;
        }
        if let Some((first, last)) = self.span {
            writeln!(f, "time {first} to {last}, {} long", last - first)?;
        }
        if !self.other_events.is_empty() {
            let other = counts(&mut self.other_events.iter().map(|(name, n)| (name.as_str(), *n)));
            writeln!(f, "not used: {other}")?;
        }
        if self.lost_events > 0 {
            let all = self.lost_events.saturating_add(self.records).saturating_add(self.n_other());
            let percent_100 = u128::from(self.lost_events) * 10_000 / u128::from(all);
            let (whole, part) = (percent_100 / 100, percent_100 % 100);
            writeln!(f, "lost events: {} ({whole}.{part:02} %)", self.lost_events)?;
        }
        for (n, what) in [
            (self.lost_unknown, "times an unknown number of events was lost"),
            (self.out_of_order, "records went back in time on their CPU and were sorted in"),
            (self.late, "of them too far back to be sorted while reading"),
            (self.unknown_contexts, "records of a thread without an id"),
            (self.extra_fields, "events with fields that are not known and not used"),
            (self.call_chain_lines, "lines of call chains passed over"),
        ] {
            if n > 0 {
                writeln!(f, "{n} {what}")?;
            }
        }
        if !self.final_newline {
            writeln!(
                f,
                "no line feed at the end: if the file was cut there, its last number is short"
            )?;
        }
        Ok(())
    }
}
