//! Scripts that people write: what runs other commands, what loops over adapters, and what can't be followed.

use super::{
    tests::{checked, judged},
    *,
};

/// The rules that speak of each line, as `line rule`, in order and once each.
fn rules(kind: Kind, text: &str, platform: &str) -> Vec<String> {
    let mut found: Vec<String> =
        judged(kind, text, platform, None).into_iter().map(|(line, _, rule)| format!("{line} {rule}")).collect();
    found.dedup();
    found
}

fn said(kind: Kind, text: &str, platform: &str) -> String {
    let request = LintRequest { platform: Some(platform.parse().unwrap()), path: None, ..LintRequest::default() };
    let found = lint(kind, text, &request).into_iter();
    found.map(|finding| format!("{} {}\n", finding.message, finding.fix.unwrap_or_default())).collect()
}

#[test]
fn loops_over_adapters_set_values_of_the_adapters() {
    let text = r#"for /f %%i in ('reg query "HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces"') do reg add "%%i" /v TcpAckFrequency /t REG_DWORD /d 1 /f
for /f "tokens=3*" %%i in ('reg query "HKLM\X" /f "ServiceName" /s ^| findstr /i "ServiceName"') do (
  reg add "HKLM\System\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\%%i" /v MTU /t REG_DWORD /d 1472 /f
  reg.exe add "%%~i" /v TcpNoDelay /t REG_DWORD /d 1 /f
) >nul 2>&1
"#;
    assert_eq!(
        rules(Kind::Batch, text, "windows-11"),
        ["1 copied-advice", "3 ping-for-mtu", "3 not-documented", "4 does-nothing"]
    );
    let interfaces = r"HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces";
    let text = format!(
        "Get-ChildItem '{interfaces}' | ForEach-Object {{ Set-ItemProperty -Path $_.PSPath -Name TcpAckFrequency -Value 1 }}\nforeach ($i in $all) {{ New-ItemProperty -Path \"{interfaces}\\$($i.InterfaceGuid)\" -Name TcpAckFrequency -Value 1 }}\nSet-ItemProperty -Path '{interfaces}\\*' -Name TcpAckFrequency -Value 1\nSet-ItemProperty -Path \"Registry::$($_.Name)\" -Name TcpAckFrequency -Value 1\n"
    );
    let found = rules(Kind::PowerShell, &text, "windows-11");
    for line in 1..=4 {
        assert!(found.contains(&format!("{line} copied-advice")), "{line}: {found:?}");
    }
}

#[test]
fn what_a_batch_file_runs_by_other_programs_is_judged() {
    for line in [
        "powershell -command \"Set-NetTCPSetting -SettingName Internet -AutoTuningLevelLocal Restricted\"",
        "powershell -NoProfile -ExecutionPolicy Bypass -Command Set-NetTCPSetting -SettingName Internet -AutoTuningLevelLocal Restricted",
        "PowerShell.exe \"& {Set-NetTCPSetting -SettingName Internet -AutoTuningLevelLocal Restricted}\"",
        "powershell \"Set-NetTCPSetting -SettingName \\\"Internet\\\" -AutoTuningLevelLocal Restricted\"",
        "if exist x (netsh int tcp set global autotuninglevel=disabled) else (echo no)",
        "if exist x (echo yes) else (netsh int tcp set global autotuninglevel=disabled)",
        "if exist x (\n) else (\nnetsh int tcp set global autotuninglevel=disabled\n)",
        "if \"%1\"==\"1\" netsh int tcp set global autotuninglevel=disabled",
        "if /i not \"%1\" == \"1\" netsh int tcp set global autotuninglevel=disabled",
        "if defined X if %X% geq 5 netsh int tcp set global autotuninglevel=disabled",
        "start /b netsh int tcp set global autotuninglevel=disabled",
        "start \"\" /wait netsh int tcp set global autotuninglevel=disabled",
        "%windir%\\system32\\netsh.exe int tcp set global autotuninglevel=disabled >nul 2>&1",
        "\"C:\\Windows\\System32\\netsh.exe\" int tcp set global autotuninglevel=disabled",
        "call netsh int tcp set global autotuninglevel = disabled",
        "cmd /c netsh int tcp set global autotuninglevel=disabled",
        "cmd.exe /d /c \"netsh int tcp set global autotuninglevel=disabled & exit\"",
        "set N=netsh int tcp set global\n%N% autotuninglevel=disabled",
        "for /l %%i in (1,1,2) do netsh int tcp set global autotuninglevel=disabled",
        "call :off autotuninglevel\ngoto :eof\n:off\nnetsh int tcp set global %~1=disabled\nexit /b\n",
        "nsudo -U:T netsh int tcp set global autotuninglevel=disabled",
    ] {
        let found = judged(Kind::Batch, line, "windows-10", None);
        assert!(found.iter().any(|(_, _, rule)| rule == "harmful" || rule == "read-only"), "{line}: {found:?}");
    }
    let line = "C:\\Windows\\System32\\reg.exe add \"HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\" /v SackOpts /t REG_DWORD /d 0 /f";
    assert_eq!(rules(Kind::Batch, line, "windows-xp"), ["1 harmful"]);
}

