// SPDX-License-Identifier: GPL-2.0-only
//! The vectors and traces of spec bfs §9, and twins of the structures.

mod claims;
mod cpus;
mod hooks;
mod make;
mod random;
mod rig;
mod structures;
mod ticks;
mod traces;
mod values;
