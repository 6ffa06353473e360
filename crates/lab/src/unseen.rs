// SPDX-License-Identifier: GPL-2.0-only
//! Switches that a kernel did not write although they took place.
//!
//! Some kernels leave out switches away from the idle task (decision 0287). Every record says which
//! thread was current where it was made, so a thread that is current without having come has come
//! unseen. When, its first `sched_stat_runtime` after that tells: it counts from the coming.

use schedlab_policy_api::{Pid, RecordEvent, RecordedState, Recording, TraceRecord};
use schedlab_trace::UNKNOWN_PID;
use schedlab_units::{Nanos, Time};

/// The records of `recording` with those switches put in, in order of time, and how many there are.
pub(crate) fn with_unseen_switches(recording: &Recording) -> (Vec<TraceRecord>, u64) {
    let records = &recording.records;
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
            let came = coming(records, at).clamp(earliest.min(record.time), record.time);
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
    (all, n)
}

/// When the thread of record `at` came to its CPU, by its first count of CPU time from then on; the
/// beginning of time where there is none.
fn coming(records: &[TraceRecord], at: usize) -> Time {
    let TraceRecord { cpu, pid, .. } = records[at];
    for record in records[at..].iter().filter(|record| record.cpu == cpu) {
        match record.event {
            RecordEvent::StatRuntime { pid: who, runtime_ns } if who == pid => {
                return Time::ZERO
                    + (record.time - Time::ZERO).saturating_sub(Nanos::from_ns(runtime_ns));
            }
            RecordEvent::Switch { .. } => break,
            _ => {}
        }
    }
    Time::ZERO
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
        (switches.collect(), n)
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