#[test]
fn a_subroutine_is_judged_where_it_gets_its_values() {
    let text = r#"call :set TcpWindowSize 64240
call :set SackOpts 0
goto :eof
:set
reg add "HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters" /v %1 /t REG_DWORD /d %2 /f
exit /b
"#;
    assert_eq!(rules(Kind::Batch, text, "windows-xp"), ["1 fine", "2 harmful"]);
    let text = "function Set-It { param($Name, $Value = 0) Set-ItemProperty -Path 'HKLM:\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters' -Name $Name -Value $Value }\nSet-It -Name SackOpts\nSet-It TcpWindowSize 64240\n";
    assert_eq!(rules(Kind::PowerShell, text, "windows-xp"), ["2 harmful", "3 fine"]);
    let text = "#!/bin/sh\nput() {\n  local k=$1\n  sysctl -w \"$k=$2\"\n}\nput net.ipv4.tcp_sack 0\nput net.ipv4.tcp_sack \"$X\"\n";
    // What the call does not tell either is named at both.
    assert_eq!(rules(Kind::Script, text, "linux-6.18"), ["4 not-judged", "6 harmful", "7 not-judged"]);
    // A function that nothing calls may be called by another script.
    let text = "#!/bin/sh\ntune() {\n  sysctl -w net.ipv4.tcp_sack=0\n}\n";
    assert_eq!(rules(Kind::Script, text, "linux-6.18"), ["3 harmful"]);
    // Menus call one another.
    let text = "#!/bin/sh\na() { b; sysctl -w net.ipv4.tcp_sack=0; }\nb() { a; }\na\n";
    assert_eq!(rules(Kind::Script, text, "linux-6.18"), ["2 harmful"]);
}

