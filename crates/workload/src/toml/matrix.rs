// SPDX-License-Identifier: GPL-2.0-only
//! `[[matrix]]`: parameters of which a workload is run with every combination of values.

use schedlab_units::Located;

use super::source::{Source, Table};
use crate::expr::{Env, Value};
use crate::load::ReadError;

/// Values of the parameters of one combination, as name and value.
pub(crate) type Cell = Vec<(String, String)>;

/// A parameter of a workload's matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its name.
    pub param: String,
    /// Values of the whole matrix.
    pub values: Vec<String>,
    /// Values that are legal, but only run when they are asked for.
    pub also: Vec<String>,
}

impl Axis {
    /// Whether the parameter may have this value.
    pub(crate) fn allows(&self, value: &str) -> bool {
        self.values.iter().chain(&self.also).any(|known| known == value)
    }
}

/// The axes of a file; empty for one without a matrix.
pub(super) fn axes(src: Source<'_>, root: Table<'_, '_>) -> Result<Vec<Axis>, Located> {
    entries(src, root)?.into_iter().map(|table| axis(src, table)).collect()
}

fn entries<'v, 'd>(src: Source<'_>, root: Table<'v, 'd>) -> Result<Vec<Table<'v, 'd>>, Located> {
    let Some(item) = root.get("matrix") else { return Ok(Vec::new()) };
    let entries = src.array(item, "`matrix`")?.iter().map(|item| src.table(item, "`matrix`"));
    entries.collect()
}

fn axis(src: Source<'_>, table: Table<'_, '_>) -> Result<Axis, Located> {
    table.only(src, "a [[matrix]]", &["param", "values", "also", "skip"])?;
    let list = |key: &str| -> Result<Vec<String>, Located> {
        let Some(item) = table.get(key) else { return Ok(Vec::new()) };
        let text = |item| src.string(item, "a value").map(str::to_string);
        src.array(item, &format!("`{key}`"))?.iter().map(text).collect()
    };
    let param = src.string(table.need(src, "param", "a [[matrix]]")?, "`param`")?.to_string();
    table.need(src, "values", "a [[matrix]]")?;
    Ok(Axis { param, values: list("values")?, also: list("also")? })
}

/// All combinations that `overrides` leave open, without those that a `skip` is true for; the last
/// parameter changes fastest. Empty for a file without a matrix.
///
/// `env` holds the parameters of the file with `overrides` in place.
pub(super) fn cells(
    src: Source<'_>,
    root: Table<'_, '_>,
    overrides: &[(String, String)],
    env: &Env,
) -> Result<Vec<Cell>, ReadError> {
    let mut cells: Vec<Cell> = vec![Vec::new()];
    let tables = entries(src, root)?;
    for table in &tables {
        let axis = axis(src, *table)?;
        let Some(Value::Text(_)) = env.get(&axis.param) else {
            let message =
                format!("the matrix names `{}`, which is no text of [params]", axis.param);
            return Err(src.fault(table.at, message).into());
        };
        let set = overrides.iter().rev().find(|(name, _)| *name == axis.param);
        let values = match set {
            Some((_, value)) if axis.allows(value) => std::slice::from_ref(value),
            Some((_, value)) => return Err(ReadError::Parameter(illegal(&axis, value))),
            None => &axis.values,
        };
        let pair = |value: &String| (axis.param.clone(), value.clone());
        cells = cells
            .iter()
            .flat_map(|cell| values.iter().map(|v| [cell.clone(), vec![pair(v)]].concat()))
            .collect();
    }
    let mut kept = Vec::new();
    let mut left_out = None;
    for cell in cells {
        match skipped_by(src, &tables, &cell, env)? {
            None => kept.push(cell),
            Some(rule) => left_out = Some((cell, rule)),
        }
    }
    match (kept.as_slice(), left_out) {
        ([], Some((cell, rule))) => Err(ReadError::Parameter(nothing_left(&cell, &rule))),
        ([cell], _) if cell.is_empty() => Ok(Vec::new()),
        _ => Ok(kept),
    }
}

/// The text of the `skip` that leaves a combination out.
fn skipped_by(
    src: Source<'_>,
    tables: &[Table<'_, '_>],
    cell: &Cell,
    env: &Env,
) -> Result<Option<String>, Located> {
    let mut env = env.clone();
    for (name, value) in cell {
        env.push(name, Value::Text(value.clone()));
    }
    for skip in tables.iter().filter_map(|table| table.get("skip")) {
        if src.flag(skip, "`skip`", &env)? {
            return Ok(Some(src.string(skip, "`skip`").unwrap_or("true").to_string()));
        }
    }
    Ok(None)
}

fn nothing_left(cell: &Cell, rule: &str) -> String {
    let values: Vec<String> = cell.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("the matrix leaves out {}, because `{rule}`", values.join(" with "))
}

fn illegal(axis: &Axis, value: &str) -> String {
    let all: Vec<&str> = axis.values.iter().chain(&axis.also).map(String::as_str).collect();
    format!("parameter `{}`: there is no `{value}`; values: {}", axis.param, all.join(", "))
}
