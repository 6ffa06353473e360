// SPDX-License-Identifier: GPL-2.0-only
//! Periodic balancing: one attempt at one level, and when attempts are made.
//!
//! Tasks to be moved are written to a plan; the policy carries it out after the walk. A walk ends
//! with the first level that moves something, because the moves take effect only after the hook;
//! the levels above have their turn at the next tick (decision 0122).
//! Source: v6.12 `fair.c` `sched_balance_rq`, `sched_balance_domains`; spec cfs-eevdf §4E.

use alloc::vec::Vec;

use schedlab_policy_api::Ctx;
use schedlab_units::{CpuId, TaskId};

use super::Fair;
use super::detach::{Env, Migration};
use super::domains::Level;

/// Tasks to be moved and whither, in the order of moving.
pub(crate) type Plan = Vec<(TaskId, CpuId)>;

/// State of a CPU that balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleType {
    /// It has work.
    NotIdle,
    /// It idles.
    Idle,
    /// It is about to idle.
    NewlyIdle,
}

impl IdleType {
    /// Whether the CPU has no work.
    pub(crate) fn is_idle(self) -> bool {
        self != Self::NotIdle
    }
}

/// How an attempt ended.
enum Outcome {
    /// There was an imbalance: this many tasks move, or the running one is asked for.
    Unbalanced { moved: usize, asked: bool },
    /// Nothing is to be done.
    Balanced,
    /// The tasks that should move may not.
    AllPinned,
    /// The running task that should move may not.
    OnePinned,
}

