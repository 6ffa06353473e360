// SPDX-License-Identifier: GPL-2.0-only
//! Writes a simulated run as ftrace text, as `trace` of tracefs would show it.
//!
//! The text is what kernels from 4.14 on print with their own format strings (no plugin form), but
//! for two points: times have nine decimals, because six would lose what the simulation knows, and
//! the heading has no buffer statistics, because it is written first.
//! Perfetto, `trace-cmd`-like tools and our own reader accept both.
//! Layout: spec formats-and-ecosystem §2.3 (a), bodies §2.1.

use std::fmt;
use std::io::{self, Write};

use schedlab_policy_api::{Observer, RecordedState, SchedEvent};
use schedlab_units::{CpuId, TaskId, Time};

use crate::kernel_view::{Hit, KernelView, Point, TaskLabel};

/// Bytes gathered before they are written.
const CHUNK: usize = 64 * 1024;

/// An observer that writes ftrace text.
///
/// Memory is bounded by the number of tasks alive. An output that fails is not written to again;
/// [`FtraceWriter::finish`] reports it.
#[derive(Debug)]
pub struct FtraceWriter<W: Write> {
    out: W,
    text: Vec<u8>,
    error: Option<io::Error>,
    view: KernelView,
}

impl<W: Write> FtraceWriter<W> {
    /// A writer to `out`; the heading is written at once.
    pub fn new(out: W) -> Self {
        let mut writer = Self {
            out,
            text: Vec::with_capacity(CHUNK + 1024),
            error: None,
            view: KernelView::default(),
        };
        writer.put(format_args!(
            "# tracer: nop\n\
             #\n\
             #                                _-----=> irqs-off\n\
             #                               / _----=> need-resched\n\
             #                              | / _---=> hardirq/softirq\n\
             #                              || / _--=> preempt-depth\n\
             #                              ||| / _-=> migrate-disable\n\
             #           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n\
             #              | |         |   |||||     |         |\n"
        ));
        writer
    }

    /// Names `task`; to be called between its `ProcessFork` and the next event.
    pub fn name_task(&mut self, task: TaskId, label: TaskLabel<'_>) {
        self.view.label(task, label);
    }

    /// Writes what is left and returns the output.
    ///
    /// # Errors
    /// The first failure of the output, now or earlier.
    pub fn finish(mut self) -> io::Result<W> {
        if let Some(hit) = self.view.finish() {
            self.line(&hit);
        }
        self.flush_text();
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    fn flush_text(&mut self) {
        if self.error.is_none() {
            self.error = self.out.write_all(&self.text).err();
        }
        self.text.clear();
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        if let Err(error) = self.text.write_fmt(text) {
            self.error.get_or_insert(error);
        }
    }

    fn line(&mut self, hit: &Hit) {
        let Hit { time, cpu, context, interrupt, .. } = *hit;
        let (comm, pid) = match context {
            Some(task) => {
                let shown = self.view.task(task);
                (std::mem::take(&mut shown.comm), shown.pid.0)
            }
            None => (String::from("<idle>"), 0),
        };
        let (seconds, ns) = (time.as_ns() / 1_000_000_000, time.as_ns() % 1_000_000_000);
        // Scheduler tracepoints are hit with interrupts off; nothing is said about preemption.
        let flags = if interrupt { "d.h.." } else { "d...." };
        self.put(format_args!("{comm:>16}-{pid:<7} [{:03}] {flags} {seconds:>5}.{ns:09}: ", cpu.0));
        if let Some(task) = context {
            self.view.task(task).comm = comm;
        }
        self.body(cpu, &hit.point);
        self.text.push(b'\n');
        if self.text.len() >= CHUNK {
            self.flush_text();
        }
    }

    fn body(&mut self, cpu: CpuId, point: &Point) {
        match *point {
            Point::Switch { prev, prev_state, next } => {
                self.put(format_args!("sched_switch: prev_comm="));
                let (pid, prio) = self.name(prev, cpu);
                let state = letter(prev_state);
                self.put(format_args!(
                    " prev_pid={pid} prev_prio={prio} prev_state={state} ==> next_comm="
                ));
                let (pid, prio) = self.name(next, cpu);
                self.put(format_args!(" next_pid={pid} next_prio={prio}"));
            }
            Point::Waking { task, target } => self.wakeup("sched_waking", task, target),
            Point::Wakeup { task, target } => self.wakeup("sched_wakeup", task, target),
            Point::WakeupNew { task, target } => self.wakeup("sched_wakeup_new", task, target),
            Point::Migrate { task, from, to } => {
                self.put(format_args!("sched_migrate_task: comm="));
                let (pid, prio) = self.name(Some(task), cpu);
                self.put(format_args!(" pid={pid} prio={prio} orig_cpu={from} dest_cpu={to}"));
            }
            Point::Fork { parent, child } => {
                self.put(format_args!("sched_process_fork: comm="));
                let (pid, _) = self.name(Some(parent), cpu);
                self.put(format_args!(" pid={pid} child_comm="));
                let (pid, _) = self.name(Some(child), cpu);
                self.put(format_args!(" child_pid={pid}"));
            }
            Point::Exec { task } => {
                self.put(format_args!("sched_process_exec: filename="));
                let (pid, _) = self.name(Some(task), cpu);
                self.put(format_args!(" pid={pid} old_pid={pid}"));
            }
            Point::Exit { task } => {
                self.put(format_args!("sched_process_exit: comm="));
                let (pid, prio) = self.name(Some(task), cpu);
                self.put(format_args!(" pid={pid} prio={prio}"));
            }
        }
    }

    fn wakeup(&mut self, event: &str, task: TaskId, target: CpuId) {
        self.put(format_args!("{event}: comm="));
        let (pid, prio) = self.name(Some(task), target);
        self.put(format_args!(" pid={pid} prio={prio} target_cpu={:03}", target.0));
    }

    /// Writes the name of a task or of the idle task of `cpu`; its pid and priority.
    fn name(&mut self, task: Option<TaskId>, cpu: CpuId) -> (u32, i32) {
        match task {
            Some(task) => {
                let shown = self.view.task(task);
                self.text.extend_from_slice(shown.comm.as_bytes());
                (shown.pid.0, shown.prio)
            }
            None => {
                self.put(format_args!("swapper/{cpu}"));
                (0, 120)
            }
        }
    }
}

/// State letters of kernels from 4.14 on.
const fn letter(state: RecordedState) -> &'static str {
    match state {
        RecordedState::Runnable => "R",
        RecordedState::Preempted => "R+",
        RecordedState::Sleeping => "S",
        RecordedState::Uninterruptible => "D",
        RecordedState::Exited => "Z",
    }
}

impl<W: Write> Observer for FtraceWriter<W> {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        for hit in self.view.event(now, event).into_iter().flatten() {
            self.line(&hit);
        }
    }
}