#[test]
fn what_powershell_runs_by_other_programs_is_judged() {
    for line in [
        "cmd /c \"netsh int tcp set global rss=disabled\"",
        "cmd.exe /c netsh int tcp set global rss=disabled",
        "& netsh int tcp set global rss=disabled",
        "& \"$env:windir\\System32\\netsh.exe\" int tcp set global rss=disabled",
        "$out = netsh int tcp set global rss=disabled 2>&1",
        "Invoke-Expression \"netsh int tcp set global rss=disabled\"",
        "$x = Invoke-Expression -Command \"netsh int tcp set global rss=disabled\" -ErrorAction Stop | Out-String",
        "iex 'Set-NetOffloadGlobalSetting -ReceiveSideScaling Disabled'",
        "$all = 'rss', 'x'\nforeach ($one in $all) { Invoke-Expression \"netsh int tcp set global $one=disabled\" }",
        "Start-Process netsh -ArgumentList 'int tcp set global rss=disabled' -Wait",
        "Start-Process -FilePath 'netsh.exe' -ArgumentList 'int','tcp','set','global','rss=disabled' -Verb RunAs",
        "Start-Process powershell -ArgumentList '-NoProfile -Command netsh int tcp set global rss=disabled'",
        "param([string]$State = 'disabled', [int]$N = 2) # a user's choice\nnetsh int tcp set global rss=$State",
        "function Off($What = 'rss') { netsh int tcp set global \"$What=disabled\" }\nOff",
        "$step = [Step]::new('a', { netsh int tcp set global rss=disabled })",
        "$table = @{ A = 1 # Nagle's\n}\nnetsh int tcp set global rss=disabled",
    ] {
        let found = rules(Kind::PowerShell, line, "windows-10");
        assert!(found.iter().any(|rule| rule.ends_with("harmful")), "{line}: {found:?}");
    }
    // A file of both languages.
    let both =
        "@powershell -nop -f \"%~f0\" & exit /b\n$state = 'disabled'\nnetsh int tcp set global rss=$state # off\n";
    assert_eq!(rules(Kind::Batch, both, "windows-10"), ["3 harmful"]);
    let line = "sp 'HKLM:\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Multimedia\\SystemProfile' NetworkThrottlingIndex -1 -type dword";
    assert!(!rules(Kind::PowerShell, line, "windows-10").contains(&"1 wrong-type".to_owned()));
    let line = "iex -Command 'netsh int tcp set supplemental Internet congestionprovider=cubic' -ErrorAction Stop";
    assert_eq!(rules(Kind::PowerShell, line, "windows-2019"), ["1 fine"]);
    let line = "[Microsoft.Win32.Registry]::SetValue('HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters', 'SackOpts', 0)";
    assert_eq!(rules(Kind::PowerShell, line, "windows-xp"), ["1 harmful"]);
}

#[test]
fn what_a_shell_script_runs_and_writes_is_judged() {
    for line in [
        "echo 0 | sudo tee /proc/sys/net/ipv4/tcp_sack",
        "echo 0 | sudo tee /proc/sys/net/ipv4/tcp_sack > /dev/null",
        "sudo sh -c 'echo 0 > /proc/sys/net/ipv4/tcp_sack'",
        "sudo -u root bash -c \"sysctl -w net.ipv4.tcp_sack=0\"",
        "su -c 'sysctl -w net.ipv4.tcp_sack=0'",
        "env A=1 nice -n 5 timeout 5 sysctl -w net.ipv4.tcp_sack=0",
        "ip netns exec a sysctl -w net.ipv4.tcp_sack=0",
        "cat > /etc/sysctl.d/9.conf <<EOF\nnet.ipv4.tcp_sack = 0\nEOF",
        "cat <<'EOF' | sudo tee -a /etc/sysctl.conf >/dev/null\nnet.ipv4.tcp_sack = 0\nEOF",
        "sudo tee /etc/sysctl.d/9.conf <<-EOF\n\tnet.ipv4.tcp_sack = 0\n\tEOF",
        "F=/etc/sysctl.d/9.conf\necho net.ipv4.tcp_sack=0 >> \"$F\"",
        "printf 'net.ipv4.tcp_fack=1\\nnet.ipv4.tcp_sack=0\\n' >> /etc/sysctl.conf",
        "printf '%s\\n' net.ipv4.tcp_sack=0 >> /etc/sysctl.conf",
        "echo \"\nnet.ipv4.tcp_sack=0\n\" >> /etc/sysctl.conf",
        "{\n  echo '# x'\n  echo net.ipv4.tcp_sack=0\n} > /etc/sysctl.d/9.conf",
        "cat > tune.sh <<EOF\n#!/bin/sh\nsysctl -w net.ipv4.tcp_sack=0\nEOF",
        "cat > /etc/systemd/system/t.service <<EOF\n[Service]\nExecStart=/sbin/sysctl -w net.ipv4.tcp_sack=0\nEOF",
        "sudo bash <<EOF\nsysctl -w net.ipv4.tcp_sack=0\nEOF",
        "declare -A S=( [\"net.ipv4.tcp_sack\"]=\"0\" )\nfor k in \"${!S[@]}\"; do sysctl -w \"$k=${S[$k]}\"; done",
        "L=(net.ipv4.tcp_sack=0 \"net.ipv4.tcp_rmem=4096 131072 6291456\")\nfor s in \"${L[@]}\"; do sysctl -w \"$s\"; done",
    ] {
        let found = rules(Kind::Script, &format!("#!/bin/bash\n{line}\n"), "linux-6.18");
        assert!(found.iter().any(|rule| rule.ends_with("harmful")), "{line}: {found:?}");
        assert!(!found.iter().any(|rule| rule.ends_with("not-judged")), "{line}: {found:?}");
    }
}

