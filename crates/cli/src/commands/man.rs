//! `fullpipe man`.

use super::{Ended, printed};
use crate::{args::ManArgs, failure::Failure, generated, output::Output};

pub(super) fn run(args: &ManArgs, output: Output) -> Ended {
    match &args.dir {
        None => {
            let page = generated::man_page().map_err(|error| Failure::system("rendering the page", &error))?;
            printed(output.page("man", &page))
        }
        Some(dir) => {
            let pages = generated::man_pages(dir)
                .map_err(|error| Failure::system(&format!("writing manual pages into {}", dir.display()), &error))?;
            printed(output.page("man", &format!("{pages} pages written into {}\n", dir.display())))
        }
    }
}
