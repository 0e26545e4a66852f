//! How much a write takes where an application has set the size of its send buffer: Linux's count of data and of what
//! each packet takes besides (`sk_wmem_queued`), looked at before each packet is begun.

use fullpipe_tcp::socket::Info;

/// What a packet takes besides its data: its head, and the structure that tells of it.
const HEAD: u32 = 1_280;

/// What counts of a connection's buffer.
fn queued(info: &Info) -> u32 {
    let goal = info.size_goal();
    let packets = info.outstanding.div_ceil(goal) + info.unsent.div_ceil(goal);
    info.outstanding + info.unsent + packets * HEAD
}

/// A part of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) len: usize,
    /// Whether what is written so far is to leave.
    pub(crate) push: bool,
}

/// What a write of `rest` bytes takes next of `space`, when `unpushed` bytes were written since the last push; `None`
/// where nothing fits.
pub(crate) fn next(info: &Info, space: u32, rest: usize, unpushed: u32) -> Option<Part> {
    let goal = info.size_goal();
    let tail = info.unsent % goal;
    let before = queued(info);
    if tail == 0 && before >= space {
        return None;
    }
    let len = rest.min((goal - tail) as usize);
    let is_end = len == rest || before + len as u32 + if tail == 0 { HEAD } else { 0 } >= space;
    Some(Part { len, push: is_end || unpushed + len as u32 > info.max_wnd / 2 })
}

/// Whether there is room again for who found none: a third of the buffer.
pub(crate) fn is_open(info: &Info, space: u32) -> bool {
    let queued = queued(info);
    space.saturating_sub(queued) >= queued / 2
}
