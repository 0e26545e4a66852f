//! `fullpipe share`.

use fullpipe_report::{PoolShares, ShareRow, json, text};
use fullpipe_sim::share::{BUFFER, Device, Kind, Share, Sockets, notes, parse_sockets, share};

use super::{Ended, printed};
use crate::{args::ShareArgs, exit::Exit, output::Output};

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
        stop: shares.stop_words(),
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
