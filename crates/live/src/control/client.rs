// SPDX-License-Identifier: GPL-2.0-only
//! Asking a live run.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use thiserror::Error;

use super::message::{self, Answer, Ask};
use super::{PATIENCE, stream};

/// Bytes of an answer that are taken at most: some hundred thousand tasks.
const ANSWER_MAX: usize = 256 << 20;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum AskError {
    /// Nobody listens.
    #[error("no schedlab live runs here: nothing answers at {}", .0.display())]
    NotRunning(PathBuf),
    /// Somebody else's live run.
    #[error("no right to ask the live run at {}: run it with sudo", .0.display())]
    NoRight(PathBuf),
    /// It takes no more or says nothing.
    #[error("the live run at {} does not answer: it is busy or stopped; try again", .0.display())]
    Silent(PathBuf),
    /// It says that it cannot answer now.
    #[error("the live run at {}: {why}", path.display())]
    Unavailable {
        /// The socket.
        path: PathBuf,
        /// Its reason.
        why: String,
    },
    /// It ended meanwhile.
    #[error("the live run at {} ended before it answered", .0.display())]
    Gone(PathBuf),
    /// Its answer is not understood.
    #[error(
        "the answer at {} is not understood: {what}; both sides must be of the same version",
        path.display()
    )]
    Foreign {
        /// The socket.
        path: PathBuf,
        /// What is wrong with the answer.
        what: String,
    },
    /// The host does not let us.
    #[error("cannot ask at {}: {error}", path.display())]
    Failed {
        /// The socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl AskError {
    /// Whether there is no live run, or none any more.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NotRunning(_) | Self::Gone(_))
    }
}

/// Asks the live run whose socket is at `path` and waits for its answer.
///
/// # Errors
/// [`AskError`]; a refusal by the live run is an answer.
pub fn ask(path: &Path, ask: &Ask) -> Result<Answer, AskError> {
    let failed = |error| failed(path, error);
    let mut stream = stream::connect(path).map_err(failed)?;
    // The other side may use up its patience three times before the answer begins.
    let deadline = Instant::now() + 4 * PATIENCE;
    let sent = stream::write(&mut stream, &message::to_line(ask), deadline);
    // One that refuses closes without having read all, but its refusal can be read.
    let line = match (stream::read_line(&mut stream, ANSWER_MAX, deadline), sent) {
        (Ok(line), _) => line,
        (Err(_), Err(error)) | (Err(error), Ok(())) => return Err(failed(error)),
    };
    if line.is_empty() {
        return Err(AskError::Gone(path.to_path_buf()));
    }
    let path = path.to_path_buf();
    match message::answer(&line) {
        Ok(Answer::Unavailable { message: why }) => Err(AskError::Unavailable { path, why }),
        Ok(answer) => Ok(answer),
        Err(what) => Err(AskError::Foreign { path, what }),
    }
}

fn failed(path: &Path, error: io::Error) -> AskError {
    let path = path.to_path_buf();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => AskError::NotRunning(path),
        ErrorKind::PermissionDenied => AskError::NoRight(path),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => AskError::Silent(path),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => AskError::Gone(path),
        _ => AskError::Failed { path, error },
    }
}
