// SPDX-License-Identifier: GPL-2.0-only
//! Where in a text the parts of a workload come from.

use crate::validate::Place;

/// Byte offsets of the tasks and operations of a workload that was read from a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins {
    /// Offset of each task template.
    pub(crate) tasks: Vec<usize>,
    /// Offset of each operation of each program.
    pub(crate) ops: Vec<Vec<usize>>,
    /// Offset of the CPU list of each task template that has one.
    pub(crate) cpus: Vec<Option<usize>>,
}

impl Origins {
    /// The byte offset that a fault at `place` should point to.
    pub(crate) fn offset(&self, place: Place) -> Option<usize> {
        match place {
            Place::Workload | Place::Object => None,
            Place::Task(task) => self.tasks.get(task).copied(),
            Place::Affinity(task) => {
                let cpus = self.cpus.get(task).copied().flatten();
                cpus.or_else(|| self.tasks.get(task).copied())
            }
            Place::Op { program, op } => self.ops.get(program)?.get(op).copied(),
        }
    }
}
