// SPDX-License-Identifier: GPL-2.0-only
//! The block of format texts at the head of trace.dat files and inside perf.data files.
//!
//! Source: spec formats-and-ecosystem §2.6 (feature 1), §2.7 (version 6).

use super::{Names, Tracepoints};
use crate::bytes::{Bytes, Endian};

/// First bytes of the block.
pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// What the block says.
#[derive(Clone, Debug)]
pub(crate) struct TracingData {
    pub(crate) endian: Endian,
    /// Size of a `long` of the kernel, bytes: as its pages show it, else as the program that
    /// recorded has it.
    pub(crate) long_size: u8,
    /// Size of a page of the trace buffer, bytes.
    pub(crate) page_size: u32,
    pub(crate) tracepoints: Tracepoints,
    /// Names of threads that were running, by pid.
    pub(crate) cmdlines: Names,
}

impl TracingData {
    /// Reads a block from its magic number on; what follows it.
    ///
    /// # Errors
    /// With the offset from the beginning of `bytes`.
    pub(crate) fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), (usize, String)> {
        let mut input = Bytes::new(bytes, Endian::Little);
        let parsed = parse(&mut input);
        let at = bytes.len() - input.rest.len();
        match parsed {
            Some(Ok(data)) => Ok((data, input.rest)),
            Some(Err(message)) => Err((at, message)),
            None => Err((at, "the block of event formats ends too early".to_string())),
        }
    }
}

fn parse(input: &mut Bytes<'_>) -> Option<Result<TracingData, String>> {
    if input.take(MAGIC.len() as u64)? != MAGIC {
        return Some(Err("no block of event formats".to_string()));
    }
    // The names of threads came with 0.6 of perf and with 6 of trace-cmd.
    let has_cmdlines = input.c_string()? != b"0.5";
    input.endian = if input.u8()? == 0 { Endian::Little } else { Endian::Big };
    let (long_size, page_size) = (input.u8()?, input.u32()?);
    let long_size = match parse_header_info(input)? {
        Ok(of_kernel) => of_kernel.unwrap_or(long_size),
        Err(message) => return Some(Err(message)),
    };
    for _ in 0..input.u32()? {
        // Formats of ftrace's own events: none of them is a scheduler event.
        let size = input.u64()?;
        input.take(size)?;
    }
    let mut tracepoints = Tracepoints::default();
    if let Err(message) = parse_formats(input, &mut tracepoints)? {
        return Some(Err(message));
    }
    let _kallsyms = input.u32().and_then(|size| input.take(u64::from(size)))?;
    let _printk = input.u32().and_then(|size| input.take(u64::from(size)))?;
    let cmdlines = if has_cmdlines { parse_cmdlines(input)? } else { Names::default() };
    let endian = input.endian;
    Some(Ok(TracingData { endian, long_size, page_size, tracepoints, cmdlines }))
}

/// Reads the descriptions of pages and of events in them: the size of a `long` that they show, if
/// any. `None` when they end too early.
pub(crate) fn parse_header_info(input: &mut Bytes<'_>) -> Option<Result<Option<u8>, String>> {
    let mut long_size = None;
    for name in [&b"header_page"[..], b"header_event"] {
        if input.c_string()? != name {
            let name = String::from_utf8_lossy(name);
            return Some(Err(format!("`{name}` expected")));
        }
        let size = input.u64()?;
        let text = String::from_utf8_lossy(input.take(size)?);
        // The word with the length of a page's data: `field: local_t commit; offset:8; size:8;`.
        let commit = text.lines().find(|line| line.contains(" commit;"));
        let size = commit.and_then(|line| line.split("size:").nth(1)?.split(';').next());
        long_size = long_size.or(match size {
            Some("4") => Some(4),
            Some("8") => Some(8),
            _ => None,
        });
    }
    Some(Ok(long_size))
}

/// Reads the formats of all systems; `None` when they end too early.
pub(crate) fn parse_formats(
    input: &mut Bytes<'_>,
    tracepoints: &mut Tracepoints,
) -> Option<Result<(), String>> {
    for _ in 0..input.u32()? {
        let system = input.c_string()?;
        for _ in 0..input.u32()? {
            let size = input.u64()?;
            let text = String::from_utf8_lossy(input.take(size)?);
            let added = match system {
                b"sched" => tracepoints.add_text(&text),
                _ => tracepoints.add_other(&text),
            };
            if let Err(message) = added {
                return Some(Err(message));
            }
        }
    }
    Some(Ok(()))
}

/// Reads the names of threads by pid; `None` when they end too early.
pub(crate) fn parse_cmdlines(input: &mut Bytes<'_>) -> Option<Names> {
    let size = input.u64()?;
    let mut names = Names::default();
    for line in input.take(size)?.split(|b| *b == b'\n') {
        let Some(blank) = line.iter().position(|b| *b == b' ') else { continue };
        let pid = std::str::from_utf8(&line[..blank]).ok().and_then(|n| n.parse().ok());
        if let Some(pid) = pid {
            names.set(pid, &line[blank + 1..]);
        }
    }
    Some(names)
}
