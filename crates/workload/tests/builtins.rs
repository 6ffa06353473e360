// SPDX-License-Identifier: GPL-2.0-only
//! The built-in workloads.

mod common;
#[path = "common/operations.rs"]
mod operations;
#[path = "common/step.rs"]
mod step;

use common::load;
use operations::operations;
use schedlab_workload::{
    LoadErrorKind, LoadOptions, Loaded, builtins, find, resolve, to_toml, validate,
};
use step::step_through;

fn builtin(name: &str, set: &[(&str, &str)]) -> Loaded {
    let set: Vec<(String, String)> =
        set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    resolve(name, &set, &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn builtins_load_without_a_warning_and_survive_the_round_trip() {
    for entry in builtins() {
        let loaded = builtin(entry.name, &[]);
        assert!(loaded.warnings.is_empty(), "{}: {:?}", entry.name, loaded.warnings);
        assert_eq!(loaded.workload.name, entry.name);
        assert_eq!(validate(&loaded.workload), Ok(()));
        loaded.check_machine(1).unwrap_or_else(|error| panic!("{error}"));
        step_through(&loaded.workload);
        let again = load("again.toml", &to_toml(&loaded.workload)).expect("the resolved form");
        assert_eq!(again.workload, loaded.workload, "{}", entry.name);
        assert_eq!(again.digest, loaded.digest);
    }
}

#[test]
fn builtins_say_what_they_are() {
    for entry in builtins() {
        let header = entry.header();
        for part in ["Origin:", "Models:", "Expected:", "Doubts:"] {
            assert!(header.contains(part), "{} has no {part}", entry.name);
        }
        assert!(!header.contains("SPDX"));
        let loaded = builtin(entry.name, &[]);
        assert!(!loaded.workload.about.is_empty() && !loaded.workload.origin.is_empty());
        for param in entry.params().expect("legal") {
            assert!(!param.about.is_empty(), "{}: `{}` is not explained", entry.name, param.name);
            // Setting a parameter to its default changes nothing.
            let same = builtin(entry.name, &[(&param.name, &param.default)]);
            assert_eq!(same.workload, loaded.workload, "{}: {}", entry.name, param.name);
        }
    }
}

#[test]
fn builtins_of_the_contract_exist() {
    for name in [
        "hogs",
        "nice-hogs",
        "audio-vs-compile",
        "pingpong",
        "hackbench",
        "schbench",
        "starve",
        "rt-pair",
        "interbench",
        "interbench-audio-burn",
        "interbench-custom-hack",
    ] {
        assert!(find(name).is_some(), "{name}");
    }
}

#[test]
fn unknown_workload_names_the_nearest() {
    let error = resolve("hackbnech", &[], &LoadOptions::default()).expect_err("unknown");
    assert_eq!(error.kind, LoadErrorKind::Usage);
    assert!(error.to_string().contains("did you mean hackbench?"), "{error}");
    let error = resolve("qqqqqqqqqq", &[], &LoadOptions::default()).expect_err("unknown");
    assert!(error.to_string().contains("audio-vs-compile, "), "{error}");
    let error = resolve("no/such/file.toml", &[], &LoadOptions::default()).expect_err("missing");
    assert_eq!(error.kind, LoadErrorKind::Usage);
    assert!(error.to_string().contains("cannot be read"), "{error}");
}

#[test]
fn hackbench_has_the_shape_of_the_program() {
    let workload = builtin("hackbench", &[("groups", "2"), ("fds", "3"), ("loops", "5")]).workload;
    let names: Vec<&str> = workload.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names.len(), 1 + 2 * 3 + 2);
    assert_eq!(workload.tasks.iter().filter(|task| task.at_start).count(), 1);
    assert_eq!(workload.objects.pipes.len(), 2 * 3 + 1);
    let pipe = &workload.objects.pipes[0];
    // 278 messages fit into a socket whichever way the last one is counted.
    let charge = pipe.charge_per_write.expect("a socket");
    assert_eq!(pipe.capacity / charge, 278);
    assert_eq!(pipe.capacity.div_ceil(charge), 278);
    assert_eq!(pipe.writer_wake_below / charge, 69);
    assert!(pipe.sync && pipe.wake_reader_always);
    // A sender writes to every pipe of its group in each round.
    let sender = names.iter().position(|name| *name == "sender-1").expect("there");
    let program = workload.tasks[sender].program.0 as usize;
    let writes: Vec<String> = operations(&workload, program)
        .into_iter()
        .filter(|op| op.starts_with("write fd"))
        .collect();
    assert_eq!(writes, ["write fd-1-0 100", "write fd-1-1 100", "write fd-1-2 100"]);

    let pipes = builtin("hackbench", &[("pipes", "true")]).workload;
    let pipe = &pipes.objects.pipes[0];
    assert_eq!((pipe.capacity, pipe.writer_wake_below), (64_000, 60_000));
    assert!(!pipe.wake_reader_always);
    let threads = builtin("hackbench", &[("threads", "true"), ("groups", "1")]).workload;
    assert!(operations(&threads, 0).contains(&"fork sender-0 thread".to_string()));
}

#[test]
fn schbench_naps_as_the_program_does() {
    let workload =
        builtin("schbench", &[("sleep_usec", "1000"), ("message_threads", "1")]).workload;
    // usleep(s + rand mod (s / 4)): 1000 to 1249 us.
    assert!(operations(&workload, 1).contains(&"sleep uniform(1ms, 1.249ms)".to_string()));
    assert_eq!(
        operations(&workload, 2)[1..3],
        ["spin 30ms".to_string(), "list-join workers-0 wake message-0 mark wakeup".to_string()]
    );
}

#[test]
fn starve_counts_signals_only() {
    let workload = builtin("starve", &[("n", "3"), ("pause", "1s")]).workload;
    assert_eq!(workload.tasks[0].name, "parent");
    assert_eq!(workload.tasks[1].name, "child");
    assert_eq!(
        operations(&workload, 0),
        [
            "fork child",
            "counter 0 = 3",
            "L2:",
            "sig-wait 1s else L2",
            "kernel 1.6us",
            "mark signal 1",
            "dec-jump 0 L2",
            "kill child",
            "wait-children"
        ]
    );
    assert_eq!(
        operations(&workload, 1),
        ["sleep 1s", "L1:", "kernel 1.3us", "signal parent", "jump L1"]
    );
}

/// Names of all combinations that the parameters leave open.
fn combinations(set: &[(&str, &str)]) -> Vec<String> {
    let loaded = builtin("interbench", set);
    let name = |cell: &Vec<(String, String)>| {
        let cell: Vec<(&str, &str)> =
            cell.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let all = [set, cell.as_slice()].concat();
        let loaded = builtin("interbench", &all);
        assert_eq!(loaded.cells.len(), 1);
        assert_eq!(validate(&loaded.workload), Ok(()));
        loaded.workload.name
    };
    loaded.cells.iter().map(name).collect()
}

#[test]
fn interbench_has_every_pair_but_equal_ones() {
    let all = combinations(&[]);
    assert_eq!(all.len(), 34);
    assert_eq!(
        (all[0].as_str(), all[33].as_str()),
        ("interbench-audio-none", "interbench-gaming-memload")
    );
    assert!(!all.contains(&"interbench-video-video".to_string()));
    let real_time = combinations(&[("real_time", "true")]);
    assert_eq!(real_time.len(), 9 + 8);
    assert!(real_time.iter().all(|name| name.contains("audio") || name.contains("-video-")));
    assert_eq!(combinations(&[("load", "hack")]).len(), 4);
    assert_eq!(combinations(&[("bench", "custom")]).len(), 9);
}

#[test]
fn interbench_pair_has_a_name_of_its_own() {
    let pair = builtin("interbench-x-ring", &[("loads", "2")]);
    let set = [("bench", "x"), ("load", "ring"), ("loads", "2")];
    assert_eq!(pair.workload, builtin("interbench", &set).workload);
    let names: Vec<&str> = pair.workload.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["main", "bench", "bench-keeper", "x", "load", "ring-0", "ring-1"]);
    let x = operations(&pair.workload, 3);
    // 0 to 100 % of 100 ms in steps of 1 ms.
    assert_eq!(x.iter().filter(|op| op.starts_with("run ")).count(), 101);
    let at = x.iter().position(|op| op == "run 7ms").expect("there");
    assert!(x[at - 1].starts_with("period bench begin 93ms else"), "{}", x[at - 1]);
    assert!(x[at + 1].starts_with("period bench end 93ms else"), "{}", x[at + 1]);
    let initial: Vec<u64> =
        pair.workload.objects.semaphores.iter().rev().take(2).map(|s| s.initial).collect();
    assert_eq!(initial, [0, 1], "one token");
}

