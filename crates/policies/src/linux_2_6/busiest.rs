// SPDX-License-Identifier: GPL-2.0-only
//! Which CPU a CPU pulls tasks from, and how many.

/// The load that a CPU with `present` tasks, which had `before` when it last balanced, counts for
/// itself.
///
/// Source: 2.6.0-test1 and 2.6.6 `sched.c` `find_busiest_queue`; spec linux-2.6-spa §4.1
/// load_balance step 1.
pub(crate) fn own_load(present: u32, before: u32, idle: bool) -> u32 {
    if idle || present > before { present } else { before }
}

/// The first of `cpus` but `this` with the most tasks, two at least, and that number. A busy CPU
/// takes the smaller of the present and the last number.
///
/// `nr_running` is the run-queue length of each CPU; `prev_load` what `this` saw last time.
///
/// Source: 2.6.0-test1 and 2.6.6 `sched.c` `find_busiest_queue`; spec linux-2.6-spa §4.1
/// load_balance step 2.
pub(crate) fn busiest_queue(
    this: usize,
    idle: bool,
    cpus: impl Iterator<Item = usize>,
    nr_running: impl Fn(usize) -> u32,
    prev_load: &mut [u32],
) -> Option<(usize, u32)> {
    let (mut busiest, mut max_load) = (None, 1);
    for cpu in cpus {
        let (length, prev) = (nr_running(cpu), &mut prev_load[cpu]);
        let load = if idle || length < *prev { length } else { *prev };
        *prev = length;
        if cpu != this && load > max_load {
            (busiest, max_load) = (Some(cpu), load);
        }
    }
    Some((busiest?, max_load))
}

/// Number of tasks that a busy CPU of load `mine` pulls from one of load `max`; none = too few to
/// bother. 0 means, by the kernel's loop, all there are (spec linux-2.6-spa §6 Q7).
///
/// Source: 2.6.0 and 2.6.6 `sched.c` `find_busiest_queue`; spec linux-2.6-spa §4.1 load_balance
/// step 3.
pub(crate) fn busy_imbalance(max: u32, mine: u32) -> Option<i64> {
    let (max, mine) = (i64::from(max), i64::from(mine));
    let imbalance = max - mine;
    (4 * imbalance >= max).then_some(imbalance / 2)
}

/// The CPU to pull from and the budget of pulls, which means nothing to an idle CPU; none =
/// nowhere. Arguments as of [`busiest_queue`].
///
/// Source: 2.6.6 `sched.c` `find_busiest_queue`; spec linux-2.6-spa §4.1 load_balance steps 1 to 3.
pub(crate) fn find_busiest(
    this: usize,
    idle: bool,
    cpus: impl Iterator<Item = usize>,
    nr_running: impl Fn(usize) -> u32,
    prev_load: &mut [u32],
) -> Option<(usize, i64)> {
    let mine = own_load(nr_running(this), prev_load[this], idle);
    let (busiest, max) = busiest_queue(this, idle, cpus, &nr_running, prev_load)?;
    let budget = if idle { 1 } else { busy_imbalance(max, mine)? };
    (nr_running(busiest) > mine).then_some((busiest, budget))
}
