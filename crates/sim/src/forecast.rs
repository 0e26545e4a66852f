//! What the changes of a plan would do, one after the other: rate and limiter before and after each.

use fullpipe_diagnose::{Detail, Limiter};
use fullpipe_path::{Direction, QueueSize};
use fullpipe_units::{Bytes, Micros, Rate};

use crate::{
    Application, HostSpec, Spec, knob,
    machine::Machine,
    spec::{ReceiveBuffer, SendBuffer, SimError},
    world,
};

/// The most payload of one simulation, so that a fast path takes no minutes; in bytes.
const MOST_PAYLOAD: u64 = 150_000_000;
/// The largest buffer of the other end.
const AMPLE: u64 = 32 << 20;

/// What is expected of one transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Payload rate after slow start.
    pub rate: Rate,
    /// What limits it.
    pub limiter: Limiter,
    /// How.
    pub detail: Option<Detail>,
}

/// A direction without and with a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Between {
    /// Without.
    pub before: Predicted,
    /// With.
    pub after: Predicted,
}

/// What one change does, with those before it in force.
#[derive(Clone, Debug, PartialEq)]
pub struct StepForecast {
    /// What the machine receives; absent where the change does not act on it.
    pub receives: Option<Between>,
    /// What it sends.
    pub sends: Option<Between>,
    /// Why nothing is predicted.
    pub not_predicted: Option<String>,
}

/// What a whole plan does.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// A change each, in their order.
    pub steps: Vec<StepForecast>,
    /// All of them, for what the machine receives.
    pub receives: Between,
    /// All of them, for what it sends.
    pub sends: Between,
    /// What the reader must know besides.
    pub notes: Vec<String>,
}

/// The path of a forecast.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Its rate.
    pub rate: Rate,
    /// Its round-trip time when idle.
    pub rtt: Micros,
    /// Random loss, 0 to below 1.
    pub loss: f64,
    /// Its largest packet.
    pub mtu: u32,
}

/// Predicts what setting `changes` (name and value, `None` takes it away) one after the other on `machine` does.
///
/// # Errors
/// The path can't be simulated.
pub fn forecast(machine: &Machine, line: Line, changes: &[(String, Option<String>)]) -> Result<Forecast, SimError> {
    let mut machine = machine.clone();
    let first = [predicted(&machine, line, false)?, predicted(&machine, line, true)?];
    let mut now = first;
    let mut steps = Vec::new();
    for (knob, value) in changes {
        let acts = match machine.set(knob, value.as_deref()) {
            Ok(acts) => acts,
            Err(why) => {
                steps.push(StepForecast { receives: None, sends: None, not_predicted: Some(why.0) });
                continue;
            }
        };
        let mut step = [None, None];
        for (place, acts) in [acts.receives, acts.sends].into_iter().enumerate() {
            if acts {
                let after = predicted(&machine, line, place == 1)?;
                step[place] = Some(Between { before: now[place], after });
                now[place] = after;
            }
        }
        let [receives, sends] = step;
        steps.push(StepForecast { receives, sends, not_predicted: None });
    }
    let between = |place: usize| Between { before: first[place], after: now[place] };
    let mut notes = vec![
        "predicted with the TCP engine over an emulated path in virtual time, against another end with ample buffers; each \
         change with those before it in force. Nothing was measured"
            .to_owned(),
    ];
    notes.extend(machine.note());
    Ok(Forecast { steps, receives: between(0), sends: between(1), notes })
}

/// One transfer of the machine, with another end that holds nothing back.
fn predicted(machine: &Machine, line: Line, sends: bool) -> Result<Predicted, SimError> {
    let mut path = knob::path(line.rate, line.rtt, line.loss, QueueSize::Bdp { multiple: 1.0, at_least: 64 })?;
    path.mtu = line.mtu.clamp(576, 9_216);
    let own = machine.host();
    let peer = ample()?;
    let (sender, receiver) = if sends { (own, peer) } else { (peer, own) };
    let mut spec = Spec::new(path, sender, receiver);
    spec.receiver_opens = !sends;
    if sends && machine.is_device() {
        spec.application = Application::Waits;
    }
    (spec.time, spec.omit) = duration(line);
    predict_steady(&spec)
}

