// SPDX-License-Identifier: GPL-2.0-only
//! The `global` object: what concerns the whole run.

use schedlab_units::Located;

use super::grammar::{GLOBAL_KEYS, OLD_GLOBAL_KEYS};
use super::json::{Json, Node};
use super::sched::{Policy, policy_of};
use super::values::{Entry, Notes, get};

/// Settings of the whole run, as far as they matter to a simulation.
#[derive(Clone, Debug)]
pub(super) struct Global {
    /// Length of the run in s; none = until every thread has ended.
    pub(super) duration_s: Option<u64>,
    /// ns of one calibrated loop; none = measured, that is exact.
    pub(super) ns_per_loop: Option<u64>,
    /// Policy of tasks that name none.
    pub(super) default_policy: Policy,
    /// Where priority inheritance is asked for.
    pub(super) pi_enabled: Option<usize>,
    /// Whether `iorun` writes to /dev/null.
    pub(super) null_device: bool,
    /// Bytes of a thread's buffer.
    pub(super) mem_buffer_size: u64,
}

impl Default for Global {
    fn default() -> Self {
        Self {
            duration_s: None,
            ns_per_loop: None,
            default_policy: Policy::Other,
            pi_enabled: None,
            null_device: true,
            mem_buffer_size: 4 << 20,
        }
    }
}

/// Reads the object; every value is checked, also of the settings that only concern output.
pub(super) fn read(notes: &mut Notes<'_>, node: &Node) -> Result<Global, Located> {
    let list = notes.entries(node, "`global`")?;
    for entry in &list {
        if OLD_GLOBAL_KEYS.contains(&entry.key) {
            notes.warn(entry.at, format!("`{}` is without effect since rt-app 1.0", entry.key));
        } else if !GLOBAL_KEYS.contains(&entry.key) {
            notes.unknown_key(entry, "`global`", &GLOBAL_KEYS)?;
        }
    }
    let mut global = Global::default();
    if let Some(node) = get(&list, "duration") {
        let seconds = notes.int(node, "`duration`")?;
        global.duration_s = u64::try_from(seconds).ok().filter(|s| *s > 0);
    }
    if let Some(node) = get(&list, "default_policy") {
        global.default_policy = policy_of(notes, node)?;
    }
    if let Some(node) = get(&list, "calibration") {
        global.ns_per_loop = calibration(notes, node)?;
    }
    if let Some(node) = get(&list, "pi_enabled")
        && notes.flag(node, "`pi_enabled`")?
    {
        global.pi_enabled = Some(node.at);
    }
    if let Some(node) = get(&list, "io_device") {
        global.null_device = notes.text_of(node, "`io_device`")? == "/dev/null";
    }
    if let Some(node) = get(&list, "mem_buffer_size") {
        global.mem_buffer_size = notes.natural(node, "`mem_buffer_size`")?;
        if global.mem_buffer_size == 0 {
            return Err(notes.fault(node.at, "`mem_buffer_size` is 0: nothing would ever move"));
        }
    }
    output(notes, &list)?;
    Ok(global)
}

/// ns per loop, or none when the calibration is measured, which the simulation does exactly.
fn calibration(notes: &Notes<'_>, node: &Node) -> Result<Option<u64>, Located> {
    if let Json::Number(_) = node.json {
        return Ok(Some(notes.natural(node, "`calibration`")?).filter(|ns| *ns > 0));
    }
    let text = notes.text_of(node, "`calibration`")?;
    let cpu = text.strip_prefix("CPU").and_then(|n| n.parse::<u32>().ok());
    if cpu.is_none() {
        let message = format!("`calibration` is `{text}`; it must be `CPU` and a number, or ns");
        return Err(notes.fault(node.at, message));
    }
    Ok(None)
}

/// Settings of logs and traces: checked, without effect here.
fn output(notes: &mut Notes<'_>, list: &[Entry<'_>]) -> Result<(), Located> {
    for key in ["lock_pages", "gnuplot", "cumulative_slack"] {
        if let Some(node) = get(list, key) {
            notes.flag(node, &format!("`{key}`"))?;
        }
    }
    for key in ["logdir", "log_basename"] {
        if let Some(node) = get(list, key) {
            notes.text_of(node, &format!("`{key}`"))?;
        }
    }
    if let Some(node) = get(list, "log_size")
        && !matches!(node.json, Json::Number(_))
    {
        let text = notes.text_of(node, "`log_size`")?.to_string();
        if !matches!(text.as_str(), "disable" | "file" | "auto") {
            notes.warn(node.at, format!("rt-app takes `log_size` `{text}` for `disable`"));
        }
    } else if let Some(node) = get(list, "log_size") {
        notes.int(node, "`log_size`")?;
    }
    if let Some(node) = get(list, "ftrace")
        && !matches!(node.json, Json::Flag(_))
    {
        const CATEGORIES: [&str; 6] = ["main", "task", "loop", "event", "stats", "none"];
        let text = notes.text_of(node, "`ftrace`")?;
        let known = |part: &str| CATEGORIES.contains(&part.trim().to_ascii_lowercase().as_str());
        if let Some(part) = text.split(',').find(|part| !text.is_empty() && !known(part)) {
            let message = format!("`ftrace` has no category `{part}`");
            let hint = format!("categories: {}", CATEGORIES.join(", "));
            return Err(notes.fault(node.at, message).hint(hint));
        }
    }
    Ok(())
}
