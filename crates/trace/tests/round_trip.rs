// SPDX-License-Identifier: GPL-2.0-only
//! What is written is read back: `.slt` exactly, ftrace text as far as tracepoints go.

#[path = "support/form.rs"]
mod form;
mod support;

use form::read_form;
use proptest::prelude::*;
use schedlab_policy_api::{
    CommId, Fingerprint, Observer, RecordEvent, Recording, SchedClass, SchedEvent, TraceRecord,
};
use schedlab_trace::slt::{SltReader, SltRecord, SltWriter};
use schedlab_trace::{Collect, Format, FtraceWriter, Recorder, TaskLabel, detect};
use schedlab_units::{CpuId, Nice, TaskId, Time};
use support::{Step, feed, streams, to_slt};

fn read_back(bytes: &[u8]) -> (Vec<SltRecord>, u64) {
    let mut reader = SltReader::open(bytes).expect("opens");
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().expect("whole") {
        records.push(record);
    }
    assert_eq!(reader.header().get("policy"), Some("eevdf@6.12"));
    (records, reader.fingerprint().value())
}

fn expected(steps: &[Step]) -> Vec<SltRecord> {
    let mut records = Vec::new();
    for step in steps {
        records.push(SltRecord::Event(step.now, step.event));
        if let (SchedEvent::ProcessFork { task, .. }, Some((name, nice, class, rt_priority))) =
            (&step.event, &step.label)
        {
            let (task, name) = (*task, name.clone());
            let (nice, class, rt_priority) = (*nice, *class, *rt_priority);
            records.push(SltRecord::Label { task, name, nice, class, rt_priority });
        }
    }
    records
}

/// The record with names in place of their ids.
fn named(recording: &Recording) -> Vec<String> {
    let name = |id: CommId| recording.comms[id.0 as usize].trim().to_string();
    recording
        .records
        .iter()
        .map(|record| {
            let names = match record.event {
                RecordEvent::Switch { prev_comm, next_comm, .. } => vec![prev_comm, next_comm],
                RecordEvent::Waking { comm, .. }
                | RecordEvent::Wakeup { comm, .. }
                | RecordEvent::WakeupNew { comm, .. }
                | RecordEvent::Migrate { comm, .. }
                | RecordEvent::Exit { comm, .. } => vec![comm],
                RecordEvent::Fork { parent_comm, child_comm, .. } => vec![parent_comm, child_comm],
                _ => vec![],
            };
            let names: Vec<_> = names.into_iter().map(name).collect();
            let context = name(record.comm);
            let TraceRecord { time, cpu, pid, context: ctx, event, .. } = *record;
            let event = without_ids(&format!("{event:?}"));
            format!("{time} {cpu} {pid:?} {context} {ctx:?} {names:?} {event}")
        })
        .collect()
}

