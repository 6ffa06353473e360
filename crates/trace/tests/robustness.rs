// SPDX-License-Identifier: GPL-2.0-only
//! No input makes a reader panic, hang or use memory without bound: random bytes, damaged
//! recordings, and the kept corpus of odd files.

#[path = "support/form.rs"]
mod form;
mod support;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use form::read_form;
use proptest::prelude::*;
use proptest::sample::Index;
use schedlab_trace::{Format, detect, read};
use support::{streams, to_slt};

fn dir(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Every reader on the same bytes; the outcome does not matter, but must be the same twice.
fn feed_all(bytes: &[u8]) {
    let _ = detect(bytes);
    let first = read(bytes);
    // Another division into chunks changes nothing, but for what can be detected in the first.
    let chunked = read_form(Format::PerfScript, std::io::BufReader::with_capacity(7, bytes));
    assert_eq!(chunked, read_form(Format::PerfScript, bytes));
    let _ = read_form(Format::FtraceText, bytes);
    let _ = read_form(Format::Slt, bytes);
    if let Ok(read) = &first {
        let records = &read.recording.records;
        assert!(records.is_sorted_by_key(|r| r.time));
        assert!(records.iter().all(|r| r.cpu.0 < read.recording.n_cpus));
        assert!(!read.summary.to_string().is_empty());
    }
    assert_eq!(first, read(bytes));
}

/// A perf.data file, unpacked.
fn perf_data() -> &'static [u8] {
    static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    BYTES.get_or_init(|| {
        let packed = std::fs::read(dir("fixtures/vm-groups.data.zst")).expect("a fixture");
        let mut bytes = Vec::new();
        let mut decoder = ruzstd::decoding::StreamingDecoder::new(&packed[..]).expect("zstd");
        std::io::Read::read_to_end(&mut decoder, &mut bytes).expect("zstd");
        bytes
    })
}

/// A text packed with gzip and one with zstd.
fn packed_texts() -> &'static [Vec<u8>; 2] {
    static BYTES: std::sync::OnceLock<[Vec<u8>; 2]> = std::sync::OnceLock::new();
    BYTES.get_or_init(|| {
        let text = std::fs::read(dir("fixtures/vm-groups.txt")).expect("a fixture");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, &text).expect("a Vec takes any write");
        let zstd = std::fs::read(dir("fixtures/vm-jobs.txt.zst")).expect("a fixture");
        [encoder.finish().expect("a Vec takes any write"), zstd]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn perf_data_cut_anywhere_is_an_error_with_its_place(at in any::<Index>()) {
        let whole = perf_data();
        let cut = &whole[..at.index(whole.len())];
        let fault = read(cut).expect_err("cut");
        prop_assert!(cut.len() < 16 || fault.message.starts_with("byte "), "{}", fault);
    }

    #[test]
    fn perf_data_damaged_anywhere_does_not_panic(
        changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..9),
        in_head in any::<bool>(),
    ) {
        let mut bytes = perf_data().to_vec();
        let n = if in_head { 2000 } else { bytes.len() };
        for (at, byte) in changes {
            let at = at.index(n);
            bytes[at] = byte;
        }
        let _ = read(&bytes[..]);
    }

    #[test]
    fn packed_file_cut_anywhere_is_an_error(at in any::<Index>()) {
        let packed = std::fs::read(dir("fixtures/vm-jobs.txt.zst")).expect("a fixture");
        let cut = &packed[..at.index(packed.len())];
        prop_assert!(read(cut).is_err());
    }

    #[test]
    fn packed_file_damaged_anywhere_is_an_error(
        at in any::<Index>(),
        flip in 1..=u8::MAX,
        packing in 0..2usize,
    ) {
        let whole = &packed_texts()[packing];
        let mut packed = whole.clone();
        let at = at.index(packed.len());
        packed[at] ^= flip;
        // Both have a checksum. What it cannot see is damage to bits that say nothing, such as the
        // date of gzip or the length of a code that no symbol uses: then all is there.
        if let Ok(trace) = read(&packed[..]) {
            prop_assert!(trace == read(&whole[..]).expect("whole"), "byte {}", at);
        }
    }

    #[test]
    fn random_bytes_behind_a_packed_head_do_no_harm(
        bytes in proptest::collection::vec(any::<u8>(), 0..500),
        packing in 0..2usize,
        keep in 4..60usize,
    ) {
        let packed = &packed_texts()[packing];
        let _ = read(&[&packed[..keep], &bytes[..]].concat()[..]);
    }
}

