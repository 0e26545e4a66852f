//! The root queueing discipline of an interface, by its kind.
//!
//! A discipline that the kernel attached by itself has handle 0; what we attach carries [`OUR_QDISC_MAJOR`], so that we
//! know our own again. Anything else was configured by somebody, with parameters that a kind alone can't restore, and
//! is never replaced. What is *not* here: classes, filters and parameters.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::{
    RouteNetlinkMessage,
    tc::{TcAttribute, TcHandle, TcMessage},
};

use super::{LinkNumber, NetError, Netlink, socket::Asking};

/// The major number of the handle of each discipline that we attach.
pub const OUR_QDISC_MAJOR: u16 = 0xf011;

/// The root queueing discipline of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootQdisc {
    /// `fq`, `fq_codel`, `pfifo_fast`, `noqueue`, ...
    pub kind: String,
    /// The major number of its handle: 0 for the kernel's own choice.
    pub major: u16,
}

impl Netlink {
    /// The root discipline; `None` where the interface has none (it is down, or never had one).
    pub fn root_qdisc(&mut self, link: LinkNumber) -> Result<Option<RootQdisc>, NetError> {
        let asking = Asking { operation: "list", object: "the queueing disciplines" };
        let answers = self.dump(asking, RouteNetlinkMessage::GetQueueDiscipline(message(link)))?;
        Ok(answers.into_iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewQueueDiscipline(message)
                if message.header.parent == TcHandle::ROOT && message.header.index == signed(link) =>
            {
                let major = message.header.handle.major;
                message.attributes.into_iter().find_map(|attribute| match attribute {
                    TcAttribute::Kind(kind) => Some(RootQdisc { kind, major }),
                    _ => None,
                })
            }
            _ => None,
        }))
    }

    /// Puts a discipline of this kind, with the kernel's default parameters, at the root; `None` goes back to the
    /// kernel's own choice. Where the kind is what the kernel would choose, its own choice is what is left in force.
    pub fn set_root_qdisc(&mut self, device: &str, kind: Option<&str>) -> Result<(), NetError> {
        let link = self.link(device)?.number;
        let present = self.root_qdisc(link)?;
        if kind.is_some() && present.as_ref().map(|qdisc| qdisc.kind.as_str()) == kind {
            return Ok(());
        }
        match present.map(|qdisc| (qdisc.major, qdisc.kind)) {
            Some((0, _)) | None => {}
            Some((OUR_QDISC_MAJOR, _)) => self.delete_root(device, link)?,
            Some((handle, kind)) => {
                return Err(NetError::ForeignQdisc { device: device.to_owned(), kind, handle });
            }
        }
        let Some(kind) = kind else { return Ok(()) };
        if self.root_qdisc(link)?.is_some_and(|qdisc| qdisc.kind == kind) {
            return Ok(());
        }
        let mut add = message(link);
        add.header.parent = TcHandle::ROOT;
        add.header.handle = TcHandle { major: OUR_QDISC_MAJOR, minor: 0 };
        add.attributes.push(TcAttribute::Kind(kind.to_owned()));
        let object = format!("queueing discipline {kind} to link {device}");
        self.request(
            Asking { operation: "attach", object: &object },
            NLM_F_CREATE | NLM_F_REPLACE,
            RouteNetlinkMessage::NewQueueDiscipline(add),
        )
    }

    fn delete_root(&mut self, device: &str, link: LinkNumber) -> Result<(), NetError> {
        let mut delete = message(link);
        delete.header.parent = TcHandle::ROOT;
        let object = format!("the queueing discipline of link {device}");
        self.request(
            Asking { operation: "remove", object: &object },
            0,
            RouteNetlinkMessage::DelQueueDiscipline(delete),
        )
    }
}

fn message(link: LinkNumber) -> TcMessage {
    TcMessage::with_index(signed(link))
}

/// Queueing disciplines have the interface's number as a signed one.
fn signed(link: LinkNumber) -> i32 {
    link.0.cast_signed()
}
