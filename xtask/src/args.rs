// SPDX-License-Identifier: GPL-2.0-only
//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use schedlab_units::{DurationError, Nanos};

use crate::accel::Asked;

/// Work around schedlab: the guest in which live scheduling is tried, and its kernel.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Task,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Run a command as root in a guest whose kernel has sched_ext
    Vm(VmArgs),
    /// Build the guest's kernel from Debian's linux-source-6.12
    Kernel(KernelArgs),
}

/// Arguments of `vm`.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit code: that of COMMAND; 125 when the guest gave none (crash, hang, time limit). Otherwise 2 \
wrong command line; 3 FILE is no kernel; 4 this host lacks something; 130 ^C.
Example: cargo xtask vm --cpus 2 -- cat /sys/kernel/sched_ext/state")]
pub(crate) struct VmArgs {
    /// Number of CPUs
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) cpus: u8,
    /// Memory in MiB
    #[arg(long, value_name = "MB", default_value = "2048", value_parser = clap::value_parser!(u32).range(128..))]
    pub(crate) memory: u32,
    /// Real time after which the guest is ended
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = duration)]
    pub(crate) timeout: Nanos,
    /// auto (KVM where it works, else tcg), kvm, tcg (emulation), or icount=N (emulation, an
    /// instruction lasts 2^N ns)
    #[arg(long, value_name = "ACCEL", default_value = "auto", value_parser = Asked::parse)]
    pub(crate) accel: Asked,
    /// Directory that the guest has on /mnt and may write; gets console.log too
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// bzImage or vmlinux to start
    #[arg(long, value_name = "FILE")]
    pub(crate) kernel: Option<PathBuf>,
    /// More words for the kernel's command line
    #[arg(
        long,
        value_name = "ARGS",
        default_value = "",
        allow_hyphen_values = true,
        hide_default_value = true
    )]
    pub(crate) append: String,
    /// Show all messages of the kernel on standard error
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Command; its words are joined by blanks and read by sh
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<String>,
}

/// Arguments of `kernel`.
#[derive(Args, Debug)]
pub(crate) struct KernelArgs {
    /// Directory for bzImage, vmlinux and config, instead of the one in the build directory where
    /// `vm` looks
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Archive of the source, as .tar or compressed
    #[arg(long, value_name = "FILE", default_value = crate::kernel::SOURCE)]
    pub(crate) source: PathBuf,
    /// Compilers at the same time; 0 = one for each CPU of this host
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) jobs: usize,
}

fn duration(text: &str) -> Result<Nanos, DurationError> {
    Nanos::parse(text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn words_after_the_dashes_are_the_command() {
        let words = ["xtask", "vm", "--cpus", "2", "--", "ls", "--cpus", "-l"];
        let Task::Vm(args) = Cli::try_parse_from(words).expect("right").command else {
            panic!("another task")
        };
        assert_eq!((args.cpus, args.command.join(" ")), (2, "ls --cpus -l".to_string()));
    }

    #[test]
    fn wrong_values_are_refused() {
        for wrong in [
            &["xtask", "vm"][..],
            &["xtask", "vm", "true"],
            &["xtask", "vm", "--cpus", "0", "--", "true"],
            &["xtask", "vm", "--cpus", "65", "--", "true"],
            &["xtask", "vm", "--timeout", "5", "--", "true"],
            &["xtask", "vm", "--accel", "xen", "--", "true"],
        ] {
            assert!(Cli::try_parse_from(wrong).is_err(), "{wrong:?}");
        }
    }
}
