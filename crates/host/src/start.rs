// SPDX-License-Identifier: GPL-2.0-only
//! The start: all its tasks are made, and wait for one instant.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::thread::futex;
use schedlab_units::Nanos;
use schedlab_workload::ir::{Op, ProcessSpec, TemplateId, Workload};

use crate::calls;
use crate::lender::AVAILABLE;
use crate::life::{PROCESS, THREADS_MAX};
use crate::ops::Player;
use crate::shared::{Shared, is_process};

/// Time between the readiness of all tasks and the start, and more for each.
const LEAD: Nanos = Nanos::from_ms(20);
const LEAD_PER_TASK: Nanos = Nanos::from_us(20);
/// How long tasks may take to be ready.
const PATIENCE: Nanos = Nanos::from_s(30);
/// Lenders that are kept for forks to come.
const RESERVE: usize = 64;

/// Tasks of the start that are threads of one process, the first of which begins it.
type Household = Vec<Player>;

/// How many tasks of the start there are, and how many threads in the kernel they take at least.
fn census(workload: &Workload) -> (usize, usize) {
    let start = || workload.tasks.iter().filter(|task| task.at_start);
    let n: usize = start().map(|task| task.count as usize).sum();
    let own = start().filter(|task| is_process(task)).map(|task| task.count as usize);
    (n, n + own.sum::<usize>() * (PROCESS as usize - 1))
}

/// Why this many tasks are not played; none = they are.
pub(crate) fn crowd(workload: &Workload) -> Option<String> {
    let (n, threads) = census(workload);
    (threads > THREADS_MAX).then(|| {
        format!(
            "room for {n} tasks at the start: at most {THREADS_MAX} threads are played at once, \
             and a process takes two"
        )
    })
}

/// The tasks of the start, each with those it shares a process with.
fn households(shared: &Arc<Shared>) -> Vec<Household> {
    let mut all: Vec<Household> = Vec::new();
    // Kernel threads, which have no process, have one in common here.
    let mut known: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for (index, spec) in shared.workload.tasks.iter().enumerate().filter(|(_, t)| t.at_start) {
        let key = match &spec.process {
            ProcessSpec::Own => None,
            ProcessSpec::Thread(name) => Some(Some(name.as_str())),
            ProcessSpec::Kernel => Some(None),
        };
        for _ in 0..spec.count {
            let origin = shared.spawned.fetch_add(1, Ordering::Relaxed) + 1;
            let at = key.and_then(|key| known.get(&key).copied());
            let process = at.map_or_else(Arc::default, |at| Arc::clone(&all[at][0].me.process));
            let player = shared.make(TemplateId(index as u32), None, origin, process);
            match (at, key) {
                (Some(at), _) => all[at].push(player),
                (None, key) => {
                    key.map(|key| known.insert(key, all.len()));
                    all.push(vec![player]);
                }
            }
        }
    }
    all
}

fn launch_all(shared: &Arc<Shared>, stop: &AtomicBool) -> Result<(), String> {
    let households = households(shared);
    if !AVAILABLE {
        return households.into_iter().flatten().try_for_each(|task| shared.launch_thread(task));
    }
    let forks = |op: &Op| matches!(op, Op::Fork { template, thread: false } if is_process(shared.template(*template)));
    let reserve = match shared.workload.programs.iter().flat_map(|p| &p.ops).any(forks) {
        true => RESERVE,
        false => 0,
    };
    shared
        .processes
        .lenders
        .provide(households.len(), reserve)
        .map_err(|error| format!("room for {} processes: {error}", households.len()))?;
    for mut household in households {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let members = household.split_off(1);
        household.pop().map_or(Ok(()), |leader| shared.launch(leader, members))?;
    }
    Ok(())
}

/// Makes the tasks of the start and sets the instant at which they all begin.
///
/// # Errors
/// What this host does not provide.
pub(crate) fn start(shared: &Arc<Shared>, stop: &AtomicBool) -> Result<(), String> {
    let made = launch_all(shared, stop);
    let (n, _) = census(&shared.workload);
    let patience = calls::now().saturating_add(PATIENCE);
    let waits = || {
        made.is_ok()
            && (shared.ready.load(Ordering::Acquire) as usize) < n
            && !shared.stop.load(Ordering::Acquire)
            && !stop.load(Ordering::Relaxed)
            && calls::now() < patience
    };
    while waits() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let lead = LEAD.saturating_add(LEAD_PER_TASK.saturating_mul(n as u64));
    shared.start.store(calls::now().saturating_add(lead).as_ns(), Ordering::Release);
    if made.is_err() {
        shared.stop.store(true, Ordering::Release);
    }
    shared.go.store(1, Ordering::Release);
    let _ = futex::wake(&shared.go, futex::Flags::PRIVATE, u32::MAX >> 1);
    made
}
