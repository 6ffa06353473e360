// SPDX-License-Identifier: GPL-2.0-only
//! trace.dat files of both versions against what `trace-cmd report` makes of them.

#[path = "support/compare.rs"]
mod compare;

use std::path::Path;

use compare::comparable;
use proptest::prelude::*;
use proptest::sample::Index;
use schedlab_policy_api::{RecordContext, RecordEvent};
use schedlab_trace::{Format, read};

const FILES: [&str; 3] = ["jobs-v6.dat", "jobs-v7.dat", "jobs-v7-zstd.dat"];

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(path).expect("a fixture")
}

#[test]
fn trace_dat_holds_what_its_report_holds() {
    let text = read(&fixture("jobs.txt")[..]).expect("a report");
    let theirs = comparable(&text.recording);
    for name in FILES {
        let file = read(&fixture(name)[..]).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(file.summary.format, Format::TraceDat);
        let ours = comparable(&file.recording);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs, "{name}");
        }
        assert_eq!(ours.len(), theirs.len(), "{name}");
        assert_eq!(file.summary.events, text.summary.events, "{name}");
    }
}

#[test]
fn trace_dat_tells_interrupts_from_threads() {
    let file = read(&fixture("jobs-v6.dat")[..]).expect("readable");
    let wakings = file.recording.records.iter();
    let wakings = wakings.filter(|r| matches!(r.event, RecordEvent::Waking { .. }));
    let by_interrupt = wakings.clone().filter(|r| r.context == RecordContext::Interrupt).count();
    assert!(by_interrupt >= 3, "three sleeps of 10 ms, {by_interrupt} wake-ups by interrupts");
    assert!(wakings.count() > by_interrupt);
}

#[test]
fn trace_dat_with_another_clock_or_packing_is_refused_with_advice() {
    let swapped = |from: &[u8], to: &[u8]| {
        let mut bytes = fixture("jobs-v7.dat");
        let at = bytes.windows(from.len()).position(|w| w == from).expect("in the file");
        bytes[at..at + from.len()].copy_from_slice(to);
        read(&bytes[..]).expect_err("refused").to_string()
    };
    let clock = swapped(b"[mono] mono_raw boot tai", b" mono mono_raw boot [x8]");
    assert!(clock.contains("the clock `x8` does not count ns") && clock.contains("-C mono"));
    let packing = swapped(b"none\0", b"lzma\0");
    assert!(packing.contains("packed with lzma") && packing.contains("--compression none"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn trace_dat_cut_anywhere_is_an_error_with_its_place(which in 0usize..3, at in any::<Index>()) {
        let whole = fixture(FILES[which]);
        let cut = at.index(whole.len());
        match read(&whole[..cut]) {
            Err(fault) => {
                let has_place = fault.message.starts_with("byte ") || cut < 10;
                prop_assert!(has_place, "cut at {}: {}", cut, fault);
            }
            // Version 7 ends with names of its sections, which nobody needs.
            Ok(trace) => {
                let all = read(&whole[..]).expect("whole").summary;
                prop_assert!(trace.summary == all, "cut at {}", cut);
            }
        }
    }

    #[test]
    fn trace_dat_damaged_anywhere_does_not_panic(
        which in 0usize..3,
        changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..9),
    ) {
        let mut bytes = fixture(FILES[which]);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&bytes[..]);
    }
}