impl Fair {
    /// Periodic balancing of `cpu`, called at its tick.
    ///
    /// Source: v6.12 `fair.c` `sched_balance_trigger`, `sched_balance_softirq`.
    pub(crate) fn balance_tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, plan: &mut Plan) {
        let due = self.cpu(cpu).next_balance;
        if due.after(cx.jiffies) || self.domains.levels.is_empty() {
            return;
        }
        self.update_blocked_averages(cx.now.as_ns(), cpu);
        let idle = if self.idle_cpu(cx, cpu) { IdleType::Idle } else { IdleType::NotIdle };
        self.balance_domains(cx, cpu, idle, plan);
    }

    /// Source: v6.12 `fair.c` `sched_balance_domains`.
    fn balance_domains(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, idle: IdleType, plan: &mut Plan) {
        let busy = idle == IdleType::NotIdle && !self.only_idle.contains(cpu);
        let mut next_balance = cx.jiffies.wrapping_add(60 * self.hz);
        let (mut go_on, mut need_decay, mut max_cost) = (true, false, 0);
        for level in 0..self.domains.levels.len() {
            let hz = self.hz;
            let domain = self.domains.domain_mut(cpu, level);
            need_decay = domain.note_cost(cx.jiffies, hz, 0);
            max_cost += domain.max_newidle_lb_cost;
            if !go_on {
                if need_decay {
                    continue;
                }
                break;
            }
            let interval = self.domains.interval(cpu, level, busy, hz);
            let last = self.domains.domain(cpu, level).last_balance;
            if !last.wrapping_add(interval).after(cx.jiffies) {
                let (moved, more) = self.balance_rq(cx, cpu, level, idle, plan);
                go_on = more;
                self.domains.domain_mut(cpu, level).last_balance = cx.jiffies;
                if moved > 0 {
                    self.stats.periodic_pulled += moved as u64;
                    next_balance = cx.jiffies;
                    break;
                }
            }
            let interval = self.domains.interval(cpu, level, busy, hz);
            let due = self.domains.domain(cpu, level).last_balance.wrapping_add(interval);
            if next_balance.after(due) {
                next_balance = due;
            }
        }
        let floor = self.knobs.migration_cost;
        let this = self.cpu_mut(cpu);
        if need_decay {
            this.max_idle_balance_cost = floor.max(max_cost);
        }
        this.next_balance = next_balance;
    }

    /// One attempt to pull tasks to `this_cpu` within its domain at `level`: how many will move,
    /// and whether levels above are worth a look.
    ///
    /// Source: v6.12 `fair.c` `sched_balance_rq`.
    pub(crate) fn balance_rq(
        &mut self,
        cx: &mut Ctx<'_>,
        this_cpu: CpuId,
        level: usize,
        idle: IdleType,
        plan: &mut Plan,
    ) -> (usize, bool) {
        let mut env = Env {
            level,
            cpu: this_cpu,
            dst_cpu: this_cpu,
            src_cpu: this_cpu,
            idle,
            cpus: *self.domains.levels[level].span(this_cpu),
            imbalance: 0,
            migration: Migration::Load,
            some_pinned: false,
            all_pinned: false,
            new_dst_cpu: None,
            loops: 0,
            loops_max: 0,
            src_nr_running: 0,
        };
        let (outcome, go_on) = self.attempt(cx, &mut env, plan);
        let newly_idle = idle == IdleType::NewlyIdle;
        let Level { span_weight, .. } = self.domains.levels[level];
        if matches!(outcome, Outcome::Balanced) && !env.all_pinned {
            self.set_parent_imbalance(this_cpu, level, false);
        }
        let again = self.need_active_balance(&env);
        let domain = self.domains.domain_mut(this_cpu, level);
        match outcome {
            Outcome::Unbalanced { moved, asked } => {
                if moved > 0 {
                    domain.nr_balance_failed = 0;
                }
                if !asked || again {
                    domain.balance_interval = span_weight;
                }
                return (moved, go_on);
            }
            Outcome::Balanced | Outcome::AllPinned => domain.nr_balance_failed = 0,
            Outcome::OnePinned => {}
        }
        const MAX_PINNED_INTERVAL: u64 = 512;
        let interval = domain.balance_interval;
        if !newly_idle
            && ((env.all_pinned && interval < MAX_PINNED_INTERVAL) || interval < 2 * span_weight)
        {
            domain.balance_interval *= 2;
        }
        (0, go_on)
    }

    fn attempt(&mut self, cx: &mut Ctx<'_>, env: &mut Env, plan: &mut Plan) -> (Outcome, bool) {
        let mut moved = 0;
        loop {
            if !self.should_we_balance(cx, env) {
                return (Outcome::Balanced, false);
            }
            let Some(group) = self.find_src_group(cx, env) else {
                return (Outcome::Balanced, true);
            };
            let Some(busiest) = self.find_src_cpu(env, group) else {
                return (Outcome::Balanced, true);
            };
            debug_assert_ne!(busiest, env.dst_cpu, "a CPU does not pull from itself");
            env.src_cpu = busiest;
            env.all_pinned = true;
            env.src_nr_running = self.cpu(busiest).nr_running;
            if env.src_nr_running <= 1 {
                break;
            }
            env.loops_max = self.knobs.nr_migrate.min(env.src_nr_running);
            moved += self.pull(cx, env, plan);
            if env.some_pinned && env.imbalance > 0 {
                self.set_parent_imbalance(env.cpu, env.level, true);
            }
            if !env.all_pinned {
                break;
            }
            env.cpus.remove(busiest);
            let level = &self.domains.levels[env.level];
            if env.cpus.is_subset(&level.groups[level.local(env.cpu)].span) {
                return (Outcome::AllPinned, true);
            }
            env.loops = 0;
        }
        if moved > 0 {
            return (Outcome::Unbalanced { moved, asked: false }, true);
        }
        let asked = match self.ask_for_running(cx, env) {
            Some(asked) => asked,
            None => return (Outcome::OnePinned, true),
        };
        (Outcome::Unbalanced { moved: 0, asked }, true)
    }

    /// Chooses tasks of the source CPU, first for the CPU that balances, then for others of its
    /// group which pinned tasks may use; returns how many.
    fn pull(&mut self, cx: &mut Ctx<'_>, env: &mut Env, plan: &mut Plan) -> usize {
        let mut moved = 0;
        loop {
            moved += self.detach_tasks(cx, env, plan);
            match env.new_dst_cpu.take() {
                Some(other) if env.imbalance > 0 => {
                    env.cpus.remove(env.dst_cpu);
                    env.dst_cpu = other;
                    env.loops = 0;
                }
                _ => return moved,
            }
        }
    }

    /// Nothing could be moved: counts the failure and, after enough of them, asks the busiest CPU
    /// for its running task. None when that may not come here.
    fn ask_for_running(&mut self, cx: &mut Ctx<'_>, env: &mut Env) -> Option<bool> {
        let cpu = env.cpu;
        if env.idle != IdleType::NewlyIdle {
            self.domains.domain_mut(cpu, env.level).nr_balance_failed += 1;
        }
        if !self.need_active_balance(env) {
            return Some(false);
        }
        let busiest = env.src_cpu;
        let running = cx.curr(busiest);
        if running.is_some_and(|task| !cx.tasks.get(task).affinity.contains(cpu)) {
            return None;
        }
        env.all_pinned = false;
        let push_cpu = &mut self.cpu_mut(busiest).push_cpu;
        let asked = push_cpu.is_none();
        if asked {
            *push_cpu = Some(cpu);
            cx.resched(busiest);
        }
        Some(asked)
    }

    /// Source: v6.12 `fair.c` `need_active_balance`.
    fn need_active_balance(&self, env: &Env) -> bool {
        let level = &self.domains.levels[env.level];
        let failed = self.domains.domain(env.cpu, env.level).nr_balance_failed;
        if env.migration == Migration::Task && failed > level.cache_nice_tries + 2 {
            return true;
        }
        let (src, dst) = (self.cpu(env.src_cpu), self.cpu(env.dst_cpu));
        env.idle.is_idle()
            && src.nr == 1
            && self.is_reduced(env.src_cpu, level.imbalance_pct)
            && src.capacity * level.imbalance_pct < dst.capacity * 100
    }

    /// Whether `env.dst_cpu` is the one CPU of its group that balances: its first idle CPU, on an
    /// idle core if there is one, else its first CPU.
    ///
    /// Source: v6.12 `fair.c` `should_we_balance`.
    fn should_we_balance(&self, cx: &mut Ctx<'_>, env: &Env) -> bool {
        let dst = env.dst_cpu;
        if !env.cpus.contains(dst) {
            return false;
        }
        if env.idle == IdleType::NewlyIdle {
            return self.cpu(dst).nr_running == 0 && cx.wake_pending[dst.index()] == 0;
        }
        let level = &self.domains.levels[env.level];
        let group = level.groups[level.local(dst)].span;
        let mut left = group.intersection(&env.cpus);
        let mut idle_smt = None;
        while let Some(cpu) = left.intersection(&self.empty).first() {
            left.remove(cpu);
            if !self.idle_cpu(cx, cpu) {
                continue;
            }
            if !level.shares_capacity() && !self.is_core_idle(cx, cpu) {
                idle_smt = idle_smt.or(Some(cpu));
                left = left.difference(cx.topo.siblings(cpu));
                continue;
            }
            return cpu == dst;
        }
        idle_smt.or(group.first()) == Some(dst)
    }

    /// Tells the level above that affinities stand in the way, or no longer do.
    fn set_parent_imbalance(&mut self, cpu: CpuId, level: usize, imbalance: bool) {
        if let Some(parent) = self.domains.levels.get_mut(level + 1) {
            let local = parent.local(cpu);
            parent.groups[local].imbalance = imbalance;
        }
    }
}
