// SPDX-License-Identifier: GPL-2.0-only
//! Policy specs: `NAME[@VARIANT][:KEY=VALUE[,KEY=VALUE…]]`, from text to a policy's tunables.

use std::fmt;

use schedlab_policy_api::{PolicyInfo, Tunable, TunableError, TunableValue, Tunables, Variant};
use thiserror::Error;

use crate::nearest::{hint, shorten};
use crate::result::Setting;

/// A policy with a variant and the tunables the user chose; everything in it is legal.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    info: &'static PolicyInfo,
    variant: &'static Variant,
    /// Indices into the policy's tunables, with their values, in order of declaration.
    chosen: Vec<(usize, TunableValue)>,
}

impl PolicySpec {
    /// Reads a policy spec.
    ///
    /// # Errors
    /// [`SpecError`] names the part that is wrong and the nearest that would be right.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        Self::parse_among(text, schedlab_policies::infos())
    }

    /// Reads a policy spec that names one of `infos`.
    ///
    /// # Errors
    /// As [`PolicySpec::parse`].
    pub fn parse_among(
        text: &str,
        infos: impl IntoIterator<Item = &'static PolicyInfo>,
    ) -> Result<Self, SpecError> {
        let (head, settings) = match text.split_once(':') {
            Some((head, settings)) => (head, Some(settings)),
            None => (text, None),
        };
        let alias = schedlab_policies::ALIASES.iter().find(|(alias, _)| *alias == head);
        let head = alias.map_or(head, |(_, spec)| spec);
        let (name, variant) = match head.split_once('@') {
            Some((name, variant)) => (name, Some(variant)),
            None => (head, None),
        };
        let infos: Vec<_> = infos.into_iter().collect();
        let Some(info) = infos.iter().copied().find(|info| info.name == name) else {
            let names: Vec<&str> = infos.iter().map(|info| info.name).collect();
            return Err(SpecError::Policy { name: shorten(name), hint: hint(name, &names) });
        };
        let variant = find_variant(info, variant)?;
        let mut spec = Self { info, variant, chosen: Vec::new() };
        for setting in settings.into_iter().flat_map(|settings| settings.split(',')) {
            spec.choose(setting)?;
        }
        spec.chosen.sort_unstable();
        Ok(spec)
    }

    fn choose(&mut self, setting: &str) -> Result<(), SpecError> {
        let policy = self.info.name;
        let Some((key, value)) = setting.split_once('=') else {
            return Err(SpecError::Syntax { policy, setting: shorten(setting) });
        };
        let Some(index) = self.info.tunables.iter().position(|tunable| tunable.name == key) else {
            let names: Vec<&str> = self.info.tunables.iter().map(|t| t.name).collect();
            let hint = if names.is_empty() { "it has none".to_string() } else { hint(key, &names) };
            return Err(SpecError::Tunable { policy, key: shorten(key), hint });
        };
        if self.chosen.iter().any(|(other, _)| *other == index) {
            return Err(SpecError::Twice { policy, key: shorten(key) });
        }
        let value = self.info.tunables[index].parse(value)?;
        self.chosen.push((index, value));
        Ok(())
    }

    /// What the policy says about itself.
    pub fn info(&self) -> &'static PolicyInfo {
        self.info
    }

    /// The variant.
    pub fn variant(&self) -> &'static Variant {
        self.variant
    }

    /// Every tunable with the value it gets: the user's, else the variant's, else the default.
    pub fn settings(&self) -> Vec<Setting> {
        settings_of(self.info, self.variant, &self.chosen)
    }

    /// The same as the policy's own struct.
    ///
    /// # Panics
    /// When `T` is not the tunables of this policy, or a variant sets a tunable that does not exist.
    pub fn tunables<T: Tunables>(&self) -> T {
        let mut tunables = T::default();
        for setting in self.settings() {
            let name = setting.tunable.name;
            if let Err(error) = tunables.set(name, setting.value) {
                panic!("{}@{}: {error}", self.info.name, self.variant.name);
            }
        }
        tunables
    }
}