#[test]
fn adapters_and_queues_of_a_script_are_judged_or_named() {
    let text = "#!/bin/sh\nethtool -K eth0 tso off gro off rx off\nethtool -G eth0 rx 4096\nethtool -C eth0 rx-usecs 0\nethtool -k eth0\nip link set dev eth0 mtu 9014 txqueuelen 10000\ntc qdisc replace dev eth0 root fq\ntc qdisc add dev eth0 root netem loss 1%\ntc qdisc show\nsed -i s/1/0/ /etc/sysctl.conf\n";
    assert_eq!(
        rules(Kind::Script, text, "linux-6.18"),
        [
            "2 harmful",
            "2 not-judged",
            "3 fine",
            "4 not-judged",
            "6 frame-for-mtu",
            "6 fine",
            "7 fine",
            "8 not-judged",
            "10 not-judged"
        ]
    );
    let slow = judged(Kind::Script, "ethtool -K eth0 gro off", "linux-6.18", Some(("100M", "10ms")));
    assert_eq!(slow, [(1, Level::Note, "no-gain".to_owned())]);
    let text = "#!/bin/sh\nsysrc ifconfig_em0=\"inet 10.0.0.1/24 mtu 9014\"; sysctl net.inet.tcp.sack.enable=0\necho 'net.inet.tcp.recvbuf_auto=0' >> /boot/loader.conf\n";
    assert_eq!(rules(Kind::Script, text, "freebsd-14.1"), ["2 frame-for-mtu", "2 harmful", "3 harmful"]);
    let found = said(Kind::Script, "sysrc -f /etc/sysctl.conf net.inet.tcp.sendspace=65536", "freebsd-13.2");
    assert!(found.contains("sysrc refuses `net.inet.tcp.sendspace`"), "{found}");
    let found = said(Kind::Script, "sysctl -w net.core.rmem_max = 1", "linux-6.18");
    assert!(found.contains("as one word: with spaces around the `=` nothing is set"), "{found}");
}

