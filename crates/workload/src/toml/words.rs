// SPDX-License-Identifier: GPL-2.0-only
//! Operations as words: splitting, substitution, and the arguments every operation shares.

use crate::expr::{Env, Value, eval, substitute};
use crate::ir::Dist;

/// A fault inside an operation's text: byte offset and what is wrong.
pub(super) type WordFault = (usize, String);

/// One word of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Its text, after substitution.
    pub(super) text: String,
    /// Where it begins in the operation's text.
    pub(super) at: usize,
    /// Whether it was quoted, and so is a name and never a keyword.
    pub(super) quoted: bool,
}

impl Word {
    /// Whether it is this keyword.
    pub(super) fn is(&self, keyword: &str) -> bool {
        !self.quoted && self.text == keyword
    }

    /// A fault at this word.
    pub(super) fn fail<T>(&self, why: impl Into<String>) -> Result<T, WordFault> {
        Err((self.at, why.into()))
    }
}

/// Splits an operation at blanks outside parentheses and quotes, and evaluates `{…}` and `$…`.
pub(super) fn split(text: &str, env: &Env) -> Result<Vec<Word>, WordFault> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let (word, after) = if let Some(inner) = rest.strip_prefix('"') {
            let (text, after) =
                quoted(inner).ok_or_else(|| (at, "this quoted name has no end".to_string()))?;
            (Word { text, at, quoted: true }, after)
        } else {
            let end = word_end(rest);
            (plain(&rest[..end], at, env)?, &rest[end..])
        };
        words.push(word);
        let trimmed = after.trim_start();
        if trimmed.len() == after.len() && !after.is_empty() {
            return Err((text.len() - after.len(), "a blank is missing here".to_string()));
        }
        rest = trimmed;
    }
    Ok(words)
}

/// A name as [`split`] reads it back.
pub(super) fn quote(name: &str) -> String {
    let simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    if !name.is_empty() && name.chars().all(simple) {
        return name.to_string();
    }
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

fn quoted(inner: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out, &inner[at + 1..])),
            '\\' => out.push(chars.next()?.1),
            c => out.push(c),
        }
    }
    None
}

