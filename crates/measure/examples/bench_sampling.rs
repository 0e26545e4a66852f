//! What reading `TCP_INFO` costs: tests over loopback with and without it, in turn. `bench_sampling [ROUNDS]`.

use std::{
    env,
    error::Error,
    sync::{Arc, atomic::AtomicBool},
    thread,
    time::Duration,
};

use fullpipe_measure::{Client, Length, Server, ServerOptions, Target, TestSpec};
use fullpipe_units::Rate;

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: usize = env::args().nth(1).map_or(Ok(10), |text| text.parse())?;
    let server = Server::bind("127.0.0.1:0".parse()?, ServerOptions::default(), None)?;
    let target: Target = server.local_addr().to_string().parse()?;
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    thread::spawn(move || server.run(&seen));
    for streams in [1, 4] {
        let mut ratios = Vec::new();
        let mut fastest = Rate::from_bps(0);
        for round in 0..rounds {
            // Which one comes first changes, so that whatever drifts meets both.
            let mut rates = [0.0; 2];
            for turn in [round % 2, (round + 1) % 2] {
                let spec = TestSpec {
                    streams,
                    sampling: turn == 0,
                    length: Length::Time(Duration::from_secs(1)),
                    congestion_control: Some("cubic".to_owned()),
                    pings: 0,
                    ..TestSpec::default()
                };
                let mut client = Client::connect(&target)?;
                let measurement = client.run(&spec, &AtomicBool::new(false), &mut |_| ())?;
                client.bye();
                let rate = measurement.directions.first().and_then(|d| d.steady_bps.or(d.rate_bps));
                let rate = rate.ok_or("nothing was measured")?;
                fastest = fastest.max(rate);
                if let Some(place) = rates.get_mut(turn) {
                    *place = rate.bps() as f64;
                }
            }
            ratios.push(rates[0] / rates[1]);
        }
        ratios.sort_by(f64::total_cmp);
        let at = |share: usize| ratios.get(ratios.len() * share / 4).copied().unwrap_or_default();
        println!(
            "sampling, {streams} streams: {:.3} of the throughput without it (quartiles {:.3} to {:.3}; up to {fastest})",
            at(2),
            at(1),
            at(3)
        );
    }
    Ok(())
}
