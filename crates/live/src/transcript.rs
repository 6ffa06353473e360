// SPDX-License-Identifier: GPL-2.0-only
//! Keeping a transcript of a live run: all that goes into the host, and what it answers.
//!
//! The host's thread must not wait for a disk. It fills blocks in memory; a thread of its own writes
//! them. When that one falls too far behind, keeping ends and the run goes on.

mod replay;

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use schedlab_policy_api::TunableValue;
use schedlab_trace::transcript::{Block, End, Frame, Header, MAGIC, Output};
use schedlab_units::{CpuId, CpuSet};

use crate::ending::Ending;
use crate::kernel::{Counters, Kernel};
use crate::message::{Decision, Message, Run};

pub use replay::{Difference, Replayed, replay};

/// Blocks that may wait for the disk, together 32 MiB.
const WAITING: usize = 512;
/// A block is written after this time even if it is not full: a run that is killed loses no more.
const AT_LEAST_EVERY: Duration = Duration::from_millis(100);

/// What goes into a host.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A batch of records, for [`crate::host::Host::handle`].
    Records(&'a [Message]),
    /// An instant of CLOCK_MONOTONIC in ns, for [`crate::host::Host::pass_time`].
    Clock {
        /// The instant.
        clock: u64,
        /// Whether the host does more than move its clock on.
        acts: bool,
    },
}

/// What became of a transcript.
#[derive(Debug)]
pub struct Kept {
    /// Bytes of the file.
    pub bytes: u64,
    /// Whether the whole run is in it.
    pub is_complete: bool,
    /// Why writing failed, if it did.
    pub error: Option<io::Error>,
}

/// Keeps a transcript; clones keep the same one.
#[derive(Clone)]
pub struct Keeper(Rc<RefCell<State>>);

struct State {
    block: Block,
    /// Time has passed up to here, and nothing else happened.
    quiet_until: Option<u64>,
    last_sent: Instant,
    writer: Option<SyncSender<Piece>>,
    used: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<(u64, Option<io::Error>)>>,
    is_complete: bool,
}

/// What the writer writes in one go.
enum Piece {
    Head(Vec<u8>),
    Block(Block),
}

impl Keeper {
    /// Makes the thread that writes to `out`. To be called before the calling thread becomes the
    /// host's: a new thread inherits class and CPUs.
    ///
    /// # Errors
    /// No thread can be made.
    pub fn new(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (writer, pieces) = sync_channel(WAITING);
        let (give_back, used) = channel();
        let thread = std::thread::Builder::new()
            .name("transcript".to_string())
            .spawn(move || write_all(out, &pieces, &give_back))?;
        Ok(Self(Rc::new(RefCell::new(State {
            block: Block::new(),
            quiet_until: None,
            last_sent: Instant::now(),
            writer: Some(writer),
            used,
            thread: Some(thread),
            is_complete: true,
        }))))
    }

    /// Begins the file; comes before everything else.
    pub fn head(&self, header: &Header) {
        let head = [&MAGIC, header.to_line().as_bytes()].concat();
        self.0.borrow_mut().send(Piece::Head(head));
    }

    /// Keeps what goes into the host next.
    pub fn input(&self, input: Input<'_>) {
        let mut state = self.0.borrow_mut();
        match input {
            Input::Records(batch) => {
                state.settle();
                for message in batch {
                    state.append(|block| block.push_record(message));
                }
                state.append(|block| block.push(&Frame::Handle));
            }
            Input::Clock { clock, acts } => {
                state.quiet_until = Some(clock);
                if acts {
                    state.settle();
                }
            }
        }
        state.send_in_time();
    }

    /// Keeps a change of a tunable that the policy took.
    pub fn tunable(&self, name: &str, value: TunableValue) {
        self.0.borrow_mut().push(&Frame::Tunable { name: name.to_string(), value });
    }

    /// Ends the file, and waits until it is written.
    pub fn finish(&self, mut end: End) -> Kept {
        let mut state = self.0.borrow_mut();
        state.settle();
        end.is_complete = state.is_complete;
        let mut last = std::mem::take(&mut state.block);
        last.push(&Frame::End(end));
        if let Some(writer) = state.writer.take() {
            // Fails only when the writer has panicked, which joining it tells.
            let _ = writer.send(Piece::Block(last));
        }
        let written = state.thread.take().map(JoinHandle::join);
        let (bytes, error) = match written {
            Some(Ok(written)) => written,
            _ => (0, Some(io::Error::other("the thread that writes it failed"))),
        };
        Kept { bytes, is_complete: state.is_complete && error.is_none(), error }
    }

