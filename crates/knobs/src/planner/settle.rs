//! From what is wanted of each host to changes: within the memory bound, never lowering, never against the
//! administrator.

use fullpipe_units::Bytes;

use super::{
    PlanHost, PlanRequest,
    authority::{administrators, normal},
    linux::{BufferWant, Want, Wanted, three},
    route,
    sizing::MemoryBound,
};
use crate::{
    Address, Change, Family, Plan, TakesEffect,
    catalogue::{self, Honoured, Knob},
    persist,
};

/// The largest value that the kernel keeps in these sysctls (a signed 32-bit integer), in whole pages.
const LARGEST: Bytes = Bytes::new(i32::MAX as u64 & !0xfff);

/// Writes the changes that the wants lead to.
pub(super) fn settle(request: &PlanRequest<'_>, wanted: &Wanted, plan: &mut Plan) {
    for host in &request.hosts {
        let Some(wants) = wanted.of(host.name) else { continue };
        let known = host.settings.platform.family == Family::Linux;
        if !known {
            continue;
        }
        for want in &wants.switches {
            let now = host.settings.values.get(&want.knob).and_then(Option::as_deref);
            if now.map(str::trim) == Some("0") {
                propose(request, host, want, None, plan);
            }
        }
        buffers(request, host, &[("net.ipv4.tcp_rmem", &wants.receive), ("net.ipv4.tcp_wmem", &wants.send)], plan);
        for want in &wants.clamps {
            propose(request, host, want, None, plan);
        }
    }
}

/// The buffers of one host, cut down together where the memory bound asks for it.
///
/// The cut looks at everything that is wanted, whether or not it is there already, so that planning again on the
/// result comes to the same values.
fn buffers(request: &PlanRequest<'_>, host: &PlanHost<'_>, wants: &[(&str, &Option<BufferWant>)], plan: &mut Plan) {
    let connections = u64::from(request.connections.max(1));
    let bound = MemoryBound::from_request(request, host);
    let each = bound.bytes.map(|bytes| bytes.get() / connections);
    let asked = |want: &BufferWant| want.buffer.min(LARGEST).get();
    let total: u64 = wants.iter().filter_map(|(_, want)| want.as_ref()).map(asked).sum();
    for (name, want) in wants {
        let Some(want) = want else { continue };
        let Some(now @ [_, _, largest]) = three(host.settings, name) else { continue };
        if largest >= want.unless {
            continue;
        }
        let fitting = match each {
            Some(each) if total > each => {
                let part = u128::from(asked(want)) * u128::from(each) / u128::from(total.max(1));
                Bytes::new(u64::try_from(part).unwrap_or(u64::MAX) & !0xfff)
            }
            _ => Bytes::new(asked(want)),
        };
        if fitting < want.buffer {
            plan.notes.push(format!(
                "{}: {name} wants {} for each of {connections} connections, but the memory bound is {}; {}",
                host.name,
                want.buffer,
                bound.words,
                if fitting > largest {
                    format!("it goes to {fitting} only, and the pipe may not be filled. Plan for fewer connections, or allow more memory")
                } else {
                    format!("it stays at {largest}. Plan for fewer connections, or allow more memory")
                }
            ));
        }
        if fitting <= largest {
            continue;
        }
        let worst = Bytes::new(fitting.get().saturating_mul(connections));
        let separator = if host.settings.sysctl(name).is_some_and(|text| text.contains('\t')) { "\t" } else { " " };
        let value = [now[0].get(), now[1].get(), fitting.get()].map(|value| value.to_string()).join(separator);
        let arithmetic = format!(
            "{}; at most {fitting} x {connections} connections = {worst} of memory (bound: {})",
            want.arithmetic, bound.words
        );
        let reason = want.reason.clone();
        let want = Want { knob: Address::sysctl(name), to: Some(value), reason, arithmetic };
        propose(request, host, &want, Some(worst), plan);
    }
}

/// One change, unless the administrator or the kernel's version speaks against it.
fn propose(request: &PlanRequest<'_>, host: &PlanHost<'_>, want: &Want, memory: Option<Bytes>, plan: &mut Plan) {
    let from = host.settings.values.get(&want.knob).cloned().flatten();
    let catalogue = catalogue::for_platform(&host.settings.platform);
    let Some(knob) = catalogue.and_then(|catalogue| catalogue.find(&want.knob)) else {
        plan.notes.push(format!("{}: {} is not in the catalogue, so it is left alone", host.name, want.knob));
        return;
    };
    let span = catalogue.and_then(|catalogue| catalogue.span(knob, &host.settings.platform.version));
    if let Some(span) = span.filter(|span| !matches!(span.honoured, Honoured::Yes | Honoured::Partly)) {
        plan.notes.push(format!("{}: {} does nothing on this version: {}", host.name, want.knob, span.note));
        return;
    }
    if let Some(origin) = administrators(host.settings, &want.knob).filter(|_| !request.allow_override) {
        let to = want.to.as_deref().map_or_else(
            || "take that line out".to_owned(),
            |to| format!("change that line to `{} = {}`", want.knob, normal(to)),
        );
        plan.notes.push(format!(
            "{}: {}; but {}:{} sets {} to `{}` on purpose, so it is left alone: {to}, or plan or tune with --allow-override",
            host.name, want.reason, origin.file, origin.line, want.knob, origin.value
        ));
        return;
    }
    if let Some(line) = persist::later_line(host.settings, &want.knob).filter(|_| request.allow_override) {
        plan.notes.push(format!(
            "{}: {line} sets {}, too, and is applied after {}: change that line, or it wins at the next boot",
            host.name,
            want.knob,
            persist::SYSCTL_FILE
        ));
    }
    plan.changes.push(Change {
        host: host.name.to_owned(),
        knob: want.knob.clone(),
        undo: undo(knob, host, want, from.as_deref()),
        from,
        to: want.to.clone(),
        reason: want.reason.clone(),
        arithmetic: want.arithmetic.clone(),
        memory_worst_case: memory,
        takes_effect: knob.takes_effect.unwrap_or(TakesEffect::NewConnections),
        source: knob.source(),
    });
}

/// The command that takes a change back.
fn undo(knob: &Knob, host: &PlanHost<'_>, want: &Want, from: Option<&str>) -> String {
    match (&want.knob, from) {
        (Address::Route { destination, attribute }, Some(from)) => {
            route::restore_command(host.settings, destination, attribute, from)
        }
        (knob_address, Some(from)) => {
            let value = quoted(&normal(from));
            knob.undo.replace("{address}", &knob_address.to_string()).replace("{from}", &value)
        }
        (_, None) => knob.undo.clone(),
    }
}

/// A value as one word of a shell.
fn quoted(value: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    if !value.is_empty() && value.bytes().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}
