//! The scenarios that come with the program.

use fullpipe_path::{Direction, Scenario};

use super::page::{Look, PLAIN, Page, WARN, or_dash};

/// Name, path and summary of each; with their published figures where everything is asked for.
pub fn scenarios(scenarios: &[Scenario], look: Look) -> String {
    let mut page = Page::new(look);
    let widest = scenarios.iter().map(|scenario| scenario.name.chars().count()).max().unwrap_or(0);
    for scenario in scenarios {
        page.entry(&scenario.name, widest, &format!("{}; {}", path(scenario), scenario.summary));
        if look.verbose {
            for (host, imitates) in [("a", &scenario.a.imitates), ("b", &scenario.b.imitates)] {
                if let Some(system) = imitates {
                    page.styled_field("imitation", WARN, &format!("{host} imitates {system}"));
                }
            }
            for (label, text) in [("published", &scenario.published), ("source", &scenario.source)] {
                if let Some(text) = text {
                    page.styled_field(label, PLAIN, text);
                }
            }
        }
    }
    page.finish()
}

/// `100 Mbit/s, 80.0 ms` or, where the directions differ, `a->b 384 kbit/s, b->a 1.80 Mbit/s, 230 ms`.
fn path(scenario: &Scenario) -> String {
    let [up, down] = Direction::ALL.map(|direction| or_dash(scenario.path.bottleneck(direction)));
    let rate = if up == down { up } else { format!("a->b {up}, b->a {down}") };
    format!("{rate}, {}", scenario.path.rtt())
}
