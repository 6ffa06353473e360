// SPDX-License-Identifier: GPL-2.0-only
//! The summary as text and as JSON.

use std::cmp::Reverse;
use std::io::{self, Write};

use schedlab_metrics::Summary as Figures;
use schedlab_policy_api::Pid;
use schedlab_trace::{Comms, ReadSummary};
use serde_json::{Value, json};

use super::{Summary, Thread};
use crate::figures::{msec_rounded, percent};
use crate::names::IDLE;
use crate::out::Out;

/// Name of the form of the JSON document.
pub const SUMMARY_SCHEMA: &str = "schedlab.view-summary/1";

/// What one CPU did within the span of the trace, ns.
struct CpuTimes {
    busy: u64,
    idle: u64,
    unknown: u64,
    contradictions: u64,
}

fn span(found: &ReadSummary) -> u64 {
    found.span.map_or(0, |(first, last)| last.saturating_since(first).as_ns())
}

fn cpus(view: &Summary, found: &ReadSummary) -> Vec<CpuTimes> {
    let whole = span(found);
    (0..found.n_cpus as usize)
        .map(|index| {
            let cpu = view.cpus.get(index).copied().unwrap_or_default();
            let unknown = whole.saturating_sub(cpu.busy).saturating_sub(cpu.idle);
            let contradictions = cpu.contradictions;
            CpuTimes { busy: cpu.busy, idle: cpu.idle, unknown, contradictions }
        })
        .collect()
}

/// Threads, those with the most CPU time first.
fn threads(view: &Summary) -> Vec<(Pid, &Thread)> {
    let busy = view.threads.iter().filter(|(pid, _)| **pid != IDLE);
    let mut rows: Vec<(Pid, &Thread)> = busy.map(|(pid, thread)| (*pid, thread)).collect();
    rows.sort_by_key(|(pid, thread)| (Reverse(thread.run), *pid));
    rows
}

pub(super) fn text<W: Write>(
    view: &Summary,
    found: &ReadSummary,
    comms: &Comms,
    out: W,
) -> io::Result<W> {
    let mut out = Out::new(out);
    out.put(format_args!("{found}\n"));
    let rows = threads(view);
    let named: Vec<String> = rows.iter().map(|(pid, _)| view.names.with_ids(*pid, comms)).collect();
    let width = named.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(6);
    let count = format!("{} threads", rows.len());
    out.put(format_args!(
        "{:width$}  {:>11}  {:>20}  {:>8}  {:>5}  {}\n",
        "", "run time", "switches", "wake-ups", "moves", "from wake-up or fork to CPU, us"
    ));
    out.put(format_args!(
        "{:<width$}  {:>11}  {:>9}  {:>9}  {:>8}  {:>5}  {}\n",
        "thread",
        "ms",
        "voluntary",
        "other",
        "",
        "",
        "     n        min        p50        p90        p99      p99.9        max"
    ));
    for ((_, thread), name) in rows.iter().zip(&named) {
        let run = msec_rounded(thread.run);
        let Thread { voluntary, involuntary, wakeups, migrations, .. } = thread;
        let latency = latency_columns(thread.latency.summary());
        out.put(format_args!(
            "{name:<width$}  {run:>11}  {voluntary:>9}  {involuntary:>9}  {wakeups:>8}  \
             {migrations:>5}  {latency}\n"
        ));
    }
    let few = rows
        .iter()
        .any(|(_, thread)| thread.latency.summary().is_some_and(|figures| figures.count < 1000));
    out.put(format_args!("{count}\n"));
    if few {
        out.line("p99.9 of fewer than 1000 wake-ups is their largest");
    }
    cpu_table(&cpus(view, found), span(found), &mut out);
    out.finish()
}

fn latency_columns(figures: Option<Figures>) -> String {
    let Some(figures) = figures else { return format!("{:>6}", 0) };
    let us = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
    let Figures { count, min, p50, p90, p99, p99_9, max, .. } = figures;
    let spans = [min, p50, p90, p99, p99_9, max].map(|ns| format!("{:>10}", us(ns)));
    format!("{count:>6} {}", spans.join(" "))
}

fn cpu_table<W: Write>(cpus: &[CpuTimes], whole: u64, out: &mut Out<W>) {
    out.line("\nCPU      busy ms       %      idle ms       %   unknown ms       %");
    for (index, cpu) in cpus.iter().enumerate() {
        let columns = [cpu.busy, cpu.idle, cpu.unknown]
            .map(|ns| format!("{:>11} {:>7}", msec_rounded(ns), percent(ns, whole, 2)));
        out.put(format_args!("{index:>3}  {}\n", columns.join("  ")));
    }
    out.line("unknown: before the first and after the last switch, and where records contradict");
    let contradictions: u64 = cpus.iter().map(|cpu| cpu.contradictions).sum();
    if contradictions > 0 {
        out.put(format_args!(
            "{contradictions} stretches contradict the switch before them: the recording is \
             filtered or lost events,\nand threads it left out may have run in what looks idle\n"
        ));
    }
}

pub(super) fn json<W: Write>(
    view: &Summary,
    found: &ReadSummary,
    comms: &Comms,
    mut out: W,
) -> io::Result<W> {
    let tasks: Vec<Value> =
        threads(view).into_iter().map(|(pid, thread)| task(view, pid, thread, comms)).collect();
    let cpus: Vec<Value> = cpus(view, found)
        .iter()
        .enumerate()
        .map(|(index, cpu)| {
            json!({
                "cpu": index,
                "busy_ns": cpu.busy,
                "idle_ns": cpu.idle,
                "unknown_ns": cpu.unknown,
                "contradictions": cpu.contradictions,
            })
        })
        .collect();
    let document = json!({
        "schema": SUMMARY_SCHEMA,
        "trace": trace(found),
        "cpus": cpus,
        "tasks": tasks,
    });
    serde_json::to_writer_pretty(&mut out, &document)?;
    writeln!(out)?;
    out.flush()?;
    Ok(out)
}

fn trace(found: &ReadSummary) -> Value {
    let at = |time: schedlab_units::Time| time.as_ns();
    json!({
        "format": found.format.to_string(),
        "origin": found.origin,
        "records": found.records,
        "events": found.events,
        "other_events": found.other_events,
        "lost_events": found.lost_events,
        "lost_unknown": found.lost_unknown,
        "out_of_order": found.out_of_order,
        "late": found.late,
        "n_cpus": found.n_cpus,
        "first_ns": found.span.map(|(first, _)| at(first)),
        "last_ns": found.span.map(|(_, last)| at(last)),
    })
}

fn task(view: &Summary, pid: Pid, thread: &Thread, comms: &Comms) -> Value {
    let latency = thread.latency.summary().map(|figures| {
        let Figures { count, min, mean, sd, p50, p75, p90, p95, p99, p99_5, p99_9, max, .. } =
            figures;
        json!({
            "count": count, "min": min, "mean": mean, "sd": sd, "p50": p50, "p75": p75,
            "p90": p90, "p95": p95, "p99": p99, "p99_5": p99_5, "p99_9": p99_9, "max": max,
        })
    });
    json!({
        "pid": pid.0,
        "process": view.names.process_of(pid).map(|process| process.0),
        "name": view.names.comm(pid).map(|comm| comms.name(comm)),
        "run_ns": thread.run,
        "voluntary": thread.voluntary,
        "involuntary": thread.involuntary,
        "wakeups": thread.wakeups,
        "migrations": thread.migrations,
        "wakeup_latency_ns": latency,
    })
}
