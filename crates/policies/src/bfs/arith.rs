// SPDX-License-Identifier: GPL-2.0-only
//! The arithmetic of BFS: ratios of nice values, deadline offsets, charges, PRI.
//!
//! "ms" of the source are 2^20 ns and its "µs" are 2^10 ns; conversions are shifts.

/// Number of user priorities, nice −20 to 19.
pub(super) const N_USER_PRIO: usize = 40;

/// Below this quota, in 1024-ns units, a task that leaves its CPU gets a new deadline.
///
/// Source: 0.357 `sched_bfs.c` RESCHED_US; spec §2.
pub(super) const RESCHED_US: i32 = 100;

/// Ratio of the deadline offset of each user priority to that of nice −20, times 128.
///
/// Source: 0.357 `sched_bfs.c` `sched_init` (`prio_ratios`); spec §2.
pub(super) const PRIO_RATIOS: [i32; N_USER_PRIO] = prio_ratios();

const fn prio_ratios() -> [i32; N_USER_PRIO] {
    let mut ratios = [128; N_USER_PRIO];
    let mut i = 1;
    while i < N_USER_PRIO {
        ratios[i] = ratios[i - 1] * 11 / 10;
        i += 1;
    }
    ratios
}

/// The default interval of 6 on a machine of `n_cpus`.
///
/// Source: 0.357 `sched_bfs.c` `sched_init_smp`; spec §2.
pub(super) fn scaled_rr_interval(n_cpus: usize) -> i32 {
    let n = n_cpus as i32;
    6 * (4 * n + 4) / (n + 6)
}

/// Quota of a task in 1024-ns units at interval `rr`.
///
/// Source: 0.357 `sched_bfs.c` `timeslice`; spec §2.
pub(super) fn quota(rr: i32) -> i32 {
    rr * 1024
}

/// Offset of a new deadline in ns at user priority `user`; at most 2^43 when `wide`.
///
/// The kernel multiplies 32-bit numbers and sign-extends the product; `wide` does not wrap.
///
/// Source: 0.357 `sched_bfs.c` `prio_deadline_diff`; spec §2, quirk Q9.
pub(super) fn deadline_offset(user: usize, rr: i32, wide: bool) -> u64 {
    let ratio = PRIO_RATIOS[user];
    if wide {
        ratio as u64 * rr as u64 * 8192
    } else {
        i64::from(ratio.wrapping_mul(rr).wrapping_mul(8192)) as u64
    }
}

/// Weight of a distance between CPUs for user priority `user`, in ms by origin, in ns by use.
///
/// Source: 0.357 `sched_bfs.c` `task_timeslice`; spec §2, quirk Q4.
pub(super) fn locality_weight(user: usize, rr: i32) -> u64 {
    (rr * PRIO_RATIOS[user] / 128) as u64
}

/// What `sched_rr_get_interval` tells a task of user priority `user` that is not FIFO, in ns.
///
/// Source: 0.357 `sched_bfs.c` `sys_sched_rr_get_interval`; spec §4.16.
pub(super) fn shown_interval(user: usize, rr: i32) -> u64 {
    locality_weight(user, rr) << 20
}

/// Charge in 1024-ns units for the time from `last_ran` to `clock`; what is not between 1 ns and
/// two ticks of `tick_ns` counts as nothing.
///
/// Source: 0.357 `sched_bfs.c` `update_cpu_clock`; spec §4.0.
pub(super) fn charge(clock: u64, last_ran: u64, tick_ns: u64) -> i32 {
    let span = clock.wrapping_sub(last_ran) as i64;
    // A tick is at most a second, so the shifted span is small.
    if span < 1 || span > 2 * tick_ns as i64 { 0 } else { (span >> 10) as i32 }
}

/// Everything that PRI of `ps` depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pri {
    /// Priority of the queue.
    pub(super) prio: u8,
    /// Deadline of the task record less the common time, modulo 2^64.
    pub(super) ahead: u64,
    /// Offset of nice 19.
    pub(super) longest: u64,
    /// Whether the scale is the one of the fork-depth patch, 4 instead of 40.
    pub(super) depth_scale: bool,
    /// Whether the class is IDLEPRIO.
    pub(super) idleprio: bool,
}

impl Pri {
    /// The number that user space sees.
    ///
    /// The kernel keeps the low 32 bits of the distance, so a deadline in the past is negative. A
    /// `longest` that wrapped to nothing leaves the distance out (the spec settles only rr < 52).
    ///
    /// Source: 0.357 `sched_bfs.c` `task_prio`; spec §4.16.
    pub(super) fn shown(self) -> i64 {
        let base = i64::from(self.prio) - 100;
        if base <= 0 {
            return base;
        }
        let scale = if self.depth_scale { 4 } else { 40 };
        let longest = self.longest as i64 >> 20;
        let distance = i64::from((self.ahead >> 20) as i32);
        let distance = (distance * scale).checked_div(longest).unwrap_or(0);
        base + distance.max(0) + if self.idleprio { 40 } else { 0 }
    }
}
