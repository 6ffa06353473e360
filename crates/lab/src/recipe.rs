// SPDX-License-Identifier: GPL-2.0-only
//! What a `.slt` file says of its run: enough to run it again.

use std::sync::Arc;

use schedlab_sim::{CostModel, EventOrder};
use schedlab_trace::slt::SltHeader;
use schedlab_units::{Hz, Nanos};
use schedlab_workload::{LoadOptions, load_text, to_toml};

use crate::machine::parse_machine;
use crate::run::Job;
use crate::spec::PolicySpec;

/// The longest workload that goes into a header; imported recordings can be longer.
const WORKLOAD_MAX: usize = 900_000;

/// The header of `job`, whose workload has this digest; `version` is that of the program.
pub fn header_of(job: &Job, digest: &str, version: &str) -> SltHeader {
    let topo = &job.topo;
    let machine = format!(
        "nodes={},llcs={},cores={},threads={}",
        topo.nodes(),
        topo.llcs_per_node(),
        topo.cores_per_llc(),
        topo.threads_per_core()
    );
    let mut header = SltHeader::new();
    header.push("version", version);
    header.push("policy", &job.policy.to_string());
    header.push("variant", job.policy.variant().name);
    header.push("seed", &job.seed.to_string());
    header.push("machine", &machine);
    header.push("cost", &job.cost.name);
    header.push("hz", &job.hz().get().to_string());
    header.push("workload", &job.workload.name);
    header.push("digest", digest);
    if let Some(duration) = job.duration {
        header.push("duration_ns", &duration.as_ns().to_string());
    }
    if job.order != EventOrder::Kind {
        header.push("order", "creation");
    }
    let workload = to_toml(&job.workload);
    if workload.len() <= WORKLOAD_MAX {
        header.push("workload_toml", &workload);
    }
    header
}

/// The job that a header describes.
///
/// # Errors
/// What is missing in it, or is not known to this version of the program.
pub fn job_of(header: &SltHeader) -> Result<Job, String> {
    let get =
        |key: &str| header.get(key).ok_or_else(|| format!("the file does not tell its {key}"));
    let number = |key: &str| {
        let text = get(key)?;
        text.parse::<u64>().map_err(|_| format!("`{text}` is no {key}"))
    };
    let toml = header
        .get("workload_toml")
        .ok_or("the file does not hold its workload (too long, or written by an older version)")?;
    let loaded = load_text("the recorded workload", toml.to_string(), &[], &LoadOptions::default())
        .map_err(|error| format!("the recorded workload: {}", error.fault))?;
    let cost = get("cost")?;
    let cost = CostModel::built_in(cost)
        .ok_or_else(|| format!("the cost model `{cost}` is a file that the recording lacks"))?;
    let duration = match header.get("duration_ns") {
        Some(_) => Some(Nanos::from_ns(number("duration_ns")?)),
        None => None,
    };
    let hz = u32::try_from(number("hz")?).ok().filter(|hz| (1..=100_000).contains(hz));
    Ok(Job {
        workload: Arc::new(loaded.workload),
        policy: PolicySpec::parse(get("policy")?).map_err(|error| error.to_string())?,
        column: 0,
        topo: parse_machine(get("machine")?).map_err(|error| error.to_string())?,
        cost,
        hz: Some(Hz::new(hz.ok_or("the tick rate is out of range")?)),
        seed: number("seed")?,
        duration,
        warmup: Nanos::ZERO,
        check: false,
        transcript: false,
        order: match header.get("order") {
            Some("creation") => EventOrder::Creation,
            _ => EventOrder::Kind,
        },
        samples: Vec::new(),
    })
}
