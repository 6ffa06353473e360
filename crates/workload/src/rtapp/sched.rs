// SPDX-License-Identifier: GPL-2.0-only
//! Scheduling properties of tasks and phases.

use schedlab_policy_api::SchedClass;
use schedlab_units::{CpuId, CpuSet, Located, MAX_CPUS, Nanos, Nice};

use super::json::{Json, Node};
use super::values::{Entry, Notes, get};
use crate::ir::SchedSpec;
use crate::nearest::did_you_mean;

/// A policy of rt-app that can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Other,
    Batch,
    Idle,
    Rr,
    Fifo,
}

const POLICIES: [(&str, Policy); 5] = [
    ("SCHED_OTHER", Policy::Other),
    ("SCHED_BATCH", Policy::Batch),
    ("SCHED_IDLE", Policy::Idle),
    ("SCHED_RR", Policy::Rr),
    ("SCHED_FIFO", Policy::Fifo),
];

impl Policy {
    const fn class(self) -> SchedClass {
        match self {
            Self::Other => SchedClass::Normal,
            Self::Batch => SchedClass::Batch,
            Self::Idle => SchedClass::Idle,
            Self::Rr => SchedClass::Rr,
            Self::Fifo => SchedClass::Fifo,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Other => "SCHED_OTHER",
            Self::Batch => "SCHED_BATCH",
            Self::Idle => "SCHED_IDLE",
            Self::Rr => "SCHED_RR",
            Self::Fifo => "SCHED_FIFO",
        }
    }

    /// Priority of a task that names none: nice for the fair policies.
    const fn default_priority(self) -> i32 {
        if self.class().is_rt() { 10 } else { 0 }
    }
}

/// Reads the name of a policy.
pub(super) fn policy_of(notes: &Notes<'_>, node: &Node) -> Result<Policy, Located> {
    let text = notes.text_of(node, "a policy")?;
    if text == "SCHED_DEADLINE" {
        let message = "SCHED_DEADLINE cannot be simulated: no policy here has a deadline class";
        return Err(notes.fault(node.at, message));
    }
    if let Some((_, policy)) = POLICIES.iter().find(|(name, _)| *name == text) {
        return Ok(*policy);
    }
    let names = || POLICIES.iter().map(|(name, _)| *name);
    let near = did_you_mean(text, names());
    let hint = format!("policies: {}", names().collect::<Vec<_>>().join(", "));
    Err(notes.fault(node.at, format!("there is no policy `{text}`{near}")).hint(hint))
}

/// The scheduling parameters that a task or phase asks for, as far as it names any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Request {
    policy: Option<Policy>,
    priority: Option<(i32, usize)>,
    /// `dl-runtime` in ns, with its place.
    runtime: Option<(u64, usize)>,
}

impl Request {
    /// Reads the properties; those that cannot be simulated are refused.
    pub(super) fn read(notes: &mut Notes<'_>, list: &[Entry<'_>]) -> Result<Self, Located> {
        let mut request = Self::default();
        if let Some(node) = get(list, "policy") {
            request.policy = Some(policy_of(notes, node)?);
        }
        if let Some(node) = get(list, "priority") {
            request.priority = Some((notes.int(node, "`priority`")?, node.at));
        }
        if let Some(node) = get(list, "dl-runtime") {
            request.runtime = Some((notes.micros(node, "`dl-runtime`")?, node.at));
        }
        for key in ["dl-period", "dl-deadline"] {
            if let Some(node) = get(list, key) {
                notes.micros(node, &format!("`{key}`"))?;
                let message = format!("`{key}` matters to SCHED_DEADLINE only: without effect");
                notes.warn(node.at, message);
            }
        }
        refuse_unmodelled(notes, list)?;
        Ok(request)
    }

    /// Whether the phase changes anything.
    fn is_empty(&self) -> bool {
        self.policy.is_none() && self.priority.is_none() && self.runtime.is_none()
    }

    /// The parameters of a task, whose policy is `default` unless it names one.
    pub(super) fn of_task(
        &self,
        notes: &mut Notes<'_>,
        default: Policy,
    ) -> Result<Current, Located> {
        let policy = self.policy.unwrap_or(default);
        let priority = self.priority.map_or(policy.default_priority(), |(n, _)| n);
        let slice = self.slice(notes, policy);
        let place = self.priority.map_or(0, |(_, at)| at);
        Current::new(notes, policy, priority, slice, place)
    }

    /// The parameters after a phase has set its own; none when it sets nothing.
    pub(super) fn of_phase(
        &self,
        notes: &mut Notes<'_>,
        current: Current,
    ) -> Result<Option<Current>, Located> {
        if self.is_empty() {
            return Ok(None);
        }
        let policy = self.policy.unwrap_or(current.policy);
        let priority = match (self.priority, self.policy) {
            (Some((n, _)), _) => n,
            (None, Some(policy)) => policy.default_priority(),
            (None, None) => current.priority,
        };
        let slice = self.slice(notes, policy);
        let place = self.priority.map_or(0, |(_, at)| at);
        Current::new(notes, policy, priority, slice, place).map(Some)
    }

    /// Whether the phase keeps a priority that an earlier phase may have changed.
    pub(super) fn keeps_priority(&self) -> bool {
        !self.is_empty() && self.policy.is_none() && self.priority.is_none()
    }

    fn slice(&self, notes: &mut Notes<'_>, policy: Policy) -> Nanos {
        match self.runtime {
            Some((ns, _)) if matches!(policy, Policy::Other | Policy::Batch) => Nanos::from_ns(ns),
            Some((1.., at)) => {
                let name = policy.name();
                notes.warn(at, format!("`dl-runtime` is no slice request under {name}"));
                Nanos::ZERO
            }
            _ => Nanos::ZERO,
        }
    }
}

