// SPDX-License-Identifier: GPL-2.0-only
//! The rules of the import, one by one, on recordings of a few records.

mod support;

use proptest::prelude::*;
use schedlab_policy_api::{
    CommId, Pid, RecordContext, RecordEvent, RecordedState, Recording, SchedClass, TraceRecord,
};
use schedlab_units::{CpuId, Nanos, Rng, Time};
use schedlab_workload::ir::{Dist, Op, ProcessSpec, TaskSpec};
use schedlab_workload::replay::{ImportOptions, Imported, import};
use schedlab_workload::validate;
use support::executor::execute;

use RecordedState::{Exited, Preempted, Runnable, Sleeping, Uninterruptible};

/// A recording under construction; CPU 0 unless said otherwise, times in ns.
#[derive(Default)]
struct Tape {
    recording: Recording,
    /// Whether records tell interrupts from threads.
    tells_context: bool,
}

impl Tape {
    fn new() -> Self {
        let mut tape = Self::default();
        tape.recording.n_cpus = 1;
        tape
    }
    fn comm(&mut self, name: &str) -> CommId {
        let comms = &mut self.recording.comms;
        let index = comms.iter().position(|c| c == name).unwrap_or_else(|| {
            comms.push(name.to_string());
            comms.len() - 1
        });
        CommId(index as u32)
    }
    fn name(&mut self, pid: u32) -> CommId {
        self.comm(&if pid == 0 { "swapper".to_string() } else { format!("t{pid}") })
    }
    fn put(&mut self, time: u64, cpu: u32, context: u32, event: RecordEvent) -> &mut Self {
        let comm = self.name(context);
        self.recording.n_cpus = self.recording.n_cpus.max(cpu + 1);
        self.recording.records.push(TraceRecord {
            time: Time::from_ns(time),
            cpu: CpuId(cpu),
            pid: Pid(context),
            comm,
            context: match self.tells_context {
                true if context == 0 => RecordContext::Interrupt,
                true => RecordContext::Task,
                false => RecordContext::Unknown,
            },
            event,
        });
        self
    }
    fn switch_on(
        &mut self,
        cpu: u32,
        time: u64,
        prev: u32,
        prev_state: RecordedState,
        next: u32,
    ) -> &mut Self {
        let (prev_comm, next_comm) = (self.name(prev), self.name(next));
        let event = RecordEvent::Switch {
            prev: Pid(prev),
            prev_comm,
            prev_prio: 120,
            prev_state,
            next: Pid(next),
            next_comm,
            next_prio: 120,
        };
        self.put(time, cpu, prev, event)
    }
    fn switch(&mut self, time: u64, prev: u32, state: RecordedState, next: u32) -> &mut Self {
        self.switch_on(0, time, prev, state, next)
    }
    fn waking_on(&mut self, cpu: u32, time: u64, waker: u32, pid: u32) -> &mut Self {
        let (comm, target_cpu) = (self.name(pid), CpuId(cpu));
        self.put(
            time,
            cpu,
            waker,
            RecordEvent::Waking { pid: Pid(pid), comm, prio: 120, target_cpu },
        )
    }
    fn waking(&mut self, time: u64, waker: u32, pid: u32) -> &mut Self {
        self.waking_on(0, time, waker, pid)
    }
    fn stat(&mut self, time: u64, pid: u32, runtime_ns: u64) -> &mut Self {
        self.put(time, 0, pid, RecordEvent::StatRuntime { pid: Pid(pid), runtime_ns })
    }
    fn fork(&mut self, time: u64, parent: u32, child: u32) -> &mut Self {
        let (parent_comm, child_comm) = (self.name(parent), self.name(child));
        let event =
            RecordEvent::Fork { parent: Pid(parent), parent_comm, child: Pid(child), child_comm };
        self.put(time, 0, parent, event);
        let comm = self.name(child);
        let new = RecordEvent::WakeupNew { pid: Pid(child), comm, prio: 120, target_cpu: CpuId(0) };
        self.put(time, 0, parent, new)
    }
    fn import(&self) -> Imported {
        self.import_with(&ImportOptions::default())
    }
    fn import_with(&self, options: &ImportOptions) -> Imported {
        let imported = import(&self.recording, options).expect("importable");
        assert_eq!(validate(&imported.workload), Ok(()));
        imported
    }
}

