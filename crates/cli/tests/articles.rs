//! `docs/articles.md`: for each row of the published articles a command, what it answers, and what was published.
//!
//! `cargo xtask generate` writes the page; what depends on this machine's measurements stays as it is, unless
//! `cargo xtask generate --measure` asks for it anew. The test holds the page to the rest.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "articles/rows.rs"]
mod rows;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rows::{From, ROWS, Row};
use serde_json::Value;

const END: &str = "
## What did not work at first

When the articles' readers' steps were first typed, these failed. Each has a test that fails without its mend.

| what failed | tests |
|---|---|
| the path of row 3 where the host allows only other congestion controls in namespaces | `wan_80ms_sender_is_held_by_its_own_buffer` |
| `measure --mtu` over IPv4 against a server on `[::]` | `a_client_that_is_seen_through_an_ipv6_socket_gets_answers_over_ipv4` |
| comments behind values in FreeBSD's files | `a_comment_may_follow_a_value_on_freebsd_and_a_number_on_linux` |
| windows of one adapter on XP | `a_window_of_one_adapter_is_raised_too_or_taken_away_where_it_would_be_ignored` |
| templates that Server 2012 only shows; names of the article's PowerShell | `every_line_of_the_articles_gets_what_an_expert_would_say`, `a_finding_has_its_line_its_setting_and_its_platform` |
| settings of a file that were `(unknown)`, Group Policy | `the_level_that_a_file_tells_is_what_a_plan_starts_from`, `a_level_of_group_policy_wins_and_no_local_one_is_planned_against_it` |
| buffers above what FreeBSD's clusters hold | `freebsd_gets_the_clusters_that_its_buffers_need_before_the_buffers`, `freebsd_buffers_stay_within_the_clusters_that_the_memory_holds`, `on_freebsd_no_buffer_is_raised_before_the_clusters_are_there` |
| profiles with delayed acknowledgements tuned away | `acknowledgements_that_were_tuned_away_are_planned_back_where_the_version_lets_them` |
| NetBurner's pool and counts, `SetSocketUnackBuffers` | `netburner_gets_the_counts_of_the_models_plateau_and_never_more_than_43`, `netburner_sockets_together_leave_a_quarter_of_the_pool`, `the_buffers_for_packets_out_of_order_that_a_file_sets_count_in_a_netburners_pool` |
| window scaling advised beside a plan without it | `a_lower_bound_of_the_path_does_not_prove_that_scaling_is_not_needed`, `scaling_is_advised_only_where_the_window_needs_it` |
| SYN packets said to be unseen that were printed | `syn_packets_that_are_named_are_not_said_to_be_unseen` |
| a level said to keep a memory bound that it exceeds | `no_level_is_said_to_keep_the_memory_bound_that_it_exceeds` |
| the MTU of a given `rc.conf` | `the_interface_of_rc_conf_is_the_one_whose_mtu_is_planned` |
| half of an export, planned from without a word | `a_plan_from_half_of_a_file_says_which_half_it_lacks` |
| window scaling planned for NT 4.0, which has none | `windows_nt_4_gets_the_largest_window_without_the_scaling_that_it_lacks` |
| half of what netsh or a list prints, taken without a word | `half_of_an_output_with_labels_is_said_to_be_cut_off` |
| offloads of adapters, and what an older template left, passed unjudged | `offloads_of_one_adapter_are_judged_by_the_rate`, `what_an_older_template_left_is_planned_to_the_versions_own`, `a_level_of_the_datacenter_template_is_judged_by_the_paths_that_get_it` |
| fewer buffers planned for a NetBurner than its calls take | `what_a_netburners_pool_cannot_give_is_said_and_not_planned_below_the_range` |
| loops, iperf and psping passed over by `lint` | `loops_of_a_shell_script_are_written_out_or_said_to_be_unknown`, `loops_of_a_batch_file_are_written_out_or_said_to_be_unknown`, `calls_of_iperf_and_psping_are_not_passed_over` |
| PowerShell's loops, lists, tables and positions taken for one template, or for an error | `loops_over_words_of_the_script_are_written_out`, `templates_may_be_named_by_position_in_a_list_by_a_loop_and_by_a_table`, `a_template_in_a_loop_is_the_one_that_is_judged` |
| variables of scripts taken for values | `variables_of_a_shell_script_are_put_in_or_not_judged`, `variables_of_a_batch_file_are_put_in` |
| a window advised that Windows refuses | `the_window_that_is_advised_is_one_that_is_accepted` |
| slips of cmdlets, templates, providers and options passed without a word | `a_slip_of_a_command_is_told_and_another_command_is_not`, `windows_advice_is_told_by_the_version` |
| an adapter's offload taken for that of all | `offloads_of_one_adapter_are_not_taken_for_those_of_all`, `properties_of_a_driver_are_read_in_every_form` |
| FreeBSD's settings by names that the release does not have | `each_release_of_freebsd_is_named_the_settings_that_it_has`, `a_plan_for_freebsd_speaks_of_what_the_release_has` |
| buffers above FreeBSD's own `maxsockbuf` called fine | `a_space_above_the_ceiling_that_a_release_starts_with_is_an_error` |
| a NetBurner's calls compared with those of another socket | `a_call_is_judged_with_its_own_sockets_calls` |
| half of the files afterwards, or an adapter that is gone, taken for verified | `a_plan_is_verified_only_where_the_files_afterwards_tell_all_of_it`, `a_level_that_templates_told_before_is_verified_by_the_templates_afterwards` |
";

