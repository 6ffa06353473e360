// SPDX-License-Identifier: GPL-2.0-only
//! Memory does not grow with the length of a text.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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

/// A recording again and again, each time ten seconds later, until enough bytes were given.
struct Repeated {
    /// Each line before its seconds, the seconds, and from the dot on.
    lines: Vec<(&'static str, u64, &'static str)>,
    copy: Vec<u8>,
    at: usize,
    seconds: u64,
    left: usize,
}

impl Repeated {
    fn new(left: usize) -> Self {
        let text = include_str!("fixtures/vm-jobs-head.txt");
        let lines = text.split_inclusive('\n').map(|line| {
            let time = line.find("] ").expect("a record") + 2;
            let time = time + line[time..].find(|c| c != ' ').expect("a time");
            let dot = time + line[time..].find('.').expect("a fraction");
            (&line[..time], line[time..dot].parse().expect("seconds"), &line[dot..])
        });
        Self { lines: lines.collect(), copy: Vec::new(), at: 0, seconds: 0, left }
    }
}

impl Read for Repeated {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at == self.copy.len() {
            self.copy.clear();
            self.at = 0;
            if self.left == 0 {
                return Ok(0);
            }
            for (before, seconds, after) in &self.lines {
                self.copy.extend_from_slice(before.as_bytes());
                self.copy.extend_from_slice((seconds + self.seconds).to_string().as_bytes());
                self.copy.extend_from_slice(after.as_bytes());
            }
            self.seconds += 10;
            self.left = self.left.saturating_sub(self.copy.len());
        }
        let n = (&self.copy[self.at..]).read(buf)?;
        self.at += n;
        Ok(n)
    }
}

struct Count(u64);

impl RecordSink for Count {
    fn record(&mut self, _record: &TraceRecord, _comms: &Comms) {
        self.0 += 1;
    }
}

/// `SCHEDLAB_TRACE_MB` sets another length than 64 MB.
#[test]
fn text_of_any_length_is_read_in_16_megabytes() {
    let mb = std::env::var("SCHEDLAB_TRACE_MB").map_or(64, |n| n.parse().expect("a number"));
    let mut sink = Count(0);
    let (summary, _) = read_into(Repeated::new(mb * 1_000_000), &mut sink).expect("readable");
    assert_eq!(sink.0, summary.records);
    assert!(summary.records > mb as u64 * 6000, "{summary}");
    let peak = PEAK_BYTES.load(Relaxed);
    assert!(peak < 16 << 20, "{peak} bytes");
}
