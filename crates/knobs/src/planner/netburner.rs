//! NetBurner devices: packet buffers of each socket, out of one small pool.

use fullpipe_units::{Bytes, window_limited_rate};

use super::{
    PlatformRequest,
    platform::{Ask, Draft},
};
use crate::Address;

/// A full packet: 43 of them stay below a window of 65,535 B, and the stack is not known to scale windows.
const PACKET: u64 = 1500;
const MOST: u64 = 65_535 / PACKET;
/// Memory of one buffer of the pool.
const BUFFER: u64 = 1712;
/// The smaller of the documented pool sizes (128 in the 3.5.0 documents, 256 in the header of 2009).
const POOL: u64 = 128;

pub(super) fn plan(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    let (window, arithmetic) = draft.pipe.window(request.goal);
    // Its buffers hold no jumbo frame.
    let segment = draft.segment.min(PACKET - 40);
    let wanted = window.get().div_ceil(segment).max(1);
    let pool = request.memory_bound.map_or(POOL, |bound| bound.get() / BUFFER);
    // Received and sent packets both wait in buffers of the pool, of which a quarter stays for everything else.
    let each = pool * 3 / 4 / 2 / draft.connections;
    if each == 0 {
        draft.note(format!(
            "{} connections leave less than one buffer each of {pool}: nothing is to be set",
            draft.connections
        ));
        return;
    }
    let packets = wanted.min(MOST).min(each);
    let reached = window_limited_rate(Bytes::new(packets * segment), request.rtt);
    let reached = reached.map_or_else(String::new, |rate| format!(" = {rate} at most"));
    if wanted > MOST {
        draft.note(format!(
            "{wanted} packets would be needed, but a window ends at 65,535 B = {MOST} packets of {PACKET} B: {packets} x {segment} B per round trip{reached}"
        ));
    }
    if each < wanted.min(MOST) {
        draft.note(format!(
            "the pool has {pool} buffers for everything on the device; with {} connections {packets} each is what leaves a quarter of them free (BUFFER_POOL_SIZE makes more, GetFreeCount() shows what is left)",
            draft.connections
        ));
    }
    let memory = Bytes::new(packets * BUFFER * draft.connections);
    for (function, what) in [
        ("SetSocketRxBuffers", "what the device can receive in one round trip"),
        ("SetSocketTxBuffers", "what the device can have ready to send"),
        ("setsocketackbuffers", "what the device may have sent and not yet acknowledged"),
    ] {
        draft.ask(Ask {
            knob: Address::Named { kind: "call".to_owned(), name: function.to_owned() },
            to: Some(packets.to_string()),
            reason: format!("the number of buffers bounds {what}"),
            arithmetic: format!(
                "{arithmetic} / {segment} = {wanted} packets; {packets} x {segment} x 8 / {}{reached}",
                request.rtt
            ),
            // Unacknowledged packets are the sent ones: they take no more memory.
            memory: Some(memory).filter(|_| function != "setsocketackbuffers"),
        });
    }
    draft.note("call them on each socket after connect() or accept(); on a LAN the device itself is the limit from about 20 buffers on".to_owned());
    draft.note("give out-of-order buffers one less than receive buffers, where the library has SetOutOfOrderBuffers (not found in any public header)".to_owned());
    draft.note("a peer that vanishes keeps its buffers: close dead sockets, with TcpSendKeepAlive and TcpGetLastRxTime to find them".to_owned());
}
