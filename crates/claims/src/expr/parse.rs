// SPDX-License-Identifier: GPL-2.0-only
//! From text to expression.

use schedlab_units::Nanos;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A literal.
    Number(f64),
    /// A name observed earlier, or the figure of a run: its name and the keys below it.
    Path(Vec<String>),
    /// Negation of a number, `-`, or of a truth value, `!`.
    Unary(char, Box<Expr>),
    /// Arithmetic, comparison, `&&` or `||`.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `x in low..high`, ends included.
    Within(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A function.
    Call(String, Vec<Expr>),
}

/// What is wrong with an expression, and at which byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Byte offset.
    pub at: usize,
    /// What was expected.
    pub message: String,
}

/// Operators by precedence, from weak to strong; those of one level are left-associative.
const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["<=", ">=", "==", "!=", "<", ">"], &["+", "-"], &["*", "/"]];

/// How deep expressions may nest.
const DEPTH_MAX: u32 = 64;

/// Reads an expression.
///
/// # Errors
/// The place and what was expected there.
pub fn parse(text: &str) -> Result<Expr, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let expr = parser.level(0)?;
    parser.blanks();
    if parser.at < text.len() {
        return parser.fail(format!("`{}` is left over", &text[parser.at..]));
    }
    Ok(expr)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, SyntaxError> {
        Err(SyntaxError { at: self.at, message: message.into() })
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn need(&mut self, token: &str) -> Result<(), SyntaxError> {
        if self.eat(token) { Ok(()) } else { self.fail(format!("`{token}` is expected")) }
    }

    fn level(&mut self, level: usize) -> Result<Expr, SyntaxError> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        self.depth += 1;
        if self.depth > DEPTH_MAX * LEVELS.len() as u32 {
            return self.fail("the expression is nested too deeply");
        }
        let mut left = self.level(level + 1)?;
        loop {
            if level == 2 && self.eat_word("in") {
                let low = self.level(level + 1)?;
                self.need("..")?;
                let high = self.level(level + 1)?;
                left = Expr::Within(Box::new(left), Box::new(low), Box::new(high));
                continue;
            }
            let Some(operator) = operators.iter().find(|operator| self.eat(operator)) else {
                self.depth -= 1;
                return Ok(left);
            };
            let right = self.level(level + 1)?;
            left = Expr::Binary(operator, Box::new(left), Box::new(right));
        }
    }

    fn eat_word(&mut self, word: &str) -> bool {
        self.blanks();
        let Some(after) = self.rest().strip_prefix(word) else { return false };
        let found = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if found {
            self.at += word.len();
        }
        found
    }

    fn unary(&mut self) -> Result<Expr, SyntaxError> {
        for sign in ['-', '!'] {
            if self.eat(sign.encode_utf8(&mut [0; 4])) {
                self.depth += 1;
                if self.depth > DEPTH_MAX * LEVELS.len() as u32 {
                    return self.fail("the expression is nested too deeply");
                }
                let inner = self.unary()?;
                self.depth -= 1;
                return Ok(Expr::Unary(sign, Box::new(inner)));
            }
        }
        self.atom()
    }

    fn atom(&mut self) -> Result<Expr, SyntaxError> {
        if self.eat("(") {
            let inner = self.level(0)?;
            self.need(")")?;
            return Ok(inner);
        }
        self.blanks();
        let first = self.rest().chars().next();
        match first {
            Some(c) if c.is_ascii_digit() => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.name(),
            Some(c) => self.fail(format!("a number, name or `(` is expected, not `{c}`")),
            None => self.fail("a number, name or `(` is expected"),
        }
    }

    /// `12`, `0.5`, `0.1%`, `50ms`.
    fn number(&mut self) -> Result<Expr, SyntaxError> {
        let rest = self.rest();
        let mut end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let fraction =
            rest[end..].strip_prefix('.').filter(|f| f.starts_with(|c: char| c.is_ascii_digit()));
        if let Some(fraction) = fraction {
            end += 1 + fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
        }
        let unit_end = rest[end..].find(|c: char| !c.is_alphabetic() && c != '%');
        let unit = &rest[end..end + unit_end.unwrap_or(rest.len() - end)];
        let digits = &rest[..end];
        let number: f64 = digits.parse().or_else(|_| self.fail("a number is expected"))?;
        let value = match unit {
            "" => number,
            "%" => number / 100.0,
            _ => match Nanos::parse(&rest[..end + unit.len()]) {
                Ok(span) => span.as_ns() as f64,
                Err(error) => return self.fail(error.to_string()),
            },
        };
        self.at += end + unit.len();
        Ok(Expr::Number(value))
    }

    /// A path such as `run.tasks."cc1-0".share`, or a function with its arguments.
    fn name(&mut self) -> Result<Expr, SyntaxError> {
        let mut path = vec![self.word()?];
        if path.len() == 1 && self.rest().starts_with('(') {
            self.at += 1;
            return self.call(path.remove(0));
        }
        while self.rest().starts_with('.') && !self.rest().starts_with("..") {
            self.at += 1;
            path.push(self.word()?);
        }
        Ok(Expr::Path(path))
    }

    fn word(&mut self) -> Result<String, SyntaxError> {
        let rest = self.rest();
        if let Some(inner) = rest.strip_prefix('"') {
            let Some(end) = inner.find('"') else { return self.fail("this name is not closed") };
            self.at += end + 2;
            return Ok(inner[..end].to_string());
        }
        if rest.starts_with('*') {
            self.at += 1;
            return Ok("*".to_string());
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end == 0 {
            return self.fail("a name is expected");
        }
        self.at += end;
        Ok(rest[..end].to_string())
    }

    fn call(&mut self, function: String) -> Result<Expr, SyntaxError> {
        let mut arguments = Vec::new();
        if !self.eat(")") {
            loop {
                arguments.push(self.level(0)?);
                if self.eat(")") {
                    break;
                }
                self.need(",")?;
            }
        }
        Ok(Expr::Call(function, arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        fn show(expr: &Expr) -> String {
            match expr {
                Expr::Number(x) => format!("{x}"),
                Expr::Path(path) => path.join("."),
                Expr::Unary(sign, x) => format!("{sign}{}", show(x)),
                Expr::Binary(op, a, b) => format!("({} {op} {})", show(a), show(b)),
                Expr::Within(x, a, b) => format!("({} in {}..{})", show(x), show(a), show(b)),
                Expr::Call(name, args) => {
                    format!("{name}({})", args.iter().map(show).collect::<Vec<_>>().join(", "))
                }
            }
        }
        parse(text).map_or_else(|e| format!("{}: {}", e.at, e.message), |e| show(&e))
    }

    #[test]
    fn expressions_bind_as_in_c() {
        assert_eq!(shown("1 + 2 * 3 < 4 && !a || b"), "((((1 + (2 * 3)) < 4) && !a) || b)");
        assert_eq!(shown("1 - 2 - 3"), "((1 - 2) - 3)");
        assert_eq!(shown("-(a + 1) / 2"), "(-(a + 1) / 2)");
    }

    #[test]
    fn ranges_take_whole_sums_as_ends() {
        assert_eq!(shown("mean(r) in 0.62..0.72"), "(mean(r) in 0.62..0.72)");
        assert_eq!(shown("x in a - 1..a + 1 && y"), "((x in (a - 1)..(a + 1)) && y)");
        assert_eq!(shown("inside"), "inside");
    }

    #[test]
    fn units_count_in_nanoseconds() {
        assert_eq!(shown("1.5ms"), "1500000");
        assert_eq!(shown("0.1%"), "0.001");
        assert_eq!(shown("50 < 2s"), "(50 < 2000000000)");
    }

    #[test]
    fn paths_may_quote_names_and_say_all() {
        assert_eq!(shown(r#"on.tasks."cc1-0".share"#), "on.tasks.cc1-0.share");
        assert_eq!(
            shown("over(max, on.tasks.*.longest_wait_ns)"),
            "over(max, on.tasks.*.longest_wait_ns)"
        );
    }

    #[test]
    fn faults_name_their_place() {
        assert_eq!(shown("1 +"), "3: a number, name or `(` is expected");
        assert_eq!(shown("mean(a"), "6: `,` is expected");
        assert_eq!(shown("a b"), "2: `b` is left over");
        assert_eq!(shown("1 in 2"), "6: `..` is expected");
        assert!(shown("5xs").starts_with("0: "));
        assert!(shown(&"(".repeat(100_000)).contains("nested too deeply"));
        assert!(shown(&"-".repeat(100_000)).contains("nested too deeply"));
    }
}
