// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab claims`: what people said about schedulers, run and judged.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use schedlab_claims::judge::Outcome;
use schedlab_claims::library::{Entry, THREADS, select};
use schedlab_claims::outputs::{Judged, explain, index, json, list, page, summary, table};
use schedlab_claims::run::{Config, Watch, run_claims};
use schedlab_lab::run::Progress;

use crate::args::{ClaimsArgs, Common};
use crate::commands::resume::Store;
use crate::exit::{Exit, Failure};
use crate::output::{Destination, cannot_write};
use crate::progress::Bar;
use crate::{interrupt, terminal};

/// Runs and judges the chosen claims, or lists them.
///
/// # Errors
/// An unknown claim, a place that cannot be written, an unexpected verdict, ^C.
pub(crate) fn claims(args: &ClaimsArgs, common: Common) -> Result<Exit, Failure> {
    let filters = args.explain.iter().chain(&args.which).cloned().collect::<Vec<_>>();
    let entries = select(&filters).map_err(|why| Failure::new(Exit::Usage, why))?;
    let destination = Destination::of(args.output.as_deref())?;
    if args.list {
        destination.write(list(&entries, terminal::width()).as_bytes())?;
        return Ok(Exit::Done);
    }
    let stop = interrupt::flag()?;
    let config = Config { quick: args.quick, threads: args.jobs };
    let store = Store::open(args.quick, args.fresh);
    let begin = Instant::now();
    let watch = Watcher::new(common.quiet, &store);
    let outcomes = run_claims(&entries, &|entry| store.known(entry), config, &stop, &watch)
        .map_err(|e| Failure::new(Exit::Bug, e))?;
    watch.clear();
    let wall_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let judged: Vec<Judged<'_>> = entries
        .iter()
        .zip(&outcomes)
        .filter_map(|(entry, outcome)| Some(Judged { entry, outcome: outcome.as_ref()? }))
        .collect();
    let text = match (&args.explain, args.format.as_str()) {
        (_, "json") => json(&judged, args.quick, wall_ns),
        (Some(_), _) => {
            let all = judged.iter().map(|j| explain(j, args.quick, terminal::width()));
            all.collect::<Vec<_>>().join("\n")
        }
        (None, _) => table(&judged, terminal::width()),
    };
    destination.write(text.as_bytes())?;
    if judged.len() < entries.len() || stop.load(Ordering::Relaxed) {
        let (done, all) = (judged.len(), entries.len());
        let message = format!("interrupted; {done} of {all} claims are kept, call again to go on");
        return Err(Failure::new(Exit::Interrupted, message));
    }
    store.finish();
    if let Some(folder) = &args.pages {
        write_pages(Path::new(folder), &judged, args.quick)?;
    }
    let [.., unexpected] = summary(&judged);
    if unexpected > 0 {
        let message = format!("{unexpected} of {} verdicts are unexpected", judged.len());
        return Err(Failure::new(Exit::CheckFailed, message));
    }
    Ok(Exit::Done)
}

/// Pages, pictures, and the results they were made from.
fn write_pages(folder: &Path, judged: &[Judged<'_>], quick: bool) -> Result<(), Failure> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| cannot_write(&path.to_string_lossy(), &error))
    };
    std::fs::create_dir_all(folder)
        .map_err(|error| cannot_write(&folder.to_string_lossy(), &error))?;
    write("README.md", &index(judged))?;
    write("results.json", &json(judged, quick, 0))?;
    for (thread, _) in THREADS {
        let (text, pictures) = page(thread, judged);
        write(&format!("{thread}.md"), &text)?;
        for (name, picture) in pictures {
            write(&name, &picture)?;
        }
    }
    Ok(())
}

/// Shows how far the runs are and keeps what is finished.
struct Watcher<'a> {
    bar: std::sync::OnceLock<Bar>,
    quiet: bool,
    store: &'a Store,
}

impl<'a> Watcher<'a> {
    fn new(quiet: bool, store: &'a Store) -> Self {
        Self { bar: std::sync::OnceLock::new(), quiet, store }
    }

    fn clear(&self) {
        if let Some(bar) = self.bar.get() {
            bar.clear();
        }
    }
}

impl Watch for Watcher<'_> {
    fn planned(&self, n_jobs: usize) {
        self.bar.get_or_init(|| Bar::new(n_jobs, self.quiet));
    }

    fn job(&self, index: usize) -> Box<dyn Progress> {
        self.bar.get_or_init(|| Bar::new(0, true)).job(index)
    }

    fn judged(&self, entry: &Entry, outcome: &Outcome) {
        self.store.keep(entry, outcome);
    }
}
