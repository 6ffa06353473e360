// SPDX-License-Identifier: GPL-2.0-only
//! The header of a file: which run it records.

/// Keys and values in the order they were put in.
///
/// A host writes at least `version`, `policy`, `variant`, `seed`, `machine`, `hz`, `workload` and
/// `digest`; readers ignore keys they do not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SltHeader {
    entries: Vec<(String, String)>,
}

impl SltHeader {
    /// An empty header.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds `key = value`.
    ///
    /// # Panics
    /// When `key` is empty or holds `=`, a backslash or a line feed.
    pub fn push(&mut self, key: &str, value: &str) {
        assert!(!key.is_empty() && !key.contains(['=', '\\', '\n']), "header key {key:?}");
        self.entries.push((key.to_string(), value.to_string()));
    }
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }
    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// The run in one sentence.
    pub(super) fn origin(&self) -> String {
        let policy = self.get("policy").unwrap_or("an unknown policy");
        let seed = self.get("seed").unwrap_or("unknown");
        format!("a simulated run of {policy} with seed {seed}")
    }

    /// One line per entry, `key=value`; in values `\n` stands for a line feed, `\\` for a
    /// backslash.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.entries {
            text.push_str(key);
            text.push('=');
            text.push_str(&value.replace('\\', "\\\\").replace('\n', "\\n"));
            text.push('\n');
        }
        text
    }
    /// Reads [`SltHeader::to_text`] back; the fault says which line is wrong.
    pub(super) fn from_text(text: &str) -> Result<Self, String> {
        let mut header = Self::new();
        for line in text.split_terminator('\n') {
            let wrong = || format!("the header line `{}` is not `key=value`", line.escape_debug());
            let (key, value) = line.split_once('=').ok_or_else(wrong)?;
            if key.is_empty() || key.contains('\\') {
                return Err(wrong());
            }
            header.push(key, &unescape(value).ok_or_else(wrong)?);
        }
        Ok(header)
    }
}

fn unescape(value: &str) -> Option<String> {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        text.push(match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                '\\' => '\\',
                _ => return None,
            },
            c => c,
        });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trips() {
        let mut header = SltHeader::new();
        header.push("policy", "eevdf@6.12");
        header.push("command", "a = b\\n\nc");
        header.push("empty", "");
        assert_eq!(SltHeader::from_text(&header.to_text()), Ok(header.clone()));
        assert_eq!(header.get("policy"), Some("eevdf@6.12"));
        assert_eq!(header.get("none"), None);
    }

    #[test]
    fn header_malformed_is_refused() {
        for text in ["policy\n", "=x\n", "a=\\x\n", "a=\\\n", "a\\b=c\n"] {
            assert!(SltHeader::from_text(text).is_err(), "{text:?}");
        }
    }
}
