//! `fullpipe share`.

use fullpipe_report::{PoolShares, ShareRow, json, text};
use fullpipe_sim::share::{Device, Kind, Share, Shares, Sockets, Stop, parse_sockets, share};
use fullpipe_units::Bytes;

use super::{Ended, printed};
use crate::{args::ShareArgs, exit::Exit, output::Output};

/// Memory of a packet buffer.
const BUFFER: Bytes = Bytes::new(1_548);

pub(super) fn run(args: &ShareArgs, output: Output) -> Ended {
    let groups = parse_sockets(&args.sockets)?;
    let device = Device {
        pool: args.buffers,
        reserve: args.reserve.unwrap_or_else(|| Device::default_reserve(args.buffers)),
        per_packet: args.per_packet,
        link: args.link,
        max_wait: args.max_wait,
    };
    let shares = share(&device, &groups)?;
    let found = PoolShares {
        pool: device.pool,
        buffer: BUFFER,
        reserve: device.reserve,
        shared: shares.shared,
        left: shares.left,
        total: shares.total,
        device: shares.ceiling,
        wait: groups.iter().any(|group| group.kind == Kind::Interactive).then_some(shares.wait),
        stop: stop(&shares),
        notes: notes(&groups),
        rows: shares.shares.into_iter().map(|share| row(share, &groups)).collect(),
    };
    printed(output.result(|| json::share("share", &found), |look| text::share(&found, look)))?;
    Ok(Exit::Ok)
}

fn row(share: Share, groups: &[Sockets]) -> ShareRow {
    let numbers = [share.receive, share.out_of_order, share.transmit, share.unacknowledged];
    ShareRow {
        sockets: groups[share.group].text.clone(),
        count: share.count,
        of: groups[share.group].count,
        numbers: numbers.map(|number| (number.buffers, number.reason)),
        rate: share.rate,
        held: share.held,
        latency: share.latency,
    }
}

fn stop(shares: &Shares) -> (&'static str, String) {
    match shares.stop {
        Stop::Pool => {
            ("pool", "the pool ends here: a larger BUFFER_POOL_SIZE or a smaller --reserve gives more".to_owned())
        }
        Stop::Plateau => {
            ("plateau", "no bulk socket gains 0.1 % by another buffer: what is left over stays free".to_owned())
        }
        Stop::Device => {
            let text = format!("the device and its link move {} at most: further buffers gain nothing", shares.ceiling);
            ("device", text)
        }
        Stop::Wait => {
            ("wait", "--max-wait ends here: more packets would make interactive messages wait longer".to_owned())
        }
    }
}

fn notes(groups: &[Sockets]) -> Vec<String> {
    let mut notes = vec![
        "a prediction: each socket is simulated alone on the device, and waits for the acknowledgements of one set of \
         buffers before it writes the next; together they reach no more than the device moves. Nothing was measured"
            .to_owned(),
        "the default time per packet is that of a published module (scenario netburner-lan); another device is faster or \
         slower: measure it and give --per-packet"
            .to_owned(),
        "the buffers go packet by packet to the socket that gains most; a packet more never gains more than the one before \
         it, so by this model no other way to hand them out reaches more (a gain below 0.1 % is not worth a buffer)"
            .to_owned(),
    ];
    if groups.iter().any(|group| group.kind == Kind::Interactive && group.rate.is_none()) {
        notes.push("interactive sockets without a rate have the link's, and without a round-trip time 1 ms".to_owned());
    }
    notes.push(
        "call them on each socket after connect() or accept(); headers of 2009 call SetSocketUnackBuffers \
         setsocketackbuffers"
            .to_owned(),
    );
    notes.push(
        "a peer that vanishes keeps its buffers: close dead sockets, with TcpSendKeepAlive and TcpGetLastRxTime to find \
         them; GetFreeCount() shows what is left of the pool"
            .to_owned(),
    );
    notes
}
