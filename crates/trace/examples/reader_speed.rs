// SPDX-License-Identifier: GPL-2.0-only
//! MB/s of the readers of text: kept recordings, repeated with their times moved on, from memory.
//!
//! Five passes, reader after reader in each; the best and the median are printed.

use std::time::Instant;

use schedlab_policy_api::TraceRecord;
use schedlab_trace::{Comms, RecordSink, read_into};

const PASSES: usize = 5;
const SIZE: usize = 32 << 20;

struct Count(u64);

impl RecordSink for Count {
    fn record(&mut self, _record: &TraceRecord, _comms: &Comms) {
        self.0 += 1;
    }
}

/// `text` again and again, each time ten seconds later.
fn repeated(text: &str) -> String {
    // The time is the first word of digits with a dot that a colon ends.
    let is_time = |word: &&str| {
        word.strip_suffix(':').is_some_and(|time| {
            time.contains('.') && time.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        })
    };
    let mut all = String::with_capacity(SIZE + text.len());
    for seconds in (0u64..).step_by(10) {
        if all.len() >= SIZE {
            break;
        }
        for line in text.lines() {
            let moved = line.split_ascii_whitespace().find(is_time).and_then(|time| {
                let (whole, fraction) = time.split_once('.')?;
                let whole: u64 = whole.parse().ok()?;
                Some(line.replacen(time, &format!("{}.{fraction}", whole + seconds), 1))
            });
            all.push_str(moved.as_deref().unwrap_or(line));
            all.push('\n');
        }
    }
    all
}

fn main() {
    let texts = [
        ("perf script", include_str!("../tests/fixtures/vm-jobs-head.txt")),
        ("perf script with call chains", include_str!("../tests/fixtures/perf-callchain.txt")),
        ("tracefs", include_str!("../tests/fixtures/ftrace.txt")),
        ("trace-cmd report", include_str!("../tests/fixtures/trace-cmd-plugin.txt")),
    ];
    let texts = texts.map(|(name, text)| (name, repeated(text)));
    let mut rates = vec![Vec::new(); texts.len()];
    let mut records = vec![0; texts.len()];
    for _ in 0..PASSES {
        for (index, (name, text)) in texts.iter().enumerate() {
            let mut sink = Count(0);
            let start = Instant::now();
            if let Err(fault) = read_into(text.as_bytes(), &mut sink) {
                panic!("{name}: {fault}");
            }
            let ns = start.elapsed().as_nanos().max(1);
            rates[index].push(text.len() as u128 * 1000 / ns);
            records[index] = sink.0;
        }
    }
    println!("| reader | best, MB/s | median, MB/s | records of {} MB |", SIZE >> 20);
    println!("|---|---|---|---|");
    for (index, (name, _)) in texts.iter().enumerate() {
        rates[index].sort_unstable();
        let (best, median) = (rates[index][PASSES - 1], rates[index][PASSES / 2]);
        println!("| {name} | {best} | {median} | {} |", records[index]);
    }
}
