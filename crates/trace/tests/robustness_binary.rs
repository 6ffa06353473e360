// SPDX-License-Identifier: GPL-2.0-only
//! No perf.data and no trace.dat makes its reader panic, hang or use memory without bound: files
//! cut everywhere, damaged at random and by hostile numbers, and the kept corpus.

#[path = "support/binary.rs"]
mod binary;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use binary::{Machine, comm_record, compressed, lost_record, perf_data, perf_pipe, run, samples};
use binary::{trace_dat_6, trace_dat_7};
use proptest::prelude::*;
use proptest::sample::Index;
use schedlab_trace::{Read, read};

fn dir(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// As many cases as `PROPTEST_CASES` says, or this many.
fn cases(n: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(n),
    }
}

/// Whole files of every form.
fn files() -> &'static [(&'static str, Vec<u8>)] {
    static FILES: OnceLock<Vec<(&str, Vec<u8>)>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut all = Vec::new();
        for machine in [Machine::ALL[0], Machine::ALL[3]] {
            let events = run(machine);
            let mut records = machine.out();
            comm_record(&mut records, 11);
            records.raw(&samples(machine, &events[..3]).bytes);
            lost_record(&mut records, 2, 0, events[3].time, 0, 5);
            records.raw(&samples(machine, &events[3..]).bytes);
            all.extend([
                ("perf.data", perf_data(machine, &records.bytes)),
                ("compressed", perf_data(machine, &compressed(machine, &records.bytes).bytes)),
                ("pipe", perf_pipe(machine, &records.bytes)),
                ("version 6", trace_dat_6(machine, &events, Some(3))),
                ("version 7", trace_dat_7(machine, &events, false, &["", "other"])),
                ("zlib", trace_dat_7(machine, &events, true, &[""])),
            ]);
        }
        let zstd = std::fs::read(dir("fixtures/jobs-v7-zstd.dat")).expect("a fixture");
        all.push(("zstd", zstd));
        all
    })
}

/// Reads twice; the outcome must be the same.
fn feed(bytes: &[u8]) -> Result<Read, String> {
    let first = read(bytes);
    assert_eq!(first, read(bytes));
    let read = first.map_err(|fault| fault.to_string())?;
    let records = &read.recording.records;
    assert!(records.is_sorted_by_key(|r| r.time));
    assert!(records.iter().all(|r| r.cpu.0 < read.recording.n_cpus));
    assert!(!read.summary.to_string().is_empty());
    Ok(read)
}

#[test]
fn cut_anywhere_is_an_error_with_its_place() {
    for (name, whole) in files() {
        let all = read(&whole[..]).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let n_records = all.summary.records;
        // Pages are mostly empty: not every byte of them need be the last.
        for cut in (0..whole.len()).filter(|n| *n < 6000 || n % 17 == 0) {
            match read(&whole[..cut]) {
                Err(fault) => {
                    // A pipe has no length: cut between records, it is a shorter one.
                    let has_place = fault.message.starts_with("byte ")
                        || cut < 16
                        || (*name == "pipe" && fault.message.contains("holds no"));
                    assert!(has_place, "{name} cut at {cut}: {fault}");
                }
                Ok(cut_file) => {
                    let same = cut_file.summary == all.summary;
                    let fewer = *name == "pipe" && cut_file.summary.records < n_records;
                    assert!(same || fewer, "{name} cut at {cut}");
                }
            }
        }
    }
}

/// A change to a file.
#[derive(Clone, Debug)]
enum Damage {
    Set(Index, u8),
    Flip(Index, u8),
    /// A number in place of what was there.
    Number(Index, u64, bool, bool),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    Truncate(Index),
}

/// Numbers that lengths, counts and offsets should not be.
const HOSTILE: [u64; 16] = [
    0,
    1,
    3,
    7,
    255,
    0x7fff,
    0xffff,
    1 << 20,
    1 << 26,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 32,
    1 << 40,
    1 << 63,
    u64::MAX - 8,
    u64::MAX,
];

fn damage() -> impl Strategy<Value = Damage> {
    let hostile = prop::sample::select(&HOSTILE[..]);
    prop_oneof![
        2 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        2 => (any::<Index>(), 0..8u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        4 => (any::<Index>(), hostile, any::<bool>(), any::<bool>())
            .prop_map(|(at, n, is_long, is_big)| Damage::Number(at, n, is_long, is_big)),
        1 => (any::<Index>(), proptest::collection::vec(any::<u8>(), 1..40))
            .prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        1 => (any::<Index>(), 1..80usize).prop_map(|(at, n)| Damage::Remove(at, n)),
        1 => (any::<Index>(), 1..300usize).prop_map(|(at, n)| Damage::Repeat(at, n)),
        1 => any::<Index>().prop_map(Damage::Truncate),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage, reach: usize) {
    let len = bytes.len().min(reach);
    if len == 0 {
        return;
    }
    match damage {
        Damage::Set(at, byte) => bytes[at.index(len)] = *byte,
        Damage::Flip(at, bit) => bytes[at.index(len)] ^= 1 << bit,
        Damage::Number(at, n, is_long, is_big) => {
            let size = if *is_long { 8 } else { 4 };
            let mut word = n.to_le_bytes()[..size].to_vec();
            if *is_big {
                word.reverse();
            }
            // Numbers of these forms mostly stand at multiples of four.
            let at = at.index(len) & !3;
            let size = size.min(bytes.len() - at);
            bytes[at..at + size].copy_from_slice(&word[..size]);
        }
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
    #![proptest_config(cases(400))]

    #[test]
    fn damaged_files_do_no_harm(
        which in any::<Index>(),
        in_head in any::<bool>(),
        damages in proptest::collection::vec(damage(), 1..6),
    ) {
        let (_, whole) = &files()[which.index(files().len())];
        let mut bytes = whole.clone();
        let reach = if in_head { 300 } else { usize::MAX };
        for damage in &damages {
            apply(&mut bytes, damage, reach);
        }
        if let Err(fault) = feed(&bytes) {
            prop_assert!(!fault.is_empty());
        }
    }

    #[test]
    fn random_bytes_behind_a_heading_do_no_harm(
        which in any::<Index>(),
        keep in 8..400usize,
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let (_, whole) = &files()[which.index(files().len())];
        let mut file = whole[..keep.min(whole.len())].to_vec();
        file.extend(bytes);
        let _ = feed(&file);
    }
}

/// Every kept file still has the outcome it had.
#[test]
fn corpus_of_binary_forms_outcomes() {
    let mut all = String::new();
    for kind in ["perf_data", "trace_dat"] {
        let mut files: Vec<PathBuf> = std::fs::read_dir(dir("corpus").join(kind))
            .expect("corpus")
            .map(|entry| entry.expect("entry").path())
            .collect();
        files.sort();
        assert!(!files.is_empty());
        for file in files {
            let outcome = match feed(&std::fs::read(&file).expect("corpus file")) {
                Ok(read) => format!("{} records", read.summary.records),
                Err(fault) => format!("error: {fault}"),
            };
            let name = file.file_name().expect("a file").to_string_lossy().into_owned();
            writeln!(all, "{kind}/{name}\n    {outcome}").expect("a String takes any write");
        }
    }
    insta::assert_snapshot!(all);
}
