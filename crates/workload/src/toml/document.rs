// SPDX-License-Identifier: GPL-2.0-only
//! A whole file: header, parameters, declarations, programs.

use schedlab_units::{Located, Nanos};
use toml::de::{DeTable, DeValue};

use super::assemble::{Assembler, Shared};
use super::matrix::{Axis, axes, cells};
use super::ops::{Kind, Symbols};
use super::source::{Source, Table, for_each, is_name, kind};
use super::tables::{OBJECTS, declare, keys, name_of, object, task};
use crate::expr::{Env, Value};
use crate::ir::{OwnTable, Program, ProgramId, Workload};
use crate::load::{Read, ReadError};
use crate::nearest::did_you_mean;
use crate::origins::Origins;

/// Most tables and blocks that `for` clauses of one file may yield together.
const MAX_EXPANSIONS: u64 = 1 << 20;

const HEADER_KEYS: [&str; 8] =
    ["name", "about", "origin", "table", "streams", "duration", "notes", "resolved"];

/// A parameter of a workload file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamDoc {
    /// Its name.
    pub name: String,
    /// Its default as text.
    pub default: String,
    /// Its type in words.
    pub kind: &'static str,
    /// What it means: the comment on its line.
    pub about: String,
}

/// Reads a workload file, with the values of some parameters replaced.
///
/// # Errors
/// [`ReadError::Input`] for a fault of the text, [`ReadError::Parameter`] for one of `overrides`.
pub(crate) fn read(text: &str, overrides: &[(String, String)]) -> Result<Read, ReadError> {
    let src = Source { text };
    let root = parse(src)?;
    let root = Table { map: &root, at: 0 };
    let mut legal = vec!["workload", "params", "matrix", Kind::Program.name(), Kind::Task.name()];
    legal.extend(OBJECTS.map(Kind::name));
    root.only(src, "a workload file", &legal)?;

    let mut env = Env::default();
    let mut workload = Workload::default();
    parameters(src, root, overrides, &mut env, &mut workload)?;
    header(src, root, &env, &mut workload)?;
    let cells = cells(src, root, overrides, &env)?;
    if let [cell] = cells.as_slice() {
        let values = cell.iter().map(|(_, value)| value.as_str());
        workload.name =
            std::iter::once(workload.name.as_str()).chain(values).collect::<Vec<_>>().join("-");
    }

    let mut shared = Shared { src, symbols: Symbols::default(), workload, budget: MAX_EXPANSIONS };
    for kind in OBJECTS {
        each(&mut shared, root, kind, &mut env, &mut |shared, table, env| {
            object(shared, kind, table, env)
        })?;
    }
    let mut origins = Origins::default();
    let pending = declare_programs(&mut shared, root, &mut env, &mut origins)?;
    for (table, env) in &pending {
        let (program, places) = program(&mut shared, *table, &mut env.clone())?;
        shared.workload.programs.push(program);
        origins.ops.push(places);
    }
    let mut warnings = Vec::new();
    if shared.workload.tasks.is_empty() {
        let warning = src.fault(text.len(), "the file has no task: nothing will run");
        warnings.push(warning.hint("a task is a [[task]] table with `name` and `do` or `loop`"));
    }
    Ok(Read { workload: shared.workload, origins, warnings, cells })
}

/// The axes of a file's matrix; empty without one.
///
/// # Errors
/// The first fault of the text's syntax or of its matrix.
pub(crate) fn axes_of(text: &str) -> Result<Vec<Axis>, Located> {
    let src = Source { text };
    let root = parse(src)?;
    axes(src, Table { map: &root, at: 0 })
}

/// The parameters of a workload file with their defaults.
///
/// # Errors
/// The first fault of the text's syntax or of its parameters.
pub(crate) fn params_of(text: &str) -> Result<Vec<ParamDoc>, Located> {
    let src = Source { text };
    let root = parse(src)?;
    let Some(item) = root.get("params") else { return Ok(Vec::new()) };
    let table = src.table(item, "`params`")?;
    table
        .map
        .iter()
        .map(|(key, item)| {
            let value = default_of(src, item)?;
            let line = text[item.span().end..].lines().next().unwrap_or_default();
            let about = line.trim().strip_prefix('#').unwrap_or_default().trim();
            Ok(ParamDoc {
                name: key.get_ref().to_string(),
                default: value.to_string(),
                kind: value.kind(),
                about: about.to_string(),
            })
        })
        .collect()
}

