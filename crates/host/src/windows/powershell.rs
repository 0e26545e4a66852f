//! What is asked of PowerShell, and its answer: TCP templates, global offloads, interfaces.
//!
//! Windows keeps these in WMI classes (MSFT_NetTCPSetting and others) that have cmdlets since Windows 8. A script goes in
//! as `-EncodedCommand`, so that no quoting of command lines is involved, and the answer is JSON whose names and values
//! are English in every language of Windows. What is *not* here: running it (`run.rs`).

use std::collections::BTreeMap;

use serde::Deserialize;

/// What the query answers with. A value that a version doesn't have is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Report {
    /// The templates, each with `SettingName` and its parameters.
    pub(super) templates: Vec<BTreeMap<String, String>>,
    /// The global offloads.
    pub(super) offloads: BTreeMap<String, String>,
    /// The interfaces that have IPv4.
    pub(super) links: Vec<LinkRow>,
    /// The transport filters that choose a template by nothing but the peer's address.
    pub(super) filters: Vec<FilterRow>,
    /// Physical memory in bytes.
    pub(super) memory: String,
}

/// One transport filter: all TCP connections to a prefix get a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct FilterRow {
    /// The template.
    pub(super) template: String,
    /// The peers: `192.0.2.0/24`.
    pub(super) prefix: String,
}

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct LinkRow {
    /// `{GUID}`, which doesn't change when somebody renames the connection.
    pub(super) guid: String,
    /// The connection's name, by which plans and people call it.
    pub(super) name: String,
    /// Its number, for the cmdlets.
    pub(super) index: String,
    /// The MTU in bytes.
    pub(super) mtu: String,
    /// The largest frame of its driver in bytes (`*JumboPacket`); empty where the driver has no such property.
    pub(super) jumbo: String,
    /// The speed in bit/s.
    pub(super) speed: String,
}

impl Report {
    pub(super) fn template(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        self.templates
            .iter()
            .find(|row| field(row, "SettingName").is_some_and(|found| found.eq_ignore_ascii_case(name)))
    }

    /// The prefixes whose connections get a template, as one value; `None` where there are none.
    pub(super) fn prefixes(&self, template: &str) -> Option<String> {
        let rows = self.filters.iter().filter(|row| row.template.eq_ignore_ascii_case(template));
        let mut prefixes: Vec<&str> = rows.map(|row| row.prefix.as_str()).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        (!prefixes.is_empty()).then(|| prefixes.join(" "))
    }

    /// An interface by its GUID or by its name.
    pub(super) fn link(&self, device: &str) -> Option<&LinkRow> {
        let called = |row: &&LinkRow| row.guid.eq_ignore_ascii_case(device) || row.name.eq_ignore_ascii_case(device);
        self.links.iter().find(called)
    }
}

/// A value by its name; Windows doesn't tell upper case from lower case.
pub(super) fn field<'a>(row: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    row.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// The answer to [`query`].
pub(super) fn parse(stdout: &[u8]) -> Result<Report, serde_json::Error> {
    let text = stdout.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stdout);
    serde_json::from_slice(text)
}

