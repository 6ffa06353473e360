// SPDX-License-Identifier: GPL-2.0-only
//! What a play refuses, and what it plays by something else that must be told.

use schedlab_policy_api::SchedClass;
use schedlab_workload::ir::{Op, ProcessSpec, Workload};
use schedlab_workload::{Invalid, Place};

use crate::lender::AVAILABLE;

/// The first thing that no kernel can play, with its place.
pub(crate) fn refusal(workload: &Workload) -> Option<Invalid> {
    let message = "SCHED_ISO is a class of the BFS and staircase patches; this kernel has none";
    let refuse = |place| Some(Invalid { place, message: message.to_string() });
    for (index, spec) in workload.tasks.iter().enumerate() {
        if spec.sched.is_some_and(|sched| sched.class == SchedClass::Iso) {
            return refuse(Place::Task(index));
        }
    }
    for (program, text) in workload.programs.iter().enumerate() {
        for (op, what) in text.ops.iter().enumerate() {
            if let Op::SetSched(sched) = what
                && sched.class == SchedClass::Iso
            {
                return refuse(Place::Op { program, op });
            }
        }
    }
    None
}

/// What is played by something else, one sentence each.
pub(crate) fn stand_ins(workload: &Workload) -> Vec<String> {
    let ops = || workload.programs.iter().flat_map(|program| &program.ops);
    let mut remarks = Vec::new();
    let mut tell = |applies: bool, text: &str| {
        if applies {
            remarks.push(text.to_string());
        }
    };
    let processes_differ = if AVAILABLE {
        "processes share one address space: a switch between them flushes no TLB, and a fork copies \
         no page tables"
    } else {
        "processes are played as threads of one process on this architecture: switches between \
         them change no address space"
    };
    let forks = ops().any(|op| match op {
        Op::Fork { template, thread: false } => {
            workload.tasks[template.0 as usize].process == ProcessSpec::Own
        }
        _ => false,
    });
    let own = workload.tasks.iter().filter(|t| t.at_start && t.process == ProcessSpec::Own);
    tell(forks || own.count() > 1, processes_differ);
    tell(
        workload.tasks.iter().any(|task| task.process == ProcessSpec::Kernel),
        "kernel threads are played as threads of a process, which have an address space",
    );
    tell(
        ops().any(|op| matches!(op, Op::Exec)),
        "exec is balanced, but the program image stays: the kernel refuses a file of no known format",
    );
    tell(
        ops().any(|op| matches!(op, Op::Kernel(_) | Op::SignalTaking { .. })),
        "work in the kernel is played in user mode, where it can be preempted",
    );
    tell(
        ops().any(|op| matches!(op, Op::Disk(_))),
        "waits for disks are played as timer sleeps: interruptible, ended by a timer interrupt",
    );
    tell(
        ops().any(|op| matches!(op, Op::Interrupt { .. })),
        "interrupts of devices are played as timers that expire at the same instants",
    );
    remarks
}
