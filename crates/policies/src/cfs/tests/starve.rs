// SPDX-License-Identifier: GPL-2.0-only
//! `starve` against the reference model of spec cfs-eevdf §8.

use super::{EIGHT_CPUS, set_of};
use crate::cfs::Cfs;
use crate::eevdf::tests::starve::starve;
use crate::eevdf::tests::vectors::rows;

/// Thousandths from a number with up to three decimals.
fn milli(text: &str) -> u64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    alloc::format!("{whole}{part:0<3}").parse().expect("a number")
}

#[test]
fn vectors_starve() {
    for row in rows(include_str!("../vectors/s8-starve.csv")) {
        let mut set = EIGHT_CPUS.to_vec();
        set.extend(set_of(row.text(1)));
        set.extend(row.text(2).split_once('='));
        let hz = row.get(3);
        let (ms_per_million, per_mille, longest_us) = starve::<Cfs>(hz, &set);
        let name = alloc::format!("{} at HZ {hz}", row.name());
        let ms = milli(row.text(4));
        let tolerance = ms * row.get::<u64>(7) / 100;
        assert!(ms_per_million.abs_diff(ms) <= tolerance, "{name}: {ms_per_million} ms");
        assert!(per_mille.abs_diff(milli(row.text(5))) <= 10, "{name}: share {per_mille}");
        assert!(longest_us.abs_diff(milli(row.text(6))) <= 300, "{name}: waits {longest_us} us");
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
