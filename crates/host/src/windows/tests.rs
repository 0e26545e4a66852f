//! The adapter over a registry in memory and programs that answer from a script.

use std::{
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    io,
    rc::Rc,
};

use fullpipe_knobs::{Address, Change, TakesEffect};

use super::{Program, Registry, RegistryData, Runner, WindowsHost, powershell};
use crate::{ApplyFault, ApplyOptions, Host, HostError, Journal, Output, UndoOptions, Which, apply, undo};

const PARAMETERS: &str = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
const VERSION: &str = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion";
const ADAPTER: &str = "{8F6B1C1A-0000-4000-8000-00AA00389B71}";

/// Keys in lower case, each with its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Memory(BTreeMap<String, BTreeMap<String, RegistryData>>);

impl Memory {
    fn with(mut self, key: &str, values: &[(&str, RegistryData)]) -> Self {
        let values = values.iter().map(|(name, data)| (name.to_ascii_lowercase(), data.clone()));
        self.0.entry(key.to_ascii_lowercase()).or_default().extend(values);
        self
    }
}

impl Registry for Memory {
    fn has_key(&self, key: &str) -> io::Result<bool> {
        Ok(self.0.contains_key(&key.to_ascii_lowercase()))
    }

    fn subkeys(&self, key: &str) -> io::Result<Vec<String>> {
        let start = format!("{}\\", key.to_ascii_lowercase());
        Ok(self.0.keys().filter_map(|key| key.strip_prefix(&start)).map(str::to_ascii_uppercase).collect())
    }

    fn value(&self, key: &str, name: &str) -> io::Result<Option<RegistryData>> {
        Ok(self.0.get(&key.to_ascii_lowercase()).and_then(|values| values.get(&name.to_ascii_lowercase())).cloned())
    }

    fn set_value(&mut self, key: &str, name: &str, data: Option<&RegistryData>) -> io::Result<()> {
        let values = self.0.get_mut(&key.to_ascii_lowercase()).ok_or(io::ErrorKind::NotFound)?;
        match data {
            Some(data) => values.insert(name.to_ascii_lowercase(), data.clone()),
            None => values.remove(&name.to_ascii_lowercase()),
        };
        Ok(())
    }

