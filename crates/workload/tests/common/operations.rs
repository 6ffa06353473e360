// SPDX-License-Identifier: GPL-2.0-only
//! Programs as lines of text.

use schedlab_workload::{Workload, to_toml};

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
