//! How busy the processors of this machine are, and this process on them.

use std::fs;

/// The counters of each processor at one moment (`/proc/stat`), in clock ticks.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuClock(Vec<Ticks>);

#[derive(Clone, Copy, Debug)]
struct Ticks {
    busy: u64,
    all: u64,
}

impl CpuClock {
    /// Empty where `/proc` can't be read.
    pub(crate) fn now() -> Self {
        fs::read_to_string("/proc/stat").map(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// How busy the busiest processor was since `earlier`, 0 to 1, by whatever programs of normal priority or above.
    pub(crate) fn busiest_since(&self, earlier: &Self) -> Option<f64> {
        let share = |(now, before): (&Ticks, &Ticks)| {
            let all = now.all.checked_sub(before.all).filter(|&all| all > 0)?;
            Some(now.busy.saturating_sub(before.busy) as f64 / all as f64)
        };
        self.0.iter().zip(&earlier.0).filter_map(share).max_by(f64::total_cmp)
    }

    fn parse(text: &str) -> Self {
        // `cpu0 user nice system idle iowait irq softirq steal guest guest_nice`; user and nice contain the guests.
        let processor = |line: &str| {
            let (name, counters) = line.split_once(' ')?;
            name.strip_prefix("cpu")?.parse::<u32>().ok()?;
            let ticks: Vec<u64> = counters.split_ascii_whitespace().take(8).map_while(|n| n.parse().ok()).collect();
            let all: u64 = ticks.iter().sum();
            // What runs at a lower priority gives way to whoever sends or receives: it leaves a processor as good as idle.
            let given_way: u64 = ticks.iter().skip(1).step_by(2).take(2).chain(ticks.get(4)).sum();
            (ticks.len() >= 5).then_some(Ticks { busy: all - given_way, all })
        };
        Self(text.lines().filter_map(processor).collect())
    }
}

/// Processor seconds of this process so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessTime {
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
}

impl ProcessTime {
    pub(crate) fn now() -> Self {
        // Fields 14 and 15 of /proc/self/stat, counted after the command name, which may itself contain blanks.
        let ticks = || -> Option<Self> {
            let text = fs::read_to_string("/proc/self/stat").ok()?;
            let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
            let per_second = ticks_per_second()?;
            let mut seconds = || Some(fields.next()?.parse::<u64>().ok()? as f64 / per_second);
            Some(Self { user_s: seconds()?, system_s: seconds()? })
        };
        ticks().unwrap_or_default()
    }
}

/// Processor seconds of this process so far, finer than [`ProcessTime`] and not split.
#[cfg(target_os = "linux")]
pub(crate) fn process_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have no such figure")]
fn ticks_per_second() -> Option<f64> {
    Some(rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(not(unix))]
fn ticks_per_second() -> Option<f64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_processor_counts() {
        let before =
            CpuClock::parse("cpu  1 1 1 1 1\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 100 0 0 100 0 0 0 0 0 0\nintr 5\n");
        let after = CpuClock::parse("cpu0 10 0 0 80 10 0 0 0 0 0\ncpu1 140 10 20 130 0 0 0 0 0 0\n");
        let busy = after.busiest_since(&before).unwrap();
        assert!((busy - 0.6).abs() < 1e-9, "{busy}");
    }

    #[test]
    fn nonsense_is_not_a_processor() {
        assert!(CpuClock::parse("cpu0\ncpux 1 2 3 4 5\ncpu1 a b\n").0.is_empty());
        assert_eq!(CpuClock::default().busiest_since(&CpuClock::default()), None);
    }
}
