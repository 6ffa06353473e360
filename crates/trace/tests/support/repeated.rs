// SPDX-License-Identifier: GPL-2.0-only
//! A text of any length: a capture again and again, each time later.

use std::io::Read;

/// The text of a capture, read as often as is needed to fill a length; times move on.
pub(crate) struct Repeated {
    /// Lines up to the seconds, the seconds, and the rest.
    lines: Vec<(Vec<u8>, u64, Vec<u8>)>,
    /// Seconds by which a copy is later than the one before.
    step: u64,
    copy: u64,
    next: usize,
    left: u64,
    ready: Vec<u8>,
    taken: usize,
}

impl Repeated {
    /// At least `length` bytes of copies of `text`, whose times have nine decimals.
    pub(crate) fn new(text: &[u8], length: u64) -> Self {
        let mut lines = Vec::new();
        for line in text.split_inclusive(|b| *b == b'\n') {
            let is_time =
                |at: usize| line[at..].starts_with(b"] ") || line[at..].starts_with(b"]  ");
            let close = (0..line.len()).find(|at| is_time(*at)).expect("a CPU");
            let rest = &line[close + 1..];
            let start = close + 1 + rest.iter().position(u8::is_ascii_digit).expect("a time");
            let digits = line[start..].iter().take_while(|b| b.is_ascii_digit()).count();
            let seconds = std::str::from_utf8(&line[start..start + digits]).expect("digits");
            lines.push((
                line[..start].to_vec(),
                seconds.parse().expect("a number"),
                line[start + digits..].to_vec(),
            ));
        }
        let seconds = |line: Option<&(Vec<u8>, u64, Vec<u8>)>| line.map_or(0, |line| line.1);
        let step = seconds(lines.last()) - seconds(lines.first()) + 1;
        Self { lines, step, copy: 0, next: 0, left: length, ready: Vec::new(), taken: 0 }
    }
}

impl Read for Repeated {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.taken == self.ready.len() {
            (self.taken, self.ready) = (0, Vec::with_capacity(1 << 16));
            while self.ready.len() < 60_000 && (self.left > 0 || self.next != 0) {
                let (head, seconds, rest) = &self.lines[self.next];
                let before = self.ready.len();
                self.ready.extend_from_slice(head);
                let seconds = seconds + self.copy * self.step;
                self.ready.extend_from_slice(seconds.to_string().as_bytes());
                self.ready.extend_from_slice(rest);
                self.left = self.left.saturating_sub((self.ready.len() - before) as u64);
                self.next += 1;
                if self.next == self.lines.len() {
                    (self.next, self.copy) = (0, self.copy + 1);
                }
                if self.left == 0 {
                    break;
                }
            }
        }
        if self.left == 0 {
            self.next = 0;
        }
        let n = out.len().min(self.ready.len() - self.taken);
        out[..n].copy_from_slice(&self.ready[self.taken..self.taken + n]);
        self.taken += n;
        Ok(n)
    }
}
