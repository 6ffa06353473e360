// SPDX-License-Identifier: GPL-2.0-only
//! Switches that a kernel did not write although they took place.
//!
//! Some kernels leave out switches away from the idle task (decision 0287). Every record says which
//! thread was current where it was made, so a thread that is current without having come has come
//! unseen. When, its first `sched_stat_runtime` after that tells: it counts from the pick. A switch
//! is written a little later than the pick; how much, the switches that were written show, and the
//! median of that is added.

use schedlab_policy_api::{Pid, RecordEvent, RecordedState, Recording, TraceRecord};
use schedlab_trace::UNKNOWN_PID;
use schedlab_units::{Nanos, Time};

/// Fewer distances than this say nothing about the others.
const SAMPLES_MIN: usize = 8;

/// How the switches were placed that were not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unseen {
    /// How many there are.
    pub(crate) n: u64,
    /// The median distance from pick to written switch that was added; none = too few to tell, so
    /// that they are placed at the pick, the earliest possible time.
    pub(crate) lag: Option<Nanos>,
}

/// The median distance from pick to written switch, from the idle task if there are enough of these.
fn lag(records: &[TraceRecord]) -> Option<Nanos> {
    let (mut from_idle, mut from_any) = (Vec::new(), Vec::new());
    // By CPU: the switch whose thread has not been counted yet.
    let mut open = std::collections::BTreeMap::new();
    for record in records {
        match record.event {
            RecordEvent::Switch { prev, next, .. } => {
                open.insert(record.cpu, (record.time, prev, next));
            }
            RecordEvent::StatRuntime { pid, runtime_ns } => {
                if let Some((switched, prev, next)) = open.remove(&record.cpu)
                    && next == pid
                {
                    let picked = before(record.time, runtime_ns);
                    let distance = switched.saturating_since(picked);
                    from_any.push(distance);
                    if prev == Pid(0) {
                        from_idle.push(distance);
                    }
                }
            }
            _ => {}
        }
    }
    let mut samples = if from_idle.len() >= SAMPLES_MIN { from_idle } else { from_any };
    samples.sort_unstable();
    (samples.len() >= SAMPLES_MIN).then(|| samples[samples.len() / 2])
}

/// `at` without `ns`.
fn before(at: Time, ns: u64) -> Time {
    Time::from_ns(at.as_ns().saturating_sub(ns))
}

/// The records of `recording` with those switches put in, in order of time.
pub(crate) fn with_unseen_switches(recording: &Recording) -> (Vec<TraceRecord>, Unseen) {
    let records = &recording.records;
    let lag = lag(records);
    let n_cpus = records.iter().map(|record| record.cpu.index() + 1).max().unwrap_or(0);
    let mut current: Vec<Option<(Pid, Time)>> = vec![None; n_cpus];
    let mut woken = std::collections::BTreeMap::new();
    let mut all = records.clone();
    for (at, record) in records.iter().enumerate() {
        let here = &mut current[record.cpu.index()];
        let is_loss = matches!(record.event, RecordEvent::Lost { .. });
        if let Some((pid, since)) = *here
            && pid != record.pid
            && record.pid != UNKNOWN_PID
            && !is_loss
        {
            let earliest = woken.get(&record.pid).copied().unwrap_or(since).max(since);
            let picked = coming(records, at);
            let came = picked.map_or(earliest, |at| at.saturating_add(lag.unwrap_or_default()));
            let came = came.clamp(earliest.min(record.time), record.time);
            let next = (record.pid, record.comm);
            all.push(switch(record, came, (pid, left_in(records, at, pid)), next));
            *here = Some((record.pid, came));
        }
        match record.event {
            RecordEvent::Switch { next, .. } => *here = Some((next, record.time)),
            RecordEvent::Waking { pid, .. } | RecordEvent::WakeupNew { pid, .. } => {
                woken.insert(pid, record.time);
            }
            _ => {}
        }
    }
    let n = (all.len() - records.len()) as u64;
    all.sort_by_key(|record| record.time);
    (all, Unseen { n, lag })
}

/// When the thread of record `at` was picked, by its first count of CPU time from then on.
fn coming(records: &[TraceRecord], at: usize) -> Option<Time> {
    let TraceRecord { cpu, pid, .. } = records[at];
    for record in records[at..].iter().filter(|record| record.cpu == cpu) {
        match record.event {
            RecordEvent::StatRuntime { pid: who, runtime_ns } if who == pid => {
                return Some(before(record.time, runtime_ns));
            }
            RecordEvent::Switch { .. } => return None,
            _ => {}
        }
    }
    None
}

