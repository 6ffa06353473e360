// SPDX-License-Identifier: GPL-2.0-only
//! The side of the live run: the socket, and the threads that talk to clients.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use rustix::net::{Shutdown, shutdown};
use thiserror::Error;

use super::message::{self, Answer, Ask};
use super::queue::{Queue, Reply};
use super::{CLIENTS_MAX, PATIENCE, REQUEST_MAX, stream};

/// Stack of a thread that talks to a client: the host locks its memory, so it is kept small.
const STACK: usize = 256 << 10;
/// How long a rest of a refused request is read, so that the refusal is not lost with it.
const FAREWELL: Duration = Duration::from_millis(200);

/// Why there is no control socket.
#[derive(Debug, Error)]
pub enum ControlError {
    /// A process has the socket.
    #[error("another schedlab live runs{}", .0.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    Taken(Option<i32>),
    /// Something that is no socket is in the way.
    #[error("{}: there is something that is no socket; move it away", .0.display())]
    InTheWay(PathBuf),
    /// Others could replace the socket.
    #[error(
        "{}: the folder of the control socket must belong to the user and be closed to others \
         (`chmod go-w`)",
        .0.display()
    )]
    OpenFolder(PathBuf),
    /// The host does not let us.
    #[error("{}: {what}: {error}", path.display())]
    Failed {
        /// The socket or its folder.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
}

/// The control socket of this live run; it is removed when this value is dropped.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    /// Device and inode of our socket: another's of the same name is not removed.
    identity: (u64, u64),
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    listener: UnixListener,
    queue: Queue,
    clients: AtomicUsize,
    ended: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("clients", &self.clients).finish_non_exhaustive()
    }
}

impl Control {
    /// Makes the socket at `path`, and its folder if there is none, and begins to take clients.
    ///
    /// A socket that a process left behind is replaced. The calling thread should not be
    /// real-time, or the threads started here are too.
    ///
    /// # Errors
    /// [`ControlError`]; [`ControlError::Taken`] when another process answers there.
    pub fn open(path: &Path) -> Result<Self, ControlError> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        prepare(folder)?;
        // Two that start at once must not both find the same dead socket and replace it.
        let lock = File::open(folder).and_then(|file| file.lock().map(|()| file));
        let lock = lock.map_err(failed(folder, "cannot lock the folder"))?;
        make_way(path)?;
        let listener = UnixListener::bind(path).map_err(failed(path, "cannot make the socket"))?;
        let identity = fs::set_permissions(path, Permissions::from_mode(0o600))
            .and_then(|()| fs::symlink_metadata(path))
            .map(|meta| (meta.dev(), meta.ino()))
            .map_err(failed(path, "cannot close the socket to others"))?;
        drop(lock);
        let shared = Arc::new(Shared {
            listener,
            queue: Queue::new(),
            clients: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let mut control = Self { path: path.to_path_buf(), identity, shared, accepting: None };
        let shared = Arc::clone(&control.shared);
        let thread = named("control").spawn(move || accept(&shared));
        control.accepting = Some(thread.map_err(failed(path, "cannot start a thread"))?);
        Ok(control)
    }

    /// The next question, if there is one; never waits.
    pub fn poll(&self) -> Option<(Ask, Reply)> {
        self.shared.queue.take()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        // Wakes the thread that accepts.
        let _ = shutdown(&self.shared.listener, Shutdown::Both);
        if let Some(thread) = self.accepting.take() {
            let _ = thread.join();
        }
        self.shared.queue.close();
        let found = fs::symlink_metadata(&self.path).map(|meta| (meta.dev(), meta.ino()));
        if found.is_ok_and(|found| found == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn failed(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> ControlError {
    let path = path.to_path_buf();
    move |error| ControlError::Failed { path, what, error }
}

fn named(name: &str) -> thread::Builder {
    thread::Builder::new().name(format!("schedlab-{name}")).stack_size(STACK)
}

/// Makes the folder of the socket for this user alone; one that is there must be closed to others.
fn prepare(folder: &Path) -> Result<(), ControlError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(failed(folder, "cannot make the folder of the control socket")(error));
        }
        _ => {}
    }
    let meta = fs::metadata(folder).map_err(failed(folder, "cannot look at the folder"))?;
    if meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o022 != 0 {
        return Err(ControlError::OpenFolder(folder.to_path_buf()));
    }
    Ok(())
}

/// Removes what a dead process left at `path`.
fn make_way(path: &Path) -> Result<(), ControlError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(path, "cannot look at it")(error)),
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(ControlError::InTheWay(path.to_path_buf()));
        }
        Ok(_) => {}
    }
    match stream::connect(path) {
        Ok(stream) => {
            let pid = socket_peercred(&stream).ok().map(|peer| peer.pid.as_raw_pid());
            Err(ControlError::Taken(pid))
        }
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed(path, "cannot replace a dead socket"))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(ControlError::Taken(None)),
        Err(error) => Err(failed(path, "cannot tell whether it is in use")(error)),
    }
}

