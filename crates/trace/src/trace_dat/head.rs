// SPDX-License-Identifier: GPL-2.0-only
//! What stands before the pages: formats, names, options, where the pages of each CPU are.

use std::io::{Read, Seek, SeekFrom};

use schedlab_units::Located;

use super::options::{Options, option, shown};
pub(super) use super::packing::Packing;
use crate::bytes::{Bytes, Endian};
use crate::ring::Layout;
use crate::tep::{MAGIC, Names, Tracepoints, TracingData};
use crate::tep::{parse_cmdlines, parse_formats, parse_header_info};

/// The most that a part of the head takes in memory. Formats of all events of a kernel take 2 to
/// 3 MB.
const PART_MAX: u64 = 128 << 20;
/// First guess at the length of the head of version 6.
const HEAD_GUESS: u64 = 4 << 20;
/// The most that sections of version 7 take together, read again or unpacked.
const SECTIONS_MAX: u64 = 128 << 20;
/// Sections of options follow each other; more than this is a loop.
const OPTION_SECTIONS_MAX: usize = 1000;

/// A fault at a byte of the file.
pub(super) fn fault(offset: u64, message: impl std::fmt::Display) -> Located {
    Located::whole(format!("byte {offset}: {message}")).hint("the file is damaged or was cut")
}

/// The pages of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuData {
    pub(super) cpu: u32,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// The head of a file.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) layout: Layout,
    pub(super) page_size: u32,
    /// How pages and sections are packed.
    pub(super) packing: Option<Packing>,
    pub(super) tracepoints: Tracepoints,
    pub(super) cmdlines: Names,
    pub(super) cpus: Vec<CpuData>,
    /// Release of the kernel, as far as the file says, and what of the file is left out.
    pub(super) origin: String,
    /// Names of buffers that are not read.
    left_out: Vec<String>,
}

impl Head {
    /// The fault of a file without events, which may be in buffers that are not read.
    pub(super) fn explain(&self, fault: Located) -> Located {
        if self.left_out.is_empty() {
            return fault;
        }
        let message = format!(
            "the top buffer of the file holds no scheduling event, and its others are not read: {}",
            self.left_out.join(", ")
        );
        Located::whole(message).hint("record the events without -B")
    }
}

/// Reads the head of either version.
pub(super) fn head<R: Read + Seek>(input: &mut R) -> Result<Head, Located> {
    let start = part(input, 0, MAGIC.len() as u64 + 2, "head")?;
    match &start[MAGIC.len()..] {
        b"6\0" => version_6(input),
        b"7\0" => version_7(input),
        other => {
            let version = String::from_utf8_lossy(other).trim_end_matches('\0').to_string();
            Err(Located::whole(format!("version {version} of trace.dat is not read"))
                .hint("6 and 7 are: `trace-cmd convert --file-version 7 --compression none`"))
        }
    }
}

/// `size` bytes from `offset` on.
pub(super) fn part<R: Read + Seek>(
    input: &mut R,
    offset: u64,
    size: u64,
    what: &str,
) -> Result<Vec<u8>, Located> {
    let bytes = at_most(input, offset, size)?;
    if (bytes.len() as u64) < size {
        let end = input.seek(SeekFrom::End(0)).map_err(|error| fault(offset, error))?;
        return Err(fault(end, format!("the file ends inside its {what}")));
    }
    Ok(bytes)
}

fn at_most<R: Read + Seek>(input: &mut R, offset: u64, size: u64) -> Result<Vec<u8>, Located> {
    if size > PART_MAX {
        return Err(fault(offset, format!("a part of {size} bytes is beyond belief")));
    }
    // A page at once; what is longer grows with what is there.
    let mut bytes = Vec::with_capacity(size.min(1 << 16) as usize);
    input
        .seek(SeekFrom::Start(offset))
        .and_then(|_| input.take(size).read_to_end(&mut bytes))
        .map_err(|error| fault(offset, error))?;
    Ok(bytes)
}

fn version_6<R: Read + Seek>(input: &mut R) -> Result<Head, Located> {
    let mut guess = HEAD_GUESS;
    loop {
        let bytes = at_most(input, 0, guess)?;
        let is_whole = (bytes.len() as u64) < guess;
        match parse_version_6(&bytes) {
            // The head may go on behind what was read.
            Err(_) if !is_whole && guess < PART_MAX => guess *= 2,
            Err((at, message)) => return Err(fault(at as u64, message)),
            Ok(head) => return head,
        }
    }
}

type Parsed = Result<Result<Head, Located>, (usize, String)>;

