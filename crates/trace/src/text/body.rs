// SPDX-License-Identifier: GPL-2.0-only
//! From an event's name and body to a [`RecordEvent`].

use schedlab_policy_api::{CommId, Pid, RecordEvent};
use schedlab_units::{CpuId, MAX_CPUS};

use super::scan::{Fault, trim};
use super::{plugin, printk};

/// A recognised event.
pub(crate) struct Parsed {
    pub(crate) event: RecordEvent,
    /// Whether fields followed that we do not know.
    pub(crate) extra: bool,
}

/// Parses the body of event `name`; `None` when the event is not one we keep.
///
/// `intern` turns a task name into its id.
///
/// # Errors
/// A body that does not have the form of its event; the offset counts from its start.
pub(crate) fn parse(
    name: &[u8],
    body: &[u8],
    intern: &mut dyn FnMut(&[u8]) -> CommId,
) -> Result<Option<Parsed>, Fault> {
    let malformed = |expected: &str| {
        let name = String::from_utf8_lossy(name);
        Fault::new(0, format!("{name} without `{expected}`"))
    };
    let (event, rest) = match name {
        b"sched_switch" => switch(body, intern)?,
        b"sched_waking" | b"sched_wakeup" | b"sched_wakeup_new" => {
            let (side, cpu, rest) = printk::wakeup(body)
                .or_else(|| plugin::wakeup(body))
                .ok_or_else(|| malformed("comm=… pid=… prio=… target_cpu=…"))?;
            let (pid, comm, prio) = (Pid(side.pid), intern(side.comm), side.prio);
            let target_cpu = cpu_id(cpu)?;
            let event = match name {
                b"sched_waking" => RecordEvent::Waking { pid, comm, prio, target_cpu },
                b"sched_wakeup" => RecordEvent::Wakeup { pid, comm, prio, target_cpu },
                _ => RecordEvent::WakeupNew { pid, comm, prio, target_cpu },
            };
            (event, rest)
        }
        b"sched_migrate_task" => {
            let (side, orig, dest, rest) = printk::migrate(body)
                .ok_or_else(|| malformed("comm=… pid=… prio=… orig_cpu=… dest_cpu=…"))?;
            let event = RecordEvent::Migrate {
                pid: Pid(side.pid),
                comm: intern(side.comm),
                prio: side.prio,
                orig_cpu: cpu_id(orig)?,
                dest_cpu: cpu_id(dest)?,
            };
            (event, rest)
        }
        b"sched_process_fork" => {
            let (parent, child, rest) = printk::fork(body)
                .ok_or_else(|| malformed("comm=… pid=… child_comm=… child_pid=…"))?;
            let event = RecordEvent::Fork {
                parent: Pid(parent.1),
                parent_comm: intern(parent.0),
                child: Pid(child.1),
                child_comm: intern(child.0),
            };
            (event, rest)
        }
        b"sched_process_exec" => {
            let (pid, rest) =
                printk::exec(body).ok_or_else(|| malformed("filename=… pid=… old_pid=…"))?;
            (RecordEvent::Exec { pid: Pid(pid) }, rest)
        }
        b"sched_process_exit" => {
            let (side, rest) =
                printk::exit(body).ok_or_else(|| malformed("comm=… pid=… prio=…"))?;
            let (pid, comm) = (Pid(side.pid), intern(side.comm));
            (RecordEvent::Exit { pid, comm, prio: side.prio }, rest)
        }
        b"sched_stat_runtime" => {
            let (pid, runtime_ns, rest) = printk::stat_runtime(body)
                .ok_or_else(|| malformed("comm=… pid=… runtime=… [ns]"))?;
            (RecordEvent::StatRuntime { pid: Pid(pid), runtime_ns }, rest)
        }
        _ => return Ok(None),
    };
    Ok(Some(Parsed { event, extra: !trim(rest).is_empty() }))
}

fn switch<'a>(
    body: &'a [u8],
    intern: &mut dyn FnMut(&[u8]) -> CommId,
) -> Result<(RecordEvent, &'a [u8]), Fault> {
    let got = printk::switch(body).or_else(|why| {
        plugin::switch(body).map_err(|other| if body.starts_with(b"prev_") { why } else { other })
    })?;
    let event = RecordEvent::Switch {
        prev: Pid(got.prev.pid),
        prev_comm: intern(got.prev.comm),
        prev_prio: got.prev.prio,
        prev_state: got.state,
        next: Pid(got.next.pid),
        next_comm: intern(got.next.comm),
        next_prio: got.next.prio,
    };
    Ok((event, got.rest))
}

/// CPU `n`, below [`MAX_CPUS`].
pub(crate) fn cpu_id(n: u64) -> Result<CpuId, Fault> {
    match u32::try_from(n) {
        Ok(cpu) if (cpu as usize) < MAX_CPUS => Ok(CpuId(cpu)),
        _ => Err(Fault::new(0, format!("CPU {n} is beyond the {MAX_CPUS} CPUs we handle"))),
    }
}
