//! `fullpipe agent`, and the same beside `serve`.

use std::{
    io::{self, Write},
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use fullpipe_report::json;
use fullpipe_watch::{Filter, Meter, Sort, Watcher};
use fullpipe_web::Metrics;

#[cfg(feature = "otlp")]
mod otlp;

use super::{Ended, watch, web};
use crate::{
    args::{AgentArgs, MeterArgs},
    exit::Exit,
    failure::Failure,
    interrupt,
    output::{self, Output},
};

/// Where it listens unless another address is given.
const PORT: u16 = 7071;

pub(super) fn run(args: &AgentArgs, output: Output) -> Ended {
    #[cfg(feature = "otlp")]
    let otlp = args.otlp.as_deref().map(|url| otlp::Otlp::new(url, args.otlp_interval)).transpose()?;
    let agent = Agent::new(&args.listen, &args.meter)?;
    #[cfg(feature = "otlp")]
    if let Some(otlp) = &otlp {
        output.remark(&format!("pushing to {} every {} s\n", otlp.push.url(), otlp.interval.as_secs_f64()));
    }
    #[cfg(feature = "otlp")]
    let agent = Agent { otlp, ..agent };
    let stop = interrupt::stop_flag()?;
    let address = agent.metrics.address();
    let printed = if output.is_json() {
        let document = json::listening("agent", &output::now(), address, Some(&link(address)));
        io::stdout().lock().write_all(json::to_line(&document).as_bytes())
    } else {
        writeln!(io::stdout().lock(), "metrics at {}", link(address))
    };
    // Whoever closed standard output does not want to know, and serving goes on.
    drop(printed);
    watch::put_remarks(&agent.watcher, output);
    agent.work(&stop).map(|()| Exit::Ok)
}

/// Where the figures are.
pub(super) fn link(address: SocketAddr) -> String {
    format!("http://{address}/metrics")
}

/// What watches, and where it tells of it.
pub(super) struct Agent {
    pub(super) metrics: Metrics,
    watcher: Watcher,
    meter: Meter,
    #[cfg(feature = "otlp")]
    otlp: Option<otlp::Otlp>,
}

impl Agent {
    /// Listens and takes the first look.
    pub(super) fn new(listen: &str, args: &MeterArgs) -> Result<Self, Failure> {
        let address = web::address(listen, PORT)?;
        let destinations = args.destinations().map_err(|text| Failure::new(Exit::Usage, &text))?;
        let mut watcher = Watcher::new(args.interval, Filter::default(), Sort::default(), 0)?;
        if args.events {
            watcher.follow_ends();
        }
        let metrics = Metrics::listen(address)?;
        Ok(Self {
            metrics,
            watcher,
            meter: Meter::new(destinations),
            #[cfg(feature = "otlp")]
            otlp: None,
        })
    }

    /// Counts and answers until `stop` is set.
    pub(super) fn work(self, stop: &AtomicBool) -> Result<(), Failure> {
        #[cfg(feature = "otlp")]
        let otlp = self.otlp;
        let (metrics, mut watcher, mut meter) = (self.metrics, self.watcher, self.meter);
        let exposition = meter.exposition();
        // One that fails ends the other.
        let ended = AtomicBool::new(false);
        let is_over = || stop.load(Ordering::Relaxed) || ended.load(Ordering::Relaxed);
        thread::scope(|scope| {
            let watching = scope.spawn(|| {
                let mut watched = Ok(true);
                while matches!(watched, Ok(true)) {
                    watched = watcher.next_metered(&is_over, &mut meter);
                }
                ended.store(true, Ordering::Relaxed);
                watched.map(drop).map_err(Failure::from)
            });
            #[cfg(feature = "otlp")]
            if let Some(otlp) = &otlp {
                let exposition = exposition.clone();
                let ended = &ended;
                scope.spawn(move || {
                    if let Err(error) = otlp.push.run(|| otlp.body(&exposition), ended) {
                        tracing::warn!("no metrics are pushed: {error}");
                    }
                });
            }
            let served = metrics.serve(move || exposition.text(), &ended);
            ended.store(true, Ordering::Relaxed);
            match watching.join() {
                Ok(watched) => watched.and_then(|()| served.map_err(Failure::from)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}
