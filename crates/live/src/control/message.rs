// SPDX-License-Identifier: GPL-2.0-only
//! Questions and answers, and their lines of JSON.

use serde::{Deserialize, Serialize};

/// Name and version of the format.
pub const SCHEMA: &str = "schedlab.live/1";

/// A question to a live run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// What runs, how, and since when.
    Status,
    /// Another value for a tunable of the policy.
    Set {
        /// Name of the tunable.
        key: String,
        /// Value as a user writes it.
        value: String,
    },
    /// All tasks under the policy.
    Tasks,
}

/// An answer of a live run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// To [`Ask::Status`].
    Status(StatusReply),
    /// To [`Ask::Tasks`].
    Tasks(TasksReply),
    /// It was done.
    Done,
    /// It was not done.
    Refused {
        /// Why, and what would be possible.
        message: String,
    },
    /// It cannot be answered now; of clients [`super::ask`] makes an error of it.
    Unavailable {
        /// Why, and what helps.
        message: String,
    },
}

impl Answer {
    /// A refusal with its reason.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused { message: message.into() }
    }

    /// No answer now, with its reason.
    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::Unavailable { message: message.into() }
    }
}

/// A live run and its figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReply {
    /// The policy in full, such as `bfs@0.357:rr_interval=6`.
    pub policy: String,
    /// Which tasks are scheduled: `workload` or `system`.
    pub scope: String,
    /// How the host thread waits, such as `sleeping` or `polling`.
    pub host_mode: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Ticks of the kernel per second.
    pub hz: u32,
    /// CPUs that the policy schedules, as a list such as `0-3`.
    pub cpus: String,
    /// Seconds since the policy took over.
    pub since_s: u64,
    /// The command and its arguments; empty without a command.
    pub command: Vec<String>,
    /// Counters by name, in the order in which they are shown.
    #[serde(with = "by_name")]
    pub counters: Vec<(String, u64)>,
    /// Tunables of the policy with their present values.
    pub tunables: Vec<TunableReply>,
}

/// A tunable of the policy that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunableReply {
    /// Name.
    pub name: String,
    /// Value as a user writes it.
    pub value: String,
    /// Kind of value: `ns`, `flag`, `int` or `choice`.
    pub unit: String,
    /// Legal values in words.
    pub range: String,
    /// Whether it may be set while the policy runs.
    pub changeable: bool,
    /// What it does.
    pub doc: String,
}

/// The tasks under the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksReply {
    /// Time of the figures in ns since the policy took over.
    pub now_ns: u64,
    /// One entry for each task.
    pub tasks: Vec<TaskReply>,
}

/// A task under the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReply {
    /// Thread id.
    pub pid: u32,
    /// Name of the thread.
    pub comm: String,
    /// Process id.
    pub tgid: u32,
    /// Nice value, −20 to 19.
    pub nice: i32,
    /// Scheduling class in the policy's terms, such as `normal` or `batch`.
    pub class: String,
    /// `running`, `waiting` or `sleeping`.
    pub state: String,
    /// CPU it runs on, or ran on last.
    pub cpu: u32,
    /// Priority as the policy shows it to user space; not every policy has one.
    pub prio: Option<i64>,
    /// CPU time under the policy in ns.
    pub run_ns: u64,
    /// Time in which it could run but did not, in ns.
    pub wait_ns: u64,
    /// Values of the policy for this task by name.
    #[serde(with = "by_name")]
    pub values: Vec<(String, i64)>,
}

/// A message with the name of the format in front.
#[derive(Serialize, Deserialize)]
struct Line<T> {
    #[serde(default)]
    schema: String,
    #[serde(flatten)]
    message: T,
}

/// `message` as a line, with its end.
pub(super) fn to_line<T: Serialize>(message: &T) -> Vec<u8> {
    let line = Line { schema: SCHEMA.to_string(), message };
    let mut text = serde_json::to_vec(&line).expect("names are texts and numbers are finite");
    text.push(b'\n');
    text
}

/// The request in `line`; a request need not name the format.
///
/// # Errors
/// Says what was expected.
pub(super) fn request(line: &[u8]) -> Result<Ask, String> {
    let expected = "expected a line such as {\"ask\":\"status\"}";
    let line: Line<Ask> = serde_json::from_slice(line)
        .map_err(|error| format!("the request is not understood: {error}; {expected}"))?;
    match line.schema.as_str() {
        "" | SCHEMA => Ok(line.message),
        other => Err(format!("the request is of the format `{other}`, this is {SCHEMA}")),
    }
}

