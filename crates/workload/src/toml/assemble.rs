// SPDX-License-Identifier: GPL-2.0-only
//! From nested lists of operations to a flat program with jumps.

use std::collections::BTreeMap;

use schedlab_units::Located;
use toml::de::DeValue;

use super::ops::{Line, Symbols, advice, probability, translate};
use super::source::{Item, Source, Table, for_each, kind};
use super::words::{Word, count};
use crate::expr::Env;
use crate::ir::{Dist, Op, PeriodStep, Program, Workload};

/// Deepest nesting of blocks.
const MAX_NESTING: u32 = 32;

/// What the translation of all programs of a file shares.
pub(super) struct Shared<'a> {
    pub(super) src: Source<'a>,
    pub(super) symbols: Symbols,
    pub(super) workload: Workload,
    /// How many more expansions the file may make.
    pub(super) budget: u64,
}

/// A program under construction.
pub(super) struct Assembler<'s, 'a> {
    shared: &'s mut Shared<'a>,
    ops: Vec<Op>,
    /// Byte offset of the text of each operation.
    places: Vec<usize>,
    labels: BTreeMap<String, usize>,
    /// Operations whose jump target is a label: index, label, byte offset.
    open: Vec<(usize, String, usize)>,
    /// Counters that the program uses by number; those of `repeat` come after them.
    named_counters: u32,
    counters_in_use: u32,
    n_counters: u32,
    nesting: u32,
}

impl<'s, 'a> Assembler<'s, 'a> {
    /// An empty program with `counters` counters that operations may use by number.
    pub(super) fn new(shared: &'s mut Shared<'a>, counters: u32) -> Self {
        Self {
            shared,
            ops: Vec::new(),
            places: Vec::new(),
            labels: BTreeMap::new(),
            open: Vec::new(),
            named_counters: counters,
            counters_in_use: counters,
            n_counters: counters,
            nesting: 0,
        }
    }

    /// The finished program, and the byte offset of each of its operations.
    pub(super) fn finish(mut self) -> Result<(Program, Vec<usize>), Located> {
        for (at, label, place) in std::mem::take(&mut self.open) {
            let Some(target) = self.labels.get(&label) else {
                let near =
                    crate::nearest::did_you_mean(&label, self.labels.keys().map(String::as_str));
                let message = format!("there is no label `{label}` in this program{near}");
                return Err(self.shared.src.fault(place, message));
            };
            set_target(&mut self.ops[at], *target as u32);
        }
        Ok((Program { ops: self.ops, n_counters: self.n_counters }, self.places))
    }

    fn push(&mut self, op: Op, place: usize) -> usize {
        self.ops.push(op);
        self.places.push(place);
        self.ops.len() - 1
    }