fn task(imported: &Imported, pid: u32) -> &TaskSpec {
    let ending = format!(":{pid}");
    imported
        .workload
        .tasks
        .iter()
        .find(|t| t.name.ends_with(&ending))
        .unwrap_or_else(|| panic!("no task {pid}"))
}

/// The program of thread `pid`, one word per operation.
fn program(imported: &Imported, pid: u32) -> String {
    let workload = &imported.workload;
    let semaphore = |id: schedlab_workload::ir::ObjectId| {
        workload.objects.semaphores[id.0 as usize].name.replace(['t', ':'], "")
    };
    let ops = &workload.programs[task(imported, pid).program.0 as usize].ops;
    let words: Vec<String> = ops
        .iter()
        .map(|op| match op {
            Op::Run(Dist::Const(ns)) => format!("run {ns}"),
            Op::Sleep(Dist::Const(ns)) => format!("sleep {ns}"),
            Op::Disk(Dist::Const(ns)) => format!("disk {ns}"),
            Op::SemWait(id) => format!("wait {}", semaphore(*id)),
            Op::SemPost(id) => format!("post {}", semaphore(*id)),
            Op::Fork { template, thread } => {
                let name = &workload.tasks[template.0 as usize].name;
                format!("fork {name}{}", if *thread { " thread" } else { "" })
            }
            Op::SetSched(sched) => format!("nice {} {:?}", sched.nice, sched.class),
            Op::Exec => "exec".to_string(),
            Op::Exit => "exit".to_string(),
            other => format!("{other:?}"),
        })
        .collect();
    words.join(", ")
}

#[test]
fn sleep_ended_by_a_thread_waits_for_its_post() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1)
        .switch(100, 1, Sleeping, 2)
        .waking(130, 2, 1)
        .switch(150, 2, Preempted, 1)
        .switch(190, 1, Exited, 2)
        .switch(200, 2, Exited, 0);
    let got = tape.import();
    assert_eq!(program(&got, 1), "run 100, wait 22>11, run 40, exit");
    assert_eq!(program(&got, 2), "run 30, post 22>11, run 30, exit");
    assert_eq!((got.summary.wakes.by_task, got.summary.n_pairs), (1, 1));
    assert_eq!(got.summary.notes, Vec::<String>::new());
}

#[test]
fn sleep_ended_on_an_idle_cpu_keeps_its_length() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1)
        .switch(100, 1, Sleeping, 0)
        .waking(350, 0, 1)
        .switch(360, 0, Runnable, 1)
        .switch(400, 1, Uninterruptible, 0)
        .waking(475, 0, 1)
        .switch(480, 0, Runnable, 1)
        .switch(500, 1, Exited, 0);
    let got = tape.import();
    assert_eq!(program(&got, 1), "run 100, sleep 250, run 40, disk 75, run 20, exit");
    assert_eq!((got.summary.wakes.by_interrupt, got.summary.wakes.by_device), (1, 1));
}

#[test]
fn sleep_ended_by_an_interrupt_on_a_busy_cpu_keeps_its_length_where_the_trace_tells() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1).switch(100, 1, Sleeping, 2).waking(130, 2, 1);
    tape.recording.records[2].context = RecordContext::Interrupt;
    tape.switch(150, 2, Preempted, 1).switch(190, 1, Exited, 2);
    let got = tape.import();
    assert_eq!(program(&got, 1), "run 100, sleep 30, run 40, exit");
    assert_eq!(program(&got, 2), "run 50");
}

