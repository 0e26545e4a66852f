//! What a source file does, read as Rust and not as lines: which paths its code names, imports resolved, and where it is
//! unsafe.

use std::{collections::BTreeMap, fs, path::Path};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{
    Attribute, ImplItem, Item, Meta, UseTree,
    spanned::Spanned,
    visit::{self, Visit},
};

/// Something at a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The line, from 1 on.
    pub(crate) line: usize,
    /// A path such as `std::fs::read`, or what is unsafe.
    pub(crate) what: String,
}

/// What one file does outside of its tests.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// Every path that is named, from its crate on where an import or the path itself tells it.
    pub(crate) paths: Vec<Found>,
    /// Unsafe blocks, functions, traits, implementations, foreign functions and attributes; tests too.
    pub(crate) unsafe_code: Vec<Found>,
}

/// Reads a file.
pub(crate) fn read(file: &Path) -> Code {
    parse(&fs::read_to_string(file).expect("a source file can be read"))
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn parse(text: &str) -> syn::Result<Code> {
    let file = syn::parse_file(text)?;
    let mut imports = Imports::default();
    imports.visit_file(&file);
    let mut reader = Reader { names: imports.names, in_tests: 0, code: Code::default() };
    reader.visit_file(&file);
    Ok(reader.code)
}

/// What each imported name stands for, wherever in the file it is imported.
#[derive(Default)]
struct Imports {
    names: BTreeMap<String, String>,
}

impl Visit<'_> for Imports {
    fn visit_item_use(&mut self, import: &syn::ItemUse) {
        flatten(&import.tree, "", &mut |path, name| {
            self.names.insert(name.to_owned(), path.to_owned());
        });
    }

    fn visit_item_extern_crate(&mut self, import: &syn::ItemExternCrate) {
        if let Some((_, name)) = &import.rename {
            self.names.insert(name.to_string(), import.ident.to_string());
        }
    }
}

/// How many names may stand for one another before a path is read as it is.
const MOST_NAMES: usize = 8;

/// The path from its crate on: `s::fs` is `std::fs` where `s` stands for `std`.
fn resolve(names: &BTreeMap<String, String>, path: &str) -> String {
    let mut path = path.to_owned();
    for _ in 0..MOST_NAMES {
        let (first, rest) = path.split_once("::").map_or((path.as_str(), None), |(first, rest)| (first, Some(rest)));
        let Some(full) = names.get(first) else { break };
        // `use one::one` says nothing of where the first one is.
        if full.split("::").next() == Some(first) {
            break;
        }
        path = rest.map_or_else(|| full.clone(), |rest| format!("{full}::{rest}"));
    }
    path
}

/// Calls `found` with each full path of an import and the name that it has here.
fn flatten(tree: &UseTree, before: &str, found: &mut impl FnMut(&str, &str)) {
    let join = |ident: &syn::Ident| if before.is_empty() { ident.to_string() } else { format!("{before}::{ident}") };
    match tree {
        UseTree::Path(path) => flatten(&path.tree, &join(&path.ident), found),
        UseTree::Name(name) if name.ident == "self" => found(before, before.rsplit("::").next().unwrap_or(before)),
        UseTree::Name(name) => found(&join(&name.ident), &name.ident.to_string()),
        UseTree::Rename(rename) if rename.ident == "self" => found(before, &rename.rename.to_string()),
        UseTree::Rename(rename) => found(&join(&rename.ident), &rename.rename.to_string()),
        UseTree::Glob(_) => found(&format!("{before}::*"), "*"),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, found)),
    }
}

struct Reader {
    names: BTreeMap<String, String>,
    /// How many items of tests this is within.
    in_tests: usize,
    code: Code,
}

impl Reader {
    fn unsafe_at(&mut self, span: Span, what: &str) {
        self.code.unsafe_code.push(Found { line: span.start().line, what: what.to_owned() });
    }

    fn names(&mut self, span: Span, path: &str) {
        if self.in_tests > 0 {
            return;
        }
        let what = resolve(&self.names, path);
        self.code.paths.push(Found { line: span.start().line, what });
    }

    /// What stands between the brackets of a macro is not parsed: its words are.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = String::new();
        let mut start = None;
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match &token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) if ident == "unsafe" => self.unsafe_at(ident.span(), "unsafe in a macro"),
                TokenTree::Ident(ident) => {
                    path.push_str(&ident.to_string());
                    start.get_or_insert_with(|| ident.span());
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && start.is_some() => path.push(':'),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            let goes_on = |next: &TokenTree| match (&token, next) {
                (TokenTree::Ident(_), TokenTree::Punct(punct)) => punct.as_char() == ':',
                (TokenTree::Punct(one), TokenTree::Punct(two)) => one.as_char() == ':' && two.as_char() == ':',
                (TokenTree::Punct(one), TokenTree::Ident(_)) => one.as_char() == ':' && path.ends_with("::"),
                _ => false,
            };
            if !tokens.peek().is_some_and(goes_on)
                && let Some(span) = start.take()
            {
                let named = std::mem::take(&mut path);
                self.names(span, named.trim_end_matches(':'));
            }
        }
    }
}

