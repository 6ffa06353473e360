// SPDX-License-Identifier: GPL-2.0-only
//! Playing a workload on this host.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schedlab_units::{CpuSet, Nanos};
use schedlab_workload::Invalid;
use schedlab_workload::ir::{Op, Workload};
use thiserror::Error;

use crate::ending::{Ending, conclude, end_all, last_exit, watch};
use crate::objects::Objects;
use crate::played::Played;
use crate::rights::{Rights, missing};
use crate::shared::Shared;
use crate::stand_ins::{refusal, stand_ins};
use crate::start::{crowd, start};
use crate::watcher::Watcher;
use crate::{burn, calls};

/// How to play.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// Seed of all random streams; tasks draw what they draw in a simulation with this seed.
    pub seed: u64,
    /// When the play is cut, counted from its start.
    pub length: Nanos,
    /// Which CPUs of this host the workload uses, in the order in which it counts them.
    pub cpus: CpuSet,
    /// Whether a change of class or nice value that is not allowed is left out and counted.
    pub ignore_rights: bool,
    /// Whether tasks of class normal or batch are SCHED_EXT tasks, for a policy that runs live.
    pub ext: bool,
    /// Size of each CPU's trace buffer in KiB; none = no tracepoints.
    pub trace_kib: Option<u32>,
}

/// Why a workload was not played.
#[derive(Debug, Error)]
pub enum PlayError {
    /// It has something no kernel can play.
    #[error("{}", .0.message)]
    Refused(Invalid),
    /// This host or this user lacks something; all of it, a sentence each.
    #[error("this host lacks: {}", .0.join("; "))]
    Lacks(Vec<String>),
    /// Something outside the play ended a task's process, such as a user or a lack of memory.
    #[error(
        "the process of task `{task}` was ended by signal {signal} from outside the play (`dmesg` \
         tells whether memory was short); play again"
    )]
    Killed {
        /// Name of the task.
        task: String,
        /// Number of the signal.
        signal: i32,
    },
    /// A task did what makes no sense.
    #[error("{0}")]
    Fault(String),
}

/// Plays `workload` as processes and threads; `stop` ends it early with what it has.
///
/// # Errors
/// [`PlayError`]; no process or thread is left behind in any case.
///
/// # Panics
/// When the play of a task panicked.
pub fn play(
    workload: &Arc<Workload>,
    options: &PlayOptions,
    stop: &AtomicBool,
) -> Result<Played, PlayError> {
    if let Some(invalid) = refusal(workload) {
        return Err(PlayError::Refused(invalid));
    }
    let lacking = missing(workload, Rights::here());
    if !lacking.is_empty() && !options.ignore_rights {
        return Err(PlayError::Lacks(lacking));
    }
    if let Some(crowd) = crowd(workload) {
        return Err(PlayError::Lacks(vec![crowd]));
    }
    raise_file_limit();
    let mut remarks = stand_ins(workload);
    let objects = Objects::new(&workload.objects, &mut remarks).map_err(|(name, error)| {
        let hint = "`ulimit -n` bounds open files, /proc/sys/fs/pipe-max-size the size of pipes";
        PlayError::Lacks(vec![format!("a place for pipe `{name}`: {error} ({hint})")])
    })?;
    let failed = |error| PlayError::Lacks(vec![format!("signal handlers: {error}")]);
    calls::handle_nudges().map_err(failed)?;
    burn::calibrate();
    let mut ops = workload.programs.iter().flat_map(|program| &program.ops);
    let image = match ops.any(|op| matches!(op, Op::Exec)) {
        true => Some(calls::unknown_image().map_err(|error| {
            PlayError::Lacks(vec![format!("a file for exec (memfd_create): {error}")])
        })?),
        false => None,
    };
    let shared = Arc::new(Shared::new(workload, objects, image, options));
    let watcher = options.trace_kib.and_then(|kib| Watcher::start(kib, &mut remarks));
    let made = start(&shared, stop);
    let ending = made.is_ok().then(|| watch(&shared, options.length, stop));
    shared.stop.store(true, Ordering::Release);
    end_all(&shared)?;
    let seen = watcher.and_then(|watcher| watcher.finish(&mut remarks));
    assert!(!shared.panicked.load(Ordering::Acquire), "the play of a task panicked");
    made.map_err(|why| PlayError::Lacks(vec![why]))?;
    let ending = ending.unwrap_or(Ending::Cut(calls::now()));
    let mut played = conclude(&shared, remarks, ending)?;
    if let Some((recording, lost)) = seen {
        if ending == Ending::Over {
            played.end = played.end.max(last_exit(&recording, &played.tasks));
        }
        (played.recording, played.lost) = (Some(recording), lost);
    }
    Ok(played)
}

/// Pipes need files: as many as this user may have.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum },
    );
}
