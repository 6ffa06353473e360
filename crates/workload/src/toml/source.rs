// SPDX-License-Identifier: GPL-2.0-only
//! Typed access to the values of a TOML text, with the place of every fault.

use std::ops::Range;

use schedlab_units::{CpuSet, Located, MAX_CPUS, Nanos};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::expr::{Env, Value, eval, substitute};
use crate::nearest::did_you_mean;

/// A value with its place in the text.
pub(super) type Item<'d> = Spanned<DeValue<'d>>;

/// The text that is read.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// A fault at byte `offset`.
    pub(super) fn fault(self, offset: usize, message: impl Into<String>) -> Located {
        Located::at_offset(self.text, offset, message)
    }

    /// Byte offset of position `inner` of a text value; its beginning if escapes blur the places.
    pub(super) fn inside(self, span: Range<usize>, value: &str, inner: usize) -> usize {
        let plain = span.len() == value.len() + 2;
        if plain { span.start + 1 + inner } else { span.start }
    }

    /// The string of a value.
    pub(super) fn string<'v>(self, item: &'v Item<'_>, what: &str) -> Result<&'v str, Located> {
        match item.get_ref() {
            DeValue::String(text) => Ok(text),
            other => {
                let message = format!("{what} must be a text, not {}", kind(other));
                Err(self.fault(item.span().start, message))
            }
        }
    }

    /// A text in which `{expressions}` are replaced.
    pub(super) fn text(self, item: &Item<'_>, what: &str, env: &Env) -> Result<String, Located> {
        let text = self.string(item, what)?;
        substitute(text, env)
            .map_err(|(at, why)| self.fault(self.inside(item.span(), text, at), why))
    }

    /// A number, truth value or constant expression.
    pub(super) fn value(self, item: &Item<'_>, what: &str, env: &Env) -> Result<Value, Located> {
        match item.get_ref() {
            DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix())
                .map(Value::Int)
                .map_err(|_| self.fault(item.span().start, "the number does not fit 64 bits")),
            DeValue::Boolean(flag) => Ok(Value::Flag(*flag)),
            DeValue::String(text) => {
                let fail = |at| self.inside(item.span(), text, at);
                let replaced =
                    substitute(text, env).map_err(|(at, why)| self.fault(fail(at), why))?;
                let same = replaced == *text;
                eval(&replaced, env)
                    .map_err(|(at, why)| self.fault(fail(if same { at } else { 0 }), why))
            }
            other => {
                let message = format!("{what} cannot be {}", kind(other));
                Err(self.fault(item.span().start, message))
            }
        }
    }

    /// An integer of at least `min` and at most `max`.
    pub(super) fn int(
        self,
        item: &Item<'_>,
        what: &str,
        env: &Env,
        legal: Range<i64>,
    ) -> Result<i64, Located> {
        let fail = |message| Err(self.fault(item.span().start, message));
        match self.value(item, what, env)? {
            Value::Int(n) if legal.contains(&n) => Ok(n),
            Value::Int(n) => {
                fail(format!("{what} is {n}; it must be {} to {}", legal.start, legal.end - 1))
            }
            other => fail(format!("{what} must be an integer, not {}", other.kind())),
        }
    }

    /// A duration, not negative.
    pub(super) fn span(self, item: &Item<'_>, what: &str, env: &Env) -> Result<Nanos, Located> {
        let fail = |message| {
            let fault = self.fault(item.span().start, message);
            Err(fault.hint("a duration is a number with its unit, such as 250us, 4ms or 1s"))
        };
        if let DeValue::String(text) = item.get_ref()
            && text.trim_start().starts_with('-')
        {
            return fail(format!("{what} cannot be negative"));
        }
        match self.value(item, what, env)? {
            Value::Span(ns) => match u64::try_from(ns) {
                Ok(ns) => Ok(Nanos::from_ns(ns)),
                Err(_) => fail(format!("{what} cannot be negative")),
            },
            other => fail(format!("{what} must be a duration, not {}", other.kind())),
        }
    }

    /// `true` or `false`.
    pub(super) fn flag(self, item: &Item<'_>, what: &str, env: &Env) -> Result<bool, Located> {
        match self.value(item, what, env)? {
            Value::Flag(flag) => Ok(flag),
            other => {
                let message = format!("{what} must be true or false, not {}", other.kind());
                Err(self.fault(item.span().start, message))
            }
        }
    }

    /// A CPU list; `all` stands for every CPU of the machine.
    pub(super) fn cpus(self, item: &Item<'_>, env: &Env) -> Result<CpuSet, Located> {
        let text = self.text(item, "`cpus`", env)?;
        cpu_list(&text).map_err(|why| self.fault(item.span().start, why))
    }

    /// The elements of an array.
    pub(super) fn array<'v, 'd>(
        self,
        item: &'v Item<'d>,
        what: &str,
    ) -> Result<&'v [Item<'d>], Located> {
        match item.get_ref() {
            DeValue::Array(array) => Ok(array),
            other => {
                let message = format!("{what} must be an array, not {}", kind(other));
                Err(self.fault(item.span().start, message))
            }
        }
    }

    /// The table of a value.
    pub(super) fn table<'v, 'd>(
        self,
        item: &'v Item<'d>,
        what: &str,
    ) -> Result<Table<'v, 'd>, Located> {
        match item.get_ref() {
            DeValue::Table(map) => Ok(Table { map, at: item.span().start }),
            other => {
                let message = format!("{what} must be a table, not {}", kind(other));
                Err(self.fault(item.span().start, message))
            }
        }
    }
}

