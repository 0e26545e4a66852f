//! `fullpipe lint`.

use std::path::Path;

use fullpipe_knobs::{
    Family,
    lint::{Finding, Level, LintRequest, lint, lint_steps, quote},
    recipe::{self, Kind, decode},
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
    let request = LintRequest { platform: args.platform.clone(), path: args.rate.zip(args.rtt) };
    let judge = |path: &std::path::PathBuf| judge(path, &request);
    let files = args.files.iter().map(judge).collect::<Result<Vec<_>, Failure>>()?;
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

fn judge(path: &Path, request: &LintRequest) -> Result<(String, Vec<Finding>), Failure> {
    let input = Input::read(path, recipe::LARGEST)?;
    let invalid = |words: String| Failure::new(Exit::InputInvalid, &format!("reading {}: {words}", input.name));
    let text = decode(&input.bytes).map_err(|error| invalid(format!("{error}; export or save it again")))?;
    if playbook::is_playbook(&input.name) {
        let (steps, problems) = playbook::read(&text);
        let mut findings = lint_steps(&steps, problems, Some(Family::Linux), request);
        quote(&mut findings, &text);
        return Ok((input.name, findings));
    }
    let Some(kind) = Kind::from_file(&input.name, &text) else {
        return Err(invalid(
            "nothing in it is a setting of TCP in a form that is known; give sysctl.conf, .reg, .inf, .ps1, .bat, .sh, \
             loader.conf, rc.conf, a C source, a TuneD profile or an Ansible playbook"
                .to_owned(),
        ));
    };
    let findings = lint(kind, &text, request);
    Ok((input.name, findings))
}
