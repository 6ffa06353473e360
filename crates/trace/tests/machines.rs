// SPDX-License-Identifier: GPL-2.0-only
//! Binary traces of machines that are not at hand: both orders of bytes, both sizes of words,
//! formats of old and new kernels. All tell of the same run.

#[path = "support/binary.rs"]
mod binary;
#[path = "support/compare.rs"]
mod compare;

use binary::{
    Machine, comm_record, compressed, lost_record, perf_data, perf_pipe, probe, run, samples,
    switch, trace_dat_6, trace_dat_7,
};
use compare::comparable;
use schedlab_policy_api::{RecordContext, RecordEvent, RecordedState};
use schedlab_trace::{Read, read};

fn load(bytes: &[u8], what: &str) -> Read {
    read(bytes).unwrap_or_else(|fault| panic!("{what}: {fault}"))
}

/// The run in every binary form.
fn forms(machine: Machine) -> Vec<(String, Vec<u8>)> {
    let events = run(machine);
    let mut records = machine.out();
    comm_record(&mut records, 11);
    comm_record(&mut records, 12);
    records.raw(&samples(machine, &events).bytes);
    [
        ("perf.data", perf_data(machine, &records.bytes)),
        ("compressed", perf_data(machine, &compressed(machine, &records.bytes).bytes)),
        ("pipe", perf_pipe(machine, &records.bytes)),
        ("version 6", trace_dat_6(machine, &events, None)),
        ("version 7", trace_dat_7(machine, &events, false, &[""])),
        ("version 7, zlib", trace_dat_7(machine, &events, true, &[""])),
    ]
    .map(|(form, bytes)| (format!("{form} of {machine:?}"), bytes))
    .to_vec()
}

#[test]
fn machines_of_every_kind_tell_the_same_run() {
    let mut expect: Option<Vec<String>> = None;
    for machine in Machine::ALL {
        for (what, bytes) in forms(machine) {
            let got = load(&bytes, &what);
            assert_eq!(got.summary.n_other(), 1, "{what}: the probe");
            // The idle thread has a name in one form only, and runs on the second CPU.
            let lines = comparable(&got.recording);
            let lines: Vec<String> =
                lines.into_iter().map(|l| l.replace("<idle>", "swapper")).collect();
            assert_eq!(expect.get_or_insert_with(|| lines.clone()), &lines, "{what}");
        }
    }
    insta::assert_snapshot!(expect.expect("some machine").join("\n"));
}

#[test]
fn machines_of_every_kind_tell_states_and_contexts() {
    for machine in Machine::ALL {
        for (what, bytes) in forms(machine) {
            let records = load(&bytes, &what).recording.records;
            let states: Vec<RecordedState> = records
                .iter()
                .filter_map(|r| match r.event {
                    RecordEvent::Switch { prev_state, next_prio, .. } => {
                        assert_eq!(next_prio, -1);
                        Some(prev_state)
                    }
                    _ => None,
                })
                .collect();
            use RecordedState::{Preempted, Runnable, Sleeping, Uninterruptible};
            assert_eq!(states, [Sleeping, Preempted, Runnable, Uninterruptible], "{what}");
            let contexts: Vec<RecordContext> = records
                .iter()
                .filter(|r| matches!(r.event, RecordEvent::Waking { .. }))
                .map(|r| r.context)
                .collect();
            use RecordContext::{Interrupt, Task, Unknown};
            assert_eq!(contexts, [Unknown, Interrupt, Task], "{what}");
        }
    }
}

#[test]
fn lost_events_of_pages_stand_before_what_follows() {
    for machine in Machine::ALL {
        let got = load(&trace_dat_6(machine, &run(machine), Some(17)), "version 6");
        let lost: Vec<usize> = got
            .recording
            .records
            .iter()
            .enumerate()
            .filter(|(_, r)| r.event == RecordEvent::Lost { count: 17 })
            .map(|(index, _)| index)
            .collect();
        // Three further pages of the first CPU; the probe took the loss before it.
        assert_eq!((got.summary.lost_events, lost.len()), (51, 3), "{}", got.summary);
    }
}

#[test]
fn lost_records_of_perf_are_counted_once() {
    let machine = Machine::ALL[0];
    let events = run(machine);
    let mut records = samples(machine, &events[..3]);
    lost_record(&mut records, 2, 0, events[3].time, 0, 5);
    records.raw(&samples(machine, &events[3..]).bytes);
    // Counted at the end: what was announced, and three that were not; a filter is no loss.
    lost_record(&mut records, 13, 0, 0, 0, 6);
    lost_record(&mut records, 13, 0, 0, 0, 2);
    lost_record(&mut records, 13, 1 << 15, 0, 0, 1000);
    let got = load(&perf_data(machine, &records.bytes), "perf.data");
    assert_eq!(got.summary.lost_events, 8);
    let lost: Vec<RecordEvent> = got.recording.records.iter().map(|r| r.event).collect();
    assert_eq!(lost[3], RecordEvent::Lost { count: 5 });
    assert_eq!(lost.last(), Some(&RecordEvent::Lost { count: 3 }));
}

#[test]
fn thread_without_id_is_told_by_its_own_event() {
    let machine = Machine::ALL[0];
    let mut events = vec![switch(machine, 1000, 0, 11, 16, 12)];
    events[0].pid = u32::MAX;
    events.push(probe(machine, 1001, 0, 12));
    let got = load(&perf_data(machine, &samples(machine, &events).bytes), "perf.data");
    assert_eq!(got.recording.records[0].pid.0, 11);
    assert_eq!(got.summary.unknown_contexts, 0);
}

#[test]
fn pipe_tells_its_origin() {
    let machine = Machine::ALL[2];
    let got = load(&perf_pipe(machine, &samples(machine, &run(machine)).bytes), "pipe");
    assert_eq!(got.summary.origin, "Linux 3.10.0");
}

#[test]
fn buffers_besides_the_top_one_are_named() {
    let machine = Machine::ALL[0];
    let got = load(&trace_dat_7(machine, &run(machine), false, &["", "mine"]), "two buffers");
    assert!(got.summary.origin.contains("1 further buffers"), "{}", got.summary.origin);
    let bytes = trace_dat_7(machine, &[], false, &["", "mine", "yours"]);
    let fault = read(&bytes[..]).expect_err("no events").to_string();
    assert!(fault.contains("mine, yours") && fault.contains("without -B"), "{fault}");
}

#[test]
fn format_without_a_field_is_a_fault_when_its_event_is_met() {
    let machine = Machine::ALL[0];
    let mut fork = probe(machine, 5, 0, 1);
    fork.payload[..2].copy_from_slice(&303u16.to_le_bytes());
    let mut events = run(machine);
    events.push(fork);
    let bytes = perf_data(machine, &samples(machine, &events).bytes);
    let fault = read(&bytes[..]).expect_err("a field is missing").to_string();
    assert!(fault.contains("sched_process_fork has no field `parent_comm`"), "{fault}");
    assert!(fault.starts_with("byte "), "{fault}");
}
