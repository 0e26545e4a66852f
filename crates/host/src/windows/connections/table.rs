//! The table of TCP connections, in the bytes in which `GetExtendedTcpTable` fills it in (`tcpmib.h`).
//!
//! What is *not* here: asking Windows for it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use super::Connection;

/// `MIB_TCP_STATE_ESTAB`.
const ESTABLISHED: u32 = 5;
/// `MIB_TCPROW_OWNER_PID` and `MIB_TCP6ROW_OWNER_PID`; both tables begin with the number of their rows.
const ROW_V4: usize = 24;
const ROW_V6: usize = 56;
const HEAD: usize = 4;

/// The established connections of a `MIB_TCPTABLE_OWNER_PID`. A count that is larger than the bytes ends with them.
pub(super) fn v4(bytes: &[u8]) -> Vec<Connection> {
    let row = |row: &[u8]| {
        let end = |at: usize| {
            let address: [u8; 4] = row.get(at..at + 4)?.try_into().ok()?;
            Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(address)), port(row, at + 4)?))
        };
        (number(row, 0)? == ESTABLISHED)
            .then(|| Some(Connection { local: end(4)?, remote: end(12)?, pid: number(row, 20)? }))?
    };
    rows(bytes, ROW_V4).filter_map(row).collect()
}

/// The established connections of a `MIB_TCP6TABLE_OWNER_PID`.
pub(super) fn v6(bytes: &[u8]) -> Vec<Connection> {
    let row = |row: &[u8]| {
        let end = |at: usize| {
            let address: [u8; 16] = row.get(at..at + 16)?.try_into().ok()?;
            // Scopes are in network byte order, as ports are.
            let scope = u32::from_be(number(row, at + 16)?);
            let port = port(row, at + 20)?;
            Some(SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(address), port, 0, scope)))
        };
        (number(row, 48)? == ESTABLISHED)
            .then(|| Some(Connection { local: end(0)?, remote: end(24)?, pid: number(row, 52)? }))?
    };
    rows(bytes, ROW_V6).filter_map(row).collect()
}

/// The row that the calls for one connection take: `MIB_TCPROW` or `MIB_TCP6ROW`.
pub(super) fn row(connection: &Connection) -> Vec<u8> {
    let mut row = ESTABLISHED.to_ne_bytes().to_vec();
    for end in [connection.local, connection.remote] {
        match end {
            SocketAddr::V4(end) => row.extend(end.ip().octets()),
            SocketAddr::V6(end) => {
                row.extend(end.ip().octets());
                row.extend(end.scope_id().to_be_bytes());
            }
        }
        row.extend(u32::from(end.port().to_be()).to_ne_bytes());
    }
    row
}

fn rows(bytes: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    let count = number(bytes, 0).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    bytes.get(HEAD..).unwrap_or_default().chunks_exact(size).take(count)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A port: network byte order in the lower 16 of 32 bits; the upper ones may hold anything.
fn port(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The rows of a connection as the table has them, and with which count.
    fn table(count: u32, connections: &[Connection], state: u32) -> Vec<u8> {
        let mut bytes = count.to_ne_bytes().to_vec();
        for connection in connections {
            let row = row(connection);
            if connection.local.is_ipv4() {
                bytes.extend(state.to_ne_bytes());
                bytes.extend(&row[4..]);
                bytes.extend(connection.pid.to_ne_bytes());
            } else {
                bytes.extend(&row[4..]);
                bytes.extend(state.to_ne_bytes());
                bytes.extend(connection.pid.to_ne_bytes());
            }
        }
        bytes
    }

    fn connection(local: &str, remote: &str, pid: u32) -> Connection {
        Connection { local: local.parse().expect("an end"), remote: remote.parse().expect("an end"), pid }
    }

    #[test]
    fn established_connections_are_read_with_their_process() {
        let four =
            [connection("192.0.2.1:5201", "198.51.100.7:49152", 1234), connection("127.0.0.1:1", "127.0.0.1:2", 4)];
        assert_eq!(v4(&table(2, &four, ESTABLISHED)), four);
        assert_eq!(v4(&table(2, &four, 2)), [], "listening");
        let six = [connection("[2001:db8::1]:443", "[fe80::2%7]:50000", 99)];
        assert_eq!(v6(&table(1, &six, ESTABLISHED)), six);
        // As Windows on x86 has it in memory: address and port of 192.0.2.1:5201 in network byte order.
        assert_eq!(row(&four[0])[..12], [5, 0, 0, 0, 192, 0, 2, 1, 0x14, 0x51, 0, 0]);
        assert_eq!((row(&four[0]).len(), row(&six[0]).len()), (20, 52), "MIB_TCPROW, MIB_TCP6ROW");
    }

    #[test]
    fn a_count_beyond_the_bytes_ends_with_them() {
        let one = [connection("192.0.2.1:5201", "198.51.100.7:49152", 1)];
        assert_eq!(v4(&table(u32::MAX, &one, ESTABLISHED)), one);
        assert_eq!(v4(&[]), []);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (v4(&bytes), v6(&bytes));
        }
    }
}
