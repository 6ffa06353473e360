// SPDX-License-Identifier: GPL-2.0-only
//! Keeping a transcript: what is written, and that a bad disk never holds the host up.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use schedlab_live::message::{Kind, Message, Msg};
use schedlab_live::transcript::{Input, Keeper};
use schedlab_trace::transcript::{End, Frame, Header, SCHEMA, open};

/// A file in memory that takes bytes only once `gate` is closed, and `room` of them.
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    gate: Option<Receiver<()>>,
    room: usize,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(gate) = self.gate.take() {
            let _ = gate.recv();
        }
        let mut all = self.bytes.lock().expect("nobody panics with it");
        if all.len() + bytes.len() > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        all.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A keeper with its header written, and the file.
fn keeper(gate: Option<Receiver<()>>, room: usize) -> (Keeper, Arc<Mutex<Vec<u8>>>) {
    let bytes = Arc::default();
    let keeper = Keeper::new(Disk { bytes: Arc::clone(&bytes), gate, room }).expect("a thread");
    keeper.head(&Header { schema: SCHEMA.to_string(), ..Header::default() });
    (keeper, bytes)
}

fn end() -> End {
    End { clock: 9, is_complete: true, is_valid: true, ring_full: 0, why: "over".to_string() }
}

fn tick(t_ns: u64) -> Message {
    let msg = Msg { t_ns, kind: Kind::Tick as u16, ..Msg::default() };
    Message { kind: Kind::Tick, msg, detail: None }
}

fn frames(file: &Mutex<Vec<u8>>) -> Vec<Frame> {
    let bytes = file.lock().expect("nobody panics with it").clone();
    let mut transcript = open(&bytes[..]).expect("a transcript");
    let mut frames = Vec::new();
    while let Some(frame) = transcript.next_frame().expect("whole") {
        frames.push(frame);
    }
    frames
}

#[test]
fn time_that_passes_quietly_is_written_once() {
    let (keeper, file) = keeper(None, usize::MAX);
    for clock in 1..=5 {
        keeper.input(Input::Clock { clock, acts: clock == 3 });
    }
    keeper.input(Input::Records(&[tick(6), tick(7)]));
    keeper.input(Input::Clock { clock: 8, acts: false });
    let kept = keeper.finish(end());
    assert!(kept.is_complete && kept.error.is_none());
    let expected = [
        Frame::Clock(3),
        Frame::Clock(5),
        Frame::Record(tick(6)),
        Frame::Record(tick(7)),
        Frame::Handle,
        Frame::Clock(8),
        Frame::End(end()),
    ];
    assert_eq!(frames(&file), expected);
}

#[test]
fn disk_that_is_too_slow_ends_the_transcript_and_not_the_run() {
    let (open_gate, gate) = channel();
    let (keeper, file) = keeper(Some(gate), usize::MAX);
    let batch: Vec<Message> = (0..1000).map(tick).collect();
    // 58 bytes for each record: more than 32 MiB in all.
    for _ in 0..700 {
        keeper.input(Input::Records(&batch));
    }
    drop(open_gate);
    let kept = keeper.finish(end());
    assert!(!kept.is_complete && kept.error.is_none());
    let frames = frames(&file);
    assert_eq!(frames.last(), Some(&Frame::End(End { is_complete: false, ..end() })));
    assert!(frames.len() > 500_000 && frames.len() < 700_000, "{}", frames.len());
}

#[test]
fn full_disk_is_told_and_what_was_written_is_good() {
    let (keeper, file) = keeper(None, 200_000);
    let batch: Vec<Message> = (0..1000).map(tick).collect();
    for _ in 0..10 {
        keeper.input(Input::Records(&batch));
    }
    let kept = keeper.finish(end());
    assert_eq!(kept.error.map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
    assert!(!kept.is_complete);
    assert_eq!(kept.bytes, file.lock().expect("nobody panics with it").len() as u64);
    assert!(!frames(&file).is_empty());
}
