// SPDX-License-Identifier: GPL-2.0-only
//! Many runs at once: one thread a run, results in the order of the jobs.

use std::sync::atomic::AtomicBool;

use rayon::prelude::*;

use crate::run::{Job, Progress, RunError, RunOutput, run};

/// Runs all jobs on `threads` threads (0 = one a CPU of the host) and returns what came out in the
/// order of the jobs, whatever the order of completion.
///
/// Once `stop` is set, running jobs end with what they have and the others do not begin; their
/// places hold `None`.
///
/// # Panics
/// When the host cannot start threads.
pub fn run_all(
    jobs: &[Job],
    threads: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize) -> Box<dyn Progress> + Sync),
) -> Vec<Option<Result<RunOutput, RunError>>> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("the host can start threads");
    pool.install(|| {
        jobs.par_iter()
            .enumerate()
            .map(|(index, job)| {
                let stopped = stop.load(std::sync::atomic::Ordering::Relaxed);
                (!stopped).then(|| run(job, stop, progress(index).as_ref(), None))
            })
            .collect()
    })
}
