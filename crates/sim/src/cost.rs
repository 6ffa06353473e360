// SPDX-License-Identifier: GPL-2.0-only
//! The cost model: how long the scheduler's own actions take, as data with sources.

use schedlab_policy_api::Distance;
use schedlab_units::{Located, Nanos};
use serde::Deserialize;
use thiserror::Error;

/// One figure with its origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The figure in ns.
    pub ns: u64,
    /// Where it comes from.
    #[serde(default)]
    pub source: String,
}

impl Cost {
    /// The figure.
    #[inline]
    pub const fn get(&self) -> Nanos {
        Nanos::from_ns(self.ns)
    }
}

/// A sleep state of an idle CPU.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleState {
    /// Its name.
    pub name: String,
    /// How long the CPU must have been idle to be in it.
    pub residency_ns: u64,
    /// How long it takes to leave it.
    pub exit_ns: u64,
    /// Where the figures come from.
    #[serde(default)]
    pub source: String,
}

/// What the scheduler's actions cost. A figure that is not given is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CostModel {
    /// Name in results; that of the file.
    #[serde(skip)]
    pub name: String,
    /// One line.
    pub about: String,
    /// A change of the current task.
    pub context_switch: Cost,
    /// `schedule` itself, under the lock.
    pub schedule: Cost,
    /// Each candidate that a choice looks at, under the lock.
    pub scan_per_candidate: Cost,
    /// A wake-up, under the lock, beyond the system call or interrupt that contains it.
    pub wakeup: Cost,
    /// Time that a wake-up holds the lock within the system call or interrupt that contains it.
    pub wakeup_lock: Cost,
    /// From sending an inter-processor interrupt to its arrival.
    pub kick_latency: Cost,
    /// Handling an interrupt other than the tick.
    pub interrupt: Cost,
    /// Handling the tick on a busy CPU.
    pub tick: Cost,
    /// `sched_yield`, between its decision and the `schedule` it leads to.
    pub sched_yield: Cost,
    /// Every operation of a task that enters the kernel.
    pub syscall: Cost,
    /// Refilling caches after a move to the core's other thread.
    pub refill_smt: Cost,
    /// After a move to another core of the same last-level cache.
    pub refill_llc: Cost,
    /// After a move to another last-level cache of the node.
    pub refill_node: Cost,
    /// After a move to another node.
    pub refill_remote: Cost,
    /// How much later than asked a sleep of a task that is not real-time ends.
    pub timer_slack: Cost,
    /// Whether sections under one lock exclude each other (waiters are served in order of asking).
    pub lock_contention: bool,
    /// Whether a wake-up by a timer or a device takes neither time nor the lock.
    pub free_interrupt_wakeups: bool,
    /// Idle states, from shallow to deep.
    pub idle_state: Vec<IdleState>,
}

impl CostModel {
    /// Names of the models that come with the program.
    pub const BUILT_IN: &'static [&'static str] = &["default", "zero"];

    /// The model in which nothing costs anything.
    pub fn zero() -> Self {
        Self { name: "zero".to_string(), ..Self::default() }
    }

    /// A model that comes with the program.
    pub fn built_in(name: &str) -> Option<Self> {
        let text = match name {
            "default" => include_str!("../costs/default.toml"),
            "zero" => include_str!("../costs/zero.toml"),
            _ => return None,
        };
        let model = Self::parse(name, text);
        Some(model.expect("the models of the program are well formed"))
    }

    /// Reads a model from TOML text; `name` is how results call it.
    ///
    /// # Errors
    /// [`CostError`] with the place and what is wrong.
    pub fn parse(name: &str, text: &str) -> Result<Self, CostError> {
        let mut model: Self = toml::from_str(text).map_err(|error| {
            let message = error.message().to_string();
            CostError(match error.span() {
                Some(span) => Located::at_offset(text, span.start, message),
                None => Located::whole(message),
            })
        })?;
        let in_order = model.idle_state.is_sorted_by_key(|state| state.residency_ns);
        if !in_order {
            let message = "idle states must come from shallow to deep, by `residency_ns`";
            return Err(CostError(Located::whole(message)));
        }
        model.name = name.to_string();
        Ok(model)
    }

    /// Cost of refilling caches after a move over `distance`.
    #[inline]
    pub fn refill(&self, distance: Distance) -> Nanos {
        match distance {
            Distance::Same => Nanos::ZERO,
            Distance::Smt => self.refill_smt.get(),
            Distance::Llc => self.refill_llc.get(),
            Distance::Node => self.refill_node.get(),
            Distance::Remote => self.refill_remote.get(),
        }
    }

    /// Time to leave the idle state that a CPU idle for `span` is in.
    #[inline]
    pub fn idle_exit(&self, span: Nanos) -> Nanos {
        let deepest = self.idle_state.iter().rev().find(|s| s.residency_ns <= span.as_ns());
        deepest.map_or(Nanos::ZERO, |state| Nanos::from_ns(state.exit_ns))
    }
}

/// Why a text is no cost model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(transparent)]
pub struct CostError(pub Located);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_models_built_in_are_well_formed_and_sourced() {
        for name in CostModel::BUILT_IN {
            assert_eq!(CostModel::built_in(name).expect("there").name, *name);
        }
        let model = CostModel::built_in("default").expect("there");
        let costs = [
            &model.context_switch,
            &model.schedule,
            &model.scan_per_candidate,
            &model.wakeup,
            &model.wakeup_lock,
            &model.kick_latency,
            &model.interrupt,
            &model.tick,
            &model.syscall,
            &model.refill_smt,
            &model.refill_llc,
            &model.refill_node,
            &model.refill_remote,
            &model.timer_slack,
        ];
        assert!(costs.iter().all(|cost| !cost.source.is_empty()));
        assert!(model.idle_state.iter().all(|state| !state.source.is_empty()));
    }

    #[test]
    fn cost_model_unknown_key_is_refused_with_its_place() {
        let error = CostModel::parse("x", "[tick]\nns = 5\n[ticks]\nns = 5\n").expect_err("wrong");
        assert_eq!(error.0.at.expect("placed").line, 3);
        assert!(error.to_string().contains("ticks"), "{error}");
    }

    #[test]
    fn idle_exit_grows_with_time_idle() {
        let model = CostModel::built_in("default").expect("there");
        assert_eq!(model.idle_exit(Nanos::from_us(10)), Nanos::from_us(1));
        assert_eq!(model.idle_exit(Nanos::from_us(301)), Nanos::from_us(82));
    }
}
