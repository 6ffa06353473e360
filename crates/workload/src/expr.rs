// SPDX-License-Identifier: GPL-2.0-only
//! The small expression language of our workload files: integers, durations, texts, truth values.
//!
//! Expressions are constant: they are evaluated while a file is read, never during a run. All
//! arithmetic is exact 64-bit integer arithmetic; whatever does not fit is an error.

use std::fmt;

use schedlab_units::Nanos;

/// Deepest nesting of an expression.
const MAX_DEPTH: u32 = 32;

/// A value with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// An integer.
    Int(i64),
    /// A duration in ns; negative only inside an expression.
    Span(i64),
    /// A text.
    Text(String),
    /// A truth value.
    Flag(bool),
}

impl Value {
    /// The type in words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Int(_) => "an integer",
            Self::Span(_) => "a duration",
            Self::Text(_) => "a text",
            Self::Flag(_) => "true or false",
        }
    }

    /// Reads a text as a value of the same type as `self`.
    ///
    /// # Errors
    /// Says what a value of the type looks like.
    pub(crate) fn parse_same(&self, text: &str) -> Result<Self, String> {
        match self {
            Self::Int(_) => text
                .parse()
                .map(Self::Int)
                .map_err(|_| format!("`{text}` is not an integer, such as `{self}`")),
            Self::Span(_) => Nanos::parse(text).map_err(|e| e.to_string()).and_then(span),
            Self::Flag(_) => match text {
                "true" | "yes" | "on" | "1" => Ok(Self::Flag(true)),
                "false" | "no" | "off" | "0" => Ok(Self::Flag(false)),
                _ => Err(format!("`{text}` is neither `true` nor `false`")),
            },
            Self::Text(_) => Ok(Self::Text(text.to_string())),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => write!(f, "{n}"),
            Self::Span(ns) if *ns < 0 => write!(f, "-{}", Nanos::from_ns(ns.unsigned_abs())),
            Self::Span(ns) => write!(f, "{}", Nanos::from_ns(ns.unsigned_abs())),
            Self::Text(text) => f.write_str(text),
            Self::Flag(flag) => write!(f, "{flag}"),
        }
    }
}

fn span(nanos: Nanos) -> Result<Value, String> {
    i64::try_from(nanos.as_ns()).map(Value::Span).map_err(|_| "the duration is too long".into())
}

/// Where names get their values: parameters first, then loop variables, the innermost last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Env {
    vars: Vec<(String, Value)>,
}

impl Env {
    /// Adds a name, which hides an earlier one of the same spelling.
    pub(crate) fn push(&mut self, name: &str, value: Value) {
        self.vars.push((name.to_string(), value));
    }
    /// Removes the name added last.
    pub(crate) fn pop(&mut self) {
        self.vars.pop();
    }
    /// The value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.vars.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value)
    }
    /// All names, as advice.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.vars.iter().map(|(name, _)| name.as_str())
    }
}

/// Evaluates `text`, all of which must be one expression.
///
/// # Errors
/// A byte offset inside `text` and what is wrong there.
pub(crate) fn eval(text: &str, env: &Env) -> Result<Value, (usize, String)> {
    let mut parser = Parser { text, at: 0, depth: 0, env };
    let value = parser.or()?;
    parser.skip_blanks();
    if parser.at < text.len() {
        return parser.fail(format!("`{}` is left over", &text[parser.at..]));
    }
    Ok(value)
}

