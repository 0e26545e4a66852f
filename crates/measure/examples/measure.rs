//! A live test by hand: `measure serve [ADDR]`, or `measure run HOST[:PORT] [KEY=VALUE ..]`, which prints the
//! measurement as JSON.
//!
//! Keys: `dir=up|down|both`, `time=5` (seconds), `bytes=4MB`, `streams=4`, `omit=1`, `block=128k`, `copy=1`,
//! `cc=cubic`, `sndbuf=64k`, `rcvbuf=64k`, `mtu=1` (probes the path MTU first), `brief=1` (leaves the samples out).

use std::{
    env,
    error::Error,
    io::Write,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use fullpipe_measure::{
    Client, Length, Measurement, Progress, Server, ServerEvent, ServerOptions, Target, TestDirection, TestSpec,
};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve"] => serve("[::]:5201"),
        ["serve", address] => serve(address),
        ["run", target, options @ ..] => run(target, options),
        _ => Err("usage: measure serve [ADDR] | measure run HOST[:PORT] [KEY=VALUE ..]".into()),
    }
}

fn serve(address: &str) -> Result<(), Box<dyn Error>> {
    let log = Arc::new(|event: &ServerEvent| eprintln!("{}: {event}", event.level));
    let server = Server::bind(address.parse()?, ServerOptions { log: Some(log), ..ServerOptions::default() }, None)?;
    println!("listening on {}", server.local_addr());
    std::io::stdout().flush()?;
    Ok(server.run(&AtomicBool::new(false))?)
}

fn run(target: &str, options: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut spec = TestSpec { length: Length::Time(Duration::from_secs(5)), ..TestSpec::default() };
    let (mut mtu, mut brief) = (false, false);
    for option in options {
        let (key, value) = option.split_once('=').ok_or("an option is KEY=VALUE")?;
        match key {
            "dir" => {
                spec.direction = match value {
                    "up" => TestDirection::Up,
                    "down" => TestDirection::Down,
                    "both" => TestDirection::Both,
                    _ => return Err("dir is up, down or both".into()),
                }
            }
            "time" => spec.length = Length::Time(Duration::from_secs_f64(value.parse()?)),
            "bytes" => spec.length = Length::Bytes(value.parse()?),
            "streams" => spec.streams = value.parse()?,
            "omit" => spec.omit = Duration::from_secs_f64(value.parse()?),
            "block" => spec.block = value.parse()?,
            "copy" => spec.copy = value == "1",
            "cc" => spec.congestion_control = Some(value.to_owned()),
            "sndbuf" => spec.send_buffer = Some(value.parse()?),
            "rcvbuf" => spec.receive_buffer = Some(value.parse()?),
            "mtu" => mtu = value == "1",
            "brief" => brief = value == "1",
            _ => return Err(format!("no option `{key}`").into()),
        }
    }
    let mut client = Client::connect(&target.parse::<Target>()?)?;
    eprintln!("{:?}", client.hello());
    if mtu {
        eprintln!("{:?}", client.probe_mtu()?);
    }
    let never = AtomicBool::new(false);
    let mut measurement = client.run(&spec, &never, &mut |progress| show(&progress))?;
    client.bye();
    if brief {
        leave_samples_out(&mut measurement);
    }
    println!("{}", serde_json::to_string_pretty(&measurement)?);
    Ok(())
}

fn show(progress: &Progress) {
    let rate = |rate: Option<fullpipe_units::Rate>| rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
    let (up, down) = (rate(progress.up_bps), rate(progress.down_bps));
    let rtt = progress.rtt_us.map_or_else(|| "-".to_owned(), |rtt| rtt.to_string());
    eprintln!("{:?} {:.1} s: up {up}, down {down}, rtt {rtt}", progress.phase, progress.elapsed.as_secs_f64());
}

fn leave_samples_out(measurement: &mut Measurement) {
    for transfer in measurement.directions.iter_mut().flat_map(|direction| &mut direction.transfers) {
        transfer.sender_samples.clear();
        transfer.receiver_samples.clear();
    }
}