/// Takes clients until the end.
fn accept(shared: &Arc<Shared>) {
    loop {
        let accepted = shared.listener.accept();
        if shared.ended.load(Ordering::Acquire) {
            return;
        }
        match accepted {
            Ok((stream, _)) => admit(shared, stream),
            // Mostly a shortage of descriptors, which must not become a busy loop.
            Err(_) => thread::park_timeout(Duration::from_millis(50)),
        }
    }
}

/// Gives the client a thread, or sends it away.
fn admit(shared: &Arc<Shared>, mut stream: UnixStream) {
    if !may_ask(&stream) {
        let why = "only root may ask a live run; run it with sudo";
        refuse(&mut stream, &Answer::unavailable(why));
        return;
    }
    if shared.clients.fetch_add(1, Ordering::AcqRel) >= CLIENTS_MAX {
        shared.clients.fetch_sub(1, Ordering::AcqRel);
        let why = "too many clients ask at the same time; try again";
        refuse(&mut stream, &Answer::unavailable(why));
        return;
    }
    let seat = Seat(Arc::clone(shared));
    // Without a thread the client sees the end of its stream.
    let _ = named("client").spawn(move || serve(&seat, stream));
}

/// A client's place among those that are served.
struct Seat(Arc<Shared>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether the other side is root, or who runs this process.
fn may_ask(stream: &UnixStream) -> bool {
    // Where the kernel does not tell, the permissions of folder and socket have decided.
    socket_peercred(stream)
        .map_or(true, |peer| peer.uid.is_root() || peer.uid == rustix::process::geteuid())
}

/// Tells a client why it is not served; it must not keep the thread that accepts.
fn refuse(stream: &mut UnixStream, answer: &Answer) {
    let line = message::to_line(answer);
    let _ = stream::write(stream, &line, Instant::now() + FAREWELL);
}

/// One request and its answer.
fn serve(seat: &Seat, mut stream: UnixStream) {
    let line = match stream::read_line(&mut stream, REQUEST_MAX, Instant::now() + PATIENCE) {
        Ok(line) => line,
        Err(error) => {
            let told = match error.kind() {
                ErrorKind::FileTooLarge => {
                    format!("the request is longer than {REQUEST_MAX} bytes")
                }
                ErrorKind::TimedOut => format!("no request within {} s", PATIENCE.as_secs()),
                _ => return,
            };
            refuse(&mut stream, &Answer::refused(told));
            let _ = shutdown(&stream, Shutdown::Write);
            let _ = stream::read_line(&mut stream, REQUEST_MAX, Instant::now() + FAREWELL);
            return;
        }
    };
    if line.is_empty() {
        return;
    }
    let answer = match message::request(&line) {
        Ok(ask) => seat.0.queue.ask(ask, Instant::now() + PATIENCE),
        Err(why) => Answer::refused(why),
    };
    // A client that has gone away has lost its interest.
    let _ = stream::write(&mut stream, &message::to_line(&answer), Instant::now() + PATIENCE);
}
