// SPDX-License-Identifier: GPL-2.0-only
//! The life of a task: as a process of its own, or as a thread of one.

use std::ffi::CString;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::thread::futex;
use schedlab_policy_api::Pid;
use schedlab_units::{CpuId, CpuSet, Nanos, Rng};
use schedlab_workload::ir::TemplateId;

use crate::calls;
use crate::calls::Address;
use crate::ops::{Cut, Player};
use crate::played::Counts;
use crate::process::{Outcome, STACK};
use crate::shared::{Shared, is_process};
use crate::task::{Process, Task, lock};

/// Threads that may be alive at once; a process takes two, of which one sleeps.
pub(crate) const THREADS_MAX: usize = 8192;

/// What a process takes of [`THREADS_MAX`]: itself and its lender.
pub(crate) const PROCESS: u32 = 2;

impl Shared {
    /// The fork operation.
    pub(crate) fn fork(
        self: &Arc<Self>,
        parent: &mut Player,
        template: TemplateId,
        thread: bool,
    ) -> Result<(), Cut> {
        let serial = self.spawned.fetch_add(1, Ordering::Relaxed) + 1;
        let origin = if self.workload.family_streams {
            let (origin, born) = &mut parent.lineage;
            *born += 1;
            Rng::stream(*origin, "child", *born).next_u64()
        } else {
            serial
        };
        lock(&parent.me.family).live += 1;
        let made = if !thread && is_process(self.template(template)) {
            self.launch(self.make(template, Some(parent), origin, Arc::default()), Vec::new())
        } else {
            let process = Arc::clone(&parent.me.process);
            self.launch_thread(self.make(template, Some(parent), origin, process))
        };
        made.map_err(Cut::Lack)
    }

    /// Begins a process with the life of `player`, whose threads `members` are.
    pub(crate) fn launch(
        self: &Arc<Self>,
        player: Player,
        members: Vec<Player>,
    ) -> Result<(), String> {
        let name = self.name(player.me.template, player.me.instance);
        self.admit(PROCESS, &name)?;
        let me = Arc::clone(&player.me);
        let shared = Arc::clone(self);
        let comm = CString::new(comm_of(&name)).unwrap_or_default();
        let body = move || {
            let _ = rustix::thread::set_name(&comm);
            live(player, members);
        };
        let after = move |outcome| count_out(&shared, &me, outcome);
        self.processes.launch(Box::new(body), Box::new(after)).map_err(|error| {
            self.live.fetch_sub(PROCESS, Ordering::AcqRel);
            refused(&name, "processes", &error)
        })
    }

    /// Begins a thread of the calling process with the life of `player`.
    pub(crate) fn launch_thread(self: &Arc<Self>, player: Player) -> Result<(), String> {
        let name = self.name(player.me.template, player.me.instance);
        self.admit(1, &name)?;
        player.me.process.threads.fetch_add(1, Ordering::AcqRel);
        let alive = Alive(Arc::clone(self), Arc::clone(&player.me.process));
        let thread = std::thread::Builder::new().name(comm_of(&name)).stack_size(STACK);
        let body = move || {
            let _alive = alive;
            live(player, Vec::new());
        };
        thread.spawn(body).map(drop).map_err(|error| refused(&name, "threads", &error))
    }

    fn admit(&self, n: u32, name: &str) -> Result<(), String> {
        if self.live.fetch_add(n, Ordering::AcqRel) as usize + n as usize <= THREADS_MAX {
            return Ok(());
        }
        self.live.fetch_sub(n, Ordering::AcqRel);
        Err(format!(
            "room for task `{name}`: at most {THREADS_MAX} threads are played at once, and a \
             process takes two"
        ))
    }
}

/// A name as the kernel takes it.
fn comm_of(name: &str) -> String {
    name.chars().filter(|c| *c != '\0').take(15).collect()
}

fn refused(name: &str, what: &str, error: &io::Error) -> String {
    format!(
        "room for task `{name}`: the kernel makes no more {what}: {error} (`ulimit -u`, the \
         cgroup's pids.max, and kernel.threads-max, kernel.pid_max and vm.max_map_count of sysctl \
         bound them)"
    )
}

/// Counts a thread of a process out, in whatever way it ends.
struct Alive(Arc<Shared>, Arc<Process>);

