//! `fullpipe completions`.

use super::{Ended, printed};
use crate::{args::CompletionsArgs, generated, output::Output};

pub(super) fn run(args: &CompletionsArgs, output: Output) -> Ended {
    printed(output.page("completions", &generated::completions(args.shell)))
}