#[test]
fn uninterruptible_sleep_waits_for_a_child_but_for_no_stranger() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1)
        .fork(10, 1, 2)
        .switch(20, 1, Uninterruptible, 2)
        .waking(50, 2, 1)
        .switch(60, 2, Exited, 1)
        .switch(70, 1, Uninterruptible, 3)
        .waking(95, 3, 1)
        .switch(99, 3, Exited, 1);
    let got = tape.import();
    assert_eq!(program(&got, 1), "run 10, fork t2:2, run 10, wait 22>11, run 10, disk 25");
    assert_eq!(program(&got, 2), "run 30, post 22>11, run 10, exit");
    assert_eq!(program(&got, 3), "run 29, exit");
    assert_eq!(got.summary.wakes.uninterruptible_by_task, 1);
    // Where the trace says that it was the stranger itself, it is believed.
    for record in &mut tape.recording.records {
        record.context = RecordContext::Task;
    }
    assert_eq!(
        program(&tape.import(), 1),
        "run 10, fork t2:2, run 10, wait 22>11, run 10, wait 33>11"
    );
}

#[test]
fn waking_before_the_sleep_becomes_a_wait_at_that_point() {
    let mut tape = Tape::new();
    tape.switch_on(0, 0, 0, Runnable, 1).switch_on(1, 0, 0, Runnable, 2);
    // Thread 1 has set its state but still runs.
    tape.waking_on(1, 80, 2, 1);
    // It goes to sleep all the same and comes back without another wake-up.
    tape.switch(100, 1, Sleeping, 0).switch(105, 0, Runnable, 1).switch(200, 1, Exited, 0);
    let got = tape.import();
    assert_eq!(program(&got, 1), "run 80, wait 22>11, run 115, exit");
    assert_eq!(got.summary.wakes.early, 1);
    assert_eq!(got.summary.wakes.unseen, 0);
}

#[test]
fn waking_by_an_interrupt_before_the_sleep_replays_no_sleep() {
    let mut tape = Tape::new();
    tape.switch_on(0, 0, 0, Runnable, 1);
    tape.switch_on(1, 0, 0, Runnable, 2).switch_on(1, 10, 2, Exited, 0);
    tape.waking_on(1, 80, 0, 1);
    tape.switch(100, 1, Sleeping, 0).switch(105, 0, Runnable, 1).switch(200, 1, Exited, 0);
    let got = tape.import();
    assert_eq!(program(&got, 1), "run 195, exit");
    assert!(got.summary.notes.iter().any(|n| n.contains("came before their sleep")));
}

#[test]
fn waking_before_an_uninterruptible_sleep_is_a_device() {
    let mut tape = Tape::new();
    tape.switch_on(0, 0, 0, Runnable, 1).switch_on(1, 0, 0, Runnable, 2);
    tape.waking_on(1, 80, 2, 1);
    tape.switch(100, 1, Uninterruptible, 0).switch(105, 0, Runnable, 1).switch(200, 1, Exited, 0);
    assert_eq!(program(&tape.import(), 1), "run 195, exit");
}

#[test]
fn waking_of_a_preempted_thread_is_early_too() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1)
        .switch(50, 1, Preempted, 2)
        .waking(60, 2, 1)
        .switch(70, 2, Exited, 1)
        .switch(90, 1, Exited, 0);
    assert_eq!(program(&tape.import(), 1), "run 50, wait 22>11, run 20, exit");
}

#[test]
fn waking_in_its_own_context_is_ignored() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1).waking(40, 1, 1).switch(90, 1, Exited, 0);
    let got = tape.import();
    assert_eq!(program(&got, 1), "run 90, exit");
    assert!(got.summary.notes.iter().any(|n| n.contains("about to sleep")));
}

#[test]
fn wake_up_that_was_not_recorded_lasts_until_the_thread_runs() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1).switch(50, 1, Sleeping, 0).switch(80, 0, Runnable, 1);
    tape.switch(90, 1, Exited, 0);
    let got = tape.import();
    assert_eq!(program(&got, 1), "run 50, sleep 30, run 10, exit");
    assert_eq!(got.summary.wakes.unseen, 1);
    assert!(got.summary.notes[0].contains("1 wake-ups were not recorded"));
}

