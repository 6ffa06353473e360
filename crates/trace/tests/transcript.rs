// SPDX-License-Identifier: GPL-2.0-only
//! Transcripts of live runs: what a reader of traces sees in them, and what damage does to them.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::sample::Index;
use schedlab_policy_api::{RecordEvent, Recording};
use schedlab_trace::transcript::message::{Decision, Detail, Kind, Message, Msg, Run, flag};
use schedlab_trace::transcript::{Block, End, Frame, Header, MAGIC, Output, PREFIX, SCHEMA, open};
use schedlab_trace::{Format, detect, event_name, read};
use schedlab_units::{CpuId, CpuSet};

const FORK: u32 = 1;
const WAKE: u32 = 2;
const SLICE: u32 = 3;

fn header() -> Header {
    Header {
        schema: SCHEMA.to_string(),
        policy: "rr".to_string(),
        kernel: "6.12".to_string(),
        kernel_hz: 1000,
        cpus: "0-1".to_string(),
        ..Header::default()
    }
}

fn record(kind: Kind, t_us: u64, pid: u32, cpu: u16, flags: u32) -> Message {
    let msg = Msg { t_ns: t_us * 1000, pid, cpu, flags, kind: kind as u16, ..Msg::default() };
    Message { kind, msg, detail: None }
}

fn named(mut message: Message, name: &[u8], parent: u32, nice: i64) -> Frame {
    let mut detail = Detail::default();
    detail.comm[..name.len()].copy_from_slice(name);
    message.detail = Some(Box::new(detail));
    (message.msg.b, message.msg.c) = (u64::from(message.msg.pid) << 32 | u64::from(parent), nice);
    Frame::Record(message)
}

/// A record after which the task has run for `run_us`.
fn ran(mut message: Message, run_us: u64) -> Frame {
    message.msg.run_ns = run_us * 1000;
    Frame::Record(message)
}

/// A wake-up by `waker` on `waker_cpu`.
fn woken(mut message: Message, waker: u32, waker_cpu: i64) -> Frame {
    (message.msg.b, message.msg.c) = (waker.into(), waker_cpu);
    Frame::Record(message)
}

fn give(cpu: u32, pid: u32, lease: u32) -> Frame {
    let run = Run { pid, lease };
    let decision = Decision { run, slice_ns: Decision::UNTIL_TOLD, ticks: true };
    Frame::Output(Output::Give(CpuId(cpu), decision))
}

/// A shell forks a child, which moves to the other CPU, sleeps, is woken by an interrupt and by the
/// shell, and exits.
fn run() -> Vec<Frame> {
    let plain = |message| Frame::Record(message);
    vec![
        Frame::Output(Output::Kick(CpuId(0))),
        Frame::Output(Output::Commit(CpuSet::EMPTY)),
        named(record(Kind::Join, 10, 100, 0, 0), b"sh", 1, 0),
        plain(record(Kind::Run, 11, 100, 0, 0)),
        named(record(Kind::Join, 20, 101, 0, flag::FORKED), b"sh", 100, 5),
        woken(record(Kind::Enq, 21, 101, 0, FORK), 100, 0),
        plain(record(Kind::Pick, 22, 0, 1, 0)),
        Frame::Handle,
        give(1, 101, 1),
        Frame::Output(Output::Commit(CpuSet::EMPTY)),
        plain(record(Kind::Run, 30, 101, 1, 0)),
        named(record(Kind::Exec, 32, 101, 1, 0), b"a,b", 100, 0),
        ran(record(Kind::Block, 40, 101, 1, 0), 10),
        woken(record(Kind::Enq, 50, 101, 1, WAKE | flag::IRQ), 0, 1),
        plain(record(Kind::Run, 51, 101, 1, 0)),
        // Its stamp lies before that of the record before it: another CPU wrote that one.
        ran(record(Kind::Tick, 49, 100, 0, 0), 30),
        Frame::Clock(55_000),
        ran(record(Kind::Block, 60, 101, 1, flag::UNINT), 9),
        woken(record(Kind::Enq, 70, 101, 1, WAKE), 100, 0),
        // No stamp: just after the record before it.
        plain(record(Kind::Run, 0, 101, 0, flag::DIRECT)),
        ran(record(Kind::Enq, 80, 100, 0, SLICE), 40),
        plain(record(Kind::Nice, 81, 101, 0, 0)),
        ran(record(Kind::Block, 90, 101, 0, flag::EXITING), 10),
        plain(record(Kind::Leave, 91, 101, 0, flag::EXITING)),
        plain(record(Kind::Run, 92, 555, 0, 0)),
        Frame::Handle,
        Frame::Tunable { name: "slice".to_string(), value: 3 },
    ]
}

