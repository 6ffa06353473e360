// SPDX-License-Identifier: GPL-2.0-only
//! Random streams of events that a simulation could emit, as far as formats care.

use proptest::prelude::*;
use schedlab_policy_api::{CpuMode, Observer, Overhead, PrevState, SchedClass, SchedEvent};
use schedlab_trace::slt::{SltHeader, SltWriter};
use schedlab_trace::{RecordSink, Recorder, TaskLabel};
use schedlab_units::{CpuId, Nice, TaskId, Time};

/// One step of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) now: Time,
    pub(crate) event: SchedEvent,
    /// Name, nice value, class and priority that the host gives a forked task.
    pub(crate) label: Option<(String, Nice, SchedClass, u8)>,
}

const CLASSES: [SchedClass; 6] = [
    SchedClass::Normal,
    SchedClass::Fifo,
    SchedClass::Rr,
    SchedClass::Batch,
    SchedClass::Idle,
    SchedClass::Iso,
];

/// A stream of up to `n` events; ids name only tasks that were forked.
pub(crate) fn streams(n: usize) -> impl Strategy<Value = Vec<Step>> {
    let name = "[a-z/:()>= \\-\\[\\]é中]{0,20}";
    let raw = (any::<u8>(), any::<[u32; 4]>(), prop_oneof![0u64..100, any::<u64>()], name);
    proptest::collection::vec(raw, 1..n).prop_map(|raws| {
        let mut n_slots = 0;
        let mut now = 0u64;
        raws.into_iter()
            .map(|(kind, [a, b, c, d], span, name)| {
                now += span % 10_000_000_000;
                let kind = if n_slots == 0 { 0 } else { kind };
                let (event, label) = event(kind, [a, b, c, d], span, &mut n_slots, name);
                Step { now: Time::from_ns(now), event, label }
            })
            .collect()
    })
}

type Label = (String, Nice, SchedClass, u8);

fn event(
    kind: u8,
    [a, b, c, d]: [u32; 4],
    span: u64,
    n_slots: &mut u32,
    name: String,
) -> (SchedEvent, Option<Label>) {
    let nice = Nice::clamped((b % 40) as i32 - 20);
    let class = CLASSES[(c % 6) as usize];
    let rt_priority = if class.is_rt() { (d % 99) as u8 + 1 } else { 0 };
    if kind.is_multiple_of(16) {
        let task = TaskId(a % (*n_slots + 1));
        let parent = (!b.is_multiple_of(3) && *n_slots > 0).then(|| TaskId(c % *n_slots));
        *n_slots = (*n_slots).max(task.0 + 1);
        let label = (!d.is_multiple_of(4)).then_some((name, nice, class, rt_priority));
        return (SchedEvent::ProcessFork { task, parent: parent.filter(|p| *p != task) }, label);
    }
    let task = TaskId(a % *n_slots);
    let some = |n: u32| (!n.is_multiple_of(3)).then(|| TaskId(n % *n_slots));
    let cpu = |n: u32| CpuId(n % 5);
    let event = match kind % 16 {
        1 => SchedEvent::WakeupNew { task, cpu: cpu(b) },
        2 | 3 => SchedEvent::Waking { task, waker: some(b), this_cpu: cpu(c), target: cpu(d) },
        4 => SchedEvent::Wakeup { task, cpu: cpu(b) },
        5..=7 => SchedEvent::Switch {
            cpu: cpu(a),
            prev: some(b),
            prev_state: [
                PrevState::Preempted,
                PrevState::Yielded,
                PrevState::Sleeping,
                PrevState::Uninterruptible,
                PrevState::Zombie,
            ][(c % 5) as usize],
            next: some(d),
        },
        8 => SchedEvent::MigrateTask { task, from: cpu(b), to: cpu(c) },
        9 => SchedEvent::NeedResched { cpu: cpu(b), by: cpu(c) },
        10 if b.is_multiple_of(2) => SchedEvent::Yield { task },
        10 => SchedEvent::ProcessExec { task },
        11 if b.is_multiple_of(2) => SchedEvent::ProcessExit { task, cpu: cpu(c) },
        11 => SchedEvent::ProcessFree { task },
        12 => SchedEvent::PrioChange { task, nice, class, rt_priority },
        13 => SchedEvent::CpuMode {
            cpu: cpu(a),
            mode: [
                CpuMode::Idle,
                CpuMode::Busy,
                CpuMode::Overhead(Overhead::Switch),
                CpuMode::Overhead(Overhead::Tick),
                CpuMode::Overhead(Overhead::Interrupt),
                CpuMode::Overhead(Overhead::Wakeup),
                CpuMode::Overhead(Overhead::IdleExit),
            ][(b % 7) as usize],
        },
        14 if b.is_multiple_of(2) => SchedEvent::MarkCount { task, mark: c, n: span },
        14 => SchedEvent::MarkLatency { task, mark: c, ns: span },
        _ => SchedEvent::Deadline { task, due: Time::from_ns(span) },
    };
    (event, None)
}

/// What all three consumers of a run have in common.
pub(crate) trait Sink: Observer {
    fn name_task(&mut self, task: TaskId, label: TaskLabel<'_>);
}
impl<S: RecordSink> Sink for Recorder<S> {
    fn name_task(&mut self, task: TaskId, label: TaskLabel<'_>) {
        Recorder::name_task(self, task, label);
    }
}
impl<W: std::io::Write> Sink for SltWriter<W> {
    fn name_task(&mut self, task: TaskId, label: TaskLabel<'_>) {
        SltWriter::name_task(self, task, label);
    }
}
/// Feeds a stream to a consumer as a host does.
pub(crate) fn feed(steps: &[Step], sink: &mut dyn Sink) {
    for step in steps {
        sink.event(step.now, &step.event);
        if let (SchedEvent::ProcessFork { task, .. }, Some((name, nice, class, rt_priority))) =
            (&step.event, &step.label)
        {
            let label = TaskLabel { name, nice: *nice, class: *class, rt_priority: *rt_priority };
            sink.name_task(*task, label);
        }
    }
}

/// The stream as a `.slt` file.
pub(crate) fn to_slt(steps: &[Step]) -> Vec<u8> {
    let mut header = SltHeader::new();
    header.push("policy", "eevdf@6.12");
    header.push("seed", "1");
    let mut writer = SltWriter::new(Vec::new(), &header);
    feed(steps, &mut writer);
    writer.finish().expect("a Vec takes any write")
}
