// SPDX-License-Identifier: GPL-2.0-only
//! What the fair classes share, whatever orders their queues: weights, load tracking, the domains
//! of a machine, the choice of a CPU, load balancing, trees and sums of virtual times, and the
//! hooks with the real-time classes above.
//!
//! It owns no virtual time, no placement and no rule of the pick: those are a [`Dialect`]'s.

mod balance;
mod busiest;
mod check;
mod detach;
mod dialect;
mod domains;
mod fluid;
mod groups;
mod hooks;
mod idle;
mod idlest;
mod newidle;
mod pelt;
mod policy;
mod queue;
mod realtime;
mod select;
mod state;
mod tracking;
mod tree;
mod weight;

pub(crate) use balance::Plan;
pub(crate) use dialect::{Dialect, Order, Report};
pub(crate) use fluid::Fluid;
pub(crate) use pelt::SchedAvg;

pub(crate) use policy::{Departure, FairPolicy, Parts, knobs_of, parts_of};
pub(crate) use state::{Fair, FairKnobs};
pub(crate) use tracking::Membership;
pub(crate) use tree::{Keys, Tree};
pub(crate) use weight::{Load, Scaling, calc_delta, calc_delta_fair, scale_load_down};
