//! What every build of the engine does, with all features or with none (`firmware.rs` runs this with none).

use fullpipe_pair::{Flow, Link, Net, config, open, transfer};
use fullpipe_tcp::{
    heap::HeapStorage,
    profile::{Budgets, Profile},
    socket::SocketOptions,
    stack::Stack,
};

#[test]
fn a_transfer_arrives_whole_and_gives_everything_back() {
    for seed in 0..8 {
        let profile = Profile::NETBURNER;
        let host = |at: u8| Stack::new(HeapStorage::new(4, 32, 1548), config(at, false, 1500, profile));
        let link = Link { loss: 20_000, reorder: 20_000, duplicate: 10_000, ..Link::clean(5_000) };
        let mut net = Net::new(seed, [link; 2], [host(0), host(1)]);
        let options = SocketOptions { budgets: Budgets::all(8), ..SocketOptions::from_profile(&profile) };
        let ends = open(&mut net, false, [options; 2]);
        transfer(&mut net, ends, &mut [Flow::new(1, 200_000), Flow::new(2, 100_000)]);
    }
}