/// Every tunable of `info` with its value in `variant` and after `chosen`.
fn settings_of(
    info: &'static PolicyInfo,
    variant: &Variant,
    chosen: &[(usize, TunableValue)],
) -> Vec<Setting> {
    let value_of = |(index, tunable): (usize, &'static Tunable)| {
        let chosen = chosen.iter().find(|(other, _)| *other == index);
        let preset = variant.set.iter().find(|(name, _)| *name == tunable.name);
        let value = chosen.or(preset.map(|(_, value)| (index, *value)).as_ref()).map(|c| c.1);
        Setting { tunable, value: value.unwrap_or(tunable.default), chosen: chosen.is_some() }
    };
    info.tunables.iter().enumerate().map(value_of).collect()
}

fn find_variant(
    info: &'static PolicyInfo,
    wanted: Option<&str>,
) -> Result<&'static Variant, SpecError> {
    let Some(wanted) = wanted else { return Ok(&info.variants[0]) };
    // A policy without variants has one without a name, which `NAME@` must not select.
    let found = info.variants.iter().find(|v| v.name == wanted && !wanted.is_empty());
    found.ok_or_else(|| {
        let names: Vec<&str> = info.variants.iter().map(|v| v.name).collect();
        let hint = match names.as_slice() {
            [] | [""] => format!("it has none, write `{}`", info.name),
            _ => hint(wanted, &names),
        };
        SpecError::Variant { policy: info.name, variant: shorten(wanted), hint }
    })
}

impl fmt::Display for PolicySpec {
    /// The spec in full: name, variant, and the tunables that the user chose.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info.name)?;
        if !self.variant.name.is_empty() {
            write!(f, "@{}", self.variant.name)?;
        }
        for (place, (index, value)) in self.chosen.iter().enumerate() {
            let tunable = &self.info.tunables[*index];
            let separator = if place == 0 { ':' } else { ',' };
            write!(f, "{separator}{}={}", tunable.name, tunable.show(*value))?;
        }
        Ok(())
    }
}

