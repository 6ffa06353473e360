// SPDX-License-Identifier: GPL-2.0-only
//! From the records of the container to scheduling records.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Seek, SeekFrom};

use schedlab_policy_api::{RecordContext, RecordEvent};
use schedlab_units::{CpuId, Located, Time};

use super::attr::Attr;
use super::file::{Head, fault, head};
use super::order::Rounds;
use super::sample::{Moment, moment_behind, sample};
use crate::bytes::{Bytes, until_nul};
use crate::comms::Comms;
use crate::format::Format;
use crate::intake::{Intake, Stamp, StepBack};
use crate::sink::RecordSink;
use crate::summary::ReadSummary;
use crate::tep::TracingData;
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
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED2: u32 = 83;
}

/// Reads a file into `sink`.
///
/// # Errors
/// A file that was cut or is damaged, with the offset; compressed records; no scheduling events.
pub(crate) fn read_perf_data<R: Read + Seek>(
    mut input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let head = head(&mut input)?;
    let mut intake = Intake::new(Format::PerfData, sink);
    intake.summary.origin.clone_from(&head.origin);
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
        names: BTreeMap::from([(0, b"swapper".to_vec())]),
        intake,
    };
    while reader.record()? {}
    let rest: Vec<Item> = reader.rounds.finish().collect();
    for item in rest {
        reader.hand_out(item)?;
    }
    let (summary, comms) = reader.intake.finish();
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

/// What waits for its turn, and where it stood.
struct Item {
    offset: u64,
    what: What,
}

enum What {
    Event {
        time: u64,
        cpu: CpuId,
        tid: Option<(u32, u32)>,
        context: RecordContext,
        event: RecordEvent,
    },
    Other {
        time: u64,
        cpu: CpuId,
        tid: Option<(u32, u32)>,
        id: u16,
    },
    Comm {
        tid: u32,
        name: Vec<u8>,
    },
    Fork {
        tid: u32,
        parent: u32,
    },
    Lost {
        cpu: CpuId,
        count: u64,
    },
}

struct Reader<'s, R> {
    input: BufReader<R>,
    offset: u64,
    end: Option<u64>,
    head: Head,
    tracing: Option<TracingData>,
    rounds: Rounds<Item>,
    /// Names of threads as perf learns them.
    names: BTreeMap<u32, Vec<u8>>,
    intake: Intake<'s>,
}

