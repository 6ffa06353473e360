// SPDX-License-Identifier: GPL-2.0-only
//! Per-entity load tracking: geometric averages of being runnable and of running.
//!
//! Time is cut into windows of 1024 × 1024 ns. A window that lies n windows back counts y^n, with
//! y^32 = 1/2. Source: v6.12 `pelt.c`; spec cfs-eevdf §3.

use schedlab_units::kmath::mul_u64_u32_shr;

/// Windows after which a contribution has halved.
const LOAD_AVG_PERIOD: u64 = 32;
/// Limit of the geometric series 1024 · Σ y^n.
const LOAD_AVG_MAX: u64 = 47742;
/// Smallest value that a sum of full windows is divided by.
pub(crate) const PELT_MIN_DIVIDER: u64 = LOAD_AVG_MAX - 1024;
/// Sums of `runnable` and `util` are scaled by 2^10.
const CAPACITY_SHIFT: u32 = 10;
/// Marks that `util_avg` has not changed since the estimate was stored.
const UTIL_AVG_UNCHANGED: u32 = 1 << 31;
/// Estimates nearer than this are left alone: 1 % of a CPU.
const UTIL_EST_MARGIN: u64 = 1024 / 100;

/// y^n for n = 0 … 31, in 0.32 fixed point.
const YN_INV: [u32; 32] = [
    0xffff_ffff,
    0xfa83_b2da,
    0xf525_7d14,
    0xefe4_b99a,
    0xeac0_c6e6,
    0xe5b9_06e6,
    0xe0cc_deeb,
    0xdbfb_b796,
    0xd744_fcc9,
    0xd2a8_1d91,
    0xce24_8c14,
    0xc9b9_bd85,
    0xc567_2a10,
    0xc12c_4cc9,
    0xbd08_a39e,
    0xb8fb_af46,
    0xb504_f333,
    0xb123_f581,
    0xad58_3ee9,
    0xa9a1_5ab4,
    0xa5fe_d6a9,
    0xa270_4302,
    0x9ef5_325f,
    0x9b8d_39b9,
    0x9837_f050,
    0x94f4_efa8,
    0x91c3_d373,
    0x8ea4_398a,
    0x8b95_c1e3,
    0x8898_0e80,
    0x85aa_c367,
    0x82cd_8698,
];

/// `x · y^n`.
///
/// Source: v6.12 `pelt.c` `decay_load`.
#[inline]
pub(crate) fn decay_load(x: u64, n: u64) -> u64 {
    if n > LOAD_AVG_PERIOD * 63 {
        return 0;
    }
    // y^n = 1/2^(n/32) · y^(n mod 32)
    mul_u64_u32_shr(x >> (n / LOAD_AVG_PERIOD), YN_INV[(n % LOAD_AVG_PERIOD) as usize], 32)
}

/// Contribution of a stretch that ends `d3` units into a window, crosses `periods` ≥ 1 window ends
/// and began `d1` units before the first of them.
///
/// d1·y^p + 1024·Σ_{n=1}^{p−1} y^n + d3, the middle sum as a difference of the full series.
///
/// Source: v6.12 `pelt.c` `__accumulate_pelt_segments`.
pub(crate) fn accumulate_segments(periods: u64, d1: u64, d3: u64) -> u64 {
    let full = LOAD_AVG_MAX - decay_load(LOAD_AVG_MAX, periods) - 1024;
    decay_load(d1, periods) + full + d3
}

/// Tracked load of a task or of a queue (kernel `struct sched_avg`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchedAvg {
    /// Time up to which the sums are complete, ns; 0 = attached to no queue.
    pub(crate) last_update_time: u64,
    /// Weighted time runnable; of a task without its weight.
    pub(crate) load_sum: u64,
    /// Time runnable × number runnable, scaled.
    pub(crate) runnable_sum: u64,
    /// Time running, scaled.
    pub(crate) util_sum: u64,
    /// Units of the current window that are accounted for, 0 … 1023.
    pub(crate) period_contrib: u64,
    /// Weight × share of time runnable.
    pub(crate) load_avg: u64,
    /// Number runnable on average × 1024.
    pub(crate) runnable_avg: u64,
    /// Share of time running × 1024.
    pub(crate) util_avg: u64,
    /// Estimated utilization after the last activation, with [`UTIL_AVG_UNCHANGED`].
    util_est: u32,
}