/// A script that tells these parameters of all templates, these global offloads, the interfaces, the filters that go by
/// the peer alone, and how much memory there is.
pub(super) fn query(parameters: &[&str], offloads: &[&str]) -> String {
    let list = |names: &[&str]| names.iter().map(|name| literal(name)).collect::<Vec<_>>().join(",");
    let row = "function Row($o,$names){$r=@{};foreach($n in $names){$p=$o.PSObject.Properties[$n];\
               if($p -ne $null -and $p.Value -ne $null){$r[$n]=[string]$p.Value}};$r}";
    let links = "@(Get-NetAdapter|ForEach-Object{$a=$_;\
                 $i=Get-NetIPInterface -InterfaceIndex $a.ifIndex -AddressFamily IPv4 -ErrorAction SilentlyContinue;\
                 $j=Get-NetAdapterAdvancedProperty -InterfaceDescription $a.InterfaceDescription \
                 -RegistryKeyword '*JumboPacket' -ErrorAction SilentlyContinue;\
                 if($i){@{guid=[string]$a.InterfaceGuid;name=[string]$a.Name;index=[string]$a.ifIndex;\
                 mtu=[string]$i.NlMtu;jumbo=[string]$j.RegistryValue;speed=[string]$a.Speed}}})";
    // What a rule for ports does is not one value: those are left alone. `*` is the rule that Windows comes with.
    let filters = "@(Get-NetTransportFilter|Where-Object{[string]$_.Protocol -eq 'TCP' -and $_.DestinationPrefix -ne '*' \
                   -and $_.LocalPortStart -eq 0 -and $_.LocalPortEnd -eq 65535 -and $_.RemotePortStart -eq 0 \
                   -and $_.RemotePortEnd -eq 65535}|ForEach-Object{@{template=[string]$_.SettingName;\
                   prefix=[string]$_.DestinationPrefix}})";
    let memory = "[string](Get-CimInstance Win32_ComputerSystem).TotalPhysicalMemory";
    guarded(&format!(
        "{row};$t=@(Get-NetTCPSetting|ForEach-Object{{Row $_ @('SettingName',{})}});\
         $o=Row (Get-NetOffloadGlobalSetting) @({});$l={links};$f={filters};$m={memory};\
         ConvertTo-Json -Compress -Depth 4 -InputObject @{{templates=$t;offloads=$o;links=$l;filters=$f;memory=$m}}",
        list(parameters),
        list(offloads),
    ))
}

/// A script that sets one parameter of a template.
pub(super) fn set_template(template: &str, parameter: &Word<'_>, value: &Word<'_>) -> String {
    guarded(&format!(
        "Set-NetTCPSetting -SettingName {} -{parameter} {} -Confirm:$false",
        literal(template),
        literal(value.0)
    ))
}

/// A script that sets one global offload.
pub(super) fn set_offload(name: &Word<'_>, value: &Word<'_>) -> String {
    guarded(&format!("Set-NetOffloadGlobalSetting -{name} {} -Confirm:$false", literal(value.0)))
}

/// A script that gives connections to these prefixes a template, and takes it from those others.
pub(super) fn set_filters(template: &Word<'_>, add: &[&str], remove: &[&str]) -> String {
    let template = literal(template.0);
    let added = add.iter().map(|prefix| {
        format!("[void](New-NetTransportFilter -SettingName {template} -DestinationPrefix {});", literal(prefix))
    });
    let removed = remove.iter().map(|prefix| {
        format!(
            "Get-NetTransportFilter -SettingName {template}|Where-Object{{$_.DestinationPrefix -eq {}}}\
             |Remove-NetTransportFilter -Confirm:$false;",
            literal(prefix)
        )
    });
    guarded(&added.chain(removed).collect::<String>())
}

/// A script that sets the MTU of an interface by its number.
pub(super) fn set_mtu(index: u32, mtu: u32) -> String {
    guarded(&format!(
        "Set-NetIPInterface -InterfaceIndex {index} -AddressFamily IPv4 -NlMtuBytes {mtu} -Confirm:$false"
    ))
}

/// A script that sets the largest frame of an interface's driver, and waits until the adapter is up again: it restarts.
pub(super) fn set_jumbo(index: u32, bytes: u32) -> String {
    guarded(&format!(
        "$a=Get-NetAdapter -InterfaceIndex {index};\
         $p=Get-NetAdapterAdvancedProperty -InterfaceDescription $a.InterfaceDescription -RegistryKeyword '*JumboPacket';\
         $v=@($p.ValidRegistryValues);if($v.Count -gt 0 -and $v -notcontains '{bytes}')\
         {{throw \"its driver takes only $([string]::Join(', ',$v))\"}};\
         $p|Set-NetAdapterAdvancedProperty -RegistryValue '{bytes}';\
         for($s=0;$s -lt 30 -and (Get-NetAdapter -InterfaceIndex {index}).Status -ne 'Up';$s++){{Start-Sleep -Seconds 1}}"
    ))
}

/// A script whose failure is one line of plain text and an exit code.
fn guarded(script: &str) -> String {
    format!(
        "$ErrorActionPreference='Stop';$ProgressPreference='SilentlyContinue';\
         [Console]::OutputEncoding=New-Object Text.UTF8Encoding $false;\
         try{{{script}}}catch{{[Console]::Error.WriteLine($_.Exception.Message);exit 1}}"
    )
}