#[test]
fn cpu_time_comes_from_stat_runtime_where_it_exists() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1)
        .stat(90, 1, 40)
        .switch(100, 1, Sleeping, 2)
        .waking(120, 2, 1)
        .switch(150, 2, Runnable, 1)
        .switch(175, 1, Exited, 0);
    let got = tape.import();
    // The last stretch has no such record and counts with its length.
    assert_eq!(program(&got, 1), "run 40, wait 22>11, run 25, exit");
    let thread = &got.summary.threads[0];
    assert_eq!((thread.by_stat, thread.by_span), (Nanos::from_ns(40), Nanos::from_ns(25)));
}

#[test]
fn filtered_recording_shows_gaps_as_unknown() {
    // Switches are recorded only where thread 1 is on one side.
    let mut tape = Tape::new();
    tape.switch(0, 9, Runnable, 1)
        .switch(100, 1, Runnable, 7)
        .switch(160, 8, Runnable, 1)
        .switch(200, 1, Runnable, 7)
        .switch(240, 7, Runnable, 1)
        .switch(300, 1, Exited, 0);
    let got = tape.import();
    assert!(got.summary.filtered);
    assert_eq!(program(&got, 1), "run 200, exit");
    // Thread 7 came at 100 and left at some time before 160.
    assert_eq!(program(&got, 7), "sleep 100, run 40");
    let seven = got.summary.threads.iter().find(|t| t.pid == 7).expect("thread 7");
    assert_eq!((seven.n_gaps, seven.gaps), (1, Nanos::from_ns(100)));
    assert_eq!(seven.assumed, Nanos::from_ns(40));
    assert_eq!(got.summary.unknown_cpu, [(1, Nanos::from_ns(60))]);
    assert_eq!(got.summary.dropped.nothing_known, 2);
    let notes = got.summary.notes.join("\n");
    for word in ["filtered", "t7:7: 1 unknown periods", "not known what ran on a CPU"] {
        assert!(notes.contains(word), "{word}: {notes}");
    }
    assert_eq!(got.workload.notes, got.summary.notes);
}

#[test]
fn lost_events_make_what_follows_unknown() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1);
    tape.put(100, 0, 1, RecordEvent::Lost { count: 5 });
    tape.switch(300, 2, Sleeping, 1).switch(350, 1, Exited, 0);
    let got = tape.import();
    assert!(!got.summary.filtered);
    assert_eq!(got.summary.losses, 1);
    assert_eq!(program(&got, 1), "sleep 300, run 50, exit");
    assert!(got.summary.notes.iter().any(|n| n.contains("lost")));
}

#[test]
fn thread_running_when_the_recording_begins_ran_from_its_beginning() {
    let mut tape = Tape::new();
    tape.switch_on(1, 1000, 0, Runnable, 2);
    tape.switch(1100, 1, Exited, 0);
    let got = tape.import();
    assert_eq!(program(&got, 1), "run 100, exit");
    assert_eq!(task(&got, 1).start, Nanos::ZERO);
    // What it did before the recording is not known, and nothing is claimed of it.
    assert_eq!(got.summary.threads[1].at_least, Nanos::from_ns(100));
}

#[test]
fn thread_of_unknown_past_starts_when_it_could_run() {
    let mut tape = Tape::new();
    tape.switch(1000, 0, Runnable, 1)
        // Woken by thread 1: waits for it.
        .waking(1100, 1, 2)
        .switch(1200, 1, Runnable, 2)
        .switch(1250, 2, Sleeping, 0)
        // Woken by an interrupt: starts then.
        .waking(1300, 0, 3)
        .switch(1310, 0, Runnable, 3)
        // Not woken at all: it was waiting for a CPU from the beginning.
        .switch(1400, 3, Sleeping, 4)
        .switch(1500, 4, Sleeping, 0);
    let got = tape.import();
    let starts: Vec<u64> = [1, 2, 3, 4].map(|pid| task(&got, pid).start.as_ns()).to_vec();
    assert_eq!(starts, [0, 0, 300, 0]);
    assert_eq!(program(&got, 2), "wait 11>22, run 50");
    assert_eq!(program(&got, 3), "run 90");
}

