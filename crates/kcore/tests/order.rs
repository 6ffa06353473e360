// SPDX-License-Identifier: GPL-2.0-only
//! The order in which the core calls the hooks of a policy.

use schedlab_kcore::{Core, CoreConfig, NewTask};
use schedlab_policy_api::{
    Change, Ctx, Dequeue, Enqueue, Idle, Mm, NoObserver, Policy, PutPrev, TaskState, Topology, Wake,
};
use schedlab_units::{CpuId, CpuSet, Hz, Nice, TaskId, Time};

/// A list for the machine that notes every call.
#[derive(Default)]
struct Noting {
    list: Vec<TaskId>,
    calls: Vec<String>,
}

impl Noting {
    fn note(&mut self, call: String) {
        self.calls.push(call);
    }
}

impl Policy for Noting {
    fn enqueue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Enqueue) {
        self.note(format!("enqueue {cpu} {task} {why:?}"));
        if cx.curr(cpu) != Some(task) {
            self.list.push(task);
        }
    }
    fn dequeue(&mut self, _: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Dequeue) {
        self.note(format!("dequeue {cpu} {task} {why:?}"));
        self.list.retain(|t| *t != task);
    }
    fn pick_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        let curr = cx.curr(cpu);
        self.note(format!("pick_next {cpu} curr {curr:?}"));
        let willing = curr.filter(|curr| cx.tasks.get(*curr).state == TaskState::Running);
        self.list.first().copied().or(willing)
    }
    fn set_next(&mut self, _: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        self.note(format!("set_next {cpu} {task}"));
        self.list.retain(|t| *t != task);
    }
    fn put_prev(&mut self, _: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: PutPrev) {
        self.note(format!("put_prev {cpu} {task} {why:?}"));
        if matches!(why, PutPrev::Preempted | PutPrev::Yielded) {
            self.list.push(task);
        }
    }
    fn finish_task_switch(&mut self, _: &mut Ctx<'_>, cpu: CpuId, prev: Option<TaskId>) {
        self.note(format!("finish_task_switch {cpu} {prev:?}"));
    }
    fn select_cpu(&mut self, cx: &mut Ctx<'_>, task: TaskId, wake: Wake) -> CpuId {
        self.note(format!("select_cpu {task} {wake:?}"));
        cx.tasks.cpu(task)
    }
    fn wakeup_preempt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId, _: Wake) {
        self.note(format!("wakeup_preempt {cpu} {woken}"));
        cx.resched(cpu);
    }
    fn task_fork(&mut self, _: &mut Ctx<'_>, child: TaskId, parent: Option<TaskId>) {
        self.note(format!("task_fork {child} {parent:?}"));
    }
    fn task_exit(&mut self, _: &mut Ctx<'_>, task: TaskId, parent: Option<TaskId>) {
        self.note(format!("task_exit {task} {parent:?}"));
    }
    fn task_changing(&mut self, _: &mut Ctx<'_>, task: TaskId, what: Change) {
        self.note(format!("task_changing {task} {what:?}"));
    }
    fn task_changed(&mut self, _: &mut Ctx<'_>, task: TaskId, what: Change) {
        self.note(format!("task_changed {task} {what:?}"));
    }
    fn prio_changed(&mut self, _: &mut Ctx<'_>, task: TaskId, what: Change) {
        self.note(format!("prio_changed {task} {what:?}"));
    }
    fn balance(&mut self, _: &mut Ctx<'_>, cpu: CpuId, idle: Idle) {
        self.note(format!("balance {cpu} {idle:?}"));
    }
}

const CPU: CpuId = CpuId(0);
const NOW: Time = Time::ZERO;

fn core() -> Core<Noting, NoObserver> {
    core_of(1)
}

fn core_of(n_cpus: u32) -> Core<Noting, NoObserver> {
    let topo = Topology::flat(n_cpus).expect("legal");
    let config = CoreConfig { topo, hz: Hz::new(1000), seed: 1, n_tasks: 4, check: true };
    Core::new(Noting::default(), NoObserver, config)
}