impl Drop for Alive {
    fn drop(&mut self) {
        let Self(shared, process) = self;
        if std::thread::panicking() {
            shared.panicked.store(true, Ordering::Release);
            shared.stop.store(true, Ordering::Release);
        }
        process.threads.fetch_sub(1, Ordering::AcqRel);
        shared.live.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Counts a process out whose first task was `me`, when none of its threads is left.
fn count_out(shared: &Shared, me: &Task, outcome: Outcome) {
    match outcome {
        Outcome::Done => {}
        Outcome::Panicked => shared.panicked.store(true, Ordering::Release),
        Outcome::Killed(signal) => {
            let name = shared.name(me.template, me.instance);
            lock(&shared.results).killed.get_or_insert((name, signal));
        }
    }
    if outcome != Outcome::Done {
        shared.stop.store(true, Ordering::Release);
    }
    // Those that were killed with it have not counted themselves out.
    let others = me.process.threads.swap(0, Ordering::AcqRel);
    shared.live.fetch_sub(PROCESS + others, Ordering::AcqRel);
}

/// The life of a task; `members` are the other threads of the process that it begins.
fn live(mut player: Player, members: Vec<Player>) {
    calls::block_signals();
    let shared = Arc::clone(&player.shared);
    let me = Arc::clone(&player.me);
    let here = Address::here();
    me.found_at(here);
    {
        let task = &mut lock(&shared.results).tasks[me.index];
        (task.pid, task.process) = (Pid(here.tid), Pid(here.tgid));
    }
    // Before its own parameters are set, which the others would inherit.
    let made = members.into_iter().try_for_each(|member| shared.launch_thread(member));
    let cut = match made.map_err(Cut::Lack).and_then(|()| prepare(&mut player)) {
        Ok(()) => player.run(),
        Err(cut) => cut,
    };
    let now = calls::now();
    let counts = counts();
    shared.forget(&me);
    {
        let mut results = lock(&shared.results);
        let task = &mut results.tasks[me.index];
        task.counts = counts;
        let killed = me.killed.load(Ordering::Acquire) && !shared.stop.load(Ordering::Acquire);
        if matches!(cut, Cut::Exit) || killed {
            task.exit = Some(now);
        }
        results.notes.append(&mut player.notes);
        results.ops += player.ops;
        match cut {
            Cut::Exit | Cut::Ended => {}
            Cut::Fault(fault) => {
                results.fault.get_or_insert(fault);
                shared.stop.store(true, Ordering::Release);
            }
            Cut::Lack(lack) => {
                results.lack.get_or_insert(lack);
                shared.stop.store(true, Ordering::Release);
            }
        }
    }
    if let Some(parent) = me.parent.as_ref().and_then(std::sync::Weak::upgrade) {
        parent.child_gone();
    }
}

/// What comes before the program: parameters, CPUs, and for a task of the start the wait for it.
fn prepare(player: &mut Player) -> Result<(), Cut> {
    let shared = Arc::clone(&player.shared);
    let me = Arc::clone(&player.me);
    let spec = shared.template(me.template);
    let forked = me.parent.is_some();
    match spec.sched {
        Some(sched) => player.set_sched(sched)?,
        // A forked task has its parent's class.
        None if shared.ext && !forked => player.set_sched(player.sched)?,
        None => {}
    }
    let affinity = spec.affinity.map(|cpus| cpus.intersection(&shared.all_cpus()));
    let on = if forked { None } else { spec.start_cpu };
    match (on, affinity) {
        (Some(cpu), _) => player.set_affinity(&CpuSet::single(CpuId(cpu)))?,
        (None, Some(cpus)) => player.set_affinity(&cpus)?,
        (None, None) if !forked => player.set_affinity(&shared.all_cpus())?,
        (None, None) => {}
    }
    if !forked {
        shared.ready.fetch_add(1, Ordering::AcqRel);
        while shared.go.load(Ordering::Acquire) == 0 {
            let _ = futex::wait(&shared.go, futex::Flags::PRIVATE, 0, None);
        }
    }
    player.reference = shared.start().saturating_add(spec.start);
    player.interrupts_seen = player.reference;
    if !forked {
        let reference = player.reference;
        player.sleep_until(reference)?;
    }
    if on.is_some() {
        player.set_affinity(&affinity.unwrap_or_else(|| shared.all_cpus()))?;
    }
    Ok(())
}

/// What the kernel counted for the calling thread.
fn counts() -> Counts {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/thread-self/{file}"));
    let status = read("status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
    };
    let schedstat = read("schedstat").unwrap_or_default();
    let wait = schedstat.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    Counts {
        run: calls::cpu_time(),
        wait: wait.map(Nanos::from_ns),
        voluntary: field("voluntary_ctxt_switches:"),
        involuntary: field("nonvoluntary_ctxt_switches:"),
    }
}