#[test]
fn thread_without_wake_ups_in_the_recording_starts_when_it_was_seen() {
    let mut tape = Tape::new();
    tape.switch(1000, 0, Runnable, 1).switch(1100, 1, Runnable, 2).switch(1200, 2, Runnable, 1);
    let got = tape.import();
    assert_eq!(task(&got, 2).start, Nanos::from_ns(100));
}

#[test]
fn wakeup_stands_in_for_waking_on_old_kernels_only() {
    let mut tape = Tape::new();
    let wakeup = |tape: &mut Tape, time, waker, pid| {
        let (comm, target_cpu) = (tape.name(pid), CpuId(0));
        let event = RecordEvent::Wakeup { pid: Pid(pid), comm, prio: 120, target_cpu };
        tape.put(time, 0, waker, event);
    };
    tape.switch(0, 0, Runnable, 1).switch(100, 1, Sleeping, 2);
    wakeup(&mut tape, 130, 2, 1);
    tape.switch(150, 2, Preempted, 1);
    assert_eq!(program(&tape.import(), 2), "run 30, post 22>11, run 20");
    // With sched_waking recorded, the wakeup alone shows only when the sleep ended.
    tape.waking(160, 1, 3);
    let got = tape.import();
    assert_eq!(program(&got, 2), "run 50");
    assert_eq!(program(&got, 1), "run 100, sleep 30, run 10");
}

#[test]
fn fork_exec_and_process_are_kept() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1).fork(10, 1, 2).fork(20, 1, 3).switch(50, 1, Exited, 2);
    let shell = tape.comm("shell");
    tape.put(60, 0, 2, RecordEvent::Exec { pid: Pid(2) });
    let last = tape.recording.records.len() - 1;
    tape.recording.records[last].comm = shell;
    tape.switch(70, 2, Exited, 3).switch(80, 3, Exited, 0);
    tape.recording.records[last + 1].comm = shell;
    if let RecordEvent::Switch { prev_comm, .. } = &mut tape.recording.records[last + 1].event {
        *prev_comm = shell;
    }
    tape.recording.tgids = vec![(Pid(1), Pid(1)), (Pid(2), Pid(2)), (Pid(3), Pid(1))];
    let got = tape.import();
    assert_eq!(program(&got, 1), "run 10, fork shell:2, run 10, fork t3:3 thread, run 30, exit");
    assert_eq!(program(&got, 2), "run 10, exec, run 10, exit");
    assert!(!task(&got, 2).at_start && task(&got, 1).at_start);
    assert_eq!(task(&got, 2).process, ProcessSpec::Own);
    assert_eq!(task(&got, 3).process, ProcessSpec::Thread("process:1".to_string()));
    assert_eq!(task(&got, 2).group, "shell");
}

#[test]
fn threads_of_one_process_at_the_start_share_it() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1).switch(10, 1, Runnable, 2).switch(20, 2, Runnable, 3);
    tape.switch(30, 3, Exited, 0);
    tape.recording.tgids = vec![(Pid(1), Pid(1)), (Pid(2), Pid(1)), (Pid(3), Pid(3))];
    let got = tape.import();
    let shared = ProcessSpec::Thread("process:1".to_string());
    assert_eq!([&task(&got, 1).process, &task(&got, 2).process], [&shared, &shared]);
    assert_eq!(task(&got, 3).process, ProcessSpec::Own);
}

#[test]
fn pid_used_again_is_another_thread() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1)
        .fork(10, 1, 2)
        .switch(20, 1, Runnable, 2)
        .switch(30, 2, Exited, 1)
        .fork(40, 1, 2)
        .switch(50, 1, Exited, 2)
        .switch(75, 2, Exited, 0);
    let got = tape.import();
    let names: Vec<&str> = got.workload.tasks.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["t1:1", "t2:2", "t2:2.2"]);
    assert_eq!(program(&got, 1), "run 10, fork t2:2, run 20, fork t2:2.2, run 10, exit");
    assert_eq!(got.summary.threads[2].cpu_time, Nanos::from_ns(25));
}

