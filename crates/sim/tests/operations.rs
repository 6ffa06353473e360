// SPDX-License-Identifier: GPL-2.0-only
//! Single operations of task programs, on one CPU without costs, timed by hand.

use schedlab_policies::{Fifo, Rr, RrTunables};
use schedlab_policy_api::{Build, Observer, PolicyDef, SchedEvent, Topology, Tunables};
use schedlab_sim::{HostObserver, Sim, SimConfig, Status};
use schedlab_units::Time;
use schedlab_workload::{LoadOptions, load_text};

/// Keeps what tasks note themselves, as text.
#[derive(Default)]
struct Notes(Vec<String>);

impl Observer for Notes {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        let us = now.as_ns() / 1000;
        match event {
            SchedEvent::MarkCount { .. } => self.0.push(format!("{us} mark")),
            SchedEvent::MarkLatency { ns, .. } => self.0.push(format!("{us} span {}", ns / 1000)),
            SchedEvent::Deadline { due, .. } => {
                self.0.push(format!("{us} due {}", due.as_ns() / 1000));
            }
            _ => {}
        }
    }
}
impl HostObserver for Notes {}

/// What the tasks noted, with the instants in us, and the end of the run in us.
fn run<P: PolicyDef>(tasks: &str, tunables: &P::Tunables) -> (Vec<String>, u64) {
    let text = format!("[workload]\nname = \"test\"\n{tasks}");
    let loaded = load_text("test.toml", text, &[], &LoadOptions::default()).expect("legal");
    let topo = Topology::flat(1).expect("legal");
    let time = P::INFO.time;
    let policy = P::build(tunables, Build { topo: &topo, hz: time.hz, n_tasks: 8 });
    let config = SimConfig { check: true, ..SimConfig::new(topo, time) };
    let mut sim = Sim::new(&loaded.workload, policy, Notes::default(), config);
    assert_eq!(sim.run_until(Time::MAX), Ok(Status::Finished));
    let end = sim.now().as_ns() / 1000;
    (sim.into_parts().1.0, end)
}

fn fifo(tasks: &str) -> (Vec<String>, u64) {
    run::<Fifo>(tasks, &Default::default())
}

#[test]
fn interrupt_comes_at_multiples_and_is_kept_on_request() {
    let (notes, end) = fifo(
        r#"[[task]]
        name = "t"
        do = ["run 3ms", "interrupt 2ms", "deadline 0s", "run 5ms", "interrupt 2ms kept",
              "deadline 0s", "interrupt 2ms kept", "deadline 0s", "run 3ms", "interrupt 2ms"]"#,
    );
    // Awake at 4; those of 6 and 8 were kept at 9; then that of 10; that of 12 is forgotten at 13.
    assert_eq!(notes, ["4000 due 4000", "9000 due 6000", "10000 due 10000"]);
    assert_eq!(end, 14_000);
}

#[test]
fn before_jumps_until_the_timer_has_passed() {
    let (_, end) = fifo(
        r#"[[timer]]
        name = "x"
        [[task]]
        name = "t"
        do = ["advance x 5ms", "again:", "run 2ms", "before x again"]"#,
    );
    assert_eq!(end, 6_000);
}

#[test]
fn spin_that_looks_now_and_then_ends_with_a_look() {
    let spinner = r#"[[task]]
        name = "t"
        do = ["spin 10ms every 3ms", "mark done"]"#;
    assert_eq!(fifo(spinner), (vec!["12000 mark".to_string()], 12_000));
    let mut tunables = RrTunables::default();
    tunables.set_text("slice", "4ms").expect("legal");
    let hog = "[[task]]\nname = \"hog\"\ndo = [\"run 20ms\"]";
    // Away from 4 to 8, after one look and 1 ms; the second look is at 10.
    let (notes, end) = run::<Rr>(&format!("{spinner}\n{hog}"), &tunables);
    assert_eq!((notes, end), (vec!["10000 mark".to_string()], 26_000));
}

#[test]
fn signal_takes_longer_if_it_finds_the_target_waiting() {
    let (notes, end) = fifo(
        r#"[[task]]
        name = "parent"
        do = ["fork child", "sig-wait", "mark one"]
        [[task]]
        name = "child"
        forked = true
        do = ["signal parent taking 1ms 3ms", "signal parent taking 1ms 3ms", "mark sent"]"#,
    );
    // Under FIFO the child goes on; its second signal finds the first one pending.
    assert_eq!(notes, ["4000 mark", "4000 mark"]);
    assert_eq!(end, 4_000);
}

#[test]
fn fork_copies_running_stopwatches() {
    let (notes, _) = fifo(
        r#"[[task]]
        name = "parent"
        do = ["mark-start life", "run 2ms", "fork child", "wait-children", "mark-stop life"]
        [[task]]
        name = "child"
        forked = true
        do = ["run 1ms", "mark-stop life"]"#,
    );
    assert_eq!(notes, ["3000 span 3000", "3000 span 3000"]);
}
