// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-spa §9 and claim S6: shares of a sleeper beside a hog, means over 14 seeds.

use crate::linux_2_6::rig::check_shares;
use crate::spa::Spa;

fn check_row(id: &str) {
    check_shares::<Spa>(include_str!("../vectors/shares.csv"), id, "");
}

#[test]
fn vectors_60_shares() {
    check_row("60");
}

#[test]
fn vectors_62_shares_without_wait_credit() {
    check_row("62");
}

#[test]
fn vectors_63_shares_without_bonus() {
    check_row("63");
}

#[test]
fn vectors_64_shares_with_slice_100() {
    check_row("64");
}

#[test]
fn vectors_65_shares_with_rarer_promotion() {
    check_row("65");
}

/// Claim S6; its DOUBT about 50 and 75 ms is kept as the ranges of means that the spec saw.
#[test]
fn claim_s6_shares_by_slice() {
    check_row("S6");
}
