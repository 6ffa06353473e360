// SPDX-License-Identifier: GPL-2.0-only
//! Running programs without a host.

use schedlab_units::Rng;
use schedlab_workload::{Step, Vm, Workload};

/// Steps through every program for a while: a workload that was accepted must not make the
/// machine fail.
pub(crate) fn step_through(workload: &Workload) {
    for (index, program) in workload.programs.iter().enumerate() {
        let mut vm = Vm::new(program);
        let mut rng = Rng::stream(1, "test", index as u64);
        for _ in 0..500 {
            if vm.next(program, &mut rng) == Step::End {
                break;
            }
        }
    }
}
