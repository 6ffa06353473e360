// SPDX-License-Identifier: GPL-2.0-only
//! From expression and results to a value.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use thiserror::Error;

use super::parse::Expr;
use super::value::{Value, geometric_mean, half_width, mean, median, sd, sum};

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct EvalError(pub String);

type Result<T> = std::result::Result<T, EvalError>;

fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(EvalError(message.into()))
}

/// What names stand for.
#[derive(Debug, Default)]
pub struct Env<'a> {
    /// Results of each run, one per seed, as schema `schedlab.run/1` has them.
    pub runs: BTreeMap<&'a str, Vec<&'a Json>>,
    /// Values observed so far.
    pub observed: BTreeMap<&'a str, Value>,
}

impl Env<'_> {
    /// The value of `expr`.
    ///
    /// # Errors
    /// An unknown name, run, field or function, or operands that do not fit.
    pub fn eval(&self, expr: &Expr) -> Result<Value> {
        match expr {
            Expr::Number(x) => Ok(Value::number(*x)),
            Expr::Path(path) => self.path(path),
            Expr::Unary('-', x) => self.numbers(x).map(|xs| map(&xs, |x| -x)),
            Expr::Unary(_, x) => {
                Ok(Value::Flags(self.flags(x)?.into_iter().map(|flag| !flag).collect()))
            }
            Expr::Binary(operator @ ("&&" | "||"), a, b) => {
                let (a, b) = (self.flags(a)?, self.flags(b)?);
                let both = |a, b| if *operator == "&&" { a && b } else { a || b };
                pair(&a, &b, both).map(Value::Flags)
            }
            Expr::Binary(operator, a, b) => binary(operator, &self.numbers(a)?, &self.numbers(b)?),
            Expr::Within(x, low, high) => {
                let (x, low, high) = (self.numbers(x)?, self.numbers(low)?, self.numbers(high)?);
                let above = pair(&x, &low, |x, low| x >= low)?;
                let below = pair(&x, &high, |x, high| x <= high)?;
                pair(&above, &below, |a, b| a && b).map(Value::Flags)
            }
            Expr::Call(function, arguments) => self.call(function, arguments),
        }
    }

    fn numbers(&self, expr: &Expr) -> Result<Vec<f64>> {
        match self.eval(expr)? {
            Value::Numbers(numbers) => Ok(numbers),
            Value::Flags(_) => fail("a number is expected, not a truth value"),
        }
    }

    fn flags(&self, expr: &Expr) -> Result<Vec<bool>> {
        match self.eval(expr)? {
            Value::Flags(flags) => Ok(flags),
            Value::Numbers(_) => fail("a truth value is expected, not a number"),
        }
    }

    fn path(&self, path: &[String]) -> Result<Value> {
        if let [name] = path
            && let Some(value) = self.observed.get(name.as_str())
        {
            return Ok(value.clone());
        }
        let results = self.run(&path[0])?;
        if path.len() == 1 {
            return fail(format!("`{}` is a run; which of its figures?", path[0]));
        }
        let number = |json: &&Json| {
            let found = find(json, &path[1..])?;
            match found[..] {
                [one] => as_number(one, path),
                _ => fail(format!("`{}` has several figures: use over(…)", path.join("."))),
            }
        };
        results.iter().map(number).collect::<Result<_>>().map(Value::Numbers)
    }

    fn run(&self, name: &str) -> Result<&[&Json]> {
        self.runs.get(name).map(Vec::as_slice).ok_or_else(|| {
            let runs: Vec<&str> = self.runs.keys().copied().collect();
            let seen: Vec<&str> = self.observed.keys().copied().collect();
            EvalError(format!(
                "`{name}` is neither a run ({}) nor observed ({})",
                runs.join(", "),
                seen.join(", ")
            ))
        })
    }

    fn call(&self, function: &str, arguments: &[Expr]) -> Result<Value> {
        match (function, arguments) {
            ("over", [Expr::Path(how), Expr::Path(path)]) => self.over(how, path),
            ("same_events", [Expr::Path(a), Expr::Path(b)]) if a.len() == 1 && b.len() == 1 => {
                let of = |name: &str| -> Result<Vec<String>> {
                    let print = |json: &&Json| json["fingerprint"].to_string();
                    Ok(self.run(name)?.iter().map(print).collect())
                };
                let (a, b) = (of(&a[0])?, of(&b[0])?);
                if a.len() != b.len() {
                    return fail("the two runs have different numbers of seeds");
                }
                Ok(Value::Flags(a.iter().zip(&b).map(|(a, b)| a == b).collect()))
            }
            ("missing", [x]) => {
                Ok(Value::Flags(self.numbers(x)?.into_iter().map(f64::is_nan).collect()))
            }
            ("where", [condition, a, b]) => {
                let (condition, a, b) =
                    (self.flags(condition)?, self.numbers(a)?, self.numbers(b)?);
                let either = pair(&a, &b, |a, b| (a, b))?;
                let choose = |first: bool, (a, b): (f64, f64)| if first { a } else { b };
                pair(&condition, &either, choose).map(Value::Numbers)
            }
            ("abs", [x]) => self.numbers(x).map(|xs| map(&xs, f64::abs)),
            ("sqrt", [x]) => self.numbers(x).map(|xs| map(&xs, f64::sqrt)),
            ("any", [x]) => self.flags(x).map(|flags| Value::Flags(vec![flags.contains(&true)])),
            ("rises" | "falls", [_, _, ..]) => self.in_order(function == "rises", arguments),
            ("geomean", [_, _, ..]) => self.across(arguments, geometric_mean),
            ("min", [_, _, ..]) => self.across(arguments, smallest),
            ("max", [_, _, ..]) => self.across(arguments, largest),
            (name, [x]) => match reducer(name) {
                Some(reduce) => self.numbers(x).map(|xs| Value::number(reduce(&xs))),
                None => unknown(name),
            },
            (name, _) if reducer(name).is_some() => fail(format!("`{name}` takes one value")),
            (name, _) => unknown(name),
        }
    }

    /// Reduces, seed by seed, all figures that a path with `*` finds.
    fn over(&self, how: &[String], path: &[String]) -> Result<Value> {
        let Some(reduce) = reducer(&how.join(".")) else { return unknown(&how.join(".")) };
        let one = |json: &&Json| {
            let numbers: Result<Vec<f64>> =
                find(json, &path[1..])?.into_iter().map(|json| as_number(json, path)).collect();
            // A task that never waited has no histogram; it has no say.
            let known: Vec<f64> = numbers?.into_iter().filter(|x| !x.is_nan()).collect();
            Ok(reduce(&known))
        };
        self.run(&path[0])?.iter().map(one).collect::<Result<_>>().map(Value::Numbers)
    }

    /// Whether the values rise (or fall) from each to the next, or stay; seed by seed.
    fn in_order(&self, rises: bool, arguments: &[Expr]) -> Result<Value> {
        let values: Vec<Vec<f64>> =
            arguments.iter().map(|x| self.numbers(x)).collect::<Result<_>>()?;
        let mut all = vec![true];
        for two in values.windows(2) {
            let step = pair(&two[0], &two[1], |a, b| if rises { a <= b } else { a >= b })?;
            all = pair(&all, &step, |a, b| a && b)?;
        }
        Ok(Value::Flags(all))
    }

    /// Reduces several values to one, seed by seed.
    fn across(&self, arguments: &[Expr], reduce: fn(&[f64]) -> f64) -> Result<Value> {
        let values: Vec<Vec<f64>> =
            arguments.iter().map(|x| self.numbers(x)).collect::<Result<_>>()?;
        let n = values.iter().map(Vec::len).max().unwrap_or(0);
        if values.iter().any(|value| value.len() != n && value.len() != 1) {
            return fail("the values have different numbers of seeds");
        }
        let at = |seed: usize| -> Vec<f64> {
            values.iter().map(|value| value[if value.len() == 1 { 0 } else { seed }]).collect()
        };
        Ok(Value::Numbers((0..n).map(|seed| reduce(&at(seed))).collect()))
    }
}