/// Scheduling parameters in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Current {
    policy: Policy,
    priority: i32,
    slice: Nanos,
}

impl Current {
    fn new(
        notes: &Notes<'_>,
        policy: Policy,
        priority: i32,
        slice: Nanos,
        at: usize,
    ) -> Result<Self, Located> {
        let (low, high, what) =
            if policy.class().is_rt() { (1, 99, "priority") } else { (-20, 19, "nice value") };
        if !(low..=high).contains(&priority) {
            let name = policy.name();
            let message =
                format!("`priority` is {priority}; under {name} it is a {what}, {low} to {high}");
            return Err(notes.fault(at, message));
        }
        Ok(Self { policy, priority, slice })
    }

    /// As the intermediate form has it.
    pub(super) fn spec(&self) -> SchedSpec {
        let class = self.policy.class();
        let rt = class.is_rt();
        SchedSpec {
            class,
            nice: if rt { Nice::ZERO } else { Nice::clamped(self.priority) },
            rt_priority: if rt { self.priority.unsigned_abs() as u8 } else { 0 },
            slice: self.slice,
        }
    }
}

fn refuse_unmodelled(notes: &Notes<'_>, list: &[Entry<'_>]) -> Result<(), Located> {
    for key in ["util_min", "util_max"] {
        let Some(node) = get(list, key) else { continue };
        match notes.int(node, &format!("`{key}`"))? {
            -1 => {}
            n @ (..=-2 | 1025..) => {
                let message = format!("`{key}` is {n}; it must be 0 to 1024, or -1");
                return Err(notes.fault(node.at, message));
            }
            _ => {
                let message = format!(
                    "`{key}` cannot be simulated: utilisation clamps act through CPU frequency and \
                     unequal CPUs, which no policy here uses"
                );
                return Err(notes.fault(node.at, message).hint("remove it, or set it to -1"));
            }
        }
    }
    if let Some(node) = get(list, "nodes_membind") {
        let message = "`nodes_membind` cannot be simulated: memory has no place here";
        return Err(notes.fault(node.at, message).hint("remove it, or use `cpus`"));
    }
    if let Some(node) = get(list, "taskgroup") {
        match notes.text_of(node, "`taskgroup`")? {
            "" => {}
            name if !name.starts_with('/') => {
                let message = format!("the task group `{name}` must begin with `/`");
                return Err(notes.fault(node.at, message));
            }
            _ => {
                let message = "`taskgroup` cannot be simulated: no policy here schedules groups, \
                               so the shares would be others";
                return Err(notes.fault(node.at, message));
            }
        }
    }
    Ok(())
}

/// The CPUs that a task or phase may use, with the place of the list.
pub(super) fn cpus(
    notes: &Notes<'_>,
    list: &[Entry<'_>],
) -> Result<Option<(CpuSet, usize)>, Located> {
    let Some(node) = get(list, "cpus") else { return Ok(None) };
    let Json::Array(items) = &node.json else {
        let message = format!("`cpus` must be an array, not {}", node.json.kind());
        return Err(notes.fault(node.at, message));
    };
    let mut set = CpuSet::EMPTY;
    for item in items {
        let cpu = notes.natural(item, "a CPU")?;
        if cpu >= MAX_CPUS as u64 {
            let message = format!("CPU {cpu} is beyond the largest machine, {MAX_CPUS} CPUs");
            return Err(notes.fault(item.at, message));
        }
        set.insert(CpuId(cpu as u32));
    }
    if set.is_empty() {
        return Err(notes.fault(node.at, "`cpus` names no CPU, so the task could never run"));
    }
    Ok(Some((set, node.at)))
}
