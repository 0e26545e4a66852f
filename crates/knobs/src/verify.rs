//! What a machine took of a plan, by its settings afterwards.

use serde::Serialize;

use crate::{
    Address, Change, Plan, Settings,
    tuning_level::{self, Policy},
};

/// What became of one change.
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

/// One change and what the settings afterwards say of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Which setting.
    pub knob: Address,
    /// What was planned; `None` for "removed".
    pub to: Option<String>,
    /// What is there; `None` where it is absent or not listed.
    pub found: Option<String>,
    /// The verdict.
    pub taken: Taken,
    /// In a sentence.
    pub message: String,
}

/// Compares a plan, made from the settings before, with the settings after it was applied.
pub fn verify(plan: &Plan, after: &Settings) -> Vec<Verified> {
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

/// What the settings afterwards have, under the name of the change or under the one that another file has for it;
/// `Some(None)` is absent.
fn listed<'a>(knob: &Address, after: &'a Settings) -> Option<Option<&'a str>> {
    let by_name = after.values.get(knob).map(Option::as_deref);
    let level = || tuning_level::local(after).filter(|_| *knob == tuning_level::for_all());
    by_name.or_else(|| level().map(Some))
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
        let found = verify(&plan, &after);
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
        let plan = crate::plan_platform(&crate::PlatformRequest {
            settings: Some(&before),
            ..crate::PlatformRequest::new(
                "windows-2022".parse().unwrap(),
                "1G".parse().unwrap(),
                "80ms".parse().unwrap(),
            )
        });
        let of = |after: &Settings| verify(&plan, after)[0].clone();
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
        let found = verify(&plan, &after);
        let taken: Vec<Taken> = found.iter().map(|verified| verified.taken).collect();
        assert_eq!(taken, [Taken::Yes, Taken::No, Taken::Yes, Taken::No, Taken::Unknown]);
        assert!(found[1].message.contains("still 17520") && found[3].message.contains("now 1"), "{found:?}");
    }
}
