// SPDX-License-Identifier: GPL-2.0-only
//! How a live run fails to start, and how it ends, in words.

use std::fs;
use std::io;
use std::path::Path;

use thiserror::Error;

use crate::probe::another;

/// Characters of a kernel's text that a message repeats at most.
const TEXT_MAX: usize = 300;

/// Why the kernel did not take the relay.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The verifier refused a program.
    #[error("the kernel refused the BPF program: {reason}; {log}")]
    Refused {
        /// The verifier's last line.
        reason: String,
        /// Where the whole log is, in words.
        log: String,
    },
    /// This kernel lacks a name that the relay needs.
    #[error("this kernel's BTF does not know `{0}`, which the relay needs")]
    Unknown(&'static str),
    /// Relay and host were built from different sources.
    #[error("the relay speaks another version of the messages than the host")]
    Layout,
    /// Another scheduler has the place.
    #[error("{}", another(.0))]
    Busy(String),
    /// The kernel took the programs, but not the scheduler.
    #[error("could not attach: {0}")]
    Attach(String),
}

impl LoadError {
    /// A refusal with the log of the verifier, all of which goes into `file`.
    pub fn refused(log: &str, file: &Path) -> Self {
        let written = if log.trim().is_empty() {
            "it left no log".to_string()
        } else {
            match fs::write(file, log) {
                Ok(()) => format!("the whole log is in {}", file.display()),
                Err(error) => format!("its log cannot be written to {}: {error}", file.display()),
            }
        };
        Self::Refused { reason: reason(log), log: written }
    }

    /// A refused attach; `other` is the name in `/sys/kernel/sched_ext/root/ops` after it, which
    /// tells who came first when two schedulers start at once.
    pub fn attach(error: &io::Error, other: Option<&str>) -> Self {
        if error.kind() == io::ErrorKind::ResourceBusy {
            return Self::Busy(other.unwrap_or("one that has just come").to_string());
        }
        Self::Attach(error.to_string())
    }

    /// How to mend it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Refused { .. } => {
                "please report it with the log and the release of the kernel; 6.12 is what is tested"
            }
            Self::Unknown(_) => "6.12 or later is needed, 6.12 is what is tested",
            Self::Layout => "build schedlab anew",
            Self::Busy(_) => "stop the program or service that loaded it",
            Self::Attach(_) => "`schedlab probe` and the kernel's log (`dmesg`) may say more",
        }
    }
}

/// The line of a verifier's log that says why: the last that is no statistic and no frame of libbpf.
fn reason(log: &str) -> String {
    let frame = |line: &&str| {
        let statistic = ["processed ", "verification time", "stack depth"];
        let around = ["libbpf: ", "-- "];
        !line.is_empty() && !statistic.iter().chain(&around).any(|head| line.starts_with(head))
    };
    let last = log.lines().map(str::trim).rfind(frame);
    last.map_or_else(|| "it does not say why".to_string(), bounded)
}

/// `text` on one line of bounded length.
fn bounded(text: &str) -> String {
    let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    line.take(TEXT_MAX).collect::<String>().trim().to_string()
}

/// Why the relay is no longer the kernel's scheduler (`enum scx_exit_kind` of Linux 6.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// 64: we let go of it.
    Detached,
    /// 65 to 66: the relay, or the kernel when a CPU comes or goes, asked for the end.
    Asked,
    /// 67: somebody pressed SysRq-S.
    SysRq,
    /// 1024: the kernel found an error.
    KernelError,
    /// 1025: the relay gave up.
    GaveUp,
    /// 1026: a task was not run for too long.
    Stall,
    /// A number this version does not know.
    Unknown(u64),
}

impl From<u64> for EndKind {
    fn from(number: u64) -> Self {
        match number {
            64 => Self::Detached,
            65 | 66 => Self::Asked,
            67 => Self::SysRq,
            1024 => Self::KernelError,
            1025 => Self::GaveUp,
            1026 => Self::Stall,
            other => Self::Unknown(other),
        }
    }
}

/// The end of a live run, from the relay's exit record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Its kind.
    pub kind: EndKind,
    /// The kernel's text, such as `policy silent for 1014 ms`; may be empty.
    pub text: String,
}

impl Ending {
    /// Of the numbers and texts of an exit record: the message, or the reason where it is empty.
    pub fn new(kind: u64, reason: &str, message: &str) -> Self {
        let text = if message.trim().is_empty() { reason } else { message };
        Self { kind: EndKind::from(kind), text: bounded(text) }
    }

    /// Whether the run ended as it should, so that its results are valid.
    pub fn is_valid(&self) -> bool {
        self.kind == EndKind::Detached
    }

