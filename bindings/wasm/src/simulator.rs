//! The simulator's answers.

use fullpipe_chart::Chart;
use fullpipe_diagnose::{Alternative, Limiter, limit_words};
use fullpipe_knobs::{Change, Platform, PlatformRequest, plan_platform};
use fullpipe_sim::{SimError, knob, platform, run};
use fullpipe_units::{Bytes, Micros, Rate};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::pool;

/// What a page asks: the flags of `fullpipe what-if`, by their names.
#[derive(Debug, Deserialize)]
struct Question {
    rate: String,
    rtt: String,
    loss: String,
    queue: String,
    from: String,
    to: String,
    /// `--set`, a key and a value each.
    set: Vec<(String, String)>,
    bytes: Option<String>,
    /// The longest virtual time, in seconds.
    seconds: f64,
    seed: u64,
}

/// The longest virtual time of a transfer, in seconds: a page shall not stand still for minutes.
const MOST_SECONDS: f64 = 120.0;

/// Answers a question: `{"answer": {...}}`, or `{"pool": {...}}` where it asks for shares of a pool, or `{"error": "..."}` where it
/// can't be.
pub fn answer(question: &str) -> String {
    let read = |question| serde_json::from_value(question).map_err(|error| error.to_string());
    let found = match serde_json::from_str::<Value>(question) {
        Err(error) => Err(error.to_string()),
        Ok(mut whole) => match whole.get_mut("pool").map(Value::take) {
            Some(question) => pool::shared(question).map(|shares| json!({ "pool": shares })),
            None => read(whole).and_then(|question| found(&question)).map(|answer| json!({ "answer": answer })),
        },
    };
    found.unwrap_or_else(|error| json!({ "error": error })).to_string()
}

fn found(question: &Question) -> Result<Value, String> {
    let said = |error: SimError| error.to_string();
    let wrong = |name: &str, value: &str| format!("{name}: {value:?} can't be read");
    let rate: Rate = question.rate.parse().map_err(|_| wrong("rate", &question.rate))?;
    let rtt: Micros = question.rtt.parse().map_err(|_| wrong("round trip", &question.rtt))?;
    let hosts = [platform(&question.from).map_err(said)?.host(), platform(&question.to).map_err(said)?.host()];
    let mut spec = knob::one_link(rate, rtt, &question.loss, &question.queue, hosts).map_err(said)?;
    spec.seed = question.seed;
    spec.time = Micros::new((question.seconds.clamp(0.1, MOST_SECONDS) * 1e6) as u64);
    let bytes = question.bytes.as_ref().map(|bytes| bytes.parse::<Bytes>().map_err(|_| wrong("bytes", bytes)));
    spec.bytes = bytes.transpose()?;
    let spec = knob::with(&spec, &question.set).map_err(said)?;
    let outcome = run(&spec).map_err(said)?;
    let diagnosis = outcome.diagnosis();
    let bandwidth_delay = rate.bps() as f64 * rtt.as_secs_f64() / 8.0;
    Ok(json!({
        "rate_bps": outcome.rate(),
        "rate": outcome.rate().to_string(),
        "limiter": diagnosis.limiter,
        "limit": limit_words(diagnosis.limiter, diagnosis.detail),
        "share": diagnosis.share,
        "or": diagnosis.or.iter().map(|Alternative { limiter, .. }| limiter.words()).collect::<Vec<_>>(),
        "can_be_lifted": !matches!(diagnosis.limiter, Limiter::Path | Limiter::Application),
        "evidence": diagnosis.evidence.iter().map(|one| &one.text).collect::<Vec<_>>(),
        "action": diagnosis.action,
        "shares": diagnosis.shares,
        "seconds": spec.bytes.and(outcome.finished).map(Micros::as_secs_f64),
        "retransmissions": outcome.retransmits,
        "queue_delay": outcome.queue_delay.to_string(),
        "memory": outcome.memory.to_string(),
        "product": Bytes::new(bandwidth_delay as u64).to_string(),
        "failure": outcome.failure,
        // The same in every browser, and outside of one.
        "digest": format!("{:016x}", outcome.digest()),
        "plans": plans(question, rate, rtt),
        "chart": Chart::of_transfer("The connection over time", ("answer", 0), &outcome.transfer),
    }))
}

