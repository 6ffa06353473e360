// SPDX-License-Identifier: GPL-2.0-only
//! What executes the guest's instructions: the processor, or one of two ways of emulation.

use std::fmt;
use std::fs::OpenOptions;

use crate::exit::{Failure, HOST};

/// Largest `shift` that QEMU takes: one instruction lasts 2^10 ns.
const SHIFT_MAX: u8 = 10;

/// Value of `--accel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// KVM where it works, else emulation.
    Auto,
    /// This one or none.
    Accel(Accel),
}

/// An accelerator, in QEMU's sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accel {
    /// Hardware virtualisation.
    Kvm,
    /// Emulation with a host thread for each CPU; guest time is host time.
    Tcg,
    /// Emulation in one host thread; an instruction lasts 2^shift ns of guest time, and idle time
    /// is skipped.
    Icount(u8),
}

impl Asked {
    /// Reads `auto`, `kvm`, `tcg` or `icount=N`.
    ///
    /// # Errors
    /// Anything else.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let shift = |text: &str| text.parse().ok().filter(|shift| *shift <= SHIFT_MAX);
        match text {
            "auto" => Ok(Self::Auto),
            "kvm" => Ok(Self::Accel(Accel::Kvm)),
            "tcg" => Ok(Self::Accel(Accel::Tcg)),
            _ => text
                .strip_prefix("icount=")
                .and_then(shift)
                .map(|shift| Self::Accel(Accel::Icount(shift)))
                .ok_or_else(|| {
                    format!("expected auto, kvm, tcg or icount=N with N from 0 to {SHIFT_MAX}")
                }),
        }
    }
}

impl fmt::Display for Accel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kvm => f.write_str("kvm"),
            Self::Tcg => f.write_str("tcg"),
            Self::Icount(shift) => write!(f, "icount={shift}"),
        }
    }
}

/// What the host offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host<'a> {
    /// Whether /dev/kvm can be opened for writing.
    pub(crate) kvm_opens: bool,
    /// The text of /proc/cpuinfo.
    pub(crate) cpuinfo: &'a str,
}

impl Host<'_> {
    /// Whether the device at hand can be opened for writing.
    pub(crate) fn kvm_opens() -> bool {
        OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok()
    }

    /// Why KVM is of no use here, if so. A device that opens is not enough: one without hardware
    /// virtualisation behind it interprets an ordinary guest kernel so slowly that it never boots.
    fn against_kvm(&self) -> Option<&'static str> {
        let flag = |word| word == "vmx" || word == "svm";
        if !self.kvm_opens {
            Some("/dev/kvm cannot be opened")
        } else if !self.cpuinfo.split_ascii_whitespace().any(flag) {
            Some("/proc/cpuinfo shows neither vmx nor svm, so /dev/kvm is not hardware")
        } else {
            None
        }
    }
}

/// The accelerator to use, and what the user is to be told about it.
///
/// # Errors
/// When KVM was asked for and does not work here.
pub(crate) fn choose(asked: Asked, host: Host<'_>) -> Result<(Accel, Option<String>), Failure> {
    match (asked, host.against_kvm()) {
        (Asked::Auto, None) => Ok((Accel::Kvm, None)),
        (Asked::Auto, Some(why)) => {
            Ok((Accel::Tcg, Some(format!("note: the guest is emulated: {why}"))))
        }
        (Asked::Accel(Accel::Kvm), Some(why)) => {
            Err(Failure::new(HOST, format!("no KVM here: {why}; --accel tcg emulates the guest")))
        }
        (Asked::Accel(accel), _) => Ok((accel, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTEL: &str = "processor : 0\nflags\t\t: fpu vmx ssse3\n";
    const AMD: &str = "processor : 0\nflags\t\t: fpu svm\n";

    #[test]
    fn kvm_with_hardware_is_chosen() {
        for cpuinfo in [INTEL, AMD] {
            let host = Host { kvm_opens: true, cpuinfo };
            assert_eq!(choose(Asked::Auto, host), Ok((Accel::Kvm, None)));
        }
    }

    #[test]
    fn kvm_without_hardware_is_passed_over_with_a_note() {
        for host in [
            Host { kvm_opens: true, cpuinfo: "flags : fpu svm_lock" },
            Host { kvm_opens: false, cpuinfo: INTEL },
        ] {
            let (accel, note) = choose(Asked::Auto, host).expect("emulation always works");
            assert_eq!(accel, Accel::Tcg);
            assert!(note.expect("a reason").starts_with("note: the guest is emulated: /"));
            let asked = Asked::Accel(Accel::Kvm);
            assert_eq!(choose(asked, host).expect_err("no KVM").code, HOST);
        }
    }

    #[test]
    fn emulation_that_was_asked_for_needs_no_note() {
        let host = Host { kvm_opens: true, cpuinfo: INTEL };
        for accel in [Accel::Tcg, Accel::Icount(3)] {
            assert_eq!(choose(Asked::Accel(accel), host), Ok((accel, None)));
        }
    }

    #[test]
    fn names_of_accelerators_are_read_back() {
        for accel in [Accel::Kvm, Accel::Tcg, Accel::Icount(0), Accel::Icount(10)] {
            assert_eq!(Asked::parse(&accel.to_string()), Ok(Asked::Accel(accel)));
        }
        assert_eq!(Asked::parse("auto"), Ok(Asked::Auto));
        for wrong in ["", "icount", "icount=", "icount=11", "icount=-1", "xen"] {
            assert!(Asked::parse(wrong).is_err(), "{wrong}");
        }
    }
}
