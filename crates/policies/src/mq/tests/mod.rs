// SPDX-License-Identifier: GPL-2.0-only
//! Rows M of spec linux-2.4-goodness §9, the steps of §5.3, one CPU beside goodness, and a literal
//! twin of the policy.

mod hooks;
mod placing;
mod reference;
mod rig;
mod scheduling;
mod twin;
mod up;
mod vectors;
