//! Calls of this very process, swallowed by the kernel that the test runs on. Without the right to load programs, each test
//! says so and passes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    collections::BTreeSet,
    fs::{self, File},
    net::TcpListener,
    sync::{Mutex, MutexGuard, PoisonError},
};

use fullpipe_bpf::{BpfError, Swallow, Swallowed, Whose};
use socket2::{Domain, Socket, Type};

/// Programs of one test swallow calls of another one: one at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The control group of this process. `None`, and the reason printed, where there is none of version 2.
fn group(test: &str) -> Option<File> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let root = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let at = words.next()?;
        (words.next()? == "cgroup2").then(|| at.to_owned())
    });
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let Some(root) = root else {
        println!("skipped {test}: cgroup2 is not mounted");
        return None;
    };
    Some(File::open(format!("{root}{own}")).unwrap())
}

/// `None`, and the reason printed, without the right to.
fn begin(test: &str, whose: &Whose) -> Option<Swallow> {
    match Swallow::begin(group(test)?, whose) {
        Ok(swallow) => Some(swallow),
        Err(BpfError::Denied { .. }) => {
            println!("skipped {test}: loading a BPF program takes rights that this user has not");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn socket() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, None).unwrap()
}

/// Whether a call fixes the buffer of a new socket; what the socket says of its size then.
fn sets(size: usize) -> (usize, usize) {
    let socket = socket();
    socket.set_send_buffer_size(size).unwrap();
    socket.set_recv_buffer_size(size).unwrap();
    (socket.send_buffer_size().unwrap(), socket.recv_buffer_size().unwrap())
}

#[test]
fn a_size_that_is_set_stays_automatic_and_is_told_as_it_was_set() {
    let test = "a_size_that_is_set_stays_automatic_and_is_told_as_it_was_set";
    let _turn = turn();
    let usual = (socket().send_buffer_size().unwrap(), socket().recv_buffer_size().unwrap());
    let Some(swallow) = begin(test, &Whose::Everyone) else { return };
    let during = socket();
    during.set_send_buffer_size(40_000).unwrap();
    during.set_recv_buffer_size(4_000).unwrap();
    assert_eq!(during.send_buffer_size().unwrap(), 80_000, "reported as the kernel does");
    assert_eq!(during.recv_buffer_size().unwrap(), usual.1, "more than was asked for is what it has");
    let other = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    other.set_send_buffer_size(5_000).unwrap();
    assert_eq!(other.send_buffer_size().unwrap(), 10_000, "UDP is none of its business");
    let counted = swallow.swallowed().unwrap();
    assert!(counted.send >= 1 && counted.receive >= 1, "{counted:?}");
    drop(swallow);
    assert_eq!(
        (during.send_buffer_size().unwrap(), during.recv_buffer_size().unwrap()),
        usual,
        "without the program the socket itself is asked: it was left as it is made"
    );
    assert_eq!(sets(40_000), (80_000, 80_000), "and calls do what they did before");
}

#[test]
fn only_those_are_kept_from_it_that_are_meant() {
    let test = "only_those_are_kept_from_it_that_are_meant";
    let _turn = turn();
    let usual = socket().recv_buffer_size().unwrap();
    let small = usual / 8;
    let Some(mut swallow) = begin(test, &Whose::Followed) else { return };
    assert_eq!(sets(small).1, 2 * small, "nobody is followed yet");
    swallow.follow(&BTreeSet::from([std::process::id(), 1])).unwrap();
    assert_eq!(sets(small).1, usual);
    swallow.follow(&BTreeSet::from([1])).unwrap();
    assert_eq!(sets(small).1, 2 * small, "not any more");
    assert_eq!(swallow.swallowed().unwrap(), Swallowed { send: 1, receive: 1 });
    drop(swallow);

    // The name of this thread, cut as kernels do.
    let name = fs::read_to_string("/proc/thread-self/comm").unwrap().trim_end().to_owned();
    let Some(swallow) = begin(test, &Whose::Named(name.clone() + "-and-more")) else { return };
    assert_eq!(sets(small).1, if name.len() == 15 { usual } else { 2 * small });
    drop(swallow);
    let Some(_swallow) = begin(test, &Whose::Named(name)) else { return };
    assert_eq!(sets(small).1, usual);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(listener.local_addr().is_ok(), "other calls are as ever");
}
