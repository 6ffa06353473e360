// SPDX-License-Identifier: GPL-2.0-only
//! What each kind of event does to the figures, on streams small enough to add up by hand.

use schedlab_metrics::{
    Config, CpuFigures, EndState, MarkLabel, Metrics, RowId, RowLabel, RunFigures,
};
use schedlab_policy_api::{CpuMode, Observer, Overhead, PrevState, SchedClass, SchedEvent};
use schedlab_units::{CpuId, Nanos, Nice, TaskId, Time};

const CPU: CpuId = CpuId(0);

struct Stream {
    metrics: Metrics,
}

fn stream(n_rows: usize, warmup: u64) -> Stream {
    let rows = (0..n_rows)
        .map(|row| RowLabel {
            name: format!("task-{row}"),
            group: if row == 0 { "first" } else { "rest" }.to_string(),
            nice: Nice::ZERO,
            class: SchedClass::Normal,
        })
        .collect();
    let marks = vec![MarkLabel { name: "frame".to_string(), unit: "frames".to_string() }];
    let config = Config { n_cpus: 1, n_tasks: 2, rows, marks, warmup: Time::from_ns(warmup) };
    Stream { metrics: Metrics::new(config) }
}

impl Stream {
    fn at(&mut self, ns: u64, event: SchedEvent) -> &mut Self {
        self.metrics.event(Time::from_ns(ns), &event);
        self
    }
    fn fork(&mut self, ns: u64, task: u32, parent: Option<u32>, row: u32) -> &mut Self {
        self.at(ns, SchedEvent::ProcessFork { task: TaskId(task), parent: parent.map(TaskId) });
        self.metrics.bind(TaskId(task), RowId(row));
        self
    }
    fn wake_new(&mut self, ns: u64, task: u32) -> &mut Self {
        self.at(ns, SchedEvent::WakeupNew { task: TaskId(task), cpu: CPU })
    }
    fn wake(&mut self, ns: u64, task: u32) -> &mut Self {
        let task = TaskId(task);
        self.at(ns, SchedEvent::Waking { task, waker: None, this_cpu: CPU, target: CPU });
        self.at(ns, SchedEvent::Wakeup { task, cpu: CPU })
    }
    fn switch(
        &mut self,
        ns: u64,
        prev: Option<u32>,
        prev_state: PrevState,
        next: Option<u32>,
    ) -> &mut Self {
        let (prev, next) = (prev.map(TaskId), next.map(TaskId));
        self.at(ns, SchedEvent::Switch { cpu: CPU, prev, prev_state, next })
    }
    fn exit(&mut self, ns: u64, task: u32) -> &mut Self {
        self.at(ns, SchedEvent::ProcessExit { task: TaskId(task), cpu: CPU });
        self.switch(ns, Some(task), PrevState::Zombie, None)
    }
    fn mode(&mut self, ns: u64, mode: CpuMode) -> &mut Self {
        self.at(ns, SchedEvent::CpuMode { cpu: CPU, mode })
    }
    fn finish(self, ns: u64) -> RunFigures {
        self.metrics.finish(Time::from_ns(ns))
    }
}

fn times(run: &RunFigures, row: usize) -> (u64, u64, u64, u64) {
    let f = &run.tasks[row].figures;
    assert_eq!(f.run + f.wait + f.sleep, f.life, "row {row}");
    (f.run.as_ns(), f.wait.as_ns(), f.sleep.as_ns(), f.life.as_ns())
}

#[test]
fn life_before_first_wakeup_is_sleep() {
    let mut s = stream(1, 0);
    s.fork(10, 0, None, 0).wake_new(40, 0).switch(45, None, PrevState::Preempted, Some(0));
    let run = s.finish(100);
    assert_eq!(times(&run, 0), (55, 5, 30, 90));
    assert_eq!(run.tasks[0].state, EndState::Running);
    let f = run.tasks[0].figures;
    assert_eq!(f.wakeups, 0, "the first wake-up is a fork");
    assert_eq!(f.wakeup_latency, None);
    assert_eq!(f.run_delay.expect("one stay").max, 5);
}

#[test]
fn life_ends_at_exit_and_slot_is_used_again() {
    let mut s = stream(2, 0);
    s.fork(0, 0, None, 0).wake_new(0, 0).switch(0, None, PrevState::Preempted, Some(0));
    s.fork(10, 1, Some(0), 1).wake_new(10, 1);
    s.switch(20, Some(0), PrevState::Sleeping, Some(1)).exit(35, 1);
    s.at(36, SchedEvent::ProcessFree { task: TaskId(1) });
    s.wake(40, 0).switch(41, None, PrevState::Preempted, Some(0)).fork(50, 1, Some(0), 1);
    let run = s.finish(60);
    // First life of slot 1: waits 10…20, runs 20…35; the second is new from 50 to 60.
    assert_eq!(times(&run, 1), (15, 10, 10, 35));
    assert_eq!(times(&run, 0), (39, 1, 20, 60));
    let forked = &run.tasks[1];
    assert_eq!((forked.figures.lives, forked.state), (2, EndState::New));
    assert_eq!(forked.exit, Some(Time::from_ns(35)));
    assert_eq!((run.totals.forks, run.totals.exits), (2, 1));
}

