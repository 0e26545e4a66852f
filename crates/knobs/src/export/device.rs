//! NetBurner devices: a C header with the calls; and the same sizes as options of lwIP.

use super::{
    Before, Draft, ExportError, Item,
    quote::{C, Language, Unfit, one_line},
    registry::line,
};
use crate::Address;

const HEADER: &str = "fullpipe_netburner.h";
const LWIP: &str = "fullpipe_lwipopts.h";
/// Payload of a full packet on Ethernet, as the planner counts it.
const SEGMENT: u64 = 1460;
/// lwIP's own default for PBUF_POOL_SIZE, which stays for everything else that is received.
const POOL_FOR_THE_REST: u64 = 16;

pub(super) fn write(draft: &mut Draft<'_>) -> Result<(), ExportError> {
    let items = draft.items.clone();
    let mut made = Vec::new();
    let mut set = String::new();
    for item in &items {
        match (item.knob(), item.to()) {
            (Address::Named { kind, name }, Some(to)) if kind == "call" => {
                line(
                    &mut set,
                    format_args!("    /* {} */\n    {}", C::comment(&item.change.reason), call(item, name, to)?),
                );
                made.push(item);
            }
            (Address::Named { kind, name }, Some(to)) if kind == "build" => {
                let why = format!(
                    "it is fixed when the library is built: define {} as {} in constants.h and build the library and the application again",
                    one_line(name),
                    one_line(to)
                );
                draft.leave_out(item.knob(), &why);
            }
            _ => draft.leave_out(item.knob(), "it is no call of the device's library"),
        }
    }
    if made.is_empty() {
        return Ok(());
    }
    let platform = C::comment(&draft.platform.to_string());
    let mut text = format!(
        "/* Written by fullpipe for {platform}.\n * Call fullpipe_tune(fd) on each socket, after connect() or accept().\n * The numbers belong to the socket: without the call a socket has the library's own. */\n#ifndef FULLPIPE_NETBURNER_H\n#define FULLPIPE_NETBURNER_H\n\n#include <tcp.h>\n\nstatic void fullpipe_tune(int fd)\n{{\n{set}}}\n"
    );
    text.push_str(&undo(&made)?);
    text.push_str("\n#endif\n");
    draft.windows_file(HEADER, "the calls for a socket, as a C function", &text, super::Encoding::Plain);
    draft.step(
        "Include fullpipe_netburner.h, call fullpipe_tune(fd) on each socket after connect() or accept(), build, load.",
    );
    draft.step("To undo: take the call out, build, load. Open sockets keep what they have until they are closed.");
    lwip(draft, &made)
}

fn call(item: &Item<'_>, name: &str, to: &str) -> Result<String, ExportError> {
    let word = |text: &str| C::literal(text).map_err(item.unfit(text, HEADER));
    // A flag: `setsockoption SO_NONAGLE`, which is taken back by clrsockoption.
    if let Some(flag) = name.strip_prefix("setsockoption ") {
        let function = if matches!(to, "0" | "off") { "clrsockoption" } else { "setsockoption" };
        return Ok(format!("{function}(fd, {});", word(flag)?));
    }
    let number = to.trim();
    if !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(item.unfit(to, HEADER)(Unfit("a number of buffers is a decimal number")));
    }
    Ok(format!("{}(fd, {});", word(name)?, word(number)?))
}

/// A second function, where all earlier numbers are known.
fn undo(made: &[&Item<'_>]) -> Result<String, ExportError> {
    let mut lines = String::new();
    for item in made.iter().rev() {
        let (Address::Named { name, .. }, Before::Value(before)) = (item.knob(), &item.before) else {
            return Ok(String::new());
        };
        line(&mut lines, format_args!("    {}", call(item, name, before)?));
    }
    Ok(format!("\n/* The numbers that the sockets had before. */\nstatic void fullpipe_undo(int fd)\n{{\n{lines}}}\n"))
}

/// The same numbers for a device with lwIP: there they are fixed at build time.
fn lwip(draft: &mut Draft<'_>, made: &[&Item<'_>]) -> Result<(), ExportError> {
    let packets = |wanted: &str| {
        let found = made.iter().find(|item| matches!(item.knob(), Address::Named { name, .. } if name == wanted))?;
        found.to()?.trim().parse::<u64>().ok()
    };
    let (Some(receive), Some(send)) = (packets("SetSocketRxBuffers"), packets("SetSocketTxBuffers")) else {
        return Ok(());
    };
    // lwIP's init.c refuses a send buffer below two segments.
    let (receive, send) = (receive.max(1), send.max(2));
    if receive.max(send).saturating_mul(SEGMENT) > 65_535 {
        return Ok(());
    }
    let pool = receive + POOL_FOR_THE_REST;
    let text = format!(
        "/* Written by fullpipe: the same sizes for a device with lwIP.\n * Include it at the end of lwipopts.h. To undo, take the #include out and build again. */\n#ifndef FULLPIPE_LWIPOPTS_H\n#define FULLPIPE_LWIPOPTS_H\n\n#undef TCP_MSS\n#define TCP_MSS {SEGMENT}\n/* {receive} segments: below 65,536 bytes, so no window scaling is needed. */\n#undef TCP_WND\n#define TCP_WND ({receive} * TCP_MSS)\n#undef TCP_SND_BUF\n#define TCP_SND_BUF ({send} * TCP_MSS)\n/* lwIP's own formula for the default. */\n#undef TCP_SND_QUEUELEN\n#define TCP_SND_QUEUELEN ((4 * (TCP_SND_BUF) + (TCP_MSS - 1)) / (TCP_MSS))\n/* init.c refuses less than one queue; each connection that sends at once needs one. */\n#undef MEMP_NUM_TCP_SEG\n#define MEMP_NUM_TCP_SEG TCP_SND_QUEUELEN\n/* The window of one connection, and lwIP's default for the rest. */\n#undef PBUF_POOL_SIZE\n#define PBUF_POOL_SIZE {pool}\n\n#endif\n"
    );
    draft.windows_file(
        LWIP,
        "the same sizes as options of lwIP, for a device that has lwIP instead",
        &text,
        super::Encoding::Plain,
    );
    draft.step("For a device with lwIP use fullpipe_lwipopts.h instead: include it at the end of lwipopts.h and build. Sizes are for one busy connection; more need more MEMP_NUM_TCP_SEG and PBUF_POOL_SIZE.");
    Ok(())
}
