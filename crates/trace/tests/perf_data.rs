// SPDX-License-Identifier: GPL-2.0-only
//! perf.data files of real kernels against the text that `perf script` makes of them.

#[path = "support/compare.rs"]
mod compare;

use std::io::Cursor;
use std::path::Path;

use compare::comparable;
use schedlab_policy_api::{RecordContext, RecordEvent};
use schedlab_trace::{Collect, Format, Read, read, read_file};

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(path).expect("a fixture")
}

fn unpacked(name: &str) -> Read {
    read(&fixture(name)[..]).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

#[test]
fn perf_data_holds_what_its_text_holds() {
    for (data, text) in [
        ("host-pingpong.data.zst", "host-pingpong.txt"),
        ("host-timer.data.zst", "host-timer.txt"),
        ("vm-groups.data.zst", "vm-groups.txt"),
        ("vm-jobs.data.zst", "vm-jobs.txt.zst"),
        ("pipe.data.zst", "pipe.txt"),
        ("packed.data.zst", "packed.txt"),
    ] {
        let (data, text) = (unpacked(data), unpacked(text));
        assert_eq!(data.summary.format, Format::PerfData);
        let (ours, theirs) = (comparable(&data.recording), comparable(&text.recording));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs);
        }
        assert_eq!(ours.len(), theirs.len());
        assert_eq!(data.recording.tgids, text.recording.tgids);
        assert_eq!(data.recording.n_cpus, text.recording.n_cpus);
        assert_eq!(data.summary.events, text.summary.events);
    }
}

#[test]
fn perf_data_tells_interrupts_from_threads() {
    let timer = unpacked("host-timer.data.zst");
    let wakings = timer.recording.records.iter();
    let wakings = wakings.filter(|r| matches!(r.event, RecordEvent::Waking { .. }));
    let (mut by_interrupt, mut by_thread) = (0, 0);
    for record in wakings {
        match record.context {
            RecordContext::Interrupt => by_interrupt += 1,
            _ => by_thread += 1,
        }
    }
    assert!(by_interrupt >= 150, "150 timer sleeps, {by_interrupt} wake-ups by interrupts");
    assert!(by_thread > 0);
}

#[test]
fn perf_data_summary_names_its_origin() {
    let groups = unpacked("vm-groups.data.zst");
    insta::assert_snapshot!(groups.summary);
}

#[test]
fn perf_data_of_a_seekable_file_is_read_in_place() {
    let packed = fixture("vm-groups.data.zst");
    let mut bytes = Vec::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(&packed[..]).expect("zstd");
    std::io::Read::read_to_end(&mut decoder, &mut bytes).expect("zstd");
    let mut sink = Collect::new();
    let (summary, _) = read_file(Cursor::new(bytes), &mut sink).expect("readable");
    assert_eq!(summary, unpacked("vm-groups.data.zst").summary);
}
