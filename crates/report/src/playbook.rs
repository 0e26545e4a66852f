//! Ansible playbooks and task files: what their sysctl tasks and command lines set, for `lint`.
//!
//! It stands in this room and not beside the other readers of recipes, because YAML needs a parser and `knobs` has as
//! many dependencies as a pure room may have. Nothing is run: of Jinja only `{{ item }}` and its parts are put in, from
//! a loop of the same task; every other expression is reported as not judged.

mod tree;

use fullpipe_knobs::{
    Address,
    recipe::{self, Action, Kind, Problem, Step},
    sysctl_conf,
};

use tree::{Node, Value};

/// The longest playbook that is read, in bytes. A tree takes many times the text.
pub const LARGEST: usize = 1 << 20;

/// The longest name or value that a loop puts together, in bytes: what the kernel takes in one write.
const LONGEST: usize = 4096;

/// How many settings are kept of one playbook: tasks and loops multiply, and no machine has as many.
const MOST_STEPS: usize = 10_000;

/// The modules that set a sysctl.
const MODULES: [&str; 3] = ["ansible.posix.sysctl", "sysctl", "ansible.builtin.sysctl"];

/// The modules that run a command line.
const SHELLS: [&str; 6] =
    ["shell", "command", "raw", "ansible.builtin.shell", "ansible.builtin.command", "ansible.builtin.raw"];

/// Whether a file is a playbook or a task file by its name.
pub fn is_playbook(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    [".yml", ".yaml"].iter().any(|extension| lower.ends_with(extension))
}

/// What the tasks of a playbook that set sysctls or run commands do, in the order of its lines, and what of them can't be read. Give both to
/// `fullpipe_knobs::lint::lint_steps` with the family `linux`.
pub fn read(text: &str) -> (Vec<Step>, Vec<Problem>) {
    if text.len() > LARGEST {
        let message = format!("the file has {} bytes; at most {LARGEST} of a playbook are read", text.len());
        return (Vec::new(), vec![Problem { line: 1, column: 1, message }]);
    }
    let documents = match tree::documents(text.trim_start_matches('\u{feff}')) {
        Ok(documents) => documents,
        Err(problem) => return (Vec::new(), vec![problem]),
    };
    let mut reader = Reader::default();
    for document in &documents {
        reader.look(document);
    }
    reader.steps.sort_by_key(|step| step.line);
    (reader.steps, reader.problems)
}

#[derive(Default)]
struct Reader {
    steps: Vec<Step>,
    problems: Vec<Problem>,
    full: bool,
}

