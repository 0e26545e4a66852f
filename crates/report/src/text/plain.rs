//! Text that is no report: a remark while a command runs, a list of names with their meanings.

use super::page::{Look, PLAIN, Page, TITLE};

/// A paragraph, wrapped.
pub fn paragraph(text: &str, look: Look) -> String {
    let mut page = Page::new(look);
    page.paragraph(0, PLAIN, text);
    page.finish()
}

/// Lists with a title each, of names and their meanings.
pub fn lists(lists: &[(&str, Vec<(String, String)>)], look: Look) -> String {
    let mut page = Page::new(look);
    for (title, entries) in lists {
        page.gap();
        page.paragraph(0, TITLE, &format!("{title}:"));
        let widest = entries.iter().map(|(name, _)| name.chars().count() + 2).max().unwrap_or(0);
        for (name, meaning) in entries {
            page.entry(&format!("  {name}"), widest, meaning);
        }
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let look = Look { width: 60, ..Look::default() };
        let meaning = "one two three four five six seven eight nine ten eleven twelve".to_owned();
        let list = lists(&[("Settings", vec![("receiver.window".to_owned(), meaning.clone())])], look);
        for text in [list, paragraph(&format!("{meaning} {meaning}"), look)] {
            let text = anstream::adapter::strip_str(&text).to_string();
            assert!(text.lines().count() >= 3 && text.lines().all(|line| line.chars().count() <= 60), "{text}");
        }
    }
}
