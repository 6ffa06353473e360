// SPDX-License-Identifier: GPL-2.0-only
//! Schema `schedlab.claims/1`.

use serde_json::{Value as Json, json as object};

use super::{Judged, summary};
use crate::judge::Outcome;

/// Name and version of the schema.
pub const SCHEMA: &str = "schedlab.claims/1";

/// All claims as JSON text that ends with a newline; `wall_ns` is what the host needed, the only
/// part that differs between repetitions.
///
/// # Panics
/// Never: plain data always serializes.
pub fn json(judged: &[Judged<'_>], quick: bool, wall_ns: u64) -> String {
    let [reproduced, not_reproduced, report_only, unexpected] = summary(judged);
    let all = object!({
        "schema": SCHEMA,
        "version": schedlab_report::model::VERSION,
        "claims": judged.iter().map(|judged| claim(judged, quick)).collect::<Vec<_>>(),
        "summary": {
            "reproduced": reproduced,
            "not_reproduced": not_reproduced,
            "report_only": report_only,
            "unexpected": unexpected,
        },
        "quick": quick,
        "host": {"wall_ns": wall_ns},
    });
    let mut text = serde_json::to_string_pretty(&all).expect("plain data");
    text.push('\n');
    text
}

fn claim(judged: &Judged<'_>, quick: bool) -> Json {
    let (experiment, outcome) = (&judged.entry.experiment, judged.outcome);
    let claim = &experiment.claim;
    object!({
        "id": claim.id,
        "thread": claim.thread,
        "says": claim.says,
        "who": claim.who,
        "numbers": claim.numbers,
        "expected": claim.expected,
        "verdict": outcome.verdict,
        "observed": outcome.observed,
        "bound": experiment.bound(quick),
        "note": claim.note,
        "seeds": outcome.seeds,
        "simulated_ns": outcome.simulated_ns,
        "theirs": experiment.theirs,
        "conditions": outcome.conditions.iter().map(|(text, holds)| object!({"condition": text, "holds": holds})).collect::<Vec<_>>(),
        "why": claim.why,
        "warnings": outcome.warnings,
    })
}

/// The outcomes in a text that [`json`] wrote, in its order.
///
/// # Errors
/// What the text lacks.
pub fn outcomes(text: &str) -> Result<Vec<Outcome>, String> {
    let all: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let claims = all["claims"].as_array().ok_or("there are no `claims`")?;
    claims.iter().map(outcome).collect()
}

fn outcome(claim: &Json) -> Result<Outcome, String> {
    let condition = |json: &Json| {
        let text = json["condition"].as_str().unwrap_or_default().to_string();
        (text, json["holds"] == Json::Bool(true))
    };
    let conditions = claim["conditions"].as_array().into_iter().flatten().map(condition);
    // The rest has the names and forms of the fields.
    let mut plain = claim.clone();
    plain["conditions"] = object!(conditions.collect::<Vec<_>>());
    serde_json::from_value(plain).map_err(|error| format!("{}: {error}", claim["id"]))
}
