// SPDX-License-Identifier: GPL-2.0-only
//! The sums of timehist: by thread, by idle CPU, and of all.

use std::io::Write;

use schedlab_policy_api::Pid;
use schedlab_trace::{Comms, UNKNOWN_PID};
use schedlab_units::CpuId;

use super::{Thread, Timehist};
use crate::figures::{msec_cut, percent};

/// perf keeps threads in this many lists by number, and shows list after list.
const LISTS: u32 = 256;

#[derive(Default)]
struct Totals {
    tasks: u64,
    switches: u64,
    run: u64,
}

impl<W: Write> Timehist<W> {
    pub(super) fn table(&mut self, comms: &Comms, n_cpus: u32) {
        self.table_head();
        let mut totals = Totals::default();
        let mut shown: Vec<(Pid, Thread)> = self.threads.iter().map(|(p, t)| (*p, *t)).collect();
        shown.retain(|(_, thread)| thread.run.n > 0);
        shown.sort_by_key(|(pid, _)| (pid.0 % LISTS, pid.0));
        let (gone, there): (Vec<_>, Vec<_>) =
            shown.into_iter().partition(|(pid, _)| self.names.exited(*pid));
        self.thread_rows(&there, "<no still running tasks>", &mut totals, comms);
        self.out.line("\nTerminated tasks:");
        self.thread_rows(&gone, "<no terminated tasks>", &mut totals, comms);
        // Time of unseen threads would be taken for idle time.
        if self.skipped && !self.options.idle {
            return;
        }
        self.idle_and_totals(totals, n_cpus);
    }

    fn table_head(&mut self) {
        let (title, out, run) = if self.options.idle {
            ("Idle-time summary", "sched-out", "idle")
        } else if self.options.state {
            ("Wait-time summary", "sched-in", "run")
        } else {
            ("Runtime summary", "sched-in", "run")
        };
        let width = self.name_width;
        self.out.put(format_args!("\n{title}\n"));
        self.out.put(format_args!("{:>width$}  parent  {out:>9}", "comm"));
        if self.options.state && !self.options.idle {
            self.out.line("     run-time      sleep      iowait     preempt       delay");
            let count = width + 19;
            self.out.put(format_args!("{:>count$}", "(count)"));
            self.out.line("       (msec)     (msec)      (msec)      (msec)       (msec)");
        } else {
            let (time, min) = (format!("{run}-time"), format!("min-{run}"));
            let (avg, max) = (format!("avg-{run}"), format!("max-{run}"));
            self.out.put(format_args!("{time:>13}{min:>11}{avg:>12}{max:>12}"));
            self.out.line("  stddev  migrations");
            let count = width + 19;
            self.out.put(format_args!("{:>count$}", "(count)"));
            self.out.line("       (msec)     (msec)      (msec)      (msec)       %");
        }
        self.out.line(&"-".repeat(117));
    }

    fn thread_rows(
        &mut self,
        threads: &[(Pid, Thread)],
        none: &str,
        totals: &mut Totals,
        comms: &Comms,
    ) {
        if threads.is_empty() {
            self.out.line(none);
        }
        let width = self.name_width;
        for (pid, thread) in threads {
            totals.tasks += 1;
            totals.switches += thread.run.n;
            totals.run = totals.run.saturating_add(thread.run.sum);
            let name = self.names.with_ids(*pid, comms);
            let parent = match self.names.parent_of(*pid) {
                Some(UNKNOWN_PID) | None => "-1".to_string(),
                Some(parent) => parent.0.to_string(),
            };
            let (n, run) = (thread.run.n, msec_cut(thread.run.sum));
            self.out.put(format_args!("{name:>width$}{parent:>8}{n:>11}{run:>13}"));
            if self.options.state && !self.options.idle {
                let (sleep, iowait) = (msec_cut(thread.sleep), msec_cut(thread.iowait));
                let (preempt, delay) = (msec_cut(thread.preempt), msec_cut(thread.delay));
                self.out.put(format_args!("{sleep:>11}{iowait:>12}{preempt:>12}{delay:>12} \n"));
            } else {
                let (min, avg) = (msec_cut(thread.run.min), msec_cut(thread.run.mean()));
                let (max, spread) = (msec_cut(thread.run.max), thread.run.spread_percent());
                let moves = thread.migrations;
                self.out.put(format_args!("{min:>11}{avg:>12}{max:>12}{spread:>8.2}{moves:>8}\n"));
            }
        }
    }

    fn idle_and_totals(&mut self, mut totals: Totals, n_cpus: u32) {
        let span = match (self.first, self.last) {
            (Some(first), Some(last)) => last.saturating_since(first).as_ns(),
            _ => 0,
        };
        self.out.line("\nIdle stats:");
        for index in 0..n_cpus {
            let idle = self.cpus.get(index as usize).map(|cpu| cpu.idle.run).unwrap_or_default();
            if !self.choice.cpu(CpuId(index)) {
                continue;
            }
            if idle.n == 0 {
                self.out.put(format_args!("    CPU {index:>2} idle entire time window\n"));
                continue;
            }
            totals.switches += idle.n;
            let (time, share) = (msec_cut(idle.sum), percent(idle.sum, span, 2));
            self.out
                .put(format_args!("    CPU {index:>2} idle for {time:>10}  msec  ({share:>6}%)\n"));
        }
        let Totals { tasks, switches, run } = totals;
        self.out.put(format_args!("\n    Total number of unique tasks: {tasks}\n"));
        self.out.put(format_args!("Total number of context switches: {switches}\n"));
        let (run, span) = (msec_cut(run), msec_cut(span));
        self.out.put(format_args!("           Total run time (msec): {run:>6} \n"));
        self.out.put(format_args!("    Total scheduling time (msec): {span:>6}  (x {n_cpus})\n"));
    }
}
