// SPDX-License-Identifier: GPL-2.0-only
//! MB/s of the readers: kept recordings, texts repeated with their times moved on, from memory.
//!
//! Perfetto and Chrome files are written from a repeated text; perf.data and trace.dat cannot be
//! repeated, so that theirs are small and reading the formats of events counts more.
//! Five passes, reader after reader in each; the best and the median are printed.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use schedlab_policy_api::TraceRecord;
use schedlab_trace::{Comms, RecordSink, read_into, written_form};

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

/// A buffer that a writer may own.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// `text` in the form with this extension.
fn written(text: &[u8], extension: &str) -> Vec<u8> {
    let out = Shared::default();
    let form = written_form(extension).expect("a form");
    let mut writer = form.open(Box::new(out.clone()), "a benchmark");
    read_into(text, &mut writer).expect("readable");
    writer.close().expect("memory takes any write");
    let mut bytes = out.0.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut *bytes)
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(packed).expect("zstd");
    decoder.read_to_end(&mut bytes).expect("zstd");
    bytes
}

fn main() {
    let texts = [
        ("perf script", include_str!("../tests/fixtures/vm-jobs-head.txt")),
        ("perf script with call chains", include_str!("../tests/fixtures/perf-callchain.txt")),
        ("tracefs", include_str!("../tests/fixtures/ftrace.txt")),
        ("trace-cmd report", include_str!("../tests/fixtures/trace-cmd-plugin.txt")),
    ];
    let mut texts: Vec<(&str, Vec<u8>)> =
        texts.map(|(name, text)| (name, repeated(text).into_bytes())).into();
    let perfetto = written(&texts[0].1, "pftrace");
    let chrome = written(&texts[0].1, "json");
    let perf_data = unpacked(include_bytes!("../tests/fixtures/vm-jobs.data.zst"));
    let trace_dat = include_bytes!("../tests/fixtures/jobs-v7.dat").to_vec();
    texts.extend([
        ("Perfetto", perfetto),
        ("Chrome JSON", chrome),
        ("perf.data", perf_data),
        ("trace.dat", trace_dat),
    ]);
    let mut rates = vec![Vec::new(); texts.len()];
    let mut records = vec![0; texts.len()];
    for _ in 0..PASSES {
        for (index, (name, text)) in texts.iter().enumerate() {
            let mut sink = Count(0);
            let start = Instant::now();
            if let Err(fault) = read_into(&text[..], &mut sink) {
                panic!("{name}: {fault}");
            }
            let ns = start.elapsed().as_nanos().max(1);
            rates[index].push(text.len() as u128 * 1000 / ns);
            records[index] = sink.0;
        }
    }
    println!("| reader | best, MB/s | median, MB/s | million records/s | size |");
    println!("|---|---|---|---|---|");
    for (index, (name, text)) in texts.iter().enumerate() {
        rates[index].sort_unstable();
        let (best, median) = (rates[index][PASSES - 1], rates[index][PASSES / 2]);
        // Records of one byte, times bytes a microsecond, are millions of records a second.
        let rate = u128::from(records[index]) * best * 100 / text.len() as u128;
        let (whole, part) = (rate / 100, rate % 100);
        let size = text.len() / 1000;
        println!("| {name} | {best} | {median} | {whole}.{part:02} | {size} kB |");
    }
}
