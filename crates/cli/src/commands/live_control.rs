// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab live status` and `schedlab live set`: asking the live run of this host.

use std::path::Path;

use schedlab_lab::nearest;
use schedlab_live::control::{Answer, Ask, SCHEMA, StatusReply, TunableReply};
use schedlab_report::wrap;
use schedlab_units::Nanos;
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::output::Destination;
use crate::table::{grouped, printable};
use crate::terminal;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// There is no live run, or none any more.
    Absent(Failure),
    /// Anything else.
    Failed(Failure),
}

impl From<NoAnswer> for Failure {
    fn from(reason: NoAnswer) -> Self {
        match reason {
            NoAnswer::Absent(failure) | NoAnswer::Failed(failure) => failure,
        }
    }
}

/// Asks the live run at `socket`.
///
/// # Errors
/// When nobody answers, or not as expected: this host's fault.
#[cfg(target_os = "linux")]
pub(crate) fn ask(socket: &Path, question: &Ask) -> Result<Answer, NoAnswer> {
    schedlab_live::control::ask(socket, question).map_err(|error| {
        let failure = Failure::new(Exit::Host, &error);
        if error.is_absent() {
            let hint = "start one with `sudo schedlab live -p SPEC -- COMMAND`";
            return NoAnswer::Absent(failure.with_hint(hint));
        }
        NoAnswer::Failed(failure)
    })
}

/// There is no live run on another system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub(crate) fn ask(_socket: &Path, _question: &Ask) -> Result<Answer, NoAnswer> {
    let message = "live scheduling needs Linux; simulation works everywhere";
    Err(NoAnswer::Absent(Failure::new(Exit::Host, message)))
}

/// The answer to [`Ask::Status`].
///
/// # Errors
/// As [`ask`], and when the answer is one to another question.
pub(crate) fn ask_status(socket: &Path) -> Result<StatusReply, NoAnswer> {
    match ask(socket, &Ask::Status)? {
        Answer::Status(status) => Ok(status),
        other => Err(NoAnswer::Failed(unexpected(&other))),
    }
}

/// The failure when a live run answers another question than it was asked.
pub(crate) fn unexpected(answer: &Answer) -> Failure {
    match answer {
        Answer::Refused { message } | Answer::Unavailable { message } => {
            Failure::new(Exit::Host, format!("the live run refuses: {message}"))
        }
        _ => Failure::new(Exit::Host, "the live run gave the answer to another question"),
    }
}

/// Prints what runs live, in `format` `text` or `json`.
///
/// # Errors
/// When nobody answers at `socket`.
pub(crate) fn status(format: &str, socket: &Path) -> Result<Exit, Failure> {
    let status = ask_status(socket)?;
    let shown = match format {
        "json" => status_json(status),
        _ => status_text(&status, terminal::width()),
    };
    Destination::Stdout.write(shown.as_bytes())?;
    Ok(Exit::Done)
}

/// Sets tunables of the policy that runs live, in order, and says so for each.
///
/// Names are checked before anything is set.
///
/// # Errors
/// Names that do not exist or are fixed, and values that are not legal: the user's fault. Those
/// before stay set. When nobody answers at `socket`: the host's.
pub(crate) fn set(pairs: &[(String, String)], socket: &Path) -> Result<Exit, Failure> {
    let status = ask_status(socket)?;
    for (key, _) in pairs {
        settable(&status.tunables, key).map_err(|told| Failure::new(Exit::Usage, told))?;
    }
    for (key, value) in pairs {
        let question = Ask::Set { key: key.clone(), value: value.clone() };
        match ask(socket, &question)? {
            Answer::Done => Destination::Stdout.write(format!("{key}={value}\n").as_bytes())?,
            Answer::Refused { message } => return Err(Failure::new(Exit::Usage, message)),
            other => return Err(unexpected(&other)),
        }
    }
    Ok(Exit::Done)
}