impl SchedAvg {
    /// The tracked load of a new task: full load, nothing else.
    ///
    /// Source: v6.12 `fair.c` `init_entity_runnable_average`.
    pub(crate) fn new_task(weight: u64) -> Self {
        Self { load_avg: weight, ..Self::default() }
    }

    /// What the sums would be had everything been 1 up to now.
    #[inline]
    pub(crate) fn divider(&self) -> u64 {
        PELT_MIN_DIVIDER + self.period_contrib
    }

    /// Brings the sums up to `now`, during which `load`, `runnable` and `running` were constant;
    /// true when a window ended, so that the averages are to be renewed.
    ///
    /// Source: v6.12 `pelt.c` `___update_load_sum`, `accumulate_sum`.
    #[inline]
    pub(crate) fn update_sum(&mut self, now: u64, load: u64, runnable: u64, running: bool) -> bool {
        // Most hooks of an instant find the sums complete. The difference wraps when time has gone
        // back, and then it is large.
        now.wrapping_sub(self.last_update_time) >= 1024
            && self.advance_sum(now, load, runnable, running)
    }

    /// [`SchedAvg::update_sum`] where a unit of time or more has passed, or less than none.
    fn advance_sum(&mut self, now: u64, load: u64, runnable: u64, running: bool) -> bool {
        if now < self.last_update_time {
            self.last_update_time = now;
            return false;
        }
        let units = (now - self.last_update_time) >> 10;
        self.last_update_time += units << 10;
        let (runnable, running) = if load == 0 { (0, false) } else { (runnable, running) };
        let position = units + self.period_contrib;
        let periods = position / 1024;
        let mut contribution = units;
        if periods > 0 {
            self.load_sum = decay_load(self.load_sum, periods);
            self.runnable_sum = decay_load(self.runnable_sum, periods);
            self.util_sum = decay_load(self.util_sum, periods);
            if load != 0 {
                let d1 = 1024 - self.period_contrib;
                contribution = accumulate_segments(periods, d1, position % 1024);
            }
        }
        self.period_contrib = position % 1024;
        if load != 0 {
            self.load_sum = self.load_sum.wrapping_add(load * contribution);
            self.runnable_sum += (runnable * contribution) << CAPACITY_SHIFT;
            self.util_sum += (u64::from(running) * contribution) << CAPACITY_SHIFT;
        }
        periods > 0
    }

    /// Renews the averages; `weight` multiplies the load.
    ///
    /// The load of a task that changes between SCHED_IDLE, a real-time class and nice −20 time and
    /// again grows without bound, as in the kernel, whose products wrap here and below.
    ///
    /// Source: v6.12 `pelt.c` `___update_load_avg`.
    pub(crate) fn update_avg(&mut self, weight: u64) {
        let divider = self.divider();
        self.load_avg = weight.wrapping_mul(self.load_sum) / divider;
        self.runnable_avg = self.runnable_sum / divider;
        self.util_avg = self.util_sum / divider;
    }

    /// Adds the share of `task` to a queue's tracked load; `weight` in table units.
    ///
    /// The task's sums are rebuilt to fit the queue's window.
    ///
    /// Source: v6.12 `fair.c` `attach_entity_load_avg`.
    pub(crate) fn attach(&mut self, task: &mut Self, weight: u64) {
        let divider = self.divider();
        task.last_update_time = self.last_update_time;
        task.period_contrib = self.period_contrib;
        task.util_sum = task.util_avg * divider;
        task.runnable_sum = task.runnable_avg * divider;
        let load_sum = task.load_avg.wrapping_mul(divider);
        task.load_sum = if weight < load_sum { load_sum / weight } else { 1 };
        self.add_load(task, weight);
        self.util_avg += task.util_avg;
        self.util_sum += task.util_sum;
        self.runnable_avg += task.runnable_avg;
        self.runnable_sum += task.runnable_sum;
    }