#[test]
fn life_older_than_exited_one_does_not_decide_state() {
    let mut s = stream(1, 0);
    s.fork(0, 0, None, 0).fork(1, 1, None, 0).wake_new(2, 1);
    s.switch(3, None, PrevState::Preempted, Some(1)).exit(4, 1);
    assert_eq!(s.finish(9).tasks[0].state, EndState::Exited);
}

#[test]
fn switches_are_counted_as_the_kernel_does() {
    let mut s = stream(2, 0);
    for task in 0..2 {
        s.fork(0, task, None, task).wake_new(0, task);
    }
    s.switch(0, None, PrevState::Preempted, Some(0));
    s.switch(10, Some(0), PrevState::Preempted, Some(1));
    s.switch(20, Some(1), PrevState::Yielded, Some(0));
    s.switch(25, Some(0), PrevState::Preempted, Some(0)); // no change of the current task
    s.switch(30, Some(0), PrevState::Uninterruptible, Some(1));
    s.exit(40, 1);
    let run = s.finish(50);
    let totals = run.totals;
    assert_eq!(totals.context_switches, 5);
    assert_eq!((totals.voluntary, totals.involuntary, totals.preemptions), (2, 2, 1));
    let (a, b) = (run.tasks[0].figures, run.tasks[1].figures);
    assert_eq!((a.voluntary, a.involuntary, a.preemptions), (1, 1, 1));
    assert_eq!((b.voluntary, b.involuntary, b.preemptions), (1, 1, 0));
    assert_eq!(run.tasks[0].state, EndState::Uninterruptible);
}

#[test]
fn wakeup_latency_is_the_part_of_run_delay_that_wakeups_began() {
    let mut s = stream(2, 0);
    for task in 0..2 {
        s.fork(0, task, None, task).wake_new(0, task);
    }
    s.switch(3, None, PrevState::Preempted, Some(0));
    s.switch(10, Some(0), PrevState::Sleeping, Some(1));
    s.wake(20, 0).switch(24, Some(1), PrevState::Preempted, Some(0));
    s.switch(30, Some(0), PrevState::Sleeping, Some(1));
    s.wake(90, 0);
    let run = s.finish(100);
    let a = run.tasks[0].figures;
    assert_eq!(a.wakeups, 2);
    assert_eq!(a.wakeup_latency.map(|h| (h.count, h.min, h.max)), Some((1, 4, 4)));
    assert_eq!(a.run_delay.map(|h| (h.count, h.min, h.max)), Some((2, 3, 4)));
    assert_eq!(a.longest_wait.as_ns(), 10, "the wait open at the end counts");
    assert_eq!(run.tasks[0].state, EndState::Runnable);
    // Task 1 waited 0…10 and 24…30.
    let b = run.tasks[1].figures;
    assert_eq!(b.run_delay.map(|h| (h.count, h.min, h.max)), Some((2, 6, 10)));
}

#[test]
fn wakeup_of_task_that_is_awake_is_none() {
    let mut s = stream(1, 0);
    s.fork(0, 0, None, 0).wake_new(0, 0).wake(5, 0);
    s.switch(9, None, PrevState::Preempted, Some(0)).wake(10, 0);
    let run = s.finish(20);
    assert_eq!(times(&run, 0), (11, 9, 0, 20));
    assert_eq!(run.totals.wakeups, 0);
}

#[test]
fn warmup_cuts_intervals_and_forgets_counts() {
    let mut s = stream(1, 100);
    s.fork(0, 0, None, 0).wake_new(0, 0).switch(10, None, PrevState::Preempted, Some(0));
    s.mode(10, CpuMode::Busy);
    s.at(20, SchedEvent::MarkCount { task: TaskId(0), mark: 0, n: 7 });
    s.switch(50, Some(0), PrevState::Sleeping, None).mode(50, CpuMode::Idle).wake(90, 0);
    s.switch(130, None, PrevState::Preempted, Some(0)).mode(130, CpuMode::Busy);
    let run = s.finish(200);
    assert_eq!((run.elapsed.as_ns(), run.warmup.as_ns()), (100, 100));
    assert_eq!(times(&run, 0), (70, 30, 0, 100));
    let f = run.tasks[0].figures;
    assert_eq!((f.wakeups, f.wakeup_latency), (0, None), "its wake-up was before");
    assert_eq!(f.run_delay.map(|h| (h.count, h.max)), Some((1, 30)));
    assert_eq!(run.totals.context_switches, 1);
    assert_eq!(run.marks[0].sum, 0);
    assert_eq!(run.cpus[0].busy.as_ns(), 70);
    assert_eq!(run.cpus[0].idle.as_ns(), 30);
}

#[test]
fn warmup_instant_itself_is_measured() {
    let mut s = stream(1, 100);
    s.fork(0, 0, None, 0);
    s.at(100, SchedEvent::MarkCount { task: TaskId(0), mark: 0, n: 1 });
    assert_eq!(s.finish(100).marks[0].sum, 1);
}

