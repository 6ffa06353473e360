// SPDX-License-Identifier: GPL-2.0-only
//! Our own workload files: what they mean, and what the documentation shows.

mod common;
#[path = "common/operations.rs"]
mod operations;
#[path = "common/step.rs"]
mod step;

use common::load;
use operations::operations;
use schedlab_units::{CpuSet, Nanos};
use schedlab_workload::ir::{Op, ProcessSpec};
use schedlab_workload::{LoadErrorKind, LoadOptions, load_text, to_toml};
use step::step_through;

const HEADER: &str = "[workload]\nname = \"t\"\n";

/// The operations of a task whose `do` is `items`.
fn operations_of(declarations: &str, items: &str) -> Vec<String> {
    let text = format!("{HEADER}{declarations}\n[[task]]\nname = \"t\"\ndo = [{items}]\n");
    let loaded = load("t.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    operations(&loaded.workload, 0)
}

#[test]
fn documented_examples_load() {
    let text = include_str!("../../../docs/workload-format.md");
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 2);
    for example in &examples {
        let loaded = load("doc.toml", example).unwrap_or_else(|error| panic!("{error}"));
        assert!(loaded.warnings.is_empty());
        step_through(&loaded.workload);
        let again = load("again.toml", &to_toml(&loaded.workload)).expect("the resolved form");
        assert_eq!(again.workload, loaded.workload);
        assert_eq!(again.digest, loaded.digest);
    }
    // Every operation that the writer can produce occurs in the second example.
    let resolved = to_toml(&load("doc.toml", examples[1]).expect("legal").workload);
    for word in [
        "run",
        "run forever",
        "kernel",
        "spin",
        "sleep",
        "timer",
        "disk",
        "read",
        "write",
        "sem-wait",
        "sem-post",
        "sem-try",
        "period",
        "lock",
        "unlock",
        "cond-wait",
        "cond-signal",
        "cond-broadcast",
        "barrier",
        "futex-arm",
        "futex-wait",
        "futex-wake",
        "list-join",
        "list-serve",
        "signal task",
        "signal parent",
        "kill",
        "sig-wait",
        "fork",
        "wait-children",
        "wait-child",
        "exec",
        "exit",
        "yield",
        "sched",
        "nice",
        "affinity",
        "mark",
        "mark-start",
        "mark-stop",
        "deadline",
        "counter",
        "dec-jump",
        "jump",
        "jump-random",
    ] {
        assert!(resolved.contains(&format!("  \"{word}")), "no `{word}`:\n{resolved}");
    }
}

#[test]
fn blocks_become_jumps() {
    let cases: [(&str, &[&str]); 9] = [
        ("{ loop = ['run 1ms'] }", &["L0:", "run 1ms", "jump L0"]),
        ("{ repeat = 3, do = ['yield'] }", &["counter 0 = 3", "L1:", "yield", "dec-jump 0 L1"]),
        ("{ repeat = 0, do = ['yield'] }, 'exit'", &["exit"]),
        (
            "{ repeat = 'uniform(0, 2)', do = ['yield'] }",
            &["counter 0 = uniform(1, 3)", "jump L3", "L2:", "yield", "L3:", "dec-jump 0 L2"],
        ),
        (
            "{ repeat = 2, do = [{ repeat = 3, do = ['yield'] }] }, { repeat = 4, do = ['exec'] }",
            &[
                "counter 0 = 2",
                "L1:",
                "counter 1 = 3",
                "L2:",
                "yield",
                "dec-jump 1 L2",
                "dec-jump 0 L1",
                "counter 0 = 4",
                "L6:",
                "exec",
                "dec-jump 0 L6",
            ],
        ),
        ("{ chance = '1/4', do = ['yield'] }", &["jump-random 3/4 L2", "yield", "L2:"]),
        (
            "{ chance = '1/4', do = ['yield'], else = ['exec'] }, 'exit'",
            &["jump-random 3/4 L3", "yield", "jump L4", "L3:", "exec", "L4:", "exit"],
        ),
        (
            "{ for = 'i in 1..=2, j in 0..2', do = ['run {i * 10 + j}ms'] }",
            &["run 10ms", "run 11ms", "run 20ms", "run 21ms"],
        ),
        (
            "{ if = '1 > 2', do = ['exec'], else = ['yield'] }, { if = 'true', do = ['exit'] }",
            &["yield", "exit"],
        ),
    ];
    for (items, expected) in cases {
        assert_eq!(operations_of("", items), expected, "{items}");
    }
}