    /// Takes the share of `task` out of a queue's tracked load; `weight` in table units.
    ///
    /// Source: v6.12 `fair.c` `detach_entity_load_avg`.
    pub(crate) fn detach(&mut self, task: &Self, weight: u64) {
        self.sub_load(task, weight);
        self.util_avg = self.util_avg.saturating_sub(task.util_avg);
        self.util_sum = above_divider(self.util_sum.saturating_sub(task.util_sum), self.util_avg);
        self.runnable_avg = self.runnable_avg.saturating_sub(task.runnable_avg);
        let sum = self.runnable_sum.saturating_sub(task.runnable_sum);
        self.runnable_sum = above_divider(sum, self.runnable_avg);
    }

    /// Adds the weighted load of `task` alone.
    ///
    /// Source: v6.12 `fair.c` `enqueue_load_avg`.
    pub(crate) fn add_load(&mut self, task: &Self, weight: u64) {
        self.load_avg += task.load_avg;
        self.load_sum = self.load_sum.wrapping_add(weight.wrapping_mul(task.load_sum));
    }

    /// Takes out the weighted load of `task` alone.
    ///
    /// Source: v6.12 `fair.c` `dequeue_load_avg`.
    pub(crate) fn sub_load(&mut self, task: &Self, weight: u64) {
        self.load_avg = self.load_avg.saturating_sub(task.load_avg);
        let sum = self.load_sum.saturating_sub(weight.wrapping_mul(task.load_sum));
        self.load_sum = above_divider(sum, self.load_avg);
    }

    /// Takes out averages that left from afar while the queue was not looked at.
    ///
    /// Source: v6.12 `fair.c` `update_cfs_rq_load_avg`.
    pub(crate) fn remove(&mut self, gone: &Removed) {
        let divider = self.divider();
        let take = |avg: &mut u64, sum: &mut u64, gone: u64| {
            *avg = avg.saturating_sub(gone);
            *sum = above_divider(sum.saturating_sub(gone.wrapping_mul(divider)), *avg);
        };
        take(&mut self.load_avg, &mut self.load_sum, gone.load_avg);
        take(&mut self.util_avg, &mut self.util_sum, gone.util_avg);
        take(&mut self.runnable_avg, &mut self.runnable_sum, gone.runnable_avg);
    }

    /// Utilization estimated from past activations (`_task_util_est`, a queue's `util_est`).
    #[inline]
    pub(crate) fn util_est(&self) -> u64 {
        u64::from(self.util_est & !UTIL_AVG_UNCHANGED)
    }
    /// The larger of estimate and average (`task_util_est`).
    pub(crate) fn util_est_or_avg(&self) -> u64 {
        self.util_avg.max(self.util_est())
    }
    /// Adds a task's estimate to a queue's (`util_est_enqueue`).
    pub(crate) fn util_est_add(&mut self, task: u64) {
        self.util_est += task as u32;
    }
    /// Takes a task's estimate out of a queue's (`util_est_dequeue`).
    pub(crate) fn util_est_sub(&mut self, task: u64) {
        self.util_est = self.util_est.saturating_sub(task as u32);
    }
    /// Notes that `util_avg` was renewed (`cfs_se_util_change`).
    #[inline]
    pub(crate) fn util_est_changed(&mut self) {
        self.util_est &= !UTIL_AVG_UNCHANGED;
    }
    /// Renews the estimate when the task goes to sleep: at once upwards, by a quarter downwards.
    ///
    /// Source: v6.12 `fair.c` `util_est_update`.
    pub(crate) fn util_est_update(&mut self) {
        if self.util_est & UTIL_AVG_UNCHANGED != 0 {
            return;
        }
        let (old, seen) = (self.util_est(), self.util_avg);
        let new = if old <= seen {
            seen
        } else if old - seen < UTIL_EST_MARGIN {
            old
        } else if seen > 1024 {
            return;
        } else if seen + UTIL_EST_MARGIN < self.runnable_avg {
            // It waited: what it used is less than what it wanted.
            old
        } else {
            (4 * old - (old - seen)) / 4
        };
        self.util_est = new as u32 | UTIL_AVG_UNCHANGED;
    }
}

/// A sum that rounding has not pushed below what its average needs at least.
///
/// The kernel takes the larger of the two as 32-bit numbers, so the sum of more than 87 nice 0
/// tasks on one CPU loses its high bits whenever one of them is taken out (decision 0121).
///
/// Source: v6.12 `fair.c` `max_t(u32, …)` in `dequeue_load_avg` and `detach_entity_load_avg`.
fn above_divider(sum: u64, avg: u64) -> u64 {
    u64::from((sum as u32).max(avg.wrapping_mul(PELT_MIN_DIVIDER) as u32))
}

