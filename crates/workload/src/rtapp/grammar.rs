// SPDX-License-Identifier: GPL-2.0-only
//! The words of rt-app's grammar.
//!
//! Source: rt-app 55cb0c0 `rt-app_parse_config.c`; spec formats-and-ecosystem §1.

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Runtime,
    Run,
    Sleep,
    MemRun,
    Mem,
    IoRun,
    Lock,
    Unlock,
    Wait,
    Sync,
    Signal,
    Broad,
    Barrier,
    Timer,
    Suspend,
    Resume,
    Yield,
    Fork,
    SemPost,
    SemWait,
}

/// Events by the word their keys begin with, in the order in which the words are tried.
const EVENTS: [(&str, Event); 20] = [
    ("runtime", Event::Runtime),
    ("run", Event::Run),
    ("sleep", Event::Sleep),
    ("memrun", Event::MemRun),
    ("mem", Event::Mem),
    ("iorun", Event::IoRun),
    ("lock", Event::Lock),
    ("unlock", Event::Unlock),
    ("wait", Event::Wait),
    ("sync", Event::Sync),
    ("signal", Event::Signal),
    ("broad", Event::Broad),
    ("barrier", Event::Barrier),
    ("timer", Event::Timer),
    ("suspend", Event::Suspend),
    ("resume", Event::Resume),
    ("yield", Event::Yield),
    ("fork", Event::Fork),
    ("sem_post", Event::SemPost),
    ("sem_wait", Event::SemWait),
];

/// The event that a key names: its beginning decides, the rest is free.
pub(super) fn event_of(key: &str) -> Option<Event> {
    EVENTS.iter().find(|(word, _)| key.starts_with(word)).map(|(_, event)| *event)
}

/// The words that begin the keys of events.
pub(super) fn event_words() -> impl Iterator<Item = &'static str> {
    EVENTS.iter().map(|(word, _)| *word)
}

pub(super) const ROOT_KEYS: [&str; 3] = ["tasks", "global", "resources"];

pub(super) const GLOBAL_KEYS: [&str; 13] = [
    "duration",
    "calibration",
    "default_policy",
    "pi_enabled",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
];

/// Old keys of `global` that rt-app dropped; its own examples still have one of them.
pub(super) const OLD_GLOBAL_KEYS: [&str; 2] = ["frag", "fragment"];

/// Properties that a task and a phase may have.
pub(super) const SHARED_KEYS: [&str; 12] = [
    "loop",
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "util_min",
    "util_max",
    "cpus",
    "nodes_membind",
    "taskgroup",
    // Read at the level of tasks; a phase ignores it, which is worth a word of its own.
    "delay",
];

/// Properties that only a task may have, the last two being old spellings of `dl-…`.
pub(super) const TASK_KEYS: [&str; 4] = ["instance", "phases", "period", "deadline"];

/// Kinds of entries that the root object `resources` may declare.
pub(super) const RESOURCE_TYPES: [&str; 8] =
    ["mutex", "signal", "wait", "broadcast", "sync", "sleep", "run", "timer"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_key_is_known_by_its_beginning() {
        for (key, event) in [
            ("run", Some(Event::Run)),
            ("run_first", Some(Event::Run)),
            ("runtime0", Some(Event::Runtime)),
            ("sleepy", Some(Event::Sleep)),
            ("memrun1", Some(Event::MemRun)),
            ("memory", Some(Event::Mem)),
            ("lock_pages", Some(Event::Lock)),
            ("broadcast", Some(Event::Broad)),
            ("sem_wait3", Some(Event::SemWait)),
            ("Run", None),
            ("loop", None),
            ("priority", None),
        ] {
            assert_eq!(event_of(key), event, "{key}");
        }
        let properties = SHARED_KEYS.iter().chain(&TASK_KEYS);
        assert!(properties.clone().all(|key| event_of(key).is_none()));
    }

    #[test]
    fn no_earlier_word_hides_a_later_one() {
        for (index, (word, _)) in EVENTS.iter().enumerate() {
            assert!(
                EVENTS[..index].iter().all(|(earlier, _)| !word.starts_with(earlier)),
                "{word}"
            );
        }
    }
}
