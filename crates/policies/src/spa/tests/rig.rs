// SPDX-License-Identifier: GPL-2.0-only
//! The machines of [`crate::linux_2_6::rig`] around this policy.

use schedlab_units::TaskId;

use crate::linux_2_6::rig;
pub(super) use crate::linux_2_6::rig::CPU;
use crate::spa::{Spa, SpaTunables};

pub(super) type Rig = rig::Rig<Spa>;
pub(super) type Pair = rig::Pair<Spa>;

impl rig::HasSleepAvg for Spa {
    fn set_sleep_avg(&mut self, task: TaskId, sleep_avg: u64) {
        Self::set_sleep_avg(self, task, sleep_avg);
    }
}

/// Tunables from a list such as `time_slice=100ms;bonus=off`, empty = 2.6.6.
pub(super) fn tunables(set: &str) -> SpaTunables {
    rig::tunables::<Spa>(set)
}