fn parse_version_6(bytes: &[u8]) -> Parsed {
    let (data, rest) = TracingData::parse(bytes)?;
    let mut input = Bytes::new(rest, data.endian);
    let place = |input: &Bytes<'_>| bytes.len() - input.rest.len();
    let short = |at: usize| (at, "the file ends inside its head".to_string());
    let n_cpus = input.u32().ok_or_else(|| short(place(&input)))?;
    let mut options = Options::default();
    loop {
        let at = place(&input);
        match input.take(10).ok_or_else(|| short(at))? {
            b"options  \0" => {}
            b"flyrecord\0" => break,
            b"latency  \0" => {
                return Ok(Err(Located::whole("the file holds the text of a latency tracer")
                    .hint("record with `trace-cmd record`")));
            }
            _ => return Err((at, "`options`, `flyrecord` or `latency` expected".to_string())),
        }
        loop {
            let at = place(&input);
            let id = input.u16().ok_or_else(|| short(at))?;
            if id == option::DONE {
                break;
            }
            let value = input.u32().and_then(|size| input.take(u64::from(size)));
            let value = value.ok_or_else(|| short(at))?;
            if id == option::BUFFER {
                // Offset, then name.
                options.left_out.push(shown(value.get(8..).unwrap_or(&[])));
            } else {
                options.take(id, value);
            }
        }
    }
    let mut cpus = Vec::new();
    for cpu in 0..n_cpus {
        let at = place(&input);
        let data = input.u64().zip(input.u64()).ok_or_else(|| short(at))?;
        cpus.push(CpuData { cpu, offset: data.0, size: data.1 });
    }
    if let Err(located) = options.check_clock() {
        return Ok(Err(located));
    }
    Ok(Ok(Head {
        layout: Layout { endian: data.endian, long_size: data.long_size },
        page_size: data.page_size,
        packing: None,
        tracepoints: data.tracepoints,
        cmdlines: data.cmdlines,
        cpus,
        origin: options.origin(),
        left_out: options.left_out,
    }))
}

fn version_7<R: Read + Seek>(input: &mut R) -> Result<Head, Located> {
    // Names of the compressor and its version end somewhere in here.
    let bytes = at_most(input, 0, 1024)?;
    let mut start = Bytes::new(&bytes[MAGIC.len() + 2..], Endian::Little);
    let mut read = || {
        start.endian = if start.u8()? == 0 { Endian::Little } else { Endian::Big };
        let (long_size, page_size) = (start.u8()?, start.u32()?);
        let (compressor, _version) = (start.c_string()?, start.c_string()?);
        let layout = Layout { endian: start.endian, long_size };
        Some((layout, page_size, compressor, start.u64()?))
    };
    let Some((layout, page_size, compressor, first)) = read() else {
        return Err(fault(bytes.len() as u64, "the file ends inside its head"));
    };
    let packing = match compressor {
        b"none" => None,
        b"zstd" => Some(Packing::Zstd),
        b"zlib" => Some(Packing::Zlib),
        other => {
            return Err(Located::whole(format!("the file is packed with {}", shown(other)))
                .hint("unpack it: `trace-cmd convert -i FILE -o NEW --compression none`"));
        }
    };
    let mut head = Head {
        layout,
        page_size,
        packing,
        tracepoints: Tracepoints::default(),
        cmdlines: Names::default(),
        cpus: Vec::new(),
        origin: String::new(),
        left_out: Vec::new(),
    };
    let (options, buffers) = (Options::default(), Vec::new());
    let mut walk = Walk { input, head: &mut head, options, buffers, room: SECTIONS_MAX };
    walk.options_from(first)?;
    let Walk { mut options, mut buffers, .. } = walk;
    // The top buffer has no name.
    let top = buffers.iter().position(|buffer| buffer.name.is_empty()).unwrap_or(0);
    if top < buffers.len() {
        let buffer = buffers.remove(top);
        let clock = if buffer.clock.is_empty() { options.clock.clone() } else { buffer.clock };
        Options::of_clock(clock).check_clock()?;
        head.page_size = buffer.page_size;
        head.cpus = buffer.cpus;
    }
    options.check_clock()?;
    options.left_out = buffers.iter().map(|buffer| shown(&buffer.name)).collect();
    head.origin = options.origin();
    head.left_out = options.left_out;
    Ok(head)
}

struct Buffer {
    name: Vec<u8>,
    clock: String,
    page_size: u32,
    cpus: Vec<CpuData>,
}

struct Walk<'a, R> {
    input: &'a mut R,
    head: &'a mut Head,
    options: Options,
    buffers: Vec<Buffer>,
    /// Bytes that sections may still take.
    room: u64,
}

