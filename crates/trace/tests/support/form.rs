// SPDX-License-Identifier: GPL-2.0-only
//! Reading a text as one form only.

use std::io::BufRead;

use schedlab_trace::{Collect, Format, Read, read_as};
use schedlab_units::Located;

/// Reads `bytes` as a trace of this form, without looking for others.
pub(crate) fn read_form(format: Format, bytes: impl BufRead) -> Result<Read, Located> {
    let mut sink = Collect::new();
    let (summary, comms) = read_as(format, bytes, &mut sink)?;
    Ok(Read { recording: sink.finish(comms, summary.n_cpus), summary })
}
