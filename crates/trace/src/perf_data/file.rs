// SPDX-License-Identifier: GPL-2.0-only
//! The container: header, attributes, sections of features, records.

use std::io::{Read, Seek, SeekFrom};

use schedlab_units::Located;

use super::attr::{ATTR_SIZE_MIN, Attr, Attrs};
use crate::bytes::{Bytes, Endian};

/// Size of the header of a seekable file.
const HEADER_SIZE: u64 = 104;
/// Size of the header of a pipe.
const PIPE_HEADER_SIZE: u64 = 16;
/// The most that a section is read into memory. Formats of all events of a kernel take 2 to 3 MB.
const SECTION_MAX: u64 = 64 << 20;
/// The most attributes that make sense, and the most ids of all of them: events times CPUs.
const ATTRS_MAX: u64 = 1 << 16;
pub(super) const IDS_MAX: u64 = 1 << 20;
/// The most that is read of a feature that is only shown.
const FEATURE_MAX: u64 = 4096;

/// Bit of the feature that holds the event formats.
const TRACING_DATA: u64 = 1;

/// A fault at a byte of the file.
pub(super) fn fault(offset: u64, message: impl std::fmt::Display) -> Located {
    Located::whole(format!("byte {offset}: {message}")).hint("the file is damaged or was cut")
}

/// What stands before the records.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) endian: Endian,
    pub(super) attrs: Attrs,
    /// Where the records begin and end; the end of a pipe is that of the stream.
    pub(super) records: (u64, Option<u64>),
    /// The block of event formats and where it stands; a pipe has it among its records.
    pub(super) tracing_data: Option<(u64, Vec<u8>)>,
    pub(super) origin: Origin,
}

/// What is shown of a file's features. The name of the host is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    Release,
    PerfVersion,
    CpuCount,
}

impl Feature {
    /// The feature with this bit.
    pub(super) fn of_bit(bit: u64) -> Option<Self> {
        match bit {
            4 => Some(Self::Release),
            5 => Some(Self::PerfVersion),
            7 => Some(Self::CpuCount),
            _ => None,
        }
    }
}

/// Kernel, perf and CPUs, as far as the file says.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    release: Option<String>,
    perf: Option<String>,
    cpus: Option<u32>,
}

