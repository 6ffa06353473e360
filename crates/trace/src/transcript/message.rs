// SPDX-License-Identifier: GPL-2.0-only
//! What the relay and the host of a live run tell each other; the layout of `message.h` in the
//! crate `live`.

use std::mem::{offset_of, size_of};

use schedlab_units::{CpuId, CpuSet};

/// Version of the layout, which both sides carry.
pub const LAYOUT: u32 = 0x5c4e_d001;
/// Most CPUs that records and slots can name.
pub const MAX_CPUS: usize = schedlab_units::MAX_CPUS;
/// Words of a mask of CPUs.
pub const MASK_WORDS: usize = MAX_CPUS / 64;
/// Bytes of a task's name, the last of which is 0.
pub const COMM_LEN: usize = 16;

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Kind {
    /// The task comes under the policy.
    Join = 1,
    /// It is runnable and waits for a decision.
    Enq = 2,
    /// It waits no longer, without having run.
    Deq = 3,
    /// It stopped being runnable.
    Block = 4,
    /// The CPU has nothing of ours to run and waits for a decision.
    Pick = 5,
    /// Timer tick during a run that asked for ticks.
    Tick = 6,
    /// Its nice value changed.
    Nice = 7,
    /// The CPUs it may use changed.
    Affine = 8,
    /// It exited, or is not the policy's any more.
    Leave = 9,
    /// It starts to run.
    Run = 10,
    /// A decision was taken back: another class has the CPU.
    Busy = 11,
    /// It replaced its program.
    Exec = 12,
    /// It has a new name.
    Name = 13,
    /// A CPU went online or offline.
    Cpu = 14,
    /// Nothing; it only wakes the host.
    Wake = 15,
}

impl Kind {
    /// All kinds in the order of their numbers, the first of which is 1.
    pub const ALL: [Self; 15] = [
        Self::Join,
        Self::Enq,
        Self::Deq,
        Self::Block,
        Self::Pick,
        Self::Tick,
        Self::Nice,
        Self::Affine,
        Self::Leave,
        Self::Run,
        Self::Busy,
        Self::Exec,
        Self::Name,
        Self::Cpu,
        Self::Wake,
    ];

    /// The kind with this number.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Name in transcripts and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Join => "JOIN",
            Self::Enq => "ENQ",
            Self::Deq => "DEQ",
            Self::Block => "BLOCK",
            Self::Pick => "PICK",
            Self::Tick => "TICK",
            Self::Nice => "NICE",
            Self::Affine => "AFFINE",
            Self::Leave => "LEAVE",
            Self::Run => "RUN",
            Self::Busy => "BUSY",
            Self::Exec => "EXEC",
            Self::Name => "NAME",
            Self::Cpu => "CPU",
            Self::Wake => "WAKE",
        }
    }
}

/// Why a task waits for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// First wake-up after fork.
    Fork,
    /// Wake-up from sleep.
    Wake,
    /// Its slice is over.
    Slice,
    /// The host ended its run.
    Preempt,
    /// It called `sched_yield`.
    Yield,
    /// It was taken out for a change and comes back.
    Restore,
    /// A higher class took its CPU.
    Class,
}

/// Bits of [`Msg::flags`].
pub mod flag {
    /// The waker is about to sleep.
    pub const SYNC: u32 = 1 << 4;
    /// Woken by an interrupt.
    pub const IRQ: u32 = 1 << 5;
    /// The sleep is uninterruptible.
    pub const UNINT: u32 = 1 << 6;
    /// The task exits.
    pub const EXITING: u32 = 1 << 7;
    /// The last decision for this CPU could not be used.
    pub const REJECTED: u32 = 1 << 8;
    /// The task was forked under the policy.
    pub const FORKED: u32 = 1 << 9;
    /// An idle CPU was given the task at once.
    pub const DIRECT: u32 = 1 << 10;
}

