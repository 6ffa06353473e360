// SPDX-License-Identifier: GPL-2.0-only
//! A whole file in rt-app's grammar.

use std::collections::BTreeSet;
use std::path::Path;

use schedlab_units::Located;

use super::compile::compile;
use super::cost::Costs;
use super::events::EventReader;
use super::global::{self, Global};
use super::grammar::ROOT_KEYS;
use super::json::{Node, parse};
use super::legacy::Resources;
use super::tasks::{TaskDef, TaskReader};
use super::values::{Entry, Notes, get, repeated_keys};
use crate::ir::Workload;
use crate::load::{Read, ReadError};
use crate::origins::Origins;
use crate::validate::MAX_TASKS;

/// How to read rt-app's grammar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtAppOptions {
    /// Exactly as rt-app itself reads, without its helper `workgen`: of a repeated key the last
    /// value counts, at the first place, every key needs a value, and `suspend` waits on the name
    /// of its task whatever its value. Unknown keys are ignored with a warning instead of refused.
    pub strict: bool,
}

/// Reads a file. `overrides` are cost knobs.
///
/// # Errors
/// [`ReadError::Input`] for whatever rt-app refuses or cannot be simulated,
/// [`ReadError::Parameter`] for one of `overrides`.
pub(crate) fn read(
    file: &str,
    text: &str,
    overrides: &[(String, String)],
    options: &RtAppOptions,
) -> Result<Read, ReadError> {
    let costs = Costs::with(overrides)?;
    let document = parse(text)?;
    let mut notes = Notes { text, strict: options.strict, warnings: document.warnings };
    let (mut workload, origins) = tree(&mut notes, &document.root, &costs)?;
    let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    workload.name = stem.unwrap_or_else(|| file.to_string());
    workload.about = match workload.tasks.len() {
        1 => "one task of an rt-app file".to_string(),
        n => format!("{n} tasks of an rt-app file"),
    };
    workload.origin = format!("rt-app file {}", file_name(file));
    let mut warnings = notes.warnings;
    warnings.sort_by_key(|warning| warning.at);
    Ok(Read { workload, origins, warnings, cells: Vec::new() })
}

fn file_name(file: &str) -> String {
    Path::new(file)
        .file_name()
        .map_or_else(|| file.to_string(), |name| name.to_string_lossy().into_owned())
}

fn tree(notes: &mut Notes<'_>, root: &Node, costs: &Costs) -> Result<(Workload, Origins), Located> {
    let list = notes.entries(root, "the root")?;
    notes.only(&list, "the root", &ROOT_KEYS)?;
    note_repeats(notes, root);
    let global = match get(&list, "global") {
        Some(node) => global::read(notes, node)?,
        None => Global::default(),
    };
    let resources = match get(&list, "resources") {
        Some(node) => Resources::read(notes, node)?,
        None => Resources::default(),
    };
    let Some(node) = get(&list, "tasks") else {
        return Err(notes
            .fault(root.at, "`tasks` is missing, so there is nothing to run")
            .hint("this looks like a fragment: rt-app's merge.py joins such files into one"));
    };
    let list = notes.entries(node, "`tasks`")?;
    if list.is_empty() {
        notes.warn(node.at, "`tasks` is empty: nothing will run");
    }
    let tasks = tasks(notes, &list, &global, &resources)?;
    compile(notes, &global, costs, &tasks)
}

fn note_repeats(notes: &mut Notes<'_>, root: &Node) {
    let reading = if notes.strict {
        "the last value counts, at the first place, as in rt-app"
    } else {
        "all are kept in their order, as workgen does; rt-app alone keeps the last value only"
    };
    notes.warn_once(&repeated_keys(root), |others| {
        format!("this key{others} is repeated: {reading}")
    });
}

fn tasks(
    notes: &mut Notes<'_>,
    list: &[Entry<'_>],
    global: &Global,
    resources: &Resources,
) -> Result<Vec<TaskDef>, Located> {
    let names: BTreeSet<&str> = list.iter().map(|entry| entry.key).collect();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let events = EventReader::default();
    let mut reader = TaskReader { notes, events, global, resources, legacy_tasks: Vec::new() };
    let mut tasks = Vec::new();
    let mut n_threads = 0;
    for entry in list {
        // workgen appends the smallest number that makes a repeated key unique.
        let mut name = entry.key.to_string();
        let mut number = 1;
        while taken.contains(&name) || (number > 1 && names.contains(name.as_str())) {
            name = format!("{}{number}", entry.key);
            number += 1;
        }
        taken.insert(name.clone());
        let task = reader.task(name, entry.at, entry.node)?;
        n_threads += u64::from(task.instances);
        if n_threads > MAX_TASKS {
            let message = format!(
                "with this task there are {n_threads} threads; at most {MAX_TASKS} are possible"
            );
            return Err(reader.notes.fault(entry.at, message));
        }
        tasks.push(task);
    }
    let TaskReader { notes, events, legacy_tasks, .. } = reader;
    notes.warn_once(&events.bare_suspends, |others| {
        format!("`suspend` has no value{others}: read as workgen does, as the task's name")
    });
    notes.warn_once(&legacy_tasks, |others| {
        format!("this task{others} is in the grammar of rt-app before 1.0, which later ones refuse")
    });
    Ok(tasks)
}