#[test]
fn priorities_become_nice_values_and_classes() {
    let with_prio = |prio: i32| {
        let mut tape = Tape::new();
        tape.switch(0, 0, Runnable, 1).switch(10, 1, Exited, 0);
        for record in &mut tape.recording.records {
            if let RecordEvent::Switch { prev, prev_prio, next, next_prio, .. } = &mut record.event
            {
                if prev.0 == 1 {
                    *prev_prio = prio;
                }
                if next.0 == 1 {
                    *next_prio = prio;
                }
            }
        }
        let got = tape.import();
        let sched = task(&got, 1).sched.expect("set");
        (sched.class, sched.nice.get(), sched.rt_priority, got.summary.notes.join(";"))
    };
    for (prio, class, nice, rt, note) in [
        (120, SchedClass::Normal, 0, 0, ""),
        (100, SchedClass::Normal, -20, 0, ""),
        (139, SchedClass::Normal, 19, 0, ""),
        (98, SchedClass::Fifo, 0, 1, "FIFO from RR"),
        (0, SchedClass::Fifo, 0, 99, "FIFO from RR"),
        (-1, SchedClass::Fifo, 0, 99, "deadline"),
        (99, SchedClass::Normal, 0, 0, "outside"),
        (140, SchedClass::Normal, 0, 0, "outside"),
    ] {
        let got = with_prio(prio);
        assert_eq!((got.0, got.1, got.2), (class, nice, rt), "prio {prio}");
        assert!(got.3.contains(note) && (note.is_empty() == got.3.is_empty()), "{prio}: {}", got.3);
    }
}

#[test]
fn priority_change_is_applied_where_it_is_first_seen() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1).switch(40, 1, Sleeping, 0).waking(60, 0, 1);
    tape.switch(70, 0, Runnable, 1).switch(90, 1, Exited, 0);
    if let RecordEvent::Switch { prev_prio, .. } = &mut tape.recording.records[1].event {
        *prev_prio = 125;
    }
    if let RecordEvent::Waking { prio, .. } = &mut tape.recording.records[2].event {
        *prio = 125;
    }
    assert_eq!(
        program(&tape.import(), 1),
        "run 40, nice 5 Normal, sleep 20, nice 0 Normal, run 20, exit"
    );
}

#[test]
fn thread_busy_or_asleep_at_the_end_stops_there() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1).switch(50, 1, Sleeping, 2).waking(80, 2, 3);
    let got = tape.import();
    assert_eq!(program(&got, 1), "run 50");
    assert_eq!(program(&got, 2), "run 30");
    assert_eq!(got.summary.dropped.nothing_known, 1);
    assert_eq!(got.workload.duration, None);
}

#[test]
fn post_to_a_thread_that_is_left_out_vanishes_with_it() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1)
        .switch(100, 1, Sleeping, 2)
        .waking(130, 2, 1)
        .switch(150, 2, Preempted, 1)
        .switch(190, 1, Exited, 0);
    let only = |name: &str| ImportOptions { only: Some(name.into()), ..ImportOptions::default() };
    let got = tape.import_with(&only("t1"));
    assert_eq!(program(&got, 1), "run 100, sleep 30, run 40, exit");
    assert_eq!((got.summary.wakes.by_dropped, got.summary.dropped.not_asked), (1, 1));
    let got = tape.import_with(&only("t2"));
    assert_eq!(program(&got, 2), "run 50");
    let error = import(&tape.recording, &only("t9")).expect_err("no such thread");
    assert!(error.message.contains("`t9`"), "{error}");
}

