//! How points of the crash matrix ended, and the line that says so.

/// How one point ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Every value and every byte is back.
    Restored,
    /// Not all is back, and a command said so and ended with an error.
    Named,
    /// Something was lost, and nothing said so.
    Silent,
}

/// How many points ended how.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// At so many points the command was killed or ended with an error; at the others it went on, as it may.
    pub(super) stopped: u32,
    restored: u32,
    named: Vec<String>,
    /// What was lost in silence.
    pub(super) silent: Vec<String>,
}

impl Tally {
    pub(super) fn count(&mut self, end: End, what: impl FnOnce() -> String) {
        match end {
            End::Restored => self.restored += 1,
            End::Named => self.named.push(what()),
            End::Silent => self.silent.push(what()),
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.stopped += other.stopped;
        self.restored += other.restored;
        self.named.extend(other.named);
        self.silent.extend(other.silent);
    }

    pub(super) fn print(&self, name: &str) {
        let (named, silent) = (self.named.len(), self.silent.len());
        let tried = self.restored as usize + named + silent;
        let Self { stopped, restored, .. } = self;
        println!(
            "{name:<40} {tried:>6} points ({stopped} stopped it)  {restored:>6} restored  {named:>4} named  {silent:>4} silent"
        );
        for what in self.silent.iter().take(20) {
            println!("    SILENT {what}");
        }
        for what in self.named.iter().take(3) {
            println!("    named  {what}");
        }
    }
}