#[test]
fn repeat_of_a_distribution_passes_as_often_as_drawn() {
    let items = "{ repeat = 'uniform(0, 2)', do = ['yield'] }";
    let text = format!("{HEADER}[[task]]\nname = \"t\"\ndo = [{items}]\n");
    let loaded = load("t.toml", &text).expect("legal");
    let program = &loaded.workload.programs[0];
    let mut rng = schedlab_units::Rng::stream(1, "test", 0);
    let mut passes = [0; 3];
    for _ in 0..3_000 {
        let mut vm = schedlab_workload::Vm::new(program);
        let mut n = 0;
        while vm.next(program, &mut rng) == schedlab_workload::Step::Do(&Op::Yield) {
            n += 1;
        }
        passes[n] += 1;
    }
    assert!(passes.iter().all(|n: &i32| (900..1_100).contains(n)), "{passes:?}");
}

#[test]
fn tables_expand_over_ranges_and_conditions() {
    let text = format!(
        "{HEADER}[params]\nn = 2\nwith = false\n\
         [[mutex]]\nname = \"m-{{g}}-{{i}}\"\nfor = \"g in 0..$n, i in 0..g + 1\"\n\
         [[mutex]]\nname = \"extra\"\nwhen = \"$with\"\n\
         [[task]]\nname = \"t-{{g}}\"\nfor = \"g in 0..$n\"\nstart = \"$g * 1ms\"\nstart_cpu = \"$g\"\n\
         do = [\"lock m-{{g}}-{{g}}\", \"run {{g + 1}}ms\"]\n"
    );
    let loaded = load("t.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let workload = &loaded.workload;
    let mutexes: Vec<&str> = workload.objects.mutexes.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(mutexes, ["m-0-0", "m-1-0", "m-1-1"]);
    assert_eq!(workload.tasks.len(), 2);
    assert_eq!(workload.tasks[1].start, Nanos::from_ms(1));
    assert_eq!(workload.tasks[1].start_cpu, Some(1));
    assert_eq!(operations(workload, 1), ["lock m-1-1", "run 2ms"]);

    let set = [("n".to_string(), "1".to_string()), ("with".to_string(), "yes".to_string())];
    let other = load_text("t.toml", text, &set, &LoadOptions::default()).expect("legal");
    assert_eq!(other.workload.objects.mutexes.len(), 2);
    assert_eq!(
        other.workload.params,
        [("n".to_string(), "1".to_string()), ("with".to_string(), "true".to_string())]
    );
    assert_ne!(other.digest, loaded.digest);
}

#[test]
fn task_keys_reach_the_template() {
    let text = format!(
        "{HEADER}duration = \"3s\"\n\
         [[task]]\nname = \"a\"\ngroup = \"g\"\ncount = 3\nclass = \"rr\"\npriority = 7\ncpus = \"0,2-3\"\n\
         thread_of = \"p\"\ndo = [\"run 1ms\"]\n\
         [[task]]\nname = \"b\"\nforked = true\nkernel = true\nslice = \"3ms\"\nnice = -3\nloop = [\"run 1ms\"]\n"
    );
    let workload = load("t.toml", &text).unwrap_or_else(|error| panic!("{error}")).workload;
    assert_eq!(workload.duration, Some(Nanos::from_s(3)));
    let (a, b) = (&workload.tasks[0], &workload.tasks[1]);
    assert_eq!((a.group.as_str(), a.count, a.at_start), ("g", 3, true));
    let sched = a.sched.expect("given");
    assert_eq!((sched.class.name(), sched.rt_priority, sched.nice.get()), ("rr", 7, 0));
    assert_eq!(a.affinity, Some(CpuSet::parse("0,2-3").expect("legal")));
    assert_eq!(a.process, ProcessSpec::Thread("p".to_string()));
    assert_eq!((b.at_start, &b.process), (false, &ProcessSpec::Kernel));
    let sched = b.sched.expect("given");
    assert_eq!((sched.nice.get(), sched.slice), (-3, Nanos::from_ms(3)));
    assert_eq!(workload.programs[1].ops.last(), Some(&Op::Jump { target: 0 }));
}

#[test]
fn parameter_of_wrong_type_or_name_is_a_usage_error() {
    let text = format!(
        "{HEADER}[params]\nn = 2\nwork = \"3ms\"\n[[task]]\nname = \"t\"\ndo = [\"exit\"]\n"
    );
    for (name, value, says) in [
        ("n", "3ms", "parameter `n`: `3ms` is not an integer"),
        ("work", "3", "the unit is missing"),
        ("wrok", "3ms", "did you mean `work`?"),
    ] {
        let set = [(name.to_string(), value.to_string())];
        let error = load_text("t.toml", text.clone(), &set, &LoadOptions::default());
        let error = error.expect_err("a wrong parameter");
        assert_eq!(error.kind, LoadErrorKind::Usage);
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// Faults, each with the line and column of the place to mend.
#[test]
fn faults_point_at_their_place() {
    let task = "[[task]]\nname = \"t\"\n";
    for (text, says) in [
        (
            format!("{HEADER}{task}do = [\"run 5ms\", \"rnu 5ms\"]\n"),
            "5:19: there is no operation `rnu`; did you mean `run`?",
        ),
        (
            format!("{HEADER}{task}do = [\"lock m\"]\n"),
            "5:13: there is no mutex `m`; every mutex is declared by a [[mutex]] table",
        ),
        (format!("{HEADER}{task}do = [\"run -5ms\"]\n"), "5:12: `-5ms` is negative"),
        (
            format!("{HEADER}{task}do = [\"jump x\"]\n"),
            "5:13: there is no label `x` in this program",
        ),
        (format!("{HEADER}{task}loop = []\n"), "5:8: the program loops without doing anything"),
        (
            format!("{HEADER}{task}loop = [\"yield\", \"mark x\"]\nnice = 20\n"),
            "6:8: `nice` is 20; it must be -20 to 19",
        ),
        (
            format!("{HEADER}{task}cout = 3\ndo = []\n"),
            "5:1: a task has no key `cout`; did you mean `count`?",
        ),
        (
            format!("{HEADER}{task}count = \"$x\"\ndo = []\n"),
            "5:10: there is no parameter or loop variable `x`",
        ),
        (
            format!("{HEADER}{task}count = \"3ms\"\ndo = []\n"),
            "5:9: `count` must be an integer, not a duration",
        ),
        (format!("{HEADER}{task}start = \"-3ms\"\ndo = []\n"), "5:9: `start` cannot be negative"),
        (
            format!("{HEADER}{task}start = 3\ndo = []\n"),
            "5:9: `start` must be a duration, not an integer",
        ),
        (format!("{HEADER}{task}"), "3:1: the operations are missing"),
        (
            format!("{HEADER}{task}do = [\"exit\"]\n{task}do = []\n"),
            "7:8: there is already a task called `t`",
        ),
        (format!("{HEADER}[task]\nname = \"t\"\n"), "3:1: a task is written as a [[task]] table"),
        (format!("{HEADER}{task}do = [{{ repeat = 2 }}]\n"), "5:7: a block needs `do`"),
        (format!("{HEADER}{task}do = [{{ do = [] }}]\n"), "5:7: a block needs `loop`, `repeat`"),
        (
            format!("{HEADER}{task}do = [3]\n"),
            "5:7: an operation is a text or a table, not an integer",
        ),
        (format!("{HEADER}{task}class = \"fifo\"\ndo = []\n"), "5:9: class fifo needs `priority`"),
        (format!("{HEADER}{task}priority = 3\ndo = []\n"), "5:12: class normal has no `priority`"),
        (
            format!("{HEADER}{task}for = \"i in 0..99999999\"\ndo = []\n"),
            "there is already a task called `t`",
        ),
        (format!("{HEADER}{task}for = \"i of 3\"\ndo = []\n"), "5:8: `i of 3` is not a range"),
        (
            format!("{HEADER}[params]\nx = 1.5\n"),
            "4:5: a parameter cannot be a number with a fraction",
        ),
        (format!("{HEADER}name = \"again\"\n"), "3:1: this is not TOML: duplicate key"),
        ("[params]\n".to_string(), "1:1: the [workload] table is missing"),
        ("hello".to_string(), "this is not TOML"),
    ] {
        let error = load("t.toml", &text).expect_err(&text);
        assert_eq!(error.kind, LoadErrorKind::Input);
        assert!(error.to_string().contains(says), "{text}\n{error}");
    }
}

#[test]
fn expansion_without_bound_is_refused() {
    let text = format!(
        "{HEADER}[[task]]\nname = \"t\"\ndo = [{{ for = 'i in 0..99999, j in 0..99999', do = ['yield'] }}]\n"
    );
    let error = load("t.toml", &text).expect_err("ten thousand million operations");
    assert!(error.to_string().contains("expands to too much"), "{error}");
}

#[test]
fn cpu_beyond_the_machine_points_at_the_list() {
    let text = format!(
        "{HEADER}[[task]]\nname = \"t\"\ncpus = \"0-5\"\ndo = [\"run 1ms\", \"affinity 7\"]\n\
         [[task]]\nname = \"u\"\ncpus = \"all\"\nstart_cpu = 6\ndo = [\"run 1ms\"]\n"
    );
    let loaded = load("t.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    for (n_cpus, says) in [
        (4, "t.toml:5:8: task `t` wants to run on CPU 4, but the machine has 4 CPUs: 0-3"),
        (6, "t.toml:7:1: task `u` starts on CPU 6"),
        (7, "t.toml:6:18: this operation moves its task to CPU 7"),
    ] {
        let error = loaded.check_machine(n_cpus).expect_err("too small");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(loaded.check_machine(8), Ok(()));
}