/// The arguments of a sysctl task, each with its line.
#[derive(Default)]
struct Arguments<'a> {
    name: Option<(&'a str, u32)>,
    value: Option<(&'a str, u32)>,
    absent: bool,
}

impl Reader {
    /// Looks for tasks in a part of a document; they lie in plays, blocks and handlers.
    fn look(&mut self, node: &Node) {
        match &node.value {
            Value::Sequence(items) => items.iter().for_each(|item| self.look(item)),
            Value::Map(pairs) => {
                for (key, value) in pairs {
                    if key.text().is_some_and(|key| MODULES.contains(&key)) && is_task(value) {
                        self.task(node, key, value);
                    } else if key.text().is_some_and(|key| SHELLS.contains(&key)) {
                        self.commands(node, value);
                    } else {
                        self.look(value);
                    }
                }
            }
            Value::Scalar(_) | Value::Alias => {}
        }
    }

    fn task(&mut self, task: &Node, module: &Node, node: &Node) {
        if self.steps.len() >= MOST_STEPS {
            self.too_many(module);
            return;
        }
        let arguments = match &node.value {
            Value::Map(_) => of_map(node),
            Value::Scalar(text) => of_line(text, node.line),
            Value::Sequence(_) | Value::Alias => return,
        };
        let Some(name) = arguments.name else {
            let message = "a sysctl task without a `name`".to_owned();
            self.problems.push(Problem { line: module.line, column: module.column, message });
            return;
        };
        if !arguments.absent && arguments.value.is_none() {
            let message = format!("the task for {} has no `value`", cut(name.0));
            self.problems.push(Problem { line: module.line, column: module.column, message });
            return;
        }
        let value = arguments.value.map_or("", |(value, _)| value);
        let items = items_of(task);
        if items.is_empty() || !(name.0.contains("{{") || value.contains("{{")) {
            self.step(name.1, Some(name.0.to_owned()), Some(value.to_owned()), arguments.absent);
            return;
        }
        for item in items {
            if self.steps.len() >= MOST_STEPS {
                self.too_many(module);
                return;
            }
            self.step(item.line(), item.put_into(name.0), item.put_into(value), arguments.absent);
        }
    }

    /// A task that runs a command line or a script: what those set.
    fn commands(&mut self, task: &Node, node: &Node) {
        let given = ["cmd", "_raw_params"].iter().find_map(|name| node.get(name)).unwrap_or(node);
        let argv: Option<Vec<&str>> = match node.get("argv").map(|argv| &argv.value) {
            Some(Value::Sequence(words)) => words.iter().map(Node::text).collect(),
            _ => None,
        };
        let Some(text) = argv.map(|words| words.join(" ")).or_else(|| given.text().map(str::to_owned)) else { return };
        let items = items_of(task);
        let lines: Vec<(u32, Option<String>)> = if items.is_empty() || !text.contains("{{") {
            vec![(given.line, Some(text))]
        } else {
            items.iter().take(MOST_STEPS).map(|item| (item.line(), item.put_into(&text))).collect()
        };
        for (line, text) in lines {
            // What a template puts in is known no more than what a variable of a shell holds.
            let text = text.unwrap_or_default().replace("{{", "${").replace("}}", "}");
            let (steps, problems) = recipe::read(Kind::Script, &text);
            // A block begins on the line after its key.
            let at = |inner: u32| line.saturating_add(inner).saturating_sub(1);
            self.steps.extend(steps.into_iter().map(|step| Step { line: at(step.line), ..step }));
            self.problems.extend(problems.into_iter().map(|problem| Problem { line: at(problem.line), ..problem }));
        }
    }

    /// Tells once that the rest is left out.
    fn too_many(&mut self, module: &Node) {
        if !self.full {
            self.full = true;
            let message = format!("more than {MOST_STEPS} settings in one playbook; those from here on are not judged");
            self.problems.push(Problem { line: module.line, column: module.column, message });
        }
    }

    fn step(&mut self, line: u32, name: Option<String>, value: Option<String>, absent: bool) {
        let plain = |text: Option<String>| text.filter(|text| !text.contains("{{") && !text.contains("{%"));
        let action = match (plain(name), plain(value)) {
            (None, _) => Action::Unclear("the name of the setting comes from a variable".to_owned()),
            (Some(name), _) if absent => Action::Delete(sysctl(&name)),
            (Some(name), Some(value)) => Action::Set(sysctl(&name), value),
            (Some(name), None) => Action::Unclear(format!("the value of {} comes from a variable", cut(&name))),
        };
        self.steps.push(Step::new(line, action));
    }
}

fn sysctl(name: &str) -> Address {
    Address::Sysctl(sysctl_conf::dotted(name))
}

fn cut(name: &str) -> String {
    name.chars().take(80).collect()
}

/// Whether what stands under a module's name are its arguments: a variable may be called `sysctl` too.
fn is_task(value: &Node) -> bool {
    match &value.value {
        Value::Map(_) => ["name", "key"].iter().any(|name| value.get(name).is_some()),
        Value::Scalar(text) => text.contains("name=") || text.contains("key="),
        Value::Sequence(_) | Value::Alias => false,
    }
}

fn of_map(node: &Node) -> Arguments<'_> {
    let find = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| node.get(name))?;
        Some((found.text()?, found.line))
    };
    let absent = node.get("state").and_then(Node::text) == Some("absent");
    Arguments { name: find(["name", "key"]), value: find(["value", "val"]), absent }
}

/// The older form in one line: `sysctl: name=net.ipv4.tcp_sack value=1 state=present`.
fn of_line(text: &str, line: u32) -> Arguments<'_> {
    let mut arguments = Arguments::default();
    for word in words(text) {
        let Some((name, value)) = word.split_once('=') else { continue };
        let value = ['"', '\''].iter().find_map(|mark| value.strip_prefix(*mark)?.strip_suffix(*mark)).unwrap_or(value);
        match name {
            "name" | "key" => arguments.name = Some((value, line)),
            "value" | "val" => arguments.value = Some((value, line)),
            "state" => arguments.absent = value == "absent",
            _ => {}
        }
    }
    arguments
}

