// SPDX-License-Identifier: GPL-2.0-only
//! Merges the pages of all CPUs into records in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read, Seek};
use std::ops::Range;

use schedlab_policy_api::RecordContext;
use schedlab_units::{CpuId, Located, Time};

use super::head::{Head, fault, head};
use super::pages::Pages;
use crate::bytes::Bytes;
use crate::comms::Comms;
use crate::format::Format;
use crate::intake::{Intake, Stamp, StepBack};
use crate::ring::{Mark, Page};
use crate::sink::RecordSink;
use crate::summary::ReadSummary;
use crate::text::{cpu_id, no_events};

/// Least size of a page.
const PAGE_MIN: u64 = 64;
/// The most that pages may take in memory; each CPU has one, or one chunk of packed ones.
const PAGES_MAX: u64 = 256 << 20;

/// Reads a file into `sink`. Memory does not grow with it: a page of each CPU is held.
///
/// # Errors
/// A file that was cut or is damaged, with the offset; one packed with something else than zstd or
/// zlib; a clock that does not count ns; no scheduling events.
pub(crate) fn read_trace_dat<R: Read + Seek>(
    mut input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let head = head(&mut input)?;
    let room = PAGES_MAX / (head.cpus.len() as u64).max(1);
    if !(PAGE_MIN..=room).contains(&u64::from(head.page_size)) {
        let n = head.cpus.len();
        return Err(fault(0, format!("pages of {} bytes on {n} CPUs", head.page_size)));
    }
    let mut intake = Intake::new(Format::TraceDat, sink);
    intake.summary.origin.clone_from(&head.origin);
    let mut cpus: Vec<Cpu> = Vec::new();
    for data in &head.cpus {
        let cpu = cpu_id(u64::from(data.cpu)).map_err(|why| fault(data.offset, why.message))?;
        if cpus.iter().any(|other| other.cpu == cpu) {
            return Err(fault(data.offset, format!("CPU {cpu} has pages in two places")));
        }
        let pages = Pages::open(&mut input, *data, &head, room)?;
        let (page, offset, mark) = (Vec::new(), 0, Mark::default());
        cpus.push(Cpu { cpu, pages, page, offset, mark, event: None });
    }
    Merge { input, head, cpus, intake }.run()
}

/// A CPU and its current page.
struct Cpu {
    cpu: CpuId,
    pages: Pages,
    page: Vec<u8>,
    /// Where the page stands in the file.
    offset: u64,
    /// How far it has been read.
    mark: Mark,
    /// The event that waits for its turn: time, and place of the payload in the page.
    event: Option<(u64, Range<usize>)>,
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
            next.extend(self.advance(index)?.map(|time| Reverse((time, index))));
        }
        while let Some(Reverse((_, index))) = next.pop() {
            self.hand_out(index)?;
            next.extend(self.advance(index)?.map(|time| Reverse((time, index))));
        }
        let (summary, comms) = self.intake.finish();
        if summary.records == 0 {
            return Err(self.head.explain(no_events(&summary)));
        }
        Ok((summary, comms))
    }

    /// Goes to the next event of a CPU, on a further page if need be; its time.
    fn advance(&mut self, index: usize) -> Result<Option<u64>, Located> {
        let layout = self.head.layout;
        let cpu = &mut self.cpus[index];
        loop {
            let mut page = Page::resume(&cpu.page, layout, cpu.mark);
            let event =
                page.next_event().map_err(|why| fault(cpu.offset + cpu.mark.at as u64, why))?;
            cpu.mark = page.mark();
            if let Some((time, raw)) = event {
                cpu.event = Some((time, cpu.mark.at - raw.len()..cpu.mark.at));
                return Ok(Some(time));
            }
            let Some((offset, bytes)) = cpu.pages.next(&mut self.input)? else {
                return Ok(None);
            };
            let page = Page::new(&bytes, layout).map_err(|why| fault(offset, why))?;
            if let Some(lost) = page.lost {
                self.intake.lost(cpu.cpu, lost.count);
            }
            (cpu.mark, cpu.offset) = (page.mark(), offset);
            cpu.page = bytes;
        }
    }

    fn hand_out(&mut self, index: usize) -> Result<(), Located> {
        let cpu = &mut self.cpus[index];
        let Some((time, place)) = cpu.event.take() else { return Ok(()) };
        let offset = cpu.offset + place.start as u64;
        let (raw, endian) = (&cpu.page[place], self.head.layout.endian);
        let id = Bytes::new(raw, endian).u16();
        let id = id.ok_or_else(|| fault(offset, "an event without its number"))?;
        let point = self.head.tracepoints.get(id);
        let pid = point.and_then(|point| point.running(raw, endian));
        let hit = match point.filter(|point| point.is_kept()) {
            Some(point) => point
                .decode(raw, endian, &mut self.intake.comms)
                .map_err(|why| fault(offset, why))?,
            None => None,
        };
        let known = pid.and_then(|pid| self.head.cmdlines.get(pid));
        let stamp = Stamp {
            time: Time::from_ns(time),
            cpu: cpu.cpu,
            pid,
            tgid: None,
            comm: known.unwrap_or(if pid == Some(0) { b"<idle>" } else { b"<...>" }),
            context: hit.map_or(RecordContext::Unknown, |hit| hit.context),
        };
        let taken = match (hit, point) {
            (Some(hit), _) => self.intake.take(&stamp, hit.event),
            (None, Some(point)) => self.intake.pass(&stamp, point.name.as_bytes()),
            (None, None) => self.intake.pass(&stamp, format!("event {id}").as_bytes()),
        };
        taken.map_err(|back: StepBack| fault(offset, back.message()).hint(StepBack::HINT))
    }
}