/// In which state a thread left of which only the absence is known: asleep if it is woken next.
fn left_in(records: &[TraceRecord], at: usize, pid: Pid) -> RecordedState {
    if pid == Pid(0) {
        return RecordedState::Runnable;
    }
    for record in &records[at..] {
        match record.event {
            RecordEvent::Waking { pid: who, .. } if who == pid => return RecordedState::Sleeping,
            RecordEvent::Switch { prev, next, .. } if prev == pid || next == pid => break,
            _ if record.pid == pid => break,
            _ => {}
        }
    }
    RecordedState::Runnable
}

fn switch(
    record: &TraceRecord,
    time: Time,
    (prev, prev_state): (Pid, RecordedState),
    (next, comm): (Pid, schedlab_policy_api::CommId),
) -> TraceRecord {
    let event = RecordEvent::Switch {
        prev,
        prev_comm: comm,
        prev_prio: 120,
        prev_state,
        next,
        next_comm: comm,
        next_prio: 120,
    };
    TraceRecord { time, pid: prev, context: Default::default(), event, ..*record }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_policy_api::CommId;
    use schedlab_units::CpuId;

    fn record(time: u64, pid: u32, event: RecordEvent) -> TraceRecord {
        TraceRecord {
            time: Time::from_ns(time),
            cpu: CpuId(0),
            pid: Pid(pid),
            comm: CommId(0),
            context: Default::default(),
            event,
        }
    }
    fn switched(time: u64, prev: u32, state: RecordedState, next: u32) -> TraceRecord {
        let as_record = record(time, prev, RecordEvent::Lost { count: 0 });
        switch(&as_record, Time::from_ns(time), (Pid(prev), state), (Pid(next), CommId(0)))
    }
    fn waking(time: u64, by: u32, pid: u32) -> TraceRecord {
        let (pid, comm, target_cpu) = (Pid(pid), CommId(0), CpuId(0));
        record(time, by, RecordEvent::Waking { pid, comm, prio: 120, target_cpu })
    }
    fn runtime(time: u64, pid: u32, runtime_ns: u64) -> TraceRecord {
        record(time, pid, RecordEvent::StatRuntime { pid: Pid(pid), runtime_ns })
    }
    fn filled(records: Vec<TraceRecord>) -> (Vec<(u64, u32, u32)>, u64) {
        let recording = Recording { records, ..Recording::default() };
        let (records, n) = with_unseen_switches(&recording);
        let switches = records.iter().filter_map(|record| match record.event {
            RecordEvent::Switch { prev, next, .. } => Some((record.time.as_ns(), prev.0, next.0)),
            _ => None,
        });
        (switches.collect(), n.n)
    }

    #[test]
    fn coming_from_idle_is_placed_by_the_count_of_cpu_time() {
        let records = vec![
            switched(100, 9, RecordedState::Sleeping, 0),
            waking(200, 0, 9),
            runtime(250, 9, 30),
            switched(260, 9, RecordedState::Sleeping, 0),
        ];
        assert_eq!(filled(records), (vec![(100, 9, 0), (220, 0, 9), (260, 9, 0)], 1));
    }

    #[test]
    fn lag_of_written_switches_is_added_to_the_others() {
        let mut records = Vec::new();
        // Eight times: picked 20 before the switch is written.
        for n in 1..=8 {
            let t = n * 1000;
            records.extend([
                switched(t, 0, RecordedState::Runnable, 9),
                runtime(t + 80, 9, 100),
                switched(t + 90, 9, RecordedState::Sleeping, 0),
            ]);
        }
        records.extend([
            waking(9000, 0, 9),
            runtime(9080, 9, 75),
            switched(9090, 9, RecordedState::Sleeping, 0),
        ]);
        assert_eq!(filled(records).0[16], (9025, 0, 9));
    }

    #[test]
    fn coming_without_a_count_is_placed_at_the_wake_up() {
        let records = vec![
            switched(100, 9, RecordedState::Sleeping, 0),
            waking(200, 0, 9),
            switched(260, 9, RecordedState::Sleeping, 0),
        ];
        assert_eq!(filled(records).0[1], (200, 0, 9));
    }

    #[test]
    fn complete_recordings_stay_as_they_are() {
        let records = vec![
            switched(100, 9, RecordedState::Sleeping, 0),
            waking(200, 0, 9),
            switched(210, 0, RecordedState::Runnable, 9),
            runtime(250, 9, 40),
            switched(260, 9, RecordedState::Sleeping, 0),
        ];
        assert_eq!(filled(records).1, 0);
    }
}
