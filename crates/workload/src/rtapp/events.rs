// SPDX-License-Identifier: GPL-2.0-only
//! Events: from the members of a phase to actions.

use std::collections::BTreeMap;

use schedlab_units::Located;

use super::grammar::Event;
use super::values::{Entry, Notes, get};

/// What an event does. Times are ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// `run`: this many µs at calibration speed.
    Run(u64),
    Runtime(u64),
    Sleep(u64),
    /// `memrun` of type `read` or `write`.
    Access {
        write: bool,
        count: u64,
    },
    Chase {
        bytes: u64,
        hops: u64,
        random: bool,
    },
    Mem(u64),
    IoRun(u64),
    Lock(String),
    Unlock(String),
    Wait {
        condition: String,
        mutex: String,
    },
    Sync {
        condition: String,
        mutex: String,
    },
    Signal(String),
    Broad(String),
    Barrier(String),
    Timer {
        name: String,
        period: u64,
        absolute: bool,
    },
    /// On the condition of this name; none when the value is empty or missing.
    Suspend(Option<String>),
    Resume(String),
    Yield,
    Fork(String),
    SemPost(String),
    SemWait(String),
}

/// The parameters of a shared `memrun` buffer, which all events of one `ref` must agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Buffer {
    size: u64,
    stride: u64,
    random: bool,
    chase: bool,
}

/// Translates events; remembers the shared buffers of a file.
#[derive(Debug, Default)]
pub(super) struct EventReader {
    buffers: BTreeMap<String, Buffer>,
    /// Places of the `suspend`s without a value.
    pub(super) bare_suspends: Vec<usize>,
}

impl EventReader {
    /// The action of an event.
    pub(super) fn read(
        &mut self,
        notes: &mut Notes<'_>,
        event: Event,
        entry: &Entry<'_>,
    ) -> Result<Action, Located> {
        let Entry { key, at, node, bare } = *entry;
        if bare && event == Event::Suspend && !notes.strict {
            self.bare_suspends.push(at);
            return Ok(Action::Suspend(None));
        }
        if bare {
            let message = format!("the event `{key}` has no value");
            return Err(notes.fault(at, message).hint("only workgen allows that, for `suspend`"));
        }
        let what = format!("`{key}`");
        let name = |notes: &Notes<'_>| notes.text_of(node, &what).map(str::to_string);
        Ok(match event {
            Event::Run => Action::Run(notes.natural(node, &what)?),
            Event::Runtime => Action::Runtime(notes.micros(node, &what)?),
            Event::Sleep => Action::Sleep(notes.micros(node, &what)?),
            Event::Mem => Action::Mem(notes.natural(node, &what)?),
            Event::IoRun => Action::IoRun(notes.natural(node, &what)?),
            Event::MemRun => self.memrun(notes, entry)?,
            Event::Lock => Action::Lock(lock_name(notes, entry)?),
            Event::Unlock => Action::Unlock(name(notes)?),
            Event::Wait => {
                let (condition, mutex) = wait(notes, entry)?;
                Action::Wait { condition, mutex }
            }
            Event::Sync => {
                let (condition, mutex) = wait(notes, entry)?;
                Action::Sync { condition, mutex }
            }
            Event::Signal => Action::Signal(name(notes)?),
            Event::Broad => Action::Broad(name(notes)?),
            Event::Barrier => Action::Barrier(name(notes)?),
            Event::Timer => timer(notes, entry)?,
            Event::Suspend => Action::Suspend(Some(name(notes)?).filter(|name| !name.is_empty())),
            Event::Resume => Action::Resume(name(notes)?),
            Event::Yield => {
                notes.text_of(node, &what)?;
                Action::Yield
            }
            Event::Fork => Action::Fork(name(notes)?),
            Event::SemPost => Action::SemPost(name(notes)?),
            Event::SemWait => Action::SemWait(name(notes)?),
        })
    }