fn without_ids(text: &str) -> String {
    text.split(", ").filter(|part| !part.contains("CommId(")).collect::<Vec<_>>().join(", ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn slt_holds_every_event_exactly(steps in streams(200)) {
        let bytes = to_slt(&steps);
        let (records, fingerprint) = read_back(&bytes);
        prop_assert_eq!(records, expected(&steps));
        let mut direct = Fingerprint::default();
        for step in &steps {
            direct.event(step.now, &step.event);
        }
        prop_assert_eq!(fingerprint, direct.value());
    }

    #[test]
    fn slt_cut_anywhere_is_noticed(steps in streams(30), at in any::<prop::sample::Index>()) {
        let bytes = to_slt(&steps);
        let cut = &bytes[..at.index(bytes.len())];
        let error = read_form(Format::Slt, cut).expect_err("cut");
        if cut.len() >= 8 {
            prop_assert!(error.message.contains(&format!("byte {}", cut.len())), "{}", error);
            prop_assert!(error.message.contains("ends in the middle"), "{}", error);
        }
    }

    #[test]
    fn slt_with_a_changed_byte_is_noticed(
        steps in streams(30),
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
    ) {
        let mut bytes = to_slt(&steps);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(read_form(Format::Slt, &bytes[..]).is_err());
    }

    #[test]
    fn ftrace_text_reads_back_as_the_recording_of_the_run(steps in streams(200)) {
        let mut builder = Recorder::new(Collect::new());
        feed(&steps, &mut builder);
        let direct = builder.into_recording();
        let mut writer = Recorder::new(FtraceWriter::new(Vec::new()));
        feed(&steps, &mut writer);
        let text = writer.finish().0.finish().expect("a Vec takes any write");
        prop_assert_eq!(detect(&text), Some(schedlab_trace::Format::FtraceText));
        if direct.records.is_empty() {
            prop_assert!(read_form(Format::FtraceText, &text[..]).is_err());
        } else {
            let read = read_form(Format::FtraceText, &text[..]).expect("own text");
            prop_assert_eq!(named(&read.recording), named(&direct));
            prop_assert_eq!(read.recording.n_cpus, direct.n_cpus);
            prop_assert_eq!(read.summary.n_other() + read.summary.extra_fields, 0);
        }
    }

    #[test]
    fn slt_read_as_recording_equals_the_direct_one(steps in streams(100)) {
        let mut builder = Recorder::new(Collect::new());
        feed(&steps, &mut builder);
        let direct = builder.into_recording();
        match read_form(Format::Slt, &to_slt(&steps)[..]) {
            Ok(read) => {
                prop_assert!(read.summary.origin.ends_with("eevdf@6.12 with seed 1"));
                prop_assert_eq!(read.summary.records, direct.records.len() as u64);
                prop_assert_eq!(read.recording, direct);
            }
            Err(_) => prop_assert!(direct.records.is_empty()),
        }
    }
}

/// Two tasks on two CPUs: fork, wake-ups by a task and by an interrupt, preemption, exit.
fn small_run() -> Vec<Step> {
    let (a, b) = (TaskId(0), TaskId(1));
    let (cpu0, cpu1) = (CpuId(0), CpuId(1));
    let label = |name: &str, nice| Some((name.to_string(), nice, SchedClass::Normal, 0));
    use schedlab_policy_api::PrevState;
    let at = |now: u64, event: SchedEvent| Step { now: Time::from_ns(now), event, label: None };
    let switch = |cpu, prev, prev_state, next| SchedEvent::Switch { cpu, prev, prev_state, next };
    vec![
        Step {
            now: Time::ZERO,
            event: SchedEvent::ProcessFork { task: a, parent: None },
            label: label("a long name of a task", Nice::ZERO),
        },
        at(0, SchedEvent::WakeupNew { task: a, cpu: cpu0 }),
        at(0, switch(cpu0, None, PrevState::Preempted, Some(a))),
        Step {
            now: Time::from_ns(1_000_000_007),
            event: SchedEvent::ProcessFork { task: b, parent: Some(a) },
            label: label("b", Nice::MAX),
        },
        at(1_000_000_007, SchedEvent::WakeupNew { task: b, cpu: cpu1 }),
        at(1_000_000_207, switch(cpu1, None, PrevState::Preempted, Some(b))),
        at(1_000_050_000, switch(cpu1, Some(b), PrevState::Sleeping, None)),
        at(
            1_000_060_001,
            SchedEvent::Waking { task: b, waker: Some(a), this_cpu: cpu0, target: cpu0 },
        ),
        at(1_000_060_001, SchedEvent::MigrateTask { task: b, from: cpu1, to: cpu0 }),
        at(1_000_060_001, SchedEvent::Wakeup { task: b, cpu: cpu0 }),
        at(1_000_060_002, switch(cpu0, Some(a), PrevState::Preempted, Some(b))),
        at(1_000_070_000, switch(cpu0, Some(b), PrevState::Uninterruptible, Some(a))),
        at(
            1_000_080_000,
            SchedEvent::Waking { task: b, waker: None, this_cpu: cpu0, target: cpu1 },
        ),
        at(1_000_080_000, SchedEvent::Wakeup { task: b, cpu: cpu1 }),
        at(1_000_090_000, SchedEvent::ProcessExit { task: a, cpu: cpu0 }),
        at(1_000_090_000, switch(cpu0, Some(a), PrevState::Zombie, None)),
        at(1_000_090_000, SchedEvent::ProcessFree { task: a }),
    ]
}

