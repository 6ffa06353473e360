// SPDX-License-Identifier: GPL-2.0-only
//! Kernel configurations: a fragment put over a whole one, and what became of it.

/// The option that a line sets or unsets, such as `CONFIG_SMP`.
fn option(line: &str) -> Option<&str> {
    let unset = |line: &'_ str| -> Option<usize> {
        line.strip_prefix("# ")?.strip_suffix(" is not set").map(str::len)
    };
    let name = match unset(line) {
        Some(length) => &line[2..2 + length],
        None => line.split_once('=')?.0,
    };
    name.starts_with("CONFIG_").then_some(name)
}

/// `base` with the lines of `fragment` instead of its own for the same options.
pub(crate) fn merge(base: &str, fragment: &str) -> String {
    let ours: Vec<&str> = fragment.lines().filter_map(option).collect();
    let theirs =
        base.lines().filter(|line| option(line).is_none_or(|option| !ours.contains(&option)));
    theirs.chain(fragment.lines()).flat_map(|line| [line, "\n"]).collect()
}

/// Lines of `fragment` that `config` does not obey. An option that is not there is not set.
pub(crate) fn lost<'a>(config: &str, fragment: &'a str) -> Vec<&'a str> {
    let lines: Vec<&str> = config.lines().collect();
    let obeyed = |line: &str, name: &str| match line.starts_with('#') {
        true => !lines.iter().any(|other| option(other) == Some(name) && !other.starts_with('#')),
        false => lines.contains(&line),
    };
    fragment.lines().filter(|line| option(line).is_some_and(|name| !obeyed(line, name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "# Kernel\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_AB=m\n";

    #[test]
    fn fragment_replaces_lines_of_the_same_options_only() {
        let merged = merge(BASE, "CONFIG_B=y\n# CONFIG_A is not set\nCONFIG_C=\"x=y\"\n");
        assert_eq!(
            merged,
            "# Kernel\nCONFIG_AB=m\nCONFIG_B=y\n# CONFIG_A is not set\nCONFIG_C=\"x=y\"\n"
        );
    }

    #[test]
    fn options_that_did_not_survive_are_named() {
        let fragment = "CONFIG_A=y\nCONFIG_B=y\n# CONFIG_AB is not set\n# CONFIG_D is not set\n";
        assert_eq!(lost(BASE, fragment), ["CONFIG_B=y", "# CONFIG_AB is not set"]);
        assert_eq!(lost(BASE, "# CONFIG_B is not set\nCONFIG_AB=m\n# a remark\n"), [""; 0]);
    }

    #[test]
    fn guests_kernel_can_schedule_by_bpf_and_share_files() {
        let fragment = include_str!("../../vm/schedlab.config");
        assert_eq!(lost(fragment, "CONFIG_SCHED_CLASS_EXT=y\nCONFIG_DEBUG_INFO_BTF=y\n"), [""; 0]);
        assert_eq!(lost(fragment, "CONFIG_9P_FS=y\nCONFIG_VIRTIO_CONSOLE=y\n"), [""; 0]);
        assert_eq!(lost(fragment, "CONFIG_PVH=y\nCONFIG_KERNEL_GZIP=y\n"), [""; 0]);
    }
}
