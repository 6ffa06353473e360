// SPDX-License-Identifier: GPL-2.0-only
//! What the fair classes share, whatever orders their queues: weights, load tracking, the domains
//! of a machine, the choice of a CPU and load balancing.
//!
//! It owns no order of tasks on a queue and no virtual time.

mod balance;
mod busiest;
mod detach;
mod domains;
mod groups;
mod idlest;
mod newidle;
mod pelt;
mod select;
mod state;
mod tracking;
mod weight;

pub(crate) use balance::Plan;
pub(crate) use pelt::SchedAvg;
pub(crate) use state::{Fair, FairKnobs};
pub(crate) use tracking::Membership;
pub(crate) use weight::{Load, Scaling, calc_delta, calc_delta_fair, scale_load_down};
