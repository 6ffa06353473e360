// SPDX-License-Identifier: GPL-2.0-only
//! rt-app's relaxed JSON as a tree with places.
//!
//! `jsonc-parser` does the parsing. Before it, one pass over the tokens bounds depth and size,
//! finds the end of the root object, and completes keys without a value, which `workgen` allows
//! (`"suspend",`), so that the parser sees plain JSON.

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::tokens::Token;
use jsonc_parser::{
    CollectOptions, ParseOptions, ParseStringErrorKind, Scanner, ScannerOptions, parse_to_ast,
};
use schedlab_units::Located;

/// Deepest nesting; rt-app's grammar needs five levels.
const MAX_DEPTH: usize = 64;
/// Most tokens of a file.
const MAX_TOKENS: usize = 8 << 20;
/// What completes a key without value.
const NO_VALUE: &str = ":null";

/// A value and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) json: Json,
}

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Flag(bool),
    /// A number as it is written.
    Number(String),
    Text(String),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

impl Json {
    /// The kind of value in words.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Flag(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) key: String,
    /// Where the key begins.
    pub(super) at: usize,
    pub(super) value: Node,
    /// Whether the value was left out.
    pub(super) bare: bool,
}

/// A parsed text and what is unusual about it.
pub(super) struct Document {
    pub(super) root: Node,
    pub(super) warnings: Vec<Located>,
}

const SCAN: ScannerOptions = ScannerOptions {
    allow_single_quoted_strings: true,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const PARSE: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: true,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Parses a text whose root is an object.
pub(super) fn parse(text: &str) -> Result<Document, Located> {
    let survey = survey(text)?;
    let mut completed = String::new();
    let mut rest = 0;
    for at in &survey.bare {
        completed.push_str(&text[rest..*at]);
        completed.push_str(NO_VALUE);
        rest = *at;
    }
    completed.push_str(&text[rest..survey.end]);

    let map = Map { bare: &survey.bare };
    let collect = CollectOptions::default();
    let parsed = parse_to_ast(&completed, &collect, &PARSE)
        .map_err(|error| explain(text, &error, map.back(error.range().start)))?;
    let Some(value) = parsed.value else {
        return Err(Located::whole("the file has no JSON value"));
    };
    let root = map.node(value);
    if !matches!(root.json, Json::Object(_)) {
        let message = format!("the root is {}, not an object", root.json.kind());
        return Err(Located::at_offset(text, root.at, message));
    }
    Ok(Document { root, warnings: survey.warnings })
}

/// What the pass over the tokens finds.
struct Survey {
    /// Ends of the keys without value.
    bare: Vec<usize>,
    /// End of the root value.
    end: usize,
    warnings: Vec<Located>,
}

fn survey(text: &str) -> Result<Survey, Located> {
    let mut scanner = Scanner::new(text, &SCAN);
    let mut survey = Survey { bare: Vec::new(), end: text.len(), warnings: Vec::new() };
    let mut open: Vec<(bool, usize)> = Vec::new();
    let mut key_next = false;
    let mut key_end: Option<usize> = None;
    let mut n_tokens = 0usize;
    while let Some(token) =
        scanner.scan().map_err(|error| explain(text, &error, error.range().start))?
    {
        let at = scanner.token_start();
        n_tokens += 1;
        if n_tokens > MAX_TOKENS {
            return Err(Located::at_offset(text, at, "the file is too large for a workload"));
        }
        if matches!(token, Token::CommentLine(_) | Token::CommentBlock(_)) {
            continue;
        }
        if let Some(end) = key_end.take()
            && matches!(token, Token::Comma | Token::CloseBrace)
        {
            survey.bare.push(end);
        }
        if matches!(token, Token::String(_)) && text[at..].starts_with('\'') {
            note_single_quotes(text, at, &mut survey.warnings);
        }
        let was_key = std::mem::replace(&mut key_next, false);
        match token {
            Token::OpenBrace | Token::OpenBracket => {
                key_next = matches!(token, Token::OpenBrace);
                open.push((key_next, at));
                if open.len() > MAX_DEPTH {
                    let message = format!("the values are nested more than {MAX_DEPTH} deep");
                    return Err(Located::at_offset(text, at, message));
                }
            }
            Token::CloseBrace | Token::CloseBracket => {
                open.pop();
                if open.is_empty() {
                    survey.end = scanner.token_end();
                    note_rest(text, scanner, &mut survey.warnings);
                    return Ok(survey);
                }
            }
            Token::Comma => key_next = open.last().is_some_and(|(object, _)| *object),
            Token::String(_) if was_key => key_end = Some(scanner.token_end()),
            // The root is no object or array: the parser says what is wrong.
            _ if open.is_empty() => return Ok(survey),
            _ => {}
        }
    }
    match open.last() {
        Some((object, at)) => {
            let kind = if *object { "object" } else { "array" };
            let opened = schedlab_units::Position::of_offset(text, *at);
            let message = format!("the text ends inside the {kind} that was opened at {opened}");
            Err(Located::at_offset(text, text.trim_end().len(), message)
                .hint("the file seems to be cut off"))
        }
        None => Ok(survey),
    }
}

fn note_single_quotes(text: &str, at: usize, warnings: &mut Vec<Located>) {
    const MESSAGE: &str = "strings in single quotes are not JSON; rt-app reads them, others do not";
    if !warnings.iter().any(|warning| warning.message == MESSAGE) {
        warnings.push(Located::at_offset(text, at, MESSAGE));
    }
}

fn note_rest(text: &str, mut scanner: Scanner<'_>, warnings: &mut Vec<Located>) {
    loop {
        match scanner.scan() {
            Ok(Some(Token::CommentLine(_) | Token::CommentBlock(_))) => {}
            Ok(None) => return,
            Ok(Some(_)) | Err(_) => {
                let message = "the text after the root object is ignored, as rt-app does";
                warnings.push(Located::at_offset(text, scanner.token_start(), message));
                return;
            }
        }
    }
}

/// From places in the completed text to places in the original.
struct Map<'m> {
    bare: &'m [usize],
}