#[test]
fn what_cannot_be_followed_is_named_and_what_is_only_shown_is_not() {
    for (kind, line) in [
        (Kind::Batch, "schtasks /create /tn x /tr \"netsh int tcp set global rss=disabled\""),
        (Kind::Batch, "echo netsh int tcp set global rss=disabled >> later.cmd"),
        (Kind::Batch, "powershell -enc SQBFAFgA"),
        (Kind::Batch, "powershell -File tune.ps1"),
        (Kind::Batch, "reg import tune.reg"),
        (Kind::PowerShell, "Edit-RegistryEntry $path \"TcpAckFrequency\" -Dec 1"),
        (Kind::PowerShell, "$settings = @{\n  'TcpAckFrequency' = 1\n}"),
        (Kind::PowerShell, "$key.SetValue('TcpWindowSize', 65535)"),
        (Kind::Batch, "forfiles /c \"cmd /c start netsh 'int','tcp','set','global','rss=disabled'\""),
        (Kind::Script, "cat > /etc/sysctl.d/9.conf <<EOF\n$LINES\nEOF"),
        (Kind::Script, "apply net.ipv4.tcp_fin_timeout 10"),
        (Kind::Script, "L=(\n  net.ipv4.tcp_sack=0\n)\nfor s in \"${L[@]}\"; do apply \"$s\"; done"),
        (Kind::Script, "find . | xargs sysctl -w net.ipv4.tcp_sack=0"),
        (Kind::Script, "while read k; do sysctl -w net.ipv4.$k=0; done < list"),
        (Kind::Script, "X=1; X=''; sysctl -w net.ipv4.tcp_sack=$X"),
    ] {
        let found = rules(kind, line, if kind == Kind::Script { "linux-6.18" } else { "windows-10" });
        assert!(matches!(found.as_slice(), [one] if one.ends_with("not-judged")), "{line}: {found:?}");
    }
    for (kind, line) in [
        (Kind::Batch, "echo netsh int tcp set global rss=disabled"),
        (Kind::Batch, "rem netsh int tcp set global rss=disabled\n:: netsh int tcp set global rss=disabled"),
        (Kind::Batch, "netsh int tcp show global\nreg query HKLM\\X /v TcpAckFrequency"),
        (
            Kind::PowerShell,
            "Write-Host 'netsh int tcp set global rss=disabled'\nGet-ItemProperty -Name TcpAckFrequency",
        ),
        (Kind::PowerShell, "$TcpWindowSize = 8192\nOptimize -KeepAliveTime 5"),
        (
            Kind::Script,
            "sysctl net.ipv4.tcp_sack >> before.txt\ngrep net.ipv4.tcp_sack=0 x\nX=$(sysctl -n net.ipv4.tcp_sack)",
        ),
        (Kind::Batch, "netsh int ip set dynamicport tcp start=1 & netsh int ip set global x"),
        (Kind::Script, "command -v iperf3\nsysctl -p\nethtool -k eth0"),
    ] {
        assert_eq!(
            rules(kind, line, if kind == Kind::Script { "linux-6.18" } else { "windows-10" }),
            [""; 0],
            "{line}"
        );
    }
}

#[test]
fn of_two_branches_none_conflicts_with_the_other() {
    for (kind, text, platform) in [
        (
            Kind::PowerShell,
            "if ($x) { netsh int tcp set global ecncapability=enabled } else { netsh int tcp set global ecncapability=disabled }",
            "windows-10",
        ),
        (
            Kind::PowerShell,
            "if ($x) {\n netsh int tcp set global ecncapability=enabled\n}\nelseif ($y) {\n netsh int tcp set global ecncapability=disabled\n}\nelse {\n netsh int tcp set global ecncapability=default\n}",
            "windows-10",
        ),
        (
            Kind::Batch,
            "if exist x (\nnetsh int tcp set global ecncapability=enabled\n) else (\nnetsh int tcp set global ecncapability=disabled\n)",
            "windows-10",
        ),
        (
            Kind::Batch,
            "if \"%1\"==\"on\" netsh int tcp set global ecncapability=enabled\nif not \"%1\"==\"on\" netsh int tcp set global ecncapability=disabled",
            "windows-10",
        ),
        (
            Kind::Batch,
            "if (%1)==(on) netsh int tcp set global ecncapability=enabled\nif (%1) equ (off) (netsh int tcp set global ecncapability=disabled)",
            "windows-10",
        ),
        (
            Kind::Script,
            "if true; then\n sysctl -w net.ipv4.tcp_ecn=1\nelse\n sysctl -w net.ipv4.tcp_ecn=2\nfi",
            "linux-6.18",
        ),
    ] {
        let found = rules(kind, text, platform);
        assert!(!found.iter().any(|rule| rule.ends_with("conflicts-with")), "{text}: {found:?}");
        // Behind the branches it counts for both.
        let after = format!(
            "{text}\n{}\n",
            if kind == Kind::Script {
                "sysctl -w net.ipv4.tcp_ecn=0"
            } else {
                "netsh int tcp set global ecncapability=restricted"
            }
        );
        let found = rules(kind, &after, platform);
        assert!(found.iter().any(|rule| rule.ends_with("conflicts-with")), "{after}: {found:?}");
    }
    let found = said(Kind::Batch, "netsh int tcp set global rss=enabled rss=disabled", "windows-10");
    assert!(found.contains("this line sets netsh tcp global rss to `enabled` and to `disabled`"), "{found}");
    assert!(!found.contains("delete line 1"), "{found}");
}

