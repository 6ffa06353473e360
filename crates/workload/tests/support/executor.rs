// SPDX-License-Identifier: GPL-2.0-only
//! Steps through the programs of an imported workload in any order that semaphores allow.
//!
//! There is no time: sleeps are over at once. What is checked is that no order leads to a task that
//! waits for ever, and what every task did in all.

use std::collections::BTreeMap;

use schedlab_workload::Workload;
use schedlab_workload::ir::{Dist, Op};

/// What the tasks did in all, by template.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Computed, ns.
    pub(crate) run_ns: BTreeMap<String, u64>,
    /// Tasks that came to their end.
    pub(crate) n_ended: usize,
}

/// Runs `workload`, choosing among the tasks that can go on by `choose(how many there are)`.
///
/// # Errors
/// The tasks that wait for ever.
pub(crate) fn execute(
    workload: &Workload,
    mut choose: impl FnMut(usize) -> usize,
) -> Result<Done, String> {
    let mut counts: Vec<u64> = workload.objects.semaphores.iter().map(|s| s.initial).collect();
    // Template and place of every task alive.
    let mut alive: Vec<(usize, usize)> = (0..workload.tasks.len())
        .filter(|index| workload.tasks[*index].at_start)
        .map(|index| (index, 0))
        .collect();
    let mut done = Done::default();
    let op = |(template, pc): (usize, usize)| {
        let program = &workload.programs[workload.tasks[template].program.0 as usize];
        program.ops.get(pc)
    };
    while !alive.is_empty() {
        let able: Vec<usize> = (0..alive.len())
            .filter(|i| match op(alive[*i]) {
                Some(Op::SemWait(id)) => counts[id.0 as usize] > 0,
                _ => true,
            })
            .collect();
        if able.is_empty() {
            let names: Vec<&str> =
                alive.iter().map(|(t, _)| workload.tasks[*t].name.as_str()).collect();
            return Err(format!("waiting for ever: {}", names.join(", ")));
        }
        let chosen = able[choose(able.len())];
        let (template, pc) = alive[chosen];
        alive[chosen].1 = pc + 1;
        match op((template, pc)) {
            Some(Op::Run(Dist::Const(ns))) => {
                *done.run_ns.entry(workload.tasks[template].name.clone()).or_default() += ns;
            }
            Some(Op::SemWait(id)) => counts[id.0 as usize] -= 1,
            Some(Op::SemPost(id)) => counts[id.0 as usize] += 1,
            Some(Op::Fork { template, .. }) => alive.push((template.0 as usize, 0)),
            None | Some(Op::Exit) => {
                alive.swap_remove(chosen);
                done.n_ended += 1;
            }
            Some(_) => {}
        }
    }
    Ok(done)
}
