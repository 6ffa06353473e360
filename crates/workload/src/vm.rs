// SPDX-License-Identifier: GPL-2.0-only
//! The machine that steps through a task's program.
//!
//! It owns the place in the program and the loop counters, nothing else: who sleeps, who wakes and
//! how long things take is the host's affair.

use schedlab_units::Rng;

use crate::ir::{Op, Program};

/// What a program does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'p> {
    /// This operation; never one of control flow.
    Do(&'p Op),
    /// It has run past its end: the task exits.
    End,
}

/// State of one task inside its program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vm {
    pc: u32,
    counters: Vec<u64>,
}

impl Vm {
    /// A task at the beginning of `program`.
    pub fn new(program: &Program) -> Self {
        Self { pc: 0, counters: vec![0; program.n_counters as usize] }
    }

    /// Goes back to the beginning of `program`, which may be another one; uses the memory again.
    pub fn restart(&mut self, program: &Program) {
        self.pc = 0;
        self.counters.clear();
        self.counters.resize(program.n_counters as usize, 0);
    }

    /// Index of the operation after the one returned last.
    #[inline]
    pub const fn pc(&self) -> u32 {
        self.pc
    }

    /// Goes on at operation `target`, as after a wait that ran out of time.
    #[inline]
    pub const fn jump(&mut self, target: u32) {
        self.pc = target;
    }

    /// The next operation that the host must carry out; counters and jumps are dealt with here.
    ///
    /// `rng` is the task's own stream; it is used by random jumps and random loop counts only.
    ///
    /// # Panics
    /// When the program has a loop of control operations only; [`crate::validate()`] excludes it.
    #[inline]
    pub fn next<'p>(&mut self, program: &'p Program, rng: &mut Rng) -> Step<'p> {
        // In a valid program no control operation is met twice between two others.
        let mut budget = program.ops.len();
        loop {
            let Some(op) = program.ops.get(self.pc as usize) else { return Step::End };
            self.pc += 1;
            match *op {
                Op::SetCounter { counter, value } => {
                    self.counters[counter as usize] = value.draw(rng);
                }
                Op::DecJump { counter, target } => {
                    let left = &mut self.counters[counter as usize];
                    *left = left.saturating_sub(1);
                    if *left > 0 {
                        self.pc = target;
                    }
                }
                Op::Jump { target } => self.pc = target,
                Op::JumpRandom { numerator, denominator, target } => {
                    if rng.below(denominator) < numerator {
                        self.pc = target;
                    }
                }
                _ => return Step::Do(op),
            }
            assert!(budget > 0, "a program loops without doing anything, at {}", self.pc);
            budget -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Dist;

    fn program(ops: Vec<Op>, n_counters: u32) -> Program {
        Program { ops, n_counters }
    }

    /// The first `limit` steps, `None` for the end.
    fn steps(program: &Program, limit: usize) -> Vec<Option<Op>> {
        let mut vm = Vm::new(program);
        let mut rng = Rng::stream(1, "test", 0);
        let mut seen = Vec::new();
        while seen.len() < limit {
            match vm.next(program, &mut rng) {
                Step::Do(op) => seen.push(Some(op.clone())),
                Step::End => {
                    seen.push(None);
                    break;
                }
            }
        }
        seen
    }

    #[test]
    fn nested_counters_multiply() {
        let ops = vec![
            Op::SetCounter { counter: 0, value: Dist::Const(3) },
            Op::SetCounter { counter: 1, value: Dist::Const(2) },
            Op::Yield,
            Op::DecJump { counter: 1, target: 2 },
            Op::DecJump { counter: 0, target: 1 },
        ];
        let seen = steps(&program(ops, 2), 100);
        assert_eq!(seen.len(), 7);
        assert!(seen[..6].iter().all(|op| *op == Some(Op::Yield)));
        assert_eq!(seen[6], None);
    }

    #[test]
    fn endless_loop_yields_its_operations_for_ever() {
        let ops = vec![Op::Yield, Op::Exec, Op::Jump { target: 0 }];
        let seen = steps(&program(ops, 0), 5);
        let expected = [Op::Yield, Op::Exec, Op::Yield, Op::Exec, Op::Yield].map(Some);
        assert_eq!(seen, expected);
    }

    #[test]
    fn counter_of_zero_passes_once() {
        let ops = vec![Op::Yield, Op::DecJump { counter: 0, target: 0 }];
        assert_eq!(steps(&program(ops, 1), 9), [Some(Op::Yield), None]);
    }

    #[test]
    fn random_jump_follows_its_probability() {
        // Yield comes with probability 3/4, Exec otherwise.
        let ops = vec![
            Op::JumpRandom { numerator: 1, denominator: 4, target: 3 },
            Op::Yield,
            Op::Jump { target: 0 },
            Op::Exec,
            Op::Jump { target: 0 },
        ];
        let seen = steps(&program(ops, 0), 40_000);
        let execs = seen.iter().filter(|op| **op == Some(Op::Exec)).count();
        assert!(execs.abs_diff(10_000) < 300, "{execs}");
    }

    #[test]
    fn jump_of_the_host_is_followed() {
        let program = program(vec![Op::Yield, Op::Exec, Op::Exit], 0);
        let mut vm = Vm::new(&program);
        let mut rng = Rng::stream(1, "test", 0);
        assert_eq!(vm.next(&program, &mut rng), Step::Do(&Op::Yield));
        vm.jump(2);
        assert_eq!(vm.next(&program, &mut rng), Step::Do(&Op::Exit));
        assert_eq!(vm.next(&program, &mut rng), Step::End);
        assert_eq!(vm.next(&program, &mut rng), Step::End);
        vm.restart(&program);
        assert_eq!((vm.pc(), vm.next(&program, &mut rng)), (0, Step::Do(&Op::Yield)));
    }
}