    /// What to tell of an end that was not ours, the line after `error: ` first; nothing of our own.
    ///
    /// `counters` are the relay's, by name.
    pub fn report(&self, counters: &[(String, u64)]) -> Vec<String> {
        if self.is_valid() {
            return Vec::new();
        }
        let counted: Vec<String> =
            counters.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let mut lines = vec![format!("live scheduling ended early: {self}")];
        if !counted.is_empty() {
            lines.push(format!("counters: {}", counted.join(", ")));
        }
        lines
            .push("the kernel's own scheduler has taken over; the results are invalid".to_string());
        lines
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let head = match self.kind {
            EndKind::Detached => return f.write_str("detached by schedlab"),
            EndKind::SysRq => return f.write_str("stopped by SysRq-S"),
            EndKind::Asked => "the scheduler was asked to end".to_string(),
            EndKind::KernelError => "the kernel found an error".to_string(),
            EndKind::GaveUp => "the relay gave up".to_string(),
            EndKind::Stall => "stall".to_string(),
            EndKind::Unknown(number) => format!("the kernel ended it (kind {number})"),
        };
        match self.text.as_str() {
            "" => f.write_str(&head),
            text => write!(f, "{head}: {text}"),
        }
    }
}

/// What a panic said.
pub(crate) fn words(cause: &(dyn std::any::Any + Send)) -> String {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| cause.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_end_has_its_words() {
        let shown = |kind, message| Ending::new(kind, "", message).to_string();
        assert_eq!(shown(64, ""), "detached by schedlab");
        assert_eq!(shown(67, "x"), "stopped by SysRq-S");
        assert_eq!(
            shown(66, "cpu 2 going offline"),
            "the scheduler was asked to end: cpu 2 going offline"
        );
        assert_eq!(shown(1024, "bad"), "the kernel found an error: bad");
        assert_eq!(
            shown(1025, "policy silent for 1014 ms"),
            "the relay gave up: policy silent for 1014 ms"
        );
        assert_eq!(
            shown(1026, "hog[77] failed to run for 5.0 s"),
            "stall: hog[77] failed to run for 5.0 s"
        );
        assert_eq!(shown(9, ""), "the kernel ended it (kind 9)");
    }

    #[test]
    fn reason_stands_in_for_an_empty_message() {
        assert_eq!(Ending::new(1024, "runtime error", " \n").text, "runtime error");
    }

    #[test]
    fn kernel_texts_stay_on_one_bounded_line() {
        let ending = Ending::new(1024, "", &format!("a\nb\x1b[2J{}", "x".repeat(1000)));
        assert!(ending.text.starts_with("a b [2Jx"), "{}", ending.text);
        assert_eq!(ending.text.chars().count(), TEXT_MAX);
    }

    #[test]
    fn only_our_own_detach_is_valid_and_needs_no_report() {
        assert!(Ending::new(64, "", "").report(&[]).is_empty());
        for kind in [0, 65, 66, 67, 1024, 1025, 1026] {
            assert!(!Ending::new(kind, "", "").is_valid(), "{kind}");
        }
        let counters = [("rescued".to_string(), 1), ("rejected".to_string(), 0)];
        assert_eq!(
            Ending::new(67, "", "").report(&counters),
            [
                "live scheduling ended early: stopped by SysRq-S",
                "counters: rescued 1, rejected 0",
                "the kernel's own scheduler has taken over; the results are invalid",
            ]
        );
    }

    #[test]
    fn verifier_log_is_kept_and_its_last_word_told() {
        let log = "-- BEGIN PROG LOAD LOG --\n0: R1=ctx()\nR2 invalid mem access 'scalar'\n\
                   processed 7 insns (limit 1000000)\n-- END PROG LOAD LOG --\n\
                   libbpf: prog 'dispatch': failed to load: -13\n";
        let file = std::env::temp_dir().join(format!("schedlab-log-{}", std::process::id()));
        let error = LoadError::refused(log, &file);
        let kept = fs::read_to_string(&file).expect("the log");
        fs::remove_file(&file).expect("ours");
        assert_eq!(kept, log);
        assert_eq!(
            error.to_string(),
            format!(
                "the kernel refused the BPF program: R2 invalid mem access 'scalar'; the whole \
                 log is in {}",
                file.display()
            )
        );
    }

    #[test]
    fn log_that_cannot_be_kept_is_told() {
        let error = LoadError::refused("bad", Path::new("/no/such/folder/log")).to_string();
        assert!(error.contains("bad; its log cannot be written to /no/such/folder/log"), "{error}");
        let empty = LoadError::refused("", Path::new("/no/such/folder/log")).to_string();
        assert!(empty.ends_with("it does not say why; it left no log"), "{empty}");
    }

    #[test]
    fn busy_attach_says_the_same_as_the_probe() {
        let busy = io::Error::from(io::ErrorKind::ResourceBusy);
        assert_eq!(
            LoadError::attach(&busy, Some("scx_simple")).to_string(),
            "another sched_ext scheduler is loaded: scx_simple; stop it first"
        );
        let other = io::Error::from(io::ErrorKind::InvalidInput);
        let text = LoadError::attach(&other, None).to_string();
        assert!(text.starts_with("could not attach: "), "{text}");
    }
}
