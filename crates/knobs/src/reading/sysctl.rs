//! `sysctl -a` of Linux, FreeBSD and macOS; `sysctl.conf` and `sysctl.d`; `loader.conf` and `rc.conf`.

use fullpipe_units::Bytes;

use super::{Place, RemarkKind, scan, sheet::Sheet};
use crate::{
    Address, Family,
    recipe::{self, Action, Kind},
    sysctl_conf,
    value::number,
};

/// What `sysctl -a` printed. Lines that begin with no name go on with the value above them (`kern.geom.conftxt`).
pub(super) fn output(text: &str, sheet: &mut Sheet) {
    let mut begun = false;
    let whole = text.ends_with('\n');
    let last = scan::lines(text).last().map_or(0, |(number, _)| number);
    for (line_number, line) in scan::lines(text) {
        // sysctl ends each line: what stands behind the last line break may be a part of a name or of a value.
        if !whole && line_number == last {
            let words = "no line break behind the last line: the output looks cut off, and this value may be, too; where it is whole, end the line";
            sheet.remark(RemarkKind::Unread, scan::place_of(line_number, line, line.trim_start()), words);
            break;
        }
        // What the command itself had to say: `sysctl: permission denied on key ...`.
        if line.trim().is_empty() || line.starts_with("sysctl:") {
            continue;
        }
        let Some((name, value)) = pair(line) else {
            if !begun {
                let place = scan::place_of(line_number, line, line.trim_start());
                sheet.remark(RemarkKind::Unread, place, "no `name = value` or `name: value`");
            }
            continue;
        };
        begun = true;
        note(name, value.trim(), sheet);
        sheet.set(scan::place_of(line_number, line, name), Address::sysctl(name), Some(value));
    }
    guess_family(sheet);
}

/// A line `name = value`, `name=value` or `name: value`.
pub(super) fn pair(line: &str) -> Option<(&str, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-/%".contains(c);
    let end = line.find(|c| !is_name(c))?;
    let (name, rest) = line.split_at_checked(end)?;
    let plain = name.contains('.') && name.starts_with(|c: char| c.is_ascii_lowercase());
    let value = rest.strip_prefix(": ").or_else(|| rest.trim_start().strip_prefix('='))?;
    // A mark such as `C:\` or a time is no name.
    (plain && !name.ends_with('.')).then_some((name, value))
}

/// What a line tells of the machine itself.
fn note(name: &str, value: &str, sheet: &mut Sheet) {
    let bytes = || number(value).and_then(|n| u64::try_from(n).ok()).map(Bytes::new);
    match name {
        "kernel.ostype" if value == "Linux" => sheet.family(Family::Linux),
        "kern.ostype" if value == "FreeBSD" => sheet.family(Family::FreeBsd),
        "kern.ostype" if value == "Darwin" => sheet.family(Family::MacOs),
        "kernel.osrelease" => {
            sheet.family(Family::Linux);
            version(value, sheet);
        }
        // Darwin's own number is not macOS's version.
        "kern.osrelease" if value.contains('-') => {
            sheet.family(Family::FreeBsd);
            version(value, sheet);
        }
        "kern.osproductversion" => {
            sheet.family(Family::MacOs);
            version(value, sheet);
        }
        "hw.physmem" | "hw.memsize" => sheet.machine.memory = bytes().or(sheet.machine.memory),
        "hw.pagesize" => sheet.machine.page = bytes(),
        _ => {}
    }
}

fn version(value: &str, sheet: &mut Sheet) {
    let plain = value.len() <= 64 && value.chars().all(|c| c.is_ascii_alphanumeric() || ".-_+".contains(c));
    if plain && value.starts_with(|c: char| c.is_ascii_digit()) {
        value.clone_into(&mut sheet.platform.version);
    }
}

/// The family by names that only one has, where no line tells it.
fn guess_family(sheet: &mut Sheet) {
    const MARKS: [(Family, &[&str]); 3] = [
        (Family::Linux, &["net.ipv4.", "net.core."]),
        (Family::MacOs, &["net.inet.tcp.auto", "net.inet.tcp.doautorcvbuf", "net.inet.tcp.win_scale_factor"]),
        (
            Family::FreeBsd,
            &[
                "net.inet.tcp.recvbuf_",
                "net.inet.tcp.sendbuf_",
                "net.inet.tcp.cc.",
                "kern.ipc.nmbclusters",
                "net.inet.tcp.rfc1323",
            ],
        ),
    ];
    let family =
        MARKS.iter().find(|(_, marks)| sheet.names().any(|name| marks.iter().any(|mark| name.starts_with(mark))));
    if let Some((family, _)) = family {
        sheet.family(*family);
    }
}

/// `sysctl.conf`: each line is read as the system reads it at boot.
pub(super) fn file(text: &str, sheet: &mut Sheet) {
    for (line_number, line) in scan::lines(text) {
        let (settings, problems) = sysctl_conf::parse(line);
        for problem in problems {
            let place = Place { line: line_number, column: problem.column };
            sheet.remark(RemarkKind::Unread, place, problem.message);
        }
        let place = scan::place_of(line_number, line, line.trim_start());
        for setting in settings {
            if setting.pattern {
                sheet.remark(
                    RemarkKind::Note,
                    place,
                    "a pattern sets whatever the machine has of that name; it is not read as a setting",
                );
            } else if let Some(value) = &setting.value {
                let knob = Address::Sysctl(setting.name);
                if setting.form.words_behind && sheet.has(&knob) {
                    let words = "words stand behind the number, and from FreeBSD 10.1 on sysctl(8) refuses the line: what an earlier one sets is taken";
                    sheet.remark(RemarkKind::Unread, place, words);
                    continue;
                }
                sheet.set(place, knob.clone(), Some(value));
                sheet.form(&knob, setting.form);
            }
        }
    }
    guess_family(sheet);
}

/// `loader.conf` and `rc.conf`.
pub(super) fn shell(text: &str, sheet: &mut Sheet) {
    sheet.family(Family::FreeBsd);
    for (line_number, line) in scan::lines(text) {
        let (steps, problems) = recipe::read(Kind::Shell, line);
        for problem in problems {
            sheet.remark(RemarkKind::Unread, Place { line: line_number, column: problem.column }, problem.message);
        }
        for step in steps {
            if let Action::Set(knob, value) = step.action {
                if matches!(&knob, Address::Link { device, .. } if !super::ifconfig::is_device(device)) {
                    let place = scan::place_of(line_number, line, line.trim_start());
                    sheet.remark(RemarkKind::Unread, place, "no name of an interface after `ifconfig_`");
                    continue;
                }
                // The loader takes `128k`; everybody after it wants the number.
                let plain = number(&value).map(|number| number.to_string());
                let place = scan::place_of(line_number, line, line.trim_start());
                sheet.set(place, knob, Some(plain.as_deref().unwrap_or(&value)));
            }
        }
    }
}
