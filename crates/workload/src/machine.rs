// SPDX-License-Identifier: GPL-2.0-only
//! What a workload asks of the machine it runs on.

use schedlab_units::{CpuSet, MAX_CPUS};

use crate::ir::{Op, Workload};
use crate::validate::{Invalid, Place};

/// Checks that every CPU a workload names exists on a machine of `n_cpus` CPUs.
///
/// The set of all [`MAX_CPUS`] CPUs stands for "every CPU of the machine" and fits any.
///
/// # Errors
/// The first task or operation that names a CPU beyond the machine.
pub fn check_machine(workload: &Workload, n_cpus: usize) -> Result<(), Invalid> {
    let machine = CpuSet::first_n(n_cpus.min(MAX_CPUS));
    let all = CpuSet::first_n(MAX_CPUS);
    let beyond = |cpus: &CpuSet| {
        if *cpus == all { None } else { cpus.iter().find(|cpu| !machine.contains(*cpu)) }
    };
    let fault = |place, who: String, cpu: u32| {
        let message = format!(
            "{who} CPU {cpu}, but the machine has {n_cpus} {}",
            if n_cpus == 1 { "CPU: CPU 0".to_string() } else { format!("CPUs: 0-{}", n_cpus - 1) }
        );
        Err(Invalid { place, message })
    };
    for (index, task) in workload.tasks.iter().enumerate() {
        if let Some(cpu) = task.affinity.as_ref().and_then(beyond) {
            let who = format!("task `{}` wants to run on", task.name);
            return fault(Place::Affinity(index), who, cpu.0);
        }
        if let Some(cpu) = task.start_cpu.filter(|cpu| *cpu as usize >= n_cpus) {
            return fault(Place::Task(index), format!("task `{}` starts on", task.name), cpu);
        }
    }
    for (program, ops) in workload.programs.iter().map(|program| &program.ops).enumerate() {
        for (op, operation) in ops.iter().enumerate() {
            if let Op::SetAffinity(cpus) = operation
                && let Some(cpu) = beyond(cpus)
            {
                let who = "this operation moves its task to".to_string();
                return fault(Place::Op { program, op }, who, cpu.0);
            }
        }
    }
    Ok(())
}
