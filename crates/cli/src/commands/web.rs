//! `fullpipe web`.

use std::{
    env,
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use fullpipe_host::journal;
use fullpipe_report::json;
use fullpipe_web::{Gate, Options};

use super::{Ended, what_if};
use crate::{
    args::WebArgs,
    exit::Exit,
    failure::Failure,
    interrupt,
    output::{self, Output},
    page,
};

/// Where it listens unless another address is given.
const PORT: u16 = 7070;

pub(super) fn run(args: &WebArgs, output: Output) -> Ended {
    let address = address(&args.listen, PORT)?;
    let folder = match &args.dir {
        Some(folder) => folder.clone(),
        None => journal::state_dir()?.join("reports"),
    };
    let gate = Gate::new(args.token || !address.ip().is_loopback(), args.name.clone())
        .map_err(|error| Failure::system("making a token", &error))?;
    let query = gate.query();
    let options = Options {
        address,
        gate,
        program: env::current_exe().map_err(|error| Failure::system("finding this program", &error))?,
        folder,
        what_if: what_if::page::usual(),
        largest: args.largest.get(),
    };
    let stop = interrupt::stop_flag()?;
    let ready = |address: SocketAddr| {
        let link = format!("http://{address}/{query}");
        ready(output, address, &link);
        if args.open && !page::open(link.as_ref()) {
            output.warning(&format!("no browser could be started: open {link}\n"));
        }
    };
    fullpipe_web::serve(options, &stop, ready)?;
    Ok(Exit::Ok)
}

/// Tells where to look; the link has the token where one is wanted.
fn ready(output: Output, address: SocketAddr, link: &str) {
    let printed = if output.is_json() {
        let document = json::listening("web", &output::now(), address, Some(link));
        io::stdout().lock().write_all(json::to_line(&document).as_bytes())
    } else {
        writeln!(io::stdout().lock(), "open {link}")
    };
    // Whoever closed standard output does not want to know, and serving goes on.
    drop(printed);
    output.remark("Ctrl-C ends it\n");
}

/// `127.0.0.1:7070`, `[::1]:7070`, `7070`; `usual` is the port of examples.
pub(super) fn address(text: &str, usual: u16) -> Result<SocketAddr, Failure> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>().ok();
    let local = port.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    text.parse().ok().or(local).ok_or_else(|| {
        let text = fullpipe_report::clean(text);
        let words = format!(
            "`{text}` is no address to listen on; give 127.0.0.1:{usual}, [::1]:{usual}, or a port of this machine alone"
        );
        Failure::new(Exit::Usage, &words)
    })
}
