//! `fullpipe lint`.

use std::path::Path;

use fullpipe_knobs::{
    Family,
    lint::{Finding, Level, LintRequest, lint_steps, quote},
    recipe::{self, Kind, Problem, Step, decode},
};
use fullpipe_report::{json, playbook, text};

use super::{Ended, input::Input, printed};
use crate::{
    args::{FailOn, LintArgs},
    exit::Exit,
    failure::Failure,
    output::Output,
};

pub(super) fn run(args: &LintArgs, output: Output) -> Ended {
    let recipes = args.files.iter().map(|path| Recipe::read(path)).collect::<Result<Vec<_>, Failure>>()?;
    let mut request =
        LintRequest { platform: args.platform.clone(), path: args.rate.zip(args.rtt), ..LintRequest::default() };
    if recipes.len() > 1 {
        recipes.iter().for_each(|recipe| request.add_beside(&recipe.steps));
    }
    let files: Vec<(String, Vec<Finding>)> = recipes.into_iter().map(|recipe| recipe.judge(&request)).collect();
    match &args.sarif {
        Some(path) if path == Path::new("-") => printed(output.verbatim(&json::sarif_log(&files)))?,
        sarif => {
            if let Some(path) = sarif {
                std::fs::write(path, json::sarif_log(&files))
                    .map_err(|error| Failure::system(&format!("writing {}", path.display()), &error))?;
            }
            printed(output.result(|| json::findings("lint", &files), |look| text::findings(&files, look)))?
        }
    };
    let least = match args.fail_on {
        FailOn::Error => Level::Error,
        FailOn::Warning => Level::Warning,
        FailOn::Note => Level::Note,
    };
    let failed = files.iter().flat_map(|(_, findings)| findings).any(|finding| finding.level >= least);
    Ok(if failed { Exit::NotAsExpected } else { Exit::Ok })
}

/// A file that was read.
struct Recipe {
    name: String,
    text: String,
    /// `None`: a playbook.
    kind: Option<Kind>,
    steps: Vec<Step>,
    problems: Vec<Problem>,
}

impl Recipe {
    fn read(path: &Path) -> Result<Self, Failure> {
        let input = Input::read(path, recipe::LARGEST)?;
        let invalid = |words: String| Failure::new(Exit::InputInvalid, &format!("reading {}: {words}", input.name));
        let text = decode(&input.bytes).map_err(|error| invalid(format!("{error}; export or save it again")))?;
        let (kind, (steps, problems)) = if playbook::is_playbook(&input.name) {
            (None, playbook::read(&text))
        } else {
            let Some(kind) = Kind::from_file(&input.name, &text) else {
                return Err(invalid(
                    "nothing in it is a setting of TCP in a form that is known; give sysctl.conf, .reg, .inf, .ps1, .bat, .sh, \
                     loader.conf, rc.conf, a C source, a TuneD profile or an Ansible playbook"
                        .to_owned(),
                ));
            };
            (Some(kind), recipe::read(kind, &text))
        };
        Ok(Self { name: input.name, text, kind, steps, problems })
    }

    /// Its name, and what is said of it.
    fn judge(self, request: &LintRequest) -> (String, Vec<Finding>) {
        let family = self.kind.map_or(Some(Family::Linux), Kind::family);
        let at_start = self.kind == Some(Kind::Shell);
        let mut findings = lint_steps(&self.steps, self.problems, family, request, at_start);
        quote(&mut findings, &self.text);
        (self.name, findings)
    }
}
