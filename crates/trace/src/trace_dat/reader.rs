// SPDX-License-Identifier: GPL-2.0-only
//! Merges the pages of all CPUs into records in the order of time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{Read, Seek};

use schedlab_policy_api::RecordContext;
use schedlab_units::{CpuId, Located, Time};

use super::head::{Head, fault, head};
use super::pages::Pages;
use crate::bytes::Bytes;
use crate::comms::Comms;
use crate::format::Format;
use crate::intake::{Intake, Stamp, StepBack};
use crate::ring::Page;
use crate::sink::RecordSink;
use crate::summary::ReadSummary;
use crate::tep::Hit;
use crate::text::{cpu_id, no_events};

/// Least and largest size of a page.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 64..=1 << 24;

/// Reads a file into `sink`. Memory does not grow with it: a page of each CPU is held.
///
/// # Errors
/// A file that was cut or is damaged, with the offset; one packed with something else than zstd; a
/// clock that does not count ns; no scheduling events.
pub(crate) fn read_trace_dat<R: Read + Seek>(
    mut input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let head = head(&mut input)?;
    if !PAGE_SIZES.contains(&head.page_size) {
        return Err(fault(0, format!("pages of {} bytes", head.page_size)));
    }
    let mut intake = Intake::new(Format::TraceDat, sink);
    intake.summary.origin.clone_from(&head.origin);
    let mut cpus = Vec::new();
    for data in &head.cpus {
        let cpu = cpu_id(u64::from(data.cpu)).map_err(|why| fault(data.offset, why.message))?;
        let endian = head.layout.endian;
        let pages = Pages::open(&mut input, *data, head.page_size, endian, head.is_packed)?;
        cpus.push(Cpu { cpu, pages, items: VecDeque::new() });
    }
    Merge { input, head, cpus, intake }.run()
}

/// An event of a CPU that waits for its turn.
struct Item {
    offset: u64,
    time: u64,
    what: What,
}

enum What {
    Hit(Hit),
    Other(u16),
    Lost(Option<u64>),
}

struct Cpu {
    cpu: CpuId,
    pages: Pages,
    items: VecDeque<Item>,
}

struct Merge<'s, R> {
    input: R,
    head: Head,
    cpus: Vec<Cpu>,
    intake: Intake<'s>,
}

impl<R: Read + Seek> Merge<'_, R> {
    fn run(mut self) -> Result<(ReadSummary, Comms), Located> {
        // By time, at the same time by CPU.
        let mut next = BinaryHeap::new();
        for index in 0..self.cpus.len() {
            next.extend(self.refill(index)?.map(|time| Reverse((time, index))));
        }
        while let Some(Reverse((_, index))) = next.pop() {
            if let Some(item) = self.cpus[index].items.pop_front() {
                self.hand_out(index, &item)?;
            }
            next.extend(self.refill(index)?.map(|time| Reverse((time, index))));
        }
        let (summary, comms) = self.intake.finish();
        if summary.records == 0 {
            return Err(no_events(&summary));
        }
        Ok((summary, comms))
    }

    /// Time of the next event of a CPU, from a further page if need be.
    fn refill(&mut self, index: usize) -> Result<Option<u64>, Located> {
        while self.cpus[index].items.is_empty() {
            let Some((offset, page)) = self.cpus[index].pages.next(&mut self.input)? else {
                return Ok(None);
            };
            self.take_page(index, offset, &page)?;
        }
        Ok(self.cpus[index].items.front().map(|item| item.time))
    }

    fn take_page(&mut self, index: usize, offset: u64, bytes: &[u8]) -> Result<(), Located> {
        let layout = self.head.layout;
        let mut page = Page::new(bytes, layout).map_err(|why| fault(offset, why))?;
        let mut lost = page.lost;
        while let Some((time, raw)) = page.next_event().map_err(|why| fault(offset, why))? {
            let items = &mut self.cpus[index].items;
            if let Some(lost) = lost.take() {
                items.push_back(Item { offset, time, what: What::Lost(lost.count) });
            }
            let id = Bytes::new(raw, layout.endian).u16();
            let id = id.ok_or_else(|| fault(offset, "an event without its number"))?;
            let hit = match self.head.tracepoints.get(id).filter(|t| t.is_kept()) {
                Some(tracepoint) => tracepoint
                    .decode(raw, layout.endian, &mut self.intake.comms)
                    .map_err(|why| fault(offset, why))?,
                None => None,
            };
            let what = hit.map_or(What::Other(id), What::Hit);
            items.push_back(Item { offset, time, what });
        }
        Ok(())
    }

    fn hand_out(&mut self, index: usize, item: &Item) -> Result<(), Located> {
        let cpu = self.cpus[index].cpu;
        let stamp = |pid: Option<u32>, comm, context| Stamp {
            time: Time::from_ns(item.time),
            cpu,
            pid,
            tgid: None,
            comm,
            context,
        };
        let taken = match item.what {
            What::Hit(Hit { event, context, pid }) => {
                let name = self.head.cmdlines.get(&pid).map(Vec::as_slice);
                let name = name.unwrap_or(if pid == 0 { b"<idle>" } else { b"<...>" });
                self.intake.take(&stamp(Some(pid), name, context), event)
            }
            What::Other(id) => {
                let name = self.head.tracepoints.get(id);
                let name = name.map_or_else(|| format!("event {id}"), |t| t.name.clone());
                let stamp = stamp(Some(0), b"<idle>", RecordContext::Unknown);
                self.intake.pass(&stamp, name.as_bytes())
            }
            What::Lost(count) => {
                self.intake.lost(cpu, count);
                Ok(())
            }
        };
        taken.map_err(|back: StepBack| fault(item.offset, back.message()).hint(StepBack::HINT))
    }
}
