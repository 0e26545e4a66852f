//! Everything on the same files in turn, and a table of medians.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::make::{Kind, make};

/// How often each is run; tshark, which takes a hundred times as long, only once.
const ROUNDS: usize = 3;

/// Whoever takes longer than this is stopped, and not run again on that file.
const LONGEST: Duration = Duration::from_secs(60);

/// What is measured: its name, its command line (`{}` is the file), and how often.
struct Tool {
    name: &'static str,
    command: Vec<String>,
    rounds: usize,
    /// More than there are processors: the time of the busiest of them counts, below which no number of processors comes.
    threads: usize,
}

/// What a run took.
struct Run {
    seconds: f64,
    /// Of all its threads, to 10 ms.
    cpu_seconds: f64,
    /// Of the busiest of its threads.
    busiest_seconds: f64,
    /// The most memory that was resident, in kB.
    peak_kb: u64,
    was_stopped: bool,
}

pub(crate) fn run() -> io::Result<()> {
    let tools: Vec<Tool> = tools()?.into_iter().filter(|tool| exists(&tool.command[0])).collect();
    let folder = tempfile::tempdir()?;
    println!("{:<9}{:<28}{:>9}{:>9}{:>9}{:>9}{:>10}", "file", "tool", "s", "CPU s", "GB/s", "Mpps", "peak MB");
    for kind in Kind::FILES {
        // It would take two minutes and 4.7 GB for 9 million packets; the other files show its pace.
        let fits = |tool: &&Tool| !matches!(kind, Kind::Headers) || !tool.name.starts_with("tshark");
        let tools: Vec<&Tool> = tools.iter().filter(fits).collect();
        let path = folder.path().join(format!("{}.pcap", kind.name()));
        make(kind, fs::File::create(&path)?)?;
        measure(kind, &path, &tools)?;
        if matches!(kind, Kind::Many) {
            compressed(&path)?;
        }
        fs::remove_file(&path)?;
    }
    for kind in Kind::STREAMS {
        for threads in ["1", "2"] {
            stream(kind, threads)?;
        }
    }
    Ok(())
}

/// Makes a capture while it is read from a pipe.
fn stream(kind: Kind, threads: &str) -> io::Result<()> {
    let own = std::env::current_exe()?;
    let mut command = Command::new(own);
    command.args(["follow", "--threads", threads, "-"]).stdin(Stdio::piped());
    let (start, mut child) = (Instant::now(), command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    let maker = child.stdin.take().map(|pipe| thread::spawn(move || make(kind, pipe)));
    let run = watch(&mut child, start)?;
    let bytes = maker.and_then(|maker| maker.join().ok()).transpose()?.unwrap_or(0);
    let name = if threads == "1" { "connections, one thread" } else { "connections, two threads" };
    line(kind, name, &run, run.seconds, bytes);
    Ok(())
}

fn tools() -> io::Result<Vec<Tool>> {
    let own = std::env::current_exe()?.display().to_string();
    let tool = |name, rounds, command: &[&str]| Tool {
        name,
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        rounds,
        threads: 1,
    };
    // `-n`: without it, peers spend their time on asking for the names of hosts.
    let mut tools = vec![
        tool("a bare loop over headers", ROUNDS, &[&own, "walk", "{}"]),
        tool("segments, one thread", ROUNDS, &[&own, "count", "{}"]),
        tool("segments, reading ahead", ROUNDS, &[&own, "count", "--ahead", "{}"]),
        tool("connections, one thread", ROUNDS, &[&own, "follow", "{}"]),
        tool("connections, two threads", ROUNDS, &[&own, "follow", "--threads", "2", "{}"]),
        tool("tcptrace -n -l", ROUNDS, &["tcptrace", "-n", "-l", "{}"]),
        tool("tshark -n -z conv,tcp", 1, &["tshark", "-n", "-q", "-z", "conv,tcp", "-r", "{}"]),
    ];
    // Beyond six there is no work for more (`Team::MOST_THREADS`).
    for (threads, name, count) in [(4, "connections, four threads", "4"), (6, "connections, six threads", "6")] {
        tools.push(Tool { threads, ..tool(name, ROUNDS, &[&own, "follow", "--threads", count, "{}"]) });
    }
    Ok(tools)
}

/// A compressed capture, beside what only takes it apart.
fn compressed(path: &Path) -> io::Result<()> {
    let own = std::env::current_exe()?.display().to_string();
    for (program, end) in [("zstd", "zst"), ("pigz", "gz")] {
        let packed = path.with_extension(format!("pcap.{end}"));
        if !exists(program) || !Command::new(program).args(["-q", "-k"]).arg(path).status()?.success() {
            continue;
        }
        let name = packed.display().to_string();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let apart =
            Tool { name: program, command: words(&[program, "-d", "-c", "-q", "{}"]), rounds: ROUNDS, threads: 1 };
        let reading = Tool {
            name: "connections, two threads",
            command: words(&[&own, "follow", "--threads", "2", "{}"]),
            rounds: ROUNDS,
            threads: 2,
        };
        println!("{name}:");
        measure(Kind::Many, &packed, &[&apart, &reading])?;
        fs::remove_file(&packed)?;
    }
    Ok(())
}

fn measure(kind: Kind, path: &Path, tools: &[&Tool]) -> io::Result<()> {
    warm(path)?;
    let bytes = fs::metadata(path)?.len();
    let mut runs: Vec<Vec<Run>> = tools.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        for (tool, runs) in tools.iter().zip(&mut runs) {
            if round < tool.rounds && !runs.last().is_some_and(|run: &Run| run.was_stopped) {
                runs.push(once(tool, path)?);
            }
        }
    }
    let processors = thread::available_parallelism().map_or(1, usize::from);
    for (tool, mut runs) in tools.iter().zip(runs) {
        let counts = |run: &Run| if tool.threads > processors { run.busiest_seconds } else { run.seconds };
        runs.sort_by(|a, b| counts(a).total_cmp(&counts(b)));
        let Some(median) = runs.get(runs.len() / 2) else { continue };
        line(kind, tool.name, median, counts(median), bytes);
    }
    Ok(())
}