    fn may_write(&self, key: &str) -> io::Result<()> {
        if self.has_key(key)? { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

/// What was run.
type Log = Rc<RefCell<Vec<(Program, Vec<String>)>>>;

/// A small PowerShell: templates that a `Set-NetTCPSetting` changes, and answers of netsh in order.
#[derive(Clone, Debug, Default)]
struct Scripted {
    internet: BTreeMap<String, String>,
    filters: Vec<String>,
    jumbo: String,
    netsh: VecDeque<Output>,
    log: Log,
}

fn output(success: bool, stdout: &str, stderr: &str) -> Output {
    Output { success, stdout: stdout.into(), stderr: stderr.into() }
}

/// The script of an encoded command.
fn decoded(arguments: &[String]) -> String {
    let digit = |c: char| match c {
        'A'..='Z' => c as u32 - 65,
        'a'..='z' => c as u32 - 71,
        '0'..='9' => c as u32 + 4,
        '+' => 62,
        _ => 63,
    };
    let encoded = arguments.last().expect("a script").trim_end_matches('=');
    let (mut bits, mut held, mut bytes) = (0u32, 0, Vec::new());
    for c in encoded.chars() {
        (bits, held) = ((bits << 6) | digit(c), held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xff).expect("a byte"));
        }
    }
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    String::from_utf16(&units).expect("text")
}

impl Runner for Scripted {
    fn run(&mut self, program: Program, arguments: &[String]) -> io::Result<Output> {
        self.log.borrow_mut().push((program, arguments.to_vec()));
        if program == Program::Netsh {
            return self.netsh.pop_front().ok_or_else(|| io::ErrorKind::NotFound.into());
        }
        let script = decoded(arguments);
        if let Some((_, set)) = script.split_once("Set-NetTCPSetting -SettingName 'Internet' -") {
            let mut words = set.split(' ');
            let (name, value) = (words.next().expect("a name"), words.next().expect("a value").trim_matches('\''));
            if value == "Denied" {
                return Ok(output(false, "", "Access is denied.\r\n"));
            }
            self.internet.insert(name.to_owned(), value.to_owned());
            return Ok(output(true, "", ""));
        }
        if let Some((_, set)) = script.split_once("Set-NetAdapterAdvancedProperty -RegistryValue '") {
            self.jumbo = set.split('\'').next().expect("a value").to_owned();
            return Ok(output(true, "", ""));
        }
        if script.contains("NetTransportFilter -SettingName 'Internet'") {
            self.change_filters(&script);
            return Ok(output(true, "", ""));
        }
        let rows = [&self.internet, &[("SettingName".to_owned(), "Automatic".to_owned())].into()];
        let offloads: BTreeMap<_, _> = [("ReceiveSideScaling", "Enabled")].into();
        let link: BTreeMap<_, _> =
            [("guid", ADAPTER), ("name", "Ethernet 2"), ("index", "12"), ("mtu", "1500"), ("speed", "1000000000")]
                .into();
        let mut link = link.clone();
        link.insert("jumbo", &self.jumbo);
        let filters: Vec<_> =
            self.filters.iter().map(|prefix| serde_json::json!({ "template": "Internet", "prefix": prefix })).collect();
        let json = serde_json::json!({
            "templates": rows, "offloads": offloads, "links": [link], "filters": filters, "memory": "8589934592",
        });
        Ok(output(true, &json.to_string(), ""))
    }
}

impl Scripted {
    /// Does what the statements of a script say, each of which ends in a semicolon.
    fn change_filters(&mut self, script: &str) {
        let quoted = |text: &str| text.split('\'').nth(1).map(str::to_owned);
        for statement in script.split(';') {
            if let Some((_, prefix)) = statement.split_once("-DestinationPrefix ") {
                self.filters.extend(quoted(prefix));
            } else if let Some((_, prefix)) = statement.split_once("$_.DestinationPrefix -eq ") {
                let gone = quoted(prefix);
                self.filters.retain(|prefix| Some(prefix) != gone.as_ref());
            }
        }
    }
}

fn scripted() -> Scripted {
    let internet = [
        ("SettingName", "Internet"),
        ("MinRtoMs", "300"),
        ("AutoTuningLevelLocal", "Restricted"),
        ("AutoTuningLevelGroupPolicy", "NotConfigured"),
    ];
    let internet = internet.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Scripted { internet, jumbo: "1514".to_owned(), ..Scripted::default() }
}

fn system(major: Option<u32>, version: &str, build: &str, kind: &str) -> Memory {
    let mut values = vec![
        ("CurrentVersion", RegistryData::text(version)),
        ("CurrentBuildNumber", RegistryData::text(build)),
        ("InstallationType", RegistryData::text(kind)),
    ];
    values.extend(major.map(|major| ("CurrentMajorVersionNumber", RegistryData::dword(major))));
    Memory::default()
        .with(VERSION, &values)
        .with(PARAMETERS, &[("Tcp1323Opts", RegistryData::dword(3))])
        .with(&format!(r"{PARAMETERS}\Interfaces\{ADAPTER}"), &[("TcpAckFrequency", RegistryData::text("1"))])
}

fn server_2019() -> Memory {
    system(Some(10), "6.3", "17763", "Server")
}

fn address(text: &str) -> Address {
    text.parse().expect("an address")
}

fn change(host: &mut impl Host, place: &str, to: Option<&str>) -> Change {
    let knob = address(place);
    Change {
        host: "a".into(),
        from: host.read(&knob).expect("readable"),
        knob,
        to: to.map(str::to_owned),
        reason: String::new(),
        arithmetic: String::new(),
        memory_worst_case: None,
        takes_effect: TakesEffect::Restart,
        undo: String::new(),
        source: String::new(),
    }
}

#[test]
fn registry_values_are_applied_and_undone_to_absent_and_to_their_type() {
    let mut host = WindowsHost::with(server_2019(), scripted());
    let start = host.registry.clone();
    let ack = format!(r"registry {PARAMETERS}\Interfaces\{ADAPTER}\TcpAckFrequency");
    let changes = [
        change(&mut host, &format!(r"registry {PARAMETERS}\TcpWindowSize"), Some("0x40000")),
        change(&mut host, &format!(r"registry {PARAMETERS}\Tcp1323Opts"), None),
        change(&mut host, &ack, Some("1")),
    ];
    let mut journal = Journal::in_memory().expect("a journal");
    let run = apply(&mut host, &mut journal, &changes, &ApplyOptions::default()).expect("applied");
    assert!(run.applied.iter().all(|applied| applied.needs_restart() && !applied.clamped()));
    assert_eq!(run.applied[0].now.as_deref(), Some("262144"));
    assert_eq!(host.read(&address(&ack)).expect("read").as_deref(), Some("1"), "a number now");
    let report = undo(&mut host, &mut journal, Which::Latest, UndoOptions::default()).expect("undone");
    assert!(report.is_complete());
    assert_eq!(host.registry, start);
}

#[test]
fn a_change_asked_to_last_lasts_by_itself() {
    let mut host = WindowsHost::with(server_2019(), scripted());
    let changes = [change(&mut host, &format!(r"registry {PARAMETERS}\TcpWindowSize"), Some("65535"))];
    let folder = tempfile::tempdir().expect("a folder");
    let options = ApplyOptions { persist: Some(folder.path().to_owned()), ..ApplyOptions::default() };
    let run = apply(&mut host, &mut Journal::in_memory().expect("a journal"), &changes, &options).expect("applied");
    assert!(run.boot_files.is_empty() && run.not_persisted.is_empty());
}

#[test]
fn what_is_no_tcp_setting_is_not_touched_and_no_key_is_made() {
    let mut host = WindowsHost::with(server_2019(), scripted());
    for other in
        [r"registry HKLM\SAM\X", r"registry HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\NameServer"]
    {
        let error = host.write(&address(other), Some("1")).expect_err("refused");
        assert!(matches!(error, HostError::UnknownAddress { .. }), "{error}");
    }
    let missing = [
        format!(r"registry {PARAMETERS}\Interfaces\{{0}}\TcpAckFrequency"),
        r"registry HKLM\SOFTWARE\Microsoft\MSMQ\Parameters\TCPNoDelay".to_owned(),
    ];
    for place in missing {
        let error = host.write(&address(&place), Some("1")).expect_err("refused");
        assert!(matches!(error, HostError::ObjectGone { .. }), "{error}");
    }
    let error =
        host.write(&address(&format!(r"registry {PARAMETERS}\TcpWindowSize")), Some("64k")).expect_err("refused");
    assert!(error.to_string().contains("REG_DWORD"), "{error}");
}

#[test]
fn a_template_is_set_by_the_cmdlet_and_read_back() {
    let mut host = WindowsHost::with(server_2019(), scripted());
    let rto = "tcpsetting Internet MinRtoMs";
    let changes = [change(&mut host, rto, Some("200"))];
    assert_eq!(changes[0].from.as_deref(), Some("300"));
    let mut journal = Journal::in_memory().expect("a journal");
    apply(&mut host, &mut journal, &changes, &ApplyOptions::default()).expect("applied");
    assert_eq!(host.read(&address(rto)).expect("read").as_deref(), Some("200"));
    undo(&mut host, &mut journal, Which::Latest, UndoOptions::default()).expect("undone");
    assert_eq!(host.read(&address(rto)).expect("read").as_deref(), Some("300"));
    let error = host.write(&address(rto), Some("Denied")).expect_err("refused");
    assert!(error.to_string().ends_with("PowerShell says: Access is denied."), "{error}");
    for hostile in ["1;Stop-Computer", "$(x)", "a b"] {
        assert!(matches!(host.write(&address(rto), Some(hostile)), Err(HostError::InvalidValue { .. })), "{hostile}");
    }
    let error = host.read(&address("tcpsetting Custom MinRtoMs")).expect_err("no such template");
    assert!(error.to_string().contains("there are Internet, Automatic"), "{error}");
}

#[test]
fn a_template_is_given_to_peers_by_filters_and_taken_from_them_again() {
    let mut programs = scripted();
    programs.filters = vec!["203.0.113.0/24".into()];
    let mut host = WindowsHost::with(server_2019(), programs);
    let filter = "transportfilter Internet";
    let changes = [change(&mut host, filter, Some("2001:db8::/32 192.0.2.0/24"))];
    assert_eq!(changes[0].from.as_deref(), Some("203.0.113.0/24"));
    let mut journal = Journal::in_memory().expect("a journal");
    let run = apply(&mut host, &mut journal, &changes, &ApplyOptions::default()).expect("applied");
    assert!(!run.applied[0].clamped(), "{run:?}");
    let settings = host.settings().expect("read");
    assert_eq!(settings.values.get(&address(filter)).cloned().flatten().as_deref(), Some("192.0.2.0/24 2001:db8::/32"));
    undo(&mut host, &mut journal, Which::Latest, UndoOptions::default()).expect("undone");
    assert_eq!(host.programs.filters, ["203.0.113.0/24"]);
    host.write(&address(filter), None).expect("taken from all");
    assert_eq!(host.read(&address(filter)).expect("read"), None);
    for hostile in ["192.0.2.0", "192.0.2.0/33", "*", "192.0.2.0/24';Stop-Computer;'", "::1/+1"] {
        let error = host.write(&address(filter), Some(hostile)).expect_err(hostile);
        assert!(matches!(error, HostError::InvalidValue { .. }), "{error}");
    }
    assert!(matches!(host.read(&address("transportfilter Custom")), Err(HostError::ObjectGone { .. })));
}

#[test]
fn frames_and_packets_of_an_interface_are_two_settings() {
    let mut host = WindowsHost::with(server_2019(), scripted());
    let (frame, mtu) = (address("link Ethernet 2 *JumboPacket"), address("link Ethernet 2 mtu"));
    assert_eq!(host.read(&mtu).expect("read").as_deref(), Some("1500"));
    let changes = [change(&mut host, "link Ethernet 2 *JumboPacket", Some("9014"))];
    assert_eq!(changes[0].from.as_deref(), Some("1514"));
    let mut journal = Journal::in_memory().expect("a journal");
    apply(&mut host, &mut journal, &changes, &ApplyOptions::default()).expect("applied");
    assert_eq!(host.read(&frame).expect("read").as_deref(), Some("9014"));
    undo(&mut host, &mut journal, Which::Latest, UndoOptions::default()).expect("undone");
    assert_eq!(host.read(&frame).expect("read").as_deref(), Some("1514"));
    let mut plain = scripted();
    plain.jumbo.clear();
    let mut host = WindowsHost::with(server_2019(), plain);
    assert_eq!(host.read(&frame).expect("read"), None, "the driver has no such property");
    assert!(matches!(host.writable(&frame), Err(HostError::Missing { .. })));
}

#[test]
fn templates_that_a_version_only_shows_are_refused_beforehand() {
    let mut host = WindowsHost::with(system(Some(10), "6.3", "19045", "Client"), scripted());
    let changes = [change(&mut host, "tcpsetting Internet MinRtoMs", Some("200"))];
    let error = apply(&mut host, &mut Journal::in_memory().expect("a journal"), &changes, &ApplyOptions::default())
        .expect_err("read-only");
    assert!(matches!(*error.fault, ApplyFault::Host(HostError::ReadOnly { .. })), "{error}");
}

#[test]
fn group_policy_is_seen_in_the_registry_and_in_the_templates() {
    let level = address("netsh tcp global autotuninglevel");
    let mut free = WindowsHost::with(server_2019(), scripted());
    assert_eq!(free.read(&level).expect("read").as_deref(), Some("restricted"), "in English, from the template");
    free.writable(&level).expect("nothing in the way");
    let settings = free.settings().expect("read");
    assert_eq!(free.tuning_level(&settings).as_deref(), Some("restricted"));
    let policed = server_2019().with(super::POLICY.0, &[(super::POLICY.1, RegistryData::text("Off"))]);
    let mut template = scripted();
    template.internet.insert("AutoTuningLevelGroupPolicy".into(), "HighlyRestricted".into());
    for (mut host, word) in [
        (WindowsHost::with(policed, scripted()), "Off"),
        (WindowsHost::with(server_2019(), template), "HighlyRestricted"),
    ] {
        let error = host.writable(&level).expect_err("policed");
        assert!(matches!(&error, HostError::Policy { value, .. } if value == word), "{error}");
        let settings = host.settings().expect("read");
        assert_eq!(host.tuning_level(&settings).as_deref(), Some(word), "what connections have");
    }
}

#[test]
fn before_windows_8_netsh_tells_and_only_in_english() {
    let level = address("netsh tcp global autotuninglevel");
    let mut programs = scripted();
    programs.netsh = [
        output(true, "Receive Window Auto-Tuning Level    : highlyrestricted\r\n", ""),
        output(true, "Fensterautomatik : normal\r\n", ""),
        output(true, "Ok.\r\n", ""),
        output(false, "The requested operation requires elevation.\r\n", ""),
    ]
    .into();
    let log = Rc::clone(&programs.log);
    let mut host = WindowsHost::with(system(None, "6.1", "7601", "Client"), programs);
    assert_eq!(host.read(&level).expect("read").as_deref(), Some("highlyrestricted"));
    assert!(host.read(&level).expect_err("German").to_string().contains("not in English"));
    host.write(&level, Some("normal")).expect("set");
    let error = host.write(&level, Some("normal")).expect_err("refused");
    assert!(error.to_string().contains("requires elevation"), "{error}");
    let last = log.borrow().last().cloned().expect("run");
    assert_eq!(
        last,
        (Program::Netsh, ["interface", "tcp", "set", "global", "autotuninglevel=normal"].map(str::to_owned).into())
    );
}

#[test]
fn all_settings_are_read_with_two_starts_of_programs() {
    let programs = scripted();
    let log = Rc::clone(&programs.log);
    let mut host = WindowsHost::with(server_2019(), programs);
    let settings = host.settings().expect("read");
    assert_eq!((settings.platform.family.name(), settings.platform.version.as_str()), ("windows", "2019"));
    let value = |place: &str| settings.values.get(&address(place)).cloned();
    assert_eq!(value(&format!(r"registry {PARAMETERS}\TcpWindowSize")), Some(None), "looked, and absent");
    let ack = format!(r"registry {PARAMETERS}\Interfaces\{ADAPTER}\TcpAckFrequency");
    assert_eq!(value(&ack), Some(Some("\"1\"".into())), "a text where a number belongs");
    assert_eq!(value("tcpsetting Internet MinRtoMs"), Some(Some("300".into())));
    assert_eq!(value("netoffload ReceiveSideScaling"), Some(Some("Enabled".into())));
    assert_eq!(value("netsh tcp global rss"), Some(Some("enabled".into())));
    assert_eq!(value(&format!("link {ADAPTER} mtu")), Some(Some("1500".into())));
    assert_eq!(settings.machine.memory.map(|memory| memory.get()), Some(8_589_934_592));
    assert_eq!(settings.links.iter().map(|link| link.speed_bps).collect::<Vec<_>>(), [Some(1_000_000_000)]);
    let query = log.borrow().first().map(|(_, arguments)| decoded(arguments)).expect("asked");
    assert!(query.contains("'MinRtoMs'") && query.contains("'ReceiveSideScaling'"));
    assert!(powershell::arguments(&query).iter().map(String::len).sum::<usize>() < 30_000, "a command line's limit");
    let starts = log.borrow().iter().filter(|(program, _)| *program == Program::PowerShell).count();
    assert_eq!(starts, 1);
}