/// A word of letters and digits only: the one thing that may stand in a script outside of quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'a>(&'a str);

impl<'a> Word<'a> {
    pub(super) fn new(text: &'a str) -> Option<Self> {
        let word = !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        word.then_some(Self(text))
    }

    pub(super) fn as_str(&self) -> &'a str {
        self.0
    }
}

impl std::fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// A text as PowerShell's verbatim string. The language takes the typographic quotes for the plain one as well
/// (about_Quoting_Rules; Windows PowerShell language specification 2.3.5.2), so all of them are doubled.
fn literal(text: &str) -> String {
    let mut quoted = String::from("'");
    for c in text.chars() {
        quoted.push(c);
        if matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}') {
            quoted.push(c);
        }
    }
    quoted.push('\'');
    quoted
}

/// The arguments of `powershell.exe` that run a script (about_PowerShell_exe): none of them needs a quote.
pub(super) fn arguments(script: &str) -> Vec<String> {
    let units: Vec<u8> = script.encode_utf16().flat_map(u16::to_le_bytes).collect();
    ["-NoLogo", "-NoProfile", "-NonInteractive", "-OutputFormat", "Text", "-EncodedCommand"]
        .into_iter()
        .map(str::to_owned)
        .chain([base64(&units)])
        .collect()
}

/// Base 64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let part = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = (part(0) << 16) | (part(1) << 8) | part(2);
        for (at, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = ALPHABET.get(((bits >> shift) & 63) as usize).copied().unwrap_or(b'=');
            text.push(if at <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn base_64_is_that_of_the_rfc() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
        assert_eq!(arguments("dir").last().map(String::as_str), Some("ZABpAHIA"));
    }

    #[test]
    fn a_quote_of_any_kind_stays_inside() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\u{2019};rm\u{201b}"), "'a\u{2019}\u{2019};rm\u{201b}\u{201b}'");
        assert!(set_template("x';Stop-Computer;'", &Word("MinRtoMs"), &Word("300")).contains("'x'';Stop-Computer;'''"));
    }

    #[test]
    fn only_words_stand_outside_of_quotes() {
        for text in ["", "a b", "-x", "a;b", "$x", "a'b", "é"] {
            assert_eq!(Word::new(text), None, "{text}");
        }
        assert!(Word::new("DCTCP").is_some());
    }

    #[test]
    fn the_answer_is_read_with_what_is_missing_left_out() {
        let json = br#"{"links":[{"guid":"{A}","index":"12","mtu":"1500","speed":"1000000000"}],"offloads":{"ReceiveSideScaling":"Enabled"},
            "templates":[{"SettingName":"Automatic"},{"SettingName":"Internet","MinRtoMs":"300","CwndRestart":"False"}]}"#;
        let report = parse(json).expect("read");
        assert_eq!(report.template("internet").and_then(|row| field(row, "minrtoms")), Some("300"));
        assert_eq!(report.template("Automatic").and_then(|row| field(row, "MinRtoMs")), None);
        assert_eq!(report.link("{a}").map(|row| row.mtu.as_str()), Some("1500"));
        assert_eq!(parse(b"{}").ok(), Some(Report::default()));
        for broken in [&b""[..], b"Get-NetTCPSetting : not recognized", b"{\"templates\":[{\"A\":1}]}"] {
            assert!(parse(broken).is_err());
        }
    }

    proptest! {
        #[test]
        fn a_literal_ends_only_at_its_end(text in "['\u{2018}-\u{201b}a;$`\"]{0,12}") {
            // Read as the language does: a quote inside is one of a pair.
            let quoted: Vec<char> = literal(&text).chars().collect();
            let is_quote = |c: char| matches!(c, '\'' | '\u{2018}'..='\u{201b}');
            let inner = &quoted[1..quoted.len() - 1];
            let (mut at, mut read) = (0, String::new());
            while let Some(c) = inner.get(at) {
                read.push(*c);
                if is_quote(*c) {
                    prop_assert_eq!(inner.get(at + 1), Some(c));
                    at += 1;
                }
                at += 1;
            }
            prop_assert_eq!(read, text);
        }
    }
}
