// SPDX-License-Identifier: GPL-2.0-only
//! Claims O1-08 and O1-08b of spec linux-2.6-o1 §8: test-starve.c by D. Mosberger, §7.1.

use schedlab_policy_api::Topology;
use schedlab_units::{TaskId, Time};

use super::rig::{CPU0, MS, Rig, nice};

/// Costs in ns: a kill of a parent that is up, one that wakes it, the handler, a switch. They
/// divide no tick, or sampling locks in.
const KILL: u64 = 1_013;
const KILL_AND_WAKE: u64 = 2_551;
const HANDLER: u64 = 6_137;
const SWITCH: u64 = 2_500;

/// What a task does, with the ns that are left of it.
#[derive(Clone, Copy)]
enum Doing {
    /// Decides when it next runs.
    Undecided,
    Kill(u64),
    KillAndWake(u64),
    Handle(u64),
}

impl Doing {
    fn left(&mut self) -> Option<&mut u64> {
        match self {
            Self::Undecided => None,
            Self::Kill(left) | Self::KillAndWake(left) | Self::Handle(left) => Some(left),
        }
    }
}

/// The parent is task 0, the child that sends signals task 1.
struct Storm {
    rig: Rig,
    doing: [Doing; 2],
    /// Ns of the switch to the current task that are left.
    switching: u64,
    parent_sleeps: bool,
    pending: bool,
    signals: u64,
    /// Ns of work of each, switches left out.
    work: [u64; 2],
}

impl Storm {
    fn new(variant: &str, set: &str, child_nice: i32) -> Self {
        let topo = Topology::flat(1).expect("a machine");
        // Some ten million inputs are too many to ask for the invariants after each.
        let mut rig = Rig::on(topo, variant, set, false);
        let max = rig.core.policy().knobs.max_sleep_avg;
        let parent = rig.task(max / 2);
        rig.schedule(CPU0);
        let child = rig.fork(CPU0);
        assert_eq!((parent, child), (TaskId(0), TaskId(1)));
        rig.settle();
        rig.core.set_nice(rig.now, CPU0, child, nice(child_nice));
        rig.settle();
        // Whoever runs falls asleep first; both sleep for a second.
        rig.block(CPU0);
        rig.block(CPU0);
        rig.ticks(1001);
        rig.wake(child);
        Self {
            rig,
            doing: [Doing::Undecided; 2],
            switching: 0,
            parent_sleeps: true,
            pending: false,
            signals: 0,
            work: [0; 2],
        }
    }

    /// Lets whoever was asked call `schedule` and charges the switch.
    fn settle(&mut self, before: Option<TaskId>) {
        self.rig.settle();
        if self.rig.core.curr(CPU0) != before {
            self.switching = SWITCH;
        }
    }

    fn start_work(&mut self, task: usize) {
        self.doing[task] = match task {
            0 => {
                self.pending = false;
                Doing::Handle(HANDLER)
            }
            _ if self.parent_sleeps => Doing::KillAndWake(KILL_AND_WAKE),
            _ => Doing::Kill(KILL),
        };
    }

    fn end_work(&mut self, task: TaskId) {
        let done = core::mem::replace(&mut self.doing[task.index()], Doing::Undecided);
        match done {
            Doing::Undecided => unreachable!("work was started"),
            Doing::Kill(_) => self.pending = true,
            Doing::KillAndWake(_) => {
                self.parent_sleeps = false;
                self.rig.core.wake(self.rig.now, CPU0, TaskId(0), Some(task), false);
            }
            Doing::Handle(_) => {
                self.signals += 1;
                self.parent_sleeps = !self.pending;
                if self.pending {
                    self.rig.schedule(CPU0);
                } else {
                    self.rig.block(CPU0);
                }
            }
        }
        self.settle(Some(task));
    }

    /// Runs for `seconds`; shares of parent and child in 1/1000 of the CPU and signals a second.
    fn run(&mut self, seconds: u64) -> ([u64; 2], u64) {
        let start = self.rig.now.as_ns();
        let end = start + seconds * 1000 * MS;
        let (work, signals) = (self.work, self.signals);
        while self.rig.now.as_ns() < end {
            let now = self.rig.now.as_ns();
            let curr = self.rig.core.curr(CPU0).expect("the child never sleeps");
            let index = curr.index();
            if self.switching == 0 && matches!(self.doing[index], Doing::Undecided) {
                self.start_work(index);
            }
            let left = self.doing[index].left().map_or(0, |left| *left);
            let tick = (now / MS + 1) * MS;
            let span = (tick - now).min(if self.switching > 0 { self.switching } else { left });
            if self.switching > 0 {
                self.switching -= span;
            } else {
                *self.doing[index].left().expect("decided above") -= span;
                self.work[index] += span;
            }
            let ends = self.doing[index].left().is_some_and(|left| *left == 0);
            self.rig.now = Time::from_ns(now + span);
            if now + span == tick {
                self.rig.core.tick(self.rig.now, CPU0);
                self.settle(Some(curr));
            }
            // A burst that ends at the tick ends after it, or when its task runs again.
            if ends && self.switching == 0 && self.rig.core.curr(CPU0) == Some(curr) {
                self.end_work(curr);
            }
        }
        let share = |task: usize| (self.work[task] - work[task]) / (seconds * MS);
        ([share(0), share(1)], (self.signals - signals) / seconds)
    }
}

#[test]
fn claim_o1_08_test1_starves_the_parent() {
    let mut storm = Storm::new("2.6.0-test1", "", 0);
    let (early, _) = storm.run(2);
    assert!(early[0] > 150, "O1-08b: starts well, {early:?}");
    storm.run(28);
    let (late, signals) = storm.run(10);
    assert!(late[0] < 1 && late[1] > 990 && (9..=11).contains(&signals), "{late:?} {signals}");
    assert_eq!([0, 1].map(|task| storm.rig.figure(TaskId(task), "prio")), [125, 125]);
}

#[test]
fn claim_o1_08_waiting_credit_cures_it() {
    let mut storm = Storm::new("g3", "", 0);
    storm.run(10);
    let ([parent, child], signals) = storm.run(4);
    assert!((230..=320).contains(&parent), "G3 parent {parent}");
    assert!((380..=610).contains(&child) && signals > 10_000, "G3 child {child} {signals}");
    // O1-08c: of the CPU used, child to parent lies between 55:45 and 75:25.
    assert!((550..=750).contains(&(child * 1000 / (child + parent))), "{child}:{parent}");
    let mut storm = Storm::new("g7", "", 0);
    storm.run(10);
    let ([parent, _], _) = storm.run(4);
    assert!((170..=260).contains(&parent), "G7 parent {parent}");
}

#[test]
fn claim_o1_08_without_the_credit_g3_starves_it_too() {
    let mut storm = Storm::new("g3", "rq_wait_credit=none", 0);
    storm.run(20);
    let (late, signals) = storm.run(10);
    assert!(late[0] < 1 && signals < 60, "{late:?} {signals}");
}

#[test]
fn claim_o1_08b_one_level_of_nice_cures_it() {
    let mut storm = Storm::new("2.6.0-test1", "", 1);
    storm.run(25);
    let (late, _) = storm.run(3);
    let prio = [0, 1].map(|task| storm.rig.figure(TaskId(task), "prio"));
    assert!(prio[0] < prio[1] && late[0] > 150, "{prio:?} {late:?}");
}
