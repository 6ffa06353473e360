// SPDX-License-Identifier: GPL-2.0-only
//! Which threads belong to the kernel: recordings do not say, names do.

/// Names, or beginnings of names, that only kernel threads have.
const NAMES: [&str; 31] = [
    "kthreadd",
    "kworker/",
    "ksoftirqd/",
    "ktimers/",
    "migration/",
    "stopper/",
    "rcu_",
    "rcub/",
    "rcuc/",
    "rcuo",
    "cpuhp/",
    "idle_inject/",
    "irq/",
    "irq_work/",
    "watchdog",
    "kswapd",
    "kcompactd",
    "khugepaged",
    "ksmd",
    "kdevtmpfs",
    "kauditd",
    "khungtaskd",
    "oom_reaper",
    "writeback",
    "kblockd",
    "jbd2/",
    "xfsaild/",
    "scsi_eh_",
    "pool_workqueue_",
    "kthrotld",
    "psimon",
];

/// Names of threads that the kernel wakes from interrupts only, whatever runs there.
const INTERRUPT_DRIVEN: [&str; 5] = ["ksoftirqd/", "ktimers/", "rcu_preempt", "rcu_sched", "rcuc/"];

/// Whether a thread called `name` belongs to the kernel.
pub(super) fn is_kernel_thread(name: &str) -> bool {
    NAMES.iter().any(|n| name.starts_with(n))
}

/// Whether wake-ups of a thread called `name` come from interrupts.
pub(super) fn is_interrupt_driven(name: &str) -> bool {
    INTERRUPT_DRIVEN.iter().any(|n| name.starts_with(n))
}

/// Whether `name` is that of a program that records schedulers.
pub(super) fn is_recorder(name: &str) -> bool {
    matches!(name, "perf" | "perf-exec" | "trace-cmd")
}
