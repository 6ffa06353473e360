// SPDX-License-Identifier: GPL-2.0-only
//! Tasks and phases as the file describes them, before translation.

use schedlab_units::{CpuSet, Located};

use super::events::{Action, EventReader};
use super::global::Global;
use super::grammar::{SHARED_KEYS, TASK_KEYS, event_of, event_words};
use super::json::Node;
use super::legacy;
use super::sched::{Current, Request, cpus};
use super::values::{Entry, Notes, get};

/// How often something is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounds {
    Times(u32),
    Forever,
}

/// A task.
#[derive(Clone, Debug)]
pub(super) struct TaskDef {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) instances: u32,
    /// ns.
    pub(super) delay: u64,
    pub(super) rounds: Rounds,
    pub(super) cpus: Option<(CpuSet, usize)>,
    pub(super) sched: Current,
    pub(super) phases: Vec<PhaseDef>,
}

/// A phase.
#[derive(Clone, Debug)]
pub(super) struct PhaseDef {
    pub(super) at: usize,
    pub(super) rounds: Rounds,
    pub(super) cpus: Option<(CpuSet, usize)>,
    /// Scheduling parameters it sets, if any.
    pub(super) sched: Option<Current>,
    pub(super) events: Vec<(Action, usize)>,
}

/// What reading tasks needs.
pub(super) struct TaskReader<'r, 'a> {
    pub(super) notes: &'r mut Notes<'a>,
    pub(super) events: EventReader,
    pub(super) global: &'r Global,
    pub(super) resources: &'r legacy::Resources,
    /// Places of the tasks in the grammar before events.
    pub(super) legacy_tasks: Vec<usize>,
}

impl TaskReader<'_, '_> {
    /// Reads one task, called `name`.
    pub(super) fn task(
        &mut self,
        name: String,
        at: usize,
        node: &Node,
    ) -> Result<TaskDef, Located> {
        let list = self.notes.entries(node, "a task")?;
        let mut task = self.properties(name, at, &list)?;
        let phases = match get(&list, "phases") {
            Some(node) => Some((node, self.phase_entries(node)?)),
            None => None,
        };
        let bodies = phases.iter().flat_map(|(_, phases)| phases.iter().map(|(_, list)| list));
        if bodies.chain([&list]).any(|list| legacy::is_legacy(list)) {
            legacy::complete(self, &mut task, &list, phases.map(|(_, p)| p))?;
            return Ok(task);
        }
        self.check_keys(&list, "a task", true)?;
        match phases {
            Some((node, phases)) => {
                if phases.is_empty() {
                    let message = "`phases` is empty, on which rt-app's behaviour is undefined";
                    return Err(self.notes.fault(node.at, message));
                }
                self.no_events_beside_phases(&list);
                self.phases(&mut task, &phases)?;
            }
            None => {
                // Without phases `loop` counts the rounds of the only one, and the task ends then.
                let (rounds, outer) = match get(&list, "loop") {
                    Some(node) => (self.phase_rounds(node)?, Rounds::Times(1)),
                    None => (Rounds::Times(1), Rounds::Forever),
                };
                task.rounds = outer;
                let events = self.event_list(at, &list)?;
                task.phases.push(PhaseDef { at, rounds, cpus: None, sched: None, events });
            }
        }
        Ok(task)
    }

    /// The properties of a task; its phases come later.
    fn properties(
        &mut self,
        name: String,
        at: usize,
        list: &[Entry<'_>],
    ) -> Result<TaskDef, Located> {
        let instances = match get(list, "instance") {
            Some(node) => self.notes.natural(node, "`instance`")? as u32,
            None => 1,
        };
        let delay = match get(list, "delay") {
            Some(node) => self.notes.micros(node, "`delay`")?,
            None => 0,
        };
        let rounds = match get(list, "loop") {
            Some(node) => match self.notes.int(node, "`loop`")? {
                n @ 0.. => Rounds::Times(n.unsigned_abs()),
                _ => Rounds::Forever,
            },
            None => Rounds::Forever,
        };
        let request = Request::read(self.notes, list)?;
        let sched = request.of_task(self.notes, self.global.default_policy)?;
        let cpus = cpus(self.notes, list)?;
        let phases = Vec::new();
        Ok(TaskDef { name, at, instances, delay, rounds, cpus, sched, phases })
    }

    fn phase_entries<'n>(&self, node: &'n Node) -> Result<Vec<(usize, Vec<Entry<'n>>)>, Located> {
        let phases = self.notes.entries(node, "`phases`")?;
        phases
            .iter()
            .map(|phase| {
                let what = format!("the phase `{}`", phase.key);
                Ok((phase.at, self.notes.entries(phase.node, &what)?))
            })
            .collect()
    }

