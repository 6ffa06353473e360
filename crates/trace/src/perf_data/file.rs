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
const SECTION_MAX: u64 = 256 << 20;
/// The most attributes that make sense: events times CPUs.
const ATTRS_MAX: u64 = 1 << 20;

/// Features by their bit.
const TRACING_DATA: usize = 1;
const OS_RELEASE: usize = 4;
const PERF_VERSION: usize = 5;
const N_CPUS: usize = 7;

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
    /// Kernel, perf and CPUs, as far as the file says.
    pub(super) origin: String,
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
            origin: String::new(),
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
        origin: String::new(),
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
        let at = offset + bytes.len() as u64;
        return Err(fault(at, format!("the file ends inside its {what}")));
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
    let mut attrs = Attrs::default();
    let bytes = section(input, offset, size, "section of attributes")?;
    for (index, entry) in bytes.chunks_exact(attr_size as usize).enumerate() {
        let at = offset + index as u64 * attr_size;
        let attr = Attr::parse(entry, endian).ok_or_else(|| fault(at, "no attribute"))?;
        let mut ids = Bytes::new(&entry[own_size as usize..], endian);
        let (ids_at, ids_size) = (ids.u64().unwrap_or(0), ids.u64().unwrap_or(0));
        let ids = section(input, ids_at, ids_size, "list of ids")?;
        attrs.push(attr, ids.chunks_exact(8).map(|id| endian.unsigned(id)));
    }
    attrs.sort();
    Ok(attrs)
}

fn read_features<R: Read + Seek>(
    input: &mut R,
    table: u64,
    features: &[u64],
    head: &mut Head,
) -> Result<(), Located> {
    let present = (0..256).filter(|bit| features[bit / 64] >> (bit % 64) & 1 == 1);
    let mut release = String::new();
    let mut others = Vec::new();
    let length = input.seek(SeekFrom::End(0)).map_err(|error| fault(table, error))?;
    for (index, feature) in present.enumerate() {
        let entry = section(input, table + 16 * index as u64, 16, "table of features")?;
        let mut entry = Bytes::new(&entry, head.endian);
        let (offset, size) = (entry.u64().unwrap_or(0), entry.u64().unwrap_or(0));
        // Of a section that is not read it must be known at least that it is there.
        if offset.checked_add(size).is_none_or(|end| end > length) {
            return Err(fault(length, "the file ends inside its section of a feature"));
        }
        if !matches!(feature, TRACING_DATA | OS_RELEASE | PERF_VERSION | N_CPUS) {
            continue;
        }
        let bytes = section(input, offset, size, "section of a feature")?;
        match feature {
            TRACING_DATA => head.tracing_data = Some((offset, bytes)),
            OS_RELEASE => release = format!("Linux {}", text(&bytes, head.endian)),
            N_CPUS => {
                // Available, then online.
                let online = Bytes::new(bytes.get(4..).unwrap_or(&[]), head.endian).u32();
                others.extend(online.map(|n| format!("{n} CPUs")));
            }
            _ => others.push(format!("perf {}", text(&bytes, head.endian))),
        }
    }
    let parts = (!release.is_empty()).then_some(release).into_iter().chain(others);
    head.origin = parts.collect::<Vec<_>>().join(", ");
    Ok(())
}

/// A string: its length, then bytes padded with NUL.
fn text(bytes: &[u8], endian: Endian) -> String {
    let mut input = Bytes::new(bytes, endian);
    let length = input.u32().unwrap_or(0);
    let text = crate::bytes::until_nul(input.take(u64::from(length)).unwrap_or(&[]));
    String::from_utf8_lossy(text).into_owned()
}