/// Averages of tasks that were woken onto other CPUs, to be taken out at the next update.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Removed {
    /// How many.
    pub(crate) n: u32,
    load_avg: u64,
    util_avg: u64,
    runnable_avg: u64,
}

impl Removed {
    /// Adds a task that has left.
    pub(crate) fn add(&mut self, task: &SchedAvg) {
        self.n += 1;
        self.load_avg += task.load_avg;
        self.util_avg += task.util_avg;
        self.runnable_avg += task.runnable_avg;
    }
}

#[cfg(test)]
mod tests {
    //! Rows of cfs-eevdf §9, and more.

    use super::*;
    use crate::csv::rows;

    #[test]
    fn vectors_72_pelt_decay_and_segments() {
        for row in rows(include_str!("../eevdf/vectors/t12-pelt.csv")) {
            let got = match row.try_get("c") {
                Some(d3) => accumulate_segments(row.get("a"), row.get("b"), d3),
                None => decay_load(row.get("a"), row.get("b")),
            };
            assert_eq!(got, row.get::<u64>("result"), "row {}", row.text("row"));
        }
    }

    /// A nice 0 task from zero, phases one after the other.
    #[test]
    fn vectors_73_pelt_phases() {
        let (mut avg, mut now) = (SchedAvg::default(), 0);
        for row in rows(include_str!("../eevdf/vectors/t12-pelt-phases.csv")) {
            let (ms, load) = (row.get::<u64>("ms"), row.get("runnable"));
            now += ms * 1_000_000;
            assert!(avg.update_sum(now, load, load, load == 1));
            avg.update_avg(1024);
            let got = (avg.load_sum, avg.period_contrib, avg.load_avg);
            assert_eq!(
                got,
                (row.get("sum"), row.get("period_contrib"), row.get("load_avg")),
                "row {}: {ms} ms",
                row.text("row")
            );
        }
    }

    #[test]
    fn load_that_outgrows_its_word_wraps() {
        let mut queue = SchedAvg { last_update_time: 5_000_000, ..SchedAvg::default() };
        let mut task = SchedAvg { load_sum: 1 << 50, ..SchedAvg::default() };
        task.update_avg(88_761);
        assert_eq!(task.load_avg, 88_761_u64.wrapping_mul(1 << 50) / task.divider());
        queue.attach(&mut task, 3);
        queue.sub_load(&task, 3);
        assert_eq!(queue.load_avg, 0);
    }

    #[test]
    fn decay_of_many_periods_is_zero() {
        assert_eq!(decay_load(u64::MAX, 2017), 0);
        assert_eq!(decay_load(u64::MAX, u64::MAX), 0);
        assert!(decay_load(u64::MAX, 2016) <= 1);
    }

    #[test]
    fn util_est_rises_at_once_and_falls_slowly() {
        let mut avg = SchedAvg { util_avg: 400, ..SchedAvg::default() };
        avg.util_est_update();
        assert_eq!(avg.util_est(), 400);
        avg.util_avg = 0;
        avg.util_est_update();
        assert_eq!(avg.util_est(), 400, "nothing was renewed since");
        avg.util_est_changed();
        avg.util_est_update();
        assert_eq!(avg.util_est(), 300);
    }

    #[test]
    fn attached_load_leaves_with_its_task() {
        let mut queue = SchedAvg { last_update_time: 5_000_000, ..SchedAvg::default() };
        let mut task = SchedAvg { util_avg: 300, runnable_avg: 500, ..SchedAvg::new_task(1024) };
        queue.attach(&mut task, 1024);
        assert_eq!((queue.load_avg, queue.util_avg, queue.runnable_avg), (1024, 300, 500));
        let mut gone = Removed::default();
        gone.add(&task);
        let mut other = queue;
        queue.detach(&task, 1024);
        other.remove(&gone);
        assert_eq!((queue.load_avg, queue.util_avg, queue.runnable_avg), (0, 0, 0));
        assert_eq!(other.load_avg, 0);
    }
}