/// Whether `key` can be set while the policy runs; what can otherwise.
fn settable(tunables: &[TunableReply], key: &str) -> Result<(), String> {
    let names = || tunables.iter().filter(|tunable| tunable.changeable).map(|t| t.name.as_str());
    let all: Vec<&str> = names().collect();
    let can = match all.as_slice() {
        [] => "this policy has none that can be set while it runs".to_string(),
        all => format!("these can be set while it runs: {}", all.join(", ")),
    };
    match tunables.iter().find(|tunable| tunable.name == key) {
        Some(tunable) if tunable.changeable => Ok(()),
        Some(_) => Err(format!("`{key}` is fixed while the policy runs; {can}")),
        None => match nearest(key, names()).as_slice() {
            [] => Err(format!("there is no tunable `{key}`; {can}")),
            near => {
                let near = near.join("` or `");
                Err(format!("there is no tunable `{key}`; did you mean `{near}`?"))
            }
        },
    }
}

/// As it comes over the socket.
fn status_json(status: StatusReply) -> String {
    let answer = serde_json::to_value(Answer::Status(status)).expect("names are texts");
    let mut all = serde_json::Map::new();
    all.insert("schema".to_string(), Value::from(SCHEMA));
    if let Value::Object(fields) = answer {
        all.extend(fields);
    }
    format!("{:#}\n", Value::Object(all))
}

