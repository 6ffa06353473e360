// SPDX-License-Identifier: GPL-2.0-only
//! The format text of one tracepoint.

use crate::bytes::{Endian, until_nul};

/// Where a field lies in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    offset: usize,
    size: usize,
    /// The field holds offset (low half) and length (high half) of bytes elsewhere in the payload.
    is_data_loc: bool,
}

impl Place {
    /// The field's bytes; `None` beyond the end of the payload.
    fn bytes<'a>(&self, raw: &'a [u8]) -> Option<&'a [u8]> {
        raw.get(self.offset..self.offset.checked_add(self.size)?)
    }
    /// The field as a number, at most eight bytes; a signed one keeps its bits, extended.
    pub(crate) fn number(&self, raw: &[u8], endian: Endian) -> Option<i64> {
        let bytes = self.bytes(raw).filter(|b| (1..=8).contains(&b.len()))?;
        let unused = 64 - 8 * bytes.len() as u32;
        Some(((endian.unsigned(bytes) << unused) as i64) >> unused)
    }
    /// The field as a name.
    pub(crate) fn name<'a>(&self, raw: &'a [u8], endian: Endian) -> Option<&'a [u8]> {
        let bytes = self.bytes(raw)?;
        if !self.is_data_loc {
            return Some(until_nul(bytes));
        }
        let word = endian.unsigned(bytes.get(..4)?) as usize;
        let (offset, length) = (word & 0xffff, word >> 16);
        raw.get(offset..offset + length).map(until_nul)
    }
}

/// A parsed format text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventFormat {
    pub(crate) name: String,
    pub(crate) id: u16,
    fields: Vec<(String, Place)>,
    /// Letters of `prev_state` by bit, where the text prints flags.
    pub(crate) letters: Vec<(u64, u8)>,
}

impl EventFormat {
    /// Reads a format text; `None` when it has no name, no number or a malformed field.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut format = Self::default();
        let mut id = None;
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim().to_string();
            } else if let Some(number) = line.strip_prefix("ID:") {
                id = Some(number.trim().parse().ok()?);
            } else if let Some(field) = line.strip_prefix("field:") {
                format.fields.push(parse_field(field)?);
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                format.letters = parse_letters(print);
            }
        }
        format.id = id?;
        (!format.name.is_empty()).then_some(format)
    }

    /// The place of field `name`.
    pub(crate) fn field(&self, name: &str) -> Option<Place> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, place)| *place)
    }
}

/// The parts of a line behind `field:`: declaration, offset, size, sign.
fn parse_field(text: &str) -> Option<(String, Place)> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size) = (None, None);
    for part in parts {
        if let Some(n) = part.strip_prefix("offset:") {
            offset = n.parse().ok();
        } else if let Some(n) = part.strip_prefix("size:") {
            size = n.parse().ok();
        }
    }
    let name = declaration.rsplit([' ', '*']).next()?;
    let name = name.split('[').next().unwrap_or(name).to_string();
    let is_data_loc = declaration.starts_with("__data_loc ");
    Some((name, Place { offset: offset?, size: size?, is_data_loc }))
}

/// The pairs `{ 0x01, "S" }` of the first list of flags that a print format holds.
fn parse_letters(print: &str) -> Vec<(u64, u8)> {
    let mut letters = Vec::new();
    let list = print.find("__print_flags(").map_or("", |at| &print[at..]);
    for part in list.split('{').skip(1) {
        let Some((bit, rest)) = part.split_once(',') else { break };
        let bit = bit.trim();
        let bit = match bit.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => bit.parse(),
        };
        let letter = rest.split('"').nth(1).filter(|l| l.len() == 1);
        let (Ok(bit), Some(letter)) = (bit, letter) else { break };
        letters.push((bit, letter.as_bytes()[0]));
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:__data_loc char[] comm;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\n\
        print fmt: \"x=%s%s\", REC->s & 1 ? __print_flags(REC->s, \"|\", { 0x00000001, \"S\" }, \
        { 2, \"D\" }) : \"R\", REC->s & 256 ? \"+\" : \"\"\n";

    #[test]
    fn format_text_yields_places_and_letters() {
        let format = EventFormat::parse(SWITCH).expect("well formed");
        assert_eq!((format.name.as_str(), format.id), ("sched_switch", 372));
        assert_eq!(format.letters, [(1, b'S'), (2, b'D')]);
        let mut raw = vec![0u8; 48];
        raw[8..11].copy_from_slice(b"abc");
        raw[24..28].copy_from_slice(&[40, 0, 5, 0]);
        raw[40..45].copy_from_slice(b"long\0");
        raw[32..40].copy_from_slice(&(-2i64).to_le_bytes());
        let name = |field: &str| format.field(field).and_then(|p| p.name(&raw, Endian::Little));
        assert_eq!(name("prev_comm"), Some(&b"abc"[..]));
        assert_eq!(name("comm"), Some(&b"long"[..]));
        let state = format.field("prev_state").expect("a field");
        assert_eq!(state.number(&raw, Endian::Little), Some(-2));
        assert_eq!(state.number(&raw[..39], Endian::Little), None);
        assert_eq!(format.field("none"), None);
    }

    #[test]
    fn format_text_malformed_is_none() {
        for text in
            ["", "name: x\n", "ID: 5\n", "name: x\nID: y\n", "name: x\nID: 1\nfield:int a;\n"]
        {
            assert_eq!(EventFormat::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn data_loc_beyond_the_payload_is_none() {
        let place = Place { offset: 0, size: 4, is_data_loc: true };
        assert_eq!(place.name(&[200, 0, 5, 0], Endian::Little), None);
        assert_eq!(Place { offset: usize::MAX, size: 4, is_data_loc: false }.bytes(&[0; 8]), None);
    }
}
