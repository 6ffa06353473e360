// SPDX-License-Identifier: GPL-2.0-only
//! CPUs and how near they are to each other.

use alloc::vec::Vec;
use core::fmt;

use schedlab_units::{CpuId, CpuSet, MAX_CPUS};

/// How far apart two CPUs are, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// The same CPU.
    Same,
    /// Hardware threads of one core.
    Smt,
    /// Cores that share the last-level cache.
    Llc,
    /// Caches of one NUMA node.
    Node,
    /// Different NUMA nodes.
    Remote,
}

/// The CPUs of a machine: hardware threads within cores within caches within nodes.
///
/// CPUs are numbered as Linux usually does: first one thread of every core, node by node, then the
/// second threads in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    nodes: u32,
    llcs_per_node: u32,
    cores_per_llc: u32,
    threads_per_core: u32,
    core_of: Vec<u32>,
    siblings: Vec<CpuSet>,
    llc: Vec<CpuSet>,
    node: Vec<CpuSet>,
    all: CpuSet,
}

impl Topology {
    /// A machine of `nodes` × `llcs_per_node` × `cores_per_llc` × `threads_per_core` CPUs.
    ///
    /// # Errors
    /// When a count is zero or the product is above [`MAX_CPUS`].
    pub fn new(
        nodes: u32,
        llcs_per_node: u32,
        cores_per_llc: u32,
        threads_per_core: u32,
    ) -> Result<Self, TopologyError> {
        let product = [nodes, llcs_per_node, cores_per_llc, threads_per_core]
            .iter()
            .try_fold(1u32, |n, factor| n.checked_mul(*factor));
        let n_cpus = match product {
            Some(0) => return Err(TopologyError::Empty),
            Some(n) if n as usize <= MAX_CPUS => n,
            _ => return Err(TopologyError::TooLarge),
        };
        let n_cores = n_cpus / threads_per_core;
        let core_of: Vec<u32> = (0..n_cpus).map(|cpu| cpu % n_cores).collect();
        let members = |unit_of: &dyn Fn(u32) -> u32, n_units: u32| -> Vec<CpuSet> {
            let mut sets = alloc::vec![CpuSet::EMPTY; n_units as usize];
            for cpu in 0..n_cpus {
                sets[unit_of(core_of[cpu as usize]) as usize].insert(CpuId(cpu));
            }
            sets
        };
        let siblings = members(&|core| core, n_cores);
        let llc = members(&|core| core / cores_per_llc, nodes * llcs_per_node);
        let node = members(&|core| core / (cores_per_llc * llcs_per_node), nodes);
        Ok(Self {
            nodes,
            llcs_per_node,
            cores_per_llc,
            threads_per_core,
            core_of,
            siblings,
            llc,
            node,
            all: CpuSet::first_n(n_cpus as usize),
        })
    }

    /// A machine of `n` single-thread cores sharing one cache.
    ///
    /// # Errors
    /// When `n` is zero or above [`MAX_CPUS`].
    pub fn flat(n: u32) -> Result<Self, TopologyError> {
        Self::new(1, 1, n, 1)
    }

    /// Number of CPUs.
    #[inline]
    pub fn n_cpus(&self) -> usize {
        self.core_of.len()
    }
    /// Number of NUMA nodes.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }
    /// Last-level caches per node.
    pub fn llcs_per_node(&self) -> u32 {
        self.llcs_per_node
    }
    /// Cores per last-level cache.
    pub fn cores_per_llc(&self) -> u32 {
        self.cores_per_llc
    }
    /// Hardware threads per core.
    pub fn threads_per_core(&self) -> u32 {
        self.threads_per_core
    }
    /// All CPUs.
    #[inline]
    pub fn all(&self) -> &CpuSet {
        &self.all
    }
    /// All CPUs in ascending order.
    #[inline]
    pub fn cpus(&self) -> impl DoubleEndedIterator<Item = CpuId> + use<> {
        (0..self.core_of.len() as u32).map(CpuId)
    }
    /// Index of `cpu`'s core.
    pub fn core(&self, cpu: CpuId) -> usize {
        self.core_of[cpu.index()] as usize
    }
    /// Index of `cpu`'s last-level cache, counted over the machine.
    #[inline]
    pub fn llc(&self, cpu: CpuId) -> usize {
        self.core_of[cpu.index()] as usize / self.cores_per_llc as usize
    }
    /// Index of `cpu`'s node.
    #[inline]
    pub fn node(&self, cpu: CpuId) -> usize {
        self.llc(cpu) / self.llcs_per_node as usize
    }
    /// Hardware threads of `cpu`'s core, itself included.
    #[inline]
    pub fn siblings(&self, cpu: CpuId) -> &CpuSet {
        &self.siblings[self.core(cpu)]
    }
    /// CPUs that share `cpu`'s last-level cache, itself included.
    #[inline]
    pub fn llc_cpus(&self, cpu: CpuId) -> &CpuSet {
        &self.llc[self.llc(cpu)]
    }
    /// CPUs of `cpu`'s node, itself included.
    pub fn node_cpus(&self, cpu: CpuId) -> &CpuSet {
        &self.node[self.node(cpu)]
    }
    /// Whether the two CPUs share their last-level cache.
    #[inline]
    pub fn shares_llc(&self, a: CpuId, b: CpuId) -> bool {
        self.llc(a) == self.llc(b)
    }
    /// How far apart two CPUs are.
    pub fn distance(&self, a: CpuId, b: CpuId) -> Distance {
        if a == b {
            Distance::Same
        } else if self.core(a) == self.core(b) {
            Distance::Smt
        } else if self.llc(a) == self.llc(b) {
            Distance::Llc
        } else if self.node(a) == self.node(b) {
            Distance::Node
        } else {
            Distance::Remote
        }
    }
}

/// Why counts do not make a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// A count is zero.
    Empty,
    /// More than [`MAX_CPUS`] CPUs.
    TooLarge,
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a machine needs at least one CPU"),
            Self::TooLarge => write!(f, "a machine has at most {MAX_CPUS} CPUs"),
        }
    }
}

impl core::error::Error for TopologyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topology_of_ivb_ep_is_numbered_like_linux() {
        let topo = Topology::new(2, 1, 10, 2).expect("legal");
        assert_eq!(topo.n_cpus(), 40);
        assert_eq!(topo.distance(CpuId(0), CpuId(20)), Distance::Smt);
        assert_eq!(topo.distance(CpuId(0), CpuId(9)), Distance::Llc);
        assert_eq!(topo.distance(CpuId(0), CpuId(10)), Distance::Remote);
        assert_eq!(topo.node_cpus(CpuId(30)), &CpuSet::parse("10-19,30-39").expect("legal"));
    }

    #[test]
    fn topology_impossible_is_refused() {
        assert_eq!(Topology::flat(0), Err(TopologyError::Empty));
        assert_eq!(Topology::new(1, 1, 1025, 1), Err(TopologyError::TooLarge));
        assert_eq!(Topology::new(u32::MAX, 2, 2, 1), Err(TopologyError::TooLarge));
    }
}