/// For people, in lines of `width` characters where words allow.
fn status_text(status: &StatusReply, width: usize) -> String {
    let command = match status.command.join(" ") {
        command if command.is_empty() => "none".to_string(),
        command => command,
    };
    let facts = [
        ("policy", status.policy.clone()),
        ("scope", status.scope.clone()),
        ("command", command),
        ("host", status.host_mode.clone()),
        ("kernel", format!("{}, HZ {}, CPUs {}", status.kernel, status.hz, status.cpus)),
        ("since", Nanos::from_s(status.since_s).to_string()),
    ];
    let mut text = String::new();
    for (name, fact) in facts {
        text += &format!("{name:8} {}\n", printable(&fact));
    }
    if !status.counters.is_empty() {
        text += "\nCounters\n";
        let longest = status.counters.iter().map(|(name, _)| name.chars().count()).max();
        let longest = longest.unwrap_or(0);
        for (name, value) in &status.counters {
            text += &format!("  {:longest$}  {:>15}\n", printable(name), grouped(*value));
        }
    }
    if !status.tunables.is_empty() {
        text += "\nTunables\n";
        for tunable in &status.tunables {
            let TunableReply { name, value, range, changeable, doc, .. } = tunable;
            let fixed = if *changeable { "" } else { ", fixed while it runs" };
            text += &printable(&format!("  {name} = {value}  ({range}{fixed})"));
            text.push('\n');
            let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
            for line in wrap(&doc, width.saturating_sub(6)) {
                text += &format!("      {}\n", printable(&line));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunable(name: &str, value: &str, changeable: bool) -> TunableReply {
        TunableReply {
            name: name.to_string(),
            value: value.to_string(),
            unit: "ns".to_string(),
            range: "1us to 1s".to_string(),
            changeable,
            doc: "Time granted before a new choice,\nwhich is long enough to make this text break."
                .to_string(),
        }
    }

    fn reply_of_status() -> StatusReply {
        StatusReply {
            policy: "bfs@0.357:rr_interval=6".to_string(),
            scope: "workload".to_string(),
            host_mode: "sleeping, SCHED_FIFO 50".to_string(),
            kernel: "6.12.117".to_string(),
            hz: 1000,
            cpus: "0-3".to_string(),
            since_s: 65,
            command: vec!["make".to_string(), "-j4\x1b[2J".to_string()],
            counters: vec![("switches".to_string(), 1_234_567), ("rescued".to_string(), 0)],
            tunables: vec![tunable("slice", "6ms", true), tunable("levels", "40", false)],
        }
    }

    #[test]
    fn status_in_text() {
        insta::assert_snapshot!(status_text(&reply_of_status(), 60));
    }

    #[test]
    fn status_in_json() {
        insta::assert_snapshot!(status_json(reply_of_status()));
    }

    #[test]
    fn status_without_command_and_figures_has_no_empty_parts() {
        let text = status_text(&StatusReply::default(), 60);
        assert!(text.contains("command  none\n"), "{text}");
        assert!(!text.contains("Counters") && !text.contains("Tunables"), "{text}");
    }

    #[test]
    fn names_that_cannot_be_set_are_told_with_those_that_can() {
        let tunables = reply_of_status().tunables;
        assert_eq!(settable(&tunables, "slice"), Ok(()));
        let told = |key| settable(&tunables, key).unwrap_err();
        assert_eq!(told("slcie"), "there is no tunable `slcie`; did you mean `slice`?");
        assert_eq!(
            told("levels"),
            "`levels` is fixed while the policy runs; these can be set while it runs: slice"
        );
        let none = settable(&tunables[1..], "x").unwrap_err();
        assert!(none.ends_with("this policy has none that can be set while it runs"), "{none}");
    }

    /// What `set` says to these pairs, and the questions that reached the live run.
    #[cfg(target_os = "linux")]
    fn set_live(name: &str, pairs: &[(&str, &str)]) -> (Result<Exit, Failure>, Vec<Ask>) {
        use schedlab_live::control::Control;
        // Names of sockets must be short, so it is not in the build's folder.
        let folder = std::env::temp_dir().join(format!("sls-{}-{name}", std::process::id()));
        let socket = folder.join("live.sock");
        let control = Control::open(&socket).expect("a socket");
        let owned = |pair: &(&str, &str)| (pair.0.to_string(), pair.1.to_string());
        let pairs: Vec<(String, String)> = pairs.iter().map(owned).collect();
        let mut asked = Vec::new();
        let outcome = std::thread::scope(|scope| {
            let asking = scope.spawn(|| set(&pairs, &socket));
            while !asking.is_finished() {
                let Some((ask, reply)) = control.poll() else {
                    std::thread::yield_now();
                    continue;
                };
                reply.send(match &ask {
                    Ask::Set { value, .. } if value == "2s" => Answer::refused("at most 1s"),
                    Ask::Set { .. } => Answer::Done,
                    _ => Answer::Status(reply_of_status()),
                });
                asked.push(ask);
            }
            asking.join().expect("no panic")
        });
        drop(control);
        std::fs::remove_dir(&folder).expect("the socket is gone");
        (outcome, asked)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn set_goes_on_until_a_value_is_refused() {
        let (outcome, asked) =
            set_live("some", &[("slice", "3ms"), ("slice", "2s"), ("slice", "1ms")]);
        assert_eq!(outcome.unwrap_err().exit, Exit::Usage);
        assert_eq!(asked.len(), 3, "{asked:?}");
        let (outcome, asked) = set_live("all", &[("slice", "3ms")]);
        assert_eq!(outcome.unwrap(), Exit::Done);
        let set = Ask::Set { key: "slice".to_string(), value: "3ms".to_string() };
        assert_eq!(asked, [Ask::Status, set]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn set_changes_nothing_when_a_name_is_wrong() {
        let (outcome, asked) = set_live("none", &[("slice", "3ms"), ("slcie", "3ms")]);
        assert_eq!(outcome.unwrap_err().exit, Exit::Usage);
        assert_eq!(asked, [Ask::Status]);
    }

    #[test]
    fn status_and_set_without_a_live_run_are_the_hosts_fault() {
        let nowhere = Path::new("/no/such/socket");
        assert_eq!(status("text", nowhere).unwrap_err().exit, Exit::Host);
        assert_eq!(set(&[], nowhere).unwrap_err().exit, Exit::Host);
    }
}
