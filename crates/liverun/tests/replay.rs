// SPDX-License-Identifier: GPL-2.0-only
//! Transcripts of a running kernel replay to the same decisions (I10), and one that was changed does
//! not.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;
use schedlab_liverun::transcript::{Replay, replay};
use schedlab_trace::transcript::{Block, Frame, Header, MAGIC, Output, open};
use schedlab_units::{CpuId, Located};

fn packed(policy: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    std::fs::read(path.join(format!("{policy}.live.zst"))).expect("a fixture")
}

/// Header and frames of a fixture.
fn taken_apart(policy: &str) -> (Header, Vec<Frame>) {
    let file = packed(policy);
    let mut transcript = open(&file[..]).expect("a transcript");
    let mut frames = Vec::new();
    while let Some(frame) = transcript.next_frame().expect("whole") {
        frames.push(frame);
    }
    (transcript.header().clone(), frames)
}

fn put_together(header: &Header, frames: &[Frame]) -> Vec<u8> {
    let mut bytes = [&MAGIC, header.to_line().as_bytes()].concat();
    for some in frames.chunks(1000) {
        let mut block = Block::new();
        some.iter().for_each(|frame| block.push(frame));
        bytes.extend(block.seal());
    }
    bytes
}

fn again(header: &Header, frames: &[Frame]) -> Result<Replay, Located> {
    replay(&put_together(header, frames)[..])
}

#[test]
fn transcript_of_a_kernel_replays_to_the_same_decisions() {
    for policy in ["bfs", "eevdf"] {
        let file = packed(policy);
        let found = replay(&file[..]).unwrap_or_else(|fault| panic!("{policy}: {fault}"));
        assert!(found.divergence.is_none(), "{policy}: {:?}", found.divergence);
        assert!(found.picks > 500, "{policy}: {}", found.picks);
        assert!(found.end.is_some_and(|end| end.is_valid && end.is_complete), "{policy}");
    }
}

#[test]
fn decision_that_was_changed_is_the_first_difference() {
    let (header, mut frames) = taken_apart("eevdf");
    let gives = |frame: &Frame| matches!(frame, Frame::Output(Output::Give(..)));
    let at = (0..frames.len()).filter(|i| gives(&frames[*i])).nth(400).expect("many decisions");
    let before = frames[..at].iter().filter(|frame| matches!(frame, Frame::Output(_))).count();
    if let Frame::Output(Output::Give(_, decision)) = &mut frames[at] {
        decision.run.pid += 1;
    }
    let found = again(&header, &frames).expect("whole");
    let divergence = found.divergence.expect("it was changed");
    assert_eq!(divergence.common, before as u64);
    assert_eq!(found.picks, 400);
    let decided = divergence.sides.map(|side| side.decision.expect("both decided").what);
    assert!(decided.iter().all(|what| what.starts_with("CPU ")), "{decided:?}");
    assert_ne!(decided[0], decided[1]);
}

#[test]
fn decision_too_many_or_too_few_is_a_difference() {
    let (header, frames) = taken_apart("bfs");
    let at = frames.iter().rposition(|f| matches!(f, Frame::Output(Output::Commit(_))));
    let at = at.expect("decisions took effect") + 1;
    let mut more = frames.clone();
    more.insert(at, Frame::Output(Output::Kick(CpuId(0))));
    let sides = again(&header, &more).expect("whole").divergence.expect("one too many").sides;
    let decided = sides.map(|side| side.decision.expect("something").what);
    assert_eq!(decided, ["CPU 0 is to look for work", "the host tells nothing more"]);
    let mut fewer = frames;
    fewer.remove(at - 1);
    let sides = again(&header, &fewer).expect("whole").divergence.expect("one too few").sides;
    let decided = sides.map(|side| side.decision.expect("something").what);
    assert_eq!(
        decided,
        ["the host tells nothing more", "nothing more before all that takes effect"]
    );
}

#[test]
fn other_tunables_decide_otherwise() {
    let (mut header, frames) = taken_apart("eevdf");
    let slice = header.tunables.iter_mut().find(|(name, _)| name == "base_slice");
    slice.expect("EEVDF has it").1 = "100ms".to_string();
    assert!(again(&header, &frames).expect("whole").divergence.is_some());
}

#[test]
fn run_that_was_killed_replays_up_to_its_last_whole_block() {
    let (header, frames) = taken_apart("bfs");
    let found = again(&header, &frames[..2000]).expect("readable");
    assert!(found.divergence.is_none() && found.end.is_none() && found.picks > 0);
}

#[test]
fn header_that_cannot_be_followed_is_an_error() {
    let (header, frames) = taken_apart("bfs");
    let change = |change: fn(&mut Header)| {
        let mut header = header.clone();
        change(&mut header);
        again(&header, &frames).expect_err("not to be followed").message
    };
    insta::assert_snapshot!(
        [
            change(|h| h.policy = "nosuch".to_string()),
            change(|h| h.tunables.push(("nosuch".to_string(), "1".to_string()))),
            change(|h| h.cpus = "0-7".to_string()),
            change(|h| h.topology = [0, 1, 1, 1]),
            change(|h| h.kernel_hz = 0),
            change(|h| h.hz = 17),
            change(|h| h.n_tasks = usize::MAX),
        ]
        .join("\n")
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, ..ProptestConfig::with_cases(48)
    })]

    /// Inputs that no kernel gives: the replay tells a difference or a fault, and nothing more.
    #[test]
    fn frames_in_another_order_do_no_harm(
        swaps in proptest::collection::vec((any::<Index>(), any::<Index>()), 1..8),
        doubled in any::<Index>(),
        cpu in any::<u16>(),
    ) {
        let (header, mut frames) = taken_apart("bfs");
        frames.truncate(1500);
        for (a, b) in &swaps {
            let (a, b) = (a.index(frames.len()), b.index(frames.len()));
            frames.swap(a, b);
        }
        let mut again_there = frames[doubled.index(frames.len())].clone();
        if let Frame::Record(message) = &mut again_there {
            message.msg.cpu = cpu % 1024;
        }
        frames.insert(doubled.index(frames.len()), again_there);
        if let Err(fault) = again(&header, &frames) {
            prop_assert!(fault.message.starts_with("byte "), "{}", fault);
        }
    }
}
