// SPDX-License-Identifier: GPL-2.0-only
//! The first line of a transcript: all that decided how the run would go.

use serde::{Deserialize, Serialize};

/// Schema of the header and of the frames behind it.
pub const SCHEMA: &str = "schedlab.transcript/1";

/// What a transcript says of its run; one line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the program that wrote it.
    pub version: String,
    /// Spec of the policy as it was asked for.
    pub policy: String,
    /// Every tunable with its value at the start, as users write them.
    pub tunables: Vec<(String, String)>,
    /// Release of the kernel.
    pub kernel: String,
    /// Rate at which the kernel ticks, per second.
    pub kernel_hz: u32,
    /// Rate at which the policy counts ticks, per second.
    pub hz: u32,
    /// Whether running tasks report ticks.
    pub ticks: bool,
    /// CPUs that the policy uses, as a list.
    pub cpus: String,
    /// The machine as the policy sees it: nodes, caches in each, cores in each, threads in each.
    pub topology: [u32; 4],
    /// Seed of the policy's random stream.
    pub seed: u64,
    /// Tasks that room was made for.
    pub n_tasks: usize,
    /// Which tasks the policy got: `workload` or `system`.
    pub scope: String,
    /// How the host's thread ran.
    pub host: String,
    /// CLOCK_MONOTONIC in ns at the policy's time 0.
    pub epoch_ns: u64,
    /// The command and its arguments.
    pub command: Vec<String>,
}

impl Header {
    /// The run in one sentence.
    pub fn origin(&self) -> String {
        let Self { policy, kernel, kernel_hz, cpus, .. } = self;
        format!("a live run of {policy} on Linux {kernel} at {kernel_hz} Hz, CPUs {cpus}")
    }

    /// The line, with its line feed.
    pub fn to_line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("plain data");
        line.push('\n');
        line
    }

    /// Reads the line; the fault is a lower-case fragment.
    pub(super) fn from_line(line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).map_err(|_| "the header is not UTF-8".to_string())?;
        let schema = serde_json::from_str::<serde_json::Value>(text)
            .ok()
            .and_then(|value| value.get("schema")?.as_str().map(str::to_string));
        match schema {
            Some(schema) if schema != SCHEMA => Err(format!(
                "the file has schema {schema:?}, this version of schedlab reads {SCHEMA}"
            )),
            _ => serde_json::from_str(text).map_err(|error| format!("the header: {error}")),
        }
    }
}
