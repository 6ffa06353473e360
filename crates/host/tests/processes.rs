// SPDX-License-Identifier: GPL-2.0-only
//! Tasks are in the processes that their workload puts them in.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use schedlab_host::play::{PlayOptions, play};
use schedlab_host::played::{Noted, Played};
use schedlab_host::system::allowed_cpus;
use schedlab_policy_api::Pid;
use schedlab_units::Nanos;
use schedlab_workload::ir::{
    Dist, Op, ProcessSpec, Program, ProgramId, TaskSpec, TemplateId, Workload,
};

fn played(tasks: Vec<TaskSpec>, programs: Vec<Vec<Op>>) -> Played {
    let programs = programs.into_iter().map(|ops| Program { ops, n_counters: 0 }).collect();
    let workload = Workload { tasks, programs, ..Workload::default() };
    let options = PlayOptions {
        ext: false,
        seed: 1,
        length: Nanos::from_s(20),
        cpus: allowed_cpus(),
        ignore_rights: false,
        trace_kib: None,
    };
    let played = play(&Arc::new(workload), &options, &AtomicBool::new(false)).expect("a play");
    assert!(played.tasks.iter().all(|task| task.exit.is_some()), "{:?}", played.tasks);
    // None outlives the play, and all are told by numbers of their own.
    let numbers: BTreeSet<Pid> = played.tasks.iter().map(|task| task.pid).collect();
    assert_eq!(numbers.len(), played.tasks.len());
    let children = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    let ours = |pid: &str| numbers.iter().any(|number| number.0.to_string() == pid);
    assert!(!children.split_whitespace().any(ours), "{children}");
    played
}

fn run() -> Op {
    Op::Run(Dist::Const(1000))
}

fn fork(template: u32, thread: bool) -> Op {
    Op::Fork { template: TemplateId(template), thread }
}

fn forked(name: &str, program: u32) -> TaskSpec {
    TaskSpec { at_start: false, ..TaskSpec::new(name, ProgramId(program)) }
}

fn of(process: ProcessSpec, name: &str) -> TaskSpec {
    TaskSpec { process, ..TaskSpec::new(name, ProgramId(0)) }
}

#[test]
fn tasks_with_a_process_each_have_as_many_numbers() {
    let tasks = vec![TaskSpec { count: 3, ..TaskSpec::new("t", ProgramId(0)) }];
    let played = played(tasks, vec![vec![run()]]);
    let here = Pid(std::process::id());
    let processes: BTreeSet<Pid> = played.tasks.iter().map(|task| task.process).collect();
    assert_eq!(processes.len(), 3);
    assert!(!processes.contains(&here));
    assert!(played.tasks.iter().all(|task| task.pid == task.process));
}

#[test]
fn threads_that_name_a_process_are_in_it() {
    let named = |process: &str| ProcessSpec::Thread(process.to_string());
    let tasks = vec![
        of(named("a"), "a1"),
        of(named("b"), "b1"),
        of(named("a"), "a2"),
        of(ProcessSpec::Kernel, "k1"),
        of(ProcessSpec::Kernel, "k2"),
    ];
    let played = played(tasks, vec![vec![run()]]);
    let processes: Vec<Pid> = played.tasks.iter().map(|task| task.process).collect();
    assert_eq!((processes[0], processes[3]), (processes[2], processes[4]));
    let different: BTreeSet<Pid> = processes.iter().copied().collect();
    assert_eq!(different.len(), 3);
    assert_eq!(played.tasks[0].pid, processes[0]);
}

#[test]
fn forked_processes_are_new_and_forked_threads_stay() {
    let tasks = vec![
        TaskSpec::new("parent", ProgramId(0)),
        forked("child", 1),
        forked("grandchild", 2),
        TaskSpec { process: ProcessSpec::Thread("x".to_string()), ..forked("named", 2) },
    ];
    let parent = vec![fork(1, false), fork(1, true), fork(3, false), Op::WaitChildren];
    let child = vec![fork(2, false), fork(2, true), Op::WaitChildren, run()];
    let played = played(tasks, vec![parent, child, vec![run()]]);
    assert_eq!(played.tasks.len(), 8);
    let root = played.tasks[0].process;
    for task in &played.tasks[1..] {
        let parent = &played.tasks[task.parent.expect("a parent")];
        match task.template.0 {
            3 => assert_eq!(task.process, root),
            _ if task.pid == task.process => assert_ne!(task.process, parent.process),
            _ => assert_eq!(task.process, parent.process),
        }
    }
    let new = played.tasks.iter().filter(|task| task.pid == task.process).count();
    assert_eq!(new, 4, "the parent, a child, and a grandchild of each child");
}

#[test]
fn many_forks_at_once_are_all_played() {
    let tasks = vec![TaskSpec::new("parent", ProgramId(0)), forked("child", 1)];
    let mut parent = vec![fork(1, false); 500];
    parent.push(Op::WaitChildren);
    let played = played(tasks, vec![parent, vec![run()]]);
    let processes: BTreeSet<Pid> = played.tasks.iter().map(|task| task.process).collect();
    assert_eq!(processes.len(), 501);
}

#[test]
fn process_ends_when_its_last_thread_does() {
    // The first of the process forks a thread that lives longer, and nobody waits for it.
    let tasks = vec![TaskSpec::new("first", ProgramId(0)), forked("rest", 1)];
    let ends = vec![Op::Sleep(Dist::Const(2_000_000)), run()];
    let played = played(tasks, vec![vec![fork(1, true), fork(1, true)], ends]);
    assert_eq!(played.tasks.len(), 3);
    let processes: BTreeSet<Pid> = played.tasks.iter().map(|task| task.process).collect();
    assert_eq!(processes.len(), 1);
}

#[test]
fn exec_is_refused_by_the_kernel_and_the_task_goes_on() {
    let tasks = vec![TaskSpec { count: 2, ..TaskSpec::new("t", ProgramId(0)) }];
    let played = played(tasks, vec![vec![Op::Exec, run(), Op::Exec]]);
    let refused = played.remarks.iter().any(|remark| remark.starts_with("exec was refused"));
    let execs = played.notes.iter().filter(|note| note.what == Noted::Exec).count();
    assert_eq!(execs, if refused { 0 } else { 4 });
    assert!(played.remarks.iter().any(|remark| remark.contains("exec is balanced")));
}