impl Origin {
    /// Takes the content of a feature.
    pub(super) fn take(&mut self, feature: Feature, bytes: &[u8], endian: Endian) {
        match feature {
            Feature::Release => self.release = text(bytes, endian),
            Feature::PerfVersion => self.perf = text(bytes, endian),
            // Available, then online.
            Feature::CpuCount => {
                self.cpus = bytes.get(4..).and_then(|b| Bytes::new(b, endian).u32());
            }
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            self.release.as_ref().map(|release| format!("Linux {release}")),
            self.perf.as_ref().map(|version| format!("perf {version}")),
            self.cpus.map(|n| format!("{n} CPUs")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// Reads up to the records.
pub(super) fn head<R: Read + Seek>(input: &mut R) -> Result<Head, Located> {
    let start = section(input, 0, PIPE_HEADER_SIZE, "header")?;
    let endian = match &start[..8] {
        b"PERFILE2" => Endian::Little,
        b"2ELIFREP" => Endian::Big,
        _ => {
            return Err(Located::whole("a perf.data file of an old version")
                .hint("convert it with the perf that wrote it: `perf script --ns`"));
        }
    };
    let size = Bytes::new(&start[8..], endian).u64().unwrap_or(0);
    if size == PIPE_HEADER_SIZE {
        return Ok(Head {
            endian,
            attrs: Attrs::default(),
            records: (PIPE_HEADER_SIZE, None),
            tracing_data: None,
            origin: Origin::default(),
        });
    }
    let header = section(input, 0, HEADER_SIZE, "header")?;
    let mut fields = Bytes::new(&header[16..], endian);
    let mut next = || fields.u64().unwrap_or(0);
    let (attr_size, attrs, records, _types) =
        (next(), (next(), next()), (next(), next()), (next(), next()));
    let features: Vec<u64> = (0..4).map(|_| next()).collect();
    if records.1 == 0 {
        return Err(Located::whole("byte 40: the file holds no records").hint(
            "perf was stopped before it had finished the file: record again and end it with ^C",
        ));
    }
    let end = records.0.checked_add(records.1);
    let end = end.ok_or_else(|| fault(40, "the records would lie beyond 64 bits"))?;
    let attrs = read_attrs(input, attr_size, attrs, endian)?;
    let mut head = Head {
        endian,
        attrs,
        records: (records.0, Some(end)),
        tracing_data: None,
        origin: Origin::default(),
    };
    read_features(input, end, &features, &mut head)?;
    Ok(head)
}

/// `size` bytes from `offset` on.
fn section<R: Read + Seek>(
    input: &mut R,
    offset: u64,
    size: u64,
    what: &str,
) -> Result<Vec<u8>, Located> {
    if size > SECTION_MAX {
        return Err(fault(offset, format!("a {what} of {size} bytes is beyond belief")));
    }
    let read = |input: &mut R| {
        input.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        input.take(size).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read(input).map_err(|error: std::io::Error| fault(offset, error))?;
    if (bytes.len() as u64) < size {
        let end = input.seek(SeekFrom::End(0)).map_err(|error| fault(offset, error))?;
        return Err(fault(end, format!("the file ends inside its {what}")));
    }
    Ok(bytes)
}

fn read_attrs<R: Read + Seek>(
    input: &mut R,
    attr_size: u64,
    (offset, size): (u64, u64),
    endian: Endian,
) -> Result<Attrs, Located> {
    // Each entry is an attribute and the section of its ids.
    let own_size = attr_size.checked_sub(16).filter(|n| *n >= ATTR_SIZE_MIN);
    let own_size = own_size.ok_or_else(|| fault(16, format!("attributes of {attr_size} bytes")))?;
    if size / attr_size > ATTRS_MAX {
        return Err(fault(32, format!("{} attributes", size / attr_size)));
    }
    let (mut attrs, mut n_ids) = (Attrs::default(), 0);
    let bytes = section(input, offset, size, "section of attributes")?;
    for (index, entry) in bytes.chunks_exact(attr_size as usize).enumerate() {
        let at = offset + index as u64 * attr_size;
        let attr = Attr::parse(entry, endian).ok_or_else(|| fault(at, "no attribute"))?;
        let mut ids = Bytes::new(&entry[own_size as usize..], endian);
        let (ids_at, ids_size) = (ids.u64().unwrap_or(0), ids.u64().unwrap_or(0));
        // Several events may claim one list, so the size of the file is no bound.
        n_ids += ids_size / 8;
        if n_ids > IDS_MAX {
            return Err(fault(at, format!("{n_ids} ids of events")));
        }
        let ids = section(input, ids_at, ids_size, "list of ids")?;
        attrs.push(attr, ids.chunks_exact(8).map(|id| endian.unsigned(id)));
    }
    Ok(attrs)
}

fn read_features<R: Read + Seek>(
    input: &mut R,
    table: u64,
    features: &[u64],
    head: &mut Head,
) -> Result<(), Located> {
    let present = (0..256).filter(|bit| features[bit / 64] >> (bit % 64) & 1 == 1);
    let length = input.seek(SeekFrom::End(0)).map_err(|error| fault(table, error))?;
    for (index, feature) in present.enumerate() {
        let entry = section(input, table + 16 * index as u64, 16, "table of features")?;
        let mut entry = Bytes::new(&entry, head.endian);
        let (offset, size) = (entry.u64().unwrap_or(0), entry.u64().unwrap_or(0));
        // Of a section that is not read it must be known at least that it is there.
        if offset.checked_add(size).is_none_or(|end| end > length) {
            return Err(fault(length, "the file ends inside its section of a feature"));
        }
        if feature as u64 == TRACING_DATA {
            let bytes = section(input, offset, size, "section of a feature")?;
            head.tracing_data = Some((offset, bytes));
        } else if let Some(feature) = Feature::of_bit(feature as u64) {
            let bytes = section(input, offset, size.min(FEATURE_MAX), "section of a feature")?;
            head.origin.take(feature, &bytes, head.endian);
        }
    }
    Ok(())
}

/// A string: its length, then bytes padded with NUL.
fn text(bytes: &[u8], endian: Endian) -> Option<String> {
    let mut input = Bytes::new(bytes, endian);
    let length = input.u32()?;
    let text = crate::bytes::until_nul(input.take(u64::from(length))?);
    // It is printed: a damaged one shall not reach a terminal as it is.
    let text: String = String::from_utf8_lossy(text).chars().filter(|c| !c.is_control()).collect();
    (!text.is_empty()).then_some(text)
}
