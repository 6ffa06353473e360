// SPDX-License-Identifier: GPL-2.0-only
//! Files packed with gzip or zstd, recognised by their first bytes.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::format::Format;

/// The unpacked bytes of `input`. A packed file that was cut or is damaged fails while reading.
pub(crate) fn unpack<'r, R: Read + 'r>(packed: Format, input: R) -> Box<dyn Read + 'r> {
    let input = BufReader::new(Counting { inner: input, offset: 0, ended: false });
    match packed {
        Format::Zstd => Box::new(Unpacked::new(Frames::new(input), packed)),
        _ => Box::new(Unpacked::new(MultiGzDecoder::new(input), packed)),
    }
}

/// Knows how far it was read.
struct Counting<R> {
    inner: R,
    offset: u64,
    ended: bool,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.offset += n as u64;
        self.ended |= n == 0 && !buf.is_empty();
        Ok(n)
    }
}

/// A decoder whose packed input can be asked for its place.
trait Decoder: Read {
    type Input: Read;
    fn input(&self) -> &BufReader<Counting<Self::Input>>;
}

impl<R: Read> Decoder for MultiGzDecoder<BufReader<Counting<R>>> {
    type Input = R;
    fn input(&self) -> &BufReader<Counting<R>> {
        self.get_ref()
    }
}

impl<R: Read> Decoder for Frames<BufReader<Counting<R>>> {
    type Input = R;
    fn input(&self) -> &BufReader<Counting<R>> {
        &self.input
    }
}

/// Says in its errors that it is the packing that is damaged, and where.
struct Unpacked<D> {
    inner: D,
    packed: Format,
    /// The first error: a decoder that goes on behind it may find an end there.
    failed: Option<String>,
}

impl<D: Decoder> Unpacked<D> {
    fn new(inner: D, packed: Format) -> Self {
        Self { inner, packed, failed: None }
    }

    fn fault(&self, error: &io::Error) -> String {
        let input = self.inner.input();
        let offset = input.get_ref().offset - input.buffer().len() as u64;
        if input.get_ref().ended {
            format!("the {} file was cut: it ends after {offset} bytes", self.packed)
        } else {
            format!("the {} file is damaged before its byte {offset}: {error}", self.packed)
        }
    }
}

impl<D: Decoder> Read for Unpacked<D> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.failed.is_none() {
            match self.inner.read(buf) {
                Ok(n) => return Ok(n),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(error) => self.failed = Some(self.fault(&error)),
            }
        }
        let message = self.failed.clone().unwrap_or_default();
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    }
}

/// The frames of a zstd file one behind the other, each checked against its checksum.
struct Frames<R> {
    input: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Frames<R> {
    fn new(input: R) -> Self {
        Self { input, decoder: FrameDecoder::new(), in_frame: false }
    }

    /// Reads up to the blocks of the next frame; false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        if self.input.fill_buf()?.is_empty() {
            return Ok(false);
        }
        match self.decoder.init(&mut self.input) {
            Ok(()) => self.in_frame = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let length = u64::from(length);
                if io::copy(&mut (&mut self.input).take(length), &mut io::sink())? < length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(true)
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.in_frame = false;
        let told = self.decoder.get_checksum_from_data();
        if told.is_some() && told != self.decoder.get_calculated_checksum() {
            return Err(io::Error::other("the checksum does not match"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if buf.is_empty() {
                return Ok(0);
            }
            if !self.in_frame {
                if !self.next_frame()? {
                    return Ok(0);
                }
            } else if self.decoder.can_collect() > 0 {
                return self.decoder.read(buf);
            } else if self.decoder.is_finished() {
                self.end_frame()?;
            } else {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.input, one).map_err(io::Error::other)?;
            }
        }
    }
}