#[test]
fn tree_of_a_command_is_kept_whole() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1).fork(10, 1, 2).switch(20, 1, Runnable, 2).fork(30, 2, 3);
    tape.switch(40, 2, Exited, 3).switch(50, 3, Exited, 1).switch(60, 1, Exited, 4);
    tape.switch(70, 4, Exited, 0);
    let options = ImportOptions { only: Some("t2".into()), ..ImportOptions::default() };
    let got = tape.import_with(&options);
    let names: Vec<&str> = got.workload.tasks.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["t2:2", "t3:3"]);
    // Nobody is left to fork it.
    assert!(task(&got, 2).at_start);
    assert_eq!(task(&got, 2).start, Nanos::from_ns(10));
}

#[test]
fn kernel_threads_and_the_recorder_can_be_left_out() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1).switch(10, 1, Runnable, 2).switch(20, 2, Runnable, 3);
    tape.switch(30, 3, Exited, 0);
    tape.recording.comms = ["swapper", "kworker/0:1", "perf", "work"].map(String::from).to_vec();
    let options =
        ImportOptions { kernel_threads: false, recorder: false, ..ImportOptions::default() };
    let got = tape.import_with(&options);
    assert_eq!(got.workload.tasks.len(), 1);
    assert_eq!((got.summary.dropped.kernel, got.summary.dropped.recorder), (1, 1));
    let all = tape.import();
    assert_eq!(task(&all, 1).process, ProcessSpec::Kernel);
}

/// A timer thread beside a busy loop: woken every 2000 µs while the loop runs on its CPU.
fn timer_beside_a_hog(jitter: u64, answers: bool) -> Tape {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1);
    let mut now = 0;
    for round in 0..20u64 {
        now += 20_000;
        if answers {
            tape.waking(now - 5_000, 1, 2);
        }
        tape.switch(now, 1, Sleeping, 2);
        now += 1_980_000 + (round % 5) * jitter;
        tape.waking(now, 2, 1);
        now += 1_000;
        tape.switch(now, 2, if answers { Sleeping } else { Preempted }, 1);
    }
    tape
}

#[test]
fn timer_beside_a_busy_loop_is_recognised_by_regularity() {
    let got = timer_beside_a_hog(20_000, false).import();
    assert_eq!(got.summary.wakes.by_timer, 20);
    assert_eq!(got.summary.wakes.by_task, 0);
    assert!(program(&got, 1).starts_with("run 20000, sleep 1980000, run 20000"));
    assert!(!program(&got, 2).contains("post"));
    assert!(got.summary.notes.iter().any(|n| n.contains("regularity")));
}

#[test]
fn irregular_or_answered_wake_ups_are_no_timers() {
    let irregular = timer_beside_a_hog(400_000, false).import();
    assert_eq!(irregular.summary.wakes.by_task, 20);
    let partner = timer_beside_a_hog(20_000, true).import();
    assert_eq!(partner.summary.wakes.by_timer, 0);
    let options = ImportOptions { detect_timers: false, ..ImportOptions::default() };
    let believed = timer_beside_a_hog(20_000, false).import_with(&options);
    assert_eq!(believed.summary.wakes.by_task, 20);
    // Where the trace tells contexts apart, nothing is guessed.
    let mut tape = timer_beside_a_hog(20_000, false);
    for record in &mut tape.recording.records {
        record.context = RecordContext::Task;
    }
    assert_eq!(tape.import().summary.wakes.by_task, 20);
}

#[test]
fn housekeeping_threads_are_woken_by_interrupts() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1)
        .switch(100, 1, Sleeping, 2)
        .waking(130, 2, 1)
        .switch(150, 2, Preempted, 1);
    tape.recording.comms = ["swapper", "ksoftirqd/0", "work"].map(String::from).to_vec();
    let got = tape.import();
    assert_eq!(got.summary.wakes.housekeeping, 1);
    assert_eq!(program(&got, 1), "run 100, sleep 30");
}

#[test]
fn names_that_say_unknown_are_not_taken() {
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1).switch(10, 1, Exited, 0);
    tape.recording.comms = ["swapper", "<...>"].map(String::from).to_vec();
    let got = tape.import();
    assert_eq!(got.workload.tasks[0].name, "thread:1");
    assert_eq!(got.workload.tasks[0].group, "thread");
}

