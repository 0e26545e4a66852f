//! What a number of packet buffers gives one socket of the device: a simulation of it.

use fullpipe_diagnose::Limiter;
use fullpipe_path::{PathSpec, QueueSize, QueueSpec};
use fullpipe_tcp::profile::Budgets;
use fullpipe_units::{Bytes, Micros, Rate};

use super::{
    Device,
    sockets::{Kind, Sockets},
};
use crate::{Application, HostSpec, Spec, knob, spec::SimError, world};

/// Payload of a full packet.
pub(crate) const SEGMENT: u64 = 1_460;
/// Preamble, header, check sequence and gap of Ethernet.
const ON_THE_WIRE: u32 = 38;
/// Packets that wait for the link at most.
const QUEUE: QueueSize = QueueSize::Packets(100);
/// The least that the calls take, which is also what the device has where nobody calls them.
pub(super) const LEAST: u16 = *Budgets::UNSCALED.start();
/// A bulk socket is simulated for at least so many sets of its buffers, and so many packets: slow start is little of it.
const SETS: u64 = 40;
const PACKETS: u64 = 600;
/// Requests of an interactive socket.
const REQUEST: u32 = 100;
const MESSAGES: u64 = 20;
const LONGEST: Micros = Micros::from_secs(600);

/// What is asked of a simulation; tests have another.
pub(super) trait Model {
    /// What a bulk socket reaches with so many packets in its lists, and what holds it then.
    fn bulk(&self, sockets: &Sockets, packets: u16) -> Result<(Rate, Option<Limiter>), SimError>;
    /// How long a message of an interactive socket takes, from request to last byte.
    fn latency(&self, sockets: &Sockets, packets: u16) -> Result<Micros, SimError>;
    /// What the device moves at most, with buffers and a path that hold nothing back.
    fn ceiling(&self, sends: bool) -> Result<Rate, SimError>;
}

/// The numbers of buffers of a socket, `packets` of them in the lists that its payload goes through.
pub(super) fn budgets(sockets: &Sockets, packets: u16) -> Budgets {
    let (receive, transmit) = if sockets.sends { (LEAST, packets) } else { (packets, LEAST) };
    Budgets { receive, out_of_order: receive - 1, transmit, unacknowledged: transmit }
}

/// The simulator.
pub(super) struct Simulated(pub(super) Device);

impl Simulated {
    fn spec(&self, sockets: &Sockets, packets: u16) -> Result<Spec, SimError> {
        let link = self.0.link;
        let rate = sockets.rate.map_or(link, |rate| rate.min(link));
        let mut path: PathSpec = knob::path(rate, sockets.rtt, sockets.loss, QUEUE)?;
        for hop in &mut path.hops {
            (hop.ab.overhead, hop.ba.overhead) = (ON_THE_WIRE, ON_THE_WIRE);
            hop.ba.queue = QueueSpec { size: QUEUE, ..hop.ba.queue };
        }
        let mut device = HostSpec::named("netburner")?;
        device.profile.budgets = budgets(sockets, packets);
        device.per_packet = self.0.per_packet;
        let peer = HostSpec::named("linux-6.18")?;
        let (sender, receiver) = if sockets.sends { (device, peer) } else { (peer, device) };
        let mut spec = Spec::new(path, sender, receiver);
        (spec.time, spec.series) = (LONGEST, false);
        Ok(spec)
    }
}

impl Model for Simulated {
    fn bulk(&self, sockets: &Sockets, packets: u16) -> Result<(Rate, Option<Limiter>), SimError> {
        let mut spec = self.spec(sockets, packets)?;
        spec.application = if sockets.sends { Application::Waits } else { Application::BULK };
        let sets = SETS.max(PACKETS.div_ceil(packets.max(1).into()));
        spec.bytes = Some(Bytes::new(sets * u64::from(packets) * SEGMENT));
        let outcome = world::run(&spec)?;
        Ok((outcome.rate(), outcome.truth.limiter()))
    }

    fn latency(&self, sockets: &Sockets, packets: u16) -> Result<Micros, SimError> {
        let mut spec = self.spec(sockets, packets)?;
        let response = u32::try_from(sockets.message.get()).unwrap_or(u32::MAX);
        spec.application = Application::Responses { request: REQUEST, response, think: Micros::ZERO };
        spec.bytes = Some(Bytes::new(MESSAGES * sockets.message.get()));
        let outcome = world::run(&spec)?;
        let Some(finished) = outcome.finished else { return Ok(LONGEST) };
        let opening = outcome.transfer.idle_rtt.map_or(Micros::ZERO, |rtt| rtt.p50_us);
        Ok(Micros::new(finished.saturating_sub(opening).get() / MESSAGES))
    }

    fn ceiling(&self, sends: bool) -> Result<Rate, SimError> {
        let sockets = Sockets {
            count: 1,
            kind: Kind::Bulk,
            sends,
            rate: None,
            rtt: Micros::new(100),
            loss: 0.0,
            message: Bytes::ZERO,
            text: String::new(),
        };
        let mut spec = self.spec(&sockets, *Budgets::UNSCALED.end())?;
        spec.bytes = Some(Bytes::new(2 * PACKETS * SEGMENT));
        Ok(world::run(&spec)?.rate())
    }
}
