//! Zstandard without C, where there is no C.

use std::io::{self, Read};

use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

/// All frames of a zstd file, one after another (`zstd` and `pzstd` write several).
pub(super) struct Frames<R> {
    stream: R,
    decoder: FrameDecoder,
    is_within: bool,
}

impl<R: Read> Frames<R> {
    pub(super) fn new(stream: R) -> Self {
        Self { stream, decoder: FrameDecoder::new(), is_within: false }
    }

    /// Begins the next frame; `false` at the end.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            let mut magic = [0; 4];
            let first = self.stream.read(&mut magic)?;
            if first == 0 {
                return Ok(false);
            }
            self.stream.read_exact(&mut magic[first..])?;
            match self.decoder.init((&magic[..]).chain(&mut self.stream)) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut self.stream.by_ref().take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_within {
                if !self.begin()? {
                    return Ok(0);
                }
                self.is_within = true;
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            if self.decoder.is_finished() {
                self.is_within = false;
                continue;
            }
            self.decoder
                .decode_blocks(&mut self.stream, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(io::Error::other)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    #[test]
    fn frames_follow_one_another_and_those_to_be_skipped_are() {
        let parts: [&[u8]; 2] = [b"one frame, ", b"and another"];
        let mut file = Vec::new();
        for part in parts {
            file.extend_from_slice(&[0x5A, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3]);
            file.extend(compress_to_vec(part, CompressionLevel::Fastest));
        }
        let mut whole = Vec::new();
        Frames::new(&file[..]).read_to_end(&mut whole).unwrap();
        assert_eq!(whole, parts.concat());
        let cut = Frames::new(&file[..file.len() - 1]).read_to_end(&mut Vec::new());
        assert!(cut.is_err(), "half of a frame");
    }
}