/// The words of a line; quotation marks and braces hold words together.
fn words(text: &str) -> Vec<&str> {
    let (mut words, mut start, mut quote, mut braces) = (Vec::new(), None, None, 0_u32);
    for (at, c) in text.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (_, Some(mark)) if c == mark => quote = None,
            ('{', None) => braces += 1,
            ('}', None) => braces = braces.saturating_sub(1),
            _ => {}
        }
        let between = c.is_whitespace() && quote.is_none() && braces == 0;
        match (between, start) {
            (true, Some(from)) => {
                words.extend(text.get(from..at));
                start = None;
            }
            (false, None) => start = Some(at),
            _ => {}
        }
    }
    words.extend(start.and_then(|from| text.get(from..)));
    words
}

/// One round of a task's loop.
enum Item<'a> {
    One(&'a Node),
    /// A key and its value, as `with_dict` gives them.
    Pair(&'a Node, &'a Node),
}

/// The rounds of a task's loop; none where it has no loop, or one that a variable gives.
fn items_of(task: &Node) -> Vec<Item<'_>> {
    let listed = ["loop", "with_items", "with_list"].iter().find_map(|name| task.get(name));
    if let Some(Node { value: Value::Sequence(items), .. }) = listed {
        return items.iter().map(Item::One).collect();
    }
    if let Some(Node { value: Value::Map(pairs), .. }) = task.get("with_dict") {
        return pairs.iter().map(|(key, value)| Item::Pair(key, value)).collect();
    }
    Vec::new()
}

