//! Shares of a pool of packet buffers: what `fullpipe share` says.

use fullpipe_sim::share::{BUFFER, Device, Kind, Share, Sockets, notes, parse_sockets, share};
use fullpipe_units::{Bytes, Micros, Rate};
use serde::Deserialize;
use serde_json::{Value, json};

/// What a page asks: the flags of `fullpipe share`, by their names. What may be left out is empty.
#[derive(Debug, Deserialize)]
struct Question {
    buffers: String,
    sockets: String,
    reserve: String,
    per_packet: String,
    link: String,
    max_wait: String,
}

/// NetBurner's calls for the four numbers of a socket.
const CALLS: [&str; 4] = ["SetSocketRxBuffers", "SetOutOfOrderBuffers", "SetSocketTxBuffers", "SetSocketUnackBuffers"];
/// The largest pool, as the flag has it.
const MOST_BUFFERS: u32 = 1_000_000;

/// The shares.
pub(crate) fn shared(question: Value) -> Result<Value, String> {
    let question: Question = serde_json::from_value(question).map_err(|error| error.to_string())?;
    let wrong = |name: &str, value: &str| format!("{name}: {value:?} can't be read");
    let number = |name: &str, value: &str| value.trim().parse::<u32>().map_err(|_| wrong(name, value));
    let time = |name: &str, value: &str| value.trim().parse::<Micros>().map_err(|_| wrong(name, value));
    let given = |value: &str| !value.trim().is_empty();
    let groups = parse_sockets(&question.sockets).map_err(|error| error.to_string())?;
    let pool = number("packet buffers", &question.buffers)?;
    if !(1..=MOST_BUFFERS).contains(&pool) {
        return Err(format!("packet buffers: from 1 to {MOST_BUFFERS}"));
    }
    let reserve = given(&question.reserve).then(|| number("reserve", &question.reserve)).transpose()?;
    let device = Device {
        pool,
        reserve: reserve.unwrap_or_else(|| Device::default_reserve(pool)),
        per_packet: time("time per packet", &question.per_packet)?,
        link: question.link.trim().parse::<Rate>().map_err(|_| wrong("link", &question.link))?,
        max_wait: given(&question.max_wait).then(|| time("longest wait", &question.max_wait)).transpose()?,
    };
    let found = share(&device, &groups).map_err(|error| error.to_string())?;
    let has_messages = groups.iter().any(|group| group.kind == Kind::Interactive);
    Ok(json!({
        "buffers": pool,
        "memory": Bytes::new(u64::from(pool) * BUFFER.get()).to_string(),
        "reserve": device.reserve,
        "shared": found.shared,
        "left": found.left,
        "total": found.total.to_string(),
        "total_bps": found.total,
        "device": found.ceiling.to_string(),
        "wait": has_messages.then(|| found.wait.to_string()),
        "stop": found.stop_words().1,
        "notes": notes(&groups),
        "rows": found.shares.iter().map(|one| row(one, &groups)).collect::<Vec<_>>(),
    }))
}

fn row(one: &Share, groups: &[Sockets]) -> Value {
    let numbers = [&one.receive, &one.out_of_order, &one.transmit, &one.unacknowledged];
    let reaches = match (one.rate, one.latency) {
        (Some(rate), _) => rate.to_string(),
        (None, Some((own, _))) => format!("a message in {own}"),
        (None, None) => String::new(),
    };
    json!({
        "sockets": groups[one.group].text,
        "group": one.group,
        "count": one.count,
        "of": groups[one.group].count,
        "each": one.buffers(),
        "numbers": numbers.map(|number| number.buffers),
        "reasons": numbers.map(|number| &number.reason),
        "calls": core::array::from_fn::<_, 4, _>(|place| format!("{}(fd, {});", CALLS[place], numbers[place].buffers)),
        "reaches": reaches,
        "held": one.held.map(fullpipe_diagnose::Limiter::words),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(key: &str, value: &str) -> Value {
        let mut question = json!({
            "buffers": "256", "sockets": "4x bulk 25M 15ms, 2x interactive", "reserve": "", "per_packet": "138us", "link": "100M",
            "max_wait": "",
        });
        question[key] = json!(value);
        serde_json::from_str(&crate::answer(&json!({ "pool": question }).to_string())).unwrap()
    }

    #[test]
    fn a_pool_of_256_buffers_is_shared_out_and_never_exceeded() {
        let answer = asked("reserve", "");
        let pool = &answer["pool"];
        let numbers =
            |row: &Value| row["numbers"].as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).sum::<u64>();
        let rows = pool["rows"].as_array().unwrap();
        let all: u64 = rows.iter().map(|row| row["count"].as_u64().unwrap() * numbers(row)).sum();
        assert_eq!(pool["reserve"], 64);
        assert_eq!(pool["shared"], all, "{answer}");
        assert!(all <= 192 && all + pool["left"].as_u64().unwrap() == 192, "{answer}");
        assert_eq!(rows.iter().map(|row| row["count"].as_u64().unwrap()).sum::<u64>(), 6);
        assert!(rows[0]["calls"][2].as_str().unwrap().starts_with("SetSocketTxBuffers(fd, "), "{answer}");
    }

    #[test]
    fn what_cannot_be_shared_is_told_why() {
        for (key, value, word) in [
            ("buffers", "0", "packet buffers"),
            ("buffers", "many", "packet buffers"),
            ("buffers", "20", "reserve"),
            ("sockets", "4x bulk fast", "fast"),
            ("sockets", "", "sockets"),
            ("link", "", "link"),
            ("max_wait", "1us", "wait"),
        ] {
            let answer = asked(key, value);
            assert!(answer["error"].as_str().is_some_and(|error| error.contains(word)), "{key}: {answer}");
        }
    }
}
