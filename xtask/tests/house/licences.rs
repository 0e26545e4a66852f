//! Every dependency may be shipped with a program that is MIT OR Apache-2.0, and comes from crates.io: what `deny.toml`
//! says, checked without a network. Advisories need one (`xtask/src/check/advisories.rs`).

use std::{collections::BTreeSet, fs};

use cargo_metadata::{Metadata, MetadataCommand};
use serde::Deserialize;
use spdx::{Expression, LicenseReq, ParseMode};

use super::root;

#[derive(Deserialize)]
struct Deny {
    licenses: Licences,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
}

/// What `deny.toml` allows, each as the one requirement of its expression.
fn allowed() -> Vec<LicenseReq> {
    let deny: Deny = toml::from_str(&fs::read_to_string(root().join("deny.toml")).expect("deny.toml can be read"))
        .expect("deny.toml is TOML");
    let requirement = |text: &String| {
        let expression = Expression::parse(text).unwrap_or_else(|error| panic!("deny.toml: {text}: {error}"));
        let mut requirements = expression.requirements();
        requirements.next().expect("an expression has a requirement").req.clone()
    };
    deny.licenses.allow.iter().map(requirement).collect()
}

/// Why a licence can't be accepted.
fn refusal(licence: Option<&str>, allowed: &[LicenseReq]) -> Option<String> {
    let Some(licence) = licence else { return Some("no licence expression".to_owned()) };
    // Old packages write a slash for OR.
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(expression) if expression.evaluate(|wanted| allowed.contains(wanted)) => None,
        Ok(_) => Some(format!("`{licence}` is not allowed by deny.toml")),
        Err(error) => Some(format!("`{licence}`: {error}")),
    }
}

fn metadata() -> Metadata {
    let options = ["--locked".to_owned()];
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .other_options(options)
        .exec()
        .expect("cargo metadata works")
}

#[test]
fn every_dependency_has_a_licence_that_is_allowed_and_comes_from_the_registry() {
    let allowed = allowed();
    let mut wrong = BTreeSet::new();
    let metadata = metadata();
    // What is not ours.
    let foreign = metadata.packages.iter().filter(|package| package.source.is_some());
    for package in foreign {
        let named = |why: String| format!("{} {}: {why}", package.name, package.version);
        wrong.extend(refusal(package.license.as_deref(), &allowed).map(named));
        let source = package.source.as_ref().map(ToString::to_string).unwrap_or_default();
        if source != "registry+https://github.com/rust-lang/crates.io-index" {
            wrong.insert(named(format!("it comes from {source}")));
        }
    }
    // A path outside of the repository has no source, either.
    let outside = metadata.packages.iter().filter(|package| !package.manifest_path.starts_with(root()));
    wrong.extend(
        outside
            .filter(|package| package.source.is_none())
            .map(|package| format!("{}: it lies outside of the repository", package.name)),
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_licence_that_binds_others_is_refused() {
    let allowed = allowed();
    for licence in ["MIT OR Apache-2.0", "MIT/Apache-2.0", "GPL-3.0-only OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"]
    {
        assert_eq!(refusal(Some(licence), &allowed), None, "{licence}");
    }
    for licence in ["GPL-3.0-only", "MIT AND AGPL-3.0-only", "LGPL-2.1-or-later", "Apache-2.0 WITH GCC-exception-3.1"] {
        assert!(refusal(Some(licence), &allowed).is_some(), "{licence}");
    }
    assert!(refusal(None, &allowed).is_some());
    assert!(refusal(Some("as you like"), &allowed).is_some());
}