#[test]
fn options_of_two_sockets_are_no_conflict() {
    let rules = |text: &str| rules(Kind::Device, text, "netburner");
    let bad = |found: &[String]| found.iter().filter(|rule| !rule.ends_with(" fine")).cloned().collect::<Vec<_>>();
    assert_eq!(bad(&rules("setsockoption(a, SO_NONAGLE);\nsetsockoption(b, SO_NOPUSH);\n")), [""; 0]);
    let functions =
        "void f(int fd) {\n setsockoption(fd, SO_NONAGLE);\n}\nvoid g(int fd) {\n setsockoption(fd, SO_NOPUSH);\n}\n";
    assert_eq!(bad(&rules(functions)), [""; 0]);
    let branches = "void f(int fd) {\n if (x) setsockoption(fd, SO_NONAGLE);\n else setsockoption(fd, SO_NOPUSH);\n}\n";
    assert_eq!(bad(&rules(branches)), [""; 0]);
    let one = "void f(int fd) {\n setsockoption(fd, SO_NONAGLE);\n setsockoption(fd, SO_NOPUSH);\n}\n";
    assert_eq!(bad(&rules(one)), ["3 conflicts-with"]);
    let two = "SetSocketTxBuffers(a, 40);\nSetSocketUnackBuffers(b, 20);\nSetSocketUnackBuffers(a, 40);\n";
    assert_eq!(bad(&rules(two)), [""; 0]);
}

#[test]
fn constants_of_a_source_are_numbers_that_it_gives() {
    let text = "const int kN = 40;\nstatic constexpr int kTx{20};\n#define TWICE (2 * kTx)\nenum { FIVE = 5, SIX,\n  SEVEN };\nSetSocketRxBuffers(a, kN);\nSetSocketTxBuffers(a, kTx);\nSetSocketUnackBuffers(a, TWICE);\nSetSocketRxBuffers(b, SEVEN + 3);\nSetSocketRxBuffers(c, given);\n";
    let (steps, _) = recipe::read(Kind::Device, text);
    let found: Vec<String> = steps
        .into_iter()
        .filter_map(|step| match step.action {
            Action::Set(_, value) => Some(format!("{} {value}", step.line)),
            Action::Unclear(_) => Some(format!("{} ?", step.line)),
            _ => None,
        })
        .collect();
    assert_eq!(found, ["6 40", "7 20", "8 40", "9 10", "10 ?"]);
}

#[test]
fn powershells_own_ways_are_no_errors() {
    let what_if = "Set-NetTCPSetting -SettingName Internet -AutoTuningLevelLocal Disabled -WhatIf";
    assert_eq!(rules(Kind::PowerShell, what_if, "windows-2019"), ["1 not-judged"]);
    assert!(said(Kind::PowerShell, what_if, "windows-2019").contains("changes nothing"));
    let piped = "Get-NetTCPSetting -SettingName InternetCustom | Set-NetTCPSetting -AutoTuningLevelLocal Restricted";
    let found = said(Kind::PowerShell, piped, "windows-2019");
    assert!(found.contains("-SettingName InternetCustom -AutoTuningLevelLocal Normal"), "{found}");
    let all = "Get-NetTCPSetting | Set-NetTCPSetting -AutoTuningLevelLocal Restricted";
    assert!(!said(Kind::PowerShell, all, "windows-2019").contains("-SettingName *"));
    let short = "Set-NetTCPSetting -setting Internet -autot Disabled -ea 0";
    assert_eq!(checked(Kind::PowerShell, short, "windows-2019").1, "harmful");
    // Three parameters begin so, and PowerShell takes none of them.
    assert_eq!(
        checked(Kind::PowerShell, "Set-NetTCPSetting -setting Internet -auto Disabled", "windows-2019").1,
        "syntax"
    );
}

