// SPDX-License-Identifier: GPL-2.0-only
//! A policy that runs live while something else goes on: `schedlab live` as a child whose command
//! waits for its input to end.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use schedlab_lab::spec::PolicySpec;
use schedlab_units::CpuSet;

use crate::exit::{Exit, Failure};

/// How long a policy may take to come into office.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks whether it has.
const LOOK: Duration = Duration::from_millis(10);

/// The child, until its policy has left.
pub(crate) struct Reign {
    child: Child,
}

impl Reign {
    /// Starts `schedlab live` for `spec` on `cpus` and waits until SCHED_EXT tasks are its.
    ///
    /// # Errors
    /// What it says when it cannot.
    pub(crate) fn begin(spec: &PolicySpec, cpus: &CpuSet) -> Result<Self, Failure> {
        let own = std::env::current_exe().map_err(|error| failed(&error.to_string()))?;
        let child = Command::new(own)
            .args(["live", "--quiet", "--policy", &spec.to_string(), "--cpus", &cpus.to_string()])
            .args(["--", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&error.to_string()))?;
        let mut reign = Self { child };
        let begin = Instant::now();
        loop {
            if reign.child.try_wait().is_ok_and(|status| status.is_some()) {
                return Err(reign.told());
            }
            let state = fs::read_to_string("/sys/kernel/sched_ext/state").unwrap_or_default();
            if state.trim() == "enabled" {
                return Ok(reign);
            }
            if begin.elapsed() > PATIENCE {
                return Err(failed("the policy did not take over"));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// When the policy was not in charge to the end.
    pub(crate) fn end(mut self) -> Result<(), Failure> {
        drop(self.child.stdin.take());
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(self.told()),
        }
    }

    /// What the child said on standard error.
    fn told(&mut self) -> Failure {
        let mut text = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = stderr.read_to_string(&mut text);
        }
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix("error: ")).unwrap_or("it ended early");
        failed(line)
    }
}

impl Drop for Reign {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn failed(why: &str) -> Failure {
    Failure::new(Exit::Host, format!("live: {why}"))
}