fn end() -> Frame {
    Frame::End(End {
        clock: 99_000,
        is_complete: true,
        is_valid: true,
        ring_full: 2,
        why: "the command ended".to_string(),
    })
}

/// The file with a block for each of these.
fn file(blocks: &[&[Frame]]) -> Vec<u8> {
    let mut bytes = [&MAGIC, header().to_line().as_bytes()].concat();
    for frames in blocks {
        let mut block = Block::new();
        frames.iter().for_each(|frame| block.push(frame));
        bytes.extend(block.seal());
    }
    bytes
}

fn whole() -> Vec<u8> {
    let frames = run();
    file(&[&frames[..9], &frames[9..], &[end()]])
}

fn text(recording: &Recording) -> String {
    let mut out = String::new();
    let name = |id: schedlab_policy_api::CommId| &recording.comms[id.0 as usize];
    for record in &recording.records {
        let (us, cpu, pid) = (record.time.as_ns() / 1000, record.cpu, record.pid.0);
        let event = event_name(&record.event);
        write!(out, "{us} us CPU {cpu} {pid} {:?} {event}", record.context).expect("a String");
        let what = match record.event {
            RecordEvent::Switch { prev, prev_state, next, next_comm, next_prio, .. } => {
                let next = (next.0, name(next_comm), next_prio);
                format!("{} {prev_state:?} ==> {next:?}", prev.0)
            }
            RecordEvent::Waking { pid, target_cpu, .. }
            | RecordEvent::WakeupNew { pid, target_cpu, .. } => {
                format!("{} target {target_cpu}", pid.0)
            }
            RecordEvent::Migrate { orig_cpu, dest_cpu, .. } => format!("{orig_cpu} to {dest_cpu}"),
            RecordEvent::Fork { child, child_comm, .. } => {
                format!("{} {}", child.0, name(child_comm))
            }
            RecordEvent::StatRuntime { runtime_ns, .. } => format!("{runtime_ns}"),
            RecordEvent::Lost { count } => format!("{count}"),
            _ => name(record.comm).clone(),
        };
        writeln!(out, " {what}").expect("a String");
    }
    out
}

#[test]
fn transcript_is_read_as_tracepoints_would_show_it() {
    let bytes = whole();
    assert_eq!(detect(&bytes), Some(Format::LiveTranscript));
    let found = read(&bytes[..]).expect("readable");
    insta::assert_snapshot!(format!("{}\n{}", found.summary, text(&found.recording)));
    assert_eq!(found.recording.tgids.len(), 2);
}

#[test]
fn frames_come_back_in_order_with_header_and_end() {
    let bytes = whole();
    let mut transcript = open(&bytes[..]).expect("a header");
    assert_eq!(transcript.header(), &header());
    let mut frames = Vec::new();
    while let Some(frame) = transcript.next_frame().expect("whole") {
        frames.push(frame);
    }
    assert_eq!(frames, [run(), vec![end()]].concat());
    assert_eq!(transcript.end().map(|end| end.ring_full), Some(2));
    assert_eq!(transcript.offset(), bytes.len() as u64);
}

#[test]
fn run_that_was_killed_is_read_as_far_as_it_was_written() {
    let frames = run();
    let found = read(&file(&[&frames[..15], &frames[15..]])[..]).expect("readable");
    assert!(found.summary.origin.ends_with("the transcript has no end"), "{}", found.summary);
}