/// Simulates it, and says what limits it: what the engine knows, which here is more than what a judge could see.
///
/// # Errors
/// The connection can't be opened.
pub fn predict_steady(spec: &Spec) -> Result<Predicted, SimError> {
    let outcome = world::run(spec)?;
    let diagnosis = outcome.diagnosis();
    let limiter = outcome.truth.limiter().unwrap_or(diagnosis.limiter);
    // What waited out of order when the omitted time ended counts after it: never more than the path carries.
    let mtu = u64::from(spec.path.path_mtu().max(100));
    let most = spec.path.bottleneck(Direction::AToB).map_or(u64::MAX, |rate| rate.bps() / mtu * (mtu - 40));
    let rate = outcome.rate().min(Rate::from_bps(most));
    Ok(Predicted { rate, limiter, detail: diagnosis.detail.filter(|_| limiter == diagnosis.limiter) })
}

/// How long is simulated, and how much of that is slow start.
pub(crate) fn duration(line: Line) -> (Micros, Micros) {
    let rtt = line.rtt.get();
    let most = MOST_PAYLOAD * 8_000_000 / line.rate.bps().max(1);
    let time = (80 * rtt).clamp(3_000_000, 60_000_000).min(most.max(40 * rtt));
    (Micros::new(time), Micros::new(time / 3))
}

fn ample() -> Result<HostSpec, SimError> {
    let mut host = HostSpec::named("linux-6.18")?;
    host.receive = ReceiveBuffer { max: Bytes::new(AMPLE), ..host.receive };
    host.send = SendBuffer { max: Bytes::new(AMPLE), ..host.send };
    Ok(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAN: Line = Line { rate: Rate::from_bps(100_000_000), rtt: Micros::from_millis(80), loss: 0.0, mtu: 1500 };

    fn changes(list: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
        list.iter().map(|(knob, value)| ((*knob).to_owned(), Some((*value).to_owned()))).collect()
    }

    #[test]
    fn a_larger_window_helps_only_once_scaling_is_on() {
        let parameters = "registry HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters";
        let (window, options) = (format!("{parameters}\\TcpWindowSize"), format!("{parameters}\\Tcp1323Opts"));
        let machine = Machine::new("windows-xp").unwrap();
        let found = forecast(&machine, WAN, &changes(&[(&window, "2000200"), (&options, "1")])).unwrap();
        let [alone, both] = found.steps.as_slice() else { panic!("{found:?}") };
        let (alone, both) = (alone.receives.unwrap(), both.receives.unwrap());
        // 17,520 B in 80 ms are 1.75 Mbit/s, and 65,535 B are 6.55.
        assert!((1.5e6..1.8e6).contains(&(alone.before.rate.bps() as f64)), "{alone:?}");
        assert!((6.0e6..6.6e6).contains(&(alone.after.rate.bps() as f64)), "{alone:?}");
        assert_eq!(alone.after.limiter, Limiter::ReceiveWindow);
        assert!(both.after.rate.bps() > 85_000_000 && both.after.limiter == Limiter::Path, "{both:?}");
        assert_eq!((found.receives.before, found.receives.after), (alone.before, both.after));
        assert!(found.notes.iter().any(|note| note.contains("windows-xp")), "{:?}", found.notes);
    }

    #[test]
    fn a_change_that_nothing_answers_to_is_named_and_changes_nothing() {
        let machine = Machine::new("linux-6.18").unwrap();
        let found = forecast(&machine, WAN, &changes(&[("net.core.rmem_max", "1")])).unwrap();
        assert!(found.steps[0].not_predicted.as_ref().unwrap().contains("asks for nothing"));
        assert_eq!(found.receives.before, found.receives.after);
        assert_eq!(found.sends.before, found.sends.after);
    }

    #[test]
    fn a_device_needs_both_of_its_lists_of_what_it_sends() {
        let machine = Machine::new("netburner").unwrap();
        let line = Line { rate: Rate::from_bps(25_000_000), rtt: Micros::new(7_454), ..WAN };
        let list = [("call SetSocketTxBuffers", "40"), ("call SetSocketUnackBuffers", "40")];
        let found = forecast(&machine, line, &changes(&list)).unwrap();
        let (before, after) = (found.sends.before.rate.bps() as f64, found.sends.after.rate.bps() as f64);
        // Published: 4 MB in 5.66 s, then in 1.72 s.
        assert!((before / (32e6 / 5.66) - 1.0).abs() < 0.15, "{before}");
        assert!((after / (32e6 / 1.72) - 1.0).abs() < 0.15, "{after}");
        let first = found.steps[0].sends.unwrap();
        assert!((first.after.rate.bps() as f64) < 0.5 * after, "{first:?}");
    }
}
