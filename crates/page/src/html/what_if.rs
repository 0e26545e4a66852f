//! A page to try settings on: the simulator itself, in the browser.

use base64ct::{Base64, Encoding};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

use super::{STYLE, Unpacked, data, policy, unpacked};

/// Built from `web/`, as the script of the other pages.
static SCRIPT: Unpacked = Unpacked::new(|| unpacked(include_bytes!("assets/what-if.js.gz")));
/// `bindings/wasm` for `wasm32-unknown-unknown`, as gzip, by `npm run simulator` in `web/`.
const SIMULATOR: &[u8] = include_bytes!("assets/simulator.wasm.gz");

/// What can be chosen, and what is chosen at first. The words are those of the flags of `what-if`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Choices {
    /// What is chosen at first.
    pub first: State,
    /// What is chosen at first of a device's pool.
    pub pool: Pool,
    /// Situations by name.
    pub presets: Vec<(String, Situation)>,
    /// The platforms of either end.
    pub platforms: Vec<String>,
    /// Every setting with its meaning.
    pub settings: Vec<(String, String)>,
}

/// A question to the simulator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct State {
    /// The rate of the link.
    pub rate: String,
    /// The round-trip time of the idle path.
    pub rtt: String,
    /// Random loss.
    pub loss: String,
    /// The queue in front of the link.
    pub queue: String,
    /// The sender's platform.
    pub from: String,
    /// The receiver's platform.
    pub to: String,
    /// `KEY=VALUE`, separated by commas.
    pub set: String,
    /// Payload to transfer; empty: as much as the time allows.
    pub bytes: String,
}

/// A question to the simulator: how a device's packet buffers are best shared out. The words are those of the flags of `share`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// Packet buffers of the device.
    pub buffers: String,
    /// The sockets that are open at once.
    pub sockets: String,
    /// Buffers that stay free; empty: a quarter.
    pub reserve: String,
    /// Processing time of the device per packet.
    pub per_packet: String,
    /// Rate of the device's interface.
    pub link: String,
    /// Longest wait of an interactive message; empty: any.
    pub max_wait: String,
}

/// A situation that can be chosen by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Situation {
    /// One connection over one link.
    Path(State),
    /// A device's packet buffers.
    Pool(Pool),
}

