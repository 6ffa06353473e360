// SPDX-License-Identifier: GPL-2.0-only
//! The control socket of a live run: what others may ask of it while it schedules.
//!
//! The host thread is real-time and must not wait for anybody. So threads of their own talk to
//! clients, and [`Control::poll`] hands over one question at a time without taking a lock that
//! somebody else may hold. The format of what is said is in docs/live-control.md.

#[cfg(target_os = "linux")]
mod client;
#[cfg_attr(
    all(not(target_os = "linux"), not(test)),
    expect(dead_code, reason = "lines are written and read where there are live runs")
)]
mod message;
#[cfg(target_os = "linux")]
mod queue;
#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod stream;

#[cfg(target_os = "linux")]
pub use client::{AskError, ask};
pub use message::{Answer, Ask, SCHEMA, StatusReply, TaskReply, TasksReply, TunableReply};
#[cfg(target_os = "linux")]
pub use queue::Reply;
#[cfg(target_os = "linux")]
pub use server::{Control, ControlError};

use std::time::Duration;

/// Where the socket is unless a user says otherwise.
pub const SOCKET: &str = "/run/schedlab/live.sock";
/// Length of a request in bytes that is not exceeded.
pub const REQUEST_MAX: usize = 64 << 10;
/// Clients that are served at the same time; more are told so and sent away.
pub const CLIENTS_MAX: usize = 16;
/// How long a client may take for its request, the host for its answer, and the client to take it.
pub const PATIENCE: Duration = Duration::from_secs(5);
