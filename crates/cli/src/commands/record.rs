// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab record`: what this host's scheduler does, into a file.

use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::host_args::RecordArgs;

/// Records and tells what was found.
///
/// # Errors
/// Whatever this host lacks, all at once; on a host that is not Linux always.
pub(crate) fn record(args: &RecordArgs, common: Common) -> Result<Exit, Failure> {
    #[cfg(target_os = "linux")]
    return linux::record(args, common);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (args, common);
        Err(Failure::new(Exit::Host, "this host lacks Linux: recordings are made on Linux only"))
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::atomic::Ordering;

    use schedlab_host::record::{Ended, RecordError, RecordOptions, record as record_host};

    use crate::args::Common;
    use crate::commands::trace_file;
    use crate::exit::{Exit, Failure};
    use crate::host_args::RecordArgs;
    use crate::output::cannot_write;
    use crate::{interrupt, terminal};

    pub(super) fn record(args: &RecordArgs, common: Common) -> Result<Exit, Failure> {
        let stop = interrupt::flag()?;
        let options = RecordOptions {
            command: args.command.clone(),
            whole_system: args.system,
            buffer_kib: args.buffer,
            length: args.duration,
        };
        let obstacles = schedlab_host::tracefs::obstacles();
        if !obstacles.is_empty() {
            return Err(lacks(&obstacles));
        }
        let mut writer = trace_file::record_writer(&args.output)?;
        let outcome = record_host(&options, writer.as_mut(), &stop);
        let closed = writer.close();
        let recorded = outcome.map_err(|error| match error {
            RecordError::Lacks(missing) => lacks(&missing),
            RecordError::Command(why) => Failure::new(Exit::Usage, why),
            RecordError::Failed(why) => Failure::new(Exit::Host, why),
        })?;
        closed.map_err(|error| cannot_write(&args.output, &error))?;
        if !common.quiet {
            recorded.to_string().lines().for_each(terminal::message);
        }
        if recorded.lost > 0 {
            terminal::warning(&format!(
                "the kernel's buffers lost {} events; a larger --buffer holds more",
                recorded.lost
            ));
        }
        match recorded.ended {
            // ^C is the usual end of a recording without a command.
            Ended::Itself if args.command.is_empty() => Ok(Exit::Done),
            Ended::Itself if stop.load(Ordering::Relaxed) => {
                Err(Failure::new(Exit::Interrupted, "interrupted; the recording so far is kept"))
            }
            Ended::Itself => Ok(Exit::Done),
            Ended::Command(code) => Ok(Exit::Command(code)),
        }
    }

    fn lacks(missing: &[String]) -> Failure {
        Failure::new(Exit::Host, format!("this host lacks: {}", missing.join("; ")))
    }
}