/// Replaces every `{expression}` in `text` by its value; `{{` and `}}` stand for braces.
///
/// # Errors
/// A byte offset inside `text` and what is wrong there.
pub(crate) fn substitute(text: &str, env: &Env) -> Result<String, (usize, String)> {
    if !text.contains(['{', '}']) {
        return Ok(text.to_string());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(brace) = rest.find(['{', '}']) {
        let at = text.len() - rest.len() + brace;
        out.push_str(&rest[..brace]);
        rest = &rest[brace..];
        if let Some(after) = rest.strip_prefix("{{") {
            out.push('{');
            rest = after;
        } else if let Some(after) = rest.strip_prefix("}}") {
            out.push('}');
            rest = after;
        } else if let Some(inner) = rest.strip_prefix('{') {
            let Some(end) = inner.find('}') else {
                return Err((at, "this `{` is not closed".to_string()));
            };
            let value = eval(&inner[..end], env).map_err(|(o, why)| (at + 1 + o, why))?;
            out.push_str(&value.to_string());
            rest = &inner[end + 1..];
        } else {
            return Err((
                at,
                "this `}` closes nothing; a brace itself is written `}}`".to_string(),
            ));
        }
    }
    out.push_str(rest);
    Ok(out)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    env: &'a Env,
}

type Outcome = Result<Value, (usize, String)>;

impl Parser<'_> {
    fn fail<T>(&self, why: impl Into<String>) -> Result<T, (usize, String)> {
        Err((self.at, why.into()))
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes the first of `tokens` that comes next.
    fn take(&mut self, tokens: &[&'static str]) -> Option<&'static str> {
        self.skip_blanks();
        let token = tokens.iter().find(|token| self.rest().starts_with(**token))?;
        self.at += token.len();
        Some(token)
    }

    fn or(&mut self) -> Outcome {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail("the expression is nested too deeply");
        }
        let mut left = self.and()?;
        while self.take(&["||"]).is_some() {
            let at = self.at;
            let right = self.and()?;
            left = Value::Flag(flag(&left, at)? | flag(&right, at)?);
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Outcome {
        let mut left = self.comparison()?;
        while self.take(&["&&"]).is_some() {
            let at = self.at;
            let right = self.comparison()?;
            left = Value::Flag(flag(&left, at)? & flag(&right, at)?);
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Outcome {
        let left = self.sum()?;
        let Some(operator) = self.take(&["==", "!=", "<=", ">=", "<", ">"]) else {
            return Ok(left);
        };
        let at = self.at;
        let right = self.sum()?;
        let order = match (&left, &right) {
            (Value::Int(a), Value::Int(b)) | (Value::Span(a), Value::Span(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Flag(a), Value::Flag(b)) => a.cmp(b),
            _ => {
                let why = format!("{} is compared with {}", left.kind(), right.kind());
                return Err((at, why));
            }
        };
        Ok(Value::Flag(match operator {
            "==" => order.is_eq(),
            "!=" => order.is_ne(),
            "<=" => order.is_le(),
            ">=" => order.is_ge(),
            "<" => order.is_lt(),
            _ => order.is_gt(),
        }))
    }

    fn sum(&mut self) -> Outcome {
        let mut left = self.product()?;
        while let Some(operator) = self.take(&["+", "-"]) {
            let at = self.at;
            let right = self.product()?;
            let combine =
                |a: i64, b| if operator == "+" { a.checked_add(b) } else { a.checked_sub(b) };
            left = match (left, right) {
                (Value::Int(a), Value::Int(b)) => combine(a, b).map(Value::Int),
                (Value::Span(a), Value::Span(b)) => combine(a, b).map(Value::Span),
                (a, b) => {
                    let why =
                        format!("`{operator}` does not go with {} and {}", a.kind(), b.kind());
                    return Err((at, why));
                }
            }
            .ok_or_else(|| too_large(at))?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Outcome {
        let mut left = self.unary()?;
        while let Some(operator) = self.take(&["*", "/", "%"]) {
            let at = self.at;
            let right = self.unary()?;
            if operator != "*" && matches!(right, Value::Int(0) | Value::Span(0)) {
                return Err((at, "division by zero".to_string()));
            }
            left = match (operator, left, right) {
                ("*", Value::Int(a), Value::Int(b)) => a.checked_mul(b).map(Value::Int),
                ("*", Value::Span(a), Value::Int(b)) | ("*", Value::Int(a), Value::Span(b)) => {
                    a.checked_mul(b).map(Value::Span)
                }
                ("/", Value::Int(a), Value::Int(b)) => a.checked_div(b).map(Value::Int),
                ("/", Value::Span(a), Value::Int(b)) => a.checked_div(b).map(Value::Span),
                ("/", Value::Span(a), Value::Span(b)) => a.checked_div(b).map(Value::Int),
                ("%", Value::Int(a), Value::Int(b)) => a.checked_rem(b).map(Value::Int),
                (_, a, b) => {
                    let why =
                        format!("`{operator}` does not go with {} and {}", a.kind(), b.kind());
                    return Err((at, why));
                }
            }
            .ok_or_else(|| too_large(at))?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Outcome {
        let mut negate = false;
        let mut not = false;
        while let Some(sign) = self.take(&["-", "!"]) {
            if sign == "-" {
                negate = !negate;
            } else {
                not = !not;
            }
        }
        let at = self.at;
        let value = self.atom()?;
        match value {
            Value::Int(n) if !not => {
                let n = if negate { n.checked_neg() } else { Some(n) };
                n.map(Value::Int).ok_or_else(|| too_large(at))
            }
            Value::Span(n) if !not => {
                let n = if negate { n.checked_neg() } else { Some(n) };
                n.map(Value::Span).ok_or_else(|| too_large(at))
            }
            Value::Flag(b) if !negate => Ok(Value::Flag(b ^ not)),
            other if !negate && !not => Ok(other),
            other => Err((at, format!("the sign does not go with {}", other.kind()))),
        }
    }

    fn atom(&mut self) -> Outcome {
        self.skip_blanks();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return self.fail("a value is missing");
        };
        match first {
            '(' => {
                self.at += 1;
                let value = self.or()?;
                match self.take(&[")"]) {
                    Some(_) => Ok(value),
                    None => self.fail("a `)` is missing"),
                }
            }
            '\'' => {
                let Some(end) = rest[1..].find('\'') else {
                    return self.fail("this text has no end");
                };
                let text = rest[1..1 + end].to_string();
                self.at += end + 2;
                Ok(Value::Text(text))
            }
            '0'..='9' => self.number(),
            c if c.is_alphabetic() || matches!(c, '$' | '_') => self.name(),
            c => self.fail(format!("`{c}` begins no value")),
        }
    }

    fn number(&mut self) -> Outcome {
        let rest = self.rest();
        let word = |c: char| c.is_alphanumeric() || c == '.' || c == '_';
        let word = &rest[..rest.find(|c| !word(c)).unwrap_or(rest.len())];
        // `0..3` is a range: its dots are not part of the number.
        let word = &word[..word.find("..").unwrap_or(word.len())];
        let value = if word.chars().all(|c| c.is_ascii_digit() || c == '_') {
            word.replace('_', "").parse().map(Value::Int).map_err(|_| too_large(self.at))
        } else {
            Nanos::parse(word).map_err(|e| e.to_string()).and_then(span).map_err(|e| (self.at, e))
        };
        self.at += word.len();
        value
    }

    fn name(&mut self) -> Outcome {
        let at = self.at;
        let _ = self.take(&["$"]);
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let name = rest[..end].to_string();
        self.at += end;
        match name.as_str() {
            "true" => return Ok(Value::Flag(true)),
            "false" => return Ok(Value::Flag(false)),
            "min" | "max" if self.take(&["("]).is_some() => return self.min_max(&name),
            _ => {}
        }
        self.env.get(&name).cloned().ok_or_else(|| {
            let near = crate::nearest::did_you_mean(&name, self.env.names());
            (at, format!("there is no parameter or loop variable `{name}`{near}"))
        })
    }

    fn min_max(&mut self, name: &str) -> Outcome {
        let at = self.at;
        let left = self.or()?;
        if self.take(&[","]).is_none() {
            return self.fail("a `,` is missing");
        }
        let right = self.or()?;
        if self.take(&[")"]).is_none() {
            return self.fail("a `)` is missing");
        }
        let pick = |a: i64, b: i64| if name == "min" { a.min(b) } else { a.max(b) };
        match (left, right) {
            (Value::Int(a), Value::Int(b)) => Ok(Value::Int(pick(a, b))),
            (Value::Span(a), Value::Span(b)) => Ok(Value::Span(pick(a, b))),
            (a, b) => Err((at, format!("`{name}` does not go with {} and {}", a.kind(), b.kind()))),
        }
    }
}

fn flag(value: &Value, at: usize) -> Result<bool, (usize, String)> {
    match value {
        Value::Flag(flag) => Ok(*flag),
        other => Err((at, format!("true or false is needed here, not {}", other.kind()))),
    }
}

fn too_large(at: usize) -> (usize, String) {
    (at, "the number does not fit 64 bits".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> Env {
        let mut env = Env::default();
        env.push("groups", Value::Int(3));
        env.push("work", Value::Span(30_000_000));
        env.push("class", Value::Text("fifo".to_string()));
        env.push("pipes", Value::Flag(true));
        env
    }

    #[test]
    fn expression_yields_its_value() {
        for (text, expected) in [
            ("$groups * 20 + 1", "61"),
            ("1 + 2 * 3 - 4 / 2", "5"),
            ("(1 + 2) * -3", "-9"),
            ("work / 4", "7.5ms"),
            ("work / 7ms", "4"),
            ("2 * 1.5ms + 1us", "3.001ms"),
            ("min(groups, 2) + max(1, 5)", "7"),
            ("10 % 4", "2"),
            ("!pipes || groups > 2 && class == 'fifo'", "true"),
            ("groups != 3", "false"),
            ("1_000", "1000"),
        ] {
            assert_eq!(
                eval(text, &env()).map(|v| v.to_string()),
                Ok(expected.to_string()),
                "{text}"
            );
        }
    }

    #[test]
    fn expression_malformed_points_at_the_fault() {
        for (text, at, says) in [
            ("", 0, "missing"),
            ("1 +", 3, "missing"),
            ("grups", 0, "did you mean `groups`"),
            ("1 + 2ms", 3, "does not go with"),
            ("1 / 0", 3, "division by zero"),
            ("9223372036854775807 + 1", 21, "64 bits"),
            ("99999999999999999999", 0, "64 bits"),
            ("(1", 2, "`)` is missing"),
            ("1 2", 2, "left over"),
            ("'abc", 0, "no end"),
            ("-class", 1, "sign"),
            ("3 parsecs", 2, "left over"),
            ("3parsecs", 0, "unknown unit"),
            ("#", 0, "begins no value"),
        ] {
            let (offset, message) = eval(text, &env()).expect_err(text);
            assert!(message.contains(says), "{text}: {message}");
            assert_eq!(offset, at, "{text}: {message}");
        }
    }

    #[test]
    fn expression_of_any_depth_returns() {
        let deep = "(".repeat(100_000);
        assert!(eval(&deep, &env()).expect_err("deep").1.contains("too deeply"));
        let signs = format!("{}1", "-".repeat(100_001));
        assert_eq!(eval(&signs, &env()), Ok(Value::Int(-1)));
    }

    #[test]
    fn substitution_replaces_and_escapes() {
        let replaced = |text| substitute(text, &env());
        assert_eq!(replaced("fd-{groups}-{$groups*2}"), Ok("fd-3-6".to_string()));
        assert_eq!(replaced("{{{groups}}}"), Ok("{3}".to_string()));
        assert_eq!(replaced("a{b"), Err((1, "this `{` is not closed".to_string())));
        assert_eq!(replaced("ab}").map_err(|e| e.0), Err(2));
        assert_eq!(replaced("x{1+}").map_err(|e| e.0), Err(4));
    }
}
