// SPDX-License-Identifier: GPL-2.0-only
//! The built-in workloads: the files of `workloads/`, one each.

use schedlab_units::Located;

use crate::nearest::nearest;
use crate::toml::{Axis, Cell, ParamDoc, axes_of, params_of};

/// A built-in workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Its name, that of its file.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

static BUILTINS: &[Builtin] = include!(concat!(env!("OUT_DIR"), "/builtins.rs"));

impl Builtin {
    /// The comment at the head of the file: origin, what it models, expected shape, doubts.
    pub fn header(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix('#'));
        let lines = lines.filter(|line| !line.contains("SPDX-License-Identifier"));
        let lines: Vec<&str> =
            lines.map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect();
        lines.join("\n")
    }

    /// The parameters that `NAME-VALUE-VALUE` stands for, one value for each axis of its matrix.
    pub(crate) fn cell(&self, name: &str) -> Option<Cell> {
        let values = name.strip_prefix(self.name)?.strip_prefix('-')?;
        let axes = axes_of(self.text).unwrap_or_default();
        let values: Vec<&str> = values.split('-').collect();
        let legal = |(axis, value): (&Axis, &&str)| axis.allows(value);
        if values.len() != axes.len() || !axes.iter().zip(&values).all(legal) {
            return None;
        }
        let pair = |(axis, value): (Axis, &str)| (axis.param, value.to_string());
        Some(axes.into_iter().zip(values).map(pair).collect())
    }

    /// The parameters of its matrix; empty without one.
    ///
    /// # Errors
    /// The first fault of the file; a test excludes it for every built-in.
    pub fn matrix(&self) -> Result<Vec<Axis>, Located> {
        axes_of(self.text)
    }

    /// Its parameters with their defaults.
    ///
    /// # Errors
    /// The first fault of the file; a test excludes it for every built-in.
    pub fn params(&self) -> Result<Vec<ParamDoc>, Located> {
        params_of(self.text)
    }
}

/// All built-in workloads in alphabetical order.
pub fn builtins() -> &'static [Builtin] {
    BUILTINS
}

/// The built-in workload of this name, or the one of whose matrix it names a combination.
pub fn find(name: &str) -> Option<&'static Builtin> {
    let named = BUILTINS.iter().find(|builtin| builtin.name == name);
    named.or_else(|| BUILTINS.iter().find(|builtin| builtin.cell(name).is_some()))
}

/// What to say about a name that no built-in has.
pub(crate) fn unknown(name: &str) -> Located {
    let names = || BUILTINS.iter().map(|builtin| builtin.name);
    let near = nearest(name, names());
    let family = BUILTINS.iter().find(|builtin| {
        name.strip_prefix(builtin.name).is_some_and(|rest| rest.starts_with('-'))
            && builtin.matrix().is_ok_and(|axes| !axes.is_empty())
    });
    let hint = if let Some(family) = family {
        let axes = family.matrix().unwrap_or_default();
        let axis = |axis: Axis| {
            let all = [axis.values, axis.also].concat();
            format!("{} of {}", axis.param.to_uppercase(), all.join(", "))
        };
        let names: Vec<String> = axes.iter().map(|axis| axis.param.to_uppercase()).collect();
        let values: Vec<String> = axes.into_iter().map(axis).collect();
        format!("{}-{}, with {}", family.name, names.join("-"), values.join(" and "))
    } else if near.is_empty() {
        format!("built-in workloads: {}", names().collect::<Vec<_>>().join(", "))
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    Located::whole("there is no workload of this name, and no such file").hint(hint)
}
