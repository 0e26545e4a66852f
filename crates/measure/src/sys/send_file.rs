//! Sending from a file that has no name, so that the kernel takes its pages and copies nothing.

use std::{
    env,
    fs::File,
    io::{self, Write},
    net::TcpStream,
};

use rustix::fs::{Mode, OFlags};

/// A file with this content that is gone when it is closed.
pub(crate) fn unnamed(content: &[u8]) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    let mut file: File =
        rustix::fs::open(env::temp_dir(), OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode)?.into();
    file.write_all(content)?;
    Ok(file)
}

/// Sends up to `len` bytes from the beginning of the file.
pub(crate) fn send(stream: &TcpStream, file: &File, len: usize) -> io::Result<usize> {
    Ok(rustix::fs::sendfile(stream, file, Some(&mut 0), len)?)
}
