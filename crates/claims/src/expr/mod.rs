// SPDX-License-Identifier: GPL-2.0-only
//! Expressions over the results of runs, in which experiments say what they observe and require.
//!
//! `NAME.path.to.a.field` is a figure of the run NAME, by the keys of schema `schedlab.run/1`;
//! members of its lists are found by name, `*` means all of them. A run with several seeds yields
//! one number per seed, and operations pair them; `mean`, `min` and the like reduce them to one.
//! Durations may be written with their unit and count in ns.

mod eval;
mod parse;
mod value;

pub use eval::{Env, EvalError};
pub use parse::{Expr, SyntaxError, parse};
pub use value::Value;