#[test]
fn a_congestion_control_that_there_is_none_of_gets_the_name_that_was_meant() {
    use Level::{Note, Ok, Warning};
    for (line, platform, level, rule) in [
        ("net.ipv4.tcp_congestion_control=bbrr", "linux-6.18", Warning, "misspelt"),
        ("net.ipv4.tcp_congestion_control=cubik", "linux-6.18", Warning, "misspelt"),
        ("net.ipv4.tcp_congestion_control=bbr", "linux-6.18", Ok, "fine"),
        ("net.ipv4.tcp_congestion_control=bbrplus", "linux-6.18", Note, "unknown-algorithm"),
        ("net.inet.tcp.cc.algorithm=htpc", "freebsd-14.1", Warning, "misspelt"),
        ("net.inet.tcp.cc.algorithm=htcp", "freebsd-14.1", Note, "needs-module"),
    ] {
        assert_eq!(checked(Kind::Sysctl, line, platform), (level, rule.to_owned()), "{line}");
    }
    let found = said(Kind::Batch, "netsh int tcp set global autotuning=disabled", "windows-10");
    assert!(found.contains("did you mean autotuninglevel?") && found.contains("65,535 B"), "{found}");
}

#[test]
fn what_calls_itself_without_end_is_cut() {
    let many = |line: &str| line.repeat(20_000);
    for (kind, text) in [
        (
            Kind::Batch,
            format!("{}:a\n{}netsh int tcp set global rss=disabled\n", many("call :a %1\n"), many("call :a\n")),
        ),
        (Kind::PowerShell, format!("function f {{\n{}}}\n{}", many("f\n"), many("f\n"))),
        (Kind::PowerShell, format!("$x = {}", "[T]::new('a', { $y = ".repeat(2_000))),
        (Kind::Script, format!("f() {{\n{}}}\n{}", many("f\n"), many("f\n"))),
    ] {
        let (steps, _) = recipe::read(kind, &text);
        assert!(steps.len() < 1 << 17, "{kind:?}");
    }
}

#[test]
fn buffers_of_a_device_are_judged_for_the_path() {
    let path = Some(("25M".parse().unwrap(), "9400us".parse().unwrap()));
    let said = |text: &str| {
        let request = LintRequest { platform: Some("netburner".parse().unwrap()), path, ..LintRequest::default() };
        let found = lint(Kind::Device, text, &request);
        found
            .iter()
            .map(|finding| format!("{} {}", finding.rule, finding.fix.as_deref().unwrap_or("")))
            .collect::<Vec<_>>()
    };
    let calls = |count: u32| {
        format!(
            "SetSocketRxBuffers(fd, {count});\nSetSocketTxBuffers(fd, {count});\nSetSocketUnackBuffers(fd, {count});\n"
        )
    };
    assert_eq!(said(&calls(5)), ["too-small 40"; 3]);
    assert!(said(&calls(40)).iter().all(|line| line.starts_with("fine")), "{:?}", said(&calls(40)));
}

#[test]
fn a_format_takes_as_many_words_as_it_has_places() {
    let text = "printf '%s=%s\\n' net.ipv4.tcp_sack 0 net.ipv4.tcp_ecn 7 >> /etc/sysctl.conf";
    let found = said(Kind::Script, text, "linux-6.18");
    assert!(found.contains("tcp_sack = 1") && !found.contains("%s"), "{found}");
}