/// Pieces that steer random input into the depths of the parsers.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&[u8]; 31] = [
        b"[",
        b"] ",
        b"[000] ",
        b" 1.000001: ",
        b"a-5 ",
        b" 5/5 ",
        b"(-----) ",
        b"d..2. ",
        b"sched:sched_switch: ",
        b"sched_switch: ",
        b"sched_waking: ",
        b"prev_comm=",
        b" prev_pid=5",
        b" prev_prio=120",
        b" prev_state=S",
        b" ==> ",
        b" ==> next_comm=",
        b" next_pid=6",
        b" next_prio=120",
        b"comm=",
        b" pid=7",
        b" prio=-1",
        b" target_cpu=003",
        b":5 [120] ",
        b"CPU:1 [LOST 5 EVENTS]",
        b"##### CPU 1 buffer started ####",
        b"99999999999999999999",
        b"\n",
        b"\r\n",
        b"\t",
        b"\xff",
    ];
    proptest::collection::vec(prop::sample::select(&PIECES[..]), 0..60)
        .prop_map(|pieces| pieces.concat())
}

fn fixture_text() -> impl Strategy<Value = Vec<u8>> {
    const NAMES: [&str; 6] = [
        "ftrace.txt",
        "ftrace-tgid.txt",
        "trace-cmd-plugin.txt",
        "perf-callchain.txt",
        "host-timer.txt",
        "vm-groups.txt",
    ];
    (prop::sample::select(&NAMES[..]), any::<Index>()).prop_map(|(name, at)| {
        let bytes = std::fs::read(dir("fixtures").join(name)).expect("fixture");
        // A stretch of some 40 lines is enough to be damaged.
        let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
        let at = at.index(lines.len());
        lines[at..lines.len().min(at + 40)].concat()
    })
}

/// A change to a text.
#[derive(Clone, Debug)]
enum Damage {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    Truncate(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (any::<Index>(), pieces()).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (any::<Index>(), 1..80usize).prop_map(|(at, n)| Damage::Remove(at, n)),
        (any::<Index>(), 1..300usize).prop_map(|(at, n)| Damage::Repeat(at, n)),
        any::<Index>().prop_map(Damage::Truncate),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let len = bytes.len();
    match damage {
        Damage::Set(at, byte) => bytes[at.index(len)] = *byte,
        Damage::Insert(at, new) => {
            let at = at.index(len);
            bytes.splice(at..at, new.iter().copied());
        }
        Damage::Remove(at, n) => {
            let at = at.index(len);
            bytes.drain(at..(at + n).min(len));
        }
        Damage::Repeat(at, n) => {
            let at = at.index(len);
            let copy = bytes[at..(at + n).min(len)].to_vec();
            bytes.splice(at..at, copy);
        }
        Damage::Truncate(at) => bytes.truncate(at.index(len)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn random_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        feed_all(&bytes);
    }

    #[test]
    fn random_pieces_do_no_harm(bytes in pieces()) {
        feed_all(&bytes);
    }

    #[test]
    fn damaged_recordings_do_no_harm(
        mut bytes in fixture_text(),
        damages in proptest::collection::vec(damage(), 1..6),
    ) {
        for damage in &damages {
            apply(&mut bytes, damage);
        }
        feed_all(&bytes);
    }

    #[test]
    fn damaged_slt_does_no_harm(
        steps in streams(30),
        damages in proptest::collection::vec(damage(), 1..4),
    ) {
        let mut bytes = to_slt(&steps);
        for damage in &damages {
            apply(&mut bytes, damage);
        }
        let _ = read_form(Format::Slt, &bytes[..]);
    }
}

/// Every kept file still has the outcome it had.
#[test]
fn corpus_outcomes() {
    let mut all = String::new();
    for kind in ["text", "slt"] {
        let mut files: Vec<PathBuf> = std::fs::read_dir(dir("corpus").join(kind))
            .expect("corpus")
            .map(|entry| entry.expect("entry").path())
            .collect();
        files.sort();
        assert!(!files.is_empty());
        for file in files {
            let bytes = std::fs::read(&file).expect("corpus file");
            feed_all(&bytes);
            let outcome = match kind {
                "slt" => read_form(Format::Slt, &bytes[..]),
                _ => read(&bytes[..]),
            };
            let outcome = outcome.map(|read| format!("{} records", read.summary.records));
            let outcome = outcome.unwrap_or_else(|error| format!("error: {error}"));
            let name = file.file_name().expect("a file").to_string_lossy().into_owned();
            writeln!(all, "{kind}/{name}\n    {outcome}").expect("a String takes any write");
        }
    }
    insta::assert_snapshot!(all);
}
