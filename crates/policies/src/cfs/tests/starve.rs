// SPDX-License-Identifier: GPL-2.0-only
//! `starve` against the reference model of spec cfs-eevdf §8.

use schedlab_units::CpuId;

use super::{EIGHT_CPUS, set_of, single};
use crate::cfs::Cfs;
use crate::csv::rows;
use crate::eevdf::tests::starve::starve;

/// Thousandths from a number with up to three decimals.
fn milli(text: &str) -> u64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    alloc::format!("{whole}{part:0<3}").parse().expect("a number")
}

#[test]
fn starve_matches_the_reference_model() {
    for row in rows(include_str!("../vectors/s8-starve.csv")) {
        let mut set = EIGHT_CPUS.to_vec();
        set.extend(set_of(row.text("variant")));
        set.extend(row.text("set").split_once('='));
        let hz = row.get("hz");
        let (ms_per_million, per_mille, longest_us) = starve::<Cfs>(hz, &set);
        let name = alloc::format!("{} at HZ {hz}", row.text("dialect"));
        let ms = milli(row.text("s_per_million"));
        let tolerance = ms * row.get::<u64>("tolerance_percent") / 100;
        assert!(ms_per_million.abs_diff(ms) <= tolerance, "{name}: {ms_per_million} ms");
        assert!(per_mille.abs_diff(milli(row.text("share"))) <= 10, "{name}: share {per_mille}");
        assert!(
            longest_us.abs_diff(milli(row.text("wait_ms"))) <= 300,
            "{name}: waits {longest_us} us"
        );
    }
}

/// Claim C3: the bonus makes at least ten times as many deliveries.
#[test]
fn bonus_cures_starvation() {
    let mut set = EIGHT_CPUS.to_vec();
    set.extend(set_of("eevdf-v1-fs"));
    let (with, ..) = starve::<Cfs>(1000, &set);
    set.push(("fair_sleepers", "off"));
    let (without, ..) = starve::<Cfs>(1000, &set);
    assert!(without >= 10 * with, "{without} : {with}");
}

/// Share in per mille of a task that runs for `span` ns and sleeps as long, beside a hog, in 4 s.
fn share_of_half_sleeper(variant: &str, span: u64) -> u64 {
    let mut rig = single(1000, &set_of(variant));
    let (sleeper, _hog) = (rig.spawn_nice(0), rig.spawn_nice(0));
    rig.schedule(0);
    let (mut wakes_at, mut stops_at) = (None, span);
    for step in 1..=80_000 {
        rig.run_until(step * 50_000);
        if rig.core.curr(CpuId(0)) == Some(sleeper) && rig.run_ns(sleeper) >= stops_at {
            rig.block(0);
            wakes_at = Some(rig.now + span);
            stops_at += span;
        }
        if wakes_at.is_some_and(|at| at <= rig.now) {
            wakes_at = None;
            rig.wake(0, sleeper, None);
        }
        rig.settle();
    }
    rig.run_ns(sleeper) * 1000 / rig.now
}

/// Claim S4: with credit for its sleep a task that wants half of the CPU gets it; strict fairness
/// gives it a third.
#[test]
fn half_sleeper_gets_half_with_the_bonus_and_a_third_without() {
    for (variant, share) in [("6.3", 500), ("6.1", 500), ("eevdf-v1", 333), ("eevdf-v1.1", 333)] {
        let got = share_of_half_sleeper(variant, 5_000_000);
        assert!(got.abs_diff(share) <= 20, "{variant}: {got}");
    }
}
