// SPDX-License-Identifier: GPL-2.0-only
//! Typed access to the members of an object, with rt-app's strictness about types.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_units::Located;

use super::json::{Json, Member, Node};
use crate::nearest::did_you_mean;

/// The text, and what was noticed while reading it.
pub(super) struct Notes<'a> {
    pub(super) text: &'a str,
    /// Whether to read as rt-app itself does, without `workgen`.
    pub(super) strict: bool,
    pub(super) warnings: Vec<Located>,
}

impl Notes<'_> {
    /// A fault at byte `at`.
    pub(super) fn fault(&self, at: usize, message: impl Into<String>) -> Located {
        Located::at_offset(self.text, at, message)
    }

    /// Notes something that the user should know.
    pub(super) fn warn(&mut self, at: usize, message: impl Into<String>) {
        let warning = self.fault(at, message);
        self.warnings.push(warning);
    }

    /// Notes something that happens at all of `places`: at the first, with their number.
    pub(super) fn warn_once(&mut self, places: &[usize], message: impl Fn(&str) -> String) {
        let Some(first) = places.iter().min() else { return };
        let others = match places.len() {
            1 => String::new(),
            2 => " (and one more)".to_string(),
            n => format!(" (and {} more)", n - 1),
        };
        self.warn(*first, message(&others));
    }

    /// The members of an object.
    pub(super) fn object<'n>(&self, node: &'n Node, what: &str) -> Result<&'n [Member], Located> {
        match &node.json {
            Json::Object(members) => Ok(members),
            other => {
                let message = format!("{what} must be an object, not {}", other.kind());
                Err(self.fault(node.at, message))
            }
        }
    }

    /// An integer of 32 bits, which is all rt-app keeps.
    pub(super) fn int(&self, node: &Node, what: &str) -> Result<i32, Located> {
        let Json::Number(text) = &node.json else {
            let message = format!("{what} must be an integer, not {}", node.json.kind());
            return Err(self.fault(node.at, message));
        };
        if text.contains(['.', 'e', 'E']) {
            let message = format!("{what} must be an integer; rt-app refuses {text}");
            return Err(self.fault(node.at, message));
        }
        text.parse().map_err(|_| {
            let message = format!("{what} is {text}, which does not fit 32 bits; rt-app clamps it");
            self.fault(node.at, message)
        })
    }

    /// An integer that is not negative.
    pub(super) fn natural(&self, node: &Node, what: &str) -> Result<u64, Located> {
        let n = self.int(node, what)?;
        u64::try_from(n).map_err(|_| {
            let fault = self.fault(node.at, format!("{what} is {n}; it cannot be negative"));
            fault.hint("give 0 or more; times are in microseconds")
        })
    }

    /// A time in µs, as ns.
    pub(super) fn micros(&self, node: &Node, what: &str) -> Result<u64, Located> {
        Ok(self.natural(node, what)? * 1_000)
    }

    /// A string.
    pub(super) fn text_of<'n>(&self, node: &'n Node, what: &str) -> Result<&'n str, Located> {
        match &node.json {
            Json::Text(text) => Ok(text),
            other => {
                let message = format!("{what} must be a string, not {}", other.kind());
                Err(self.fault(node.at, message))
            }
        }
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, node: &Node, what: &str) -> Result<bool, Located> {
        match &node.json {
            Json::Flag(flag) => Ok(*flag),
            other => {
                let message = format!("{what} must be true or false, not {}", other.kind());
                Err(self.fault(node.at, message))
            }
        }
    }

    /// The entries of an object, which `what` names in messages.
    pub(super) fn entries<'n>(
        &self,
        node: &'n Node,
        what: &str,
    ) -> Result<Vec<Entry<'n>>, Located> {
        Ok(entries(self.object(node, what)?, self.strict))
    }

    /// Refuses a key that rt-app would ignore; read strictly, it is worth a warning.
    pub(super) fn unknown_key(
        &mut self,
        entry: &Entry<'_>,
        what: &str,
        legal: &[&str],
    ) -> Result<(), Located> {
        let near = did_you_mean(entry.key, legal.iter().copied());
        let message = format!("{what} has no key `{}`{near}", entry.key);
        if self.strict {
            self.warn(entry.at, format!("rt-app ignores this: {message}"));
            return Ok(());
        }
        Err(self
            .fault(entry.at, message)
            .hint("rt-app ignores unknown keys; to read the file as it does, give --rtapp-strict"))
    }

    /// Deals with every entry that none of `legal` names as with an unknown key.
    pub(super) fn only(
        &mut self,
        entries: &[Entry<'_>],
        what: &str,
        legal: &[&str],
    ) -> Result<(), Located> {
        for entry in entries {
            if !legal.contains(&entry.key) {
                self.unknown_key(entry, what, legal)?;
            }
        }
        Ok(())
    }
}

/// A member of an object, as the chosen reading of repeated keys sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'n> {
    pub(super) key: &'n str,
    /// Where the key begins.
    pub(super) at: usize,
    pub(super) node: &'n Node,
    /// Whether the value was left out.
    pub(super) bare: bool,
}

/// The entries of an object when a key may come more than once.
///
/// `workgen` keeps every one in its place (it numbers their keys); json-c, which rt-app reads with,
/// keeps the first place and the last value. `strict` chooses json-c.
///
/// Source: spec formats-and-ecosystem §1.8.
fn entries(object: &[Member], strict: bool) -> Vec<Entry<'_>> {
    let mut seen: Vec<Entry<'_>> = Vec::with_capacity(object.len());
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for member in object {
        let entry =
            Entry { key: &member.key, at: member.at, node: &member.value, bare: member.bare };
        match places.get(entry.key) {
            Some(index) if strict => seen[*index].node = entry.node,
            _ => {
                places.insert(entry.key, seen.len());
                seen.push(entry);
            }
        }
    }
    seen
}

/// The value of a property; of a repeated one the first, because `workgen` renames the others.
pub(super) fn get<'n>(entries: &[Entry<'n>], key: &str) -> Option<&'n Node> {
    entries.iter().find(|entry| entry.key == key).map(|entry| entry.node)
}

/// The places of all keys of a tree that came before in their object.
pub(super) fn repeated_keys(root: &Node) -> Vec<usize> {
    let mut repeated = Vec::new();
    let mut pending = vec![root];
    while let Some(node) = pending.pop() {
        match &node.json {
            Json::Array(nodes) => pending.extend(nodes),
            Json::Object(members) => {
                let mut keys = BTreeSet::new();
                for member in members {
                    if !keys.insert(member.key.as_str()) {
                        repeated.push(member.at);
                    }
                    pending.push(&member.value);
                }
            }
            _ => {}
        }
    }
    repeated
}
