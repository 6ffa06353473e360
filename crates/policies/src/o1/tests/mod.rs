// SPDX-License-Identifier: GPL-2.0-only
//! Rows of spec linux-2.6-o1 §9 by number, and what the policy does on a machine without costs.

mod claims;
mod estimator;
mod golden;
mod hooks;
mod linux_2_6_17;
mod linux_2_6_6;
mod linux_2_6_6_smp;
mod random;
mod rig;
mod smp;
mod starve;
mod traces;
mod twin;
mod values;
