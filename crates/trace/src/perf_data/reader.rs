// SPDX-License-Identifier: GPL-2.0-only
//! From the records of the container to scheduling records.

use std::io::{BufReader, Read, Seek, SeekFrom};

use schedlab_policy_api::RecordContext;
use schedlab_units::{CpuId, Located};

use super::attr::Attr;
use super::file::{Feature, Head, IDS_MAX, fault, head};
use super::item::{Item, What, running, stamp};
use super::order::Rounds;
use super::packed::Unpacker;
use super::sample::{moment_behind, sample};
use crate::bytes::{Bytes, until_nul};
use crate::comms::Comms;
use crate::format::Format;
use crate::intake::{Intake, StepBack};
use crate::sink::RecordSink;
use crate::summary::ReadSummary;
use crate::tep::{Names, TracingData, comm};
use crate::text::{cpu_id, no_events};

/// Kinds of records.
mod kind {
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const LOST_SAMPLES: u32 = 13;
    pub(super) const HEADER_ATTR: u32 = 64;
    pub(super) const TRACING_DATA: u32 = 66;
    pub(super) const FINISHED_ROUND: u32 = 68;
    pub(super) const AUXTRACE: u32 = 71;
    pub(super) const HEADER_FEATURE: u32 = 80;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED2: u32 = 83;
    /// The first kind that perf writes and not the kernel.
    pub(super) const FIRST_OF_PERF: u32 = 64;
}

/// Reads a file into `sink`.
///
/// # Errors
/// A file that was cut or is damaged, with the offset; no scheduling events.
pub(crate) fn read_perf_data<R: Read + Seek>(
    mut input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let head = head(&mut input)?;
    let intake = Intake::new(Format::PerfData, sink);
    let tracing = match &head.tracing_data {
        Some((offset, bytes)) => Some(tracing_data(*offset, bytes)?),
        None => None,
    };
    let (start, end) = head.records;
    input.seek(SeekFrom::Start(start)).map_err(|error| fault(start, error))?;
    let mut reader = Reader {
        input: BufReader::with_capacity(1 << 16, input),
        offset: start,
        end,
        head,
        tracing,
        rounds: Rounds::new(),
        names: Names::default(),
        losses: Losses::default(),
        unpacker: None,
        intake,
    };
    reader.names.set(0, b"swapper");
    let mut body = Vec::new();
    while reader.record(&mut body)? {}
    reader.end()?;
    let (mut summary, comms) = reader.intake.finish();
    summary.origin = reader.head.origin.to_string();
    if summary.records == 0 {
        return Err(no_events(&summary));
    }
    Ok((summary, comms))
}

fn tracing_data(offset: u64, bytes: &[u8]) -> Result<TracingData, Located> {
    match TracingData::parse(bytes) {
        Ok((data, _)) => Ok(data),
        Err((at, message)) => Err(fault(offset + at as u64, message)),
    }
}

/// Kind and notes of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) kind: u32,
    pub(super) misc: u16,
}

/// In the notes of a loss of samples: a filter dropped them, nothing is missing.
const MISC_DROPPED_BY_FILTER: u16 = 1 << 15;

/// Lost events. Those announced in place are counted once more when the recording ends, and there
/// without a CPU to rely on: what is left then was lost last.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    announced: u64,
    counted: u64,
    /// The CPU of the last count.
    cpu: Option<CpuId>,
}

struct Reader<'s, R> {
    input: BufReader<R>,
    offset: u64,
    end: Option<u64>,
    head: Head,
    tracing: Option<TracingData>,
    rounds: Rounds<Item>,
    /// Names of threads as perf learns them.
    names: Names,
    losses: Losses,
    unpacker: Option<Unpacker>,
    intake: Intake<'s>,
}

