// SPDX-License-Identifier: GPL-2.0-only
//! What the keys and events of rt-app's grammar become, and what is refused.
//!
//! Source: spec formats-and-ecosystem §1.

mod common;
#[path = "common/operations.rs"]
mod operations;
#[path = "common/step.rs"]
mod step;

use common::load;
use operations::operations;
use schedlab_units::{CpuSet, Nanos};
use schedlab_workload::{
    LoadErrorKind, LoadOptions, Loaded, RtAppOptions, Workload, load_text, to_toml,
};
use step::step_through;

fn loaded(text: &str) -> Loaded {
    let loaded = load("t.json", text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    step_through(&loaded.workload);
    let again = load("again.toml", &to_toml(&loaded.workload)).expect("the resolved form");
    assert_eq!(again.workload, loaded.workload, "{text}");
    loaded
}

fn workload(text: &str) -> Workload {
    loaded(text).workload
}

fn strictly(text: &str) -> Result<Loaded, schedlab_workload::LoadError> {
    let options = LoadOptions { rtapp: RtAppOptions { strict: true } };
    load_text("t.json", text.to_string(), &[], &options)
}

/// A file with one task, `t`, that does `body` once.
fn task(body: &str) -> String {
    format!(r#"{{ "tasks" : {{ "t" : {{ "loop" : 1, {body} }} }} }}"#)
}

/// The operations of one task that does `body` once.
fn ops(body: &str) -> Vec<String> {
    operations(&workload(&task(body)), 0)
}

fn error(text: &str) -> String {
    let error = load("t.json", text).expect_err(text);
    assert_eq!(error.kind, LoadErrorKind::Input, "{error}");
    error.to_string()
}

fn warnings(text: &str) -> Vec<String> {
    loaded(text).warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn events_become_operations() {
    let cases: [(&str, &[&str]); 19] = [
        (r#""run" : 1500"#, &["run 1.5ms"]),
        (r#""run_first" : 1, "run0" : 2"#, &["run 1us", "run 2us"]),
        (r#""runtime1" : 1000"#, &["spin 1ms"]),
        (r#""sleepy" : 8000"#, &["sleep 8ms"]),
        (r#""yield" : """#, &["yield"]),
        (r#""lock" : "m", "unlock" : "m""#, &["lock m", "unlock m"]),
        (
            r#""lock" : "m", "wait" : { "ref" : "q", "mutex" : "m" }, "unlock" : "m""#,
            &["lock m", "cond-wait q m", "unlock m"],
        ),
        (
            r#""lock" : "m", "sync" : { "ref" : "q", "mutex" : "m" }, "unlock" : "m""#,
            &["lock m", "cond-signal q", "cond-wait q m", "unlock m"],
        ),
        (r#""signal" : "q", "broad" : "q""#, &["cond-signal q", "cond-broadcast q"]),
        (r#""suspend" : """#, &["lock t", "cond-wait t t", "unlock t"]),
        (r#""suspend" : "t""#, &["lock t", "cond-wait t t", "unlock t"]),
        (r#""resume" : "x""#, &["lock x", "cond-broadcast x", "unlock x"]),
        (r#""sem_post" : "s", "sem_wait" : "s""#, &["sem-post s", "sem-wait s"]),
        (r#""barrier" : "b""#, &["barrier b"]),
        (r#""fork" : "t""#, &["fork t thread"]),
        (r#""mem" : 20000"#, &["run 2us"]),
        (r#""iorun" : 4194304"#, &["kernel 500ns"]),
        (
            r#""iorun" : 8388609"#,
            &["counter 0 = 2", "L1:", "kernel 500ns", "dec-jump 0 L1", "kernel 500ns"],
        ),
        (
            r#""memrun" : { "type" : "read", "size" : 4096, "count" : 1000 }, "memrun1" : { "type" : "chase", "size" : 100000000, "count" : 10 }"#,
            &["run 1us", "run 900ns"],
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(ops(body), expected, "{body}");
    }
}

#[test]
fn run_is_whole_loops_of_the_given_calibration() {
    let run = |calibration: &str, us: u64| {
        let text = format!(
            r#"{{ "tasks" : {{ "t" : {{ "loop" : 1, "run" : {us} }} }}, "global" : {{ "calibration" : {calibration} }} }}"#
        );
        operations(&workload(&text), 0).remove(0)
    };
    assert_eq!(run("\"CPU0\"", 1_000), "run 1ms");
    // floor(1000 · 1000 / 128) = 7812 loops of 128 ns.
    assert_eq!(run("128", 1_000), "run 999.936us");
    // Pieces of a second: 2 · floor(10^9 / 300) · 300 and floor(500 · 1000 / 300) · 300.
    assert_eq!(run("300", 2_000_500), "run 2.0004996s");
    assert_eq!(run("2000000", 1_000), "run 0ns");
    assert_eq!(run("0", 1_000), "run 1ms");
}

#[test]
fn loops_count_as_rtapp_counts() {
    let phases = |outer: &str, inner: &str| {
        format!(
            r#"{{ "tasks" : {{ "t" : {{ {outer} "phases" : {{ "a" : {{ {inner} "run" : 1 }}, "b" : {{ "run" : 2 }} }} }} }} }}"#
        )
    };
    let cases: [(String, &[&str]); 9] = [
        (phases("", ""), &["L0:", "run 1us", "run 2us", "jump L0"]),
        (phases(r#""loop" : -1,"#, ""), &["L0:", "run 1us", "run 2us", "jump L0"]),
        (phases(r#""loop" : 1,"#, ""), &["run 1us", "run 2us"]),
        (
            phases(r#""loop" : 2,"#, r#""loop" : 3,"#),
            &[
                "counter 0 = 2",
                "L1:",
                "counter 1 = 3",
                "L2:",
                "run 1us",
                "dec-jump 1 L2",
                "run 2us",
                "dec-jump 0 L1",
            ],
        ),
        (phases(r#""loop" : 0,"#, ""), &["exit"]),
        (phases("", r#""loop" : -1,"#), &["L0:", "run 1us", "jump L0"]),
        (phases("", r#""loop" : 0,"#), &["L0:", "run 1us", "jump L0"]),
        (r#"{ "tasks" : { "t" : { "run" : 1 } } }"#.to_string(), &["L0:", "run 1us", "jump L0"]),
        (
            r#"{ "tasks" : { "t" : { "run" : 1, "loop" : 2 } } }"#.to_string(),
            &["counter 0 = 2", "L1:", "run 1us", "dec-jump 0 L1"],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(operations(&workload(&text), 0), expected, "{text}");
    }
}

#[test]
fn timers_are_unique_or_shared_and_absolute_for_good() {
    let workload = workload(
        r#"{ "tasks" : {
            "a" : { "timer" : { "ref" : "uniqueA", "period" : 10 }, "timer1" : { "ref" : "shared", "period" : 20 } },
            "b" : { "timer" : { "ref" : "uniqueA", "period" : 30, "mode" : "absolute" },
                    "timer1" : { "ref" : "uniqueA", "period" : 40, "mode" : "relative" },
                    "timer2" : { "ref" : "shared", "period" : 50, "mode" : "absolute" }, "timer3" : { "period" : 60 } } } }"#,
    );
    // `unique` timers belong to one task each, so b's `absolute` does not reach a.
    assert_eq!(
        operations(&workload, 0)[1..3],
        ["timer uniqueA 10us".to_string(), "timer shared 20us absolute".to_string()]
    );
    assert_eq!(
        operations(&workload, 1)[1..5],
        [
            "timer uniqueA 30us absolute".to_string(),
            "timer uniqueA 40us absolute".to_string(),
            "timer shared 50us absolute".to_string(),
            "timer unknown 60us".to_string()
        ]
    );
    let per_task: Vec<bool> = workload.objects.timers.iter().map(|timer| timer.per_task).collect();
    assert_eq!(per_task, [true, false, false]);
}

#[test]
fn barrier_counts_the_instances_of_every_mention() {
    let workload = workload(
        r#"{ "tasks" : {
            "a" : { "instance" : 3, "run" : 1, "barrier" : "x" },
            "b" : { "run" : 1, "barrier" : "x", "barrier2" : "y" } } }"#,
    );
    let parties: Vec<(&str, u32)> =
        workload.objects.barriers.iter().map(|b| (b.name.as_str(), b.parties)).collect();
    assert_eq!(parties, [("x", 4), ("y", 1)]);
}

#[test]
fn suspend_waits_on_the_name_somebody_resumes() {
    let text = |value: &str, resumed: &str| {
        format!(
            r#"{{ "tasks" : {{ "a" : {{ "loop" : 1, "suspend" : "{value}" }}, "b" : {{ "loop" : 1, "resume" : "{resumed}" }} }} }}"#
        )
    };
    for (value, resumed, name) in
        [("", "a", "a"), ("a", "a", "a"), ("x", "a", "a"), ("x", "y", "a"), ("x", "x", "x")]
    {
        let text = text(value, resumed);
        assert_eq!(operations(&workload(&text), 0)[0], format!("lock {name}"), "{text}");
        let strict = strictly(&text).unwrap_or_else(|error| panic!("{error}")).workload;
        assert_eq!(operations(&strict, 0)[0], "lock a", "{text}");
    }
    let warned = warnings(&text("x", "x"));
    assert!(warned[0].contains("waits on the name in its value, as in rt-app 1.0"), "{warned:?}");
}

#[test]
fn repeated_keys_are_kept_unless_strict() {
    let text =
        r#"{ "tasks" : { "t" : { "loop" : 1, "run" : 1, "sleep" : 2, "run" : 3, "loop" : 5 } } }"#;
    assert_eq!(operations(&workload(text), 0), ["run 1us", "sleep 2us", "run 3us"]);
    let warned = warnings(text);
    assert_eq!(warned.len(), 1);
    assert!(warned[0].starts_with("1:59: this key (and one more) is repeated"), "{warned:?}");
    let strict = strictly(text).expect("legal").workload;
    assert_eq!(
        operations(&strict, 0),
        ["counter 0 = 5", "L1:", "run 3us", "sleep 2us", "dec-jump 0 L1"]
    );

    let text =
        r#"{ "tasks" : { "t" : { "run" : 1 }, "t1" : { "run" : 2 }, "t" : { "run" : 3 } } }"#;
    let names: Vec<String> = workload(text).tasks.into_iter().map(|task| task.name).collect();
    assert_eq!(names, ["t", "t1", "t2"]);
    let strict = strictly(text).expect("legal").workload;
    assert_eq!(strict.tasks.len(), 2);
    assert_eq!(operations(&strict, 0)[1], "run 3us");
}

#[test]
fn scheduling_properties_reach_the_task() {
    let spec = |body: &str| {
        let text = format!(r#"{{ "tasks" : {{ "t" : {{ {body} "run" : 1 }} }} }}"#);
        let sched = workload(&text).tasks[0].sched.expect("always given");
        (sched.class.name(), sched.nice.get(), sched.rt_priority, sched.slice.as_ns())
    };
    assert_eq!(spec(""), ("normal", 0, 0, 0));
    assert_eq!(spec(r#""priority" : -19,"#), ("normal", -19, 0, 0));
    assert_eq!(spec(r#""policy" : "SCHED_FIFO","#), ("fifo", 0, 10, 0));
    assert_eq!(spec(r#""policy" : "SCHED_RR", "priority" : 99,"#), ("rr", 0, 99, 0));
    assert_eq!(
        spec(r#""policy" : "SCHED_BATCH", "dl-runtime" : 3000,"#),
        ("batch", 0, 0, 3_000_000)
    );
    assert_eq!(spec(r#""policy" : "SCHED_IDLE", "priority" : 5,"#), ("idle", 5, 0, 0));

    let text = r#"{ "global" : { "default_policy" : "SCHED_RR", "duration" : 2 },
        "tasks" : { "t" : { "instance" : 4, "delay" : 1500, "cpus" : [0, 2], "run" : 1 } } }"#;
    let workload = workload(text);
    let task = &workload.tasks[0];
    assert_eq!(workload.duration, Some(Nanos::from_s(2)));
    assert_eq!((task.count, task.at_start, task.start), (4, true, Nanos::from_us(1_500)));
    assert_eq!(task.affinity, Some(CpuSet::parse("0,2").expect("legal")));
    assert_eq!(task.sched.map(|s| (s.class.name(), s.rt_priority)), Some(("rr", 10)));
}

#[test]
fn phases_change_parameters_where_they_set_some() {
    let text = r#"{ "tasks" : { "t" : { "priority" : 5, "phases" : {
        "a" : { "run" : 1 },
        "b" : { "policy" : "SCHED_FIFO", "run" : 2 },
        "c" : { "priority" : 20, "run" : 3 },
        "d" : { "policy" : "SCHED_OTHER", "dl-runtime" : 700, "run" : 4 } } } } }"#;
    assert_eq!(
        operations(&workload(text), 0),
        [
            "L0:",
            "run 1us",
            "sched fifo priority 10",
            "run 2us",
            "sched fifo priority 20",
            "run 3us",
            "sched normal slice 700us",
            "run 4us",
            "jump L0"
        ]
    );
}

#[test]
fn phases_move_between_cpus() {
    let text = |cpus: [&str; 3], outer: &str| {
        format!(
            r#"{{ "tasks" : {{ "t" : {{ {} {outer} "phases" : {{ "a" : {{ {} "run" : 1 }}, "b" : {{ {} "run" : 2 }} }} }} }} }}"#,
            cpus[0], cpus[1], cpus[2]
        )
    };
    let zero = r#""cpus" : [0],"#;
    let one = r#""cpus" : [1],"#;
    // Back to the first phase the first CPUs are set again, but not at the start.
    let text_1 = text(["", zero, one], "");
    assert_eq!(
        operations(&workload(&text_1), 0),
        ["jump L2", "L1:", "affinity 0", "L2:", "run 1us", "affinity 1", "run 2us", "jump L1"]
    );
    assert_eq!(workload(&text_1).tasks[0].affinity, Some(CpuSet::parse("0").expect("legal")));
    // The second phase has no CPUs of its own: those of the task.
    let text_2 = text([one, zero, ""], r#""loop" : 1,"#);
    assert_eq!(operations(&workload(&text_2), 0), ["run 1us", "affinity 1", "run 2us"]);
    // Without any at the task: all.
    let text_3 = text(["", zero, ""], r#""loop" : 1,"#);
    assert_eq!(operations(&workload(&text_3), 0), ["run 1us", "affinity 0-1023", "run 2us"]);
    assert_eq!(loaded(&text_3).check_machine(1), Ok(()));
    // The same everywhere: nothing to change.
    let text_4 = text([one, "", ""], "");
    assert_eq!(operations(&workload(&text_4), 0), ["L0:", "run 1us", "run 2us", "jump L0"]);
}

#[test]
fn cost_knobs_are_parameters() {
    let text = task(r#""mem" : 1000"#);
    let set = [("mem_clear_mb_per_s".to_string(), "1000".to_string())];
    let loaded = load_text("t.json", text.clone(), &set, &LoadOptions::default()).expect("legal");
    assert_eq!(operations(&loaded.workload, 0), ["run 1us"]);
    assert!(loaded.workload.params.contains(&("mem_clear_mb_per_s".into(), "1000".into())));
    assert!(workload(&task(r#""run" : 1"#)).params.is_empty());
    let set = [("mem_claer_mb_per_s".to_string(), "1000".to_string())];
    let error = load_text("t.json", text, &set, &LoadOptions::default()).expect_err("unknown");
    assert_eq!(error.kind, LoadErrorKind::Usage);
    assert!(error.to_string().contains("did you mean `mem_clear_mb_per_s`"), "{error}");
}

#[test]
fn odd_input_is_accepted_with_a_warning() {
    for (text, says) in [
        ("{ 'tasks' : { \"t\" : { \"run\" : 1 } } }".to_string(), "1:3: strings in single quotes"),
        (format!("{} garbage", task(r#""run" : 1"#)), "the text after the root object is ignored"),
        (r#"{ "tasks" : {} }"#.to_string(), "1:13: `tasks` is empty: nothing will run"),
        (
            r#"{ "tasks" : { "t" : { "run" : 1 } }, "global" : { "frag" : 1 } }"#.to_string(),
            "`frag` is without effect since rt-app 1.0",
        ),
        (task(r#""suspend""#), "`suspend` has no value: read as workgen does"),
        (task(r#""runtime" : 1000"#), "rt-app also takes an event called `runtime` for the old"),
        (task(r#""run" : 1, "dl-period" : 5"#), "`dl-period` matters to SCHED_DEADLINE only"),
        (
            task(r#""run" : 1, "policy" : "SCHED_FIFO", "dl-runtime" : 5"#),
            "`dl-runtime` is no slice request under SCHED_FIFO",
        ),
        (
            task(r#""phases" : { "a" : { "run" : 1, "delay" : 5 } }"#),
            "rt-app ignores `delay` inside a phase",
        ),
        (
            task(r#""run" : 1, "phases" : { "a" : { "run" : 1 } }"#),
            "rt-app ignores the event `run` beside `phases`",
        ),
        (
            task(r#""phases" : { "a" : { "run" : 1, "loop" : -1 }, "b" : { "run" : 1 } }"#),
            "never ends, so those after it are never reached",
        ),
        (
            task(r#""phases" : { "a" : { "run" : 1, "loop" : 0 } }"#),
            "a `loop` of 0 never ends in rt-app",
        ),
        (task(r#""run" : 1, "instance" : 0"#), "has no instance and no task forks it"),
        (task(r#""run" : 1, "barrier" : "x", "barrier2" : "x""#), "names the barrier `x` twice"),
        (task(r#""lock" : "m", "run" : 1, "lock2" : "m""#), "holds the mutex `m` already"),
        (
            task(r#""timer" : { "period" : 5, "mode" : "abs" }"#),
            "`mode` is `abs`, which rt-app takes for `relative`",
        ),
        (
            r#"{ "tasks" : { "t" : { "run" : 1 } }, "resources" : { "r" : {} } }"#.to_string(),
            "the resource `r` has no `type`",
        ),
    ] {
        let warned = warnings(&text);
        assert_eq!(warned.len(), 1, "{text}: {warned:?}");
        assert!(warned[0].contains(says), "{text}: {warned:?}");
    }
}

#[test]
fn unknown_key_is_refused_unless_strict() {
    let global = |key: &str| {
        format!(r#"{{ "tasks" : {{ "t" : {{ "run" : 1 }} }}, "global" : {{ "{key}" : 1 }} }}"#)
    };
    for (text, says) in [
        (task(r#""rnu" : 1, "run" : 1"#), "1:35: a task has no key `rnu`; did you mean `run`?"),
        (task(r#""run" : 1, "priorty" : 1"#), "did you mean `priority`?"),
        (task(r#""run" : 1, "colour" : 1"#), "a task has no key `colour` (hint: rt-app ignores"),
        (task(r#""phases" : { "p" : { "lop" : 1, "run" : 1 } }"#), "a phase has no key `lop`"),
        (
            task(r#""timer" : { "perod" : 5 }"#),
            "`timer` has no key `perod`; did you mean `period`?",
        ),
        (global("durration"), "`global` has no key `durration`; did you mean `duration`?"),
        (r#"{ "task" : {}, "tasks" : {} }"#.to_string(), "the root has no key `task`"),
    ] {
        let message = error(&text);
        assert!(message.contains(says), "{text}\n{message}");
        let strict = strictly(&text).unwrap_or_else(|error| panic!("{error}"));
        let warned = strict.warnings.iter().any(|w| w.message.starts_with("rt-app ignores this"));
        assert!(warned, "{text}: {:?}", strict.warnings);
    }
}

#[test]
fn legal_files_have_no_warning() {
    for text in [
        "/* c */ { \"tasks\" : { \"t\" : { \"run\" : 1, // c\n \"yield\" : \"\", }, }, }".to_string(),
        r#"{ "tasks" : { "t" : { "run" : 1, "taskgroup" : "", "util_min" : -1, "util_max" : -1 } },
             "resources" : { "m" : { "type" : "mutex" } },
             "global" : { "duration" : -1, "calibration" : "CPU3", "default_policy" : "SCHED_OTHER",
                "pi_enabled" : false, "lock_pages" : true, "logdir" : "./", "log_basename" : "x", "log_size" : 2,
                "ftrace" : "main,Task", "gnuplot" : true, "io_device" : "/dev/null", "mem_buffer_size" : 10,
                "cumulative_slack" : false } }"#.to_string(),
    ] {
        assert_eq!(warnings(&text), [""; 0]);
    }
}

#[test]
fn what_rtapp_refuses_or_nobody_can_simulate_is_refused() {
    for (text, says) in [
        (
            r#"{ tasks : {} }"#.to_string(),
            "t.json:1:3: this is not JSON: a key must be in double quotes",
        ),
        (
            r#"{ "global" : {} }"#.to_string(),
            "t.json:1:1: `tasks` is missing, so there is nothing to run (hint: this looks like a fragment",
        ),
        (task(r#""priority" : 3"#), "there is no event here"),
        (task(r#""run" : 1.5"#), "1:43: `run` must be an integer; rt-app refuses 1.5"),
        (task(r#""run" : "1""#), "`run` must be an integer, not a string"),
        (task(r#""run" : -1"#), "`run` is -1; it cannot be negative"),
        (task(r#""sleep" : false"#), "`sleep` must be an integer, not true or false"),
        (task(r#""run" : 4294967296"#), "does not fit 32 bits"),
        (task(r#""run""#), "1:35: the event `run` has no value"),
        (task(r#""run" : null"#), "`run` must be an integer, not null"),
        (task(r#""run" : 1, "policy" : "SCHED_DEADLINE""#), "SCHED_DEADLINE cannot be simulated"),
        (
            task(r#""run" : 1, "policy" : "SCHED_FIF""#),
            "there is no policy `SCHED_FIF`; did you mean `SCHED_FIFO`?",
        ),
        (task(r#""run" : 1, "priority" : 20"#), "under SCHED_OTHER it is a nice value, -20 to 19"),
        (
            task(r#""run" : 1, "policy" : "SCHED_RR", "priority" : 0"#),
            "under SCHED_RR it is a priority, 1 to 99",
        ),
        (task(r#""run" : 1, "util_min" : 100"#), "`util_min` cannot be simulated"),
        (task(r#""run" : 1, "util_max" : 1025"#), "it must be 0 to 1024"),
        (task(r#""run" : 1, "nodes_membind" : [0]"#), "`nodes_membind` cannot be simulated"),
        (task(r#""run" : 1, "taskgroup" : "/a""#), "`taskgroup` cannot be simulated"),
        (task(r#""run" : 1, "taskgroup" : "a""#), "must begin with `/`"),
        (task(r#""run" : 1, "cpus" : [1024]"#), "CPU 1024 is beyond the largest machine"),
        (task(r#""run" : 1, "cpus" : []"#), "names no CPU"),
        (task(r#""run" : 1, "cpus" : "0""#), "`cpus` must be an array, not a string"),
        (task(r#""run" : 1, "instance" : -1"#), "`instance` is -1; it cannot be negative"),
        (task(r#""run" : 1, "instance" : 2000000"#), "threads; at most 1048576 are possible"),
        (task(r#""phases" : {}"#), "`phases` is empty"),
        (task(r#""run" : 1, "lock_pages" : true"#), "read as a `lock` event"),
        (task(r#""unlock" : "m""#), "unlocks the mutex `m`, which the task does not hold"),
        (task(r#""wait" : { "ref" : "q", "mutex" : "m" }"#), "waits with the mutex `m`, which"),
        (task(r#""lock" : "m", "wait" : { "ref" : "q" }"#), "`wait` needs `mutex`"),
        (task(r#""fork" : "x""#), "there is no task `x` to fork"),
        (
            task(r#""phases" : { "a" : { "loop" : 2000, "fork" : "t" } }"#),
            "`t` is forked 2000 times; rt-app gives up after 1024",
        ),
        (task(r#""fork" : "t", "barrier" : "b""#), "a task that is forked cannot use a barrier"),
        (
            task(r#""memrun" : { "type" : "chase", "size" : 100, "count" : 1 }"#),
            "a chase needs two places",
        ),
        (
            task(r#""memrun" : { "type" : "fill", "size" : 100, "count" : 1 }"#),
            "it must be read, write or chase",
        ),
        (task(r#""memrun" : { "type" : "read", "count" : 1 }"#), "`memrun` needs `size`"),
        (
            task(
                r#""memrun" : { "type" : "read", "size" : 64, "count" : 1, "ref" : "b" }, "memrun1" : { "type" : "read", "size" : 65, "count" : 1, "ref" : "b" }"#,
            ),
            "the buffer `b` was used with other parameters before",
        ),
        (
            r#"{ "tasks" : { "t" : { "resume" : "x" } } }"#.to_string(),
            "loops for ever at one instant",
        ),
        (
            r#"{ "tasks" : {}, "global" : { "duration" : "5" } }"#.to_string(),
            "`duration` must be an integer, not a string",
        ),
        (
            r#"{ "tasks" : {}, "global" : { "ftrace" : "main,run" } }"#.to_string(),
            "`ftrace` has no category `run`",
        ),
        (
            r#"{ "tasks" : {}, "global" : { "calibration" : "GPU0" } }"#.to_string(),
            "`calibration` is `GPU0`",
        ),
        (
            r#"{ "tasks" : { "t" : { "lock" : "m" } }, "global" : { "pi_enabled" : true } }"#
                .to_string(),
            "1:69: priority inheritance cannot be simulated",
        ),
        (
            r#"{ "tasks" : {}, "resources" : { "r" : { "type" : "barrier" } } }"#.to_string(),
            "there is no resource type `barrier`",
        ),
        (r#"{ "tasks" : [] }"#.to_string(), "`tasks` must be an object, not an array"),
        (r#"{ "tasks" : { "t" : 5 } }"#.to_string(), "a task must be an object, not a number"),
        (
            task(
                r#""phases" : { "a" : { "dl-runtime" : 100, "run" : 1 }, "b" : { "priority" : 3, "run" : 1 } }"#,
            ),
            "give its `priority` too",
        ),
    ] {
        let message = error(&text);
        assert!(message.contains(says), "{text}\n{message}");
    }
}

#[test]
fn forks_without_known_number_leave_a_note() {
    let text = r#"{ "tasks" : { "a" : { "run" : 1, "fork" : "b" }, "b" : { "instance" : 0, "loop" : 1, "run" : 5 } } }"#;
    let workload = workload(text);
    assert_eq!(workload.notes.len(), 1);
    assert!(workload.notes[0].contains("after forking `b` 1024 times"), "{:?}", workload.notes);
    assert!(!workload.tasks[1].at_start);
}

#[test]
fn strict_reading_needs_every_value() {
    let error = strictly(&task(r#""suspend""#)).expect_err("no value");
    assert!(error.to_string().contains("the event `suspend` has no value"), "{error}");
}

#[test]
fn grammar_before_events_is_translated() {
    let text = r#"{
        "resources" : { "m" : { "type" : "mutex" }, "n" : { "type" : "mutex" }, "w" : { "type" : "wait" },
            "s" : { "type" : "signal", "target" : "w" }, "y" : { "type" : "sync", "target" : "w" },
            "b" : { "type" : "broadcast", "target" : "w" }, "r" : { "type" : "run" }, "z" : { "type" : "sleep" } },
        "tasks" : { "t" : { "exec" : 1000, "period" : 20000, "deadline" : 8000, "delay" : 5, "loop" : 2,
            "lock_order" : ["r", "m", "w", "s", "y", "b", "z"],
            "resources" : { "r" : { "duration" : 100 }, "m" : { "duration" : 200, "access" : ["n"] },
                "w" : { "access" : ["m"] }, "y" : { "access" : ["m"] }, "z" : { "duration" : 70 } } } } }"#;
    let loaded = loaded(text);
    assert_eq!(
        operations(&loaded.workload, 0),
        [
            "counter 0 = 2",
            "L1:",
            "run 100us",
            // The resource itself comes last, after those of `access` and, behind each, of theirs.
            "lock n",
            "lock m",
            "run 200us",
            "unlock m",
            "unlock n",
            "lock m",
            "lock n",
            "cond-wait w n",
            "unlock n",
            "unlock m",
            "cond-signal w",
            "lock m",
            "lock n",
            "cond-signal w",
            "cond-wait w n",
            "unlock n",
            "unlock m",
            "cond-broadcast w",
            "sleep 70us",
            "run 700us",
            "timer \"unique period\" 20ms absolute",
            "dec-jump 0 L1",
        ]
    );
    assert_eq!(loaded.workload.tasks[0].start, Nanos::from_us(5));
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    assert!(loaded.warnings[0].message.contains("the grammar of rt-app before 1.0"));
}

#[test]
fn grammar_before_events_malformed_is_refused() {
    let text = |task: &str| format!(r#"{{ "resources" : 2, "tasks" : {{ "t" : {{ {task} }} }} }}"#);
    assert_eq!(
        operations(
            &workload(&text(
                r#""exec" : 9, "sleep" : false, "lock_order" : [1], "resources" : { "1" : { "duration" : 4 } }"#
            )),
            0
        ),
        ["L0:", "lock 1", "run 4us", "unlock 1", "run 5us", "jump L0"]
    );
    for (body, says) in [
        (
            r#""exec" : 9, "lock_order" : [2], "resources" : {}"#,
            "the resource `2` is not declared at the root",
        ),
        (
            r#""exec" : 3, "lock_order" : [1], "resources" : { "1" : { "duration" : 4 } }"#,
            "the resources take 4 us of it",
        ),
        (r#""exec" : 9, "lock_order" : [1]"#, "`lock_order` needs `resources` beside it"),
        (r#""exec" : 9, "period" : 8"#, "must rise in this order"),
        (
            r#""phases" : { "a" : { "exec" : 1 }, "b" : { "exec" : 1, "sleep" : false } }"#,
            "with and without `sleep`",
        ),
        (r#""phases" : { "a" : { "exec" : 1 }, "b" : { "period" : 1 } }"#, "`exec` is missing"),
    ] {
        let message = error(&text(body));
        assert!(message.contains(says), "{body}\n{message}");
    }
}