fn unknown<T>(function: &str) -> Result<T> {
    fail(format!(
        "there is no function `{function}` with these arguments; there are mean, median, min, max, \
         sum, sd, ci_low, ci_high, count, first, last (of the seeds), abs, sqrt, geomean, rises, \
         falls, any, missing, where(CONDITION, THEN, ELSE), over(HOW, PATH), same_events(RUN, RUN)"
    ))
}

fn smallest(xs: &[f64]) -> f64 {
    xs.iter().copied().reduce(|a, b| if b < a || a.is_nan() { b } else { a }).unwrap_or(f64::NAN)
}

fn largest(xs: &[f64]) -> f64 {
    xs.iter().copied().reduce(|a, b| if b > a || a.is_nan() { b } else { a }).unwrap_or(f64::NAN)
}

/// Reductions of several numbers to one.
fn reducer(name: &str) -> Option<fn(&[f64]) -> f64> {
    Some(match name {
        "mean" => mean,
        "median" => median,
        "min" => smallest,
        "max" => largest,
        "sum" => sum,
        "sd" => sd,
        "ci_low" => |xs| mean(xs) - half_width(xs),
        "ci_high" => |xs| mean(xs) + half_width(xs),
        "count" => |xs| xs.len() as f64,
        "first" => |xs| xs.first().copied().unwrap_or(f64::NAN),
        "last" => |xs| xs.last().copied().unwrap_or(f64::NAN),
        _ => return None,
    })
}

