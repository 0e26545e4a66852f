//! What a machine took of a plan, by its settings afterwards.

use serde::Serialize;

use crate::{
    Address, Change, Plan, PlatformRequest, Settings, plan_platform,
    tuning_level::{self, Policy},
};

/// What became of one value that a plan wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Taken {
    /// The value is there.
    Yes,
    /// Another value is there, or none.
    No,
    /// The files don't tell.
    Unknown,
}

/// One value that a plan wants, and what the settings afterwards say of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Which setting.
    pub knob: Address,
    /// What the plan wants; `None` for "removed".
    pub to: Option<String>,
    /// What is there; `None` where it is absent or not listed.
    pub found: Option<String>,
    /// The verdict.
    pub taken: Taken,
    /// In a sentence.
    pub message: String,
}

/// Compares what a plan wants a machine to hold with its settings afterwards: what the plan, made from the settings of
/// `request`, changes, and what was right before it.
pub fn verify(request: &PlatformRequest<'_>, after: &Settings) -> Vec<Verified> {
    let plan = plan_platform(request);
    let changed = of_changes(&plan, after);
    let Some(before) = request.settings else { return changed };
    let with = |settings| plan_platform(&PlatformRequest { settings, ..request.clone() });
    // What a plan from the settings afterwards changes and this one does not was right before, or is new.
    let again = with(Some(after));
    let is_changed = |knob: &Address, by: &Plan| by.changes.iter().any(|change| change.knob == *knob);
    let undone = again.changes.iter().filter(|change| !is_changed(&change.knob, &plan));
    let undone = undone.filter_map(|change| undone_since(change, before, after));
    // What a plan for a machine of which nothing is known sets was right where this one does not.
    let all = with(None);
    let held = all.changes.iter().map(|change| &change.knob);
    let held = held.filter(|knob| !is_changed(knob, &plan) && !is_changed(knob, &again));
    let held = held.filter_map(|knob| still_held(knob, before, after));
    let kept: Vec<Verified> = undone.chain(held).collect();
    changed.into_iter().chain(kept).collect()
}

fn of_changes(plan: &Plan, after: &Settings) -> Vec<Verified> {
    plan.changes.iter().map(|change| of_change(change, after)).collect()
}

fn of_change(change: &Change, after: &Settings) -> Verified {
    let listed = listed(&change.knob, after);
    let found = listed.flatten().map(str::to_owned);
    let wanted = change.to.as_deref();
    let now = || found.clone().unwrap_or_else(|| "absent".to_owned());
    let (taken, message) = match listed {
        _ if matches!(change.knob, Address::Socket(_)) => (Taken::Unknown, "only the application knows".to_owned()),
        None => (Taken::Unknown, not_reported(&change.knob, after)),
        Some(_) if same(found.as_deref(), wanted) => (Taken::Yes, taken(&change.knob, after)),
        Some(_) if same(found.as_deref(), change.from.as_deref()) => {
            (Taken::No, format!("not taken: still {}; was the machine restarted, and the file accepted?", now()))
        }
        Some(_) => (Taken::No, format!("not taken: now {}, by something else", now())),
    };
    Verified { knob: change.knob.clone(), to: change.to.clone(), found, taken, message }
}

/// A value that is as the plan wants it before, and no longer is; `None` where nothing became of it in between.
fn undone_since(change: &Change, before: &Settings, after: &Settings) -> Option<Verified> {
    let (was, now) = (listed(&change.knob, before), listed(&change.knob, after));
    let found = now.flatten().map(str::to_owned);
    let shown = |value: Option<&str>| value.unwrap_or("absent").to_owned();
    let (taken, message) = match (was, now) {
        (None, None) => return None,
        (Some(_), None) => (Taken::Unknown, not_reported(&change.knob, after)),
        (Some(was), Some(now)) if same(was, now) => return None,
        (Some(was), Some(now)) => {
            (Taken::No, format!("undone: was {}, as the plan wants it, and is {} now", shown(was), shown(now)))
        }
        (None, Some(now)) => (Taken::No, format!("not as planned: {} now; the files before don't have it", shown(now))),
    };
    Some(Verified { knob: change.knob.clone(), to: change.to.clone(), found, taken, message })
}