impl<R: Read + Seek> Walk<'_, R> {
    /// Sections of options, each leading to the next.
    fn options_from(&mut self, mut offset: u64) -> Result<(), Located> {
        for _ in 0..OPTION_SECTIONS_MAX {
            if offset == 0 {
                return Ok(());
            }
            let bytes = self.section(offset)?;
            let mut input = Bytes::new(&bytes, self.head.layout.endian);
            let mut next = 0;
            while !input.rest.is_empty() {
                let read = input.u16().zip(input.u32());
                let option = read.and_then(|(id, size)| Some((id, input.take(u64::from(size))?)));
                let Some((id, value)) = option else {
                    return Err(fault(offset, "an option is longer than its section"));
                };
                if id == option::DONE {
                    next = Bytes::new(value, input.endian).u64().unwrap_or(0);
                    break;
                }
                self.option(offset, id, value)?;
            }
            offset = next;
        }
        Err(fault(offset, "sections of options go round in a circle"))
    }

    fn option(&mut self, at: u64, id: u16, value: &[u8]) -> Result<(), Located> {
        let endian = self.head.layout.endian;
        let mut input = Bytes::new(value, endian);
        match id {
            option::HEADER_INFO | option::EVENT_FORMATS | option::CMDLINES => {
                let Some(offset) = input.u64() else {
                    return Err(fault(at, "an option without its offset"));
                };
                let bytes = self.section(offset)?;
                let mut input = Bytes::new(&bytes, endian);
                let head = &mut *self.head;
                let read = match id {
                    option::CMDLINES => parse_cmdlines(&mut input).map(|names| {
                        head.cmdlines = names;
                        Ok(())
                    }),
                    option::HEADER_INFO => parse_header_info(&mut input).map(|size| {
                        head.layout.long_size = size?.unwrap_or(head.layout.long_size);
                        Ok(())
                    }),
                    _ => parse_formats(&mut input, &mut head.tracepoints),
                };
                match read {
                    Some(Ok(())) => {}
                    Some(Err(message)) => return Err(fault(offset, message)),
                    None => return Err(fault(offset, "a section ends too early")),
                }
            }
            option::BUFFER => {
                let buffer = parse_buffer(&mut input);
                self.buffers.push(buffer.ok_or_else(|| fault(at, "a buffer ends too early"))?);
            }
            _ => self.options.take(id, value),
        }
        Ok(())
    }

    /// The body of the section at `offset`, unpacked.
    fn section(&mut self, offset: u64) -> Result<Vec<u8>, Located> {
        let header = part(self.input, offset, 16, "section")?;
        let mut fields = Bytes::new(&header, self.head.layout.endian);
        let (_id, flags, _name, size) = (fields.u16(), fields.u16(), fields.u32(), fields.u64());
        let size = size.unwrap_or(0);
        self.spend(offset, size)?;
        let bytes = part(self.input, offset + 16, size, "section")?;
        if flags.unwrap_or(0) & 1 == 0 {
            return Ok(bytes);
        }
        let mut input = Bytes::new(&bytes, self.head.layout.endian);
        let sizes = input.u32().zip(input.u32());
        let packed = sizes.and_then(|(packed, size)| Some((input.take(u64::from(packed))?, size)));
        let Some((packed, size)) = packed else {
            return Err(fault(offset, "a packed section ends too early"));
        };
        let Some(packing) = self.head.packing else {
            return Err(fault(offset, "a packed section in a file that is not packed"));
        };
        self.spend(offset, u64::from(size))?;
        packing.unpack(packed, u64::from(size)).map_err(|message| fault(offset, message))
    }

    /// Counts what a section takes: options may name the same one again and again.
    fn spend(&mut self, offset: u64, size: u64) -> Result<(), Located> {
        // The header of a section counts too, so that empty ones come to an end.
        match self.room.checked_sub(size.saturating_add(16)) {
            Some(room) => self.room = room,
            None => return Err(fault(offset, "the sections of the head are beyond belief")),
        }
        Ok(())
    }
}

fn parse_buffer(input: &mut Bytes<'_>) -> Option<Buffer> {
    let _offset = input.u64()?;
    let name = input.c_string()?.to_vec();
    let clock = String::from_utf8_lossy(input.c_string()?).into_owned();
    let page_size = input.u32()?;
    let mut cpus = Vec::new();
    for _ in 0..input.u32()? {
        cpus.push(CpuData { cpu: input.u32()?, offset: input.u64()?, size: input.u64()? });
    }
    Some(Buffer { name, clock, page_size, cpus })
}
