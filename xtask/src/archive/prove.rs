//! The runs, in alternation, and the table of what they took. It fails where two archives differ, or one from what was put in.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    Archive, INSIDE,
    captures::{Expected, read_expected},
    nodes::Nodes,
    reading::{Done, Harm, Reader, Team},
};

/// Who reads, in each round. The first two are what a second processor is judged by.
const TEAMS: [Team; 7] = [
    Team { engine: "processes", workers: 1, processors: Some("0") },
    Team { engine: "processes", workers: 2, processors: Some("0,1") },
    Team { engine: "processes", workers: 1, processors: None },
    Team { engine: "processes", workers: 4, processors: None },
    Team { engine: "ray", workers: 1, processors: None },
    Team { engine: "ray", workers: 2, processors: None },
    Team { engine: "ray", workers: 4, processors: None },
];

/// What a second processor has to bring.
const AIM: f64 = 1.7;

/// The hash of all verdicts, and how many connections there are.
type Found = (String, u64);

/// Runs everything, in the namespace that this program was started in.
pub(super) fn prove(out: &Path, arguments: &Archive) -> Result<()> {
    let python = PathBuf::from(env::var_os(INSIDE).context("no Python")?);
    let reader = Reader { python, captures: out.join("captures") };
    let expected = read_expected(out)?;
    let archive = out.join("archive");
    println!("round  engine     workers  processors  seconds    MB/s  processor s  worker MB  command MB  hash");
    let mut found: Option<Found> = None;
    let mut rounds = Vec::new();
    // Not counted: it reads the captures from the disk, and the others from memory.
    reader.read(TEAMS[1], &archive, &[], None)?;
    for round in 1..=arguments.rounds.max(1) {
        let mut nodes = None;
        let mut seconds = Vec::new();
        for team in TEAMS {
            if team.engine == "ray" && nodes.is_none() {
                nodes = Some(Nodes::start(&reader.python)?);
                // Not counted either: Ray starts its workers with the first tasks.
                reader.read(team, &archive, &[], None)?;
            }
            let done = reader.read(team, &archive, &[], None)?;
            seconds.push(done.seconds);
            agree(&reader, &archive, &done, &mut found, &round.to_string(), team)?;
        }
        rounds.push(seconds);
    }
    held_against(&reader, &archive, &expected)?;
    whatever_the_partition(&reader, &archive, &mut found)?;
    whatever_happens(&reader, &archive, &rounds, &mut found)?;
    held_against(&reader, &archive, &expected)?;
    if arguments.short > 0 {
        short(&reader, out, arguments.short)?;
    }
    println!("{}", sizes(&archive)?);
    fs::remove_dir_all(&archive)?;
    let faster =
        |from: usize, to: usize| median(rounds.iter().filter_map(|round| Some(round.get(from)? / round.get(to)?)));
    let second = faster(0, 1);
    println!("two workers on two processors: {second:.2} times as fast as one on one (aim: {AIM})");
    println!("Ray, two workers: {:.2} times as fast as one; four: {:.2}", faster(4, 5), faster(4, 6));
    ensure!(second >= AIM, "a second processor brings less than {AIM}: was the machine quiet, and has it two?");
    Ok(())
}

/// Prints a run's line, and fails where what it found is not what the runs before found.
fn agree(
    reader: &Reader,
    archive: &Path,
    done: &Done,
    found: &mut Option<Found>,
    round: &str,
    team: Team,
) -> Result<()> {
    let hash = reader.ask(&["hash"], archive)?["hash"].as_str().context("no hash")?.to_owned();
    let number = |name: &str| done.document["archive"][name].as_u64().with_context(|| format!("no {name}"));
    let mb = number("capture_bytes")? as f64 / 1e6;
    let Team { engine, workers, processors } = team;
    let spent = if engine == "ray" { "-".to_owned() } else { format!("{:.1}", done.processor_s) };
    println!(
        "{round:<5}  {engine:<9}  {workers:>7}  {:<10}  {:>7.1}  {:>6.0}  {spent:>11}  {:>9.0}  {:>10.0}  {}",
        processors.unwrap_or("all"),
        done.seconds,
        mb / done.seconds,
        done.worker_mb,
        done.command_mb,
        &hash[..12.min(hash.len())],
    );
    let now = (hash, number("connections")?);
    ensure!(found.get_or_insert_with(|| now.clone()) == &now, "{found:?} before, and now {now:?}");
    Ok(())
}

