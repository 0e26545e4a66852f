//! A YAML text as a tree whose parts know their line. Aliases stay aliases: nothing is multiplied by them.

use fullpipe_knobs::recipe::Problem;
use granit_parser::{Event, Options, Parser, Span};

/// How deep collections may lie in one another; a playbook with blocks in blocks has about 12 levels.
const DEEPEST: usize = 64;

pub(super) struct Node {
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) value: Value,
}

pub(super) enum Value {
    Scalar(String),
    Map(Vec<(Node, Node)>),
    Sequence(Vec<Node>),
    /// Stands for a part that has a name elsewhere.
    Alias,
}

/// A collection that is not closed yet.
struct Open {
    node: Node,
    /// The key whose value is still to come.
    key: Option<Node>,
}

/// The documents of a text.
pub(super) fn documents(text: &str) -> Result<Vec<Node>, Problem> {
    let mut options = Options::default();
    options.flow_nesting_limit = DEEPEST;
    options.block_nesting_limit = DEEPEST;
    options.set_emit_comments(false);
    let mut documents = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| {
            let marker = *error.marker();
            problem(marker.line(), marker.col(), format!("no YAML: {}", error.info()))
        })?;
        let done = match event {
            Event::Scalar(text, ..) => node(&span, Value::Scalar(text.into_owned())),
            Event::Alias(_) | Event::UnresolvedAlias(_) => node(&span, Value::Alias),
            Event::SequenceStart(..) => {
                open.push(Open { node: node(&span, Value::Sequence(Vec::new())), key: None });
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open { node: node(&span, Value::Map(Vec::new())), key: None });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(closed) => closed.node,
                None => continue,
            },
            _ => continue,
        };
        match open.last_mut() {
            None => documents.push(done),
            Some(Open { node: Node { value: Value::Sequence(items), .. }, .. }) => items.push(done),
            Some(Open { node: Node { value: Value::Map(pairs), .. }, key }) => match key.take() {
                Some(key) => pairs.push((key, done)),
                None => *key = Some(done),
            },
            // Only collections are ever open.
            Some(_) => {}
        }
    }
    Ok(documents)
}

fn node(span: &Span, value: Value) -> Node {
    Node { line: count(span.start.line()), column: count(span.start.col()).saturating_add(1), value }
}

fn problem(line: usize, column: usize, message: String) -> Problem {
    Problem { line: count(line).max(1), column: count(column).saturating_add(1), message }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl Node {
    pub(super) fn text(&self) -> Option<&str> {
        if let Value::Scalar(text) = &self.value { Some(text) } else { None }
    }

    /// The value of a key of a mapping.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let Value::Map(pairs) = &self.value else { return None };
        pairs.iter().find(|(key, _)| key.text() == Some(name)).map(|(_, value)| value)
    }
}
