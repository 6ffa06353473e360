// SPDX-License-Identifier: GPL-2.0-only
//! Answers that are known beforehand, through the whole path from a built-in workload to figures.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use schedlab_lab::machine::parse_machine;
use schedlab_lab::run::{Job, Silent, run};
use schedlab_lab::spec::PolicySpec;
use schedlab_metrics::{RunFigures, TaskFigures};
use schedlab_policies::infos;
use schedlab_sim::{CostModel, EventOrder};
use schedlab_units::Nanos;
use schedlab_workload::{LoadOptions, resolve};

/// Figures of a built-in workload under `policy`.
fn figures(
    workload: &str,
    set: &[(&str, &str)],
    policy: &str,
    machine: &str,
    cost: CostModel,
    duration: Option<Nanos>,
) -> RunFigures {
    let set: Vec<(String, String)> =
        set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let loaded = resolve(workload, &set, &LoadOptions::default()).expect("a built-in");
    let job = Job {
        workload: Arc::new(loaded.workload),
        policy: PolicySpec::parse(policy).expect("legal"),
        column: 0,
        topo: parse_machine(machine).expect("legal"),
        cost,
        hz: None,
        seed: 1,
        duration,
        warmup: Nanos::ZERO,
        check: true,
        transcript: false,
        order: EventOrder::Kind,
        samples: Vec::new(),
    };
    run(&job, &AtomicBool::new(false), &Silent, None).expect("runs").result.figures
}

fn task<'a>(figures: &'a RunFigures, name: &str) -> &'a TaskFigures {
    figures.tasks.iter().find(|t| t.name == name).unwrap_or_else(|| panic!("no task {name}"))
}

fn share(figures: &RunFigures, name: &str) -> f64 {
    task(figures, name).figures.run.as_ns() as f64 / figures.elapsed.as_ns() as f64
}

/// Every variant of every policy.
fn specs() -> impl Iterator<Item = String> {
    infos().flat_map(|info| {
        info.variants.iter().map(|variant| match variant.name {
            "" => info.name.to_string(),
            name => format!("{}@{name}", info.name),
        })
    })
}

#[test]
fn equal_hogs_share_a_cpu_evenly_under_every_policy() {
    // A minute; whoever is ahead at its end is ahead by at most one slice, 120 ms under goodness.
    for spec in specs().filter(|spec| spec != "fifo") {
        let minute = Some(Nanos::from_s(60));
        let cost = CostModel::zero();
        let figures = figures("hogs", &[("hogs", "2")], &spec, "1", cost, minute);
        for task in &figures.tasks {
            let off = task.figures.run.as_ns().abs_diff(30_000_000_000);
            assert!(off <= 120_000_000, "{spec}: {} is off by {off} ns", task.name);
        }
    }
}

#[test]
fn nice_0_against_nice_5_under_eevdf_is_1024_to_335() {
    let set = [("hogs_a", "1"), ("nice_a", "0"), ("hogs_b", "1"), ("nice_b", "5")];
    let minute = Some(Nanos::from_s(60));
    let figures = figures("nice-hogs", &set, "eevdf@6.12", "1", CostModel::zero(), minute);
    let expected = 1024.0 / (1024.0 + 335.0);
    let found = share(&figures, "hog-a");
    assert!((found / expected - 1.0).abs() < 0.002, "{found} against {expected}");
}

/// Spec cfs-eevdf §8, S4 and the table of reference results: 0.348 with the costs of §7.1.
#[test]
fn starve_under_eevdf_gives_the_parent_a_third() {
    let only_switch = "[context_switch]\nns = 725\n";
    let recommended = CostModel::parse("§7.1", only_switch).expect("well formed");
    let default = CostModel::built_in("default").expect("there");
    for cost in [recommended, default] {
        for policy in ["eevdf@6.12", "eevdf@6.12:base_slice=2800us"] {
            let name = cost.name.clone();
            let length = Some(Nanos::from_s(4));
            let figures = figures("starve", &[], policy, "1", cost.clone(), length);
            let found = share(&figures, "parent");
            assert!((found - 0.348).abs() < 0.01, "{policy}, {name}: {found}");
        }
    }
}

/// Spec linux-2.4-goodness §7.3 on one CPU: with `k` ticks left to the running task the higher one,
/// woken in tick `w`, waits max(0, k − w) ticks where levels differ by one and T = 1.
#[test]
fn rt_off_by_one_of_2_4_5_is_exact_and_gone_in_ac() {
    let wait = |policy: &str, class: &str, high: &str, wake: &str| {
        let set = [("class", class), ("high", high), ("wake", wake), ("runtime", "300ms")];
        let figures = figures("rt-pair", &set, policy, "1", CostModel::zero(), None);
        task(&figures, "high").figures.longest_wait
    };
    // A task of the start owns k = 6 ticks; a sleep of (w − 1) ticks ends in tick w.
    for (wake, w) in [("10ms", 2u64), ("40ms", 5), ("50ms", 6), ("60ms", 7)] {
        let off_by_one = Nanos::from_ms(10 * 6u64.saturating_sub(w));
        assert_eq!(wait("goodness@2.4.5", "fifo", "51", wake), off_by_one, "2.4.5, tick {w}");
        for (policy, high) in [
            ("goodness@2.4.5", "52"),
            ("goodness@2.4.5-ac", "51"),
            ("goodness@2.4.10", "51"),
            ("goodness@2.4.5:rt_scale=2", "51"),
        ] {
            for class in ["fifo", "rr"] {
                let found = wait(policy, class, high, wake);
                assert_eq!(found, Nanos::ZERO, "{policy}, {class}, {high}, tick {w}");
            }
        }
    }
    // The refilled slice of an RR task: exhausted at ticks 6 and 12.
    assert_eq!(wait("goodness@2.4.5", "rr", "51", "60ms"), Nanos::from_ms(50), "rr, tick 7");
}

/// Spec linux-2.4-goodness §7.3 on eight CPUs with a running task of level 50 each: woken at 20 ms,
/// the higher one runs at CPU 0's sixth local tick, at 50 ms + ⌊10 ms / 9⌋.
#[test]
fn rt_off_by_one_on_eight_cpus_lasts_until_the_sixth_tick() {
    let wait = |policy: &str, high: &str| {
        let set = [("lows", "8"), ("high", high), ("wake", "10ms")];
        let figures = figures("rt-pair", &set, policy, "8", CostModel::zero(), None);
        task(&figures, "high").figures.longest_wait
    };
    assert_eq!(wait("goodness@2.4.5", "51"), Nanos::from_ns(31_111_111));
    assert_eq!(wait("goodness@2.4.5", "52"), Nanos::ZERO);
    assert_eq!(wait("goodness@2.4.5-ac", "51"), Nanos::ZERO);
    assert_eq!(wait("goodness@2.4.5:rt_scale=2", "51"), Nanos::ZERO);
}