/// A CPU list as a file or an operation writes it.
pub(super) fn cpu_list(text: &str) -> Result<CpuSet, String> {
    if text == "all" {
        return Ok(CpuSet::first_n(MAX_CPUS));
    }
    CpuSet::parse(text).map_err(|e| e.to_string())
}

/// A table with its place.
#[derive(Clone, Copy)]
pub(super) struct Table<'v, 'd> {
    pub(super) map: &'v DeTable<'d>,
    pub(super) at: usize,
}

impl<'v, 'd> Table<'v, 'd> {
    /// The value of a key.
    pub(super) fn get(self, key: &str) -> Option<&'v Item<'d>> {
        self.map.get(key)
    }

    /// The value of a key that must be there.
    pub(super) fn need(
        self,
        src: Source<'_>,
        key: &str,
        what: &str,
    ) -> Result<&'v Item<'d>, Located> {
        self.get(key).ok_or_else(|| src.fault(self.at, format!("{what} needs `{key}`")))
    }

    /// Refuses keys other than `legal`.
    pub(super) fn only(self, src: Source<'_>, what: &str, legal: &[&str]) -> Result<(), Located> {
        for key in self.map.keys() {
            let name: &str = key.get_ref();
            if !legal.contains(&name) {
                let near = did_you_mean(name, legal.iter().copied());
                let message = format!("{what} has no key `{name}`{near}");
                return Err(src
                    .fault(key.span().start, message)
                    .hint(format!("keys: {}", legal.join(", "))));
            }
        }
        Ok(())
    }
}

/// The kind of a TOML value in words.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// Calls `visit` for every combination of a `for` clause, such as `g in 0..$groups, i in 0..20`,
/// the last range running fastest.
///
/// `budget` is what remains of the number of expansions a file may make.
pub(super) fn for_each(
    src: Source<'_>,
    clause: Option<&Item<'_>>,
    env: &mut Env,
    budget: &mut u64,
    visit: &mut dyn FnMut(&mut Env, &mut u64) -> Result<(), Located>,
) -> Result<(), Located> {
    let Some(item) = clause else { return visit(env, budget) };
    let text = src.string(item, "`for`")?;
    let place = |at: usize| src.inside(item.span(), text, at);
    let mut ranges = Vec::new();
    let mut at = 0;
    for part in text.split(',') {
        ranges.push((at, part));
        at += part.len() + 1;
    }
    expand(src, &place, &ranges, env, budget, visit)
}

fn expand(
    src: Source<'_>,
    place: &dyn Fn(usize) -> usize,
    ranges: &[(usize, &str)],
    env: &mut Env,
    budget: &mut u64,
    visit: &mut dyn FnMut(&mut Env, &mut u64) -> Result<(), Located>,
) -> Result<(), Located> {
    let Some(((at, part), others)) = ranges.split_first() else { return visit(env, budget) };
    let fail = |offset: usize, why: String| {
        src.fault(place(at + offset), why)
            .hint("a range is written `NAME in FIRST..END` or `NAME in FIRST..=LAST`")
    };
    let Some((name, bounds)) = part.split_once(" in ") else {
        return Err(fail(0, format!("`{}` is not a range", part.trim())));
    };
    let name = name.trim();
    if !is_name(name) {
        return Err(fail(0, format!("`{name}` is not a name")));
    }
    let bounds_at = part.len() - bounds.len();
    let Some((first, end)) = bounds.split_once("..") else {
        return Err(fail(bounds_at, format!("`{}` is not a range", bounds.trim())));
    };
    let (end, inclusive) = end.strip_prefix('=').map_or((end, false), |end| (end, true));
    let bound = |text: &str, offset: usize| match eval(text, env) {
        Ok(Value::Int(n)) => Ok(n),
        Ok(other) => Err(fail(offset, format!("a bound must be an integer, not {}", other.kind()))),
        Err((at, why)) => Err(fail(offset + at, why)),
    };
    let first = bound(first, bounds_at)?;
    let last = bound(end, part.len() - end.len())?;
    let end = if inclusive { last.saturating_add(1) } else { last };
    for n in first..end {
        *budget = budget.checked_sub(1).ok_or_else(|| {
            fail(0, "the file expands to too much; the ranges are too long".to_string())
        })?;
        env.push(name, Value::Int(n));
        let done = expand(src, place, others, env, budget, visit);
        env.pop();
        done?;
    }
    Ok(())
}

/// Whether a text can be the name of a parameter or loop variable.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}