impl Map<'_> {
    fn back(&self, offset: usize) -> usize {
        // The end of key k lies k insertions further back in the completed text, so those ends
        // rise with k and a binary search finds how many insertions lie before `offset`.
        let (mut low, mut high) = (0, self.bare.len());
        while low < high {
            let k = (low + high) / 2;
            if self.bare[k] + k * NO_VALUE.len() < offset {
                low = k + 1;
            } else {
                high = k;
            }
        }
        offset - (low * NO_VALUE.len()).min(offset)
    }

    fn node(&self, value: Value<'_>) -> Node {
        let at = self.back(value.range().start);
        let json = match value {
            Value::NullKeyword(_) => Json::Null,
            Value::BooleanLit(literal) => Json::Flag(literal.value),
            Value::NumberLit(literal) => Json::Number(literal.value.to_string()),
            Value::StringLit(literal) => Json::Text(literal.value.into_owned()),
            Value::Array(array) => {
                Json::Array(array.elements.into_iter().map(|value| self.node(value)).collect())
            }
            Value::Object(object) => Json::Object(
                object
                    .properties
                    .into_iter()
                    .map(|property| {
                        let end = property.name.range().end;
                        let bare = self.bare.binary_search(&self.back(end)).is_ok()
                            && property.value.range().start == end + 1;
                        Member {
                            at: self.back(property.name.range().start),
                            value: self.node(property.value),
                            key: property.name.into_string(),
                            bare,
                        }
                    })
                    .collect(),
            ),
        };
        Node { at, json }
    }
}