fn word_end(text: &str) -> usize {
    let mut depth = 0u32;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            c if c.is_whitespace() && depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

fn plain(raw: &str, at: usize, env: &Env) -> Result<Word, WordFault> {
    let text = if raw.starts_with('$') {
        eval(raw, env).map_err(|(o, why)| (at + o, why))?.to_string()
    } else {
        substitute(raw, env).map_err(|(o, why)| (at + o, why))?
    };
    Ok(Word { text, at, quoted: false })
}

/// A duration or a distribution of durations, in ns.
pub(super) fn span(word: &Word, env: &Env) -> Result<Dist, WordFault> {
    dist(word, env, &|value| match value {
        Value::Span(ns) => u64::try_from(ns).map_err(|_| "a duration cannot be negative".into()),
        other => Err(format!("a duration with its unit is needed here, not {}", other.kind())),
    })
}

/// A count or a distribution of counts.
pub(super) fn count(word: &Word, env: &Env) -> Result<Dist, WordFault> {
    dist(word, env, &|value| match value {
        Value::Int(n) => u64::try_from(n).map_err(|_| "a count cannot be negative".into()),
        other => Err(format!("a count is needed here, not {}", other.kind())),
    })
}

/// A constant count.
pub(super) fn number(word: &Word, env: &Env) -> Result<u64, WordFault> {
    match count(word, env)? {
        Dist::Const(n) => Ok(n),
        _ => word.fail("a constant is needed here"),
    }
}

/// A constant count below 2^32.
pub(super) fn number32(word: &Word, env: &Env) -> Result<u32, WordFault> {
    u32::try_from(number(word, env)?).or_else(|_| word.fail("the number does not fit 32 bits"))
}

/// A constant duration in ns.
pub(super) fn const_span(word: &Word, env: &Env) -> Result<u64, WordFault> {
    match span(word, env)? {
        Dist::Const(ns) => Ok(ns),
        _ => word.fail("a constant duration is needed here"),
    }
}

fn dist(
    word: &Word,
    env: &Env,
    convert: &dyn Fn(Value) -> Result<u64, String>,
) -> Result<Dist, WordFault> {
    let text = word.text.trim();
    let amount = |text: &str| -> Result<u64, WordFault> {
        if text.trim_start().starts_with('-') {
            return word.fail(format!("`{}` is negative", text.trim()));
        }
        let value = eval(text, env).map_err(|(_, why)| (word.at, why))?;
        convert(value).map_err(|why| (word.at, why))
    };
    let arguments =
        |name: &str| text.strip_prefix(name)?.trim().strip_prefix('(')?.strip_suffix(')');
    if let Some(inner) = arguments("uniform") {
        let Some((low, high)) = split_arguments(inner) else {
            return word.fail("write `uniform(LOW, HIGH)`");
        };
        let (low, high) = (amount(low)?, amount(high)?);
        if low > high {
            return word.fail("the distribution runs backwards");
        }
        return Ok(Dist::Uniform(low, high));
    }
    if let Some(inner) = arguments("exponential") {
        return Ok(Dist::Exponential(amount(inner)?));
    }
    if let Some(inner) = arguments("lognormal") {
        let Some((mean, percent)) = split_arguments(inner) else {
            return word.fail("write `lognormal(MEAN, PERCENT%)`");
        };
        return match percent.trim().strip_suffix('%').map(str::parse) {
            Some(Ok(percent)) => Ok(Dist::LogNormal(amount(mean)?, percent)),
            _ => word.fail("write `lognormal(MEAN, PERCENT%)`, with the logarithm's deviation"),
        };
    }
    if let Some((middle, percent)) = text.split_once('±') {
        return around(word, amount(middle)?, percent);
    }
    Ok(Dist::Const(amount(text)?))
}

/// Uniform in `middle · (1 ± percent / 100)`, the bounds rounded down.
fn around(word: &Word, middle: u64, percent: &str) -> Result<Dist, WordFault> {
    let percent: u64 = match percent.trim().strip_suffix('%').map(str::parse) {
        Some(Ok(percent)) if percent <= 100 => percent,
        _ => return word.fail("write `MEAN±PERCENT%` with at most 100 percent"),
    };
    let scaled = |factor: u64| middle.checked_mul(factor).map(|n| n / 100);
    match (scaled(100 - percent), scaled(100 + percent)) {
        (Some(low), Some(high)) => Ok(Dist::Uniform(low, high)),
        _ => word.fail("the number does not fit 64 bits"),
    }
}

/// Splits at the only comma outside parentheses.
fn split_arguments(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0u32;
    let mut comma = None;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 && comma.is_some() => return None,
            ',' if depth == 0 => comma = Some(at),
            _ => {}
        }
    }
    comma.map(|at| (&text[..at], &text[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> Env {
        let mut env = Env::default();
        env.push("g", Value::Int(2));
        env.push("work", Value::Span(1_000));
        env
    }

    fn texts(op: &str) -> Result<Vec<String>, WordFault> {
        split(op, &env()).map(|words| words.into_iter().map(|w| w.text).collect())
    }

    #[test]
    fn words_end_at_blanks_outside_brackets() {
        assert_eq!(
            texts("read fd-{g}-{ g + 1 } 100"),
            Ok(["read", "fd-2-3", "100"].map(str::to_string).to_vec())
        );
        assert_eq!(texts("run $work*2").map(|w| w[1].clone()), Ok("2us".to_string()));
        assert_eq!(texts("run uniform(1ms, 2ms) x").map(|w| w.len()), Ok(3));
        assert_eq!(texts("").map(|w| w.len()), Ok(0));
    }

    #[test]
    fn quoted_name_is_read_back() {
        for name in ["", "a b", "a\"b\\", "{x}", "$y", "\n", "plain-1.2/x"] {
            let words = split(&format!("lock {}", quote(name)), &env()).expect("legal");
            assert_eq!(words[1].text, name);
        }
    }

    #[test]
    fn malformed_words_point_at_the_fault() {
        assert_eq!(texts("lock \"abc").map_err(|e| e.0), Err(5));
        assert_eq!(texts("lock \"a\"b").map_err(|e| e.0), Err(8));
        assert_eq!(texts("run $wrok").map_err(|e| e.0), Err(4));
        assert_eq!(texts("read fd-{q} 1").map_err(|e| e.0), Err(9));
    }

    #[test]
    fn distributions_are_read() {
        let read = |op: &str| span(&split(op, &env()).expect("words")[0], &env());
        assert_eq!(read("5ms"), Ok(Dist::Const(5_000_000)));
        assert_eq!(read("$work"), Ok(Dist::Const(1_000)));
        assert_eq!(read("uniform(1us, $work * 2)"), Ok(Dist::Uniform(1_000, 2_000)));
        assert_eq!(read("exponential(max(1us, 2us))"), Ok(Dist::Exponential(2_000)));
        assert_eq!(read("lognormal($work, 60%)"), Ok(Dist::LogNormal(1_000, 60)));
        assert_eq!(read("15us±20%"), Ok(Dist::Uniform(12_000, 18_000)));
        for (bad, says) in [
            ("5", "with its unit"),
            ("-5ms", "negative"),
            ("uniform(2us, 1us)", "backwards"),
            ("uniform(2us)", "write `uniform"),
            ("5ms±120%", "percent"),
            ("5 parsecs", "with its unit"),
        ] {
            let (_, why) = read(bad).expect_err(bad);
            assert!(why.contains(says), "{bad}: {why}");
        }
    }
}
