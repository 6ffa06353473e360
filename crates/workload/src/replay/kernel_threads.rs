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

/// Beginnings of names of threads that the kernel binds to a CPU, whose number follows.
const BOUND: [&str; 7] =
    ["ksoftirqd/", "ktimers/", "migration/", "rcuc/", "cpuhp/", "idle_inject/", "kworker/"];

/// The CPU to which the kernel binds a thread called `name`; none for other threads.
///
/// `kworker/3:1` belongs to CPU 3, `kworker/u16:1` to none.
pub(super) fn bound_cpu(name: &str) -> Option<u32> {
    let rest = BOUND.iter().find_map(|start| name.strip_prefix(start))?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = rest.split_at(digits);
    let ends = rest.is_empty() || (name.starts_with("kworker/") && rest.starts_with([':', 'H']));
    number.parse().ok().filter(|_| ends)
}

/// Whether `name` is that of a program that records schedulers.
pub(super) fn is_recorder(name: &str) -> bool {
    matches!(name, "perf" | "perf-exec" | "trace-cmd")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_threads_are_told_by_their_names() {
        for (name, cpu) in [
            ("ksoftirqd/2", Some(2)),
            ("migration/11", Some(11)),
            ("kworker/3:1", Some(3)),
            ("kworker/1:1H-kblockd", Some(1)),
            ("kworker/u16:0", None),
            ("kworker/R-mm_percpu", None),
            ("rcu_preempt", None),
            ("migration/", None),
            ("ksoftirqd/2x", None),
            ("sh", None),
        ] {
            assert_eq!(bound_cpu(name), cpu, "{name}");
        }
    }
}
