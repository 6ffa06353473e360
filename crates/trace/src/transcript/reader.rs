// SPDX-License-Identifier: GPL-2.0-only
//! Hands out the frames of a transcript one by one; memory does not grow with the file.

use std::io::{self, BufReader, Read};

use schedlab_units::Located;

use super::block::{MAX_BLOCK, PREFIX, sum};
use super::frame::{End, Flaw, Frame, frames};
use super::header::Header;
use super::{MAGIC, MAX_HEADER};
use crate::compression::unpack;
use crate::format::{Format, detect};

/// A transcript that is being read.
pub struct Transcript<R> {
    input: R,
    header: Header,
    /// Bytes of the file before the block at hand.
    offset: u64,
    /// Frames of the block at hand.
    block: Vec<u8>,
    /// How many of its bytes have been handed out.
    done: usize,
    /// The file ends before the block at hand does.
    is_cut: bool,
    end: Option<End>,
    is_over: bool,
}

/// Opens a transcript, packed with gzip or zstd or not at all.
///
/// # Errors
/// Not a transcript, another version of the format, a malformed header; with the byte offset.
pub fn open<'r, R: Read + 'r>(input: R) -> Result<Transcript<Box<dyn Read + 'r>>, Located> {
    let mut input = BufReader::new(input);
    let mut start = [0; 4];
    let n = fill(&mut input, &mut start).map_err(|error| cannot_read(0, &error))?;
    let whole = io::Cursor::new(start[..n].to_vec()).chain(input);
    match detect(&start[..n]) {
        Some(packed @ (Format::Gzip | Format::Zstd)) => {
            Transcript::new(Box::new(BufReader::new(unpack(packed, whole))))
        }
        _ => Transcript::new(Box::new(whole)),
    }
}

impl<R: Read> Transcript<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// As [`open`].
    pub fn new(mut input: R) -> Result<Self, Located> {
        let mut magic = [0; MAGIC.len()];
        let n = fill(&mut input, &mut magic).map_err(|error| cannot_read(0, &error))?;
        if magic != MAGIC {
            let same = magic.iter().zip(MAGIC).take_while(|(is, should)| **is == *should).count();
            return Err(if n < MAGIC.len() && same == n && n > 0 {
                fault(n as u64, "the file ends in the middle of its header")
            } else if same >= 4 {
                fault(same as u64, "the line ends of the heading were changed")
                    .hint("the file was transferred as text; copy it again as binary")
            } else {
                Located::whole("this is no transcript of a live run")
                    .hint("`schedlab live --transcript FILE` writes one")
            });
        }
        let line = header_line(&mut input)?;
        let header = Header::from_line(&line)
            .map_err(|message| fault(MAGIC.len() as u64, &message).hint(OTHER_VERSION))?;
        Ok(Self {
            input,
            header,
            offset: (MAGIC.len() + line.len() + 1) as u64,
            block: Vec::new(),
            done: 0,
            is_cut: false,
            end: None,
            is_over: false,
        })
    }

    /// What the file says of its run.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How the run ended. None after the last frame: the run was killed, and the file holds what had
    /// been written by then.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Bytes of the file before the next frame.
    pub fn offset(&self) -> u64 {
        self.offset + self.done as u64
    }

    /// The next frame; none after the last.
    ///
    /// # Errors
    /// A file that was cut in the middle of a block, after all whole frames, or damaged; with the
    /// byte offset. From then on there is none.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, Located> {
        if self.is_over {
            return Ok(None);
        }
        let frame = self.frame();
        match &frame {
            Ok(Some(Frame::End(end))) => self.end = Some(end.clone()),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => self.is_over = true,
        }
        frame
    }

    fn frame(&mut self) -> Result<Option<Frame>, Located> {
        if self.done == self.block.len() {
            if self.is_cut {
                return Err(self.cut());
            }
            if !self.next_block()? {
                return Ok(None);
            }
            if self.end.is_some() {
                return Err(self.damaged("more follows the end of the run"));
            }
        }
        let mut rest = frames(&self.block[self.done..]);
        match Frame::read(&mut rest) {
            Ok(frame) => {
                self.done = self.block.len() - rest.rest.len();
                Ok(Some(frame))
            }
            Err(Flaw::Short) if self.is_cut => {
                self.done = self.block.len();
                Err(self.cut())
            }
            Err(Flaw::Short) => Err(self.damaged("a frame goes on behind its block")),
            Err(Flaw::Wrong(message)) => Err(self.damaged(&message)),
        }
    }

    /// Reads the next block with frames; false at the end of the file.
    fn next_block(&mut self) -> Result<bool, Located> {
        loop {
            self.offset += self.block.len() as u64;
            (self.done, self.is_cut) = (0, false);
            self.block.clear();
            let mut prefix = [0; PREFIX];
            let n = fill(&mut self.input, &mut prefix);
            match n.map_err(|error| cannot_read(self.offset, &error))? {
                0 => return Ok(false),
                PREFIX => {}
                n => {
                    self.offset += n as u64;
                    return Err(self.cut());
                }
            }
            let (length, checksum) = prefix.split_at(4);
            let length = u32::from_le_bytes(length.try_into().expect("4 bytes")) as usize;
            let checksum = u64::from_le_bytes(checksum.try_into().expect("8 bytes"));
            if length > MAX_BLOCK {
                return Err(self.damaged(&format!("a block of {length} bytes")));
            }
            self.offset += PREFIX as u64;
            let read = (&mut self.input).take(length as u64).read_to_end(&mut self.block);
            read.map_err(|error| cannot_read(self.offset, &error))?;
            self.is_cut = self.block.len() < length;
            if !self.is_cut && sum(&self.block) != checksum {
                return Err(self.damaged("the checksum of the block is wrong"));
            }
            if self.is_cut || length > 0 {
                return Ok(true);
            }
        }
    }

    fn cut(&self) -> Located {
        fault(self.offset(), "the file ends in the middle of a block")
            .hint("it was cut when it was copied, or the disk was full; all before it was read")
    }

    fn damaged(&self, message: &str) -> Located {
        fault(self.offset(), message).hint("the file is damaged")
    }
}

/// What to do about a header of another schema.
const OTHER_VERSION: &str = "read it with the version of schedlab that wrote it";

fn header_line<R: Read>(input: &mut R) -> Result<Vec<u8>, Located> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        let at = MAGIC.len() as u64 + line.len() as u64;
        match fill(input, &mut byte).map_err(|error| cannot_read(at, &error))? {
            0 => return Err(fault(at, "the file ends in the middle of its header")),
            _ if byte == *b"\n" => return Ok(line),
            _ if at > MAX_HEADER => return Err(fault(at, "the header has no end")),
            _ => line.push(byte[0]),
        }
    }
}

/// Reads until `bytes` is full or the input is over; how many were read.
fn fill<R: Read>(input: &mut R, bytes: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < bytes.len() {
        match input.read(&mut bytes[n..]) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n)
}

fn fault(offset: u64, message: &str) -> Located {
    Located::whole(format!("byte {offset}: {message}"))
}

fn cannot_read(offset: u64, error: &io::Error) -> Located {
    fault(offset, &format!("cannot read on: {error}"))
}
