// SPDX-License-Identifier: GPL-2.0-only
//! Recording while a play takes place: a thread that empties the kernel's buffers now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use schedlab_policy_api::Recording;
use schedlab_trace::Collect;

use crate::calls;
use crate::tracefs::{Instance, Wanted};

/// How often the buffers are emptied.
const PERIOD: Duration = Duration::from_millis(200);

type Outcome = Result<(Recording, u64), String>;

/// A recording under way.
pub(crate) struct Watcher {
    done: Arc<AtomicBool>,
    thread: JoinHandle<Outcome>,
}

impl Watcher {
    /// Begins to record the machine; why it cannot goes to `remarks`.
    pub(crate) fn start(buffer_kib: u32, remarks: &mut Vec<String>) -> Option<Self> {
        let made = Instance::new(&Wanted { buffer_kib, tree_of: None });
        let started = made.and_then(|instance| {
            instance.start().map_err(|why| vec![why])?;
            let done = Arc::new(AtomicBool::new(false));
            let seen = Arc::clone(&done);
            let thread = std::thread::Builder::new().name("schedlab-trace".to_string());
            match thread.spawn(move || record(instance, &seen)) {
                Ok(thread) => Ok(Self { done, thread }),
                Err(error) => Err(vec![format!("a thread: {error}")]),
            }
        });
        started.map_err(|why| remarks.push(format!("this host lacks {}", why.join("; and ")))).ok()
    }

    /// What was recorded, and how many events the buffers lost.
    pub(crate) fn finish(self, remarks: &mut Vec<String>) -> Option<(Recording, u64)> {
        self.done.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let outcome = self.thread.join().unwrap_or_else(|_| Err("its thread died".to_string()));
        outcome.map_err(|why| remarks.push(format!("the recording failed: {why}"))).ok()
    }
}

fn record(mut instance: Instance, done: &AtomicBool) -> Outcome {
    calls::block_signals();
    let mut sink = Collect::new();
    let mut live = instance.reader(&mut sink)?;
    while !done.load(Ordering::Acquire) {
        instance.drain(&mut live)?;
        std::thread::park_timeout(PERIOD);
    }
    let finished = instance.finish(live)?;
    let n_cpus = finished.summary.n_cpus;
    Ok((sink.finish(finished.comms, n_cpus), finished.overrun))
}
