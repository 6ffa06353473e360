// SPDX-License-Identifier: GPL-2.0-only
//! Claims that people made about schedulers, as experiments that run and are judged.
//!
//! A claim is one file in `experiments/`: who said what, which runs, what is observed in them, and
//! the condition under which the claim counts as reproduced. [`experiment`] reads it, [`plan`] makes
//! jobs of it, [`judge`] gives the verdict, [`run`] does all that for many claims at once, and
//! [`outputs`] shows what came out.
#![forbid(unsafe_code)]

pub mod experiment;
pub mod expr;
pub mod judge;
pub mod library;
pub mod outputs;
pub mod plan;
pub mod run;
