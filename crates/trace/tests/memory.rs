// SPDX-License-Identifier: GPL-2.0-only
//! What reading a long text allocates: no more than reading a short one.
//!
//! `SCHEDLAB_TEXT_MB` asks for another length than 32 MB; 1000 is what users were promised.

#[path = "support/repeated.rs"]
mod repeated;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use repeated::Repeated;
use schedlab_policy_api::TraceRecord;
use schedlab_trace::{Comms, RecordSink, read_into};

struct Counting;

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system allocator unchanged; only counters are kept.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE_BYTES.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK_BYTES.fetch_max(live, Relaxed);
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Default)]
struct Count(u64);

impl RecordSink for Count {
    fn record(&mut self, _: &TraceRecord, _: &Comms) {
        self.0 += 1;
    }
}

#[test]
fn long_text_is_read_in_the_memory_of_a_short_one() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/vm-groups.txt");
    let text = std::fs::read(fixture).expect("a fixture");
    let n_lines = text.iter().filter(|b| **b == b'\n').count() as u64;
    let asked = std::env::var("SCHEDLAB_TEXT_MB").ok().and_then(|n| n.parse::<u64>().ok());
    let length = asked.unwrap_or(32) * 1_000_000;
    let source = Repeated::new(&text, length);
    let before = LIVE_BYTES.load(Relaxed);
    PEAK_BYTES.store(before, Relaxed);
    let mut sink = Count::default();
    let (summary, _) = read_into(source, &mut sink).expect("readable");
    let peak = PEAK_BYTES.load(Relaxed) - before;
    // Later copies have a few more digits in their times.
    let n_expected = length / text.len() as u64 * n_lines;
    assert!(sink.0 > n_expected * 9 / 10, "{} records of {n_expected}", sink.0);
    assert_eq!((summary.records, summary.late), (sink.0, 0));
    assert!(peak < 4_000_000, "{peak} bytes for a text of {length}");
}
