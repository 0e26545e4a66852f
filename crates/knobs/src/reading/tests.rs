//! Each format by a sample of its shape, the files that are damaged, and bytes of any kind.

use proptest::prelude::*;

use super::*;
use crate::{Family, PlatformRequest, Settings, plan_platform};

fn sample(name: &str) -> Vec<u8> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/reading/samples");
    std::fs::read(folder.join(name)).unwrap()
}

fn of(name: &str) -> Reading {
    read(name, &sample(name)).unwrap()
}

fn utf16(text: &str, mark: bool) -> Vec<u8> {
    let mark: &[u8] = if mark { &[0xff, 0xfe] } else { &[] };
    mark.iter().copied().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
}

/// Format, platform, settings and remarks, one to a line.
fn rendered(reading: &Reading) -> String {
    let head = format!("{} [{}] others {}", reading.format, reading.platform, reading.others);
    let found = reading.found.iter().map(|found| {
        let value = found.value.as_deref().unwrap_or("(absent)");
        format!("{}:{} {} = {value}", found.place.line, found.place.column, found.knob)
    });
    let links = reading.links.iter().map(|link| format!("{link:?}"));
    let machine = (reading.machine != MachineFacts::default()).then(|| format!("{:?}", reading.machine));
    let mbufs = reading.mbufs.map(|mbufs| format!("{mbufs:?}"));
    let remarks = reading
        .remarks
        .iter()
        .map(|remark| format!("{}:{} {:?}: {}", remark.place.line, remark.place.column, remark.kind, remark.message));
    std::iter::once(head)
        .chain(found)
        .chain(links)
        .chain(machine)
        .chain(mbufs)
        .chain(remarks)
        .collect::<Vec<_>>()
        .join("\n")
}

macro_rules! golden {
    ($($test:ident: $file:literal),* $(,)?) => {$(
        #[test]
        fn $test() {
            insta::assert_snapshot!(rendered(&of($file)));
        }
    )*};
}

golden! {
    reads_sysctl_of_linux: "sysctl-linux.txt",
    reads_sysctl_of_freebsd: "sysctl-freebsd.txt",
    reads_sysctl_of_macos: "sysctl-macos.txt",
    reads_sysctl_conf: "sysctl.conf",
    reads_loader_conf: "loader.conf",
    reads_rc_conf: "rc.conf",
    reads_netsh_and_lists_of_one_file: "netsh-2012.txt",
    reads_netsh_supplemental: "netsh-supplemental.txt",
    reads_a_powershell_table: "table.txt",
    reads_powershell_csv: "settings.csv",
    reads_powershell_json: "settings.json",
    reads_powershell_clixml: "settings.clixml",
    reads_ifconfig_of_linux: "ifconfig-linux.txt",
    reads_ifconfig_of_old_linux: "ifconfig-old-linux.txt",
    reads_ifconfig_of_freebsd: "ifconfig-freebsd.txt",
    reads_ifconfig_of_macos: "ifconfig-macos.txt",
    reads_netstat_of_freebsd: "netstat-freebsd.txt",
    reads_netstat_of_freebsd_4: "netstat-freebsd4.txt",
    reads_a_netburner_source: "device.c",
}

const KEY: &str = r"HKEY_LOCAL_MACHINE\SYSTEM\ControlSet001\Services\Tcpip\Parameters";