    /// Appends the operations of a list.
    pub(super) fn list(&mut self, items: &[Item<'_>], env: &mut Env) -> Result<(), Located> {
        for item in items {
            match item.get_ref() {
                DeValue::String(text) => self.line(item, text, env)?,
                DeValue::Table(map) => {
                    self.nesting += 1;
                    if self.nesting > MAX_NESTING {
                        let message = "the operations are nested too deeply";
                        return Err(self.shared.src.fault(item.span().start, message));
                    }
                    self.block(Table { map, at: item.span().start }, env)?;
                    self.nesting -= 1;
                }
                other => {
                    let message = format!("an operation is a text or a table, not {}", kind(other));
                    return Err(self.shared.src.fault(item.span().start, message));
                }
            }
        }
        Ok(())
    }

    /// Appends `items` and a jump back to their beginning.
    pub(super) fn endless(
        &mut self,
        items: &[Item<'_>],
        env: &mut Env,
        place: usize,
    ) -> Result<(), Located> {
        let start = self.ops.len() as u32;
        self.list(items, env)?;
        self.push(Op::Jump { target: start }, place);
        Ok(())
    }

    fn line(&mut self, item: &Item<'_>, text: &str, env: &Env) -> Result<(), Located> {
        let src = self.shared.src;
        let place = item.span().start;
        let fail = |(at, why): (usize, String)| {
            src.fault(src.inside(item.span(), text, at), why).hint(advice(text))
        };
        let shared = &mut *self.shared;
        let line = translate(text, env, &mut shared.symbols, &mut shared.workload).map_err(fail)?;
        match line {
            Line::Label(name) => {
                if self.labels.insert(name.clone(), self.ops.len()).is_some() {
                    let message = format!("the label `{name}` is set twice in this program");
                    return Err(src.fault(place, message));
                }
            }
            Line::Op(op) => {
                self.check_counter(&op, place)?;
                self.push(op, place);
            }
            Line::Jump(op, label) => {
                self.check_counter(&op, place)?;
                let at = self.push(op, place);
                self.open.push((at, label.text, src.inside(item.span(), text, label.at)));
            }
        }
        Ok(())
    }

    fn check_counter(&self, op: &Op, place: usize) -> Result<(), Located> {
        match op {
            Op::SetCounter { counter, .. } | Op::DecJump { counter, .. }
                if *counter >= self.named_counters =>
            {
                let message = format!(
                    "the program has no counter {counter}; its `counters` is {}",
                    self.named_counters
                );
                Err(self.shared.src.fault(place, message))
            }
            _ => Ok(()),
        }
    }

    fn block(&mut self, table: Table<'_, '_>, env: &mut Env) -> Result<(), Located> {
        const KINDS: [(&str, &[&str]); 5] = [
            ("loop", &["loop"]),
            ("repeat", &["repeat", "do"]),
            ("for", &["for", "do"]),
            ("if", &["if", "do", "else"]),
            ("chance", &["chance", "do", "else"]),
        ];
        let src = self.shared.src;
        let Some((name, keys)) = KINDS.iter().find(|(name, _)| table.get(name).is_some()) else {
            return Err(src
                .fault(table.at, "a block needs `loop`, `repeat`, `for`, `if` or `chance`")
                .hint("such as { repeat = 3, do = [\"run 1ms\"] }"));
        };
        table.only(src, &format!("a `{name}` block"), keys)?;
        let head = table.need(src, name, "a block")?;
        if *name == "loop" {
            return self.endless(src.array(head, "`loop`")?, env, table.at);
        }
        let body = src.array(table.need(src, "do", "a block")?, "`do`")?;
        let otherwise = match table.get("else") {
            Some(item) => src.array(item, "`else`")?,
            None => &[],
        };
        match *name {
            "repeat" => self.repeat(head, body, env, table.at),
            "for" => self.expand(head, body, env),
            "if" if src.flag(head, "`if`", env)? => self.list(body, env),
            "if" => self.list(otherwise, env),
            _ => self.chance(head, body, otherwise, env, table.at),
        }
    }

    fn expand(&mut self, head: &Item<'_>, body: &[Item<'_>], env: &mut Env) -> Result<(), Located> {
        // The budget moves into the loop and back, because the body needs the rest of `shared`.
        let mut budget = self.shared.budget;
        let done = for_each(self.shared.src, Some(head), env, &mut budget, &mut |env, budget| {
            self.shared.budget = *budget;
            let done = self.list(body, env);
            *budget = self.shared.budget;
            done
        });
        self.shared.budget = budget;
        done
    }

    /// `value` times the body. A counter that is drawn anew may come out as zero, so it is set to
    /// one more and tested first; an exponential one cannot be shifted and passes at least once.
    fn repeat(
        &mut self,
        head: &Item<'_>,
        body: &[Item<'_>],
        env: &mut Env,
        place: usize,
    ) -> Result<(), Located> {
        let value = self.count_of(head, env)?;
        if value == Dist::Const(0) {
            return Ok(());
        }
        let counter = self.counters_in_use;
        self.counters_in_use += 1;
        self.n_counters = self.n_counters.max(self.counters_in_use);
        let test_first = match value {
            Dist::Uniform(0, high) => Some(Dist::Uniform(1, high.saturating_add(1))),
            _ => None,
        };
        self.push(Op::SetCounter { counter, value: test_first.unwrap_or(value) }, place);
        let enter = test_first.map(|_| self.push(Op::Jump { target: 0 }, place));
        let start = self.ops.len() as u32;
        self.list(body, env)?;
        if let Some(enter) = enter {
            let test = self.ops.len() as u32;
            set_target(&mut self.ops[enter], test);
        }
        self.push(Op::DecJump { counter, target: start }, place);
        self.counters_in_use -= 1;
        Ok(())
    }

    fn count_of(&self, item: &Item<'_>, env: &Env) -> Result<Dist, Located> {
        let src = self.shared.src;
        let text = match item.get_ref() {
            DeValue::Integer(n) => n.to_string(),
            _ => src.text(item, "`repeat`", env)?,
        };
        let word = Word { text, at: 0, quoted: false };
        count(&word, env).map_err(|(_, why)| src.fault(item.span().start, why))
    }

    /// The body with a probability, otherwise the other one.
    fn chance(
        &mut self,
        head: &Item<'_>,
        body: &[Item<'_>],
        otherwise: &[Item<'_>],
        env: &mut Env,
        place: usize,
    ) -> Result<(), Located> {
        let src = self.shared.src;
        let text = src.text(head, "`chance`", env)?;
        let (numerator, denominator) =
            probability(&text).map_err(|why| src.fault(head.span().start, why))?;
        let skip = Op::JumpRandom { numerator: denominator - numerator, denominator, target: 0 };
        let skip = self.push(skip, place);
        self.list(body, env)?;
        let over = (!otherwise.is_empty()).then(|| self.push(Op::Jump { target: 0 }, place));
        let after_body = self.ops.len() as u32;
        set_target(&mut self.ops[skip], after_body);
        if let Some(over) = over {
            self.list(otherwise, env)?;
            let end = self.ops.len() as u32;
            set_target(&mut self.ops[over], end);
        }
        Ok(())
    }
}

fn set_target(op: &mut Op, to: u32) {
    match op {
        Op::Jump { target }
        | Op::DecJump { target, .. }
        | Op::JumpRandom { target, .. }
        | Op::Before { target, .. } => {
            *target = to;
        }
        Op::SigWait { on_timeout: Some(target), .. } => *target = to,
        Op::SemTry { on_zero: target, .. }
        | Op::Period {
            step:
                PeriodStep::Begin { on_missed: Some(target), .. }
                | PeriodStep::End { on_late: Some(target), .. },
            ..
        } => *target = to,
        other => unreachable!("{other:?} has no jump target"),
    }
}
