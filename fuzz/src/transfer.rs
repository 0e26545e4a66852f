//! Transfers as a peer or a file may tell them, and what the judge makes of them.

use arbitrary::{Arbitrary, Unstructured};
use fullpipe_diagnose::{Transfer, diagnose, diagnose_streams, held_share};
use serde_json::Value;

/// Genuine transfers, shortened, whose values are replaced.
const TEMPLATES: [&str; 2] = [include_str!("../templates/receive-window.json"), include_str!("../templates/loss.json")];

/// A transfer as JSON, or bytes that replace values of a genuine one.
pub fn transfer(data: &[u8]) {
    let value = serde_json::from_slice(data).ok().or_else(|| changed(data));
    let Some(value) = value else { return };
    let Ok(transfer) = serde_json::from_value::<Transfer>(value) else { return };
    judge(&transfer);
}

/// What must hold of every judgement.
pub(crate) fn judge(transfer: &Transfer) {
    let diagnosis = diagnose(transfer);
    for share in diagnosis.shares.values().chain([&diagnosis.share]) {
        assert!((0.0..=1.000_001).contains(share), "share {share}: {diagnosis:?}");
    }
    assert!(!diagnosis.action.is_empty(), "{diagnosis:?}");
    assert!((0.0..=1.000_001).contains(&held_share(transfer)));
    let _several = diagnose_streams(&[transfer.clone(), transfer.clone()]);
}

/// A template, some of whose leaves are others: every leaf takes a byte, which says whether and how.
pub(crate) fn changed(data: &[u8]) -> Option<Value> {
    let (pick, rest) = data.split_first()?;
    let mut value = serde_json::from_str(TEMPLATES.get(usize::from(*pick)).or(TEMPLATES.first())?).ok()?;
    change(&mut value, &mut Unstructured::new(rest));
    Some(value)
}

pub(crate) fn change(value: &mut Value, input: &mut Unstructured<'_>) {
    match value {
        Value::Array(items) => {
            if u8::arbitrary(input).is_ok_and(|byte| byte == 255) {
                items.truncate(usize::from(u8::arbitrary(input).unwrap_or(0)));
            }
            items.iter_mut().for_each(|item| change(item, input));
        }
        Value::Object(map) => map.values_mut().for_each(|item| change(item, input)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            if let Some(other) = leaf(value, input) {
                *value = other;
            }
        }
    }
}

/// Another leaf; `None` where it stays.
fn leaf(old: &Value, input: &mut Unstructured<'_>) -> Option<Value> {
    let number = old.as_u64().unwrap_or(0);
    Some(match u8::arbitrary(input).ok()? {
        1 => Value::Null,
        2 => 0.into(),
        3 => u64::MAX.into(),
        4 => u64::arbitrary(input).ok()?.into(),
        5 => u32::arbitrary(input).ok()?.into(),
        6 => u8::arbitrary(input).ok()?.into(),
        7 => number.saturating_add(u64::from(u16::arbitrary(input).ok()?)).into(),
        8 => number.saturating_sub(u64::from(u16::arbitrary(input).ok()?)).into(),
        9 => number.saturating_mul(u64::from(u8::arbitrary(input).ok()?)).into(),
        10 => f64::arbitrary(input).ok()?.into(),
        11 => bool::arbitrary(input).ok()?.into(),
        12 => String::arbitrary(input).ok()?.into(),
        _ => return None,
    })
}
