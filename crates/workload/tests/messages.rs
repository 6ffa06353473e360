// SPDX-License-Identifier: GPL-2.0-only
//! What users read when something is wrong.

mod common;

use std::fmt::Write as _;

use common::load;
use schedlab_workload::{LoadOptions, load_bytes, resolve};

/// The message for a text that must not be read.
fn refused(file: &str, text: &str) -> String {
    load(file, text).map_or_else(|error| error.to_string(), |_| "was read".to_string())
}

/// Messages under headings.
fn listing(cases: &[(&str, String)]) -> String {
    let mut out = String::new();
    for (what, message) in cases {
        let _ = writeln!(out, "{what}\n  {message}");
    }
    out
}

#[test]
fn messages_for_broken_files() {
    let toml = |task: &str| format!("[workload]\nname = \"x\"\n\n[[task]]\nname = \"t\"\n{task}\n");
    let json = |task: &str| format!("{{\n  \"tasks\" : {{\n    \"t\" : {{ {task} }}\n  }}\n}}\n");
    let text = listing(&[
        ("an empty file", refused("x.toml", "")),
        ("a file of blanks", refused("x.json", " \n\t\n")),
        (
            "bytes that are no text",
            load_bytes("x.toml", vec![b'a', b'\n', b'b', 0xff], &[], &LoadOptions::default())
                .map_or_else(|e| e.to_string(), |_| String::new()),
        ),
        (
            "a truncated JSON file",
            refused("x.json", "{\n  \"tasks\" : {\n    \"t\" : { \"run\" : 10,"),
        ),
        (
            "a JSON file truncated in a string",
            refused("x.json", "{\n  \"tasks\" : {\n    \"t\" : { \"ru"),
        ),
        (
            "a truncated TOML file",
            refused(
                "x.toml",
                "[workload]\nname = \"x\"\n[[task]]\nname = \"t\"\ndo = [\"run 1ms\",\n",
            ),
        ),
        (
            "a negative duration, TOML",
            refused("x.toml", &toml("do = [\"run 1ms\", \"sleep -5ms\"]")),
        ),
        ("a negative duration, rt-app", refused("x.json", &json("\"run\" : 1, \"sleep\" : -5"))),
        ("a duration without unit", refused("x.toml", &toml("do = [\"run 5\"]"))),
        ("an unknown operation", refused("x.toml", &toml("do = [\"run 1ms\", \"slep 5ms\"]"))),
        ("an unknown key", refused("x.toml", &toml("prority = 3\ndo = [\"run 1ms\"]"))),
        ("an undeclared object", refused("x.toml", &toml("do = [\"lock mutex\"]"))),
        ("an unknown rt-app key", refused("x.json", &json("\"run\" : 1, \"priorty\" : -5"))),
        ("text in place of a number, rt-app", refused("x.json", &json("\"run\" : \"10\""))),
        ("a task that never advances", refused("x.toml", &toml("loop = [\"mark m\"]"))),
        ("a period without duration", refused("x.toml", &toml("do = [\"period p begin\"]"))),
        (
            "a table without its marks",
            refused("x.toml", "[workload]\nname = \"x\"\ntable = \"interbench\"\n"),
        ),
        ("an unknown table", refused("x.toml", "[workload]\nname = \"x\"\ntable = \"top\"\n")),
        (
            "a matrix of a parameter that is not there",
            refused(
                "x.toml",
                "[workload]\nname = \"x\"\n[[matrix]]\nparam = \"p\"\nvalues = [\"a\"]\n",
            ),
        ),
        ("a fragment for merge.py", refused("x.json", "{ \"global\" : { \"duration\" : 5 } }")),
        (
            "a policy nobody simulates",
            refused("x.json", &json("\"policy\" : \"SCHED_DEADLINE\", \"run\" : 1")),
        ),
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn messages_for_wrong_names() {
    let failed = |name: &str, set: &[(&str, &str)]| {
        let set: Vec<(String, String)> =
            set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let loaded = resolve(name, &set, &LoadOptions::default());
        loaded.map_or_else(|error| error.to_string(), |_| "was read".to_string())
    };
    let text = listing(&[
        ("an unknown built-in", failed("audio-vs-compiel", &[])),
        ("an unknown built-in, nothing near", failed("quake", &[])),
        ("an unknown parameter", failed("hogs", &[("hog", "3")])),
        ("a parameter of the wrong type", failed("hogs", &[("hogs", "many")])),
        ("a duration without unit", failed("hogs", &[("runtime", "10")])),
        ("a negative number of tasks", failed("hogs", &[("hogs", "-1")])),
        ("a priority out of range", failed("rt-pair", &[("high", "100")])),
        ("an unknown combination", failed("interbench-audio-bunr", &[])),
        ("a value the matrix does not have", failed("interbench", &[("bench", "foo")])),
        ("a combination that is left out", failed("interbench-video-video", &[])),
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn warnings_for_rtapp_files() {
    let text = "{\n  \"tasks\" : {\n    \"a\" : { \"loop\" : 1, \"run\" : 1, \"sleep\" : 2, \"run\" : 3, \"suspend\" },\n\
                \x20   \"b\" : { \"resume\" : \"a\", \"run\" : 1 }\n  },\n  \"global\" : { \"frag\" : 1 }\n}\n";
    let loaded = load("x.json", text).unwrap_or_else(|error| panic!("{error}"));
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(warnings.join("\n"));
}

#[test]
fn messages_for_cpus_beyond_the_machine() {
    let json = "{\n  \"tasks\" : {\n    \"t\" : {\n      \"cpus\" : [0, 7],\n      \"run\" : 10\n    }\n  }\n}\n";
    let toml =
        "[workload]\nname = \"x\"\n\n[[task]]\nname = \"t\"\nstart_cpu = 4\ndo = [\"run 1ms\"]\n";
    let refused = |file: &str, text: &str| {
        let loaded = load(file, text).unwrap_or_else(|error| panic!("{error}"));
        loaded.check_machine(4).map_or_else(|error| error.to_string(), |()| "fits".to_string())
    };
    let text = listing(&[("rt-app", refused("x.json", json)), ("TOML", refused("x.toml", toml))]);
    insta::assert_snapshot!(text);
}

/// Fifty million bytes in one line, of every kind that could keep a parser busy.
#[test]
fn messages_for_a_line_of_garbage() {
    let pieces = ["x", "[", "{\"a\":", "\"", "{\"a\",", "µ", " 1", "/*"];
    let mut seen: Vec<String> = Vec::new();
    for file in ["x.toml", "x.json"] {
        for piece in pieces {
            let text = piece.repeat(50_000_000 / piece.len());
            let message = refused(file, &text);
            if !seen.contains(&message) {
                seen.push(message);
            }
        }
    }
    insta::assert_snapshot!(seen.join("\n"));
}

/// Three million bytes in one line are left to the parsers.
#[test]
fn messages_for_a_shorter_line_of_garbage() {
    let mut cases = Vec::new();
    for piece in ["x", "[", "{\"a\":", "\"", "{\"a\",", "a = 1 ", "{", "'''"] {
        let text = piece.repeat(3_000_000 / piece.len());
        for file in ["x.toml", "x.json"] {
            let message = refused(file, &text);
            assert!(message.len() < 300, "{} bytes of message", message.len());
            cases.push((piece, message));
        }
    }
    insta::assert_snapshot!(listing(&cases));
}