impl<R: Read> Reader<'_, R> {
    /// Takes the next record; false at the end.
    fn record(&mut self) -> Result<bool, Located> {
        let at = self.offset;
        if self.end.is_some_and(|end| at >= end) {
            return Ok(false);
        }
        let header = self.bytes(8)?;
        if header.is_empty() && self.end.is_none() {
            return Ok(false);
        }
        let mut fields = Bytes::new(&header, self.head.endian);
        let (Some(kind), Some(_misc), Some(size)) = (fields.u32(), fields.u16(), fields.u16())
        else {
            return Err(self.cut());
        };
        let Some(size) = u64::from(size).checked_sub(8) else {
            return Err(fault(at, format!("a record of {size} bytes")));
        };
        let body = self.bytes(size)?;
        if (body.len() as u64) < size {
            return Err(self.cut());
        }
        self.take(at, kind, &body)?;
        Ok(true)
    }

    /// Up to `n` bytes: fewer only at the end of the file.
    fn bytes(&mut self, n: u64) -> Result<Vec<u8>, Located> {
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(n).read_to_end(&mut bytes);
        read.map_err(|error| fault(self.offset, error))?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    fn cut(&self) -> Located {
        fault(self.offset, "the file ends in the middle of a record")
    }

    fn take(&mut self, at: u64, kind: u32, body: &[u8]) -> Result<(), Located> {
        let endian = self.head.endian;
        let mut fields = Bytes::new(body, endian);
        let short = || fault(at, "a record is shorter than its kind");
        match kind {
            kind::SAMPLE => self.sample(at, body)?,
            kind::COMM => {
                let (Some(_), Some(tid)) = (fields.u32(), fields.u32()) else {
                    return Err(short());
                };
                let name = until_nul(fields.rest).to_vec();
                self.side(at, body, |_| What::Comm { tid, name });
            }
            kind::FORK => {
                let _processes = fields.u64();
                let (Some(tid), Some(parent)) = (fields.u32(), fields.u32()) else {
                    return Err(short());
                };
                self.side(at, body, |_| What::Fork { tid, parent });
            }
            kind::LOST | kind::LOST_SAMPLES => {
                if kind == kind::LOST {
                    fields.u64();
                }
                let Some(count) = fields.u64() else { return Err(short()) };
                self.side(at, body, |cpu| What::Lost { cpu, count });
            }
            kind::FINISHED_ROUND => {
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
                self.head.attrs.sort();
            }
            kind::TRACING_DATA => {
                let size = fields.u32().ok_or_else(short)?;
                let offset = self.offset;
                let bytes = self.bytes(u64::from(size))?;
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
                return Err(Located::whole(format!("byte {at}: the records are compressed")).hint(
                    "record without -z, or convert the file: \
                     `perf script --ns -F comm,pid,tid,cpu,time,event,trace -i FILE`",
                ));
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
        let Some(tracing) = &self.tracing else {
            return Err(Located::whole(format!("byte {at}: no event formats before the samples"))
                .hint("only recordings of tracepoints can be read, such as `perf sched record`"));
        };
        let Some(id) = Bytes::new(raw, tracing.endian).u16() else {
            return Err(Located::whole(format!("byte {at}: a sample without its raw payload"))
                .hint("record with -R, as `perf sched record` does"));
        };
        let known = tracing.tracepoints.get(id).filter(|tracepoint| tracepoint.is_kept());
        let hit = match known {
            Some(tracepoint) => tracepoint
                .decode(raw, tracing.endian, &mut self.intake.comms)
                .map_err(|message| fault(at, message))?,
            None => None,
        };
        let tid = moment.tid;
        let what = match hit {
            Some(hit) => What::Event { time, cpu, tid, context: hit.context, event: hit.event },
            None => What::Other { time, cpu, tid, id },
        };
        self.rounds.push(time, Item { offset: at, what });
        Ok(())
    }

    /// A record beside the samples; without a time it takes effect before all that has one.
    fn side(&mut self, at: u64, body: &[u8], what: impl FnOnce(CpuId) -> What) {
        let attr = self.head.attrs.of_others();
        let moment = attr.and_then(|attr| moment_behind(attr, body, self.head.endian));
        let Moment { time, cpu, .. } = moment.unwrap_or_default();
        let cpu = cpu.and_then(|cpu| cpu_id(u64::from(cpu)).ok()).unwrap_or(CpuId(0));
        self.rounds.push(time.unwrap_or(0), Item { offset: at, what: what(cpu) });
    }

    fn hand_out(&mut self, item: Item) -> Result<(), Located> {
        let step_back = |back: StepBack| fault(item.offset, back.message()).hint(StepBack::HINT);
        match item.what {
            What::Event { time, cpu, tid, context, event } => {
                let comm = self.name(tid);
                let stamp = stamp(time, cpu, tid, &comm, context);
                self.intake.take(&stamp, event).map_err(step_back)
            }
            What::Other { time, cpu, tid, id } => {
                let name = self.tracing.as_ref().and_then(|t| t.tracepoints.get(id));
                let name = name.map_or_else(|| format!("event {id}"), |t| t.name.clone());
                let stamp = stamp(time, cpu, tid, b"", RecordContext::Unknown);
                self.intake.pass(&stamp, name.as_bytes()).map_err(step_back)
            }
            What::Comm { tid, name } => {
                self.names.insert(tid, name);
                Ok(())
            }
            What::Fork { tid, parent } => {
                if let Some(name) = self.names.get(&parent).cloned() {
                    self.names.insert(tid, name);
                }
                Ok(())
            }
            What::Lost { cpu, count } => {
                self.intake.lost(cpu, Some(count));
                Ok(())
            }
        }
    }

    fn name(&self, tid: Option<(u32, u32)>) -> Vec<u8> {
        let name = tid.and_then(|(_, tid)| self.names.get(&tid));
        name.map_or_else(|| b"<...>".to_vec(), Clone::clone)
    }
}

fn stamp(
    time: u64,
    cpu: CpuId,
    tid: Option<(u32, u32)>,
    comm: &[u8],
    context: RecordContext,
) -> Stamp<'_> {
    // A thread that has given up its id is −1.
    let known = |id: u32| (id != u32::MAX).then_some(id);
    Stamp {
        time: Time::from_ns(time),
        cpu,
        pid: tid.and_then(|(_, tid)| known(tid)),
        tgid: tid.and_then(|(process, _)| known(process)),
        comm,
        context,
    }
}
