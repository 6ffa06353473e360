// SPDX-License-Identifier: GPL-2.0-only
//! Knobs of a policy, declared once.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use schedlab_units::Nanos;

/// Unit of a knob, which decides how its value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunableUnit {
    /// A duration; written with a unit, `3ms`.
    Ns,
    /// On or off; written `1`/`0`, `on`/`off` or `true`/`false`.
    Flag,
    /// A plain number.
    Int,
    /// One of these names; the value is the index.
    Choice(&'static [&'static str]),
}

/// A knob's value as stored in tables: nanoseconds, 0/1, the number, or the choice's index.
pub type TunableValue = i64;

/// Declaration of a knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// Name, the kernel's own where it has one.
    pub name: &'static str,
    /// What it does, one sentence or more.
    pub doc: &'static str,
    /// Unit.
    pub unit: TunableUnit,
    /// Value of the default variant.
    pub default: TunableValue,
    /// Smallest legal value.
    pub min: TunableValue,
    /// Largest legal value.
    pub max: TunableValue,
    /// Kernel version and name, mail, or spec section.
    pub source: &'static str,
}

impl Tunable {
    /// Reads a value as a user writes it and checks the range.
    ///
    /// # Errors
    /// [`TunableError`] says what would be legal.
    pub fn parse(&self, text: &str) -> Result<TunableValue, TunableError> {
        let fail = |expected: String| TunableError {
            name: self.name.to_string(),
            message: format!("`{text}` is not a value of `{}`: {expected}", self.name),
        };
        let value = match self.unit {
            TunableUnit::Ns if text == "0" => 0,
            TunableUnit::Ns => {
                let span = Nanos::parse(text).map_err(|e| fail(e.to_string()))?;
                i64::try_from(span.as_ns()).map_err(|_| fail(self.range()))?
            }
            TunableUnit::Flag => match text {
                "1" | "on" | "true" | "yes" => 1,
                "0" | "off" | "false" | "no" => 0,
                _ => return Err(fail("write `on` or `off`".to_string())),
            },
            TunableUnit::Int => text.parse().map_err(|_| fail(self.range()))?,
            TunableUnit::Choice(names) => {
                names.iter().position(|name| *name == text).ok_or_else(|| fail(self.range()))?
                    as TunableValue
            }
        };
        if (self.min..=self.max).contains(&value) { Ok(value) } else { Err(fail(self.range())) }
    }

    /// A value as [`Tunable::parse`] reads it.
    pub fn show(&self, value: TunableValue) -> String {
        match self.unit {
            TunableUnit::Ns if value == 0 => "0".to_string(),
            TunableUnit::Ns => Nanos::from_ns(value.unsigned_abs()).to_string(),
            TunableUnit::Flag => if value != 0 { "on" } else { "off" }.to_string(),
            TunableUnit::Int => value.to_string(),
            TunableUnit::Choice(names) => {
                names.get(value as usize).copied().unwrap_or("?").to_string()
            }
        }
    }

    /// The legal values in words.
    pub fn range(&self) -> String {
        match self.unit {
            TunableUnit::Flag => "on or off".to_string(),
            TunableUnit::Choice(names) => format!("one of {}", names.join(", ")),
            _ => format!("{} to {}", self.show(self.min), self.show(self.max)),
        }
    }
}

/// A struct of knobs made by [`crate::tunables!`].
pub trait Tunables: Default + Clone {
    /// Declarations in order.
    const SPECS: &'static [Tunable];
    /// Sets the knob with index `index` of [`Tunables::SPECS`]; the value was checked.
    fn set_index(&mut self, index: usize, value: TunableValue);
    /// Value of the knob with index `index`.
    fn get_index(&self, index: usize) -> TunableValue;

    /// Index of the knob called `name`.
    ///
    /// # Errors
    /// [`TunableError`] lists the names there are.
    fn index_of(name: &str) -> Result<usize, TunableError> {
        Self::SPECS.iter().position(|spec| spec.name == name).ok_or_else(|| {
            let names: Vec<&str> = Self::SPECS.iter().map(|spec| spec.name).collect();
            TunableError {
                name: name.to_string(),
                message: format!("there is no tunable `{name}`; there are: {}", names.join(", ")),
            }
        })
    }
    /// Sets a knob to a checked value.
    ///
    /// # Errors
    /// [`TunableError`] for an unknown name or a value outside the range.
    fn set(&mut self, name: &str, value: TunableValue) -> Result<(), TunableError> {
        let index = Self::index_of(name)?;
        let spec = &Self::SPECS[index];
        if !(spec.min..=spec.max).contains(&value) {
            let message =
                format!("`{}` is not a value of `{name}`: {}", spec.show(value), spec.range());
            return Err(TunableError { name: name.to_string(), message });
        }
        self.set_index(index, value);
        Ok(())
    }
    /// Sets a knob to a value as a user writes it.
    ///
    /// # Errors
    /// [`TunableError`] for an unknown name or an illegal value.
    fn set_text(&mut self, name: &str, text: &str) -> Result<(), TunableError> {
        let index = Self::index_of(name)?;
        let value = Self::SPECS[index].parse(text)?;
        self.set_index(index, value);
        Ok(())
    }
}

/// A knob that does not exist or cannot have that value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunableError {
    /// The knob's name as given.
    pub name: String,
    message: String,
}

impl fmt::Display for TunableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for TunableError {}