    fn output(&self, output: Output) {
        self.0.borrow_mut().push(&Frame::Output(output));
    }
}

impl State {
    fn push(&mut self, frame: &Frame) {
        self.settle();
        self.append(|block| block.push(frame));
    }

    /// Writes down how far time has passed.
    fn settle(&mut self) {
        if let Some(clock) = self.quiet_until.take() {
            self.append(|block| block.push(&Frame::Clock(clock)));
        }
    }

    fn append(&mut self, put: impl FnOnce(&mut Block)) {
        if self.is_complete {
            put(&mut self.block);
            if self.block.is_full() {
                self.send_block();
            }
        }
    }

    fn send_in_time(&mut self) {
        if !self.block.is_empty() && self.last_sent.elapsed() >= AT_LEAST_EVERY {
            self.send_block();
        }
    }

    fn send_block(&mut self) {
        self.last_sent = Instant::now();
        let next = self.used.try_recv().map_or_else(|_| Block::new(), Block::reuse);
        let full = std::mem::replace(&mut self.block, next);
        self.send(Piece::Block(full));
    }

    fn send(&mut self, piece: Piece) {
        let Some(writer) = &self.writer else { return };
        match writer.try_send(piece) {
            Ok(()) => {}
            // What comes later could not be replayed without this piece.
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.is_complete = false,
        }
    }
}

/// Writes piece by piece until the sender is gone; how many bytes, and why not all.
fn write_all(
    mut out: impl Write,
    pieces: &Receiver<Piece>,
    give_back: &std::sync::mpsc::Sender<Vec<u8>>,
) -> (u64, Option<io::Error>) {
    let (mut written, mut failed) = (0, None);
    for piece in pieces {
        if failed.is_some() {
            continue;
        }
        let bytes = match piece {
            Piece::Head(bytes) => bytes,
            Piece::Block(block) => block.seal(),
        };
        match out.write_all(&bytes) {
            Ok(()) => written += bytes.len() as u64,
            Err(error) => failed = Some(error),
        }
        // Nobody wants it any more once the run is over.
        let _ = give_back.send(bytes);
    }
    if failed.is_none() {
        failed = out.flush().err();
    }
    (written, failed)
}

/// A kernel whose answers, and what the host tells it, are kept.
pub struct Recorded<'k, K> {
    kernel: &'k mut K,
    keeper: Option<Keeper>,
    any_pending: bool,
}

impl<'k, K: Kernel> Recorded<'k, K> {
    /// Keeps with `keeper`, or nothing without one.
    pub fn new(kernel: &'k mut K, keeper: Option<Keeper>) -> Self {
        Self { kernel, keeper, any_pending: false }
    }

    fn tell(&mut self, output: Output) {
        self.any_pending = true;
        if let Some(keeper) = &self.keeper {
            keeper.output(output);
        }
    }
}

impl<K: Kernel> Kernel for Recorded<'_, K> {
    fn drain(&mut self, wait: Duration, into: &mut Vec<Message>) -> io::Result<()> {
        self.kernel.drain(wait, into)
    }

    fn give(&mut self, cpu: CpuId, decision: Decision) {
        self.tell(Output::Give(cpu, decision));
        self.kernel.give(cpu, decision);
    }

    fn stop(&mut self, cpu: CpuId, run: Run) {
        self.tell(Output::Stop(cpu, run));
        self.kernel.stop(cpu, run);
    }

    fn kick(&mut self, cpu: CpuId) {
        self.tell(Output::Kick(cpu));
        self.kernel.kick(cpu);
    }

    fn commit(&mut self) -> io::Result<CpuSet> {
        let busy = self.kernel.commit()?;
        // Nothing to take effect: the replay knows that by itself.
        if std::mem::take(&mut self.any_pending)
            && let Some(keeper) = &self.keeper
        {
            keeper.output(Output::Commit(busy));
        }
        Ok(busy)
    }

    fn left(&mut self) -> Option<Ending> {
        self.kernel.left()
    }

    fn counters(&mut self) -> Counters {
        self.kernel.counters()
    }

    fn explain(&mut self, cpu: CpuId) -> String {
        self.kernel.explain(cpu)
    }

    fn detach(&mut self) {
        self.kernel.detach();
    }
}
