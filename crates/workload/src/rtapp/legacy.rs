// SPDX-License-Identifier: GPL-2.0-only
//! The grammar before events: `exec`, `period`, `lock_order`, `resources`.
//!
//! A task of rt-app before 1.0 goes through its resources in `lock_order`, computes what remains of
//! `exec`, and sleeps until its next period unless `sleep` is false. rt-app 1.0 and later refuse
//! such files; old ones are still about, among them one that Debian ships. Each period becomes a
//! phase of events.
//!
//! Source: rt-app at the end of 2013, `rt-app_parse_config.c` `serialize_acl` and
//! `parse_thread_phase_data`, `rt-app.c` `get_resource`, `put_resource`, `run`, `thread_body`.

use std::collections::BTreeMap;

use schedlab_units::Located;

use super::events::Action;
use super::grammar::RESOURCE_TYPES;
use super::json::{Json, Node};
use super::tasks::{PhaseDef, Rounds, TaskDef, TaskReader};
use super::values::{Entry, Notes, get};
use crate::nearest::did_you_mean;

/// Name of the timer behind `period`; its beginning makes it one per thread.
const PERIOD_TIMER: &str = "unique period";

const KEYS: [&str; 6] = ["exec", "period", "deadline", "sleep", "lock_order", "resources"];
const TASK_KEYS: [&str; 6] = ["policy", "priority", "delay", "cpus", "loop", "phases"];

/// A resource of the root object `resources`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Resource {
    Mutex,
    Wait,
    Signal {
        target: String,
    },
    Broadcast {
        target: String,
    },
    Sync {
        target: String,
    },
    Sleep,
    Run,
    /// Declared but unusable in `lock_order`.
    Other,
}

/// The root object `resources`.
#[derive(Clone, Debug, Default)]
pub(super) struct Resources {
    by_name: BTreeMap<String, Resource>,
}

impl Resources {
    /// Reads the object; a number declares that many mutexes called `0`, `1`, ….
    pub(super) fn read(notes: &mut Notes<'_>, node: &Node) -> Result<Self, Located> {
        let mut resources = Self::default();
        if let Json::Number(_) = node.json {
            let n = notes.natural(node, "`resources`")?;
            if n > 9_999 {
                return Err(notes.fault(node.at, "rt-app knows at most 9999 numbered resources"));
            }
            for index in 0..n {
                resources.by_name.insert(index.to_string(), Resource::Mutex);
            }
            return Ok(resources);
        }
        for entry in notes.entries(node, "`resources`")? {
            let what = format!("the resource `{}`", entry.key);
            let list = notes.entries(entry.node, &what)?;
            notes.only(&list, &what, &["type", "target"])?;
            let resource = Resource::read(notes, &list, &what, entry.at)?;
            resources.by_name.insert(entry.key.to_string(), resource);
        }
        Ok(resources)
    }
}