/// Why a text is not a policy spec.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// No such policy.
    #[error("there is no policy `{name}`; {hint}")]
    Policy {
        /// The name.
        name: String,
        /// What there is.
        hint: String,
    },
    /// No such variant.
    #[error("policy `{policy}` has no variant `{variant}`; {hint}")]
    Variant {
        /// The policy.
        policy: &'static str,
        /// The name.
        variant: String,
        /// What there is.
        hint: String,
    },
    /// No such tunable.
    #[error("policy `{policy}` has no tunable `{key}`; {hint}")]
    Tunable {
        /// The policy.
        policy: &'static str,
        /// The name.
        key: String,
        /// What there is.
        hint: String,
    },
    /// A tunable is set twice.
    #[error("tunable `{key}` of policy `{policy}` is set twice")]
    Twice {
        /// The policy.
        policy: &'static str,
        /// The name.
        key: String,
    },
    /// Not of the form `KEY=VALUE`.
    #[error("`{setting}` is not of the form KEY=VALUE; write `{policy}:KEY=VALUE,KEY=VALUE`")]
    Syntax {
        /// The policy.
        policy: &'static str,
        /// The text.
        setting: String,
    },
    /// An illegal value.
    #[error(transparent)]
    Value(#[from] TunableError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_policy_api::{Starvation, Timekeeping, WorkConservation};
    use schedlab_units::Nanos;

    schedlab_policy_api::tunables! {
        /// Knobs of the test.
        struct Knobs {
            /// A span.
            base_slice: ns = 3_000_000 => 100_000..=1_000_000_000, "test";
            /// A flag.
            run_to_parity: flag = true, "test";
        }
    }

    const TIME: Timekeeping = Timekeeping::MODERN;
    const fn info(
        name: &'static str,
        variants: &'static [Variant],
        tunables: &'static [Tunable],
    ) -> PolicyInfo {
        let about = "for the test";
        let work_conserving = WorkConservation::Always;
        let starvation = Starvation { bound: Some("for the test"), except: None };
        PolicyInfo { name, about, variants, tunables, time: TIME, work_conserving, starvation }
    }
    static INFOS: [PolicyInfo; 2] = [
        info(
            "fair",
            &[
                Variant { name: "2.0", about: "now", set: &[] },
                Variant { name: "1.0", about: "then", set: &[("run_to_parity", 0)] },
            ],
            Knobs::SPECS,
        ),
        info("plain", &[Variant { name: "", about: "", set: &[] }], &[]),
    ];

    fn parse(text: &str) -> Result<PolicySpec, SpecError> {
        PolicySpec::parse_among(text, &INFOS)
    }

    #[test]
    fn spec_alias_is_the_variant_it_stands_for() {
        for (alias, spec) in schedlab_policies::ALIASES {
            let found = PolicySpec::parse(alias).expect("an alias is legal");
            assert_eq!(found.to_string(), *spec);
        }
    }

    #[test]
    fn spec_canonical_form_names_variant_and_chosen_tunables() {
        for (text, shown) in [
            ("fair", "fair@2.0"),
            ("fair@1.0", "fair@1.0"),
            ("plain", "plain"),
            (
                "fair:run_to_parity=0,base_slice=2500us",
                "fair@2.0:base_slice=2.5ms,run_to_parity=off",
            ),
        ] {
            assert_eq!(parse(text).expect("legal").to_string(), shown);
        }
    }

    #[test]
    fn spec_chosen_tunable_beats_variant_and_default() {
        let knobs: Knobs = parse("fair@1.0:base_slice=1ms").expect("legal").tunables();
        assert_eq!(knobs, Knobs { base_slice: Nanos::from_ms(1), run_to_parity: false });
        let knobs: Knobs = parse("fair@1.0:run_to_parity=on").expect("legal").tunables();
        assert_eq!(knobs, Knobs { base_slice: Nanos::from_ms(3), run_to_parity: true });
        let settings = parse("fair@1.0:base_slice=3ms").expect("legal").settings();
        let flags: Vec<_> = settings.iter().map(|s| (s.value, s.chosen)).collect();
        assert_eq!(flags, [(3_000_000, true), (0, false)]);
    }

    #[test]
    fn spec_wrong_part_is_named_with_the_nearest() {
        for (text, says) in [
            ("fiar", "there is no policy `fiar`; did you mean `fair`?"),
            ("", "there is no policy ``; there are: fair, plain"),
            ("fair@3.0", "policy `fair` has no variant `3.0`; did you mean `1.0` or `2.0`?"),
            ("fair@", "policy `fair` has no variant ``; there are: 2.0, 1.0"),
            ("plain@", "policy `plain` has no variant ``; it has none, write `plain`"),
            ("plain@1", "policy `plain` has no variant `1`; it has none, write `plain`"),
            ("fair:slice=1ms", "policy `fair` has no tunable `slice`; did you mean `base_slice`?"),
            ("plain:slice=1ms", "policy `plain` has no tunable `slice`; it has none"),
            ("fair:", "`` is not of the form KEY=VALUE; write `fair:KEY=VALUE,KEY=VALUE`"),
            (
                "fair:base_slice=1ms,base_slice=2ms",
                "tunable `base_slice` of policy `fair` is set twice",
            ),
            ("fair:base_slice=1us", "`1us` is not a value of `base_slice`: 100us to 1s"),
            ("fair:run_to_parity=7", "`7` is not a value of `run_to_parity`: write `on` or `off`"),
        ] {
            assert_eq!(parse(text).expect_err("wrong").to_string(), says);
        }
    }

    #[test]
    fn spec_of_every_registered_policy_and_variant_is_read() {
        for info in schedlab_policies::infos() {
            for variant in info.variants {
                let separator = if variant.name.is_empty() { "" } else { "@" };
                let text = format!("{}{separator}{}", info.name, variant.name);
                let spec = PolicySpec::parse(&text).expect("legal");
                assert_eq!(spec.to_string(), text);
            }
        }
    }
}
