// SPDX-License-Identifier: GPL-2.0-only
//! Sets of CPUs, with taskset's list syntax.

use alloc::string::{String, ToString};
use core::fmt;

use crate::CpuId;

/// The largest machine the workbench models.
pub const MAX_CPUS: usize = 1024;
const WORDS: usize = MAX_CPUS / 64;

/// A set of CPUs below [`MAX_CPUS`]: sixteen words and a summary, so it never allocates.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CpuSet {
    /// Bit `w` is set exactly when `words[w]` is not zero.
    summary: u16,
    words: [u64; WORDS],
}

impl CpuSet {
    /// The empty set.
    pub const EMPTY: Self = Self { summary: 0, words: [0; WORDS] };

    /// CPUs `0 … n − 1`.
    ///
    /// # Panics
    /// When `n` is above [`MAX_CPUS`].
    pub fn first_n(n: usize) -> Self {
        assert!(n <= MAX_CPUS, "at most {MAX_CPUS} CPUs");
        (0..n).map(CpuId::from_index).collect()
    }
    /// The set of `cpu` alone.
    pub fn single(cpu: CpuId) -> Self {
        let mut set = Self::EMPTY;
        set.insert(cpu);
        set
    }
    /// Adds `cpu`; true when it was not a member.
    ///
    /// # Panics
    /// When `cpu` is not below [`MAX_CPUS`].
    #[inline]
    pub fn insert(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = (cpu.index() / 64, 1u64 << (cpu.0 % 64));
        let fresh = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.summary |= 1 << word;
        fresh
    }
    /// Removes `cpu`; true when it was a member.
    #[inline]
    pub fn remove(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = (cpu.index() / 64, 1u64 << (cpu.0 % 64));
        let present = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        if self.words[word] == 0 {
            self.summary &= !(1 << word);
        }
        present
    }
    /// Whether `cpu` is a member.
    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words[cpu.index() / 64] >> (cpu.0 % 64) & 1 != 0
    }
    /// Whether the set has no member.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.summary == 0
    }
    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        ones(self.summary).map(|word| self.words[word].count_ones() as usize).sum()
    }
    /// The lowest member.
    #[inline]
    pub fn first(&self) -> Option<CpuId> {
        self.iter().next()
    }
    /// Members of both sets.
    #[inline]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut set = Self::EMPTY;
        for word in ones(self.summary & other.summary) {
            set.words[word] = self.words[word] & other.words[word];
            set.summary |= u16::from(set.words[word] != 0) << word;
        }
        set
    }
    /// Members of `self` that are not members of `other`.
    #[inline]
    pub fn difference(&self, other: &Self) -> Self {
        let mut set = Self::EMPTY;
        for word in ones(self.summary) {
            set.words[word] = self.words[word] & !other.words[word];
            set.summary |= u16::from(set.words[word] != 0) << word;
        }
        set
    }
    /// Members of either set.
    #[inline]
    pub fn union(&self, other: &Self) -> Self {
        let mut set = *self;
        set.summary |= other.summary;
        for word in ones(other.summary) {
            set.words[word] |= other.words[word];
        }
        set
    }
    /// Number of members below `cpu`.
    pub fn rank(&self, cpu: CpuId) -> usize {
        let (word, bit) = (cpu.index() / 64, cpu.0 % 64);
        let below = self.summary & ((1 << word) - 1);
        let whole: u32 = ones(below).map(|word| self.words[word].count_ones()).sum();
        let part = self.words[word] & ((1u64 << bit) - 1);
        (whole + part.count_ones()) as usize
    }
    /// Whether the two sets share a member.
    #[inline]
    pub fn intersects(&self, other: &Self) -> bool {
        ones(self.summary & other.summary).any(|word| self.words[word] & other.words[word] != 0)
    }
    /// Whether every member of `self` is one of `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        ones(self.summary).all(|word| self.words[word] & !other.words[word] == 0)
    }
    /// Members in ascending order.
    #[inline]
    pub fn iter(&self) -> Iter<'_> {
        Iter { set: self, summary: self.summary, word: 0, bits: 0 }
    }
    /// Members in ascending order beginning after `start`, then from the lowest up to and including
    /// `start` (kernel `for_each_cpu_wrap` begins at `start + 1`).
    pub fn iter_after(&self, start: CpuId) -> impl Iterator<Item = CpuId> + '_ {
        let above = self.iter().filter(move |c| *c > start);
        above.chain(self.iter().take_while(move |c| *c <= start))
    }

    /// Reads taskset's list syntax: `0,3,7-11`, with strides `0-31:2`.
    ///
    /// # Errors
    /// [`CpuListError`] names the offending part.
    pub fn parse(text: &str) -> Result<Self, CpuListError> {
        let mut set = Self::EMPTY;
        for part in text.split(',') {
            let fail = |why| CpuListError { part: part.to_string(), why };
            let number = |s: &str| -> Result<u32, CpuListError> {
                let n: u32 = s.trim().parse().map_err(|_| fail("not a CPU number"))?;
                if n as usize >= MAX_CPUS { Err(fail("beyond the largest machine")) } else { Ok(n) }
            };
            let (range, stride) = match part.split_once(':') {
                Some((range, stride)) => (range, number(stride)?),
                None => (part, 1),
            };
            let (low, high) = match range.split_once('-') {
                Some((low, high)) => (number(low)?, number(high)?),
                None => (number(range)?, number(range)?),
            };
            if low > high {
                return Err(fail("the range runs backwards"));
            }
            if stride == 0 {
                return Err(fail("the stride is zero"));
            }
            for cpu in (low..=high).step_by(stride as usize) {
                set.insert(CpuId(cpu));
            }
        }
        Ok(set)
    }
}