/// A value that the plan left alone because it was right; `None` where the files before don't have it.
fn still_held(knob: &Address, before: &Settings, after: &Settings) -> Option<Verified> {
    let was = listed(knob, before)??.to_owned();
    let now = listed(knob, after);
    let (taken, message) = match now {
        None => (Taken::Unknown, not_reported(knob, after)),
        Some(now) if same(now, Some(&was)) => (Taken::Yes, "as before, and as the plan wants it".to_owned()),
        Some(_) => (Taken::Yes, format!("was {was}; both are as the plan wants it")),
    };
    let found = now.flatten().map(str::to_owned);
    Some(Verified { knob: knob.clone(), to: Some(was), found, taken, message })
}

/// What settings have, under the name of the change or under the one that another file has for it; `Some(None)` is absent.
fn listed<'a>(knob: &Address, settings: &'a Settings) -> Option<Option<&'a str>> {
    let by_name = settings.values.get(knob).map(Option::as_deref);
    let level = || tuning_level::local(settings).filter(|_| *knob == tuning_level::for_all());
    // What an export of the whole key doesn't have is not there.
    let exported = |key: &str| settings.keys.iter().any(|whole| whole.eq_ignore_ascii_case(key));
    let absent = || matches!(knob, Address::Registry { key, .. } if exported(key)).then_some(None);
    by_name.or_else(|| level().map(Some)).or_else(absent)
}

fn taken(knob: &Address, after: &Settings) -> String {
    let overruled = *knob == tuning_level::for_all() && Policy::in_force(after).is_some();
    let but = if overruled { ", but Group Policy sets the level and wins over it" } else { "" };
    format!("taken{but}")
}

/// Why the settings afterwards don't show a change.
fn not_reported(knob: &Address, after: &Settings) -> String {
    match adapter(knob) {
        Some(name) if after.values.keys().all(|other| adapter(other) != Some(name)) => format!(
            "the files after it have nothing of the adapter {name}: it is gone, has another name now, or they were saved without it"
        ),
        _ => "the files after it don't have this setting".to_owned(),
    }
}

/// The adapter that a setting belongs to: its name, or its GUID in the registry.
fn adapter(knob: &Address) -> Option<&str> {
    match knob {
        Address::Link { device, .. } => Some(device),
        Address::Registry { key, .. } => key.split('\\').find(|part| part.starts_with('{') && part.ends_with('}')),
        _ => None,
    }
}

/// Whether two values are one, whatever their spelling: `0x10` and `16`, `Normal` and `normal`.
fn same(a: Option<&str>, b: Option<&str>) -> bool {
    let number = |text: &str| crate::value::number(text);
    match (a, b) {
        (Some(a), Some(b)) => match (number(a), number(b)) {
            (Some(a), Some(b)) => a == b,
            _ => a.split_whitespace().eq_ignore_case(b.split_whitespace()),
        },
        (None, None) => true,
        _ => false,
    }
}

/// Words that are the same but for their case.
trait EqIgnoreCase: Sized {
    fn eq_ignore_case(self, other: Self) -> bool;
}