/// The answer in `line`.
///
/// # Errors
/// Says what is wrong with it.
pub(super) fn answer(line: &[u8]) -> Result<Answer, String> {
    let named: Line<serde_json::Value> =
        serde_json::from_slice(line).map_err(|error| format!("it is no JSON: {error}"))?;
    if named.schema != SCHEMA {
        return Err(format!("it is of the format `{}`, expected {SCHEMA}", named.schema));
    }
    serde_json::from_value(named.message).map_err(|error| format!("it lacks something: {error}"))
}

/// Lists of pairs as JSON objects in the order of the list.
mod by_name {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
    use serde::ser::{Serialize, Serializer};

    pub(super) fn serialize<S: Serializer, T: Serialize>(
        pairs: &[(String, T)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(pairs.iter().map(|(name, value)| (name, value)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, T)>, D::Error> {
        deserializer.deserialize_map(Pairs(PhantomData))
    }

    struct Pairs<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Pairs<T> {
        type Value = Vec<(String, T)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of numbers")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some(pair) = map.next_entry()? {
                pairs.push(pair);
            }
            Ok(pairs)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: Vec<u8>) -> String {
        String::from_utf8(line).expect("JSON is UTF-8")
    }

    #[test]
    fn requests_have_the_documented_form() {
        assert_eq!(
            text(to_line(&Ask::Status)),
            "{\"schema\":\"schedlab.live/1\",\"ask\":\"status\"}\n"
        );
        let set = Ask::Set { key: "slice".to_string(), value: "3ms".to_string() };
        assert_eq!(
            text(to_line(&set)),
            "{\"schema\":\"schedlab.live/1\",\"ask\":\"set\",\"key\":\"slice\",\"value\":\"3ms\"}\n"
        );
        for ask in [Ask::Status, set, Ask::Tasks] {
            assert_eq!(request(&to_line(&ask)), Ok(ask));
        }
    }

    #[test]
    fn request_may_be_typed_without_the_format() {
        assert_eq!(request(b" {\"ask\": \"tasks\", \"more\": [1]} \r\n"), Ok(Ask::Tasks));
    }

    #[test]
    fn wrong_requests_are_told_what_was_expected() {
        let cases: [&[u8]; 8] = [
            b"",
            b"status",
            b"{}",
            b"{\"ask\":\"stop\"}",
            b"{\"ask\":\"set\",\"key\":\"a\"}",
            b"[\"ask\"]",
            b"\xff\xfe",
            b"{\"ask\":\"status\"} {}",
        ];
        for case in cases {
            let error = request(case).unwrap_err();
            assert!(error.contains("expected a line such as"), "{error}");
        }
        let error = request(b"{\"schema\":\"schedlab.live/9\",\"ask\":\"status\"}").unwrap_err();
        assert!(error.contains("schedlab.live/9"), "{error}");
    }

    #[test]
    fn answers_come_back_as_they_were_with_their_order() {
        let counters = [("zeta".to_string(), u64::MAX), ("alpha".to_string(), 0)];
        let status = StatusReply { counters: counters.to_vec(), ..StatusReply::default() };
        let values = [("deadline".to_string(), i64::MIN), ("a".to_string(), i64::MAX)];
        let task = TaskReply { values: values.to_vec(), prio: Some(-1), ..TaskReply::default() };
        let tasks = TasksReply { now_ns: 1, tasks: vec![task, TaskReply::default()] };
        for sent in [
            Answer::Status(status),
            Answer::Tasks(tasks),
            Answer::Done,
            Answer::refused("no such \"key\"\n"),
        ] {
            let line = to_line(&sent);
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert_eq!(answer(&line), Ok(sent));
        }
    }

    #[test]
    fn answers_of_something_else_are_refused() {
        assert!(answer(b"hello").unwrap_err().contains("no JSON"));
        assert!(answer(b"{\"answer\":\"done\"}").unwrap_err().contains("format"));
        let lacking = b"{\"schema\":\"schedlab.live/1\",\"answer\":\"status\"}";
        assert!(answer(lacking).unwrap_err().contains("lacks"));
    }
}