    fn phases(
        &mut self,
        task: &mut TaskDef,
        phases: &[(usize, Vec<Entry<'_>>)],
    ) -> Result<(), Located> {
        let mut current = task.sched;
        let mut keeps_priority = None;
        let mut sets_priority = false;
        for (at, list) in phases {
            self.check_keys(list, "a phase", false)?;
            if let Some(entry) = list.iter().find(|entry| entry.key == "delay") {
                self.notes.warn(entry.at, "rt-app ignores `delay` inside a phase");
            }
            let rounds = match get(list, "loop") {
                Some(node) => self.phase_rounds(node)?,
                None => Rounds::Times(1),
            };
            let request = Request::read(self.notes, list)?;
            let sched = request.of_phase(self.notes, current)?;
            current = sched.unwrap_or(current);
            match request.keeps_priority() {
                true => keeps_priority = keeps_priority.or(Some(*at)),
                false => sets_priority |= sched.is_some(),
            }
            let cpus = cpus(self.notes, list)?;
            let events = self.event_list(*at, list)?;
            task.phases.push(PhaseDef { at: *at, rounds, cpus, sched, events });
        }
        if let Some(at) = keeps_priority.filter(|_| sets_priority) {
            // Which priority it keeps depends on the round it is met in.
            let message = "a phase with `dl-runtime` alone cannot be simulated beside phases that \
                           set a priority; give its `priority` too";
            return Err(self.notes.fault(at, message));
        }
        Ok(())
    }

    /// Rounds of a phase: rt-app counts up to `loop`, so 0 and below are never reached.
    pub(super) fn phase_rounds(&mut self, node: &Node) -> Result<Rounds, Located> {
        match self.notes.int(node, "`loop`")? {
            n @ 1.. => Ok(Rounds::Times(n.unsigned_abs())),
            n => {
                if n != -1 {
                    let message = format!("a `loop` of {n} never ends in rt-app; -1 says that");
                    self.notes.warn(node.at, message);
                }
                Ok(Rounds::Forever)
            }
        }
    }

    fn event_list(
        &mut self,
        at: usize,
        list: &[Entry<'_>],
    ) -> Result<Vec<(Action, usize)>, Located> {
        let mut events = Vec::new();
        for entry in list {
            if let Some(event) = event_of(entry.key) {
                let action = self.events.read(self.notes, event, entry)?;
                events.push((action, entry.at));
            }
        }
        if events.is_empty() {
            let hint =
                format!("events begin with: {}", event_words().collect::<Vec<_>>().join(", "));
            return Err(self
                .notes
                .fault(at, "there is no event here, so nothing to do")
                .hint(hint));
        }
        Ok(events)
    }

    /// Refuses keys that are neither properties nor events, and warns of misleading ones.
    fn check_keys(&mut self, list: &[Entry<'_>], what: &str, is_task: bool) -> Result<(), Located> {
        let own: &[&str] = if is_task { &TASK_KEYS } else { &[] };
        let legal: Vec<&str> =
            SHARED_KEYS.iter().chain(own).copied().chain(event_words()).collect();
        for entry in list {
            let Entry { key, at, .. } = *entry;
            if key == "runtime" && is_task && get(list, "phases").is_none() {
                let message = "rt-app also takes an event called `runtime` for the old \
                               `dl-runtime`; here it is the event only";
                self.notes.warn(at, message);
            }
            if matches!(key, "period" | "deadline") && is_task {
                let message = format!("`{key}` matters to SCHED_DEADLINE only: without effect");
                self.notes.warn(at, message);
            }
            if event_of(key).is_none() && !SHARED_KEYS.contains(&key) && !own.contains(&key) {
                self.notes.unknown_key(entry, what, &legal)?;
            }
        }
        Ok(())
    }

    fn no_events_beside_phases(&mut self, list: &[Entry<'_>]) {
        if let Some(entry) = list.iter().find(|entry| event_of(entry.key).is_some()) {
            let message = format!("rt-app ignores the event `{}` beside `phases`", entry.key);
            self.notes.warn(entry.at, message);
        }
    }
}