#[test]
fn recording_without_content_is_refused() {
    let options = ImportOptions::default();
    let error = import(&Recording::default(), &options).expect_err("empty");
    assert!(error.message.contains("empty"));
    let mut tape = Tape::new();
    tape.waking(0, 0, 1);
    let error = import(&tape.recording, &options).expect_err("nobody runs");
    assert!(error.message.contains("no thread at work"), "{error}");
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1).stat(5, 1, u64::MAX).stat(6, 1, u64::MAX);
    assert!(import(&tape.recording, &options).is_err());
    let mut tape = Tape::new();
    tape.switch(0, 0, Runnable, 1).switch(u64::MAX, 1, Exited, 0);
    assert!(import(&tape.recording, &options).is_err());
}

fn events() -> impl Strategy<Value = (u64, u32, u32, RecordEvent)> {
    let pid = prop_oneof![5 => 0u32..6, 1 => Just(u32::MAX)];
    let state = prop_oneof![
        Just(Runnable),
        Just(Preempted),
        Just(Sleeping),
        Just(Uninterruptible),
        Just(Exited)
    ];
    let fields = (0u8..11, pid.clone(), pid.clone(), state, -2i32..145, any::<u64>());
    (0u64..1000, 0u32..3, pid, fields).prop_map(|(span, cpu, context, fields)| {
        let (kind, a, b, prev_state, prio, big) = fields;
        let (pid, comm, target_cpu) = (Pid(a), CommId(a % 7), CpuId(cpu));
        let event = match kind {
            0..=3 => RecordEvent::Switch {
                prev: Pid(a),
                prev_comm: comm,
                prev_prio: prio,
                prev_state,
                next: Pid(b),
                next_comm: CommId(b % 7),
                next_prio: 120,
            },
            4 => RecordEvent::Waking { pid, comm, prio, target_cpu },
            5 => RecordEvent::Wakeup { pid, comm, prio, target_cpu },
            6 => RecordEvent::WakeupNew { pid, comm, prio, target_cpu },
            7 => RecordEvent::Fork {
                parent: Pid(b),
                parent_comm: CommId(b % 7),
                child: pid,
                child_comm: comm,
            },
            8 => RecordEvent::Exit { pid, comm, prio },
            9 if big % 2 == 0 => RecordEvent::Exec { pid },
            9 => RecordEvent::Lost { count: big },
            _ => RecordEvent::StatRuntime { pid, runtime_ns: big % 5000 },
        };
        (span, cpu, context, event)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn contradictory_records_do_no_harm(
        events in proptest::collection::vec(events(), 1..80),
        seed: u64,
    ) {
        let mut tape = Tape::new();
        for pid in 0..7 {
            tape.name(pid);
        }
        let mut now = 0;
        for (span, cpu, context, event) in events {
            now += span;
            tape.put(now, cpu, context, event);
        }
        let options = ImportOptions::default();
        let Ok(imported) = import(&tape.recording, &options) else { return Ok(()) };
        prop_assert_eq!(validate(&imported.workload), Ok(()));
        prop_assert!(!imported.summary.to_string().is_empty());
        for (spec, thread) in imported.workload.tasks.iter().zip(&imported.summary.threads) {
            let ops = &imported.workload.programs[spec.program.0 as usize].ops;
            let run: u64 = ops
                .iter()
                .filter_map(|op| match op {
                    Op::Run(Dist::Const(ns)) => Some(*ns),
                    _ => None,
                })
                .sum();
            prop_assert_eq!(run, thread.cpu_time.as_ns());
            prop_assert_eq!(thread.cpu_time, thread.by_stat + thread.by_span);
        }
        let mut rng = Rng::stream(seed, "order", 0);
        let done = execute(&imported.workload, |n| rng.below(n as u64) as usize);
        prop_assert_eq!(done.map(|d| d.n_ended), Ok(imported.workload.tasks.len()));
        prop_assert_eq!(import(&tape.recording, &options), Ok(imported));
    }
}
