//! Where a capture's bytes come from: opening, and a look at the first ones for how they are compressed. What is *not*
//! here: what comes out of the compression.

use std::{
    fs::File,
    io::{self, Cursor, Read},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{Compression, Error, decompress};

/// An opened capture.
pub struct Source {
    pub(crate) name: String,
    /// Decompressed.
    pub(crate) stream: Box<dyn Read + Send>,
    pub(crate) compression: Option<Compression>,
    pub(crate) size: Option<u64>,
    position: Arc<AtomicU64>,
}

impl Source {
    /// Opens a file; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path.as_os_str() == "-" {
            return Self::new("standard input".to_owned(), Box::new(io::stdin()), None);
        }
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|file| file.metadata().map(|metadata| (file, metadata)));
        match opened {
            Ok((file, metadata)) => {
                let size = metadata.is_file().then_some(metadata.len());
                Self::new(name, Box::new(file), size)
            }
            Err(source) => Err(Error::Open { name, source }),
        }
    }

    /// A stream of bytes from elsewhere.
    pub fn new(name: String, stream: Box<dyn Read + Send>, size: Option<u64>) -> Result<Self, Error> {
        let position = Arc::new(AtomicU64::new(0));
        let mut stream = Counted { stream, position: position.clone() };
        let magic = match magic(&mut stream) {
            Ok(magic) => magic,
            Err(source) => return Err(Error::Read { name, source }),
        };
        if let Some(by) = decompress::elsewhere(&magic) {
            return Err(Error::Packed { name, by });
        }
        let compression = Compression::from_magic(&magic);
        let stream = Cursor::new(magic).chain(stream);
        let stream = match compression {
            Some(compression) => match decompress::start(compression, stream) {
                Ok(stream) => stream,
                Err(source) => return Err(Error::Read { name, source }),
            },
            None => Box::new(stream),
        };
        Ok(Self { name, stream, compression, size, position })
    }

    /// How many bytes were read so far, as they lie on the disk.
    pub(crate) fn position(&self) -> Position {
        Position(self.position.clone())
    }
}

/// Tells how far another thread has read.
pub(crate) struct Position(Arc<AtomicU64>);

impl Position {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Counted {
    stream: Box<dyn Read + Send>,
    position: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.position.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// The first four bytes, or fewer where there are no more.
fn magic(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut magic = Vec::with_capacity(4);
    stream.take(4).read_to_end(&mut magic)?;
    Ok(magic)
}
