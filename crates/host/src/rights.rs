// SPDX-License-Identifier: GPL-2.0-only
//! Which rights a workload needs that this process does not have.

use std::fs;

use rustix::process::{Resource, getpriority_process, getrlimit};
use schedlab_workload::ir::{Op, SchedSpec, Workload};

const CAP_SYS_NICE: u64 = 1 << 23;

/// What is allowed here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rights {
    /// Whether everything is.
    pub(crate) all: bool,
    /// Highest real-time priority.
    pub(crate) rt_priority: u64,
    /// Lowest nice value that may be returned to.
    pub(crate) nice: i64,
    /// Present nice value.
    pub(crate) nice_now: i64,
}

impl Rights {
    /// Those of this process.
    pub(crate) fn here() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let caps = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let caps = caps.and_then(|caps| u64::from_str_radix(caps.trim(), 16).ok()).unwrap_or(0);
        let limit = |resource| getrlimit(resource).current.unwrap_or(u64::MAX);
        let nice_limit = i64::try_from(limit(Resource::Nice)).unwrap_or(40).min(40);
        Self {
            all: caps & CAP_SYS_NICE != 0,
            rt_priority: limit(Resource::Rtprio),
            nice: 20 - nice_limit,
            nice_now: getpriority_process(None).map_or(0, i64::from),
        }
    }
}

/// What no workload may ask for under these rights, one sentence each with its remedy.
pub(crate) fn limits(rights: Rights) -> Vec<String> {
    let mut limits = Vec::new();
    if !rights.all && rights.rt_priority < 99 {
        limits.push(format!(
            "real-time priorities above {}: run as root, or with CAP_SYS_NICE, or raise \
             RLIMIT_RTPRIO (`ulimit -r 99`)",
            rights.rt_priority
        ));
    }
    let nice = rights.nice.min(rights.nice_now);
    if !rights.all && nice > -20 {
        limits.push(format!(
            "nice values below {nice}: run as root, or with CAP_SYS_NICE, or raise RLIMIT_NICE \
             (`ulimit -e 40`)"
        ));
    }
    limits
}

/// What of `workload` these rights do not allow, one sentence each.
pub(crate) fn missing(workload: &Workload, rights: Rights) -> Vec<String> {
    if rights.all {
        return Vec::new();
    }
    let start = workload.tasks.iter().filter(|t| t.at_start).filter_map(|t| t.sched);
    let forked = workload.tasks.iter().filter(|t| !t.at_start).filter_map(|t| t.sched);
    let ops = || workload.programs.iter().flat_map(|program| &program.ops);
    let changes = ops().filter_map(|op| match op {
        Op::SetSched(sched) => Some(*sched),
        Op::SetNice(nice) => Some(SchedSpec { nice: *nice, ..SchedSpec::default() }),
        _ => None,
    });
    let start: Vec<SchedSpec> = start.collect();
    let later: Vec<SchedSpec> = forked.chain(changes).collect();
    let everything = || start.iter().chain(&later);
    let mut missing = Vec::new();
    let rt = everything().filter(|s| s.class.is_rt()).map(|s| u64::from(s.rt_priority)).max();
    if let Some(priority) = rt
        && priority > rights.rt_priority
    {
        missing.push(format!(
            "real-time priority {priority}: run as root, or with CAP_SYS_NICE, or raise \
             RLIMIT_RTPRIO (`ulimit -r {priority}`), which is {}",
            rights.rt_priority
        ));
    }
    let nices = |specs: &[SchedSpec]| -> Vec<i64> {
        let fair = specs.iter().filter(|spec| !spec.class.is_rt());
        fair.map(|spec| i64::from(spec.nice.get())).collect()
    };
    // A thread of the start comes from this process's value, a later change may come from any.
    let (start, later) = (nices(&start), nices(&later));
    let highest = start.iter().chain(&later).copied().chain([rights.nice_now]).max().unwrap_or(0);
    let lowered = start.iter().filter(|nice| **nice < rights.nice_now);
    let lowered = lowered.chain(later.iter().filter(|nice| **nice < highest)).min();
    if let Some(nice) = lowered
        && *nice < rights.nice
    {
        missing.push(format!(
            "a return to nice {nice}: run as root, or with CAP_SYS_NICE, or raise RLIMIT_NICE \
             (`ulimit -e {}`), which allows {} at best",
            20 - nice,
            rights.nice.min(rights.nice_now)
        ));
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_policy_api::SchedClass;
    use schedlab_units::Nice;
    use schedlab_workload::ir::{Program, ProgramId, TaskSpec};

    fn workload(ops: Vec<Op>, sched: Option<SchedSpec>) -> Workload {
        Workload {
            tasks: vec![TaskSpec { sched, ..TaskSpec::new("t", ProgramId(0)) }],
            programs: vec![Program { ops, n_counters: 0 }],
            ..Workload::default()
        }
    }

    const NONE: Rights = Rights { all: false, rt_priority: 0, nice: 20, nice_now: 0 };

    fn nice(n: i32) -> SchedSpec {
        SchedSpec { nice: Nice::clamped(n), ..SchedSpec::default() }
    }

    #[test]
    fn raising_nice_needs_no_rights() {
        assert!(missing(&workload(vec![], Some(nice(19))), NONE).is_empty());
        assert!(missing(&workload(vec![Op::SetNice(Nice::MAX)], None), NONE).is_empty());
    }

    #[test]
    fn lowering_nice_is_told_with_its_remedy() {
        let told = missing(&workload(vec![], Some(nice(-5))), NONE);
        assert!(told[0].contains("nice -5") && told[0].contains("ulimit -e 25"), "{told:?}");
        let back = vec![Op::SetNice(Nice::MAX), Op::SetNice(Nice::ZERO)];
        assert_eq!(missing(&workload(back.clone(), None), NONE).len(), 1);
        assert!(missing(&workload(back, None), Rights { nice: 0, ..NONE }).is_empty());
    }

    #[test]
    fn limits_without_rights_are_told_and_with_all_rights_none() {
        let told = limits(NONE);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("real-time priorities above 0: "), "{told:?}");
        assert!(told[1].starts_with("nice values below 0: "), "{told:?}");
        assert!(limits(Rights { all: true, ..NONE }).is_empty());
        assert!(limits(Rights { rt_priority: 99, nice: -20, ..NONE }).is_empty());
    }

    #[test]
    fn real_time_is_told_with_its_remedy() {
        let fifo = SchedSpec { class: SchedClass::Fifo, rt_priority: 7, ..nice(0) };
        let told = missing(&workload(vec![Op::SetSched(fifo)], None), NONE);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("real-time priority 7"), "{told:?}");
        assert!(missing(&workload(vec![], Some(fifo)), Rights { all: true, ..NONE }).is_empty());
        assert!(
            missing(&workload(vec![], Some(fifo)), Rights { rt_priority: 7, ..NONE }).is_empty()
        );
    }
}
