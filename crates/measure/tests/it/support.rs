//! A server on a port of its own, stopped when it is dropped, and shorthands.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use fullpipe_measure::{
    Client, ClientOptions, Length, MeasureError, Measurement, RequestHandler, Server, ServerEvent, ServerOptions,
    Target, TestSpec,
};
use tracing::Level;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    lines: Arc<Mutex<Vec<(Level, String)>>>,
}

impl Running {
    pub(crate) fn start() -> Self {
        Self::with(quick_server(), None)
    }

    pub(crate) fn with(options: ServerOptions, handler: Option<Arc<dyn RequestHandler>>) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), options, handler)
    }

    pub(crate) fn at(address: SocketAddr, options: ServerOptions, handler: Option<Arc<dyn RequestHandler>>) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&lines);
        let log = Arc::new(move |event: &ServerEvent| written.lock().unwrap().push((event.level, event.to_string())));
        let options = ServerOptions { log: Some(log), ..options };
        let server = Server::bind(address, options, handler).unwrap();
        let address = server.local_addr();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = Some(thread::spawn(move || server.run(&seen).unwrap()));
        Self { address, stop, thread, lines }
    }

    pub(crate) fn target(&self) -> Target {
        target(self.address)
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.lines.lock().unwrap().iter().map(|(_, line)| line.clone()).collect()
    }

    /// The lines of the log that are no news of what is as it should be.
    pub(crate) fn problems(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|(level, _)| *level <= Level::WARN).map(|(_, line)| line.clone()).collect()
    }

    /// Waits until it has ended by itself; the test's own time-out is far longer.
    pub(crate) fn wait_for_end(&self) -> bool {
        (0..2_000).any(|_| {
            thread::sleep(Duration::from_millis(10));
            self.thread.as_ref().unwrap().is_finished()
        })
    }

    /// Waits until a line of the log satisfies the test; the test's own time-out is far longer than any deadline here.
    pub(crate) fn wait_for_line(&self, wanted: impl Fn(&str) -> bool) {
        for _ in 0..2_000 {
            if self.log().iter().any(|line| wanted(line)) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("no such line in {:#?}", self.log());
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        self.thread.take().unwrap().join().unwrap();
    }
}

pub(crate) fn target(address: SocketAddr) -> Target {
    address.to_string().parse().unwrap()
}

/// Short deadlines, so that tests of silence are quick, but long enough for a busy machine to answer within them.
pub(crate) fn quick() -> ClientOptions {
    ClientOptions {
        connect: Duration::from_secs(2),
        answer: Duration::from_millis(1_500),
        stall: Duration::from_millis(500),
        ..ClientOptions::default()
    }
}

pub(crate) fn quick_server() -> ServerOptions {
    ServerOptions { answer: Duration::from_millis(1_500), stall: Duration::from_secs(2), ..ServerOptions::default() }
}

/// CUBIC, because the default of the machine may be one whose timers make loopback jump.
pub(crate) fn short() -> TestSpec {
    TestSpec {
        length: Length::Time(Duration::from_millis(300)),
        congestion_control: Some("cubic".to_owned()),
        pings: 3,
        ..TestSpec::default()
    }
}

/// The middle of some figures.
#[cfg(target_os = "linux")]
pub(crate) fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = figures.collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

pub(crate) fn run(server: &Running, spec: &TestSpec) -> Result<Measurement, MeasureError> {
    let mut client = Client::connect(&server.target())?;
    let measurement = client.run(spec, &AtomicBool::new(false), &mut |_| ());
    client.bye();
    measurement
}

/// A server that does what the closure says with each connection that comes.
pub(crate) fn fake_server(behaviour: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let behaviour = Arc::new(behaviour);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let behaviour = Arc::clone(&behaviour);
            thread::spawn(move || behaviour(stream));
        }
    });
    address
}
