// SPDX-License-Identifier: GPL-2.0-only
//! Every form that is written and read keeps every record; snapshots of what each looks like.

#[path = "support/compare.rs"]
mod compare;
mod support;

use std::path::Path;
use std::sync::{Arc, Mutex};

use compare::comparable;
use proptest::prelude::*;
use proptest::sample::Index;
use schedlab_policy_api::Recording;
use schedlab_trace::{
    Collect, Comms, Format, PolicyValue, Recorder, ValueOf, WrittenForm, read, written_form,
};
use schedlab_units::{CpuId, Time};
use support::{feed, streams, to_slt};

/// Output that can still be looked at when the writer owns it.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn form(extension: &str) -> &'static WrittenForm {
    written_form(extension).expect("a form")
}

/// `recording` in the form with this extension.
fn write(recording: &Recording, extension: &str) -> Vec<u8> {
    let out = Shared::default();
    let mut writer = form(extension).open(Box::new(out.clone()), "a test");
    let comms = Comms::from_names(recording.comms.clone());
    for (thread, process) in &recording.tgids {
        writer.process(*thread, *process);
    }
    for record in &recording.records {
        writer.record(record, &comms);
    }
    writer.close().expect("memory takes any write");
    let bytes = out.0.lock().expect("not poisoned");
    bytes.clone()
}

/// What must come back: every record with names, contexts and all.
fn lines(recording: &Recording) -> Vec<String> {
    let contexts = recording.records.iter().map(|r| format!(" {:?}", r.context));
    comparable(recording).into_iter().zip(contexts).map(|(line, c)| line + &c).collect()
}

fn fixture(name: &str) -> Recording {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let bytes = std::fs::read(path).expect("a fixture");
    read(&bytes[..]).unwrap_or_else(|fault| panic!("{name}: {fault}")).recording
}

fn assert_same(before: &Recording, after: &Recording, what: &str) {
    let (before, after) = (lines(before), lines(after));
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after, "{what}");
    }
    assert_eq!(before.len(), after.len(), "{what}");
}

#[test]
fn captures_come_back_from_every_form() {
    for name in [
        "host-pingpong.data.zst",
        "host-timer.data.zst",
        "vm-groups.data.zst",
        "vm-jobs.data.zst",
        "host-pingpong.txt",
        "vm-jobs-tail.txt",
        "ftrace-tgid.txt",
        "perf-callchain.txt",
        "jobs-v7.dat",
    ] {
        let recording = fixture(name);
        for (extension, format) in
            [("pftrace", Format::Perfetto), ("json", Format::Chrome), ("txt", Format::FtraceText)]
        {
            let bytes = write(&recording, extension);
            let back = read(&bytes[..]).unwrap_or_else(|why| panic!("{name} {extension}: {why}"));
            assert_eq!(back.summary.format, format, "{name}");
            assert_same(&recording, &back.recording, &format!("{name} as {extension}"));
            assert_eq!(back.summary.n_other(), 0, "{name} as {extension}");
        }
    }
}

#[test]
fn csv_has_a_row_for_every_record() {
    let recording = fixture("vm-groups.txt");
    let text = String::from_utf8(write(&recording, "csv")).expect("UTF-8");
    let n_columns = text.lines().next().expect("a heading").split(',').count();
    assert_eq!(text.lines().count(), recording.records.len() + 1);
    assert!(text.lines().all(|line| line.contains('"') || line.split(',').count() == n_columns));
    let head: Vec<&str> = text.lines().take(12).collect();
    insta::assert_snapshot!(head.join("\n"));
}

#[test]
fn chrome_json_is_one_valid_document() {
    let bytes = write(&fixture("vm-groups.txt"), "json");
    let document: serde_json::Value = serde_json::from_slice(&bytes).expect("valid JSON");
    assert!(document["traceEvents"].as_array().expect("events").len() > 687);
    let text = String::from_utf8(bytes).expect("UTF-8");
    let head: Vec<&str> = text.lines().take(14).collect();
    insta::assert_snapshot!(head.join("\n"));
}

#[test]
fn foreign_chrome_json_is_refused() {
    let text = "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"name\":\"a\",\"pid\":1}]}\n";
    let fault = read(text.as_bytes()).expect_err("not ours").to_string();
    assert!(fault.contains("was not written by schedlab"), "{fault}");
}

#[test]
fn values_of_a_policy_become_counters() {
    for (extension, mark) in [("pftrace", &b"vruntime"[..]), ("json", b"\"ph\":\"C\"")] {
        let out = Shared::default();
        let mut writer = form(extension).open(Box::new(out.clone()), "a test");
        let of = ValueOf::Thread(schedlab_policy_api::Pid(7));
        let (time, value) = (Time::from_ns(5), -3);
        writer.value(&PolicyValue { time, of, name: "vruntime", value });
        let of = ValueOf::Cpu(CpuId(1));
        writer.value(&PolicyValue { time, of, name: "load", value });
        writer.close().expect("memory takes any write");
        let bytes = out.0.lock().expect("not poisoned");
        assert!(bytes.windows(mark.len()).any(|window| window == mark), "{extension}");
    }
}

#[test]
fn perfetto_file_tells_by_which_kernel_states_are_numbered() {
    let bytes = write(&fixture("vm-groups.txt"), "pftrace");
    let place = |mark: &[u8]| bytes.windows(mark.len()).position(|window| window == mark);
    let release = place(b"6.12.0-schedlab").expect("a release");
    assert!(release < place(b"load").expect("an event"), "events come first");
}

#[test]
fn corpus_of_damaged_files_has_the_same_outcomes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut all = String::new();
    for kind in ["perfetto", "chrome"] {
        let mut files: Vec<_> = std::fs::read_dir(corpus.join(kind))
            .expect("a folder")
            .map(|entry| entry.expect("readable").path())
            .collect();
        files.sort();
        assert!(files.len() > 4, "{kind}");
        for file in files {
            let bytes = std::fs::read(&file).expect("readable");
            let outcome = match read(&bytes[..]) {
                Ok(trace) => format!("{} records", trace.summary.records),
                Err(fault) => format!("error: {fault}"),
            };
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            all.push_str(&format!("{kind}/{name}\n    {outcome}\n"));
        }
    }
    insta::assert_snapshot!(all);
}

proptest! {
    #[test]
    fn simulated_runs_come_back_from_every_form(steps in streams(120)) {
        let mut builder = Recorder::new(Collect::new());
        feed(&steps, &mut builder);
        let direct = builder.into_recording();
        if let Ok(back) = read(&to_slt(&steps)[..]) {
            prop_assert_eq!(lines(&back.recording), lines(&direct));
        }
        for extension in ["pftrace", "json", "txt"] {
            let bytes = write(&direct, extension);
            match read(&bytes[..]) {
                Ok(back) => prop_assert_eq!(lines(&back.recording), lines(&direct)),
                Err(fault) => prop_assert!(direct.records.is_empty(), "{}: {}", extension, fault),
            }
        }
    }

    #[test]
    fn file_cut_anywhere_is_an_error(perfetto in any::<bool>(), at in any::<Index>()) {
        let bytes = write(&fixture("jobs-v7.dat"), if perfetto { "pftrace" } else { "json" });
        let cut = at.index(bytes.len() - 2);
        prop_assert!(read(&bytes[..cut]).is_err());
    }

    #[test]
    fn file_damaged_anywhere_does_not_panic(
        perfetto in any::<bool>(),
        changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..9),
    ) {
        let mut bytes = write(&fixture("jobs-v7.dat"), if perfetto { "pftrace" } else { "json" });
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&bytes[..]);
    }
}