fn parse(src: Source<'_>) -> Result<DeTable<'_>, Located> {
    DeTable::parse(src.text).map(toml::Spanned::into_inner).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let message = error.message().trim().replace('\n', ", ");
        let fault = src.fault(at, format!("this is not TOML: {message}"));
        // What the parser misses at the very end is what was cut off.
        let cut_off = at >= src.text.trim_end().len();
        fault.hint(if cut_off {
            "the file seems to be cut off"
        } else {
            "see docs/workload-format.md"
        })
    })
}

fn default_of(src: Source<'_>, item: &super::source::Item<'_>) -> Result<Value, Located> {
    match item.get_ref() {
        DeValue::Integer(_) | DeValue::Boolean(_) => {
            src.value(item, "a parameter", &Env::default())
        }
        DeValue::String(text) => match Nanos::parse(text) {
            Ok(span) => i64::try_from(span.as_ns())
                .map(Value::Span)
                .map_err(|_| src.fault(item.span().start, "the duration is too long")),
            Err(_) => Ok(Value::Text(text.to_string())),
        },
        other => {
            let message = format!("a parameter cannot be {}", kind(other));
            Err(src.fault(item.span().start, message))
        }
    }
}

/// Reads `[params]` into `env`, puts `overrides` in place, and notes the values in the workload.
fn parameters(
    src: Source<'_>,
    root: Table<'_, '_>,
    overrides: &[(String, String)],
    env: &mut Env,
    workload: &mut Workload,
) -> Result<(), ReadError> {
    let mut values: Vec<(String, Value)> = Vec::new();
    if let Some(item) = root.get("params") {
        for (key, item) in src.table(item, "`params`")?.map {
            let name: &str = key.get_ref();
            if !is_name(name) || matches!(name, "true" | "false" | "min" | "max") {
                let message = format!("`{name}` cannot be the name of a parameter");
                return Err(src.fault(key.span().start, message).into());
            }
            values.push((name.to_string(), default_of(src, item)?));
        }
    }
    for (name, text) in overrides {
        let Some((_, value)) = values.iter_mut().find(|(n, _)| n == name) else {
            return Err(ReadError::Parameter(unknown_parameter(name, &values)));
        };
        *value = value
            .parse_same(text)
            .map_err(|why| ReadError::Parameter(format!("parameter `{name}`: {why}")))?;
    }
    for (name, value) in values {
        workload.params.push((name.clone(), value.to_string()));
        env.push(&name, value);
    }
    Ok(())
}

fn unknown_parameter(name: &str, values: &[(String, Value)]) -> String {
    let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
    let near = did_you_mean(name, names.iter().copied());
    if names.is_empty() {
        return format!("there is no parameter `{name}`: this workload has none");
    }
    format!("there is no parameter `{name}`{near}; parameters: {}", names.join(", "))
}

fn header(
    src: Source<'_>,
    root: Table<'_, '_>,
    env: &Env,
    workload: &mut Workload,
) -> Result<(), Located> {
    let Some(item) = root.get("workload") else {
        return Err(src
            .fault(0, "the [workload] table is missing")
            .hint("it names the workload: [workload] name = \"…\""));
    };
    let table = src.table(item, "`workload`")?;
    table.only(src, "[workload]", &HEADER_KEYS)?;
    workload.name = src.string(table.need(src, "name", "[workload]")?, "`name`")?.to_string();
    if let Some(item) = table.get("about") {
        workload.about = src.string(item, "`about`")?.to_string();
    }
    if let Some(item) = table.get("origin") {
        workload.origin = src.string(item, "`origin`")?.to_string();
    }
    if let Some(item) = table.get("table") {
        let name = src.string(item, "`table`")?;
        let Some(own) = OwnTable::ALL.into_iter().find(|own| own.name() == name) else {
            let names = OwnTable::ALL.map(OwnTable::name).join(", ");
            let message = format!("there is no table `{name}`");
            return Err(src.fault(item.span().start, message).hint(format!("tables: {names}")));
        };
        workload.table = Some(own);
    }
    if let Some(item) = table.get("streams") {
        workload.family_streams = match src.string(item, "`streams`")? {
            "family" => true,
            "order" => false,
            _ => return Err(src.fault(item.span().start, "`streams` is `family` or `order`")),
        };
    }
    if let Some(item) = table.get("duration") {
        workload.duration = Some(src.span(item, "`duration`", env)?);
    }
    if let Some(item) = table.get("notes") {
        for note in src.array(item, "`notes`")? {
            workload.notes.push(src.string(note, "a note")?.to_string());
        }
    }
    if let Some(item) = table.get("resolved") {
        if !workload.params.is_empty() {
            return Err(src.fault(item.span().start, "a file has `resolved` or [params], not both"));
        }
        for pair in src.array(item, "`resolved`")? {
            let [name, value] = src.array(pair, "an entry of `resolved`")? else {
                return Err(src.fault(pair.span().start, "write `[\"NAME\", \"VALUE\"]`"));
            };
            let name = src.string(name, "a name")?.to_string();
            workload.params.push((name, src.string(value, "a value")?.to_string()));
        }
    }
    Ok(())
}

