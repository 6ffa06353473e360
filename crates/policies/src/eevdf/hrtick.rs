// SPDX-License-Identifier: GPL-2.0-only
//! Timers that end slices between ticks (HRTICK). Their numbers are the CPUs'.

use schedlab_policy_api::Ctx;
use schedlab_units::{CpuId, Nanos, TaskId};

use super::Eevdf;
use crate::fair::Dialect;

/// Shortest time a slice timer is armed for, ns (kernel `hrtick_start`).
const HRTICK_MIN: u64 = 10_000;

impl Eevdf {
    /// Arms the slice timer of the fair task that runs on `cpu`, if others wait.
    ///
    /// Source: v6.12 `fair.c` `hrtick_start_fair`.
    pub(super) fn hrtick_start(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        if self.fair.cpu(cpu).nr <= 1 {
            return;
        }
        let entity = self.entity(task);
        let ran = entity.sum_exec - entity.prev_sum_exec;
        match entity.slice.checked_sub(ran) {
            Some(left) => cx.arm(cpu.0, cx.now + Nanos::from_ns(left.max(HRTICK_MIN))),
            None => cx.resched(cpu),
        }
    }

    /// [`Eevdf::hrtick_start`] after a task came or went.
    ///
    /// Source: v6.12 `fair.c` `hrtick_update`.
    pub(super) fn hrtick_update(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if self.own.knobs.hrtick
            && let Some(curr) = self.queued_curr(cpu)
        {
            self.hrtick_start(cx, cpu, curr);
        }
    }

    /// The slice timer of `cpu` expired.
    pub(super) fn hrtick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if let Some(curr) = self.queued_curr(cpu) {
            self.tick_fair(cx, cpu, curr);
            cx.resched(cpu);
        }
    }
}
