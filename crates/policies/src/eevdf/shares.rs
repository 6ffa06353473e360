// SPDX-License-Identifier: GPL-2.0-only
//! Weights of task groups, on plain numbers.
//!
//! The policies have no task groups (they compete as with every task in the root group), so no
//! queue calls this: it is the reference for what `cpu.weight` means, beside the reweighting of a
//! queued entity in [`super::arith`].
//! Units: shares are internal weights, nice 0 = 2^20; loads are in the units of the weight table,
//! nice 0 = 1024.

/// `cpu.weight` of a group that nobody set.
pub const CPU_WEIGHT_DEFAULT: u64 = 100;
/// Least weight of a group entity (kernel `MIN_SHARES`).
const MIN_SHARES: u64 = 2;

/// Shares of a group with this `cpu.weight`, 1 … 10000: 100 is the weight of a task with nice 0.
///
/// The quotient is rounded to the nearest, then scaled by 2^10.
///
/// Source: v6.12 `core.c` `cpu_weight_write_u64`; spec cfs-eevdf §4F.
pub const fn shares_of_cpu_weight(cpu_weight: u64) -> u64 {
    ((cpu_weight * 1024 + CPU_WEIGHT_DEFAULT / 2) / CPU_WEIGHT_DEFAULT) << 10
}

/// Weight on one CPU of the entity of a group with `shares`: the part of the group's load that is
/// queued there, `shares · load / total`.
///
/// `load` is the load of the group's queue on this CPU, `tg_load` the load of the whole group as
/// last summed up, `contribution` what this CPU had put into that sum. The sum is brought up to date
/// for this CPU alone, total = tg_load − contribution + load. The result lies between 2 and
/// `shares`; a group without load anywhere has 2.
///
/// # Panics
/// When `contribution` is more than there is to take it from, `tg_load + load`.
///
/// Source: v6.12 `fair.c` `calc_group_shares`; spec cfs-eevdf §4F.
pub const fn group_entity_weight(shares: u64, load: u64, tg_load: u64, contribution: u64) -> u64 {
    let total = tg_load + load - contribution;
    let weight = match (shares * load).checked_div(total) {
        Some(weight) => weight,
        None => 0,
    };
    if weight < MIN_SHARES {
        MIN_SHARES
    } else if weight > shares {
        shares
    } else {
        weight
    }
}

#[cfg(test)]
mod tests {
    //! Rows of cfs-eevdf §9: weights of groups.

    use super::*;

    #[test]
    fn vectors_62_shares_of_cpu_weight() {
        for (cpu_weight, table_weight) in
            [(1, 10), (10, 102), (50, 512), (100, 1024), (1000, 10_240), (10_000, 102_400)]
        {
            assert_eq!(shares_of_cpu_weight(cpu_weight), table_weight << 10, "{cpu_weight}");
        }
    }

    #[test]
    fn vectors_63_weight_of_a_group_entity() {
        let shares = shares_of_cpu_weight(CPU_WEIGHT_DEFAULT);
        assert_eq!(shares, 1 << 20);
        assert_eq!(group_entity_weight(shares, 1024, 2048, 1024), 524_288);
        assert_eq!(group_entity_weight(shares, 2048, 1024, 0), 699_050);
        for tg_load in [0, 1024] {
            assert_eq!(group_entity_weight(shares, 0, tg_load, 0), 2, "load 0 of {tg_load}");
        }
    }

    #[test]
    fn group_on_one_cpu_alone_has_all_its_shares() {
        assert_eq!(group_entity_weight(1 << 20, 3000, 3000, 3000), 1 << 20);
    }
}
