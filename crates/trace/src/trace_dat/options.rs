// SPDX-License-Identifier: GPL-2.0-only
//! Options: what a file says about the kernel and the recording.

use schedlab_units::Located;

use crate::bytes::until_nul;

/// Ids of options, and of the sections that some of them lead to.
pub(super) mod option {
    pub(crate) const DONE: u16 = 0;
    pub(crate) const BUFFER: u16 = 3;
    pub(crate) const TRACE_CLOCK: u16 = 4;
    pub(crate) const UNAME: u16 = 5;
    pub(crate) const TSC_TO_NS: u16 = 14;
    pub(crate) const HEADER_INFO: u16 = 16;
    pub(crate) const EVENT_FORMATS: u16 = 18;
    pub(crate) const CMDLINES: u16 = 21;
}

/// Clocks that count ns.
const CLOCKS: [&str; 7] = ["local", "global", "perf", "mono", "mono_raw", "boot", "tai"];

/// What options say.
#[derive(Debug, Default)]
pub(super) struct Options {
    release: String,
    pub(super) clock: String,
    needs_conversion: bool,
    /// Names of buffers that are not read.
    pub(super) left_out: Vec<String>,
}

impl Options {
    /// Options that name a clock and nothing else.
    pub(super) fn of_clock(clock: String) -> Self {
        Self { clock, ..Self::default() }
    }
    /// Takes an option.
    pub(super) fn take(&mut self, id: u16, value: &[u8]) {
        let text = shown(value);
        match id {
            // All clocks, the chosen one in brackets.
            option::TRACE_CLOCK => {
                let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                self.clock = chosen.map_or_else(String::new, |(clock, _)| clock.to_string());
            }
            // System, name of the host (left out), release, machine.
            option::UNAME => {
                let words: Vec<&str> = text.split_whitespace().collect();
                if let [system, _, release, ..] = words[..] {
                    self.release = format!("{system} {release}");
                }
            }
            option::TSC_TO_NS => self.needs_conversion = true,
            _ => {}
        }
    }

    /// Refuses a clock that does not count ns.
    pub(super) fn check_clock(&self) -> Result<(), Located> {
        let is_ns = self.clock.is_empty() || CLOCKS.contains(&self.clock.as_str());
        if is_ns && !self.needs_conversion {
            return Ok(());
        }
        Err(Located::whole(format!("the clock `{}` does not count ns", self.clock))
            .hint("record with `-C mono` or without -C"))
    }

    /// Release of the kernel, and what is left out.
    pub(super) fn origin(&self) -> String {
        let mut parts = Vec::new();
        if !self.release.is_empty() {
            parts.push(self.release.clone());
        }
        if !self.left_out.is_empty() {
            parts.push(format!("{} further buffers are not read", self.left_out.len()));
        }
        parts.join(", ")
    }
}

/// A text of the file, fit to be printed.
pub(super) fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(until_nul(text)).chars().filter(|c| !c.is_control()).collect()
}
