// SPDX-License-Identifier: GPL-2.0-only
//! The progress bar, on a terminal only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use schedlab_lab::run::{Progress, Silent};
use schedlab_units::Time;

use crate::terminal;

/// Parts of a run.
const PARTS: u64 = 1000;

/// One bar for all runs of a command.
#[derive(Clone)]
pub(crate) struct Bar {
    bar: Option<ProgressBar>,
    done: Arc<Vec<AtomicU64>>,
}

impl Bar {
    /// A bar for `n_jobs` runs; invisible when nobody watches or `quiet` is set.
    pub(crate) fn new(n_jobs: usize, quiet: bool) -> Self {
        let done = Arc::new((0..n_jobs).map(|_| AtomicU64::new(0)).collect());
        if quiet || !terminal::stderr_is_terminal() {
            return Self { bar: None, done };
        }
        let bar = ProgressBar::with_draw_target(
            Some(PARTS * n_jobs as u64),
            ProgressDrawTarget::stderr_with_hz(10),
        );
        let style =
            ProgressStyle::with_template("{bar:40} {percent:>3} %  {elapsed_precise}  {msg}")
                .expect("the template is well formed");
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar: Some(bar), done }
    }

    /// What run `index` reports to.
    pub(crate) fn job(&self, index: usize) -> Box<dyn Progress> {
        match &self.bar {
            None => Box::new(Silent),
            Some(bar) => Box::new(Job { bar: bar.clone(), done: Arc::clone(&self.done), index }),
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

struct Job {
    bar: ProgressBar,
    done: Arc<Vec<AtomicU64>>,
    index: usize,
}

impl Progress for Job {
    fn reached(&self, now: Time, end: Time) {
        if end == Time::MAX {
            self.bar.set_message(format!("{now} s simulated"));
            return;
        }
        let parts = u128::from(now.as_ns()) * u128::from(PARTS) / u128::from(end.as_ns().max(1));
        self.done[self.index].store(parts as u64, Ordering::Relaxed);
        self.bar.set_position(self.done.iter().map(|done| done.load(Ordering::Relaxed)).sum());
    }
}
