// SPDX-License-Identifier: GPL-2.0-only
//! Rows and traces of spec linux-2.6-spa §9 that concern this policy.

mod balance;
mod csv;
mod formulas;
mod golden;
mod hooks;
mod rig;
mod shares;
mod slots;
