// SPDX-License-Identifier: GPL-2.0-only
//! Lines of a stream, with a bound on their length.

use std::io::BufRead;

use schedlab_units::Located;

/// The longest line a trace may have. Real ones stay below 5 KiB (a `print` event holds a page).
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// One line without its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// Its number, from 1.
    pub(crate) number: usize,
    /// Its bytes without the line feed and a carriage return before it.
    pub(crate) bytes: &'a [u8],
    /// Whether a line feed ended it; false only for the last line of a file.
    pub(crate) ended: bool,
}

/// Hands out lines from one buffer that is used again and again.
pub(crate) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    number: usize,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, buffer: Vec::with_capacity(512), number: 0 }
    }
    /// Number of lines handed out.
    pub(crate) fn number(&self) -> usize {
        self.number
    }
    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// A line longer than [`MAX_LINE_BYTES`], noticed before more than that is kept; a failing
    /// input.
    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>, Located> {
        self.buffer.clear();
        let mut ended = false;
        while !ended {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let message = format!("cannot read on: {error}");
                    return Err(Located::at(self.number + 1, self.buffer.len() + 1, message));
                }
            };
            if chunk.is_empty() {
                break;
            }
            let room = &chunk[..chunk.len().min(MAX_LINE_BYTES + 2 - self.buffer.len())];
            let line_end = room.iter().position(|b| *b == b'\n');
            let taken = line_end.map_or(room.len(), |end| end + 1);
            self.buffer.extend_from_slice(&room[..line_end.unwrap_or(taken)]);
            ended = line_end.is_some();
            self.input.consume(taken);
            if self.buffer.len() > MAX_LINE_BYTES + 1 {
                break;
            }
        }
        if self.buffer.is_empty() && !ended {
            return Ok(None);
        }
        self.number += 1;
        if ended && self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        if self.buffer.len() > MAX_LINE_BYTES {
            let message = format!("the line is longer than {MAX_LINE_BYTES} bytes");
            return Err(Located::at(self.number, MAX_LINE_BYTES + 1, message)
                .hint("no trace event is that long; is this a text trace?"));
        }
        Ok(Some(Line { number: self.number, bytes: &self.buffer, ended }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &[u8], expect: &[(&str, bool)]) {
        for capacity in [1, 3, 4096] {
            let mut lines = Lines::new(std::io::BufReader::with_capacity(capacity, input));
            let mut seen = Vec::new();
            while let Some(line) = lines.next().expect("readable") {
                seen.push((String::from_utf8_lossy(line.bytes).into_owned(), line.ended));
            }
            let expect: Vec<_> = expect.iter().map(|(s, e)| (s.to_string(), *e)).collect();
            assert_eq!(seen, expect, "buffer of {capacity}");
        }
    }

    #[test]
    fn lines_end_with_line_feed_or_both_or_nothing() {
        check(b"", &[]);
        check(b"\n", &[("", true)]);
        check(b"a\r\nb\n\nc", &[("a", true), ("b", true), ("", true), ("c", false)]);
        check(b"a\rb\n", &[("a\rb", true)]);
    }

    #[test]
    fn line_too_long_is_refused_without_reading_it_all() {
        struct Endless(u64);
        impl std::io::Read for Endless {
            fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
                self.0 += buf.len() as u64;
                buf.fill(b'x');
                Ok(buf.len())
            }
        }
        let mut lines = Lines::new(std::io::BufReader::new(Endless(0)));
        let error = lines.next().expect_err("endless line");
        assert_eq!(error.at.map(|p| (p.line, p.column)), Some((1, MAX_LINE_BYTES + 1)));
        assert!(lines.input.get_ref().0 <= 2 * MAX_LINE_BYTES as u64);
        assert!(lines.buffer.capacity() <= 4 * MAX_LINE_BYTES);
    }

    #[test]
    fn line_at_the_limit_passes() {
        let mut text = vec![b'x'; MAX_LINE_BYTES];
        text.extend_from_slice(b"\r\ny\n");
        let mut lines = Lines::new(&text[..]);
        assert_eq!(lines.next().expect("fits").map(|l| l.bytes.len()), Some(MAX_LINE_BYTES));
        assert_eq!(lines.next().expect("fits").map(|l| l.bytes.len()), Some(1));
        text[MAX_LINE_BYTES] = b'x';
        assert!(Lines::new(&text[..]).next().is_err());
    }
}