impl Resource {
    fn read(
        notes: &mut Notes<'_>,
        list: &[Entry<'_>],
        what: &str,
        at: usize,
    ) -> Result<Self, Located> {
        let Some(node) = get(list, "type") else {
            notes.warn(at, format!("{what} has no `type`, so nothing can use it"));
            return Ok(Self::Other);
        };
        // Events need no `target`; only `lock_order` does, and asks for it there.
        let target = match get(list, "target") {
            Some(node) => notes.text_of(node, "`target`")?.to_string(),
            None => String::new(),
        };
        Ok(match notes.text_of(node, "`type`")? {
            "mutex" => Self::Mutex,
            "wait" => Self::Wait,
            "signal" => Self::Signal { target },
            "broadcast" => Self::Broadcast { target },
            "sync" => Self::Sync { target },
            "sleep" => Self::Sleep,
            "run" => Self::Run,
            "timer" => Self::Other,
            other => {
                let near = did_you_mean(other, RESOURCE_TYPES.into_iter());
                let message = format!("there is no resource type `{other}`{near}");
                let hint = format!("types: {}", RESOURCE_TYPES.join(", "));
                return Err(notes.fault(node.at, message).hint(hint));
            }
        })
    }
}

/// Whether a task or phase is written in this grammar.
pub(super) fn is_legacy(list: &[Entry<'_>]) -> bool {
    let has = |key| get(list, key).is_some();
    has("exec") || (has("lock_order") && has("resources"))
}

/// Gives a task its phases.
pub(super) fn complete(
    reader: &mut TaskReader<'_, '_>,
    task: &mut TaskDef,
    list: &[Entry<'_>],
    phases: Option<Vec<(usize, Vec<Entry<'_>>)>>,
) -> Result<(), Located> {
    reader.legacy_tasks.push(task.at);
    let legal: Vec<&str> = KEYS.into_iter().chain(TASK_KEYS).collect();
    reader.notes.only(list, "a task", &legal)?;
    let mut sleeps = Vec::new();
    match phases {
        Some(phases) => {
            for (at, list) in &phases {
                let legal: Vec<&str> = KEYS.into_iter().chain(["loop"]).collect();
                reader.notes.only(list, "a phase", &legal)?;
                let (phase, sleep) = phase(reader, *at, list)?;
                task.phases.push(phase);
                sleeps.push(sleep);
            }
        }
        None => {
            let (phase, sleep) = phase(reader, task.at, list)?;
            task.rounds = Rounds::Times(1);
            task.phases.push(phase);
            sleeps.push(sleep);
        }
    }
    if sleeps.contains(&true) && sleeps.contains(&false) {
        // A period without sleep moves the next wake-up all the same.
        let message = "phases with and without `sleep` in one task cannot be simulated";
        return Err(reader.notes.fault(task.at, message));
    }
    Ok(())
}

fn phase(
    reader: &mut TaskReader<'_, '_>,
    at: usize,
    list: &[Entry<'_>],
) -> Result<(PhaseDef, bool), Located> {
    let notes = &*reader.notes;
    let Some(exec_node) = get(list, "exec") else {
        return Err(notes.fault(at, "`exec` is missing"));
    };
    let exec = notes.natural(exec_node, "`exec`")?;
    let period = match get(list, "period") {
        Some(node) => notes.natural(node, "`period`")?,
        None => exec,
    };
    let deadline = match get(list, "deadline") {
        Some(node) => notes.natural(node, "`deadline`")?,
        None => period,
    };
    if period == 0 || exec > deadline || deadline > period {
        let message = format!(
            "exec {exec}, deadline {deadline} and period {period} must rise in this order, and \
             the period must not be 0"
        );
        return Err(notes.fault(exec_node.at, message));
    }
    let sleep = match get(list, "sleep") {
        Some(node) => notes.flag(node, "`sleep`")?,
        None => true,
    };
    let (mut events, used) = lock_order(reader, list)?;
    let Some(rest) = exec.checked_sub(used) else {
        let message = format!("`exec` is {exec} us, but the resources take {used} us of it");
        return Err(reader.notes.fault(exec_node.at, message));
    };
    if rest > 0 || events.is_empty() {
        events.push((Action::Run(rest), exec_node.at));
    }
    if sleep {
        let name = PERIOD_TIMER.to_string();
        let timer = Action::Timer { name, period: period * 1_000, absolute: true };
        events.push((timer, get(list, "period").map_or(at, |node| node.at)));
    }
    let rounds = match get(list, "loop") {
        Some(node) => reader.phase_rounds(node)?,
        None => Rounds::Forever,
    };
    Ok((PhaseDef { at, rounds, cpus: None, sched: None, events }, sleep))
}

/// The events of `lock_order`, and the µs of computing among them.
fn lock_order(
    reader: &TaskReader<'_, '_>,
    list: &[Entry<'_>],
) -> Result<(Vec<(Action, usize)>, u64), Located> {
    let notes = &*reader.notes;
    let mut events = Vec::new();
    let mut used = 0;
    let Some(order) = get(list, "lock_order") else { return Ok((events, used)) };
    let Json::Array(items) = &order.json else {
        let message = format!("`lock_order` must be an array, not {}", order.json.kind());
        return Err(notes.fault(order.at, message));
    };
    let uses = match get(list, "resources") {
        Some(node) => notes.entries(node, "`resources`")?,
        None if items.is_empty() => Vec::new(),
        None => return Err(notes.fault(order.at, "`lock_order` needs `resources` beside it")),
    };
    for item in items {
        let name = resource_name(notes, item)?;
        let chain = access_chain(reader, &uses, &name, item.at)?;
        let duration = match get(&uses, &name) {
            Some(node) => {
                let list = notes.entries(node, "the use of a resource")?;
                match get(&list, "duration") {
                    Some(node) => notes.natural(node, "`duration`")?,
                    None => 0,
                }
            }
            None => 0,
        };
        used += step(notes, &chain, duration, item.at, &mut events)?;
    }
    Ok((events, used))
}

fn resource_name(notes: &Notes<'_>, node: &Node) -> Result<String, Located> {
    match node.json {
        Json::Number(_) => Ok(notes.natural(node, "a resource")?.to_string()),
        _ => notes.text_of(node, "a resource").map(str::to_string),
    }
}

/// The resources to take, those of `access` before the one itself, each once.
fn access_chain<'r>(
    reader: &'r TaskReader<'_, '_>,
    uses: &[Entry<'_>],
    name: &str,
    at: usize,
) -> Result<Vec<(String, &'r Resource)>, Located> {
    let notes = &*reader.notes;
    let mut chain: Vec<(String, &Resource)> = Vec::new();
    let mut pending = vec![(name.to_string(), at)];
    while let Some((name, at)) = pending.pop() {
        if chain.iter().any(|(seen, _)| *seen == name) {
            continue;
        }
        let Some(resource) = reader.resources.by_name.get(&name) else {
            let message = format!("the resource `{name}` is not declared at the root");
            let hint = "this looks like a fragment: rt-app's merge.py joins such files into one";
            return Err(notes.fault(at, message).hint(hint));
        };
        if let Some(node) = get(uses, &name) {
            let list = notes.entries(node, "the use of a resource")?;
            if let Some(node) = get(&list, "access") {
                let Json::Array(items) = &node.json else {
                    let message = format!("`access` must be an array, not {}", node.json.kind());
                    return Err(notes.fault(node.at, message));
                };
                for item in items.iter().rev() {
                    pending.push((resource_name(notes, item)?, item.at));
                }
            }
        }
        chain.push((name, resource));
    }
    // The resource itself was found first and is taken last.
    chain.rotate_left(1);
    Ok(chain)
}

/// Takes a chain of resources, computes, releases them; yields the µs computed.
fn step(
    notes: &Notes<'_>,
    chain: &[(String, &Resource)],
    duration: u64,
    at: usize,
    events: &mut Vec<(Action, usize)>,
) -> Result<u64, Located> {
    let mut computes = true;
    let mut before: Option<&(String, &Resource)> = None;
    for link in chain {
        let (name, resource) = link;
        let mutex = || match before {
            Some((mutex, Resource::Mutex)) => Ok(mutex.clone()),
            _ => {
                Err(notes.fault(at, format!("`{name}` needs `access` with the mutex it waits on")))
            }
        };
        let target = |target: &String| match target.as_str() {
            "" => Err(notes.fault(at, format!("the resource `{name}` needs `target`"))),
            target => Ok(target.to_string()),
        };
        computes = true;
        let action = match resource {
            Resource::Mutex => Action::Lock(name.clone()),
            Resource::Wait => Action::Wait { condition: name.clone(), mutex: mutex()? },
            Resource::Signal { target: to } => Action::Signal(target(to)?),
            Resource::Broadcast { target: to } => Action::Broad(target(to)?),
            Resource::Sync { target: to } => {
                Action::Sync { condition: target(to)?, mutex: mutex()? }
            }
            Resource::Sleep => {
                computes = false;
                Action::Sleep(duration * 1_000)
            }
            Resource::Run => {
                before = Some(link);
                continue;
            }
            Resource::Other => {
                let message = format!("the resource `{name}` cannot stand in `lock_order`");
                return Err(notes.fault(at, message));
            }
        };
        events.push((action, at));
        before = Some(link);
    }
    if computes && duration > 0 {
        events.push((Action::Run(duration), at));
    }
    for (name, resource) in chain.iter().rev() {
        if **resource == Resource::Mutex {
            events.push((Action::Unlock(name.clone()), at));
        }
    }
    Ok(if computes { duration } else { 0 })
}