/// From this reason on, a rejected task still waits for a decision.
pub const REJECT_STILL_WAITS: u64 = 3;
/// Reason of a rejection: the kernel has pinned the task to its CPU for a moment.
pub const REJECT_PINNED: u64 = 4;

/// A record as it lies in the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Msg {
    /// CLOCK_MONOTONIC in ns when it was written; 0 = just after the record before it.
    pub t_ns: u64,
    /// CPU time in ns of the task since its last record.
    pub run_ns: u64,
    /// Thread; 0 where none.
    pub pid: u32,
    /// Counts the times that the task was handed over.
    pub lease: u32,
    /// Number of the [`Kind`].
    pub kind: u16,
    /// CPU of the event.
    pub cpu: u16,
    /// Reason and [`flag`]s.
    pub flags: u32,
    /// ENQ: ns of sleep. PICK: why rejected. CPU: 1 = online.
    pub a: u64,
    /// ENQ: pid of the waker. JOIN, EXEC: tgid << 32 | pid of the parent. PICK after a rejection of a
    /// pinned task: its CPU.
    pub b: u64,
    /// ENQ: CPU of the waker. JOIN, NICE: nice value.
    pub c: i64,
}

const _: () = assert!(size_of::<Msg>() == 56 && offset_of!(Msg, kind) == 24);
const _: () = assert!(offset_of!(Msg, flags) == 28 && offset_of!(Msg, c) == 48);

/// What a long record has beyond a [`Msg`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Detail {
    /// The task's name, ended by 0.
    pub comm: [u8; COMM_LEN],
    /// CPUs that it may use.
    pub allowed: [u64; MASK_WORDS],
}

/// Bytes of a short record.
pub const SHORT: usize = size_of::<Msg>();
/// Bytes of a long record.
pub const LONG: usize = SHORT + size_of::<Detail>();
const _: () = assert!(LONG == 56 + 16 + 128);

impl Detail {
    /// The name; what is not UTF-8 is replaced.
    pub fn name(&self) -> String {
        let end = self.comm.iter().position(|byte| *byte == 0).unwrap_or(COMM_LEN);
        String::from_utf8_lossy(&self.comm[..end]).into_owned()
    }

    /// The CPUs.
    pub fn cpus(&self) -> CpuSet {
        cpus_of(&self.allowed)
    }
}

/// A mask of CPUs as a set.
pub fn cpus_of(words: &[u64; MASK_WORDS]) -> CpuSet {
    let mut cpus = CpuSet::EMPTY;
    for (index, word) in words.iter().enumerate() {
        for bit in (0..64).filter(|bit| word >> bit & 1 != 0) {
            cpus.insert(CpuId::from_index(index * 64 + bit));
        }
    }
    cpus
}

/// A set of CPUs as a mask.
pub fn words_of(cpus: &CpuSet) -> [u64; MASK_WORDS] {
    let mut words = [0; MASK_WORDS];
    for cpu in cpus.iter() {
        words[cpu.index() / 64] |= 1 << (cpu.index() % 64);
    }
    words
}

/// A record, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its kind.
    pub kind: Kind,
    /// The fields of every record.
    pub msg: Msg,
    /// Name and CPUs, in a long record.
    pub detail: Option<Box<Detail>>,
}

