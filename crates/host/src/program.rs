//! What a program of the system answered. What is *not* here: running it, which is each platform's own.

/// What a program answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// It ended without an error.
    pub success: bool,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it complained.
    pub stderr: Vec<u8>,
}

impl Output {
    /// What went wrong, in one short line fit for a terminal.
    pub(crate) fn complaint(&self) -> String {
        let bytes = if self.stderr.trim_ascii().is_empty() { &self.stdout } else { &self.stderr };
        let text: String =
            String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() { "it gave no answer".to_owned() } else { text }
    }
}

impl From<std::process::Output> for Output {
    fn from(output: std::process::Output) -> Self {
        Self { success: output.status.success(), stdout: output.stdout, stderr: output.stderr }
    }
}
