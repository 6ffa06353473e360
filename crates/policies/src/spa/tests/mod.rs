// SPDX-License-Identifier: GPL-2.0-only
//! Rows and traces of spec linux-2.6-spa §9 that concern this policy, and a literal twin of it.

mod balance;
mod formulas;
mod golden;
mod hooks;
mod reference;
mod rig;
mod shares;
mod slots;
mod twin;
