//! The settings of Windows that its programs read and write: TCP templates, global offloads, netsh's switches, MTUs.

use std::{collections::BTreeMap, net::IpAddr};

use fullpipe_knobs::{Address, Link, Settings};
use fullpipe_units::Bytes;

use super::{
    Program, Registry, Runner, WindowsHost, catalogue, gone, invalid, is_level, netsh, policy,
    powershell::{self, Report, Word, field},
    unknown,
};
use crate::{HostError, Output};

/// The template that connections have where nobody chose another one.
const USUAL: &str = "Internet";
/// Where a parameter of a template tells what Group Policy says, and the word for "nothing".
const FROM_POLICY: &str = "AutoTuningLevelGroupPolicy";
const NOT_CONFIGURED: &str = "NotConfigured";
/// The properties of an interface that are read and set.
const MTU: &str = "mtu";
const JUMBO: &str = "*JumboPacket";
/// The kind of address that gives a template to peers.
const FILTER: &str = "transportfilter";

impl<R: Registry, P: Runner> WindowsHost<R, P> {
    /// What the programs tell of all settings. What can't be had this way is left out: the registry's values are still
    /// worth knowing, and reading one of these settings says why.
    pub(super) fn collect_from_programs(&mut self, settings: &mut Settings) {
        let report = self.report(&Address::Named { kind: "netoffload".into(), name: "all".into() }, "read").ok();
        let mut answers: BTreeMap<&str, Option<String>> = BTreeMap::new();
        for knob in catalogue().iter().flat_map(|catalogue| &catalogue.knobs) {
            match (&knob.address, &report) {
                (Address::TcpSetting { parameter, .. }, Some(report)) => {
                    for row in &report.templates {
                        let Some(template) = field(row, "SettingName") else { continue };
                        let value = field(row, parameter).map(str::to_owned);
                        let address =
                            Address::TcpSetting { template: template.to_owned(), parameter: parameter.clone() };
                        settings.values.insert(address, value);
                    }
                }
                (Address::Named { kind, name }, Some(report)) if kind == "netoffload" => {
                    let value = field(&report.offloads, name).map(str::to_owned);
                    settings.values.insert(knob.address.clone(), value);
                }
                (Address::Netsh { context, parameter }, report) => {
                    if let Some(found) = report.as_ref().and_then(|report| reported(report, context, parameter)) {
                        settings.values.insert(knob.address.clone(), Some(found));
                        continue;
                    }
                    let answer = answers
                        .entry(context)
                        .or_insert_with(|| self.netsh_text(&knob.address, context).ok().flatten());
                    if let Some(Ok(value)) = answer.as_ref().map(|text| netsh::shown(context, parameter, text)) {
                        settings.values.insert(knob.address.clone(), value);
                    }
                }
                _ => {}
            }
        }
        for row in report.iter().flat_map(|report| &report.filters) {
            let value = report.as_ref().and_then(|report| report.prefixes(&row.template));
            let address = Address::Named { kind: FILTER.to_owned(), name: row.template.clone() };
            settings.values.insert(address, value);
        }
        let memory = report.as_ref().and_then(|report| report.memory.parse().ok());
        settings.machine.memory = memory.map(Bytes::new);
        for row in report.iter().flat_map(|report| &report.links) {
            let jumbo = Some(row.jumbo.clone()).filter(|bytes| !bytes.is_empty());
            for (property, value) in [(MTU, Some(row.mtu.clone())), (JUMBO, jumbo)] {
                let address = Address::Link { device: row.guid.clone(), property: property.to_owned() };
                settings.values.insert(address, value);
            }
            settings.links.push(Link {
                device: row.guid.clone(),
                speed_bps: row.speed.parse().ok(),
                mtu: row.mtu.parse().ok(),
            });
        }
    }

