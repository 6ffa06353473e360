// SPDX-License-Identifier: GPL-2.0-only
//! Frames: one input or output of the host each.

use schedlab_policy_api::TunableValue;
use schedlab_units::{CpuId, CpuSet};

use super::message::{self, Decision, MASK_WORDS, MAX_CPUS, Message, Run};
use crate::bytes::{Bytes, Endian};

/// Longest text in a frame, bytes.
const MAX_TEXT: usize = 1024;

/// What the host told the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The CPU is to run this next.
    Give(CpuId, Decision),
    /// This run is to end.
    Stop(CpuId, Run),
    /// The CPU is to look for work.
    Kick(CpuId),
    /// All of that takes effect; the answer is the CPUs whose decision is void.
    Commit(CpuSet),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// CLOCK_MONOTONIC in ns.
    pub clock: u64,
    /// Whether everything up to here was kept; false when the file could not be written fast enough.
    pub is_complete: bool,
    /// Whether the policy was in charge to the end.
    pub is_valid: bool,
    /// Records that the relay itself lost because its ring was full.
    pub ring_full: u64,
    /// Why it ended, a few words.
    pub why: String,
}

/// One step of a live run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A record of the relay, part of the next batch.
    Record(Message),
    /// The host handles the records since the batch before it.
    Handle,
    /// Time passes up to this CLOCK_MONOTONIC in ns without a record.
    Clock(u64),
    /// The user changes a tunable.
    Tunable {
        /// Its name.
        name: String,
        /// Its new value.
        value: TunableValue,
    },
    /// The host told the relay something.
    Output(Output),
    /// The run is over.
    End(End),
}

const RECORD: u8 = 1;
const HANDLE: u8 = 2;
const CLOCK: u8 = 3;
const TUNABLE: u8 = 4;
const GIVE: u8 = 5;
const STOP: u8 = 6;
const KICK: u8 = 7;
const COMMIT: u8 = 8;
const END: u8 = 9;

/// Why a frame cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It goes on behind the bytes there are.
    Short,
    /// It is none of ours.
    Wrong(String),
}

impl Frame {
    /// Appends the bytes of the file.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Record(message) => record(out, message),
            Self::Handle => out.push(HANDLE),
            Self::Clock(clock) => {
                out.push(CLOCK);
                out.extend(clock.to_le_bytes());
            }
            Self::Tunable { name, value } => {
                out.push(TUNABLE);
                text(out, name);
                out.extend(value.to_le_bytes());
            }
            Self::Output(output) => output.write(out),
            Self::End(end) => {
                out.push(END);
                out.extend(end.clock.to_le_bytes());
                out.extend([u8::from(end.is_complete), u8::from(end.is_valid)]);
                out.extend(end.ring_full.to_le_bytes());
                text(out, &end.why);
            }
        }
    }

    /// Takes a frame off `bytes`.
    pub(super) fn read(bytes: &mut Bytes<'_>) -> Result<Self, Flaw> {
        let kind = bytes.u8().ok_or(Flaw::Short)?;
        Ok(match kind {
            RECORD => {
                let length = bytes.u8().ok_or(Flaw::Short)?;
                let record = bytes.take(length.into()).ok_or(Flaw::Short)?;
                let message = Message::read(record);
                let message =
                    message.ok_or_else(|| Flaw::Wrong("no record is like this".into()))?;
                known(message.msg.cpu)?;
                Self::Record(message)
            }
            HANDLE => Self::Handle,
            CLOCK => Self::Clock(bytes.u64().ok_or(Flaw::Short)?),
            TUNABLE => {
                let name = read_text(bytes)?;
                Self::Tunable { name, value: bytes.u64().ok_or(Flaw::Short)? as i64 }
            }
            GIVE | STOP | KICK | COMMIT => Self::Output(Output::read(kind, bytes)?),
            END => Self::End(End {
                clock: bytes.u64().ok_or(Flaw::Short)?,
                is_complete: bytes.u8().ok_or(Flaw::Short)? != 0,
                is_valid: bytes.u8().ok_or(Flaw::Short)? != 0,
                ring_full: bytes.u64().ok_or(Flaw::Short)?,
                why: read_text(bytes)?,
            }),
            kind => return Err(Flaw::Wrong(format!("there is no frame of kind {kind}"))),
        })
    }
}

impl Output {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Give(cpu, Decision { run, slice_ns, ticks }) => {
                out.push(GIVE);
                number(out, *cpu);
                out.extend(run.pid.to_le_bytes());
                out.extend(run.lease.to_le_bytes());
                out.extend(slice_ns.to_le_bytes());
                out.push(u8::from(*ticks));
            }
            Self::Stop(cpu, run) => {
                out.push(STOP);
                number(out, *cpu);
                out.extend(run.pid.to_le_bytes());
                out.extend(run.lease.to_le_bytes());
            }
            Self::Kick(cpu) => {
                out.push(KICK);
                number(out, *cpu);
            }
            Self::Commit(busy) => {
                out.push(COMMIT);
                let words = message::words_of(busy);
                let used = words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
                out.push(used as u8);
                words[..used].iter().for_each(|word| out.extend(word.to_le_bytes()));
            }
        }
    }

    fn read(kind: u8, bytes: &mut Bytes<'_>) -> Result<Self, Flaw> {
        if kind == COMMIT {
            let mut words = [0; MASK_WORDS];
            let used = usize::from(bytes.u8().ok_or(Flaw::Short)?);
            let many = || Flaw::Wrong(format!("a set of CPUs of {used} words"));
            for word in words.get_mut(..used).ok_or_else(many)? {
                *word = bytes.u64().ok_or(Flaw::Short)?;
            }
            return Ok(Self::Commit(message::cpus_of(&words)));
        }
        let cpu = known(bytes.u16().ok_or(Flaw::Short)?)?;
        if kind == KICK {
            return Ok(Self::Kick(cpu));
        }
        let pid = bytes.u32().ok_or(Flaw::Short)?;
        let run = Run { pid, lease: bytes.u32().ok_or(Flaw::Short)? };
        if kind == STOP {
            return Ok(Self::Stop(cpu, run));
        }
        let slice_ns = bytes.u64().ok_or(Flaw::Short)?;
        let ticks = bytes.u8().ok_or(Flaw::Short)? != 0;
        Ok(Self::Give(cpu, Decision { run, slice_ns, ticks }))
    }
}

