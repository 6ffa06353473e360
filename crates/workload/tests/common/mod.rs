// SPDX-License-Identifier: GPL-2.0-only
//! What several test files need.

use schedlab_units::Rng;
use schedlab_workload::{LoadError, LoadOptions, Loaded, Step, Vm, Workload, load_text, to_toml};

/// Loads a text under a file name, without parameters.
pub(crate) fn load(file: &str, text: &str) -> Result<Loaded, LoadError> {
    load_text(file, text.to_string(), &[], &LoadOptions::default())
}

/// The operations of program `index`, as the resolved form writes them.
pub(crate) fn operations(workload: &Workload, index: usize) -> Vec<String> {
    let text = to_toml(workload);
    let program = text.split("[[program]]").nth(index + 1).expect("the program");
    let lines = program.lines().skip_while(|line| *line != "do = [").skip(1);
    lines
        .take_while(|line| *line != "]")
        .map(|line| line.trim().trim_matches(',').trim_matches('"').replace("\\\"", "\""))
        .collect()
}

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
