//! An error for a terminal.

use super::page::{BAD, Look, Page};
use crate::Problem;

/// `error:` with its message, and what to do about it.
pub fn problem(problem: &Problem, look: Look) -> String {
    let mut page = Page::new(look);
    page.marked("error", BAD, &problem.message);
    if let Some(hint) = &problem.hint {
        page.marked("hint", super::page::TITLE, hint);
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_what_to_do() {
        let refused = Problem {
            kind: "refused",
            message: "connect to far.example port 5201: connection refused".to_owned(),
            hint: Some("start `fullpipe serve` there, or name another port: far.example:5301".to_owned()),
        };
        let text = anstream::adapter::strip_str(&problem(&refused, Look::default())).to_string();
        assert_eq!(
            text,
            "error: connect to far.example port 5201: connection refused\n\
             hint: start `fullpipe serve` there, or name another port: far.example:5301\n"
        );
    }
}