fn line(kind: Kind, tool: &str, run: &Run, seconds: f64, bytes: u64) {
    let (packets, ..) = kind.shape();
    println!(
        "{:<9}{:<28}{:>9.3}{:>9.2}{:>9.2}{:>9.2}{:>10.1}{}",
        kind.name(),
        tool,
        seconds,
        run.cpu_seconds,
        bytes as f64 / seconds / 1e9,
        f64::from(packets) / seconds / 1e6,
        run.peak_kb as f64 / 1024.0,
        match () {
            () if run.was_stopped => "  stopped, not done",
            () if seconds < run.seconds => "  the busiest thread's time: too few processors",
            () => "",
        },
    );
}

fn once(tool: &Tool, path: &Path) -> io::Result<Run> {
    let path = path.display().to_string();
    let words: Vec<&str> = tool.command.iter().map(|word| if word == "{}" { &path } else { word.as_str() }).collect();
    let start = Instant::now();
    let mut child = Command::new(words[0]).args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    watch(&mut child, start)
}

fn watch(child: &mut Child, start: Instant) -> io::Result<Run> {
    let own = PathBuf::from(format!("/proc/{}", child.id()));
    let mut run = Run { seconds: 0.0, cpu_seconds: 0.0, busiest_seconds: 0.0, peak_kb: 0, was_stopped: false };
    while child.try_wait()?.is_none() {
        run.peak_kb = peak(&own.join("status")).unwrap_or(0).max(run.peak_kb);
        run.cpu_seconds = cpu(&own.join("stat")).unwrap_or(0.0).max(run.cpu_seconds);
        run.busiest_seconds = busiest(&own.join("task")).unwrap_or(0.0).max(run.busiest_seconds);
        if start.elapsed() > LONGEST && !run.was_stopped {
            run.was_stopped = true;
            child.kill()?;
        }
        thread::sleep(Duration::from_millis(2));
    }
    run.seconds = start.elapsed().as_secs_f64();
    Ok(run)
}

/// Processor time of the thread that had most (the first figure of schedstat: nanoseconds); s.
fn busiest(tasks: &Path) -> Option<f64> {
    let times = fs::read_dir(tasks).ok()?.filter_map(|task| {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    times.reduce(f64::max).map(|nanos| nanos / 1e9)
}

/// Time in the process and in the kernel for it (proc(5): fields 14 and 15, in hundredths of a second).
fn cpu(stat: &Path) -> Option<f64> {
    let stat = fs::read_to_string(stat).ok()?;
    let mut fields = stat.rsplit(") ").next()?.split(' ').skip(11);
    let ticks: f64 = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}

/// The most memory that a process ever had, by its own account.
fn peak(status: &Path) -> Option<u64> {
    let status = fs::read_to_string(status).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
}

/// Reads a file once, so that it lies in memory.
fn warm(path: &Path) -> io::Result<()> {
    let mut file = fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

fn exists(program: &str) -> bool {
    let found = program.contains('/')
        || std::env::var_os("PATH")
            .is_some_and(|paths| std::env::split_paths(&paths).any(|at| at.join(program).exists()));
    if !found {
        println!("{program} is not there: left out");
    }
    found
}
