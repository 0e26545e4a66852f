//! What `plan` plans, `lint` accepts, at the very path.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use fullpipe_knobs::{
    Platform, PlatformRequest, Settings,
    export::export,
    lint::{Level, LintRequest, lint},
    plan_platform,
    recipe::Kind,
};
use fullpipe_units::{Micros, Rate};
use proptest::prelude::*;

const PLATFORMS: [&str; 17] = [
    "linux-3.10",
    "linux-5.15",
    "linux-6.18",
    "windows-xp",
    "windows-2003",
    "windows-7",
    "windows-2012",
    "windows-10",
    "windows-2025",
    "freebsd-4.8",
    "freebsd-6.2",
    "freebsd-8.1",
    "freebsd-9.3",
    "freebsd-14.1",
    "macos-14",
    "netburner",
    "linux-4.4",
];

/// The findings of every file of the plan that lint reads, which are warnings or worse.
fn complaints(platform: &str, rate: u64, rtt_us: u64) -> Vec<String> {
    let platform: Platform = platform.parse().unwrap();
    let (rate, rtt) = (Rate::from_bps(rate), Micros::new(rtt_us));
    // A machine of which all is known but nothing set.
    let settings = Settings { platform: platform.clone(), ..Settings::default() };
    let plan = plan_platform(&PlatformRequest::new(platform.clone(), rate, rtt));
    let Ok(export) = export(&plan, &platform, Some(&settings)) else { return Vec::new() };
    let request = LintRequest { platform: Some(platform), path: Some((rate, rtt)), ..LintRequest::default() };
    let mut found = Vec::new();
    for file in &export.files {
        let text = file.text();
        let Some(kind) = Kind::from_file(file.name, &text) else { continue };
        // What puts things back is no recipe.
        if file.name.starts_with("undo") || file.name.starts_with("verify") {
            continue;
        }
        let bad = lint(kind, &text, &request).into_iter().filter(|finding| {
            finding.level >= Level::Warning || ["too-large", "too-small"].contains(&finding.rule.as_str())
        });
        found
            .extend(bad.map(|finding| format!("{}:{} {}: {}", file.name, finding.line, finding.rule, finding.message)));
    }
    found
}

#[test]
fn a_plan_for_a_continent_at_ten_gigabits_is_not_too_large() {
    for platform in PLATFORMS {
        assert_eq!(complaints(platform, 10_000_000_000, 150_000), [] as [&str; 0], "{platform}");
    }
}

proptest! {
    #[test]
    fn lint_accepts_what_plan_plans(
        platform in proptest::sample::select(PLATFORMS.to_vec()),
        // From 64 kbit/s to 100 Gbit/s and from 0.1 to 600 ms, evenly by magnitude.
        rate in 16.0f64..36.6,
        rtt in 6.7f64..19.2,
    ) {
        let (rate, rtt) = (rate.exp2() as u64, rtt.exp2() as u64);
        let found = complaints(platform, rate, rtt);
        prop_assert!(found.is_empty(), "{platform} {rate} bit/s {rtt} us: {found:#?}");
    }
}