#[test]
fn reads_registry_exports_in_each_encoding() {
    let five = format!(
        "Windows Registry Editor Version 5.00\r\n\r\n[{KEY}]\r\n\"TcpWindowSize\"=dword:0000faf0\r\n\"Tcp1323Opts\"=-\r\n\"Größe\"=dword:1\r\n"
    );
    let big: Vec<u8> = [0xfe, 0xff].into_iter().chain(five.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    let ansi: Vec<u8> = five.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let four = five.replace("Windows Registry Editor Version 5.00", "REGEDIT4");
    let texts = [utf16(&five, true), utf16(&five, false), big, ansi, four.into_bytes()];
    for bytes in texts {
        let reading = read("export.reg", &bytes).unwrap();
        let values: Vec<Option<&str>> = reading.found.iter().map(|found| found.value.as_deref()).collect();
        assert_eq!((values, reading.others), (vec![Some("64240"), None], 1));
    }
}

#[test]
fn offloads_of_adapters_are_read_in_every_form() {
    let rsc = "Name                           IPv4Enabled  IPv6Enabled  IPv4Operational IPv6Operational IPv4FailureReason\n                                                        State           State\n----                           -----------  -----------  --------------- --------------- -----------------\nEthernet 2                     True         False        False           False           WFPCompatibility\n\n";
    let lso = br#"[{"Name": "Ethernet 2", "V1IPv4Enabled": false, "IPv4Enabled": false, "IPv6Enabled": true}]"#;
    let rss = "Name                                            : Ethernet 2\nInterfaceDescription                            : Intel(R) X550\nEnabled                                         : False\nNumberOfReceiveQueues                           : 8\nProfile                                         : NUMAStatic\n\n";
    let csv = "\"Name\",\"IPv4Enabled\",\"IPv6Enabled\",\"IPv4OperationalState\"\n\"Ethernet 2\",\"False\",\"True\",\"False\"\n";
    for (text, expected) in [
        (rsc.as_bytes(), &[("*RscIPv4", "1"), ("*RscIPv6", "0")][..]),
        (lso, &[("*LsoV2IPv4", "0"), ("*LsoV2IPv6", "1")]),
        (rss.as_bytes(), &[("*RSS", "0")]),
        (csv.as_bytes(), &[("*RscIPv4", "0"), ("*RscIPv6", "1")]),
    ] {
        let reading = read("x.txt", text).unwrap();
        let found: Vec<_> =
            reading.found.iter().map(|found| (found.knob.to_string(), found.value.clone().unwrap())).collect();
        let named = |(property, value): &(&str, &str)| (format!("link Ethernet 2 {property}"), (*value).to_owned());
        assert_eq!(found, expected.iter().map(named).collect::<Vec<_>>());
    }
    // What is switched on and does not run is said with Windows' reason.
    let reading = read("x.txt", rsc.as_bytes()).unwrap();
    let inactive = reading.remarks.iter().find(|remark| remark.kind == RemarkKind::Inactive).unwrap();
    assert!(inactive.message.contains("WFPCompatibility"), "{}", inactive.message);
}

#[test]
fn half_of_an_output_with_labels_is_said_to_be_cut_off() {
    let netsh = include_str!("samples/netsh-2012.txt");
    let netsh = &netsh[..netsh.find("\n** The").unwrap()];
    let supplemental = include_str!("samples/netsh-supplemental.txt");
    let list = "SettingName                   : Internet\nMinRto(ms)                    : 300\nAutoTuningLevelLocal          : Normal\n\n";
    for (whole, cuts) in [
        (netsh, &["restricted\nAdd", "none\nECN", ": 3000\n", " restricted\n"][..]),
        (supplemental, &["Congestion Window Restart", ": 10\n", " cubic\n", "disabled\nDelayed"]),
        (list, &["Normal\n", "Level", ": Normal"]),
    ] {
        let is_cut = |text: &str| {
            let reading = read("x.txt", text.as_bytes()).unwrap();
            reading.remarks.iter().any(|remark| remark.kind == RemarkKind::Unread && remark.message.contains("cut off"))
        };
        assert!(!is_cut(whole), "{whole}");
        for cut in cuts {
            assert!(is_cut(&whole[..whole.find(cut).unwrap()]), "{cut}");
        }
    }
    // Behind a title nothing is known, and a value may have lost its end.
    let title = format!("{supplemental}\nTCP Window Scaling heuristics Parameters\n----------------------\n");
    let reading = read("x.txt", title.as_bytes()).unwrap();
    assert!(reading.remarks.iter().any(|remark| remark.message.contains("cut off")), "{:?}", reading.remarks);
    let reading = read("x.txt", &netsh.as_bytes()[..netsh.find("000\nReceive Segment").unwrap() + 1]).unwrap();
    assert!(reading.remarks.iter().any(|remark| remark.message.contains("no line break")), "{:?}", reading.remarks);
}

#[test]
fn an_export_without_its_empty_last_line_proves_nothing_absent_and_looks_cut_off() {
    let whole = format!(
        "Windows Registry Editor Version 5.00\r\n\r\n[{KEY}]\r\n\"DataBasePath\"=hex(2):25,00,00,00\r\n\"TcpWindowSize\"=dword:0001f5e0\r\n\r\n"
    );
    let cuts = [whole.len(), whole.len() - 2, whole.find("\"TcpW").unwrap(), whole.find(",00,00\r").unwrap() + 3];
    for (index, cut) in cuts.into_iter().enumerate() {
        let reading = read("a.reg", &whole.as_bytes()[..cut]).unwrap();
        assert_eq!(reading.found.iter().any(|found| found.value.is_none()), index == 0, "{cut}");
        assert_eq!(reading.remarks.iter().any(|remark| remark.message.contains("cut off")), index > 0, "{cut}");
    }
}

#[test]
fn an_export_of_a_whole_key_proves_what_is_absent_and_a_few_lines_prove_nothing() {
    let adapter = format!(r"{KEY}\Interfaces\{{0A1B-2C}}");
    let export = format!(
        "Windows Registry Editor Version 5.00\n\n[{KEY}]\n\"DataBasePath\"=hex(2):25,00,00,00\n\"Tcp1323Opts\"=dword:00000001\n\n[{adapter}]\n\"EnableDHCP\"=dword:00000001\n\n"
    );
    let values = |text: &str| {
        let reading = read("a.reg", text.as_bytes()).unwrap();
        let merged = merge(&[reading], Some(&"windows-xp".parse().unwrap())).unwrap();
        merged.settings.values
    };
    let found = values(&export);
    let at = |key: &str, value: &str| {
        let key = key.replace("HKEY_LOCAL_MACHINE", "HKLM").replace("ControlSet001", "CurrentControlSet");
        Address::Registry { key, value: value.to_owned() }
    };
    assert_eq!(found.get(&at(KEY, "Tcp1323Opts")), Some(&Some("1".to_owned())));
    assert_eq!(found.get(&at(KEY, "TcpWindowSize")), Some(&None));
    assert_eq!(found.get(&at(&adapter, "MTU")), Some(&None));
    // Another adapter, or a key that the export doesn't have, is not reported.
    assert_eq!(found.get(&at(&format!(r"{KEY}\Interfaces\{{FFFF}}"), "MTU")), None);
    for recipe in [
        format!("REGEDIT4\n[{KEY}]\n\"Tcp1323Opts\"=dword:1\n"),
        export.replace("[HKEY", "; mine\n[HKEY"),
        format!("{export}\"TcpAckFrequency\"=-\n"),
        format!("{export}\"TcpAckFrequency\"=dword:x\n"),
    ] {
        assert_eq!(values(&recipe).get(&at(KEY, "TcpWindowSize")), None, "{recipe}");
    }
}

#[test]
fn a_key_in_another_case_is_the_same_setting() {
    let text = "REGEDIT4\n[HKEY_LOCAL_MACHINE\\System\\CurrentControlSet\\Services\\TCPIP\\Parameters]\n\"tcpwindowsize\"=dword:1\n[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters]\n\"TcpWindowSize\"=dword:2\n[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\services\\Tcpip\\parameters\\interfaces\\{0a1B-2c}]\n\"mtu\"=dword:5dc\n\"x\"=dword:1\n";
    let reading = read("a.reg", text.as_bytes()).unwrap();
    let knobs: Vec<String> = reading.found.iter().map(|found| found.knob.to_string()).collect();
    let parameters = r"registry HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
    assert_eq!(knobs, [format!(r"{parameters}\TcpWindowSize"), format!(r"{parameters}\Interfaces\{{0a1B-2c}}\MTU")]);
    assert_eq!((reading.remarks.len(), reading.remarks[0].kind), (1, RemarkKind::Contradiction));
}

/// Line, column and a part of the message of the error that a file ends in.
fn refused(name: &str, bytes: &[u8], line: u32, column: u32, part: &str) {
    let error = read(name, bytes).unwrap_err();
    assert_eq!((error.place.line, error.place.column), (line, column), "{error}");
    assert!(error.to_string().contains(part), "{error}");
    assert!(!error.to_string().contains(char::is_control), "{error:?}");
}

#[test]
fn damaged_registry_exports_are_refused_with_their_place() {
    let file = format!("Windows Registry Editor Version 5.00\r\n\r\n[{KEY}]\r\n\"TcpWindowSize\"=dword:0000faf0");
    let whole = utf16(&file, true);
    refused("a.reg", &whole[..whole.len() - 1], 4, 30, "cut off");
    refused("a.reg", b"Windows Registry Editor Version 6.00\r\n", 1, 1, "Version 5.00");
    refused("a.reg", b"\r\n\r\n  \"A\"=dword:1\r\n", 3, 3, "no header");
    let mut lone = utf16("REGEDIT4\r\n", true);
    lone.extend([0x00, 0xd8, 0x41, 0x00]);
    refused("a.reg", &lone, 2, 1, "mixed");
    let mut mixed = b"REGEDIT4\r\n".to_vec();
    mixed.extend(utf16("[HKLM]", false));
    refused("a.reg", &mixed, 2, 2, "two encodings");
    // ANSI text behind UTF-16 reads as characters of another script: lines that are none.
    let mut appended = utf16("Windows Registry Editor Version 5.00\r\n", true);
    appended.extend(b"[HKLM\\X]\r\n\"A1\"=-\r\n");
    let reading = read("a.reg", &appended).unwrap();
    assert_eq!(
        (reading.found.len(), reading.remarks[0].kind, reading.remarks[0].place.line),
        (0, RemarkKind::Unread, 2)
    );
}

#[test]
fn netsh_in_another_language_is_refused_with_the_way_out() {
    refused("global.txt", &sample("netsh-german.txt"), 3, 1, "ConvertTo-Json");
    let chinese = "TCP \u{5168}\u{5c40}\u{53c2}\u{6570}\n----------------------------------------------\n\u{63a5}\u{6536} : enabled\n";
    refused("global.txt", chinese.as_bytes(), 1, 1, "Export-CliXml");
    refused("global.txt", b"TCP Global Parameters\n---\n:\n---\n", 1, 1, "no line has a label");
    let heuristics = "Parameter der Fensterskalierungsheuristik\n----------------------------------------------\nFensterskalierungsheuristik  : disabled\n";
    refused("x", heuristics.as_bytes(), 1, 1, "ConvertTo-Json");
    refused("x", b"Notes\n----------------------------------------------\nhello world\n", 1, 1, "no format");
}

#[test]
fn netsh_supplemental_without_its_template_is_noted() {
    let text = "TCP Supplemental Parameters\n----------------------------------------------\nMinimum RTO (msec) : 300\nDelayed ACK frequency : 2\n";
    let reading = read("x", text.as_bytes()).unwrap();
    assert_eq!((reading.found.len(), reading.remarks.len(), reading.remarks[0].place.line), (0, 1, 3));
}

#[test]
fn damaged_objects_are_refused_with_their_place() {
    refused("a.json", b"[\n  {\"SettingName\": \"Internet\",\n   \"MinRto\": 30", 3, 16, "cut off");
    refused("a.json", b"{\"SettingName\" \"Internet\"}", 1, 16, "`:`");
    refused("a.json", b"{\"Name\": 5}", 1, 1, "no object");
    refused("a.json", "[".repeat(5_000).as_bytes(), 1, 102, "deep");
    refused("a.xml", b"<Objs>\n  <Obj>\n", 2, 3, "not closed");
    refused("a.xml", b"<Objs><Obj></Props></Objs>", 1, 12, "doesn't fit");
    refused("a.xml", b"<?xml version=\"1.0\"?>\n<!DOCTYPE a [<!ENTITY b \"c\">]>", 2, 1, "document type");
    refused("a.xml", b"<Objs><S N=\"a\">&lol;</S></Objs>", 1, 16, "entity");
    refused("a.csv", b"\"SettingName\",\"MinRto\"\n\"Internet\",\"30", 2, 12, "cut off");
    refused("a", b"", 1, 1, "empty");
    refused("notes.txt", b"\n  hello world\n", 2, 3, "sysctl -a");
}

#[test]
fn a_file_past_the_limit_is_refused() {
    refused("big.txt", &vec![b'a'; LARGEST + 1], 1, 1, "16 MiB");
}

#[test]
fn names_and_values_that_steer_a_terminal_are_not_passed_on() {
    let text = "net.ipv4.tcp_congestion_control = cu\u{1b}[31mbic\nnet.ipv4.tcp_sack = 1\n";
    let reading = read("a\u{1b}]0;x\u{7}.txt", text.as_bytes()).unwrap();
    assert_eq!(reading.found.len(), 1);
    assert!(!reading.file.contains(char::is_control));
    let device = read("x", b"eth0;reboot: flags=1<UP> mtu 1500\n").unwrap();
    assert_eq!((device.links.len(), device.remarks.len()), (0, 1));
    let template = read("x.json", br#"{"SettingName": "Internet; calc", "MinRto": 300}"#).unwrap();
    assert_eq!((template.found.len(), template.remarks.len()), (0, 1));
}

#[test]
fn values_out_of_their_range_are_told_with_their_place() {
    let reading =
        read("x", b"net.ipv4.tcp_sack = 7\nnet.ipv4.tcp_rmem = 4096 131072\nnet.core.rmem_max = lots\n").unwrap();
    let found: Vec<(u32, RemarkKind)> = reading.remarks.iter().map(|remark| (remark.place.line, remark.kind)).collect();
    assert_eq!(found, [(1, RemarkKind::OutOfRange), (2, RemarkKind::OutOfRange), (3, RemarkKind::OutOfRange)]);
}

fn merged(files: &[(&str, &str)], platform: Option<&str>) -> Result<Merged, MergeError> {
    let readings: Vec<Reading> = files.iter().map(|(name, text)| read(name, text.as_bytes()).unwrap()).collect();
    merge(&readings, platform.map(|platform| platform.parse().unwrap()).as_ref())
}

#[test]
fn what_holds_now_wins_over_a_boot_file_whatever_the_order() {
    let now = ("now.txt", "kernel.osrelease = 6.18.44\nnet.core.rmem_max = 212992\n");
    let boot = ("90-net.conf", "net.core.rmem_max = 4194304\nnet.ipv4.tcp_sack = 1\n");
    for files in [[now, boot], [boot, now]] {
        let merged = merged(&files, None).unwrap();
        assert_eq!(merged.settings.platform.to_string(), "linux-6.18.44");
        assert_eq!(merged.settings.sysctl("net.core.rmem_max"), Some("212992"));
        assert_eq!(merged.settings.sysctl("net.ipv4.tcp_sack"), Some("1"));
        assert_eq!(merged.settings.origins[&Address::sysctl("net.core.rmem_max")][0].file, "90-net.conf");
        assert_eq!(merged.contradictions.len(), 1);
        assert_eq!(merged.contradictions[0].taken_from.0, "now.txt");
    }
}

#[test]
fn of_two_files_of_one_kind_the_later_counts_and_both_are_noted() {
    let files = [("10-a.conf", "net.ipv4.tcp_sack = 1\n"), ("20-b.conf", "\nnet.ipv4.tcp_sack = 0\n")];
    let merged = merged(&files, Some("linux-6.18")).unwrap();
    assert_eq!(merged.settings.sysctl("net.ipv4.tcp_sack"), Some("0"));
    assert_eq!(merged.contradictions[0].left_from, ("10-a.conf".to_owned(), Place { line: 1, column: 1 }));
    assert_eq!(merged.settings.origins[&Address::sysctl("net.ipv4.tcp_sack")].len(), 2);
}

#[test]
fn files_of_two_platforms_are_not_put_together() {
    let linux = ("a", "net.core.rmem_max = 212992\n");
    let bsd = ("b", "net.inet.tcp.recvbuf_max: 2097152\n");
    assert!(matches!(merged(&[linux, bsd], None), Err(MergeError::Families { .. })));
    assert!(matches!(merged(&[linux], Some("windows-2012")), Err(MergeError::Families { .. })));
    let open = ("c", "kern.ipc.maxsockbuf: 2097152\n");
    assert!(matches!(merged(&[open], None), Err(MergeError::Unknown { .. })));
    assert_eq!(merged(&[open], Some("freebsd-14.1")).unwrap().settings.values.len(), 1);
}

#[test]
fn a_machine_is_read_from_its_files_as_rows() {
    let names = ["netsh-2012.txt", "netsh-supplemental.txt"];
    let readings: Vec<Reading> = names.iter().map(|name| of(name)).collect();
    let merged = merge(&readings, Some(&"windows-2012".parse().unwrap())).unwrap();
    let contradictions: Vec<String> =
        merged.contradictions.iter().map(|c| format!("{}: {:?} against {:?}", c.knob, c.taken, c.left)).collect();
    insta::assert_json_snapshot!((contradictions, table(&merged)));
}

#[test]
fn a_plan_starts_from_what_was_read() {
    for (file, named, knob, from) in [
        ("netsh-2012.txt", Some("windows-2012"), "netsh tcp global autotuninglevel", "restricted"),
        ("sysctl-freebsd.txt", None, "net.inet.tcp.recvbuf_max", "2097152"),
        ("sysctl-linux.txt", None, "net.ipv4.tcp_rmem", "4096 131072 6291456"),
        ("sysctl-macos.txt", None, "net.inet.tcp.autorcvbufmax", "4194304"),
        ("device.c", None, "call SetSocketRxBuffers", "20"),
    ] {
        let merged = merge(&[of(file)], named.map(|platform| platform.parse().unwrap()).as_ref()).unwrap();
        let plan = plan_platform(&PlatformRequest {
            settings: Some(&merged.settings),
            ..PlatformRequest::new(merged.settings.platform.clone(), "1G".parse().unwrap(), "80ms".parse().unwrap())
        });
        let change = plan.changes.iter().find(|change| change.knob.to_string() == knob);
        assert_eq!(change.and_then(|change| change.from.as_deref()), Some(from), "{file}: {:?}", plan.notes);
    }
}

#[test]
fn settings_with_buffers_survive_their_own_json_and_older_json_is_read() {
    let settings = Settings { mbufs: of("netstat-freebsd.txt").mbufs, ..Settings::default() };
    let text = serde_json::to_string(&settings).unwrap();
    assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
    let older = serde_json::to_string(&Settings::default()).unwrap();
    assert!(!older.contains("mbufs"));
    assert_eq!(serde_json::from_str::<Settings>(&older).unwrap(), Settings::default());
}

#[test]
fn large_files_of_each_shape_are_read_in_one_pass() {
    // Each would take minutes with a quadratic reader.
    let shapes: [(&str, String); 9] = [
        ("a", "net.ipv4.tcp_sack = 1\n".repeat(100_000)),
        ("a", format!("net.ipv4.tcp_sack = {}\n", "1".repeat(2_000_000))),
        ("a.json", format!("[{}{{}}]", "{\"SettingName\":\"Internet\",\"MinRto\":300},".repeat(40_000))),
        ("a.csv", format!("SettingName,MinRto,{}\n{}", "x".repeat(1_000_000), "Internet,300,\n".repeat(50_000))),
        (
            "a.xml",
            format!("<Objs>{}</Objs>", "<Obj><Props><S N=\"SettingName\">Internet</S></Props></Obj>".repeat(20_000)),
        ),
        ("a", format!("SettingName {}\n----------- ---\n{}", "x".repeat(1_000_000), "Internet    a\n".repeat(50_000))),
        ("a.c", format!("SetSocketRxBuffers({}", "(/*".repeat(500_000))),
        ("a.reg", format!("REGEDIT4\n{}", "[HKLM\\Parameters]\n\"EnableDHCP\"=\"\"\n".repeat(300_000))),
        ("a.reg", format!("REGEDIT4\n[HKLM\\{}]\n{}", "x".repeat(1_000_000), "\"a\"=-\n".repeat(100_000))),
    ];
    for (name, text) in shapes {
        drop(read(name, text.as_bytes()));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_without_a_panic(bytes: Vec<u8>, name in "\\PC{0,12}") {
        drop(read(&name, &bytes));
    }

    #[test]
    fn any_piece_of_a_sample_is_read_or_refused(
        which in 0..SAMPLES.len(),
        from in 0..400_usize,
        length in 0..600_usize,
        change in proptest::option::of((0..600_usize, any::<u8>())),
    ) {
        let mut bytes = sample(SAMPLES[which]);
        if let Some((at, byte)) = change
            && let Some(place) = bytes.get_mut(at)
        {
            *place = byte;
        }
        let piece = &bytes[from.min(bytes.len())..(from + length).min(bytes.len())];
        match read(SAMPLES[which], piece) {
            Ok(reading) => {
                let lines = u32::try_from(piece.iter().filter(|byte| **byte == b'\n').count()).unwrap() + 1;
                prop_assert!(reading.found.iter().all(|found| (1..=lines).contains(&found.place.line)));
                prop_assert!(reading.remarks.iter().all(|remark| !remark.message.contains(char::is_control)));
                drop(merge(&[reading], None).map(|merged| table(&merged)));
            }
            Err(error) => prop_assert!(!error.to_string().contains(char::is_control)),
        }
    }

    #[test]
    fn any_tokens_of_the_formats_are_read_or_refused(
        text in "(SettingName|MinRto|Internet|TCP|Parameters|-------------------- |:|=|,|;|\"|\\{|\\}|\\[|\\]|<Obj>|</Obj>|<S N=\"|net\\.ipv4\\.tcp_sack|#TYPE |mbuf clusters in use \\(max\\)|: flags=|SetSocketRxBuffers\\(|/\\*|\n| |1){0,60}",
    ) {
        for name in ["a", "a.c", "a.reg", "a.conf", "loader.conf"] {
            drop(read(name, text.as_bytes()));
        }
    }
}

const SAMPLES: [&str; 19] = [
    "sysctl-linux.txt",
    "sysctl-freebsd.txt",
    "sysctl-macos.txt",
    "sysctl.conf",
    "loader.conf",
    "rc.conf",
    "netsh-2012.txt",
    "netsh-supplemental.txt",
    "netsh-german.txt",
    "table.txt",
    "settings.csv",
    "settings.json",
    "settings.clixml",
    "ifconfig-linux.txt",
    "ifconfig-old-linux.txt",
    "ifconfig-freebsd.txt",
    "ifconfig-macos.txt",
    "netstat-freebsd.txt",
    "device.c",
];

#[test]
fn the_zones_of_vmstat_tell_the_clusters_as_netstat_does() {
    let zones = "ITEM                   SIZE  LIMIT     USED     FREE      REQ FAIL SLEEP\n\nUMA Kegs:               384,      0,      90,       0,      90,   0,   0\nmbuf_packet:            256, 26137965,    8190,    1424,    9121,   0,   0\nmbuf_cluster:          2048,  25600,    9614,      12,    9614,   3,   0\n";
    let reading = read("vmstat.txt", zones.as_bytes()).unwrap();
    assert_eq!((reading.format, reading.platform.family), (Format::VmstatZones, Family::FreeBsd));
    let mbufs = reading.mbufs.unwrap();
    assert_eq!((mbufs.clusters_in_use, mbufs.clusters_max, mbufs.denied), (Some(9614), Some(25600), Some(3)));
    assert_eq!(reading.found[0].value.as_deref(), Some("25600"));
    // Beside netstat -m neither takes away what the other tells; one without a limit tells none.
    let netstat = read("netstat.txt", b"516/714/1230/25600 mbuf clusters in use (current/cache/total/max)\n").unwrap();
    for both in [[reading.clone(), netstat.clone()], [netstat, reading]] {
        let merged = merge(&both, Some(&"freebsd-9.0".parse().unwrap())).unwrap().settings.mbufs.unwrap();
        assert_eq!((merged.clusters_max, merged.denied), (Some(25600), Some(3)));
    }
    let free = read("v", zones.replace("25600", "    0").as_bytes()).unwrap();
    assert_eq!((free.mbufs.unwrap().clusters_max, free.found.len()), (None, 0));
    // Half of it, and an output without the zone.
    let half = read("v", &zones.as_bytes()[..zones.find("  25600").unwrap()]).unwrap();
    assert!(half.remarks[0].message.contains("cut off"), "{:?}", half.remarks);
    assert!(read("v", &zones.as_bytes()[..zones.find("mbuf_c").unwrap()]).is_err());
}

#[test]
fn a_setup_file_tells_what_it_sets_and_takes_away() {
    let inf = "[Version]\nSignature=\"$CHICAGO$\"\n[DefaultInstall]\nAddReg=a\nDelReg=d\n[a]\nHKLM,SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters,TcpWindowSize,0x00010001,17520\n[d]\nHKLM,SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters,Tcp1323Opts\n";
    for name in ["x.inf", "paste"] {
        let reading = read(name, inf.as_bytes()).unwrap();
        assert_eq!(reading.format, Format::Setup);
        let found: Vec<_> = reading.found.iter().map(|found| found.value.as_deref()).collect();
        assert_eq!(found, [Some("17520"), None]);
    }
    let nothing = read("x.inf", b"[Version]\nSignature=\"$CHICAGO$\"\n").unwrap();
    assert!(nothing.remarks[0].message.contains("sets a value"), "{:?}", nothing.remarks);
}

#[test]
fn properties_of_a_driver_are_read_in_every_form() {
    let expected = ["link Ethernet 2 *LsoV2IPv4=0", "link Ethernet 2 *JumboPacket=9014"];
    let json = r#"[{"Name":"Ethernet 2","RegistryKeyword":"*LsoV2IPv4","RegistryValue":["0"]},{"Name":"Ethernet 2","RegistryKeyword":"*FlowControl","RegistryValue":["3"]},{"Name":"Ethernet 2","RegistryKeyword":"*JumboPacket","RegistryValue":["9014"]}]"#;
    let list = "Name            : Ethernet 2\nDisplayName     : Large Send Offload V2 (IPv4)\nDisplayValue    : Disabled\nRegistryKeyword : *LsoV2IPv4\nRegistryValue   : {0}\n\nName            : Ethernet 2\nRegistryKeyword : *JumboPacket\nRegistryValue   : {9014}\n";
    let csv = "\"Name\",\"DisplayValue\",\"RegistryKeyword\",\"RegistryValue\"\n\"Ethernet 2\",\"Disabled\",\"*LsoV2IPv4\",\"System.String[]\"\n\"Ethernet 2\",\"9014 Bytes\",\"*JumboPacket\",\"System.String[]\"\n";
    let object = |keyword: &str, value: &str| {
        format!(
            "<Obj RefId=\"0\"><MS><S N=\"Name\">Ethernet 2</S><S N=\"RegistryKeyword\">{keyword}</S><Obj N=\"RegistryValue\" RefId=\"1\"><TN RefId=\"1\"><T>System.String[]</T></TN>\n<LST>\n<S>{value}</S>\n</LST>\n</Obj></MS></Obj>"
        )
    };
    let clixml = format!("<Objs>{}{}</Objs>", object("*LsoV2IPv4", "0"), object("*JumboPacket", "9014"));
    for (name, text) in [("a.json", json), ("a.txt", list), ("a.csv", csv), ("adapters.xml", clixml.as_str())] {
        let reading = read(name, text.as_bytes()).unwrap();
        let found: Vec<String> = reading
            .found
            .iter()
            .map(|found| format!("{}={}", found.knob, found.value.as_deref().unwrap_or("-")))
            .collect();
        assert_eq!(found, expected, "{name}: {:?}", reading.remarks);
    }
}

#[test]
fn clusters_of_a_page_are_read_and_a_limit_of_0_is_none() {
    let netstat = "2048/702/2750/26368 mbuf clusters in use (current/cache/total/max)\n4000/0/4000/4000 4k (page size) jumbo clusters in use (current/cache/total/max)\n0/0/0/5859 9k jumbo clusters in use (current/cache/total/max)\n0/0/0 requests for mbufs denied (mbufs/clusters/mbuf+clusters)\n1042/0/0 requests for jumbo clusters denied (4k/9k/16k)\n";
    let zones = "ITEM                   SIZE  LIMIT     USED     FREE      REQ FAIL SLEEP\nmbuf_cluster:          2048,  26368,    2048,      12,    9614,   0,   0\nmbuf_jumbo_page:       4096,   4000,    4000,       0,   16207,1042,   0\n";
    for text in [netstat, zones] {
        let reading = read("x.txt", text.as_bytes()).unwrap();
        let mbufs = reading.mbufs.unwrap();
        assert_eq!((mbufs.pages_in_use, mbufs.pages_max, mbufs.pages_denied), (Some(4000), Some(4000), Some(1042)));
        assert_eq!((mbufs.clusters_max, mbufs.denied), (Some(26_368), Some(0)));
        let knobs: Vec<String> = reading.found.iter().map(|found| found.knob.to_string()).collect();
        assert_eq!(knobs, ["kern.ipc.nmbclusters", "kern.ipc.nmbjumbop"]);
        assert!(reading.remarks.iter().any(|remark| remark.message.contains("kern.ipc.nmbjumbop or the memory")));
    }
    let old = netstat.replace("4000/0/4000/4000", "0/0/0/0").replace("1042/0/0", "0/0/0");
    let reading = read("x.txt", old.as_bytes()).unwrap();
    assert_eq!((reading.mbufs.unwrap().pages_max, reading.remarks.len()), (None, 0));
}

#[test]
fn the_paragraphs_of_freebsd_5_tell_the_clusters() {
    let text = "mbuf usage:\n\tGEN cache:\t0/0 (in use/in pool)\n\tTotal:\t\t25/64 (in use/in pool)\n\tMaximum possible: 34432\n\t0% of mbuf map consumed\nmbuf cluster usage:\n\tGEN cache:\t0/0 (in use/in pool)\n\tTotal:\t\t12/64 (in use/in pool)\n\tMaximum possible: 17216\n\t0% of cluster map consumed\n144 KBytes of wired memory reserved (4% in use)\n7 requests for memory denied\n";
    let reading = read("x.txt", text.as_bytes()).unwrap();
    assert_eq!((reading.format, reading.platform.family), (Format::NetstatBuffers, Family::FreeBsd));
    let mbufs = reading.mbufs.unwrap();
    assert_eq!((mbufs.clusters_in_use, mbufs.clusters_max, mbufs.denied), (Some(12), Some(17_216), Some(7)));
}

#[test]
fn what_the_boot_loader_does_not_set_is_no_setting() {
    let text = b"kern.ipc.nmbclusters=\"65536\"\nnet.inet.tcp.sendbuf_max=\"16777216\"\n";
    let reading = read("loader.conf", text).unwrap();
    let sent = Address::sysctl("net.inet.tcp.sendbuf_max");
    let merged = merge(std::slice::from_ref(&reading), Some(&"freebsd-10.4".parse().unwrap())).unwrap();
    assert_eq!((merged.settings.values.len(), merged.dead.len()), (1, 1));
    assert_eq!(merged.dead[0].knob, sent);
    // Nobody read newer releases for it.
    assert_eq!(merge(&[reading], Some(&"freebsd-14.1".parse().unwrap())).unwrap().settings.values.len(), 2);
}

#[test]
fn blanks_around_an_equals_sign_are_read_as_the_version_reads_them() {
    let text = b"net.inet.tcp.recvspace = 262144\nnet.inet.tcp.sendspace=262144\n";
    let reading = read("sysctl.conf", text).unwrap();
    let of = |platform: &str| merge(std::slice::from_ref(&reading), Some(&platform.parse().unwrap())).unwrap();
    for (platform, values) in [("freebsd-6.2", 1), ("freebsd-9.3", 1), ("freebsd-10.4", 2), ("freebsd-14.1", 2)] {
        let merged = of(platform);
        assert_eq!((merged.settings.values.len(), merged.dead.len()), (values, 2 - values), "{platform}");
    }
    assert!(of("freebsd-6.2").dead[0].message.contains("first word"));
}

#[test]
fn netsh_is_read_with_few_dashes_and_with_none() {
    for rule in ["-----\n", ""] {
        let text = format!(
            "Querying active state...\n\nTCP Global Parameters\n{rule}Receive-Side Scaling State : enabled\nReceive Window Auto-Tuning Level : restricted\n"
        );
        let reading = read("global.txt", text.as_bytes()).unwrap();
        let settings = merge(&[reading], Some(&"windows-7".parse().unwrap())).unwrap().settings;
        let level: Address = "netsh tcp global autotuninglevel".parse().unwrap();
        assert_eq!(settings.values.get(&level), Some(&Some("restricted".to_owned())), "{text}");
    }
}

#[test]
fn a_line_that_new_versions_print_for_what_they_lack_is_no_sign_of_an_old_one() {
    let text = "TCP Global Parameters\n----------------------------------------------\nReceive Window Auto-Tuning Level    : normal\nAdd-On Congestion Control Provider  : default\nHyStart                             : enabled\n";
    let reading = read("global.txt", text.as_bytes()).unwrap();
    let platform: Platform = "windows-11".parse().unwrap();
    let settings = merge(&[reading], Some(&platform)).unwrap().settings;
    let (rate, rtt) = ("1G".parse().unwrap(), "40ms".parse().unwrap());
    let plan =
        plan_platform(&PlatformRequest { settings: Some(&settings), ..PlatformRequest::new(platform, rate, rtt) });
    assert!(plan.notes.iter().all(|note| !note.contains("another version")), "{:?}", plan.notes);
}

#[test]
fn an_output_of_sysctl_without_its_last_line_break_looks_cut_off_there() {
    let whole = "kernel.ostype = Linux\nnet.core.rmem_max = 212992\nnet.ipv4.tcp_rmem = 4096\t131072\t6291456\n";
    let of = |text: &str| {
        let reading = read("after.txt", text.as_bytes()).unwrap();
        let cut = reading.remarks.iter().any(|one| one.kind == RemarkKind::Unread && one.message.contains("cut off"));
        (cut, reading.found.len())
    };
    assert_eq!(of(whole), (false, 2));
    for end in ["096\t131", "net.ipv4.tcp_rmem = 4", "tcp_rmem", " = 4096", "6\n"] {
        let at = whole.find(end).unwrap() + 1;
        assert_eq!(of(&whole[..at]), (true, 1), "{end}");
    }
    assert_eq!(of(&whole[..whole.find("12992").unwrap()]), (true, 0));
    // A file that a person writes may end without one.
    let file = read("99-net.conf", whole.trim_end().as_bytes()).unwrap();
    assert!(file.remarks.is_empty() && file.found.len() == 2, "{:?}", file.remarks);
}
