//! A test with an iperf 2 server: payload over connections that open with its header, and no word in return. What is *not*
//! here: datagrams, and tests in which the server sends.

use std::{
    io::Read,
    net::{Shutdown, SocketAddr, TcpStream},
    sync::atomic::AtomicBool,
};

use fullpipe_probe::is_pause;

use super::{Client, ClientOptions};
use crate::{
    error::MeasureError,
    measurement::PeerKind,
    patience::Patience,
    spec::{Length, TestDirection, TestSpec},
    target::Target,
};

impl Client {
    /// For a test with an iperf 2 server. Nothing is connected before that: the server would count it.
    ///
    /// # Errors
    /// Where the name can't be resolved.
    pub fn for_iperf2(target: &Target, options: ClientOptions, cancel: &AtomicBool) -> Result<Self, MeasureError> {
        let addresses = target.resolve(options.family, Patience::new(options.connect).unless(cancel))?;
        // A name that stands for both families: most servers of iperf 2 listen on IPv4 alone.
        let peer = addresses.iter().find(|address| address.is_ipv4()).or_else(|| addresses.first()).copied();
        Ok(Self {
            target: target.clone(),
            credentials: None,
            peer: peer.unwrap_or_else(|| ([0, 0, 0, 0], target.port).into()),
            options,
            kind: PeerKind::Iperf2,
            talk: None,
            agreed: None,
            idle_rtt: None,
            mtu: None,
        })
    }
}

/// What an iperf 2 server can do for us.
pub(super) fn check(spec: &TestSpec) -> Result<(), MeasureError> {
    let refuse = |field, value: &str| {
        let reason = "with an iperf 2 server only an upload over TCP is possible";
        Err(MeasureError::BadSpec { field, value: value.to_owned(), reason })
    };
    match (spec.udp, spec.direction) {
        (Some(_), _) => refuse("the protocol", "UDP"),
        (None, TestDirection::Down) => refuse("the direction", "down"),
        (None, TestDirection::Both) => refuse("the direction", "both"),
        (None, TestDirection::Up) => Ok(()),
    }
}

/// What is said where nothing listens: an iperf 2 server is meant, and ours takes its test, too.
pub(super) fn refused(kind: PeerKind, error: MeasureError) -> MeasureError {
    match error {
        MeasureError::Refused { peer } if kind == PeerKind::Iperf2 => MeasureError::NoIperf2 { peer },
        other => other,
    }
}

/// Says that there is no more, and waits until the server has read what is on its way: it counts all of it.
pub(super) fn take_leave(streams: &[TcpStream], patience: Patience<'_>) {
    for stream in streams {
        // One that is gone needs no leave.
        drop(stream.shutdown(Shutdown::Write));
        drop(stream.set_read_timeout(Some(patience.slice())));
    }
    let mut said = [0; 1024];
    for mut stream in streams {
        while !patience.is_over() {
            match stream.read(&mut said) {
                Ok(0) => break,
                Err(error) if !is_pause(&error) => break,
                _ => {}
            }
        }
    }
}

/// What 2.1.8 opens a connection with: its extended header of 60 bytes, and that length in the flags. Older ones take it for
/// payload.
pub(super) fn header(spec: &TestSpec, peer: SocketAddr) -> [u8; 60] {
    const EXTENDED_AND_LENGTH: u32 = 0x4000_0000 | 0x0001_0000 | (60 << 1);
    /// 2.1.8, as it has them: major and minor, micro and stage.
    const VERSION: [u32; 2] = [0x0002_0001, 0x0008_0003];
    let amount = match spec.length {
        Length::Bytes(bytes) => i32::try_from(bytes.get()).unwrap_or(i32::MAX),
        // In hundredths of a second.
        Length::Time(time) => -i32::try_from(time.as_millis() / 10).unwrap_or(i32::MAX),
    };
    let mut header = [0; 60];
    let mut put = |at: usize, word: u32| header[at..at + 4].copy_from_slice(&word.to_be_bytes());
    put(0, EXTENDED_AND_LENGTH);
    put(4, spec.streams);
    put(8, peer.port().into());
    put(20, amount.cast_unsigned());
    put(36, VERSION[0]);
    put(40, VERSION[1]);
    header
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fullpipe_units::Bytes;

    use super::*;

    /// What 2.1.8 sent for `-n 200K -p 5399`.
    #[test]
    fn the_header_is_that_of_2_1_8() {
        let spec = TestSpec { length: Length::Bytes(Bytes::new(204_800)), ..TestSpec::default() };
        let header = header(&spec, ([127, 0, 0, 1], 5399).into());
        let seen = [0x4001_0078, 1, 5399, 0, 0, 0x0003_2000, 0, 0, 0, 0x0002_0001, 0x0008_0003, 0, 0, 0, 0];
        let words: Vec<u32> =
            header.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap_or_default())).collect();
        assert_eq!(words, seen);
    }

    #[test]
    fn a_time_is_told_in_hundredths_below_zero() {
        let spec = TestSpec { length: Length::Time(Duration::from_secs(1)), ..TestSpec::default() };
        assert_eq!(header(&spec, ([127, 0, 0, 1], 5001).into())[20..24], (-100_i32).to_be_bytes());
    }
}