fn map(xs: &[f64], f: impl Fn(f64) -> f64) -> Value {
    Value::Numbers(xs.iter().map(|x| f(*x)).collect())
}

fn binary(operator: &str, a: &[f64], b: &[f64]) -> Result<Value> {
    let numbers = |f: fn(f64, f64) -> f64| pair(a, b, f).map(Value::Numbers);
    let flags = |f: fn(f64, f64) -> bool| pair(a, b, f).map(Value::Flags);
    match operator {
        "+" => numbers(|a, b| a + b),
        "-" => numbers(|a, b| a - b),
        "*" => numbers(|a, b| a * b),
        "/" => numbers(|a, b| a / b),
        "<" => flags(|a, b| a < b),
        "<=" => flags(|a, b| a <= b),
        ">" => flags(|a, b| a > b),
        ">=" => flags(|a, b| a >= b),
        "==" => flags(|a, b| a == b),
        // A missing figure differs from nothing.
        _ => flags(|a, b| !a.is_nan() && !b.is_nan() && a != b),
    }
}

/// Applies `f` seed by seed; a single value goes with every seed.
fn pair<A: Copy, B: Copy, U>(a: &[A], b: &[B], f: impl Fn(A, B) -> U) -> Result<Vec<U>> {
    let n = a.len().max(b.len());
    if (a.len() != n && a.len() != 1) || (b.len() != n && b.len() != 1) {
        return fail(format!("{} seeds cannot be paired with {}", a.len(), b.len()));
    }
    let last = (a.len().saturating_sub(1), b.len().saturating_sub(1));
    Ok((0..n).map(|seed| f(a[seed.min(last.0)], b[seed.min(last.1)])).collect())
}

fn as_number(json: &Json, path: &[String]) -> Result<f64> {
    match json {
        Json::Null => Ok(f64::NAN),
        Json::Bool(flag) => Ok(f64::from(u8::from(*flag))),
        Json::Number(number) => Ok(number.as_f64().unwrap_or(f64::NAN)),
        _ => fail(format!("`{}` is no number", path.join("."))),
    }
}

/// How often a sample had a value that it never had.
static NEVER: Json = Json::Bool(false);

