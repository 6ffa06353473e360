// SPDX-License-Identifier: GPL-2.0-only
//! Pages of a running kernel's trace buffer, as `per_cpu/cpuN/trace_pipe_raw` of tracefs yields
//! them, to records in the order of time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use schedlab_policy_api::RecordEvent;
use schedlab_units::{CpuId, Time};

use crate::bytes::{Bytes, Endian};
use crate::comms::{Comms, each_name};
use crate::format::Format;
use crate::intake::{Intake, Stamp};
use crate::ring::{Layout, Page};
use crate::sink::RecordSink;
use crate::summary::ReadSummary;
use crate::tep::{Hit, Tracepoints};

/// An event of a CPU that waits for its turn.
enum What {
    Hit(Hit),
    Other(u16),
    Lost(Option<u64>),
}

/// The way of a running kernel's pages to a sink.
///
/// Pages of one CPU come in their order, CPUs in any. [`Live::settle`] hands out what cannot be
/// preceded by a page still to come.
pub struct Live<'s> {
    intake: Intake<'s>,
    tracepoints: Tracepoints,
    layout: Layout,
    cpus: Vec<VecDeque<(u64, What)>>,
    names: BTreeMap<u32, Vec<u8>>,
}

impl<'s> Live<'s> {
    /// Feeds `sink` from pages of this machine; `formats` are the texts of
    /// `events/sched/…/format`.
    ///
    /// # Errors
    /// A format text that is malformed or lacks a field.
    pub fn new<'f>(
        formats: impl IntoIterator<Item = &'f str>,
        sink: &'s mut dyn RecordSink,
    ) -> Result<Self, String> {
        let mut tracepoints = Tracepoints::default();
        for text in formats {
            tracepoints.add_text(text)?;
        }
        let endian = if cfg!(target_endian = "little") { Endian::Little } else { Endian::Big };
        let layout = Layout { endian, long_size: size_of::<usize>() as u8 };
        let intake = Intake::new(Format::TraceDat, sink);
        Ok(Self { intake, tracepoints, layout, cpus: Vec::new(), names: BTreeMap::new() })
    }

    /// Takes a page of `cpu`.
    ///
    /// # Errors
    /// What is wrong with it; events before the fault are kept.
    pub fn page(&mut self, cpu: CpuId, bytes: &[u8]) -> Result<(), String> {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize_with(cpu.index() + 1, VecDeque::new);
        }
        let mut page = Page::new(bytes, self.layout)?;
        let mut lost = page.lost;
        while let Some((time, raw)) = page.next_event()? {
            let items = &mut self.cpus[cpu.index()];
            if let Some(lost) = lost.take() {
                items.push_back((time, What::Lost(lost.count)));
            }
            let id = Bytes::new(raw, self.layout.endian).u16();
            let id = id.ok_or("an event without its number")?;
            let hit = match self.tracepoints.get(id).filter(|t| t.is_kept()) {
                Some(point) => point.decode(raw, self.layout.endian, &mut self.intake.comms)?,
                None => None,
            };
            items.push_back((time, hit.map_or(What::Other(id), What::Hit)));
        }
        Ok(())
    }

    /// Hands out all events before `until`: all pages that hold such events have been taken.
    ///
    /// # Errors
    /// A clock that jumps back.
    pub fn settle(&mut self, until: Time) -> Result<(), String> {
        let first = |items: &VecDeque<(u64, What)>| items.front().map(|(time, _)| *time);
        let heads = self.cpus.iter().enumerate();
        let mut next: BinaryHeap<_> =
            heads.filter_map(|(cpu, items)| Some(Reverse((first(items)?, cpu)))).collect();
        while let Some(Reverse((time, cpu))) = next.pop() {
            if time >= until.as_ns() {
                continue;
            }
            if let Some((time, what)) = self.cpus[cpu].pop_front() {
                self.hand_out(cpu, time, &what)?;
            }
            next.extend(first(&self.cpus[cpu]).map(|time| Reverse((time, cpu))));
        }
        Ok(())
    }

    /// Hands out the rest; the summary and the names.
    ///
    /// # Errors
    /// A clock that jumps back.
    pub fn finish(mut self) -> Result<(ReadSummary, Comms), String> {
        self.settle(Time::MAX)?;
        Ok(self.intake.finish())
    }

    fn hand_out(&mut self, cpu: usize, time: u64, what: &What) -> Result<(), String> {
        let cpu = CpuId::from_index(cpu);
        let time = Time::from_ns(time);
        let taken = match *what {
            What::Lost(count) => {
                self.intake.lost(cpu, count);
                Ok(())
            }
            What::Other(id) => {
                let point = self.tracepoints.get(id);
                let name = point.map_or_else(|| format!("event {id}"), |point| point.name.clone());
                let context = Default::default();
                let stamp = Stamp { time, cpu, pid: Some(0), tgid: None, comm: b"<idle>", context };
                self.intake.pass(&stamp, name.as_bytes())
            }
            What::Hit(Hit { event, context, pid }) => {
                self.learn(&event);
                let known = self.names.get(&pid).map(Vec::as_slice);
                let comm = known.unwrap_or(if pid == 0 { b"<idle>" } else { b"<...>" });
                let stamp = Stamp { time, cpu, pid: Some(pid), tgid: None, comm, context };
                self.intake.take(&stamp, event)
            }
        };
        taken.map_err(|back| back.message())
    }

    /// Remembers the names that events give.
    fn learn(&mut self, event: &RecordEvent) {
        each_name(event, |pid, comm| {
            let name = self.intake.comms.name(comm).as_bytes();
            if pid.0 != 0 && self.names.get(&pid.0).is_none_or(|known| known != name) {
                self.names.insert(pid.0, name.to_vec());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Collect;

    const EXIT: &str = "name: sched_process_exit\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\nprint fmt: \"x\"\n";

    /// A page at `time` with one exit of thread `pid`.
    fn page(time: u64, pid: u32, flags: u64) -> Vec<u8> {
        let mut event = 7u16.to_ne_bytes().to_vec();
        event.extend([0, 0]);
        event.extend(pid.to_ne_bytes());
        event.extend(b"name\0\0\0\0\0\0\0\0\0\0\0\0");
        event.extend(pid.to_ne_bytes());
        event.extend(120u32.to_ne_bytes());
        let mut bytes = time.to_ne_bytes().to_vec();
        bytes.extend((flags | (event.len() as u64 + 4)).to_ne_bytes());
        let word = if cfg!(target_endian = "little") { 8u32 } else { 8 << 27 };
        bytes.extend(word.to_ne_bytes());
        bytes.extend(event);
        bytes
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn pages_of_cpus_are_merged_by_time() {
        let mut sink = Collect::new();
        let mut live = Live::new([EXIT], &mut sink).expect("a format");
        live.page(CpuId(1), &page(30, 3, 0)).expect("a page");
        live.page(CpuId(1), &page(50, 5, 1 << 31)).expect("a page");
        live.page(CpuId(0), &page(20, 2, 0)).expect("a page");
        live.settle(Time::from_ns(40)).expect("in order");
        live.page(CpuId(0), &page(40, 4, 0)).expect("a page");
        let (summary, comms) = live.finish().expect("in order");
        assert_eq!((summary.records, summary.lost_unknown, summary.late), (5, 1, 0));
        let recording = sink.finish(comms, summary.n_cpus);
        let times: Vec<u64> = recording.records.iter().map(|r| r.time.as_ns()).collect();
        assert_eq!(times, [20, 30, 40, 50, 50]);
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn damaged_pages_and_formats_are_errors() {
        let mut sink = Collect::new();
        assert!(Live::new(["name: x"], &mut sink).is_err());
        let mut live = Live::new([EXIT], &mut sink).expect("a format");
        let whole = page(1, 1, 0);
        for length in 0..whole.len() {
            assert!(live.page(CpuId(0), &whole[..length]).is_err(), "{length}");
        }
    }
}
