// SPDX-License-Identifier: GPL-2.0-only
//! Machine specs: a CPU count, four numbers, a preset's name, or TOML text.

use schedlab_policy_api::{Topology, TopologyError};
use schedlab_units::Located;
use thiserror::Error;

use crate::nearest::{hint, shorten};

/// A machine that has a name.
struct Preset {
    name: &'static str,
    about: &'static str,
    /// Nodes, LLCs per node, cores per LLC, threads per core.
    shape: [u32; 4],
}

const PRESETS: &[Preset] = &[
    Preset { name: "up", about: "one CPU", shape: [1, 1, 1, 1] },
    Preset { name: "dual-core", about: "two cores that share a cache", shape: [1, 1, 2, 1] },
    Preset { name: "smp4", about: "four packages of one core each", shape: [1, 4, 1, 1] },
    Preset { name: "smp8", about: "eight packages of one core each", shape: [1, 8, 1, 1] },
    Preset {
        name: "ivb-ep",
        about: "two Ivy Bridge-EP packages of ten cores with two threads (spec cfs-eevdf 7.6)",
        shape: [2, 1, 10, 2],
    },
];

/// Names of the four numbers, in order.
const KEYS: [&str; 4] = ["nodes", "llcs", "cores", "threads"];

/// Names of the presets with one line about each.
pub fn presets() -> impl Iterator<Item = (&'static str, &'static str)> {
    PRESETS.iter().map(|preset| (preset.name, preset.about))
}

/// Reads a machine spec that is no file: `4`, `nodes=2,llcs=1,cores=10,threads=2`, `ivb-ep`.
///
/// A count means single-thread cores that share one cache; a number that is left out is 1.
///
/// # Errors
/// [`MachineError`] says what is wrong and what a machine spec looks like.
pub fn parse_machine(text: &str) -> Result<Topology, MachineError> {
    if let Some(preset) = PRESETS.iter().find(|preset| preset.name == text) {
        return from_shape(preset.shape);
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let n = text.parse().map_err(|_| MachineError::Topology(TopologyError::TooLarge))?;
        return Ok(Topology::flat(n)?);
    }
    if !text.contains('=') {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        return Err(MachineError::Unknown { text: shorten(text), hint: hint(text, &names) });
    }
    let mut shape = [None; 4];
    for part in text.split(',') {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let slot = slot_of(key)?;
        if shape[slot].is_some() {
            return Err(MachineError::Twice { key: shorten(key) });
        }
        let number = value
            .parse()
            .map_err(|_| MachineError::Number { key: shorten(key), value: shorten(value) })?;
        shape[slot] = Some(number);
    }
    from_shape(shape.map(|number| number.unwrap_or(1)))
}

/// Reads a machine from TOML text with the keys `nodes`, `llcs`, `cores`, `threads`.
///
/// # Errors
/// A [`Located`] fault with its place in `text`.
pub fn parse_machine_toml(text: &str) -> Result<Topology, Located> {
    let table = toml::de::DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Located::at_offset(text, at, error.message().to_string())
    })?;
    let mut shape = [None; 4];
    let mut last = 0;
    for (key, value) in table.get_ref() {
        let at = |offset: usize, message: String| Located::at_offset(text, offset, message);
        let slot = slot_of(key.get_ref()).map_err(|e| at(key.span().start, e.to_string()))?;
        let number = value
            .get_ref()
            .as_integer()
            .and_then(|n| u32::from_str_radix(n.as_str(), n.radix()).ok());
        let wrong = || {
            let shown = value.get_ref().type_str();
            let message = format!("`{}` must be a whole number, not this {shown}", key.get_ref());
            at(value.span().start, message)
        };
        shape[slot] = Some(number.ok_or_else(wrong)?);
        last = last.max(value.span().start);
    }
    if shape == [None; 4] {
        let message = "the file describes no machine";
        return Err(Located::whole(message).hint("write for example `cores = 4`"));
    }
    from_shape(shape.map(|number| number.unwrap_or(1)))
        .map_err(|error| Located::at_offset(text, last, error.to_string()))
}

