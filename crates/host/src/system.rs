// SPDX-License-Identifier: GPL-2.0-only
//! Facts about this machine and its kernel.

use schedlab_units::{CpuId, CpuSet, Hz};

use crate::calls;
use crate::rights::{self, Rights};

/// The kernel's release up to its second number, such as `6.18`.
pub fn kernel_version() -> String {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let number = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let major = number(&release);
    match release[major..].strip_prefix('.') {
        Some(rest) => release[..major + 1 + number(rest)].to_string(),
        None => release,
    }
}

/// The kernel's tick rate: the reciprocal of the resolution of `CLOCK_REALTIME_COARSE`.
pub fn tick_rate() -> Hz {
    let tick = calls::tick().as_ns().max(1);
    let hz = (1_000_000_000 + tick / 2) / tick;
    Hz::new(u32::try_from(hz).unwrap_or(u32::MAX).clamp(1, 100_000))
}

/// The CPUs this process may use.
pub fn allowed_cpus() -> CpuSet {
    let mut cpus = CpuSet::first_n(0);
    if let Ok(set) = rustix::thread::sched_getaffinity(None) {
        let known = rustix::thread::CpuSet::MAX_CPU.min(schedlab_units::MAX_CPUS);
        for cpu in (0..known).filter(|cpu| set.is_set(*cpu)) {
            cpus.insert(CpuId::from_index(cpu));
        }
    }
    cpus
}

/// The load averages of one, five and fifteen minutes, as the kernel prints them.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// What this process may not play of any workload, one sentence each with its remedy.
pub fn play_limits() -> Vec<String> {
    rights::limits(Rights::here())
}