/// The figures below `json` that `path` leads to. A null on the way is itself the end.
fn find<'j>(json: &'j Json, path: &[String]) -> Result<Vec<&'j Json>> {
    let Some((key, rest)) = path.split_first() else { return Ok(vec![json]) };
    let step = |inner: &'j Json| find(inner, rest);
    match json {
        Json::Null => Ok(vec![json]),
        Json::Object(map) if key == "*" => {
            map.values().map(step).collect::<Result<Vec<_>>>().map(|found| found.concat())
        }
        Json::Array(list) if key == "*" => {
            list.iter().map(step).collect::<Result<Vec<_>>>().map(|found| found.concat())
        }
        Json::Object(map) => match (map.get(key), rest) {
            (Some(Json::Object(seen)), [value]) if key == "n" && value.parse::<i64>().is_ok() => {
                Ok(vec![seen.get(value).unwrap_or(&NEVER)])
            }
            (Some(inner), _) => step(inner),
            (None, _) => {
                let keys: Vec<&str> = map.keys().map(String::as_str).take(40).collect();
                fail(format!("there is no `{key}`; there are {}", keys.join(", ")))
            }
        },
        Json::Array(list) => {
            let name = |member: &'j Json| {
                let name = member.get("name").or_else(|| member.get("task"));
                name.and_then(Json::as_str).map_or_else(
                    || member.get("cpu").map(ToString::to_string).unwrap_or_default(),
                    ToString::to_string,
                )
            };
            match list.iter().find(|member| name(member) == *key) {
                Some(inner) => step(inner),
                None => {
                    let names: Vec<String> = list.iter().map(name).take(40).collect();
                    fail(format!("there is no `{key}`; there are {}", names.join(", ")))
                }
            }
        }
        _ => fail(format!("`{key}` is asked of a plain value")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    fn value(text: &str) -> std::result::Result<Value, String> {
        let run = |share: f64, wait: u64| {
            serde_json::json!({
                "fingerprint": format!("{wait:x}"),
                "tasks": [
                    {"name": "a", "share": share, "longest_wait_ns": wait, "late": null},
                    {"name": "b-0", "share": 0.25, "longest_wait_ns": 7},
                ],
                "policy_stats": {"epochs": 3},
                "samples": {"bonus": {"n": {"7": 4, "8": 2}}},
            })
        };
        let (one, two) = (run(0.5, 10), run(0.75, 5));
        let mut env = Env::default();
        env.runs.insert("r", vec![&one, &two]);
        env.runs.insert("s", vec![&two, &two]);
        env.observed.insert("seen", Value::number(2.0));
        env.eval(&parse(text).map_err(|e| e.message)?).map_err(|e| e.0)
    }

    fn numbers(text: &str) -> Vec<f64> {
        match value(text) {
            Ok(Value::Numbers(numbers)) => numbers,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn figures_come_by_seed_and_are_reduced_on_request() {
        assert_eq!(numbers("r.tasks.a.share"), [0.5, 0.75]);
        assert_eq!(numbers("r.tasks.a.share / s.tasks.a.share * seen"), [4.0 / 3.0, 2.0]);
        assert_eq!(numbers("mean(r.tasks.a.share)"), [0.625]);
        assert_eq!(numbers("over(max, r.tasks.*.longest_wait_ns)"), [10.0, 7.0]);
        assert_eq!(numbers(r#"r.tasks."b-0".share"#), [0.25, 0.25]);
        assert_eq!(numbers("min(r.tasks.a.share, 0.6)"), [0.5, 0.6]);
    }

    #[test]
    fn conditions_hold_for_every_seed() {
        assert!(value("r.tasks.a.share >= 0.5").expect("fine").holds());
        assert!(!value("r.tasks.a.share > 0.5").expect("fine").holds());
        assert!(value("r.tasks.a.share in 0.5..75%").expect("fine").holds());
        assert!(value("any(r.tasks.a.share > 0.5)").expect("fine").holds());
        assert_eq!(value("same_events(r, s)"), Ok(Value::Flags(vec![false, true])));
        assert!(value("rises(1, r.tasks.a.share + 1, 2)").expect("fine").holds());
        assert!(!value("falls(1, 2)").expect("fine").holds());
        assert_eq!(numbers("where(r.tasks.a.share > 0.5, 1, r.tasks.a.share)"), [0.5, 1.0]);
    }

    #[test]
    fn values_that_a_sample_never_had_count_zero() {
        assert!(
            value("r.samples.bonus.n.\"7\" + r.samples.bonus.n.\"10\" == 4").expect("fine").holds()
        );
        assert!(value("r.samples.bonus.n.seven == 0").is_err());
    }

    #[test]
    fn missing_figures_satisfy_nothing() {
        assert!(value("missing(s.tasks.a.late.p99)").expect("fine").holds());
        assert!(!value("s.tasks.a.late.p99 < 5").expect("fine").holds());
        assert!(!value("s.tasks.a.late.p99 >= 5").expect("fine").holds());
    }

    #[test]
    fn faults_name_what_there_is() {
        let fault = |text| value(text).expect_err("a fault");
        assert!(fault("t.tasks.a.share").contains("neither a run (r, s) nor observed (seen)"));
        assert!(fault("r.tasks.c.share").contains("there are a, b-0"));
        assert!(fault("r.tasks.a.shares").contains("share"));
        assert!(fault("r.tasks.*.share").contains("over("));
        assert!(fault("r").contains("which of its figures"));
        assert!(fault("frob(1)").contains("no function `frob`"));
        assert!(fault("1 && 2").contains("truth value"));
    }
}