    pub(super) fn read_from_program(&mut self, address: &Address) -> Result<Option<String>, HostError> {
        match address {
            Address::Netsh { context, parameter } => self.read_netsh(address, context, parameter),
            Address::TcpSetting { template, parameter } => {
                let report = self.report(address, "read")?;
                let row = report.template(template).ok_or_else(|| no_template(address, template, &report))?;
                Ok(field(row, parameter).map(str::to_owned))
            }
            Address::Named { kind, name } if kind == "netoffload" => {
                let report = self.report(address, "read")?;
                Ok(field(&report.offloads, name).map(str::to_owned))
            }
            Address::Named { kind, name } if kind == FILTER => {
                let report = self.report(address, "read")?;
                report.template(name).ok_or_else(|| no_template(address, name, &report))?;
                Ok(report.prefixes(name))
            }
            Address::Link { device, property } => {
                let report = self.report(address, "read")?;
                let row = report.link(device).ok_or_else(|| gone("read", address, super::INTERFACES))?;
                match property.as_str() {
                    MTU => Ok(Some(row.mtu.clone())),
                    JUMBO => Ok(Some(row.jumbo.clone()).filter(|bytes| !bytes.is_empty())),
                    _ => Err(out_of_reach(address)),
                }
            }
            _ => Err(out_of_reach(address)),
        }
    }

    fn read_netsh(&mut self, address: &Address, context: &str, parameter: &str) -> Result<Option<String>, HostError> {
        let asks_powershell =
            netsh::template_parameter(context, parameter).is_some() || netsh::offload(context, parameter).is_some();
        if asks_powershell && self.is_at_least("8") {
            return Ok(reported(&self.report(address, "read")?, context, parameter));
        }
        let Some(text) = self.netsh_text(address, context)? else { return Err(out_of_reach(address)) };
        netsh::shown(context, parameter, &text).map_err(|_| HostError::Program {
            operation: "read",
            address: address.clone(),
            program: Program::Netsh.name(),
            why: "its answer is not in English, and its labels follow the language of Windows; switch the display \
                  language to English for this, or look at `Get-NetTCPSetting` in PowerShell"
                .to_owned(),
        })
    }

