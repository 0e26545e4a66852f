//! Whether a plan helped.

use fullpipe_diagnose::proof::Decision;
use fullpipe_tune::DirectionProof;

use super::{
    direction::arrow,
    page::{GOOD, Look, PLAIN, Page, WARN, count},
};

/// The proofs, a direction each: before and after, ratio with its interval, pairs, and what became of the changes.
pub fn proof(proofs: &[DirectionProof], look: Look) -> String {
    let mut page = Page::new(look);
    put_proofs(&mut page, proofs);
    page.finish()
}

/// As [`proof`], on a page.
pub(crate) fn put_proofs(page: &mut Page, proofs: &[DirectionProof]) {
    if proofs.is_empty() {
        return;
    }
    page.title("proof", PLAIN, "before and after in alternation; 95 % interval of the ratio");
    for proof in proofs {
        put_proof(page, proof);
    }
}

fn put_proof(page: &mut Page, proof: &DirectionProof) {
    let figures = &proof.proof;
    let interval = match (figures.ratio_low, figures.ratio_high) {
        (Some(low), Some(high)) => format!("{} to {}", ratio(low), ratio(high)),
        _ => "no interval: too few pairs".to_owned(),
    };
    page.styled_field(
        &arrow(&proof.direction),
        if proof.helped { GOOD } else { WARN },
        &format!(
            "{} -> {}, x{} ({interval}), {}",
            figures.before_bps,
            figures.after_bps,
            ratio(figures.ratio),
            count(figures.pairs, "pair")
        ),
    );
    page.field("", what_became(proof));
    if let Some(predicted) = proof.predicted {
        let text = format!(
            "predicted x{}, measured x{} (simulated: {} -> {})",
            ratio(predicted.ratio()),
            ratio(figures.ratio),
            predicted.before_bps,
            predicted.after_bps
        );
        page.field("", &text);
    }
    if page.look.verbose && !proof.knobs.is_empty() {
        let knobs: Vec<_> = proof.knobs.iter().map(ToString::to_string).collect();
        page.field("", &format!("tried: {}", knobs.join(", ")));
    }
}

/// Whether the changes stay, and why.
fn what_became(proof: &DirectionProof) -> &'static str {
    match (proof.helped, proof.kept, proof.decision) {
        (true, true, _) => "helped, and was kept",
        (true, false, _) => "helped; undone, because this run leaves nothing behind",
        (false, true, _) => "kept, although a gain is not shown",
        (false, false, Decision::Helped) => "undone: this direction gained, and another lost",
        (false, false, Decision::Harmed) => "undone: slower with the changes",
        (false, false, Decision::NotShown | Decision::NeedMorePairs) => {
            "undone: the interval does not clear the threshold, so a gain is not shown"
        }
    }
}

/// Three significant digits, as rates have.
fn ratio(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}