/// Whether the words of a `cfg_attr` hold `unsafe(..)`, or switch the lint off.
fn is_unsafe_attribute(tokens: TokenStream) -> bool {
    let mut before = String::new();
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => {
            before = ident.to_string();
            before == "unsafe"
        }
        TokenTree::Group(group) => {
            let lowers = before == "allow" || before == "expect";
            (lowers && group.stream().into_iter().any(|word| word.to_string() == "unsafe_code"))
                || is_unsafe_attribute(group.stream())
        }
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => {
            let words = list.tokens.to_string();
            list.path.is_ident("cfg")
                && (words == "test" || words.starts_with("all (test") || words.starts_with("all(test"))
        }
        Meta::NameValue(_) => false,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let test = usize::from(is_test(attributes(item)));
        self.in_tests += test;
        visit::visit_item(self, item);
        self.in_tests -= test;
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let test = usize::from(matches!(item, ImplItem::Fn(function) if is_test(&function.attrs)));
        self.in_tests += test;
        visit::visit_impl_item(self, item);
        self.in_tests -= test;
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        let mut all = Vec::new();
        flatten(&import.tree, "", &mut |path, _| all.push(path.to_owned()));
        if self.in_tests == 0 {
            let line = import.span().start().line;
            let names = &self.names;
            self.code.paths.extend(all.iter().map(|path| Found { line, what: resolve(names, path) }));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.names(path.span(), &segments.join("::"));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        // `env!` and its like read nothing when the program runs.
        self.tokens(invoked.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let words = match &attribute.meta {
            Meta::List(list) => format!("{} {}", list.path.segments[0].ident, list.tokens),
            _ => String::new(),
        };
        // `#[unsafe(no_mangle)]`, and what switches the lint off.
        let lowers = words.starts_with("allow ") || words.starts_with("expect ");
        let hidden = matches!(&attribute.meta, Meta::List(list)
            if list.path.is_ident("cfg_attr") && is_unsafe_attribute(list.tokens.clone()));
        if words.starts_with("unsafe ") || (lowers && words.contains("unsafe_code")) || hidden {
            self.unsafe_at(attribute.span(), &format!("#[{words}]"));
        }
    }

    fn visit_expr_unsafe(&mut self, block: &'ast syn::ExprUnsafe) {
        self.unsafe_at(block.span(), "a block");
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if matches!(signature.safety, syn::Safety::Unsafe(_)) {
            self.unsafe_at(signature.span(), "a function");
        }
        visit::visit_signature(self, signature);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if item.unsafety.is_some() {
            self.unsafe_at(item.span(), "an implementation");
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        if item.unsafety.is_some() {
            self.unsafe_at(item.span(), "a trait");
        }
        visit::visit_item_trait(self, item);
    }

    fn visit_item_foreign_mod(&mut self, item: &'ast syn::ItemForeignMod) {
        self.unsafe_at(item.span(), "foreign functions");
        visit::visit_item_foreign_mod(self, item);
    }
}

#[test]
fn paths_are_read_through_groups_and_other_names() {
    let text = "
        use std::{fs as files, net::{self, TcpStream}, time::Instant as Clock};
        fn f() { files::read(\"x\"); net::UdpSocket::bind(1); Clock::now(); println!(\"{}\", std::process::id()); }
        #[cfg(test)]
        mod tests { fn g() { std::env::args(); } }";
    let code = parse(text).unwrap();
    let all: Vec<&str> = code.paths.iter().map(|found| found.what.as_str()).collect();
    for path in ["std::fs::read", "std::net::UdpSocket::bind", "std::time::Instant::now", "std::process::id"] {
        assert!(all.contains(&path), "{path}: {all:?}");
    }
    assert!(!all.iter().any(|path| path.starts_with("std::env")), "{all:?}");
}

#[test]
fn a_name_that_stands_for_another_is_followed() {
    for text in [
        "use std as s; use s::fs; fn f() { fs::read(\"x\"); }",
        "extern crate std as s; fn f() { s::fs::read(\"x\"); }",
        "use {std as s, s as t}; fn f() { t::fs::read(\"x\"); }",
    ] {
        let paths = parse(text).unwrap().paths;
        assert!(paths.iter().any(|found| found.what == "std::fs::read"), "{text}: {paths:?}");
    }
    let circle = parse("use {a as b, b as a, c::c}; fn f() { a::d(); c::d(); }").unwrap();
    assert!(circle.paths.iter().any(|found| found.what == "c::d"), "{:?}", circle.paths);
}

#[test]
fn unsafe_is_found_in_every_form() {
    for text in [
        "fn f() { unsafe { g() } }",
        "unsafe fn f() {}",
        "unsafe impl Send for X {}",
        "unsafe trait T {}",
        "unsafe extern \"C\" { fn f(); }",
        "#[unsafe(no_mangle)] fn f() {}",
        "#[allow(unsafe_code)] fn f() {}",
        "#[cfg_attr(unix, unsafe(no_mangle))] fn f() {}",
        "#[cfg_attr(unix, expect(unsafe_code, reason = \"\"))] fn f() {}",
        "impl X { unsafe fn f() {} }",
        "fn f() { dbg!(unsafe { g() }); }",
        "macro_rules! m { () => { unsafe { g() } } }",
    ] {
        assert!(!parse(text).unwrap().unsafe_code.is_empty(), "{text}");
    }
    assert!(parse("#[cfg_attr(unix, deny(unsafe_code))] fn f() {}").unwrap().unsafe_code.is_empty());
    assert!(parse("/// unsafe { }\nfn is_unsafe() { let text = \"unsafe {\"; }").unwrap().unsafe_code.is_empty());
}
