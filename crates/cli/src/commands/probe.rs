// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab probe`: what this host can do, and what is missing.

use schedlab_live::probe::{Check, Findings, Status, judge, require};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::live_args::ProbeArgs;
use crate::output::Destination;

/// Tells what can be done here.
///
/// # Errors
/// The first thing that keeps policies from being run live, after the whole report.
pub(crate) fn probe(args: &ProbeArgs) -> Result<Exit, Failure> {
    let report = Report::here();
    let shown = match args.format.as_str() {
        "json" => format!("{:#}\n", report.json()),
        _ => report.text(),
    };
    Destination::Stdout.write(shown.as_bytes())?;
    match require(&report.live) {
        Ok(_) => Ok(Exit::Done),
        Err(missing) => Err(Failure::new(Exit::Host, &missing.message).with_hint(&missing.remedy)),
    }
}

/// Everything that is told, each part in the order of its lines.
struct Report {
    live: Vec<Check>,
    record: Vec<Check>,
    play: Vec<Check>,
}

impl Report {
    fn here() -> Self {
        let Other { record, play } = Other::here();
        Self { live: judge(&Findings::here()), record, play }
    }

    /// A part for each command, a line for each check with its remedy below, and the verdict.
    fn text(&self) -> String {
        let parts = [("live", &self.live), ("record", &self.record), ("play", &self.play)];
        let names = parts.iter().flat_map(|(_, checks)| checks.iter());
        let width = names.map(|check| check.name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (command, checks) in parts {
            text += &format!("schedlab {command}\n");
            for check in checks {
                let Check { name, status, found, remedy } = check;
                text += &format!("  {:7}  {name:width$}  {found}\n", status.name());
                if !remedy.is_empty() {
                    text += &format!("  {:7}  {:width$}  -> {remedy}\n", "", "");
                }
            }
            text.push('\n');
        }
        text + &self.verdict() + "\n"
    }

    fn verdict(&self) -> String {
        let count =
            |checks: &[Check], status| checks.iter().filter(|check| check.status == status).count();
        let of = |command: &str, checks: &[Check]| match (
            count(checks, Status::Missing),
            count(checks, Status::Warning),
        ) {
            (0, 0) => format!("{command} works"),
            (0, 1) => format!("{command} works with 1 warning"),
            (0, n) => format!("{command} works with {n} warnings"),
            (1, _) => format!("{command} does not work: 1 thing is missing"),
            (n, _) => format!("{command} does not work: {n} things are missing"),
        };
        let verdicts = [of("live", &self.live), of("record", &self.record), of("play", &self.play)];
        format!("verdict: {}", verdicts.join("; "))
    }

    fn json(&self) -> Value {
        let part = |checks: &[Check]| {
            let checks_json = checks.iter().map(|check| {
                json!({
                    "name": check.name, "status": check.status.name(), "found": check.found,
                    "remedy": check.remedy,
                })
            });
            json!({
                "possible": checks.iter().all(|check| check.status != Status::Missing),
                "checks": checks_json.collect::<Vec<_>>(),
            })
        };
        json!({
            "schema": "schedlab.probe/1",
            "version": env!("CARGO_PKG_VERSION"),
            "live": part(&self.live),
            "record": part(&self.record),
            "play": part(&self.play),
            "verdict": self.verdict(),
        })
    }
}

/// What is told of other commands than `live`.
struct Other {
    record: Vec<Check>,
    play: Vec<Check>,
}

impl Other {
    #[cfg(target_os = "linux")]
    fn here() -> Self {
        let obstacles = schedlab_host::tracefs::obstacles();
        Self::of(&obstacles, &schedlab_host::system::play_limits())
    }

    #[cfg(not(target_os = "linux"))]
    fn here() -> Self {
        let linux = || vec![check("system", Status::Missing, "Linux: this is another system")];
        Self { record: linux(), play: linux() }
    }

    /// Of what is in the way of tracing, and of what a play may not ask for.
    fn of(obstacles: &[String], limits: &[String]) -> Self {
        let mut record: Vec<Check> =
            obstacles.iter().map(|told| check("tracing", Status::Missing, told)).collect();
        let mut play: Vec<Check> =
            limits.iter().map(|told| check("rights", Status::Warning, told)).collect();
        if limits.is_empty() {
            play.push(check("rights", Status::Ok, "every class and nice value is permitted"));
        }
        if obstacles.is_empty() {
            record.push(check("tracing", Status::Ok, "the scheduler's tracepoints"));
            play.push(check("tracing", Status::Ok, "exact figures from tracepoints"));
        } else {
            let told = "no tracing: figures are coarser, from /proc: mend what record lacks";
            play.push(check("tracing", Status::Warning, told));
        }
        Self { record, play }
    }
}

/// A check from a sentence of the form `what is missing: how to mend it`.
fn check(name: &'static str, status: Status, told: &str) -> Check {
    let (found, remedy) = match (status, told.rsplit_once(": ")) {
        (Status::Ok, _) | (_, None) => (told, ""),
        (_, Some((found, remedy))) => (found, remedy),
    };
    Check { name, status, found: found.to_string(), remedy: remedy.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Findings {
        Findings {
            os: "linux".to_string(),
            arch: "x86_64".to_string(),
            euid: Some(0),
            caps: u64::MAX,
            release: "6.12.117".to_string(),
            distribution: "debian".to_string(),
            sched_ext: Some("disabled".to_string()),
            btf: true,
            pid_namespace: Some(4_026_531_836),
            cpus: 4,
            ..Findings::default()
        }
    }

    /// The report without what depends on how this test was built.
    fn report(findings: &Findings, obstacles: &[&str], limits: &[&str]) -> Report {
        let owned =
            |texts: &[&str]| texts.iter().map(|text| (*text).to_string()).collect::<Vec<_>>();
        let Other { record, play } = Other::of(&owned(obstacles), &owned(limits));
        let mut live = judge(findings);
        live.retain(|check| check.name != "build");
        Report { live, record, play }
    }

    #[test]
    fn text_of_a_host_that_can_do_everything() {
        insta::assert_snapshot!(report(&findings(), &[], &[]).text());
    }

    #[test]
    fn text_of_a_user_on_an_old_kernel() {
        let old = Findings {
            euid: Some(1000),
            caps: 0,
            release: "6.1.0-28-amd64".to_string(),
            sched_ext: None,
            ..findings()
        };
        let obstacles = [
            "the right to trace: run as root (`sudo schedlab …`)",
            "a readable tracefs: mount it with `mount -t tracefs tracefs /sys/kernel/tracing`",
        ];
        let limits = ["nice values below 0: run as root"];
        insta::assert_snapshot!(report(&old, &obstacles, &limits).text());
    }

    #[test]
    fn json_says_the_same_as_the_text() {
        let other = Findings {
            sched_ext: Some("enabled".to_string()),
            ops: Some("scx_simple".to_string()),
            ..findings()
        };
        let json = report(&other, &[], &[]).json();
        assert_eq!(json["live"]["possible"], false);
        assert_eq!(json["record"]["possible"], true);
        let checks = json["live"]["checks"].as_array().expect("a list");
        let missing: Vec<_> = checks.iter().filter(|check| check["status"] == "missing").collect();
        assert_eq!(missing.len(), 1, "{json:#}");
        let text = "another sched_ext scheduler is loaded: scx_simple; stop it first";
        assert_eq!(missing[0]["found"], text);
    }
}
