// SPDX-License-Identifier: GPL-2.0-only
//! Lines over a socket, with an end to all patience.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_to, socket_with,
};

/// A stream to the socket at `path`; unlike that of the standard library it never waits.
///
/// # Errors
/// `WouldBlock` when a process has the socket but too many wait for it already.
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect_to(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Everything up to the first end of line or of the stream, without that end.
///
/// # Errors
/// `FileTooLarge` for a line longer than `max` bytes, `TimedOut` at `deadline`, or as the stream.
pub(super) fn read_line(
    stream: &mut UnixStream,
    max: usize,
    deadline: Instant,
) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        stream.set_read_timeout(Some(left(deadline)?))?;
        let n = match stream.read(&mut chunk) {
            Ok(0) => return Ok(line),
            Ok(n) => n,
            Err(error) => match error.kind() {
                ErrorKind::Interrupted | ErrorKind::WouldBlock => continue,
                _ => return Err(error),
            },
        };
        let end = chunk[..n].iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&chunk[..end.unwrap_or(n)]);
        if line.len() > max {
            return Err(ErrorKind::FileTooLarge.into());
        }
        if end.is_some() {
            return Ok(line);
        }
    }
}

/// Writes all of `bytes`.
///
/// # Errors
/// `TimedOut` at `deadline`, or as the stream.
pub(super) fn write(
    stream: &mut UnixStream,
    mut bytes: &[u8],
    deadline: Instant,
) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(error) => match error.kind() {
                ErrorKind::Interrupted | ErrorKind::WouldBlock => {}
                _ => return Err(error),
            },
        }
    }
    Ok(())
}

/// Time until `deadline`, which is more than none.
fn left(deadline: Instant) -> io::Result<std::time::Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::PATIENCE;

    fn later() -> Instant {
        Instant::now() + PATIENCE
    }

    #[test]
    fn line_ends_at_its_end_or_that_of_the_stream() {
        let (mut a, mut b) = UnixStream::pair().expect("a pair");
        write(&mut a, b"one\ntwo", later()).expect("room");
        assert_eq!(read_line(&mut b, 10, later()).expect("a line"), b"one");
        let (mut a, mut b) = UnixStream::pair().expect("a pair");
        write(&mut a, b"two", later()).expect("room");
        drop(a);
        assert_eq!(read_line(&mut b, 3, later()).expect("a line"), b"two");
    }

    #[test]
    fn long_line_is_refused_before_its_end() {
        let (mut a, mut b) = UnixStream::pair().expect("a pair");
        write(&mut a, b"four", later()).expect("room");
        let error = read_line(&mut b, 3, later()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn past_deadline_ends_reading_and_writing() {
        let (mut a, mut b) = UnixStream::pair().expect("a pair");
        let now = Instant::now();
        assert_eq!(read_line(&mut b, 3, now).unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(write(&mut a, b"x", now).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