/// Appends the frame of a record.
pub(super) fn record(out: &mut Vec<u8>, message: &Message) {
    out.extend([RECORD, 0]);
    let at = out.len();
    message.write(out);
    out[at - 1] = u8::try_from(out.len() - at).expect("records are short");
}

fn number(out: &mut Vec<u8>, cpu: CpuId) {
    out.extend((cpu.0 as u16).to_le_bytes());
}

fn known(cpu: u16) -> Result<CpuId, Flaw> {
    if usize::from(cpu) < MAX_CPUS {
        Ok(CpuId(cpu.into()))
    } else {
        Err(Flaw::Wrong(format!("there is no CPU {cpu}")))
    }
}

/// A length and that many bytes of UTF-8; what is too long is cut.
fn text(out: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
}

fn read_text(bytes: &mut Bytes<'_>) -> Result<String, Flaw> {
    let length = bytes.u16().ok_or(Flaw::Short)?;
    if usize::from(length) > MAX_TEXT {
        return Err(Flaw::Wrong(format!("a text of {length} bytes")));
    }
    let text = bytes.take(length.into()).ok_or(Flaw::Short)?;
    let text = std::str::from_utf8(text);
    text.map(str::to_string).map_err(|_| Flaw::Wrong("a text is not UTF-8".into()))
}

/// A reader of frames.
pub(super) fn frames(bytes: &[u8]) -> Bytes<'_> {
    Bytes::new(bytes, Endian::Little)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::message::{Detail, Kind, Msg};
    use super::*;

    /// One frame of every kind, and both sizes of records.
    pub(in super::super) fn one_of_each() -> Vec<Frame> {
        let run = Run { pid: 4_000_000, lease: 17 };
        let decision = Decision { run, slice_ns: Decision::UNTIL_TOLD, ticks: true };
        let busy = CpuSet::parse("0,63,64,1023").expect("a list");
        let msg = |kind: Kind| Msg { t_ns: 5, pid: 77, kind: kind as u16, ..Msg::default() };
        let detail = Some(Box::new(Detail { comm: *b"fifteen letters\0", ..Detail::default() }));
        vec![
            Frame::Record(Message { kind: Kind::Join, msg: msg(Kind::Join), detail }),
            Frame::Record(Message { kind: Kind::Enq, msg: msg(Kind::Enq), detail: None }),
            Frame::Handle,
            Frame::Clock(u64::MAX),
            Frame::Tunable { name: "base_slice".into(), value: -3 },
            Frame::Output(Output::Give(CpuId(1023), decision)),
            Frame::Output(Output::Stop(CpuId(0), run)),
            Frame::Output(Output::Kick(CpuId(2))),
            Frame::Output(Output::Commit(CpuSet::EMPTY)),
            Frame::Output(Output::Commit(busy)),
            Frame::End(End {
                clock: 9,
                is_complete: true,
                is_valid: true,
                ring_full: 3,
                why: "the end".into(),
            }),
        ]
    }

    #[test]
    fn frame_written_and_read_is_the_same() {
        for frame in one_of_each() {
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            let mut rest = frames(&bytes);
            assert_eq!(Frame::read(&mut rest).as_ref(), Ok(&frame));
            assert!(rest.rest.is_empty(), "{frame:?}");
            for cut in 0..bytes.len() {
                assert_eq!(Frame::read(&mut frames(&bytes[..cut])), Err(Flaw::Short), "{frame:?}");
            }
        }
    }

    #[test]
    fn text_that_is_too_long_is_cut_between_characters() {
        let name = "ä".repeat(MAX_TEXT);
        let mut bytes = Vec::new();
        Frame::Tunable { name, value: 1 }.write(&mut bytes);
        let name = "ä".repeat(MAX_TEXT / 2);
        assert_eq!(Frame::read(&mut frames(&bytes)), Ok(Frame::Tunable { name, value: 1 }));
    }

    #[test]
    fn frame_with_impossible_fields_is_wrong() {
        let long = [TUNABLE, 0xff, 0xff];
        for bytes in
            [&[0u8][..], &[10], &[RECORD, 3, 1, 2, 3], &[COMMIT, 17], &[KICK, 0, 4], &long[..]]
        {
            let read = Frame::read(&mut frames(bytes));
            assert!(matches!(read, Err(Flaw::Wrong(_))), "{bytes:?}: {read:?}");
        }
    }
}
