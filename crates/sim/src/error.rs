// SPDX-License-Identifier: GPL-2.0-only
//! Why a simulation cannot go on.

use schedlab_units::{TaskId, Time};
use thiserror::Error;

/// A fault of the workload that only shows when it runs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SimError {
    /// Tasks go round and round without time passing.
    #[error(
        "no progress at {at}: more than {limit} steps at one instant, the last by task `{task}`; \
         a loop of operations that take no time never ends (add a `run` or a `sleep`, or a cost)"
    )]
    NoProgress {
        /// When.
        at: Time,
        /// Who.
        task: String,
        /// The bound.
        limit: u64,
    },
    /// A task unlocks a mutex that another task, or nobody, holds.
    #[error("task `{task}` unlocks mutex `{mutex}` at {at} without holding it")]
    NotOwner {
        /// When.
        at: Time,
        /// Who.
        task: String,
        /// Which mutex.
        mutex: String,
    },
    /// A task locks a mutex that it holds already.
    #[error("task `{task}` locks mutex `{mutex}` at {at} while holding it: it would wait for ever")]
    SelfDeadlock {
        /// When.
        at: Time,
        /// Who.
        task: String,
        /// Which mutex.
        mutex: String,
    },
    /// More tasks alive than the workbench models.
    #[error(
        "more than {limit} tasks are alive at {at}: the workload forks without end \
         (the last was `{task}`, id {id})"
    )]
    TooManyTasks {
        /// When.
        at: Time,
        /// The name of the forked task.
        task: String,
        /// Its id.
        id: TaskId,
        /// The bound.
        limit: usize,
    },
}