    /// What netsh shows of a context; `None` for a context that it doesn't show.
    fn netsh_text(&mut self, address: &Address, context: &str) -> Result<Option<String>, HostError> {
        let Some(arguments) = netsh::show(context) else { return Ok(None) };
        let output = self.run("read", address, Program::Netsh, &arguments)?;
        Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// Makes the prefixes of a template these and no others. Filters that also go by port are left alone.
    pub(super) fn write_filters(
        &mut self,
        address: &Address,
        name: &str,
        value: Option<&str>,
    ) -> Result<(), HostError> {
        let template = Word::new(name).ok_or_else(|| unknown(address, "no such template"))?;
        let wanted: Vec<&str> = value.into_iter().flat_map(str::split_whitespace).collect();
        if let Some(wrong) = wanted.iter().find(|prefix| !is_prefix(prefix)) {
            return Err(invalid(address, wrong, "prefixes of peers, such as `192.0.2.0/24 2001:db8::/32`"));
        }
        let now = self.read_from_program(address)?.unwrap_or_default();
        let now: Vec<&str> = now.split_whitespace().collect();
        let missing = |from: &[&'_ str], one: &&str| !from.contains(one);
        let add: Vec<&str> = wanted.iter().copied().filter(|prefix| missing(&now, prefix)).collect();
        let remove: Vec<&str> = now.iter().copied().filter(|prefix| missing(&wanted, prefix)).collect();
        let script = powershell::set_filters(&template, &add, &remove);
        self.run("write", address, Program::PowerShell, &powershell::arguments(&script)).map(drop)
    }

    pub(super) fn write_by_program(&mut self, address: &Address, value: &str) -> Result<(), HostError> {
        let word = Word::new(value).ok_or_else(|| invalid(address, value, "one word of letters and digits"))?;
        let parameter_of = |name| Word::new(name).ok_or_else(|| unknown(address, "no such parameter"));
        let script = match address {
            Address::Netsh { context, parameter } => {
                let arguments =
                    netsh::set(context, &parameter_of(parameter)?, &word).ok_or_else(|| out_of_reach(address))?;
                return self.run("write", address, Program::Netsh, &arguments).map(drop);
            }
            Address::TcpSetting { template, parameter } => {
                powershell::set_template(template, &parameter_of(parameter)?, &word)
            }
            Address::Named { kind, name } if kind == "netoffload" => {
                powershell::set_offload(&parameter_of(name)?, &word)
            }
            Address::Link { device, property } => {
                let report = self.report(address, "write")?;
                let row = report.link(device).ok_or_else(|| gone("write", address, super::INTERFACES))?;
                let index = row.index.parse().map_err(|_| gone("write", address, super::INTERFACES))?;
                let bytes = word.as_str().parse().map_err(|_| invalid(address, value, "a whole number of bytes"))?;
                match property.as_str() {
                    MTU => powershell::set_mtu(index, bytes),
                    JUMBO => powershell::set_jumbo(index, bytes),
                    _ => return Err(out_of_reach(address)),
                }
            }
            _ => return Err(out_of_reach(address)),
        };
        self.run("write", address, Program::PowerShell, &powershell::arguments(&script)).map(drop)
    }

    /// What is known beforehand: there is such a setting, and Group Policy doesn't rule over it.
    pub(super) fn may_write_by_program(&mut self, address: &Address) -> Result<(), HostError> {
        if is_level(address) && self.is_at_least("8") {
            let report = self.report(address, "read")?;
            let level = report.template(USUAL).and_then(|row| field(row, FROM_POLICY));
            if let Some(level) = level.filter(|level| !level.eq_ignore_ascii_case(NOT_CONFIGURED)) {
                return Err(policy(address, level.to_owned()));
            }
        }
        let may_be_absent = is_filter(address);
        match self.read_from_program(address)? {
            Some(_) => Ok(()),
            None if may_be_absent => Ok(()),
            None => Err(HostError::Missing {
                operation: "write",
                address: address.clone(),
                platform: format!("Windows {}", self.version()),
            }),
        }
    }

    /// Everything that PowerShell tells, in one call: each start of it takes about a second.
    fn report(&mut self, address: &Address, operation: &'static str) -> Result<Report, HostError> {
        let failed =
            |why| HostError::Program { operation, address: address.clone(), program: Program::PowerShell.name(), why };
        if !self.is_at_least("8") {
            return Err(failed("this version of Windows has no cmdlets for TCP; they came with Windows 8".to_owned()));
        }
        let (mut parameters, mut offloads) = (Vec::new(), Vec::new());
        for knob in catalogue().iter().flat_map(|catalogue| &catalogue.knobs) {
            match &knob.address {
                Address::TcpSetting { parameter, .. } => parameters.push(parameter.as_str()),
                Address::Named { kind, name } if kind == "netoffload" => offloads.push(name.as_str()),
                _ => {}
            }
        }
        offloads.push("Chimney");
        let arguments = powershell::arguments(&powershell::query(&parameters, &offloads));
        let output = self.run(operation, address, Program::PowerShell, &arguments)?;
        powershell::parse(&output.stdout)
            .map_err(|error| failed(format!("its answer can't be read ({error}): {}", output.complaint())))
    }

    fn run(
        &mut self,
        operation: &'static str,
        address: &Address,
        program: Program,
        arguments: &[String],
    ) -> Result<Output, HostError> {
        let failed = |why| HostError::Program { operation, address: address.clone(), program: program.name(), why };
        let output =
            self.programs.run(program, arguments).map_err(|error| failed(format!("it could not be run: {error}")))?;
        if output.success { Ok(output) } else { Err(failed(output.complaint())) }
    }
}

/// Whether a text is an address with the length of a prefix, as Windows shows it.
fn is_prefix(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let largest = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.bytes().all(|byte| byte.is_ascii_digit()) && length.parse::<u8>().is_ok_and(|length| length <= largest)
}

/// Whether a setting is the list of prefixes that get a template, which may be empty.
pub(super) fn is_filter(address: &Address) -> bool {
    matches!(address, Address::Named { kind, .. } if kind == FILTER)
}

/// What PowerShell tells of one of netsh's parameters, in netsh's words.
fn reported(report: &Report, context: &str, parameter: &str) -> Option<String> {
    let found = match (netsh::template_parameter(context, parameter), netsh::offload(context, parameter)) {
        (Some(name), _) => field(report.template(USUAL)?, name),
        (_, Some(name)) => field(&report.offloads, name),
        _ => None,
    };
    found.map(str::to_ascii_lowercase)
}

fn no_template(address: &Address, template: &str, report: &Report) -> HostError {
    let names: Vec<&str> = report.templates.iter().filter_map(|row| field(row, "SettingName")).collect();
    HostError::ObjectGone {
        operation: "read",
        address: address.clone(),
        why: format!("there is no template {template}; there are {}", names.join(", ")),
    }
}

fn out_of_reach(address: &Address) -> HostError {
    unknown(address, "no program of Windows reads and writes it as one value; `fullpipe plan --write` exports it")
}
