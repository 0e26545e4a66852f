//! One netlink socket: a request and its acknowledgement, or a dump.

use std::{fmt::Debug, io};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_ALIGNTO,
    NetlinkDeserializable, NetlinkMessage, NetlinkPayload, NetlinkSerializable, NlasIterator,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols};

use super::NetError;

/// How often a dump is repeated when the table changes under it (`NLM_F_DUMP_INTR`).
const DUMP_ATTEMPTS: u32 = 10;
/// `NLMSGERR_ATTR_MSG`: the text of an extended acknowledgement.
const NLMSGERR_ATTR_MSG: u16 = 1;
/// A netlink header, which precedes everything.
const HEADER: usize = 16;

/// A connection with the kernel's routing tables of one network namespace.
pub struct Netlink {
    channel: Channel,
}

/// What is being asked, for errors.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) operation: &'static str,
    pub(crate) object: &'a str,
}

impl Netlink {
    /// Connects in the calling thread's present network namespace, and stays there.
    pub fn open() -> Result<Self, NetError> {
        Ok(Self { channel: Channel::open(protocols::NETLINK_ROUTE)? })
    }

    pub(super) fn request(
        &mut self,
        asking: Asking<'_>,
        flags: u16,
        message: RouteNetlinkMessage,
    ) -> Result<(), NetError> {
        self.channel.exchange(asking, flags | NLM_F_ACK, message).map(drop)
    }

    pub(super) fn dump(
        &mut self,
        asking: Asking<'_>,
        message: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>, NetError> {
        self.channel.dump(asking, message)
    }
}

/// A netlink socket of any protocol.
pub(crate) struct Channel {
    socket: Socket,
    sequence: u32,
}

/// One round: the answers, and whether the table changed meanwhile.
struct Round<M> {
    answers: Vec<M>,
    interrupted: bool,
}

impl Channel {
    pub(crate) fn open(protocol: isize) -> Result<Self, NetError> {
        let failed = |source| NetError::Socket { operation: "open", source };
        let mut socket = Socket::new(protocol).map_err(failed)?;
        socket.bind_auto().map_err(failed)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(failed)?;
        socket.set_ext_ack(true).map_err(failed)?;
        socket.set_cap_ack(true).map_err(failed)?;
        Ok(Self { socket, sequence: 0 })
    }

    pub(crate) fn dump<M>(&mut self, asking: Asking<'_>, message: M) -> Result<Vec<M>, NetError>
    where
        M: NetlinkSerializable + NetlinkDeserializable + Clone + Debug,
    {
        for _ in 0..DUMP_ATTEMPTS {
            let round = self.round(asking, NLM_F_DUMP, message.clone())?;
            if !round.interrupted {
                return Ok(round.answers);
            }
        }
        Err(NetError::Unsteady {
            operation: asking.operation,
            object: asking.object.to_owned(),
            attempts: DUMP_ATTEMPTS,
        })
    }

    pub(crate) fn exchange<M>(&mut self, asking: Asking<'_>, flags: u16, message: M) -> Result<Vec<M>, NetError>
    where
        M: NetlinkSerializable + NetlinkDeserializable + Debug,
    {
        Ok(self.round(asking, flags, message)?.answers)
    }

    fn round<M>(&mut self, asking: Asking<'_>, flags: u16, message: M) -> Result<Round<M>, NetError>
    where
        M: NetlinkSerializable + NetlinkDeserializable + Debug,
    {
        self.sequence = self.sequence.wrapping_add(1);
        let mut packet = NetlinkMessage::new(Default::default(), NetlinkPayload::InnerMessage(message));
        packet.header.flags = NLM_F_REQUEST | flags;
        packet.header.sequence_number = self.sequence;
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(|source| NetError::Socket { operation: "send to", source })?;
        let mut round = Round { answers: Vec::new(), interrupted: false };
        loop {
            let (datagram, _) = self
                .socket
                .recv_from_full()
                .map_err(|source| NetError::Socket { operation: "receive from", source })?;
            if self.take(asking, &datagram, &mut round)? {
                return Ok(round);
            }
        }
    }

    /// Adds what one datagram holds; true when the kernel has said its last word.
    fn take<M>(&self, asking: Asking<'_>, datagram: &[u8], round: &mut Round<M>) -> Result<bool, NetError>
    where
        M: NetlinkDeserializable,
    {
        let mut rest = datagram;
        while rest.len() >= HEADER {
            let answer = NetlinkMessage::<M>::deserialize(rest).map_err(|source| NetError::Answer {
                operation: asking.operation,
                object: asking.object.to_owned(),
                source,
            })?;
            let length = usize::try_from(answer.header.length).unwrap_or(usize::MAX);
            let flags = answer.header.flags;
            // Left over from a request that was given up after an error.
            if answer.header.sequence_number == self.sequence {
                round.interrupted |= flags & NLM_F_DUMP_INTR != 0;
                match answer.payload {
                    NetlinkPayload::InnerMessage(inner) => round.answers.push(inner),
                    NetlinkPayload::Done(_) => return Ok(true),
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok(true),
                    NetlinkPayload::Error(error) => {
                        return Err(NetError::Refused {
                            operation: asking.operation,
                            object: asking.object.to_owned(),
                            source: error.to_io(),
                            reason: kernel_reason(flags, &error.header),
                        });
                    }
                    NetlinkPayload::Overrun(_) => {
                        return Err(NetError::Socket {
                            operation: "receive from",
                            source: io::Error::from_raw_os_error(libc::ENOBUFS),
                        });
                    }
                    _ => {}
                }
            }
            rest = rest.get(length.next_multiple_of(usize::from(NLMSG_ALIGNTO))..).unwrap_or_default();
        }
        Ok(false)
    }
}

/// The text of the extended acknowledgement, which follows the echoed request.
fn kernel_reason(flags: u16, echoed: &[u8]) -> Option<String> {
    if flags & NLM_F_ACK_TLVS == 0 {
        return None;
    }
    let request = if flags & NLM_F_CAPPED != 0 {
        HEADER
    } else {
        usize::try_from(u32::from_ne_bytes(echoed.get(..4)?.try_into().ok()?)).ok()?.next_multiple_of(4)
    };
    let attributes = echoed.get(request..)?;
    for attribute in NlasIterator::new(attributes) {
        let attribute = attribute.ok()?;
        if attribute.kind() == NLMSGERR_ATTR_MSG {
            let text = String::from_utf8_lossy(attribute.value());
            return Some(text.trim_end_matches(['\0', '.']).to_owned());
        }
    }
    None
}
