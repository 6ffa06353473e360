// SPDX-License-Identifier: GPL-2.0-only
//! The place of a fault in an input, as a few lines of text with a caret.

use std::fs::File;
use std::io::{BufRead, BufReader};

use schedlab_units::Position;

/// Where the text of an input can be had again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// In memory.
    Text(&'a [u8]),
    /// In a file.
    File(&'a str),
    /// Nowhere: it came through a pipe or out of a packed file.
    Gone,
}

/// Lines to print, and how wide the column of line numbers is.
pub(crate) struct Excerpt {
    pub(crate) lines: Vec<String>,
    pub(crate) gutter: usize,
}

/// At most this many characters of a line are shown.
const WIDTH: usize = 100;
/// Of which this many stand before the caret of a long line.
const BEFORE: usize = 60;

/// The line at `at` with a caret under its column; none when the place cannot be found again.
pub(crate) fn excerpt(source: &Source<'_>, at: Position) -> Option<Excerpt> {
    match source {
        Source::Text(bytes) => excerpt_of(*bytes, at),
        Source::File(path) => excerpt_of(BufReader::new(File::open(path).ok()?), at),
        Source::Gone => None,
    }
}

fn excerpt_of(mut input: impl BufRead, at: Position) -> Option<Excerpt> {
    for _ in 1..at.line {
        if input.skip_until(b'\n').ok()? == 0 {
            return None;
        }
    }
    // Characters have at most four bytes; a line may have fifty million of them.
    let most = (at.column + WIDTH) * 4;
    let mut line = Vec::new();
    input.take(most as u64).read_until(b'\n', &mut line).ok()?;
    while line.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
        line.pop();
    }
    let line: Vec<char> = String::from_utf8_lossy(&line).chars().map(visible).collect();
    let column = (at.column - 1).min(line.len());
    let first = if column < WIDTH { 0 } else { column - BEFORE };
    let last = (first + WIDTH).min(line.len());
    let (head, tail) = (if first > 0 { "…" } else { "" }, if last < line.len() { "…" } else { "" });
    let shown: String = line[first..last].iter().collect();
    let number = at.line.to_string();
    let gutter = number.len();
    let caret = " ".repeat(column - first + head.chars().count());
    Some(Excerpt {
        lines: vec![
            format!("{:gutter$} |", ""),
            format!("{number} | {head}{shown}{tail}"),
            format!("{:gutter$} | {caret}^", ""),
        ],
        gutter,
    })
}

/// Control characters would move the cursor.
fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '\u{b7}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, line: usize, column: usize) -> Vec<String> {
        let excerpt = excerpt(&Source::Text(text.as_bytes()), Position { line, column });
        excerpt.map_or_else(Vec::new, |excerpt| excerpt.lines)
    }

    #[test]
    fn excerpt_points_at_the_column() {
        let text = "first\r\nµ\twrong here\r\nlast";
        assert_eq!(lines(text, 2, 3), ["  |", "2 | µ wrong here", "  |   ^"]);
        assert_eq!(lines(text, 3, 5), ["  |", "3 | last", "  |     ^"]);
    }

    #[test]
    fn excerpt_of_long_line_is_cut_around_the_caret() {
        let text = format!("{}X{}", "a".repeat(5000), "b".repeat(5000));
        let lines = lines(&text, 1, 5001);
        let caret = lines[2].chars().position(|c| c == '^').expect("a caret");
        assert_eq!(lines[1].chars().nth(caret), Some('X'));
        assert!(lines[1].chars().count() <= WIDTH + 6, "{}", lines[1]);
        assert!(lines[1].starts_with("1 | …a") && lines[1].ends_with("b…"));
    }

    #[test]
    fn excerpt_shows_no_control_characters() {
        assert_eq!(lines("a\x1b[31mb\0", 1, 2)[1], "1 | a·[31mb·");
    }

    #[test]
    fn excerpt_beyond_the_text_is_none_or_its_end() {
        assert!(lines("one\n", 5, 1).is_empty());
        assert_eq!(lines("one", 1, 99)[2], "  |    ^");
        assert_eq!(lines("", 1, 1)[2], "  | ^");
    }
}
