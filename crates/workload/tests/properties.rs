// SPDX-License-Identifier: GPL-2.0-only
//! What holds for every workload and every text.

mod common;
#[path = "common/generate.rs"]
mod generate;
#[path = "common/step.rs"]
mod step;

use std::path::PathBuf;

use common::load;
use proptest::prelude::*;
use schedlab_workload::{
    LoadErrorKind, LoadOptions, Loaded, RtAppOptions, builtins, digest, load_bytes, load_text,
    to_toml, validate,
};
use step::step_through;

/// A text must be read or refused; what is read must be legal, run, and be written and read back.
fn must_be_read_or_refused(file: &str, text: &str) {
    for strict in [false, true] {
        let options = LoadOptions { rtapp: RtAppOptions { strict } };
        match load_text(file, text.to_string(), &[], &options) {
            Ok(Loaded { workload, warnings, .. }) => {
                assert_eq!(validate(&workload), Ok(()));
                assert!(warnings.iter().all(|warning| !warning.message.is_empty()));
                step_through(&workload);
                let again = load("again.toml", &to_toml(&workload)).expect("the resolved form");
                assert_eq!(again.workload, workload);
            }
            Err(error) => {
                assert_eq!(error.kind, LoadErrorKind::Input);
                assert!(!error.fault.message.is_empty());
                let lines = text.lines().count().max(1) + 1;
                assert!(error.fault.at.is_none_or(|at| at.line <= lines), "{error}");
            }
        }
    }
}

const RTAPP: &str = r#"{ /* every kind of event */
    "tasks" : {
        "a" : { "instance" : 2, "priority" : -5, "cpus" : [0, 1], "delay" : 7, "phases" : {
            "p" : { "loop" : 3, "run" : 100, "runtime" : 5, "sleep" : 20, "yield" : "" },
            "q" : { "policy" : "SCHED_FIFO", "lock" : "m", "wait" : { "ref" : "c", "mutex" : "m" },
                    "sync" : { "ref" : "c", "mutex" : "m" }, "unlock" : "m", "signal" : "c", "broad" : "c",
                    "timer" : { "ref" : "unique", "period" : 1000, "mode" : "absolute" } } } },
        "b" : { "loop" : 2, "suspend", "resume" : "a", "barrier" : "x", "fork" : "c", "run" : 1, "run" : 2,
                "sem_post" : "s", "sem_wait" : "s", "mem" : 1000, "iorun" : 5000,
                "memrun" : { "type" : "chase", "size" : 4096, "count" : 10, "stride" : 64, "pattern" : "random" } },
        "c" : { "instance" : 0, "loop" : 1, "run" : 10 },
        "d" : { "exec" : 100, "period" : 1000, "lock_order" : ["r"], "resources" : { "r" : { "duration" : 5 } } },
    },
    "resources" : { "r" : { "type" : "mutex" } },
    "global" : { "duration" : 2, "calibration" : "CPU0", "default_policy" : "SCHED_OTHER" }
}"#;

/// The texts that mutations start from.
fn seeds() -> Vec<(&'static str, &'static str)> {
    let mut seeds: Vec<(&str, &str)> =
        builtins().iter().map(|builtin| ("seed.toml", builtin.text)).collect();
    seeds.push(("seed.json", RTAPP));
    let every = include_str!("../../../docs/workload-format.md");
    seeds.extend(
        every
            .split("```toml\n")
            .skip(1)
            .map(|rest| ("seed.toml", rest.split("```").next().unwrap_or_default())),
    );
    seeds
}

/// A change to a text.
#[derive(Clone, Debug)]
enum Mutation {
    Cut(usize, usize),
    Repeat(usize, usize),
    Insert(usize, String),
    Truncate(usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let place = 0usize..10_000;
    let piece = prop_oneof![
        "[ -~]{1,3}",
        any::<char>().prop_map(|c| c.to_string()),
        prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            "\"",
            "'",
            "\\",
            ",",
            ":",
            "=",
            "$",
            "{n}",
            "-1",
            "99999999999999999999",
            "1e9",
            "0",
            "null",
            "true",
            "\n",
            "forever",
            "uniform(1ms, 2ms)",
            "18446744073709551615",
            "µs",
            "\u{0}",
            "/*",
            "#",
            "[[task]]",
            "\"lock\"",
            "..",
            "1152921504606846977ns",
        ])
        .prop_map(str::to_string),
    ];
    prop_oneof![
        (place.clone(), 1usize..40).prop_map(|(at, len)| Mutation::Cut(at, len)),
        (place.clone(), 1usize..200).prop_map(|(at, len)| Mutation::Repeat(at, len)),
        (place.clone(), piece).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        place.prop_map(Mutation::Truncate),
    ]
}

fn apply(text: &str, mutation: &Mutation) -> String {
    let chars: Vec<char> = text.chars().collect();
    let clip = |at: usize| at % (chars.len() + 1);
    let join = |parts: &[&[char]]| parts.concat().into_iter().collect::<String>();
    match mutation {
        Mutation::Cut(at, len) => {
            let end = (clip(*at) + len).min(chars.len());
            join(&[&chars[..clip(*at)], &chars[end..]])
        }
        Mutation::Repeat(at, len) => {
            let end = (clip(*at) + len).min(chars.len());
            join(&[&chars[..end], &chars[clip(*at)..]])
        }
        Mutation::Insert(at, piece) => {
            let piece: Vec<char> = piece.chars().collect();
            join(&[&chars[..clip(*at)], &piece, &chars[clip(*at)..]])
        }
        Mutation::Truncate(at) => join(&[&chars[..clip(*at)]]),
    }
}

proptest! {
    #[test]
    fn workload_survives_the_round_trip_through_text(workload in generate::workload()) {
        prop_assert_eq!(validate(&workload), Ok(()));
        let text = to_toml(&workload);
        let loaded = load("t.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        prop_assert_eq!(&loaded.workload, &workload);
        prop_assert_eq!(loaded.digest, digest(&workload));
        prop_assert_eq!(to_toml(&loaded.workload), text);
        step_through(&workload);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        for file in ["t.toml", "t.json", "-"] {
            must_be_read_or_refused(file, &text);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = load_bytes("-", bytes, &[], &LoadOptions::default());
    }

    #[test]
    fn damaged_file_is_read_or_refused(
        seed in prop::sample::select(seeds()),
        mutations in prop::collection::vec(mutation(), 1..4),
    ) {
        let (file, text) = seed;
        let text = mutations.iter().fold(text.to_string(), |text, change| apply(&text, change));
        must_be_read_or_refused(file, &text);
    }
}

/// Texts that were worth keeping; those whose name begins with `ok` are legal, the others are not.
#[test]
fn corpus_is_read_or_refused_as_its_names_say() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut n = 0;
    for folder in ["toml", "rtapp"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("the corpus") {
            let path = entry.expect("readable").path();
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("text");
            let legal = load(&name, &text);
            assert_eq!(legal.is_ok(), name.starts_with("ok"), "{name}: {:?}", legal.err());
            must_be_read_or_refused(&name, &text);
            n += 1;
        }
    }
    assert!(n >= 20, "only {n} files");
}