impl Message {
    /// Reads a record as it lies in the ring; none = it is none of ours.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != SHORT && bytes.len() != LONG {
            return None;
        }
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let u16_at = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().expect("2 bytes"));
        let msg = Msg {
            t_ns: u64_at(0),
            run_ns: u64_at(8),
            pid: u32_at(16),
            lease: u32_at(20),
            kind: u16_at(24),
            cpu: u16_at(26),
            flags: u32_at(28),
            a: u64_at(32),
            b: u64_at(40),
            c: u64_at(48) as i64,
        };
        let kind = Kind::from_number(msg.kind)?;
        let detail = (bytes.len() == LONG).then(|| {
            let mut detail = Box::<Detail>::default();
            detail.comm.copy_from_slice(&bytes[SHORT..SHORT + COMM_LEN]);
            for (word, at) in detail.allowed.iter_mut().zip((SHORT + COMM_LEN..).step_by(8)) {
                *word = u64_at(at);
            }
            detail
        });
        Some(Self { kind, msg, detail })
    }

    /// The record as it lies in the ring.
    pub fn write(&self, out: &mut Vec<u8>) {
        let msg = &self.msg;
        for word in [msg.t_ns, msg.run_ns] {
            out.extend(word.to_le_bytes());
        }
        out.extend(msg.pid.to_le_bytes());
        out.extend(msg.lease.to_le_bytes());
        out.extend(msg.kind.to_le_bytes());
        out.extend(msg.cpu.to_le_bytes());
        out.extend(msg.flags.to_le_bytes());
        for word in [msg.a, msg.b, msg.c as u64] {
            out.extend(word.to_le_bytes());
        }
        if let Some(detail) = &self.detail {
            out.extend(detail.comm);
            detail.allowed.iter().for_each(|word| out.extend(word.to_le_bytes()));
        }
    }

    /// The CPU of the event.
    pub fn cpu(&self) -> CpuId {
        CpuId::from_index(usize::from(self.msg.cpu))
    }

    /// Whether `flag` is set.
    pub fn has(&self, flag: u32) -> bool {
        self.msg.flags & flag != 0
    }

    /// Why the task of an ENQ waits; a reason that is not known counts as a restoring.
    pub fn why(&self) -> Why {
        match self.msg.flags & 0xf {
            1 => Why::Fork,
            2 => Why::Wake,
            3 => Why::Slice,
            4 => Why::Preempt,
            5 => Why::Yield,
            7 => Why::Class,
            _ => Why::Restore,
        }
    }

    /// Thread group of a JOIN or EXEC.
    pub fn tgid(&self) -> u32 {
        (self.msg.b >> 32) as u32
    }

    /// Parent's pid of a JOIN or EXEC.
    pub fn parent(&self) -> u32 {
        self.msg.b as u32
    }
}

/// A run, named so that a later run of the same task is not meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Thread.
    pub pid: u32,
    /// Which handing over of the task.
    pub lease: u32,
}

/// What one CPU is to run next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The run.
    pub run: Run,
    /// How long in ns; [`Decision::UNTIL_TOLD`] = until the host ends it.
    pub slice_ns: u64,
    /// Whether ticks are to be reported.
    pub ticks: bool,
}

impl Decision {
    /// A slice without end.
    pub const UNTIL_TOLD: u64 = u64::MAX;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_written_and_read_is_the_same() {
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            let number = index as u16 + 1;
            let msg = Msg {
                t_ns: 1 << 60,
                run_ns: 2,
                pid: 3,
                lease: u32::MAX,
                kind: number,
                cpu: 1023,
                flags: flag::SYNC | 2,
                a: 7,
                b: 5 << 32 | 6,
                c: -20,
            };
            let mut detail = Detail { comm: *b"a name\0garbage!!", ..Detail::default() };
            detail.allowed[1] = 1 << 63 | 1;
            for detail in [None, Some(Box::new(detail))] {
                let message = Message { kind, msg, detail };
                let mut bytes = Vec::new();
                message.write(&mut bytes);
                assert_eq!(Message::read(&bytes).as_ref(), Some(&message));
                assert_eq!(Message::read(&bytes[1..]), None);
            }
            assert_eq!(detail.name(), "a name");
            assert_eq!(detail.cpus().iter().map(|cpu| cpu.0).collect::<Vec<_>>(), [64, 127]);
            assert_eq!(words_of(&detail.cpus()), detail.allowed);
        }
        assert_eq!(Message::read(&[0; SHORT]), None, "no record has kind 0");
    }
}