    fn memrun(&mut self, notes: &mut Notes<'_>, entry: &Entry<'_>) -> Result<Action, Located> {
        let what = format!("`{}`", entry.key);
        let list = notes.entries(entry.node, &what)?;
        notes.only(&list, &what, &["type", "size", "count", "stride", "pattern", "ref"])?;
        let need = |key: &str| {
            get(&list, key)
                .ok_or_else(|| notes.fault(entry.node.at, format!("{what} needs `{key}`")))
        };
        let kind = need("type")?;
        let (chase, write) = match notes.text_of(kind, "`type`")? {
            "read" => (false, false),
            "write" => (false, true),
            "chase" => (true, false),
            other => {
                let message = format!("`type` is `{other}`; it must be read, write or chase");
                return Err(notes.fault(kind.at, message));
            }
        };
        let size_node = need("size")?;
        let size = notes.natural(size_node, "`size`")?;
        let count = notes.natural(need("count")?, "`count`")?;
        let stride = match get(&list, "stride") {
            Some(node) => notes.natural(node, "`stride`")?,
            None => 64,
        };
        let random = match get(&list, "pattern") {
            None => true,
            Some(node) => match notes.text_of(node, "`pattern`")? {
                "random" => true,
                "sequential" => false,
                other => {
                    let message =
                        format!("`pattern` is `{other}`; it must be random or sequential");
                    return Err(notes.fault(node.at, message));
                }
            },
        };
        if size == 0 {
            return Err(notes.fault(size_node.at, "`size` is 0: there is nothing to access"));
        }
        self.share(notes, &list, Buffer { size, stride, random, chase })?;
        if !chase {
            return Ok(Action::Access { write, count });
        }
        // The ring has a power of two of places, one every `stride` bytes.
        let places = size.checked_div(stride).unwrap_or(0);
        if places < 2 {
            let message =
                format!("a chase needs two places: {size} bytes hold {places} of {stride}");
            return Err(notes.fault(size_node.at, message));
        }
        Ok(Action::Chase { bytes: (1 << places.ilog2()) * stride, hops: count, random })
    }

    fn share(
        &mut self,
        notes: &Notes<'_>,
        list: &[Entry<'_>],
        buffer: Buffer,
    ) -> Result<(), Located> {
        let Some(node) = get(list, "ref") else { return Ok(()) };
        let name = notes.text_of(node, "`ref`")?;
        match self.buffers.get(name) {
            Some(other) if *other != buffer => {
                let message = format!("the buffer `{name}` was used with other parameters before");
                Err(notes.fault(node.at, message).hint("rt-app refuses that too"))
            }
            Some(_) => Ok(()),
            None => {
                self.buffers.insert(name.to_string(), buffer);
                Ok(())
            }
        }
    }
}

fn wait(notes: &mut Notes<'_>, entry: &Entry<'_>) -> Result<(String, String), Located> {
    let what = format!("`{}`", entry.key);
    let list = notes.entries(entry.node, &what)?;
    notes.only(&list, &what, &["ref", "mutex"])?;
    let part = |key: &str| match get(&list, key) {
        Some(node) => notes.text_of(node, &format!("`{key}`")).map(str::to_string),
        None => Err(notes
            .fault(entry.node.at, format!("{what} needs `{key}`"))
            .hint("{ \"ref\" : CONDITION, \"mutex\" : MUTEX }")),
    };
    Ok((part("ref")?, part("mutex")?))
}

/// Source: spec formats-and-ecosystem §1.6.
fn timer(notes: &mut Notes<'_>, entry: &Entry<'_>) -> Result<Action, Located> {
    let what = format!("`{}`", entry.key);
    let list = notes.entries(entry.node, &what)?;
    notes.only(&list, &what, &["ref", "period", "mode"])?;
    let name = match get(&list, "ref") {
        Some(node) => notes.text_of(node, "`ref`")?.to_string(),
        None => "unknown".to_string(),
    };
    let period = match get(&list, "period") {
        Some(node) => notes.micros(node, "`period`")?,
        None => 0,
    };
    let absolute = match get(&list, "mode") {
        None => false,
        Some(node) => match notes.text_of(node, "`mode`")? {
            "relative" => false,
            // rt-app compares no more than this beginning.
            text if text.starts_with("absolute") => true,
            other => {
                let message = format!("`mode` is `{other}`, which rt-app takes for `relative`");
                notes.warn(node.at, message);
                false
            }
        },
    };
    Ok(Action::Timer { name, period, absolute })
}

/// The mutex of a `lock`; properties that begin alike get an explanation.
fn lock_name(notes: &Notes<'_>, entry: &Entry<'_>) -> Result<String, Located> {
    let key = entry.key;
    let misread = match key {
        "lock_pages" => Some("`lock_pages` belongs into `global`"),
        "lock_order" => Some("`lock_order` was dropped from rt-app before version 1.0"),
        _ => None,
    };
    match (misread, notes.text_of(entry.node, &format!("`{key}`"))) {
        (Some(hint), _) => {
            let message = format!(
                "in a task `{key}` is read as a `lock` event, because its name begins like one"
            );
            Err(notes.fault(entry.at, message).hint(hint))
        }
        (None, name) => name.map(str::to_string),
    }
}
