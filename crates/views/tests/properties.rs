// SPDX-License-Identifier: GPL-2.0-only
//! What holds for the views of any records, also of nonsense.

use proptest::prelude::*;
use schedlab_policy_api::{CommId, Pid, RecordContext, RecordEvent, RecordedState, TraceRecord};
use schedlab_trace::{Collect, Comms, ReadSummary, RecordSink, read_into};
use schedlab_units::{CpuId, Time};
use schedlab_views::{
    Latency, LatencyOptions, Map, MapOptions, Perf, Summary, SummaryMode, Timehist, TimehistOptions,
};

fn state() -> impl Strategy<Value = RecordedState> {
    prop_oneof![
        Just(RecordedState::Runnable),
        Just(RecordedState::Preempted),
        Just(RecordedState::Sleeping),
        Just(RecordedState::Uninterruptible),
        Just(RecordedState::Exited),
    ]
}

fn pid() -> impl Strategy<Value = Pid> {
    prop_oneof![9 => 0u32..5, 1 => Just(u32::MAX)].prop_map(Pid)
}

fn event() -> impl Strategy<Value = RecordEvent> {
    let (comm, prio) = (CommId(0), 120);
    let cpu = || (0u32..3).prop_map(CpuId);
    prop_oneof![
        4 => (pid(), state(), pid()).prop_map(move |(prev, prev_state, next)| {
            RecordEvent::Switch {
                prev, prev_comm: comm, prev_prio: prio, prev_state,
                next, next_comm: CommId(1), next_prio: prio,
            }
        }),
        2 => (pid(), cpu()).prop_map(move |(pid, target_cpu)| {
            RecordEvent::Waking { pid, comm, prio, target_cpu }
        }),
        1 => (pid(), cpu()).prop_map(move |(pid, target_cpu)| {
            RecordEvent::Wakeup { pid, comm, prio, target_cpu }
        }),
        1 => (pid(), cpu()).prop_map(move |(pid, target_cpu)| {
            RecordEvent::WakeupNew { pid, comm, prio, target_cpu }
        }),
        1 => (pid(), cpu(), cpu()).prop_map(move |(pid, orig_cpu, dest_cpu)| {
            RecordEvent::Migrate { pid, comm, prio, orig_cpu, dest_cpu }
        }),
        1 => (pid(), pid()).prop_map(move |(parent, child)| {
            RecordEvent::Fork { parent, parent_comm: comm, child, child_comm: comm }
        }),
        1 => pid().prop_map(|pid| RecordEvent::Exec { pid }),
        1 => pid().prop_map(move |pid| RecordEvent::Exit { pid, comm, prio }),
        1 => (pid(), any::<u64>()).prop_map(|(pid, runtime_ns)| {
            RecordEvent::StatRuntime { pid, runtime_ns }
        }),
        1 => any::<u64>().prop_map(|count| RecordEvent::Lost { count }),
    ]
}

fn record(time: impl Strategy<Value = u64>) -> impl Strategy<Value = TraceRecord> {
    (time, 0u32..3, pid(), event()).prop_map(|(ns, cpu, pid, event)| TraceRecord {
        time: Time::from_ns(ns),
        cpu: CpuId(cpu),
        pid,
        comm: CommId(0),
        context: RecordContext::Unknown,
        event,
    })
}

fn comms() -> Comms {
    let mut comms = Comms::default();
    comms.intern(b"one");
    comms.intern(b"two");
    comms
}

/// What a reader would have found; the figures of the views come from their records.
fn found(records: &[TraceRecord]) -> ReadSummary {
    let text: &[u8] = b"a-1 [002] 1.000000: sched_process_exit: comm=a pid=1 prio=120\n";
    let (mut found, _) = read_into(text, &mut Collect::new()).expect("a trace");
    let times = || records.iter().map(|record| record.time);
    found.span = times().min().zip(times().max());
    found
}

proptest! {
    #[test]
    fn views_of_any_records_end_without_a_panic(
        records in prop::collection::vec(record(any::<u64>()), 0..60),
        perf in prop_oneof![Just(Perf::V6_1), Just(Perf::V6_12)],
        idle in any::<bool>(),
        pids in any::<bool>(),
    ) {
        let comms = comms();
        let all = TimehistOptions {
            wakeups: true, migrations: true, next: true, visual_cpus: Some(3), idle, prio: true,
            state: pids, summary: SummaryMode::Both, perf, ..TimehistOptions::default()
        };
        let mut timehist = Timehist::new(all, Vec::new());
        let mut latency =
            Latency::new(LatencyOptions { pids, perf, one_cpu: idle, ..Default::default() });
        let mut map = Map::new(MapOptions { compact: idle, ..Default::default() }, Vec::new());
        let mut summary = Summary::new();
        for record in &records {
            timehist.record(record, &comms);
            latency.record(record, &comms);
            map.record(record, &comms);
            summary.record(record, &comms);
        }
        timehist.finish(&comms, 3).expect("memory");
        latency.finish(&comms, Vec::new()).expect("memory");
        map.finish().expect("memory");
        let found = found(&records);
        summary.text(&found, &comms, Vec::new()).expect("memory");
        summary.json(&found, &comms, Vec::new()).expect("memory");
    }

    #[test]
    fn busy_idle_and_unknown_time_of_a_cpu_fill_the_trace(
        mut records in prop::collection::vec(record(0u64..1_000_000), 1..60),
    ) {
        records.sort_by_key(|record| record.time);
        let comms = comms();
        let mut summary = Summary::new();
        for record in &records {
            summary.record(record, &comms);
        }
        let found = found(&records);
        let whole = found.span.map(|(first, last)| (last - first).as_ns());
        let json = summary.json(&found, &comms, Vec::new()).expect("memory");
        let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
        let number = |value: &serde_json::Value, key: &str| value[key].as_u64().expect("a number");
        let list = |key: &str| json[key].as_array().expect("a list").clone();
        for cpu in list("cpus") {
            let parts = ["busy_ns", "idle_ns", "unknown_ns"].map(|key| number(&cpu, key));
            prop_assert_eq!(Some(parts.iter().sum::<u64>()), whole);
        }
        let busy: u64 = list("cpus").iter().map(|cpu| number(cpu, "busy_ns")).sum();
        let run: u64 = list("tasks").iter().map(|task| number(task, "run_ns")).sum();
        prop_assert_eq!(busy, run);
    }
}