/// Connections and seconds lost, by limiter and receiver, against what was put in.
fn held_against(reader: &Reader, archive: &Path, expected: &Expected) -> Result<()> {
    let answer = reader.ask(&["query", "limiters", "--all", "--top", "0"], archive)?;
    let rows = answer["rows"].as_array().context("no rows")?;
    let mut found = Expected::new();
    for row in rows {
        let text = |name: &str| row[name].as_str().map(str::to_owned).with_context(|| format!("no {name}"));
        let lost = row["lost_s"].as_f64().context("no lost_s")?;
        let count = row["connections"].as_u64().context("no connections")?;
        found.insert((text("limiter")?, text("destination")?), (count, lost));
    }
    let differ = |(count, lost): &(u64, f64), other: &(u64, f64)| {
        *count != other.0 || (lost - other.1).abs() > 1e-3 * lost.abs().max(1.0)
    };
    let wrong: Vec<String> = expected
        .iter()
        .filter(|(key, put)| found.get(*key).is_none_or(|there| differ(put, there)))
        .map(|(key, put)| format!("{key:?}: {put:?} were put in, and there are {:?}", found.get(key)))
        .collect();
    let more = found.keys().filter(|key| !expected.contains_key(*key)).count();
    if !wrong.is_empty() || more > 0 {
        bail!("{more} rows too many, {} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
    }
    let connections: u64 = expected.values().map(|(count, _)| count).sum();
    println!("{connections} connections, and their lost seconds by limiter and receiver, are those that were put in");
    Ok(())
}

fn whatever_the_partition(reader: &Reader, archive: &Path, found: &mut Option<Found>) -> Result<()> {
    let team = Team { engine: "processes", workers: 2, processors: None };
    let done = reader.read(team, archive, &["--site", "everywhere"], None)?;
    agree(reader, archive, &done, found, "site", team)
}

/// Four workers on two nodes; a worker is killed after an eighth of the time that it took, a node stopped after a quarter.
fn whatever_happens(reader: &Reader, archive: &Path, rounds: &[Vec<f64>], found: &mut Option<Found>) -> Result<()> {
    let team = TEAMS[6];
    let usual = rounds.iter().filter_map(|round| round.get(6).copied()).fold(f64::INFINITY, f64::min);
    // A run that is over sooner than the others were gets another try, with less time.
    for part in [4.0, 8.0, 16.0] {
        let mut nodes = Nodes::start(&reader.python)?;
        let harm = Harm { kill_after_s: usual / part / 2.0, stop_after_s: usual / part, nodes: &mut nodes };
        let done = reader.read(team, archive, &[], Some(harm))?;
        agree(reader, archive, &done, found, "harm", team)?;
        let died = done.document["workers_died"].as_u64().unwrap_or_default();
        if died >= 2 {
            println!("{died} tasks were lost to the killed worker and the stopped node, and done anew");
            return Ok(());
        }
    }
    bail!("the run was over before a worker was killed and a node stopped: make more captures");
}

fn short(reader: &Reader, out: &Path, count: usize) -> Result<()> {
    let reader = Reader { python: reader.python.clone(), captures: out.join("short") };
    let (team, archive) = (TEAMS[1], out.join("short-archive"));
    let done = reader.read(team, &archive, &[], None)?;
    agree(&reader, &archive, &done, &mut None, "short", team)?;
    ensure!(done.document["archive"]["connections"] == count, "{}", done.document["archive"]);
    println!("{}", sizes(&archive)?);
    Ok(fs::remove_dir_all(&archive)?)
}

/// What an archive takes on the disk.
fn sizes(archive: &Path) -> Result<String> {
    let (mut rows, mut files, mut manifest) = (0, 0, 0);
    let mut folders = vec![archive.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let (path, size) = (entry.path(), entry.metadata()?.len());
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "parquet") {
                (rows, files) = (rows + size, files + 1);
            } else if path.parent() == Some(archive) && path.extension().is_some_and(|end| end == "sqlite") {
                manifest += size;
            }
        }
    }
    Ok(format!("rows: {:.1} MB in {files} files; manifest: {:.1} MB", rows as f64 / 1e6, manifest as f64 / 1e6))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