const FULLPIPE: &str = env!("CARGO_BIN_EXE_fullpipe");
const PAGE: &str = "docs/articles.md";
/// A lab that another program disturbed says so; then it is asked again.
const TRIES: usize = 5;

const BEGINNING: &str = "\
# The articles, row by row

What the readers of five published articles want to do, the command for it, what it answers, and what was published.
`000` is about a reset of Windows' TCP/IP implementation, `001` about NetBurner's packet buffers, `002` about the window of
Windows XP over HSDPA, `003` about gigabit Ethernet with FreeBSD 4.8 to 6.2, `004` about window scaling in Server 2012.

`A/` is `crates/knobs/tests/articles/` (the articles' own lines), `T/` is `crates/cli/tests/articles/`; HOST runs `fullpipe
serve`. Written by `cargo xtask generate`; rows marked *measured* come from the last `cargo xtask generate --measure` on one
machine, by a build without full optimisation, and are not the same on another. The paths of `lab run` and `stack table` are
emulated. The article 001 tells no round-trip time: the LAN's 0.5 ms is assumed, the device's time per packet is fitted to
0.658 s with 20 buffers on the LAN, and the line's round trip to 5.66 s with 5; these are marked *fitted* and say nothing.
The others are predictions. That the line is a faster link behind a token bucket of 15,000 B is assumed, too, from what makers of
routers recommend (`scenarios/netburner-wan.toml` says why, and how much hangs on it).
On the engine itself `stack --keepalive` and `--user-timeout` end
connections to dead peers (row 19), and `stack table --rate --rtt` measures a device of one's own (row 18).
The article 003 tells no round-trip time either: row 13 assumes 2 ms under load, at which the plateau is where it was
found, between two simulated FreeBSD 6 (a Linux sender would send larger bursts and need more). Row 5's library is `docs/socket.md`; its command is one of `cargo`.

| row | article | what is wanted | `fullpipe` | answer | published |
|---|---|---|---|---|---|
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_page_about_the_articles_is_fresh() {
    let generate = std::env::var("FULLPIPE_GENERATE").unwrap_or_default();
    let page = root().join(PAGE);
    let kept = kept(&fs::read_to_string(&page).unwrap_or_default());
    let mut asked = BTreeMap::new();
    let mut text = BEGINNING.to_owned();
    for row in ROWS {
        let (mark, answer) = match row.from {
            From::Anywhere => ("", (row.answer)(&run(row))),
            From::Measured if generate == "measure" || generate == format!("measure {}", row.number) => {
                let found = asked.entry(row.command).or_insert_with(|| run(row));
                ("*measured* ", (row.answer)(found))
            }
            // What the page has for this command and this figure.
            From::Measured => ("*measured* ", kept.get(&key(row)).cloned().unwrap_or_default()),
        };
        text += &format!("{}{mark}{} | {} |\n", key(row), cell(&answer), cell(row.published));
    }
    text += END;
    if !generate.is_empty() {
        fs::write(&page, &text).unwrap();
    }
    assert!(
        fs::read_to_string(&page).unwrap_or_default() == text,
        "{PAGE} is stale: run `cargo xtask generate` and look at what changed"
    );
    let empty = text.lines().filter(|line| line.contains("*measured*  |")).count();
    assert_eq!(empty, 0, "{PAGE} lacks measurements: run `cargo xtask generate --measure`");
}

#[test]
fn every_row_of_the_articles_has_its_line() {
    let numbers: Vec<u8> = ROWS.iter().map(|row| row.number).collect();
    assert!(numbers.is_sorted() && (1..=24).all(|number| numbers.contains(&number)), "{numbers:?}");
}

#[test]
fn the_row_of_a_scenario_has_the_figures_that_its_file_has_from_the_article() {
    let row = ROWS.iter().find(|row| row.command == "lab run adsl2").unwrap();
    let text = fs::read_to_string(root().join("scenarios/adsl2.toml")).unwrap();
    let published = text.lines().find_map(|line| line.strip_prefix("published = ")).unwrap();
    let figures: Vec<&str> = published
        .split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .filter(|word| word.contains(|c: char| c.is_ascii_digit()))
        .collect();
    assert_eq!(figures.len(), 2, "{published}");
    assert!(figures.iter().all(|figure| row.published.contains(figure)), "{published}: {}", row.published);
}

/// A line as far as its answer.
fn key(row: &Row) -> String {
    format!("| {} | {} | {} | `{}` | ", row.number, row.article, row.wants, row.command)
}

/// Text that breaks no table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The measured answers that the page has, by the line's beginning.
fn kept(page: &str) -> BTreeMap<String, String> {
    let measured = ROWS.iter().filter(|row| row.from == From::Measured).filter_map(|row| {
        let key = key(row);
        let rest = page.lines().find_map(|line| line.strip_prefix(&key)?.strip_prefix("*measured* "))?;
        let answer = rest.strip_suffix(&format!(" | {} |", cell(row.published)))?;
        Some((key, answer.to_owned()))
    });
    measured.collect()
}

/// What the command prints, as JSON.
fn run(row: &Row) -> Value {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("articles-{}", row.number));
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).unwrap();
    let server = row.command.contains("HOST").then(Server::start);
    let host = server.as_ref().map(|server| server.address.as_str()).unwrap_or_default();
    let words: Vec<String> = row.command.split(' ').map(|word| word_of(word, &folder, host)).collect();
    if row.command.contains("BEFORE") {
        let earlier: Vec<String> = words.iter().map(|word| word.replace("--compare", "--save")).collect();
        document(&earlier);
    }
    let tries = if row.from == From::Measured { TRIES } else { 1 };
    let mut answers = (0..tries).map(|_| document(&words));
    let good = answers.find(|found| found["error"].is_null() && !not_valid(found));
    good.unwrap_or_else(|| panic!("{}: no answer: {}", row.command, document(&words)))
}

/// A run that this machine did not keep up with.
fn not_valid(found: &Value) -> bool {
    found["rows"].as_array().is_some_and(|rows| rows.iter().any(|row| row["valid"] == false))
}

fn word_of(word: &str, folder: &Path, host: &str) -> String {
    match word {
        "DIR" => folder.join("written").to_string_lossy().into_owned(),
        "BEFORE" => folder.join("before.json").to_string_lossy().into_owned(),
        "HOST" => host.to_owned(),
        _ => match word.split_once('/') {
            Some(("A", name)) => format!("crates/knobs/tests/articles/{name}"),
            Some(("T", name)) => format!("crates/cli/tests/articles/{name}"),
            _ => word.to_owned(),
        },
    }
}

fn document(words: &[String]) -> Value {
    let (program, words) = match words.split_first() {
        Some((first, rest)) if first == "cargo" => (env!("CARGO"), rest),
        _ => (FULLPIPE, words),
    };
    let output =
        Command::new(program).args(words).arg("--json").current_dir(root()).stdin(Stdio::null()).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{words:?}: {e}: {output:?}"))
}

/// `fullpipe serve` on loopback, for as long as this lives.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start() -> Self {
        let mut process = Command::new(FULLPIPE)
            .args(["serve", "127.0.0.1:0", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = process.stdout.as_mut().unwrap();
        let ready: Value = serde_json::Deserializer::from_reader(stdout).into_iter().next().unwrap().unwrap();
        let address = format!("{}:{}", ready["address"].as_str().unwrap(), ready["port"]);
        Self { process, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