/// What `fullpipe plan` says for the receiver's platform, and for the sender's where that is another.
fn plans(question: &Question, rate: Rate, rtt: Micros) -> Vec<Value> {
    let both = [("receiver", &question.to), ("sender", &question.from)];
    let count = if question.from == question.to { 1 } else { 2 };
    let plan = |(role, name): (&str, &String)| {
        // The simulator has stacks that no plan is for.
        let platform: Platform = name.parse().ok()?;
        let plan = plan_platform(&PlatformRequest::new(platform, rate, rtt));
        let by_hand = |change: &Change| {
            let to = change.to.as_deref().unwrap_or("absent");
            change.command().unwrap_or_else(|| format!("{} -> {to}", change.knob))
        };
        Some(json!({
            "role": role,
            "platform": name,
            "changes": plan.changes.iter().map(|change| json!({ "do": by_hand(change), "why": change.reason })).collect::<Vec<_>>(),
            "notes": plan.notes,
        }))
    };
    both.into_iter().take(count).filter_map(plan).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(change: impl FnOnce(&mut Value)) -> Value {
        let mut question = json!({
            "rate": "100M", "rtt": "80ms", "loss": "0", "queue": "1bdp", "from": "linux-6.18", "to": "linux-6.18", "set": [],
            "bytes": null, "seconds": 10.0, "seed": 1,
        });
        change(&mut question);
        serde_json::from_str(&answer(&question.to_string())).unwrap()
    }

    #[test]
    fn a_window_of_64_kb_at_80_ms_is_the_limit_and_without_it_the_path_is() {
        let small = asked(|question| question["set"] = json!([["receiver.window", "64512"]]));
        let rate = small["answer"]["rate_bps"].as_u64().unwrap();
        // 64,512 B x 8 / 80 ms.
        assert!((5_900_000..=6_500_000).contains(&rate), "{rate}");
        assert_eq!(small["answer"]["limiter"], "receive_window");
        let wide = asked(|_| ());
        assert!(wide["answer"]["rate_bps"].as_u64().unwrap() > 85_000_000, "{wide}");
        assert_eq!(wide["answer"]["chart"]["panels"][0]["unit"], "rate");
    }

    /// What the tests of the pages ask of the simulator as WebAssembly, and the digests of its series. Written anew with
    /// FULLPIPE_WRITE_DIGESTS=1.
    #[test]
    fn the_same_seed_gives_the_series_that_are_on_record() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/tests/simulations.json");
        let known: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let mut found = known.clone();
        for one in found.as_array_mut().unwrap() {
            let answer: Value = serde_json::from_str(&answer(&one["question"].to_string())).unwrap();
            one["digest"] = answer["answer"]["digest"].clone();
        }
        if std::env::var_os("FULLPIPE_WRITE_DIGESTS").is_some() {
            std::fs::write(file, format!("{}\n", serde_json::to_string_pretty(&found).unwrap())).unwrap();
            return;
        }
        assert_eq!(found, known);
    }

    #[test]
    fn the_plans_of_both_platforms_come_with_what_to_type() {
        let answer = asked(|question| {
            question["to"] = json!("windows-xp");
            question["from"] = json!("freebsd-6");
        });
        let plans = answer["answer"]["plans"].as_array().unwrap();
        let lines = |place: usize| plans[place]["changes"].to_string();
        assert_eq!(plans[0]["platform"], "windows-xp");
        assert!(lines(0).contains("reg add") && lines(0).contains("Tcp1323Opts"), "{}", lines(0));
        assert!(lines(1).contains("sysctl -w kern.ipc.maxsockbuf="), "{}", lines(1));
        let device = asked(|question| question["to"] = json!("lwip"));
        assert_eq!(device["answer"]["plans"].as_array().unwrap().len(), 1, "the sender's alone");
    }

    #[test]
    fn a_question_that_cannot_be_answered_is_told_why() {
        for (key, value) in [
            ("rate", json!("fast")),
            ("rtt", json!("")),
            ("from", json!("beos")),
            ("queue", json!("-1")),
            ("seed", json!("x")),
        ] {
            let answer = asked(|question| question[key] = value);
            assert!(answer["error"].as_str().is_some_and(|error| !error.is_empty()), "{key}: {answer}");
        }
        assert!(answer("{").contains("error"));
        let unknown = asked(|question| question["set"] = json!([["receiver.windows", "1"]]));
        assert!(unknown["error"].as_str().unwrap().contains("receiver.windows"), "{unknown}");
    }
}