#[test]
fn ftrace_text_of_a_small_run() {
    let mut writer = Recorder::new(FtraceWriter::new(Vec::new()));
    feed(&small_run(), &mut writer);
    let text = writer.finish().0.finish().expect("a Vec takes any write");
    insta::assert_snapshot!(String::from_utf8(text).expect("UTF-8"));
}

#[test]
fn slt_is_compact() {
    let steps = small_run();
    let bytes = to_slt(&steps).len();
    // Two names and a header of 25 bytes included.
    assert!(bytes < 200, "{bytes} bytes for {} events", steps.len());
}

/// Pins version 1: a change of any byte needs a new version.
#[test]
fn slt_bytes_of_version_1() {
    let hex: String = to_slt(&small_run())
        .chunks(16)
        .map(|row| row.iter().map(|b| format!("{b:02x} ")).collect::<String>() + "\n")
        .collect();
    insta::assert_snapshot!(hex);
}

#[test]
fn output_that_fails_is_reported_once_at_the_end() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0 == 0 {
                return Err(std::io::Error::other("no space left"));
            }
            let n = bytes.len().min(self.0);
            self.0 -= n;
            Ok(n)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let many: Vec<Step> = std::iter::repeat_n(small_run(), 2000)
        .flatten()
        .map(|mut step| {
            step.now = Time::ZERO;
            step
        })
        .collect();
    let mut writer = Recorder::new(FtraceWriter::new(Full(100_000)));
    feed(&many, &mut writer);
    let error = writer.finish().0.finish().err().expect("the output is full");
    assert!(error.to_string().contains("no space left"));
    let mut writer = SltWriter::new(Full(10), &Default::default());
    feed(&many, &mut writer);
    assert!(writer.finish().is_err());
}

#[test]
fn slt_of_another_kind_or_version_is_explained() {
    let whole = to_slt(&small_run());
    let fault = |bytes: &[u8]| read_form(Format::Slt, bytes).expect_err("not readable").to_string();
    assert!(fault(b"").contains("empty"));
    assert!(fault(b"# tracer: nop\n").contains("no .slt file"));
    let mut newer = whole.clone();
    newer[8] = 2;
    assert!(fault(&newer).contains("version 2"), "{}", fault(&newer));
    let text_mode: Vec<u8> = {
        let at = whole.windows(2).position(|w| w == b"\r\n").expect("in the magic");
        let mut bytes = whole.clone();
        bytes.remove(at);
        bytes
    };
    assert!(fault(&text_mode).contains("line ends"), "{}", fault(&text_mode));
    let mut longer = whole.clone();
    longer.push(0);
    assert!(fault(&longer).contains("more bytes follow"), "{}", fault(&longer));
}

#[test]
fn slt_name_too_long_is_cut() {
    let mut writer = SltWriter::new(Vec::new(), &Default::default());
    writer.event(Time::ZERO, &SchedEvent::ProcessFork { task: TaskId(0), parent: None });
    let label = TaskLabel {
        name: &"é".repeat(5000),
        nice: Nice::ZERO,
        class: SchedClass::Normal,
        rt_priority: 0,
    };
    writer.name_task(TaskId(0), label);
    let bytes = writer.finish().expect("a Vec takes any write");
    let mut reader = SltReader::open(&bytes[..]).expect("opens");
    reader.next_record().expect("fork");
    match reader.next_record() {
        Ok(Some(SltRecord::Label { name, .. })) => assert_eq!(name.len(), 4096),
        other => panic!("{other:?}"),
    }
    assert_eq!(reader.next_record(), Ok(None));
}