/// A fault of the parser in our words.
fn explain(text: &str, error: &ParseError, at: usize) -> Located {
    use ParseErrorKind as E;
    let (message, hint) = match error.kind() {
        E::UnexpectedWord if at == 0 || text[..at].trim().is_empty() => {
            ("a workload in rt-app's grammar begins with `{`".to_string(), "is this a JSON file?")
        }
        E::UnexpectedWord => ("this word is neither a value nor in quotes".to_string(), ""),
        E::ExpectedStringObjectProperty => {
            ("a key must be in double quotes".to_string(), "write \"key\" : value")
        }
        E::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            ("this string has no end".to_string(), "the file seems to be cut off")
        }
        E::UnterminatedCommentBlock => ("this comment has no end".to_string(), "close it by */"),
        E::ExpectedComma => ("a comma is missing before the next key".to_string(), ""),
        E::ExpectedColonAfterObjectKey => ("a `:` is missing after this key".to_string(), ""),
        kind => {
            let words = kind.to_string();
            let mut chars = words.chars();
            let first = chars.next().map(|c| c.to_ascii_lowercase());
            (first.into_iter().chain(chars).collect(), "")
        }
    };
    Located::at_offset(text, at, format!("this is not JSON: {message}")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Vec<(String, usize, Json, bool)> {
        let document = parse(text).expect("legal");
        let Json::Object(members) = document.root.json else { panic!("an object") };
        members.into_iter().map(|m| (m.key, m.at, m.value.json, m.bare)).collect()
    }

    #[test]
    fn keys_without_value_are_completed_and_keep_their_places() {
        let seen = members(r#"{ "suspend", "a" : null, "suspend" /* x */, "b":1, "suspend" }"#);
        let shape: Vec<(&str, usize, bool)> =
            seen.iter().map(|(key, at, _, bare)| (key.as_str(), *at, *bare)).collect();
        assert_eq!(
            shape,
            [
                ("suspend", 2, true),
                ("a", 13, false),
                ("suspend", 25, true),
                ("b", 44, false),
                ("suspend", 51, true)
            ]
        );
    }

    #[test]
    fn relaxed_forms_are_read_and_noted() {
        let document = parse("{'a': [1, 2,], // c\n} tail").expect("legal");
        let notes: Vec<String> = document.warnings.iter().map(|w| w.to_string()).collect();
        assert!(notes[0].starts_with("1:2: strings in single quotes"), "{notes:?}");
        assert!(notes[1].starts_with("2:3: the text after the root"), "{notes:?}");
        assert_eq!(notes.len(), 2);
    }

    #[test]
    fn malformed_text_points_at_the_fault() {
        for (text, says) in [
            ("{ a: 1 }", "1:3: this is not JSON: a key must be in double quotes"),
            ("{ \"a\": 1 \"b\": 2 }", "1:9: this is not JSON: a comma is missing"),
            ("{ \"a\": [1, 2", "1:13: the text ends inside the array that was opened at 1:8"),
            ("{ \"a\": \"xyz", "1:8: this is not JSON: this string has no end"),
            ("hello", "1:1: this is not JSON: a workload in rt-app's grammar begins with `{`"),
            ("[]", "1:1: the root is an array"),
            ("{ \"a\": 0x10 }", "1:8: this is not JSON: hexadecimal"),
            ("{ \"a\": /* ", "1:8: this is not JSON: this comment has no end"),
            ("/* only */", "the file has no JSON value"),
            ("{ \"suspend\", a: 1 }", "1:14: this is not JSON: a key must be"),
        ] {
            let Err(error) = parse(text) else { panic!("{text} was read") };
            assert!(error.to_string().contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_before_parsing() {
        for bracket in ["[", "{\"a\":"] {
            let text = format!("{{\"a\":{}", bracket.repeat(1_000_000));
            let Err(error) = parse(&text) else { panic!("deep text was read") };
            assert!(error.message.contains("more than 64 deep"), "{error}");
        }
    }
}