#[test]
fn interbench_runs_for_whole_tens_of_seconds() {
    let main = |seconds| operations(&builtin("interbench", &[("seconds", seconds)]).workload, 0);
    assert!(main("30").contains(&"sleep 30s".to_string()));
    assert!(main("31").contains(&"sleep 40s".to_string()));
}

#[test]
fn names_joined_by_plus_run_side_by_side() {
    let load = |name: &str, set: &[(&str, &str)]| {
        let set: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        resolve(name, &set, &LoadOptions::default())
    };
    let loaded = load("hogs+hackbench+pingpong", &[("runtime", "3s"), ("hogs.hogs", "7")]);
    let workload = loaded.expect("they go together").workload;
    let alone = load("hackbench", &[]).expect("a built-in").workload;
    let n_hogs = workload.tasks.iter().find(|task| task.name == "hog").map(|task| task.count);
    assert_eq!(n_hogs, Some(7));
    let of_hackbench = |task: &&schedlab_workload::ir::TaskSpec| {
        alone.tasks.iter().any(|other| other.name == task.name)
    };
    assert_eq!(workload.tasks.iter().filter(of_hackbench).count(), alone.tasks.len());
    assert!(workload.params.contains(&("hogs.hogs".to_string(), "7".to_string())));
    for (name, set, why) in [
        ("hogs+hogs", &[][..], "the name `hog` is given to more than one task"),
        ("hogs+nothing", &[], "there is no workload of this name"),
        ("hogs+pingpong", &[("hosg", "1")], "none of the parts has a parameter `hosg`"),
    ] {
        let error = load(name, set).expect_err("they do not go together");
        assert!(error.to_string().contains(why), "{error}");
    }
}