impl<R: Read> Reader<'_, R> {
    /// Takes the next record by way of `body`; false at the end.
    fn record(&mut self, body: &mut Vec<u8>) -> Result<bool, Located> {
        let at = self.offset;
        if self.end.is_some_and(|end| at >= end) {
            return Ok(false);
        }
        self.bytes(8, body)?;
        if body.is_empty() && self.end.is_none() {
            return Ok(false);
        }
        let mut fields = Bytes::new(body, self.head.endian);
        let (Some(kind), Some(misc), Some(size)) = (fields.u32(), fields.u16(), fields.u16())
        else {
            return Err(self.cut());
        };
        if self.end.is_some_and(|end| end - at < u64::from(size)) {
            return Err(fault(at, "a record reaches beyond the last one"));
        }
        let Some(size) = usize::from(size).checked_sub(8) else {
            return Err(fault(at, format!("a record of {size} bytes")));
        };
        self.bytes(size, body)?;
        if body.len() < size {
            return Err(self.cut());
        }
        self.take(at, Header { kind, misc }, body)?;
        Ok(true)
    }

    /// Up to `n` bytes into `bytes`: fewer only at the end of the file.
    fn bytes(&mut self, n: usize, bytes: &mut Vec<u8>) -> Result<(), Located> {
        bytes.clear();
        let read = (&mut self.input).take(n as u64).read_to_end(bytes);
        read.map_err(|error| fault(self.offset, error))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Hands out what is left.
    fn end(&mut self) -> Result<(), Located> {
        if let Some(mut unpacker) = self.unpacker.take() {
            let at = self.offset;
            unpacker.finish().map_err(|message| fault(at, message))?;
            self.unpacked(at, &mut unpacker)?;
            if !unpacker.is_empty() {
                return Err(fault(at, "the compressed records end in the middle of a record"));
            }
        }
        let rest: Vec<Item> = self.rounds.finish().collect();
        for item in rest {
            self.hand_out(item)?;
        }
        let Losses { announced, counted, cpu } = self.losses;
        if counted > announced {
            self.intake.lost(cpu.unwrap_or(CpuId(0)), Some(counted - announced));
        }
        Ok(())
    }

    /// Takes the complete records that `unpacker` holds; `at` is where their packed bytes stand.
    fn unpacked(&mut self, at: u64, unpacker: &mut Unpacker) -> Result<(), Located> {
        let (endian, mut body) = (self.head.endian, Vec::new());
        while let Some(header) =
            unpacker.next_record(endian, &mut body).map_err(|message| fault(at, message))?
        {
            if header.kind >= kind::FIRST_OF_PERF {
                let message = format!("a compressed record of kind {}", header.kind);
                return Err(fault(at, message));
            }
            self.take(at, header, &body)?;
        }
        Ok(())
    }

    fn cut(&self) -> Located {
        fault(self.offset, "the file ends in the middle of a record")
    }

    fn take(&mut self, at: u64, header: Header, body: &[u8]) -> Result<(), Located> {
        let Header { kind, misc } = header;
        let endian = self.head.endian;
        let mut fields = Bytes::new(body, endian);
        let short = || fault(at, "a record is shorter than its kind");
        match kind {
            kind::SAMPLE => self.sample(at, body)?,
            kind::COMM => {
                let (Some(_), Some(tid)) = (fields.u32(), fields.u32()) else {
                    return Err(short());
                };
                let name = comm(until_nul(fields.rest)).to_vec();
                self.side(at, body, |_| What::Comm { tid, name })?;
            }
            kind::FORK => {
                let _processes = fields.u64();
                let (Some(tid), Some(parent)) = (fields.u32(), fields.u32()) else {
                    return Err(short());
                };
                self.side(at, body, |_| What::Fork { tid, parent })?;
            }
            kind::LOST => {
                fields.u64();
                let count = fields.u64().ok_or_else(short)?;
                self.side(at, body, |cpu| What::Lost { cpu, count })?;
            }
            kind::LOST_SAMPLES if misc & MISC_DROPPED_BY_FILTER != 0 => {}
            kind::LOST_SAMPLES => {
                let count = fields.u64().ok_or_else(short)?;
                self.losses.counted = self.losses.counted.saturating_add(count);
                self.losses.cpu = Some(self.cpu_behind(body));
            }
            // Unpacking lags behind, so that the end of a round says nothing then.
            kind::FINISHED_ROUND if self.unpacker.is_none() => {
                let ready: Vec<Item> = self.rounds.end_round().collect();
                for item in ready {
                    self.hand_out(item)?;
                }
            }
            kind::HEADER_ATTR => {
                let own_size = Bytes::new(body.get(4..).unwrap_or(&[]), endian).u32();
                let attr = Attr::parse(body, endian).ok_or_else(short)?;
                let ids = body.get(own_size.unwrap_or(0) as usize..).unwrap_or(&[]);
                self.head.attrs.push(attr, ids.chunks_exact(8).map(|id| endian.unsigned(id)));
                if self.head.attrs.n_ids() > IDS_MAX {
                    return Err(fault(at, "more events than there can be"));
                }
            }
            kind::HEADER_FEATURE => {
                let feature = fields.u64().ok_or_else(short)?;
                if let Some(feature) = Feature::of_bit(feature) {
                    self.head.origin.take(feature, fields.rest, endian);
                }
            }
            kind::TRACING_DATA => {
                let size = fields.u32().ok_or_else(short)?;
                let offset = self.offset;
                let mut bytes = Vec::new();
                self.bytes(size as usize, &mut bytes)?;
                if bytes.len() < size as usize {
                    return Err(self.cut());
                }
                self.tracing = Some(tracing_data(offset, &bytes)?);
            }
            kind::AUXTRACE => {
                // Data follow that the size of the record does not count.
                let size = fields.u64().ok_or_else(short)?;
                let skipped =
                    std::io::copy(&mut (&mut self.input).take(size), &mut std::io::sink());
                let skipped = skipped.map_err(|error| fault(self.offset, error))?;
                self.offset += skipped;
                if skipped < size {
                    return Err(self.cut());
                }
            }
            kind::COMPRESSED | kind::COMPRESSED2 => {
                // The second kind tells its length, because zeros may follow.
                let packed = match kind {
                    kind::COMPRESSED => fields.rest,
                    _ => fields.u64().and_then(|size| fields.take(size)).ok_or_else(short)?,
                };
                let mut unpacker = self.unpacker.take().unwrap_or_else(Unpacker::new);
                unpacker.push(packed);
                self.unpacked(at, &mut unpacker)?;
                self.unpacker = Some(unpacker);
            }
            _ => {}
        }
        Ok(())
    }

    fn sample(&mut self, at: u64, body: &[u8]) -> Result<(), Located> {
        let endian = self.head.endian;
        if self.head.attrs.is_empty() {
            return Err(fault(at, "a sample before any event is described"));
        }
        let Some(attr) = self.head.attrs.of_sample(body, endian) else {
            return Err(fault(at, "a sample of an event that is not described"));
        };
        let Some((moment, raw)) = sample(attr, body, endian) else {
            return Err(fault(at, "a sample is shorter than its event says"));
        };
        let (Some(time), Some(cpu)) = (moment.time, moment.cpu) else {
            return Err(Located::whole(format!("byte {at}: samples without time or CPU")).hint(
                "record tracepoints of all CPUs: `perf sched record`, or `perf record -a -R -T`",
            ));
        };
        let cpu = cpu_id(u64::from(cpu)).map_err(|why| fault(at, why.message))?;
        if raw.is_empty() && !attr.is_tracepoint {
            let what = What::Other { time, cpu, tid: moment.tid, id: None };
            return self.push(time, Item { offset: at, what });
        }
        let Some(tracing) = &self.tracing else {
            return Err(Located::whole(format!("byte {at}: no event formats before the samples"))
                .hint("only recordings of tracepoints can be read, such as `perf sched record`"));
        };
        let Some(id) = Bytes::new(raw, tracing.endian).u16() else {
            return Err(Located::whole(format!("byte {at}: a sample without its raw payload"))
                .hint("record with -R, as `perf sched record` does"));
        };
        let (point, endian) = (tracing.tracepoints.get(id), tracing.endian);
        let tid = running(moment.tid, point.and_then(|point| point.running(raw, endian)));
        let hit = match point.filter(|point| point.is_kept()) {
            Some(point) => point
                .decode(raw, endian, &mut self.intake.comms)
                .map_err(|message| fault(at, message))?,
            None => None,
        };
        let what = match hit {
            Some(hit) => What::Event { time, cpu, tid, hit },
            None => What::Other { time, cpu, tid, id: Some(id) },
        };
        self.push(time, Item { offset: at, what })
    }

    /// Holds a record back until its turn; the oldest half goes when there are too many.
    fn push(&mut self, time: u64, item: Item) -> Result<(), Located> {
        self.rounds.push(time, item);
        if self.rounds.is_full() {
            let ready: Vec<Item> = self.rounds.oldest_half().collect();
            for item in ready {
                self.hand_out(item)?;
            }
        }
        Ok(())
    }

    /// A record beside the samples; without a time it takes effect before all that has one.
    fn side(
        &mut self,
        at: u64,
        body: &[u8],
        what: impl FnOnce(CpuId) -> What,
    ) -> Result<(), Located> {
        let attr = self.head.attrs.of_others();
        let moment = attr.and_then(|attr| moment_behind(attr, body, self.head.endian));
        let time = moment.unwrap_or_default().time.unwrap_or(0);
        let cpu = self.cpu_behind(body);
        self.push(time, Item { offset: at, what: what(cpu) })
    }

    /// The CPU that the ids behind a record name.
    fn cpu_behind(&self, body: &[u8]) -> CpuId {
        let attr = self.head.attrs.of_others();
        let moment = attr.and_then(|attr| moment_behind(attr, body, self.head.endian));
        let cpu = moment.and_then(|moment| moment.cpu);
        cpu.and_then(|cpu| cpu_id(u64::from(cpu)).ok()).unwrap_or(CpuId(0))
    }

    fn hand_out(&mut self, item: Item) -> Result<(), Located> {
        let step_back = |back: StepBack| fault(item.offset, back.message()).hint(StepBack::HINT);
        match item.what {
            What::Event { time, cpu, tid, hit } => {
                let name = tid.and_then(|(_, tid)| self.names.get(tid)).unwrap_or(b"<...>");
                let stamp = stamp(time, cpu, tid, name, hit.context);
                self.intake.take(&stamp, hit.event).map_err(step_back)
            }
            What::Other { time, cpu, tid, id } => {
                let tracing = self.tracing.as_ref();
                let name = match id.map(|id| (id, tracing.and_then(|t| t.tracepoints.get(id)))) {
                    None => "counters".to_string(),
                    Some((_, Some(point))) => point.name.clone(),
                    Some((id, None)) => format!("event {id}"),
                };
                let comm = tid.and_then(|(_, tid)| self.names.get(tid)).unwrap_or(b"<...>");
                let stamp = stamp(time, cpu, tid, comm, RecordContext::Unknown);
                self.intake.pass(&stamp, name.as_bytes()).map_err(step_back)
            }
            What::Comm { tid, name } => {
                self.names.set(tid, &name);
                Ok(())
            }
            What::Fork { tid, parent } => {
                self.names.fork(tid, parent);
                Ok(())
            }
            What::Lost { cpu, count } => {
                self.losses.announced = self.losses.announced.saturating_add(count);
                self.intake.lost(cpu, Some(count));
                Ok(())
            }
        }
    }
}