/// Declares a struct of knobs: each with doc comment, unit, default, range and source.
///
/// ```
/// schedlab_policy_api::tunables! {
///     /// Knobs of an example.
///     pub struct Example {
///         /// Time granted before a new choice.
///         slice: ns = 6_000_000 => 1_000..=1_000_000_000, "BFS 0.357 rr_interval";
///         /// Whether to preempt at wake-up.
///         preempt: flag = true, "v6.12 features.h WAKEUP_PREEMPTION";
///         /// Threshold.
///         threshold: int = 1 => 0..=10, "2.4.5 sched.c reschedule_idle";
///         /// What a fork gives away.
///         split: choice["half", "all"] = 0, "2.4.4 fork.c do_fork";
///     }
/// }
/// let knobs = Example::default();
/// assert_eq!(knobs.slice.as_ns(), 6_000_000);
/// assert!(knobs.preempt);
/// ```
///
/// Fields have the types `Nanos`, `bool`, `i64` and, for a choice, `usize` (the index).
#[macro_export]
macro_rules! tunables {
    (
        $(#[$struct_doc:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident : $unit:ident $([$($choice:literal),+ $(,)?])? = $default:expr
                    $(=> $min:literal ..= $max:literal)? , $source:literal ;
            )*
        }
    ) => {
        $(#[$struct_doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis struct $name {
            $( $(#[doc = $doc])+ pub $field: $crate::tunables!(@type $unit), )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $crate::tunables!(@value $unit, $default), )* }
            }
        }

        impl $crate::Tunables for $name {
            const SPECS: &'static [$crate::Tunable] = &[
                $( $crate::Tunable {
                    name: stringify!($field),
                    doc: concat!($($doc, "\n"),+).trim_ascii(),
                    unit: $crate::tunables!(@unit $unit $([$($choice),+])?),
                    default: $default as $crate::TunableValue,
                    min: $crate::tunables!(@min $unit $($min)?),
                    max: $crate::tunables!(@max $unit $($max)? $([$($choice),+])?),
                    source: $source,
                }, )*
            ];
            fn set_index(&mut self, index: usize, value: $crate::TunableValue) {
                let mut at = 0;
                $(
                    if index == at {
                        self.$field = $crate::tunables!(@from $unit, value);
                        return;
                    }
                    at += 1;
                )*
                panic!("no tunable has index {index}");
            }
            fn get_index(&self, index: usize) -> $crate::TunableValue {
                let mut at = 0;
                $(
                    if index == at {
                        return $crate::tunables!(@into $unit, self.$field);
                    }
                    at += 1;
                )*
                panic!("no tunable has index {index}");
            }
        }
    };
    (@type ns) => { $crate::__private::Nanos };
    (@type flag) => { bool };
    (@type int) => { i64 };
    (@type choice) => { usize };
    (@value ns, $v:expr) => { $crate::__private::Nanos::from_ns($v) };
    (@value $unit:ident, $v:expr) => { $v };
    (@unit ns) => { $crate::TunableUnit::Ns };
    (@unit flag) => { $crate::TunableUnit::Flag };
    (@unit int) => { $crate::TunableUnit::Int };
    (@unit choice [$($choice:literal),+]) => { $crate::TunableUnit::Choice(&[$($choice),+]) };
    (@min flag) => { 0 };
    (@min choice) => { 0 };
    (@min $unit:ident $min:literal) => { $min };
    (@max flag) => { 1 };
    (@max choice [$($choice:literal),+]) => { [$($choice),+].len() as $crate::TunableValue - 1 };
    (@max $unit:ident $max:literal) => { $max };
    (@from ns, $v:expr) => { $crate::__private::Nanos::from_ns($v as u64) };
    (@from flag, $v:expr) => { $v != 0 };
    (@from int, $v:expr) => { $v };
    (@from choice, $v:expr) => { $v as usize };
    (@into ns, $v:expr) => { $v.as_ns() as $crate::TunableValue };
    (@into flag, $v:expr) => { $v as $crate::TunableValue };
    (@into int, $v:expr) => { $v };
    (@into choice, $v:expr) => { $v as $crate::TunableValue };
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::tunables! {
        /// Knobs of the test.
        struct Knobs {
            /// A span.
            /// Second line.
            span: ns = 3_000_000 => 100_000..=1_000_000_000, "test";
            /// A flag.
            flag: flag = true, "test";
            /// A number.
            number: int = 1 => -5..=10, "test";
            /// A choice.
            choice: choice["half", "all"] = 0, "test";
        }
    }

    #[test]
    fn tunables_text_round_trips() {
        let mut knobs = Knobs::default();
        for (name, text) in
            [("span", "2.5ms"), ("flag", "off"), ("number", "-3"), ("choice", "all")]
        {
            knobs.set_text(name, text).expect("legal");
            let index = Knobs::index_of(name).expect("there");
            assert_eq!(Knobs::SPECS[index].show(knobs.get_index(index)), text);
        }
        assert_eq!(knobs, Knobs { span: Nanos::from_us(2500), flag: false, number: -3, choice: 1 });
        assert_eq!(Knobs::SPECS[0].doc, "A span.\n Second line.");
    }

    #[test]
    fn tunables_illegal_value_names_the_range() {
        let mut knobs = Knobs::default();
        for (name, text, says) in [
            ("span", "1us", "100us to 1s"),
            ("span", "3", "the unit is missing"),
            ("flag", "2", "`on` or `off`"),
            ("number", "11", "-5 to 10"),
            ("choice", "most", "half, all"),
            ("sapn", "3ms", "span, flag, number, choice"),
        ] {
            let error = knobs.set_text(name, text).expect_err("illegal").to_string();
            assert!(error.contains(says), "{error}");
        }
        assert_eq!(knobs, Knobs::default());
    }
}