fn slot_of(key: &str) -> Result<usize, MachineError> {
    KEYS.iter()
        .position(|known| *known == key)
        .ok_or_else(|| MachineError::Key { key: shorten(key), hint: hint(key, &KEYS) })
}

fn from_shape([nodes, llcs, cores, threads]: [u32; 4]) -> Result<Topology, MachineError> {
    Ok(Topology::new(nodes, llcs, cores, threads)?)
}

/// Why a text is not a machine spec.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MachineError {
    /// Neither a number nor a preset.
    #[error(
        "`{text}` is no machine: write a CPU count, `nodes=2,llcs=1,cores=10,threads=2`, \
         a preset or a .toml file; {hint}"
    )]
    Unknown {
        /// The text.
        text: String,
        /// Presets.
        hint: String,
    },
    /// A number with an unknown name.
    #[error("a machine has no `{key}`; {hint}")]
    Key {
        /// The name.
        key: String,
        /// What there is.
        hint: String,
    },
    /// A number that is none.
    #[error("`{value}` is not a number of {key}")]
    Number {
        /// Of what.
        key: String,
        /// The text.
        value: String,
    },
    /// A number that is given twice.
    #[error("`{key}` is given twice")]
    Twice {
        /// Of what.
        key: String,
    },
    /// Numbers that make no machine.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(topo: &Topology) -> [u32; 4] {
        [topo.nodes(), topo.llcs_per_node(), topo.cores_per_llc(), topo.threads_per_core()]
    }

    #[test]
    fn machine_spec_forms_are_read() {
        for (text, expected) in [
            ("1", [1, 1, 1, 1]),
            ("40", [1, 1, 40, 1]),
            ("nodes=2,llcs=1,cores=10,threads=2", [2, 1, 10, 2]),
            ("threads=2,cores=4", [1, 1, 4, 2]),
            ("ivb-ep", [2, 1, 10, 2]),
            ("smp4", [1, 4, 1, 1]),
        ] {
            assert_eq!(shape(&parse_machine(text).expect("legal")), expected, "{text}");
        }
    }

    #[test]
    fn machine_spec_wrong_is_explained() {
        for (text, says) in [
            ("0", "a machine needs at least one CPU"),
            ("99999999999", "a machine has at most 1024 CPUs"),
            ("smp", "did you mean `smp4` or `smp8`?"),
            ("-4", "`-4` is no machine"),
            ("", "there are: up, dual-core, smp4, smp8, ivb-ep"),
            ("core=4", "a machine has no `core`; did you mean `cores`?"),
            ("cores=four", "`four` is not a number of cores"),
            ("cores=4,cores=4", "`cores` is given twice"),
            ("cores=4,", "a machine has no ``"),
            ("nodes=4000000000,cores=4", "at most 1024"),
        ] {
            let error = parse_machine(text).expect_err("wrong").to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn machine_toml_wrong_is_placed() {
        let topo = parse_machine_toml("nodes = 2\ncores = 0x8 # per cache\n").expect("legal");
        assert_eq!(shape(&topo), [2, 1, 8, 1]);
        for (text, at, says) in [
            ("nodes = 2\ncore = 4\n", Some((2, 1)), "no `core`"),
            ("cores = \"4\"\n", Some((1, 9)), "whole number"),
            ("cores = -4\n", Some((1, 9)), "whole number"),
            ("cores = 4\nnodes = 1000\n", Some((2, 9)), "at most 1024"),
            ("cores = ", Some((1, 9)), ""),
            ("", None, "no machine"),
        ] {
            let error = parse_machine_toml(text).expect_err("wrong");
            assert_eq!(error.at.map(|at| (at.line, at.column)), at, "{text:?}: {error}");
            assert!(error.message.contains(says), "{text:?}: {error}");
        }
    }
}
