//! What is drawn of measurements.

use fullpipe_diagnose::Transfer;
use fullpipe_page::html::{Chart, Charts};
use fullpipe_tune::{Direction, Outcome};

use crate::Measured;

/// The charts of a run of the loop: each direction before, and with the changes in force.
pub fn charts_of_outcome(outcome: &Outcome) -> Charts {
    let of = |key: &'static str, directions: &[Direction]| {
        let charts = directions.iter().enumerate().flat_map(|(place, one)| of_streams((key, place), &one.transfers));
        charts.collect::<Vec<_>>()
    };
    let mut charts = of("transfers", &outcome.before);
    charts.extend(of("transfers_after", &outcome.after));
    Charts { charts, ..Charts::default() }
}

/// The charts of a test.
pub fn charts_of_measured(measured: &Measured<'_>) -> Charts {
    let directions = measured.measurement.directions.iter().enumerate();
    let charts = directions.flat_map(|(place, one)| of_streams(("directions", place), &one.transfers));
    Charts { charts: charts.collect(), ..Charts::default() }
}

/// The first of a direction's connections over time, and the rates of all where there are several.
fn of_streams(of: (&'static str, usize), transfers: &[Transfer]) -> impl Iterator<Item = Chart> {
    let title = match transfers.len() {
        0 | 1 => "The connection over time".to_owned(),
        count => format!("The first of {count} connections over time"),
    };
    let all = Chart::of_transfers(&format!("The rates of {} connections", transfers.len()), of, transfers);
    let first = transfers.first().and_then(|first| Chart::of_transfer(&title, of, first));
    all.into_iter().chain(first)
}

#[cfg(test)]
mod tests {
    use fullpipe_page::html;
    use serde_json::{Value, json};

    use super::*;
    use crate::{clean, json, sample};

    /// The document that a page carries, as a browser reads it.
    fn carried(page: &str) -> Value {
        let from =
            page.find("<script id=\"document\" type=\"application/json\">").expect("the page carries its document");
        let text = &page[from..][page[from..].find('>').unwrap() + 1..];
        serde_json::from_str(&text[..text.find("</script>").unwrap()]).expect("it is JSON")
    }

    #[test]
    fn a_page_carries_its_document_and_says_the_verdict_without_script() {
        let document = json::outcome("check", &sample::tuned());
        let page = html::page(&document, charts_of_outcome(&sample::tuned()));
        assert_eq!(carried(&page), document);
        let shown = text::of(&page);
        let diagnosis = &document["transfers"][0]["diagnosis"];
        assert!(shown.contains("receive window (window-scale shift 0), 97 % of the time"), "{shown}");
        assert!(shown.contains(diagnosis["action"].as_str().unwrap()), "{shown}");
        for change in document["plan"]["changes"].as_array().unwrap() {
            for key in ["knob", "to", "reason", "undo"] {
                assert!(shown.contains(&*clean(change[key].as_str().unwrap())), "{key} of {change}");
            }
        }
        assert!(page.contains("<rect class=\"after\""), "the proof is drawn");
    }

    #[test]
    fn a_document_that_was_cut_or_is_strange_still_makes_a_page() {
        let whole = json::outcome("tune", &sample::tuned());
        let keys: Vec<String> = whole.as_object().unwrap().keys().cloned().collect();
        for key in keys {
            for strange in [Value::Null, json!([]), json!({}), json!([1, null, "x"]), json!(-1.5), json!("text")] {
                let mut cut = whole.clone();
                cut[&key] = strange;
                assert!(html::page(&cut, Charts::default()).ends_with("</html>"), "{key}");
            }
        }
        for nothing in [Value::Null, json!({}), json!([]), json!("text")] {
            assert!(html::page(&nothing, Charts::default()).contains("<h1>"));
        }
    }

    /// The text of a page, as a reader without script sees it.
    mod text {
        pub(super) fn of(page: &str) -> String {
            let body = &page[page.find("<main").unwrap()..page.find("</main>").unwrap()];
            let mut text = String::new();
            let mut is_tag = false;
            for c in body.chars() {
                match c {
                    '<' => is_tag = true,
                    '>' => is_tag = false,
                    c if !is_tag => text.push(c),
                    _ => {}
                }
            }
            text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        }
    }
}
