// SPDX-License-Identifier: GPL-2.0-only
//! Which form a trace file has, by its first bytes.

use std::fmt;

use schedlab_units::Located;

use crate::text::{Layout, parse_prefix};
use crate::{chrome, perfetto, slt, transcript};

/// A form of trace files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text of `perf script`.
    PerfScript,
    /// Text of tracefs' `trace` file or of `trace-cmd report`.
    FtraceText,
    /// Our own [`slt`].
    Slt,
    /// A [`transcript`] of a live run.
    LiveTranscript,
    /// `perf.data`.
    PerfData,
    /// trace-cmd's `trace.dat`.
    TraceDat,
    /// Perfetto's protobuf.
    Perfetto,
    /// Chrome's JSON as schedlab writes it.
    Chrome,
    /// Anything packed with gzip.
    Gzip,
    /// Anything packed with zstd.
    Zstd,
    /// Anything compressed with xz, not read.
    Xz,
    /// A page written by Android's systrace, not read.
    SystraceHtml,
}

impl Format {
    /// Why a file of this form is not read, and how to convert it.
    pub(crate) fn not_read(self) -> Located {
        let (message, hint) = match self {
            Self::PerfScript
            | Self::FtraceText
            | Self::Slt
            | Self::LiveTranscript
            | Self::PerfData
            | Self::TraceDat
            | Self::Perfetto
            | Self::Chrome
            | Self::Gzip
            | Self::Zstd => ("this form is read", ""),
            Self::Xz => ("the file is compressed with xz", "unpack it: `xz -d FILE`"),
            Self::SystraceHtml => (
                "systrace pages are not read",
                "save the text between `# tracer:` and the end of its script element",
            ),
        };
        Located::whole(message).hint(hint)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PerfScript => "perf script text",
            Self::FtraceText => "ftrace text",
            Self::Slt => "slt",
            Self::LiveTranscript => "live transcript",
            Self::PerfData => "perf.data",
            Self::TraceDat => "trace.dat",
            Self::Perfetto => "Perfetto trace",
            Self::Chrome => "Chrome JSON",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::SystraceHtml => "systrace page",
        })
    }
}

/// First bytes of binary forms. Source: spec formats-and-ecosystem §2.6, §2.7; RFC 1952, RFC 8878.
const MAGIC: [(&[u8], Format); 10] = [
    (&slt::MAGIC, Format::Slt),
    (&transcript::MAGIC, Format::LiveTranscript),
    (b"PERFILE2", Format::PerfData),
    (b"2ELIFREP", Format::PerfData),
    (b"PERFFILE", Format::PerfData),
    (b"\x17\x08\x44tracing", Format::TraceDat),
    (b"\x1f\x8b", Format::Gzip),
    (b"\x28\xb5\x2f\xfd", Format::Zstd),
    (b"\xfd7zXZ\0", Format::Xz),
    (b"<!DOCTYPE html", Format::SystraceHtml),
];

/// How many lines are looked at before giving up.
const MAX_LINES: usize = 200;

/// The form of a file that starts with `start`; a few KiB suffice.
///
/// `None` when it is no trace this crate knows, such as a workload file.
pub fn detect(start: &[u8]) -> Option<Format> {
    if let Some((_, format)) = MAGIC.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Some(*format);
    }
    // A zstd file may begin with frames that hold no data, as those of `pzstd` do.
    if matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) {
        return Some(Format::Zstd);
    }
    if start[..start.len().min(14)].eq_ignore_ascii_case(b"<!doctype html")
        || start[..start.len().min(5)].eq_ignore_ascii_case(b"<html")
    {
        return Some(Format::SystraceHtml);
    }
    if perfetto::looks_like(start) {
        return Some(Format::Perfetto);
    }
    if chrome::looks_like(start) {
        return Some(Format::Chrome);
    }
    start.split(|b| *b == b'\n').take(MAX_LINES).find_map(of_line)
}

/// The form that a single line gives away.
fn of_line(line: &[u8]) -> Option<Format> {
    let text = line.trim_ascii();
    if text.starts_with(b"# tracer:") || text.starts_with(b"cpus=") {
        return Some(Format::FtraceText);
    }
    if text.starts_with(b"# captured on") {
        return Some(Format::PerfScript);
    }
    // A long line cannot be a record, and need not be searched.
    if text.len() > 8192 {
        return None;
    }
    // The thread id stands behind a blank in one form and behind a hyphen in the other, so that at
    // most one of them fits.
    if parse_prefix(line, Layout::Perf).is_ok() {
        return Some(Format::PerfScript);
    }
    parse_prefix(line, Layout::Ftrace).is_ok().then_some(Format::FtraceText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detect_knows_magic_numbers_and_first_lines() {
        for (start, format) in [
            (&b"PERFILE2rest"[..], Some(Format::PerfData)),
            (b"\x17\x08\x44tracing6\0", Some(Format::TraceDat)),
            (b"\x89LIV\r\n\x1a\n{", Some(Format::LiveTranscript)),
            (b"\x1f\x8b\x08\0", Some(Format::Gzip)),
            (b"\x28\xb5\x2f\xfd\0", Some(Format::Zstd)),
            (b"\x50\x2a\x4d\x18\x04\0\0\0", Some(Format::Zstd)),
            (b"<!doctype HTML>", Some(Format::SystraceHtml)),
            (b"# tracer: nop\n#\n", Some(Format::FtraceText)),
            (b"cpus=4\n", Some(Format::FtraceText)),
            (b"# ========\n# captured on    : x\n", Some(Format::PerfScript)),
            (b"\n  a b-c 12/13 [001] 5.000001: sched:x: y\n", Some(Format::PerfScript)),
            (b"  a b-12    [001] d..2. 5.000001: sched_x: y\n", Some(Format::FtraceText)),
            (b"  a b-12    ( 12) [001] 5.000001: sched_x: y\n", Some(Format::FtraceText)),
            (b"{ \"tasks\": {} }\n", None),
            (b"[workload]\nname = \"x\"\n", None),
            (b"", None),
        ] {
            assert_eq!(detect(start), format, "{:?}", String::from_utf8_lossy(start));
        }
    }

    #[test]
    fn detect_of_garbage_is_none() {
        assert_eq!(detect(&vec![b'['; 1 << 20]), None);
        assert_eq!(detect(&[0xff; 100]), None);
    }
}
