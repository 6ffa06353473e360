// SPDX-License-Identifier: GPL-2.0-only
//! `starve` under CFS against the reference model of spec cfs-eevdf §8.

use crate::cfs::Cfs;
use crate::eevdf::tests::starve::starve;

use super::EIGHT_CPUS;

/// Rows `cfs63` of the reference results.
#[test]
fn starve_matches_the_reference_model() {
    for (hz, ms, share) in [(1000, 4_690, 496), (250, 4_810, 483)] {
        let (ms_per_million, per_mille, longest_us) = starve::<Cfs>(hz, &EIGHT_CPUS);
        assert!(ms_per_million.abs_diff(ms) <= ms / 20, "HZ {hz}: {ms_per_million}");
        assert!(per_mille.abs_diff(share) <= 10, "HZ {hz}: share {per_mille}");
        assert!(longest_us.abs_diff(12_000) <= 300, "HZ {hz}: waits {longest_us} us");
    }
}