impl Item<'_> {
    fn line(&self) -> u32 {
        match self {
            Self::One(node) | Self::Pair(node, _) => node.line,
        }
    }

    /// A text in which `{{ item }}` and its parts are replaced; `None` where the item has no such part, or the text
    /// becomes longer than any setting.
    fn put_into(&self, text: &str) -> Option<String> {
        let mut parts = Some(text).filter(|text| text.len() <= LONGEST)?.split("{{");
        let mut whole = parts.next()?.to_owned();
        for part in parts {
            let (expression, rest) = part.split_once("}}")?;
            // A filter that makes a text of a number changes nothing here.
            let expression = expression.trim();
            let expression = expression.strip_suffix("| string").unwrap_or(expression).trim();
            whole.push_str(self.part(expression).filter(|part| whole.len() + part.len() <= LONGEST)?);
            whole.push_str(rest);
        }
        Some(whole)
    }

    fn part(&self, expression: &str) -> Option<&str> {
        let rest = expression.strip_prefix("item")?;
        let name = rest.strip_prefix('.').or_else(|| {
            let inner = rest.strip_prefix('[')?.strip_suffix(']')?;
            ['"', '\''].iter().find_map(|mark| inner.strip_prefix(*mark)?.strip_suffix(*mark))
        });
        match (self, name) {
            (Self::One(node), None) if rest.is_empty() => node.text(),
            (Self::One(node), Some(name)) => node.get(name)?.text(),
            (Self::Pair(key, _), Some("key")) => key.text(),
            (Self::Pair(_, value), Some("value")) => value.text(),
            (Self::Pair(_, value), Some(name)) => value.get(name.strip_prefix("value.")?)?.text(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_knobs::{
        Family,
        lint::{LintRequest, lint_steps},
    };
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn command_lines_of_tasks_are_read_as_a_shell_script() {
        let text = "- hosts: all\n  tasks:\n    - shell: sysctl -w net.ipv4.tcp_sack=0\n    - name: two\n      ansible.builtin.command:\n        cmd: sysctl -w net.ipv4.tcp_fack={{ fack }}\n    - command:\n        argv: [sudo, sysctl, -w, net.ipv4.tcp_ecn=1]\n    - shell: sysctl -w {{ item }}\n      loop:\n        - net.ipv4.tcp_dsack=1\n    - command: ls {{ dir }}\n";
        let (steps, problems) = read(text);
        assert_eq!(problems, []);
        let found: Vec<String> = steps
            .into_iter()
            .map(|step| match step.action {
                Action::Set(knob, value) => format!("{} {knob}={value}", step.line),
                Action::Unclear(_) => format!("{} ?", step.line),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(found, ["3 net.ipv4.tcp_sack=0", "6 ?", "8 net.ipv4.tcp_ecn=1", "11 net.ipv4.tcp_dsack=1"]);
    }

    const PLAYBOOK: &str = r#"---
- hosts: all
  vars:
    sysctl:
      largest: 16777216
  tasks:
    - name: buffers
      ansible.posix.sysctl:
        name: net.ipv4.tcp_rmem
        value: "4096 131072 16777216"
        state: present
    - name: old form
      sysctl: name=net.ipv4.tcp_wmem value="4096 16384 4194304" reload=yes
    - name: loop
      sysctl:
        name: "{{ item.name }}"
        value: "{{ item.value }}"
      loop:
        - { name: net.ipv4.tcp_sack, value: 0 }
        - name: net/ipv4/tcp_timestamps
          value: '1'
    - name: dict
      ansible.posix.sysctl: { name: "{{ item.key }}", value: "{{ item.value }}" }
      with_dict:
        net.core.rmem_max: 16777216
    - block:
        - sysctl:
            key: net.ipv4.tcp_fack
            state: absent
        - sysctl:
            name: net.core.wmem_max
            value: "{{ largest }}"
        - sysctl:
            name: "{{ item }}"
            value: 1
          loop: "{{ names }}"
        - sysctl:
            name: net.core.somaxconn
"#;

    #[test]
    fn reads_the_sysctl_tasks_of_a_playbook() {
        let (steps, problems) = read(PLAYBOOK);
        let found: Vec<String> = steps
            .iter()
            .map(|step| match &step.action {
                Action::Set(knob, value) => format!("{}: {knob} = {value}", step.line),
                Action::Delete(knob) => format!("{}: {knob} deleted", step.line),
                Action::Unclear(why) => format!("{}: {why}", step.line),
                other => format!("{}: {other:?}", step.line),
            })
            .collect();
        assert_eq!(
            found,
            [
                "9: net.ipv4.tcp_rmem = 4096 131072 16777216",
                "13: net.ipv4.tcp_wmem = 4096 16384 4194304",
                "19: net.ipv4.tcp_sack = 0",
                "20: net.ipv4.tcp_timestamps = 1",
                "25: net.core.rmem_max = 16777216",
                "28: net.ipv4.tcp_fack deleted",
                "31: the value of net.core.wmem_max comes from a variable",
                "34: the name of the setting comes from a variable",
            ]
        );
        let places: Vec<(u32, u32)> = problems.iter().map(|problem| (problem.line, problem.column)).collect();
        assert_eq!(places, [(37, 11)]);
    }

    #[test]
    fn a_playbook_is_judged_like_any_recipe() {
        let (steps, problems) = read(PLAYBOOK);
        let request =
            LintRequest { platform: Some("linux-6.18".parse().unwrap()), path: None, ..LintRequest::default() };
        let findings = lint_steps(&steps, problems, Some(Family::Linux), &request, false);
        let rule = |line: u32| findings.iter().find(|finding| finding.line == line).unwrap().rule.as_str();
        assert_eq!([rule(9), rule(19), rule(31), rule(37)], ["fine", "harmful", "not-judged", "syntax"]);
    }

    #[test]
    fn what_is_no_yaml_is_a_problem_with_its_place() {
        for (text, line) in [("- b\n- a: [1, 2\n- b\n", 2), ("a: b: c\n", 1), ("- sysctl: &x {name: *y}\n", 1)] {
            let (steps, problems) = read(text);
            assert_eq!((steps.len(), problems[0].line), (0, line), "{text}: {problems:?}");
        }
        assert!(read(&"[".repeat(10_000)).1[0].message.contains("no YAML"));
        assert_eq!(read(&"a".repeat(LARGEST + 1)).1[0].line, 1);
    }

    #[test]
    fn loops_that_multiply_are_cut_off_and_named() {
        let tasks = "  sysctl: {name: '{{ item }}', value: 1}\n".repeat(10_000);
        let text = format!("- a: b\n{tasks}  loop:\n{}", "    - x.y\n".repeat(40_000));
        let (steps, problems) = read(&text);
        assert_eq!((steps.len(), problems.len(), problems[0].line), (MOST_STEPS, 1, 2));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(- |sysctl:|name: |value: |loop:|with_dict:|\\{\\{ item|\\.x| \\}\\}|\\{|\\}|\\[|\\]|name=|\"|'|&a|\\*a|<<: |\n|\n  |\n    |[a-z.]){0,40}") {
            read(&text);
        }

        #[test]
        fn any_characters_are_read_without_a_panic(text in "\\PC{0,80}") {
            read(&text);
        }
    }
}
