// SPDX-License-Identifier: GPL-2.0-only
//! Writes records as ftrace text, as `trace` of tracefs would show them.
//!
//! The text is what kernels from 4.14 on print with their own format strings (no plugin form), but
//! for two points: times have nine decimals, because six would lose what the records know, and
//! the heading has no buffer statistics, because it is written first.
//! Perfetto, `trace-cmd`-like tools and our own reader accept both.
//! Layout: spec formats-and-ecosystem §2.3 (a), bodies §2.1.

use std::fmt;
use std::io::{self, Write};

use schedlab_policy_api::{CommId, Pid, RecordContext, RecordEvent, RecordedState, TraceRecord};
use schedlab_units::CpuId;

use crate::comms::Comms;
use crate::out::Out;
use crate::sink::{RecordSink, RecordWriter};

/// A sink that writes ftrace text.
///
/// Memory does not grow. An output that fails is not written to again;
/// [`FtraceWriter::finish`] reports it.
#[derive(Debug)]
pub struct FtraceWriter<W: Write> {
    out: Out<W>,
}

impl<W: Write> FtraceWriter<W> {
    /// A writer to `out`; the heading is written at once.
    pub fn new(out: W) -> Self {
        let mut writer = Self { out: Out::new(out) };
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

    /// Writes what is left and returns the output.
    ///
    /// # Errors
    /// The first failure of the output, now or earlier.
    pub fn finish(self) -> io::Result<W> {
        self.out.finish()
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        self.out.text(text);
    }

    fn line(&mut self, record: &TraceRecord, comms: &Comms) {
        let TraceRecord { time, cpu, pid, comm, context, event } = *record;
        if let RecordEvent::Lost { count } = event {
            let n = if count == 0 { String::new() } else { format!("{count} ") };
            self.put(format_args!("CPU:{cpu} [LOST {n}EVENTS]\n"));
            return;
        }
        let (seconds, ns) = (time.as_ns() / 1_000_000_000, time.as_ns() % 1_000_000_000);
        // Scheduler tracepoints are hit with interrupts off; nothing is said about preemption.
        // A soft interrupt is what our reader takes for unknown.
        let flags = match context {
            RecordContext::Unknown => "d.s..",
            RecordContext::Task => "d....",
            RecordContext::Interrupt => "d.h..",
        };
        let comm = comms.name(comm);
        let pid = pid.0;
        self.put(format_args!("{comm:>16}-{pid:<7} [{:03}] {flags} {seconds:>5}.{ns:09}: ", cpu.0));
        self.body(record, comms);
        self.out.bytes(b"\n");
    }

    fn body(&mut self, record: &TraceRecord, comms: &Comms) {
        let name = |id: CommId| comms.name(id);
        match record.event {
            RecordEvent::Switch {
                prev,
                prev_comm,
                prev_prio,
                prev_state,
                next,
                next_comm,
                next_prio,
            } => self.put(format_args!(
                "sched_switch: prev_comm={} prev_pid={} prev_prio={prev_prio} prev_state={} ==> \
                 next_comm={} next_pid={} next_prio={next_prio}",
                name(prev_comm),
                prev.0,
                letter(prev_state),
                name(next_comm),
                next.0
            )),
            RecordEvent::Waking { pid, comm, prio, target_cpu } => {
                self.wakeup("sched_waking", pid, name(comm), prio, target_cpu);
            }
            RecordEvent::Wakeup { pid, comm, prio, target_cpu } => {
                self.wakeup("sched_wakeup", pid, name(comm), prio, target_cpu);
            }
            RecordEvent::WakeupNew { pid, comm, prio, target_cpu } => {
                self.wakeup("sched_wakeup_new", pid, name(comm), prio, target_cpu);
            }
            RecordEvent::Migrate { pid, comm, prio, orig_cpu, dest_cpu } => {
                self.put(format_args!(
                    "sched_migrate_task: comm={} pid={} prio={prio} orig_cpu={orig_cpu} \
                     dest_cpu={dest_cpu}",
                    name(comm),
                    pid.0
                ));
            }
            RecordEvent::Fork { parent, parent_comm, child, child_comm } => {
                self.put(format_args!(
                    "sched_process_fork: comm={} pid={} child_comm={} child_pid={}",
                    name(parent_comm),
                    parent.0,
                    name(child_comm),
                    child.0
                ));
            }
            RecordEvent::Exec { pid } => {
                let file = name(record.comm);
                self.put(format_args!(
                    "sched_process_exec: filename={file} pid={0} old_pid={0}",
                    pid.0
                ));
            }
            RecordEvent::Exit { pid, comm, prio } => {
                let comm = name(comm);
                self.put(format_args!("sched_process_exit: comm={comm} pid={} prio={prio}", pid.0));
            }
            RecordEvent::StatRuntime { pid, runtime_ns } => {
                // The name is that of the context: the runtime of the thread that is running.
                let comm = name(record.comm);
                self.put(format_args!(
                    "sched_stat_runtime: comm={comm} pid={} runtime={runtime_ns} [ns]",
                    pid.0
                ));
            }
            RecordEvent::Lost { .. } => {}
        }
    }

    fn wakeup(&mut self, event: &str, pid: Pid, comm: &str, prio: i32, target: CpuId) {
        self.put(format_args!(
            "{event}: comm={comm} pid={} prio={prio} target_cpu={:03}",
            pid.0, target.0
        ));
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

impl<W: Write> RecordSink for FtraceWriter<W> {
    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        self.line(record, comms);
    }
}

impl<W: Write + Send> RecordWriter for FtraceWriter<W> {
    fn close(self: Box<Self>) -> io::Result<()> {
        self.finish().map(drop)
    }
}