/// Numbers of the bits that are set in `summary`: the words worth a look.
#[inline]
fn ones(mut summary: u16) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let word = (summary != 0).then(|| summary.trailing_zeros() as usize)?;
        summary &= summary - 1;
        Some(word)
    })
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(iter: I) -> Self {
        let mut set = Self::EMPTY;
        for cpu in iter {
            set.insert(cpu);
        }
        set
    }
}

impl fmt::Display for CpuSet {
    /// taskset's list syntax, ranges joined: `0-3,7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let mut cpus = self.iter().peekable();
        while let Some(low) = cpus.next() {
            let mut high = low;
            while cpus.peek() == Some(&CpuId(high.0 + 1)) {
                high = CpuId(high.0 + 1);
                cpus.next();
            }
            if !text.is_empty() {
                text.push(',');
            }
            text += &low.to_string();
            if high != low {
                text.push('-');
                text += &high.to_string();
            }
        }
        f.pad(&text)
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// Members of a [`CpuSet`] in ascending order.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    set: &'a CpuSet,
    summary: u16,
    word: u32,
    bits: u64,
}

impl Iterator for Iter<'_> {
    type Item = CpuId;
    #[inline]
    fn next(&mut self) -> Option<CpuId> {
        if self.bits == 0 {
            if self.summary == 0 {
                return None;
            }
            self.word = self.summary.trailing_zeros();
            self.summary &= self.summary - 1;
            self.bits = self.set.words[self.word as usize];
        }
        let bit = self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some(CpuId(self.word * 64 + bit))
    }
}

/// Why a text is not a CPU list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuListError {
    part: String,
    why: &'static str,
}

impl fmt::Display for CpuListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` in a CPU list: {}; write it like taskset, `0,3,7-11`", self.part, self.why)
    }
}

impl core::error::Error for CpuListError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cpu_list_syntax_is_tasksets() {
        for (text, shown) in
            [("0", "0"), ("0,3,7-11", "0,3,7-11"), ("0-6:2", "0,2,4,6"), ("3,2,1", "1-3")]
        {
            assert_eq!(CpuSet::parse(text).expect("legal").to_string(), shown);
        }
        for text in ["", "a", "5-3", "0-3:0", "1024", "1,,2"] {
            assert!(CpuSet::parse(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn cpu_set_behaves_like_btree_set(ops in prop::collection::vec((any::<bool>(), 0u32..1024), 0..200), start in 0u32..1024) {
            let mut set = CpuSet::EMPTY;
            let mut twin = alloc::collections::BTreeSet::new();
            for (add, cpu) in ops {
                if add {
                    prop_assert_eq!(set.insert(CpuId(cpu)), twin.insert(cpu));
                } else {
                    prop_assert_eq!(set.remove(CpuId(cpu)), twin.remove(&cpu));
                }
            }
            let members: alloc::vec::Vec<u32> = set.iter().map(|c| c.0).collect();
            prop_assert_eq!(&members, &twin.iter().copied().collect::<alloc::vec::Vec<_>>());
            prop_assert_eq!(set.len(), twin.len());
            prop_assert_eq!(set.rank(CpuId(start)), twin.range(..start).count());
            let low = CpuSet::first_n(start as usize);
            prop_assert_eq!(set.difference(&low).len() + set.intersection(&low).len(), set.len());
            prop_assert_eq!(set.difference(&low).union(&set.intersection(&low)), set);
            prop_assert_eq!(set.intersects(&low), twin.range(..start).next().is_some());
            prop_assert_eq!(set.is_subset(&low), twin.range(start..).next().is_none());
            let wrapped: alloc::vec::Vec<u32> = set.iter_after(CpuId(start)).map(|c| c.0).collect();
            let expected: alloc::vec::Vec<u32> = twin.range(start + 1..).chain(twin.range(..=start)).copied().collect();
            prop_assert_eq!(wrapped, expected);
            if !set.is_empty() {
                prop_assert_eq!(CpuSet::parse(&set.to_string()), Ok(set));
            }
        }
    }
}