/// Forks and wakes a task, which runs at once if the CPU is idle.
fn start(core: &mut Core<Noting, NoObserver>) -> TaskId {
    let facts = NewTask::normal(core.topo().all(), 1);
    let task = core.fork(NOW, CPU, None, &facts);
    core.wake_up_new(NOW, CPU, task, None);
    if core.schedule(NOW, CPU).is_real() {
        core.finish_switch(NOW, CPU);
    }
    task
}

fn calls(core: &mut Core<Noting, NoObserver>) -> Vec<String> {
    std::mem::take(&mut core.policy_mut().calls)
}

#[test]
fn fork_then_first_run_in_the_kernels_order() {
    let mut core = core();
    start(&mut core);
    assert_eq!(
        calls(&mut core),
        [
            "task_fork 0 None",
            "select_cpu 0 Fork",
            "enqueue 0 0 New",
            "wakeup_preempt 0 0",
            "pick_next 0 curr None",
            "set_next 0 0",
            "finish_task_switch 0 None",
        ]
    );
}

#[test]
fn block_dequeues_before_the_pick_and_puts_after_it() {
    let mut core = core();
    start(&mut core);
    calls(&mut core);
    core.block(NOW, CPU, TaskState::Sleeping);
    core.finish_switch(NOW, CPU);
    assert_eq!(
        calls(&mut core),
        [
            "dequeue 0 0 Sleep",
            "pick_next 0 curr Some(TaskId(0))",
            "balance 0 NewlyIdle",
            "put_prev 0 0 Blocked",
            "finish_task_switch 0 Some(TaskId(0))",
        ]
    );
}

#[test]
fn task_chosen_again_is_neither_put_nor_set() {
    let mut core = core();
    start(&mut core);
    calls(&mut core);
    assert!(!core.schedule(NOW, CPU).is_real());
    assert_eq!(calls(&mut core), ["pick_next 0 curr Some(TaskId(0))"]);
}

#[test]
fn nice_of_running_task_is_changed_inside_both_brackets() {
    let mut core = core();
    let task = start(&mut core);
    calls(&mut core);
    core.set_nice(NOW, CPU, task, Nice::MAX);
    assert_eq!(
        calls(&mut core),
        [
            "dequeue 0 0 Save",
            "put_prev 0 0 Saved",
            "task_changing 0 Nice",
            "task_changed 0 Nice",
            "enqueue 0 0 Restore",
            "set_next 0 0",
            "prio_changed 0 Nice",
        ]
    );
}

#[test]
fn exit_and_reap_end_the_life_of_a_slot() {
    let mut core = core();
    let task = start(&mut core);
    calls(&mut core);
    core.exit(NOW, CPU);
    core.finish_switch(NOW, CPU);
    core.reap(NOW, CPU, task);
    assert_eq!(
        calls(&mut core),
        [
            "dequeue 0 0 Exit",
            "pick_next 0 curr Some(TaskId(0))",
            "balance 0 NewlyIdle",
            "put_prev 0 0 Blocked",
            "finish_task_switch 0 Some(TaskId(0))",
            "task_exit 0 None",
        ]
    );
    assert_eq!(start(&mut core), task, "the slot is used again");
}

/// The policy is asked where the task goes when it leaves, not already when it calls exec.
#[test]
fn exec_of_a_task_that_must_leave_does_not_place_it() {
    let mut core = core_of(2);
    let task = start(&mut core);
    core.set_affinity(NOW, CPU, task, &CpuSet::single(CpuId(1)));
    core.exec(NOW, CPU, Mm(7));
    calls(&mut core);
    core.schedule(NOW, CPU);
    core.finish_switch(NOW, CPU);
    let calls = calls(&mut core);
    assert!(calls.contains(&"select_cpu 0 Migrate".to_string()), "{calls:?}");
    assert_eq!(core.tasks().cpu(task), CpuId(1));
}
