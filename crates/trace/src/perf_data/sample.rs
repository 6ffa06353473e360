// SPDX-License-Identifier: GPL-2.0-only
//! The fields of samples and of the ids behind other records.

use super::attr::{Attr, bit};
use crate::bytes::{Bytes, Endian};

/// What a record says of the moment it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) time: Option<u64>,
    pub(super) cpu: Option<u32>,
    /// Process and thread; −1 for one that had given up its id.
    pub(super) tid: Option<(u32, u32)>,
}

/// Reads a sample: its moment and its raw payload.
pub(super) fn sample(attr: Attr, body: &[u8], endian: Endian) -> Option<(Moment, &[u8])> {
    let mut input = Bytes::new(body, endian);
    let mut moment = Moment::default();
    let has = |flag: u64| attr.sample_type & flag != 0;
    for flag in [bit::IDENTIFIER, bit::IP] {
        if has(flag) {
            input.u64()?;
        }
    }
    if has(bit::TID) {
        moment.tid = Some((input.u32()?, input.u32()?));
    }
    if has(bit::TIME) {
        moment.time = Some(input.u64()?);
    }
    for flag in [bit::ADDR, bit::ID, bit::STREAM_ID] {
        if has(flag) {
            input.u64()?;
        }
    }
    if has(bit::CPU) {
        moment.cpu = Some(input.u32()?);
        input.u32()?;
    }
    if has(bit::PERIOD) {
        input.u64()?;
    }
    if has(bit::READ) {
        skip_read(attr.read_format, &mut input)?;
    }
    if has(bit::CALLCHAIN) {
        let n = input.u64()?;
        input.take(n.checked_mul(8)?)?;
    }
    if !has(bit::RAW) {
        return Some((moment, &[]));
    }
    let size = input.u32()?;
    Some((moment, input.take(u64::from(size))?))
}

/// Values of counters: one, or those of a group.
fn skip_read(format: u64, input: &mut Bytes<'_>) -> Option<()> {
    let has = |n: u32| format >> n & 1;
    let (enabled, running, id, group, lost) = (has(0), has(1), has(2), has(3), has(4));
    let each = 1 + id + lost;
    let values = if group == 1 { input.u64()?.checked_mul(each)? } else { each };
    input.take(values.checked_add(enabled + running)?.checked_mul(8)?)?;
    Some(())
}

/// Reads the ids at the end of a record that is no sample.
pub(super) fn moment_behind(attr: Attr, body: &[u8], endian: Endian) -> Option<Moment> {
    let has = |flag: u64| attr.sample_type & flag != 0;
    let ids = [bit::TID, bit::TIME, bit::ID, bit::STREAM_ID, bit::CPU, bit::IDENTIFIER];
    let length = 8 * ids.iter().filter(|flag| has(**flag)).count();
    let start = body.len().checked_sub(length)?;
    let mut input = Bytes::new(&body[start..], endian);
    let mut moment = Moment::default();
    if has(bit::TID) {
        moment.tid = Some((input.u32()?, input.u32()?));
    }
    if has(bit::TIME) {
        moment.time = Some(input.u64()?);
    }
    for flag in [bit::ID, bit::STREAM_ID] {
        if has(flag) {
            input.u64()?;
        }
    }
    if has(bit::CPU) {
        moment.cpu = Some(input.u32()?);
    }
    Some(moment)
}