#[test]
fn run_that_ends_within_warmup_has_empty_figures() {
    let mut s = stream(1, 100);
    s.fork(0, 0, None, 0).wake_new(0, 0).mode(0, CpuMode::Busy);
    let run = s.finish(60);
    assert_eq!((run.elapsed, run.warmup.as_ns()), (Nanos::ZERO, 60));
    assert_eq!(times(&run, 0), (0, 0, 0, 0));
    assert_eq!(run.cpus[0], CpuFigures::default());
}

#[test]
fn cpu_time_is_split_without_loss() {
    let mut s = stream(0, 0);
    s.mode(10, CpuMode::Overhead(Overhead::IdleExit));
    s.mode(12, CpuMode::Overhead(Overhead::Switch)).mode(15, CpuMode::Busy);
    s.mode(40, CpuMode::Overhead(Overhead::Tick)).mode(41, CpuMode::Busy);
    s.mode(50, CpuMode::Overhead(Overhead::Wakeup));
    s.mode(54, CpuMode::Overhead(Overhead::Interrupt));
    let cpu = s.finish(60).cpus[0];
    assert_eq!((cpu.idle.as_ns(), cpu.busy.as_ns(), cpu.overhead().as_ns()), (10, 34, 16));
    assert_eq!(cpu.switch.as_ns(), 3);
    assert_eq!((cpu.wakeup.as_ns(), cpu.interrupt.as_ns(), cpu.idle_exit.as_ns()), (4, 6, 2));
}

#[test]
fn deadline_at_its_instant_is_met() {
    let mut s = stream(1, 0);
    s.fork(0, 0, None, 0);
    let deadline = |due| SchedEvent::Deadline { task: TaskId(0), due: Time::from_ns(due) };
    s.at(50, deadline(50)).at(60, deadline(80)).at(90, deadline(85));
    let run = s.finish(100);
    let d = &run.deadlines[0];
    assert_eq!((d.task.as_str(), d.met, d.missed), ("task-0", 2, 1));
    assert_eq!(d.late.map(|h| (h.count, h.max)), Some((1, 5)));
}

#[test]
fn marks_count_events_and_units() {
    let mut s = stream(1, 0);
    s.fork(0, 0, None, 0);
    s.at(1, SchedEvent::MarkCount { task: TaskId(0), mark: 0, n: 3 });
    s.at(2, SchedEvent::MarkLatency { task: TaskId(0), mark: 0, ns: 250 });
    let run = s.finish(10);
    let mark = &run.marks[0];
    assert_eq!((mark.name.as_str(), mark.unit.as_str()), ("frame", "frames"));
    assert_eq!((mark.count, mark.sum), (2, 4));
    assert_eq!(mark.latency.map(|h| (h.count, h.max)), Some((1, 250)));
}

#[test]
fn groups_sum_times_and_merge_delays() {
    let mut s = stream(3, 0);
    for task in 0..3 {
        s.fork(0, task, None, task).wake_new(0, task);
    }
    s.switch(5, None, PrevState::Preempted, Some(1));
    s.switch(25, Some(1), PrevState::Preempted, Some(2));
    let run = s.finish(30);
    let names: Vec<_> = run.groups.iter().map(|g| g.name.as_str()).collect();
    assert_eq!(names, ["first", "rest"]);
    let rest = run.groups[1].figures;
    assert_eq!((rest.lives, rest.run.as_ns(), rest.wait.as_ns()), (2, 25, 35));
    assert_eq!(rest.run_delay.map(|h| (h.count, h.min, h.max)), Some((2, 5, 25)));
    assert_eq!(rest.longest_wait.as_ns(), 25);
    assert_eq!(run.groups[0].figures.longest_wait.as_ns(), 30);
}

#[test]
fn nice_and_class_are_the_last_ones() {
    let mut s = stream(1, 0);
    s.fork(0, 0, None, 0);
    let nice = Nice::new(5).expect("legal");
    let task = TaskId(0);
    s.at(1, SchedEvent::PrioChange { task, nice, class: SchedClass::Batch, rt_priority: 0 });
    let run = s.finish(10);
    assert_eq!((run.tasks[0].nice, run.tasks[0].class), (nice, SchedClass::Batch));
}

#[test]
fn task_that_nobody_binds_has_a_row_of_its_own() {
    let mut s = stream(1, 0);
    s.fork(0, 0, None, 0);
    s.at(2, SchedEvent::ProcessFork { task: TaskId(7), parent: None });
    let run = s.finish(10);
    assert_eq!(run.tasks.len(), 2);
    assert_eq!((run.tasks[1].name.as_str(), run.tasks[1].figures.lives), ("(other)", 1));
    assert_eq!(times(&run, 1), (0, 0, 8, 8));
}

#[test]
#[should_panic(expected = "task 0 becomes current")]
fn switch_to_sleeping_task_is_a_bug() {
    let mut s = stream(1, 0);
    s.fork(0, 0, None, 0).switch(1, None, PrevState::Preempted, Some(0));
}