/// The page.
pub fn what_if(choices: &Choices) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy(&SCRIPT, "'wasm-unsafe-eval'", super::ALONE));
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "fullpipe " (env!("CARGO_PKG_VERSION")) };
                title { "fullpipe: what would it give?" }
                style { (PreEscaped(STYLE)) }
            }
            body.tries {
                a.skip href="#answer" { "To the answer" }
                header {
                    p.mark { "fullpipe " span { "what-if" } }
                    h1 #headline aria-live="polite" { "What would it give?" }
                }
                main {
                    p.subline { "Simulated in virtual time, in this page: nothing is measured." }
                    form #form {
                        (presets(choices))
                        div.try {
                            div.controls {
                                (modes())
                                div.fields #of-path { (fields(choices)) }
                                div.fields #of-pool hidden { (pool_fields(&choices.pool)) }
                            }
                            div.found {
                                article #answer .verdict { p.note { "The simulator is starting." } }
                                figure.chart #drawn { div.canvas #chart role="img" tabindex="0" aria-label="The connection over time" {} }
                            }
                        }
                    }
                    noscript { p.note { "This page computes in the browser and needs its script. `fullpipe what-if` answers without." } }
                    section {
                        h2 { "What to set" }
                        div #plans {}
                        h2 { "The same by command" }
                        p { code #command { "fullpipe what-if" } " " button type="button" data-copy="command" { "copy" } }
                        p #planned { code #plan { "fullpipe plan" } " " button type="button" data-copy="plan" { "copy" } " tells the plan with its arithmetic, and writes it as files." }
                        details #settings {
                            summary { "All settings that can be tried" }
                            dl.wide { @for (key, meaning) in &choices.settings { div { dt { code { (key) } } dd { (meaning) } } } }
                        }
                    }
                }
                footer {
                    p {
                        "fullpipe " (env!("CARGO_PKG_VERSION")) ": the TCP engine and the judge of the command, compiled for the browser. \
                         The link in the address bar holds what is chosen. It asks nothing of any network."
                    }
                }
                script #choices type="application/json" {
                    (PreEscaped(data(&serde_json::to_string(choices).expect("text becomes JSON"))))
                }
                script #simulator type="application/gzip" { (PreEscaped(Base64::encode_string(SIMULATOR))) }
                script { (PreEscaped(&*SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn presets(choices: &Choices) -> Markup {
    html! {
        div.presets role="group" aria-label="situations" {
            @for (place, (name, _)) in choices.presets.iter().enumerate() { button type="button" data-preset=(place) { (name) } }
        }
    }
}

/// What is tried: a connection, or the buffers of a device.
fn modes() -> Markup {
    html! {
        div.modes role="radiogroup" aria-label="What to try" {
            @for (mode, name) in [("path", "One connection"), ("pool", "A pool of buffers")] {
                label { input type="radio" name="mode" value=(mode) checked[mode == "path"]; (name) }
            }
        }
    }
}

fn pool_fields(pool: &Pool) -> Markup {
    html! {
        (slider("buffers", "Packet buffers", &pool.buffers, "of the whole device, for all sockets"))
        div.wide { (plain("sockets", "Sockets", &pool.sockets, "[Nx] bulk RATE RTT, [Nx] interactive [RATE] [RTT] [message SIZE]")) }
        (plain("reserve", "Reserve", &pool.reserve, "buffers that stay free; empty: a quarter"))
        (slider("per_packet", "Time per packet", &pool.per_packet, "what the device takes for one: 138us"))
        (plain("link", "Interface", &pool.link, "its rate, which all sockets share: 100M"))
        (plain("max_wait", "Longest wait", &pool.max_wait, "of an interactive message; empty: any"))
    }
}

fn fields(choices: &Choices) -> Markup {
    let first = &choices.first;
    html! {
        (slider("rate", "Rate", &first.rate, "of the narrowest link: 100M"))
        (slider("rtt", "Round trip", &first.rtt, "of the idle path: 80ms"))
        (slider("loss", "Loss", &first.loss, "random: 0.01%"))
        (slider("queue", "Queue", &first.queue, "1bdp, 100p, 64k, 20ms"))
        (slider("window", "Receive window", "", "empty: the platform sizes it"))
        (slider("buffer", "Send buffer", "", "empty: the platform sizes it"))
        (slider("mtu", "MTU", "", "empty: 1500"))
        (slider("message", "Message", "", "each waits for an answer; empty: one long stream"))
        (platform("from", "Sender", &first.from, choices))
        (platform("to", "Receiver", &first.to, choices))
        (plain("bytes", "Payload", &first.bytes, "empty: all that the time allows"))
        (plain("set", "Other settings", &first.set, "KEY=VALUE, separated by commas"))
    }
}

fn plain(name: &str, label: &str, value: &str, hint: &str) -> Markup {
    html! {
        div.field {
            label for=(name) { (label) }
            input #(name) name=(name) value=(value) autocomplete="off" spellcheck="false" aria-describedby={ (name) "-hint" };
            p.note id={ (name) "-hint" } { (hint) }
        }
    }
}

fn slider(name: &str, label: &str, value: &str, hint: &str) -> Markup {
    html! {
        div.field {
            label for=(name) { (label) }
            input #(name) name=(name) value=(value) autocomplete="off" spellcheck="false" aria-describedby={ (name) "-hint" };
            input type="range" min="0" max="200" value="0" data-for=(name) aria-label={ (label) ", slider" };
            p.note id={ (name) "-hint" } { (hint) }
        }
    }
}

fn platform(name: &str, label: &str, value: &str, choices: &Choices) -> Markup {
    html! {
        div.field {
            label for=(name) { (label) }
            select #(name) name=(name) {
                @for platform in &choices.platforms { option value=(platform) selected[platform == value] { (platform) } }
            }
        }
    }
}
