//! Power that fails at every point of every command: what was synced is on the disk, of the rest nothing, only names, only
//! bytes, or some of each; the kernel has what a restart gives it. Then the same must hold as after a kill. What is *not*
//! here: disks that lie about a sync.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::{
    crash::{Case, recover},
    disk::{self, Disk, Op},
    draw::Draw,
    stage::{FOLDERS, Stage, World},
    tally::{End, Tally},
};

/// Which operations that were not synced get to the disk.
#[derive(Clone, Copy, Debug)]
enum Survives {
    Nothing,
    Names,
    Bytes,
    /// Each with a chance of a half, by this seed.
    Some(u64),
}

impl Survives {
    fn choice(self) -> impl FnMut(&Op) -> bool {
        let mut state = if let Self::Some(seed) = self { seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 } else { 1 };
        move |op| match self {
            Self::Nothing => false,
            Self::Names => matches!(op, Op::Name { .. }),
            Self::Bytes => matches!(op, Op::Data { .. }),
            Self::Some(_) => {
                // Xorshift (Marsaglia 2003).
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state >> 40 & 1 == 1
            }
        }
    }
}

/// Power fails behind each operation of one command, with `seeds` random choices beside the three fixed ones.
pub(super) fn matrix(
    stage: &Stage,
    case: &Case,
    original: &World,
    seeds: u64,
    draw: Option<&mut Draw>,
) -> Result<Tally> {
    let share = draw.as_ref().map(|draw| draw.share(Instant::now()));
    let (command, start) = case.prepare(stage)?;
    let before = Disk::read(stage.root(), &FOLDERS)?;
    let output = stage.traced(&command, &["-y", "-xx", "-s", "65536", "-e", &format!("trace={}", disk::CALLS)])?;
    ensure!(output.status.success(), "without a fault: {output:?}");
    let (_, files_done) = stage.world()?;
    stage.kill_guardians()?;
    let ops = disk::operations(&stage.trace()?, stage.root(), &before)?;
    ensure!(!ops.is_empty(), "the command did nothing to the disk");
    let ways = [Survives::Nothing, Survives::Names, Survives::Bytes].into_iter().chain((1..=seeds).map(Survives::Some));
    let ways: Vec<Survives> = ways.collect();
    let mut tally = Tally::default();
    let points = (0..=ops.len()).flat_map(|done| ways.iter().map(move |way| (done, way))).collect();
    for (done, way) in Draw::order(points, draw) {
        if share.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        stage.go_back(&start)?;
        before.after_power_failed(&ops[..done], way.choice()).write(stage.root(), &FOLDERS)?;
        stage.boot()?;
        tally.stopped += 1;
        let point = || {
            let last = disk::touched(&ops[..done]).into_iter().next_back();
            format!("{}: power fails behind operation {done} of {}, {way:?}; {last:?}", case.name, ops.len())
        };
        if done == ops.len() && stage.world()?.1 != files_done {
            tally.count(End::Silent, || format!("{}: it says that all went well", point()));
        } else {
            tally.count(recover(stage, original)?, point);
        }
        stage.kill_guardians()?;
    }
    Ok(tally)
}