impl<'a, I: Iterator<Item = &'a str>> EqIgnoreCase for I {
    fn eq_ignore_case(mut self, mut other: Self) -> bool {
        loop {
            match (self.next(), other.next()) {
                (None, None) => return true,
                (Some(a), Some(b)) if a.eq_ignore_ascii_case(b) => {}
                _ => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TakesEffect;

    fn request<'a>(platform: &str, rate: &str, rtt: &str, before: &'a Settings) -> PlatformRequest<'a> {
        let path = (rate.parse().unwrap(), rtt.parse().unwrap());
        let any = PlatformRequest::new(platform.parse().unwrap(), path.0, path.1);
        PlatformRequest { settings: Some(before), ..any }
    }

    #[test]
    fn what_was_right_before_is_verified_like_what_is_changed() {
        const KEY: &str = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
        let settings = |values: &[(&str, &str)], whole: bool| {
            let mut settings = Settings::default();
            for (name, value) in values {
                let knob = Address::Registry { key: KEY.to_owned(), value: (*name).to_owned() };
                settings.values.insert(knob, Some((*value).to_owned()));
            }
            settings.keys.extend(whole.then(|| KEY.to_owned()));
            settings
        };
        let right = [("TcpWindowSize", "64240"), ("GlobalMaxTcpWindowSize", "64240")];
        let before = settings(&right, true);
        let of = |values: &[(&str, &str)], whole| {
            let found = verify(&request("windows-xp", "1.8M", "230ms", &before), &settings(values, whole));
            let of_window = |one: &&Verified| one.knob.to_string().ends_with(r"\TcpWindowSize");
            let window = found.iter().find(of_window).cloned().unwrap();
            (window.taken, window.message, found.len())
        };
        let (taken, message, count) = of(&right, true);
        assert_eq!((taken, count), (Taken::Yes, 2), "{message}");
        let (taken, message, _) = of(&[("TcpWindowSize", "17520"), right[1]], true);
        assert_eq!(taken, Taken::No);
        assert!(message.contains("undone: was 64240") && message.contains("is 17520 now"), "{message}");
        // An export of the key tells that it is not there; a file of a few lines doesn't.
        let (taken, message, _) = of(&right[1..], true);
        assert!(taken == Taken::No && message.contains("is absent now"), "{message}");
        assert_eq!(of(&right[1..], false).0, Taken::Unknown);
        // What was not there, as it should be, and is there now.
        let found = verify(
            &request("windows-xp", "1.8M", "230ms", &before),
            &settings(&[right[0], right[1], ("SackOpts", "0")], true),
        );
        let sack = found.iter().find(|one| one.knob.to_string().ends_with("SackOpts")).unwrap();
        assert!(sack.taken == Taken::No && sack.message.contains("was absent"), "{sack:?}");
    }

    #[test]
    fn an_adapter_that_is_gone_is_named() {
        let knob = |guid: &str| -> Address {
            let key = r"registry HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\{";
            format!("{key}{guid}}}\\TcpWindowSize").parse().unwrap()
        };
        let to = || Some("64240".to_owned());
        let plan = Plan {
            changes: vec![
                Change::unexplained("a".to_owned(), knob("AA"), None, to()),
                Change::unexplained(
                    "a".to_owned(),
                    "link Ethernet 2 *RSS".parse().unwrap(),
                    None,
                    Some("1".to_owned()),
                ),
            ],
            notes: Vec::new(),
        };
        let mut after = Settings::default();
        after.values.insert(knob("BB"), to());
        let found = of_changes(&plan, &after);
        assert!(found.iter().all(|one| one.taken == Taken::Unknown), "{found:?}");
        assert!(found[0].message.contains("nothing of the adapter {AA}"), "{found:?}");
        assert!(found[1].message.contains("nothing of the adapter Ethernet 2"), "{found:?}");
    }

    #[test]
    fn a_level_that_templates_told_before_is_verified_by_the_templates_afterwards() {
        let template = |parameter: &str| Address::tcp_setting("Internet", parameter);
        let settings = |level: &str| {
            let mut settings = Settings::default();
            settings.values.insert(template("AutoTuningLevelLocal"), Some(level.to_owned()));
            settings
        };
        let before = settings("Restricted");
        let of = |after: &Settings| verify(&request("windows-2022", "1G", "80ms", &before), after)[0].clone();
        assert_eq!(of(&settings("Normal")).taken, Taken::Yes);
        let still = of(&before);
        assert_eq!(still.taken, Taken::No);
        assert!(still.message.contains("not taken: still Restricted"), "{still:?}");
        assert_eq!(of(&Settings::default()).taken, Taken::Unknown);
        let mut ruled = settings("Normal");
        ruled.values.insert(template("AutoTuningLevelEffective"), Some("GroupPolicy".to_owned()));
        assert!(of(&ruled).message.contains("Group Policy"), "{:?}", of(&ruled));
    }

    #[test]
    fn what_was_taken_is_told_from_what_was_not() {
        let change = |name: &str, from: Option<&str>, to: Option<&str>| Change {
            host: "a".to_owned(),
            knob: Address::sysctl(name),
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
            reason: String::new(),
            arithmetic: String::new(),
            memory_worst_case: None,
            takes_effect: TakesEffect::Restart,
            undo: String::new(),
            source: String::new(),
        };
        let mut after = Settings::default();
        for (name, value) in [("a.a", Some("0xfaf0")), ("a.b", Some("17520")), ("a.c", None), ("a.d", Some("1"))] {
            after.values.insert(Address::sysctl(name), value.map(str::to_owned));
        }
        let plan = Plan {
            changes: vec![
                change("a.a", None, Some("64240")),
                change("a.b", Some("17520"), Some("128480")),
                change("a.c", Some("5"), None),
                change("a.d", Some("0"), Some("2")),
                change("a.e", None, Some("1")),
            ],
            notes: Vec::new(),
        };
        let found = of_changes(&plan, &after);
        let taken: Vec<Taken> = found.iter().map(|verified| verified.taken).collect();
        assert_eq!(taken, [Taken::Yes, Taken::No, Taken::Yes, Taken::No, Taken::Unknown]);
        assert!(found[1].message.contains("still 17520") && found[3].message.contains("now 1"), "{found:?}");
    }
}