/// Calls `visit` for every table of a kind, expanded by `for` and filtered by `when`.
fn each<'v, 'd, 'a>(
    shared: &mut Shared<'a>,
    root: Table<'v, 'd>,
    kind: Kind,
    env: &mut Env,
    visit: &mut dyn FnMut(&mut Shared<'a>, Table<'v, 'd>, &Env) -> Result<(), Located>,
) -> Result<(), Located> {
    let src = shared.src;
    let Some(item) = root.get(kind.name()) else { return Ok(()) };
    let DeValue::Array(items) = item.get_ref() else {
        let message = format!("a {0} is written as a [[{0}]] table", kind.name());
        return Err(src.fault(item.span().start, message));
    };
    for item in items {
        let table = src.table(item, &format!("a {}", kind.name()))?;
        table.only(src, &format!("a {}", kind.name()), keys(kind))?;
        let mut budget = shared.budget;
        for_each(src, table.get("for"), env, &mut budget, &mut |env, _| {
            let wanted = match table.get("when") {
                Some(item) => src.flag(item, "`when`", env)?,
                None => true,
            };
            if wanted { visit(shared, table, env) } else { Ok(()) }
        })?;
        shared.budget = budget;
    }
    Ok(())
}

/// Declares programs and tasks; yields the tables of all programs in the order of their indices.
fn declare_programs<'v, 'd>(
    shared: &mut Shared<'_>,
    root: Table<'v, 'd>,
    env: &mut Env,
    origins: &mut Origins,
) -> Result<Vec<(Table<'v, 'd>, Env)>, Located> {
    let mut pending = Vec::new();
    each(shared, root, Kind::Program, env, &mut |shared, table, env| {
        let name = name_of(shared.src, Kind::Program, table, env)?;
        declare(shared, Kind::Program, &name, pending.len(), table)?;
        pending.push((table, env.clone()));
        Ok(())
    })?;
    each(shared, root, Kind::Task, env, &mut |shared, table, env| {
        let src = shared.src;
        let mut task = task(src, table, env)?;
        declare(shared, Kind::Task, &task.name, shared.workload.tasks.len(), table)?;
        task.program = match table.get("program") {
            Some(item) if table.get("do").is_some() || table.get("loop").is_some() => {
                let message = "a task has either `program`, or `do` and `loop`";
                return Err(src.fault(item.span().start, message));
            }
            Some(item) => {
                let name = src.text(item, "`program`", env)?;
                let Some(index) = shared.symbols.get(Kind::Program, &name) else {
                    let message = shared.symbols.unknown(Kind::Program, &name);
                    return Err(src.fault(item.span().start, message));
                };
                ProgramId(index)
            }
            None => {
                pending.push((table, env.clone()));
                ProgramId(pending.len() as u32 - 1)
            }
        };
        origins.tasks.push(table.at);
        origins.cpus.push(table.get("cpus").map(|item| item.span().start));
        shared.workload.tasks.push(task);
        Ok(())
    })?;
    Ok(pending)
}

/// Translates the program of a [[program]] or [[task]] table.
fn program(
    shared: &mut Shared<'_>,
    table: Table<'_, '_>,
    env: &mut Env,
) -> Result<(Program, Vec<usize>), Located> {
    let src = shared.src;
    let counters = match table.get("counters") {
        Some(item) => src.int(item, "`counters`", env, 0..1 << 16)? as u32,
        None => 0,
    };
    let (once, forever) = (table.get("do"), table.get("loop"));
    if once.is_none() && forever.is_none() {
        return Err(src.fault(table.at, "the operations are missing: give `do`, `loop` or both"));
    }
    let mut assembler = Assembler::new(shared, counters);
    if let Some(item) = once {
        assembler.list(src.array(item, "`do`")?, env)?;
    }
    if let Some(item) = forever {
        assembler.endless(src.array(item, "`loop`")?, env, item.span().start)?;
    }
    assembler.finish()
}
