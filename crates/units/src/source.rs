// SPDX-License-Identifier: GPL-2.0-only
//! Places in an input text, for messages that point at the fault.

use alloc::string::String;
use core::fmt;

/// A place in a text: line and column counted from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// The place of byte `offset` in `text`; past the end, the end.
    pub fn of_offset(text: &str, offset: usize) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        Self {
            line: before.bytes().filter(|b| *b == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A fault in an input text: what, where, and how to mend it.
///
/// The message is a lower-case fragment that says what was found and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Where; `None` when the fault has no single place, such as an empty file.
    pub at: Option<Position>,
    /// What is wrong.
    pub message: String,
    /// How to mend it; may be empty.
    pub hint: String,
}

impl Located {
    /// A fault at byte `offset` of `text`.
    pub fn at_offset(text: &str, offset: usize, message: impl Into<String>) -> Self {
        Self {
            at: Some(Position::of_offset(text, offset)),
            message: message.into(),
            hint: String::new(),
        }
    }
    /// A fault at a known line and column.
    pub fn at(line: usize, column: usize, message: impl Into<String>) -> Self {
        Self { at: Some(Position { line, column }), message: message.into(), hint: String::new() }
    }
    /// A fault of the text as a whole.
    pub fn whole(message: impl Into<String>) -> Self {
        Self { at: None, message: message.into(), hint: String::new() }
    }
    /// The same fault with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "{at}: ")?;
        }
        f.write_str(&self.message)?;
        if !self.hint.is_empty() {
            write!(f, " (hint: {})", self.hint)?;
        }
        Ok(())
    }
}

impl core::error::Error for Located {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_counts_characters_not_bytes() {
        let text = "a\nµµx";
        assert_eq!(Position::of_offset(text, 0), Position { line: 1, column: 1 });
        assert_eq!(Position::of_offset(text, 6), Position { line: 2, column: 3 });
        assert_eq!(Position::of_offset(text, 3), Position { line: 2, column: 1 });
        assert_eq!(Position::of_offset(text, 99), Position { line: 2, column: 4 });
    }
}