#[test]
fn cut_anywhere_is_an_error_with_its_place_or_an_end_between_blocks() {
    let whole = whole();
    let frames = run();
    let ends = [file(&[]), file(&[&frames[..9]]), file(&[&frames[..9], &frames[9..]])];
    let between: Vec<usize> = ends.iter().map(Vec::len).collect();
    for cut in 0..whole.len() {
        let mut transcript = match open(&whole[..cut]) {
            Ok(transcript) => transcript,
            Err(fault) => {
                assert!(cut < between[0], "{cut}: {fault}");
                assert!(fault.message.starts_with("byte ") || cut == 0, "{cut}: {fault}");
                continue;
            }
        };
        let mut n = 0;
        let fault = loop {
            match transcript.next_frame() {
                Ok(Some(_)) => n += 1,
                Ok(None) => break None,
                Err(fault) => break Some(fault),
            }
        };
        assert!(n <= frames.len(), "{cut}");
        match fault {
            None => assert!(between.contains(&cut), "{cut}"),
            Some(fault) => {
                let place = format!("byte {cut}: the file ends in the middle of a block");
                assert_eq!(fault.message, place);
            }
        }
    }
}

#[test]
fn damage_in_a_block_is_found_by_its_checksum() {
    let whole = whole();
    let first = file(&[]).len() + PREFIX;
    for at in [first, first + 70, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        let fault = read(&bytes[..]).expect_err("damaged");
        assert!(fault.message.ends_with("the checksum of the block is wrong"), "{fault}");
    }
    let fault = read(&[&whole[..], &file(&[])[..0], &whole[first - PREFIX..]].concat()[..]);
    let fault = fault.expect_err("two ends");
    let place = format!("byte {}: more follows the end of the run", whole.len() + PREFIX);
    assert_eq!(fault.message, place);
}

#[test]
fn header_of_another_version_is_told_apart() {
    let line = header().to_line().replace(SCHEMA, "schedlab.transcript/9");
    let fault = read(&[&MAGIC, line.as_bytes()].concat()[..]).expect_err("another version");
    assert_eq!(
        fault.message,
        "byte 8: the file has schema \"schedlab.transcript/9\", this version of schedlab reads \
         schedlab.transcript/1"
    );
    let as_text = read(&b"\x89LIV\n\x1a\n{}"[..]).expect_err("not a trace");
    assert!(!as_text.message.is_empty());
    assert_eq!(
        open(&b"\x89LIV\n\x1a\n{}"[..]).map(|_| ()).expect_err("changed").message,
        "byte 4: the line ends of the heading were changed"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Changed bytes behind valid checksums: whatever the frames say, reading ends well.
    #[test]
    fn damaged_frames_do_no_harm(
        damages in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<Index>()),
    ) {
        let mut sealed = Block::new();
        run().iter().for_each(|frame| sealed.push(frame));
        let mut frames = sealed.seal().split_off(PREFIX);
        for (at, byte) in &damages {
            let at = at.index(frames.len());
            frames[at] = *byte;
        }
        if let Some(cut) = cut {
            frames.truncate(cut.index(frames.len()));
        }
        let mut bytes = file(&[]);
        bytes.extend((frames.len() as u32).to_le_bytes());
        bytes.extend(fnv(&frames).to_le_bytes());
        bytes.extend(&frames);
        let first = read(&bytes[..]);
        prop_assert_eq!(&first, &read(&bytes[..]));
        if let Err(fault) = first {
            prop_assert!(!fault.message.is_empty());
        }
    }

    #[test]
    fn damaged_files_do_no_harm(
        damages in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..6),
        tail in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut bytes = whole();
        for (at, byte) in &damages {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        bytes.extend(tail);
        if let Err(fault) = read(&bytes[..]) {
            prop_assert!(!fault.message.is_empty());
        }
    }
}

/// The checksum of a block, written a second time.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
