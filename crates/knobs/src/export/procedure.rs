//! The reset procedure of Windows as a folder: save, measure, reset, restart, set anew, measure, compare, and the way back.
//!
//! After a published case in which tuning did nothing until `netsh interface tcp reset` and a restart had put TCP's values
//! back to Windows' own, and the tuning was applied again.

use super::{Export, ExportError, ExportFile, export};
use crate::{Family, Plan, Platform, Settings};

const SAVE: &str = include_str!("templates/procedure_save.cmd");
const RESET: &str = include_str!("templates/procedure_reset.cmd");
const BACK: &str = include_str!("templates/procedure_back.cmd");
const BACK_SCRIPT: &str = include_str!("templates/procedure_back.ps1");
const PARAMETER: &str = include_str!("templates/parameter.ps1");
const MEASURE: &str = include_str!("templates/procedure_measure.cmd");
const README: &str = include_str!("templates/procedure_readme.txt");

/// The files of the procedure, and those of the plan that is applied after the restart, where there is one.
///
/// # Errors
///
/// Where the plan can't be exported, or the platform is none that has such a reset.
pub fn reset_procedure(
    plan: Option<&Plan>,
    platform: &Platform,
    settings: Option<&Settings>,
) -> Result<Export, ExportError> {
    let vista =
        crate::Catalogue::for_family(Family::Windows).and_then(|all| all.is_at_least(&platform.version, "vista"));
    if platform.family != Family::Windows || vista == Some(false) {
        return Err(ExportError::NoProcedure { platform: platform.to_string() });
    }
    let mut export = plan.map_or_else(|| Ok(Export::default()), |plan| export(plan, platform, settings))?;
    // Its README tells of the plan's files alone.
    for file in &mut export.files {
        if file.name == "README.txt" {
            file.name = "PLAN.txt";
        }
    }
    let scripts: Vec<&str> = export.files.iter().map(|file| file.name).collect();
    let own = "your own script, if you have one";
    let apply = if plan.is_none() {
        format!("{own} (`fullpipe plan` with --rate and --rtt of the path writes one into such a folder, too)")
    } else if scripts.contains(&"fullpipe.ps1") {
        "powershell -ExecutionPolicy Bypass -File fullpipe.ps1, as an administrator".to_owned()
    } else if scripts.contains(&"fullpipe-netsh.cmd") {
        "fullpipe-netsh.cmd, as an administrator".to_owned()
    } else {
        format!("the plan sets nothing here (PLAN.txt says why); apply {own}")
    };
    let readme =
        README.replace("@PLATFORM@", &super::quote::one_line(&platform.to_string())).replace("@APPLY@", &apply);
    let files = [
        ("README.txt", "the steps, in their order", readme),
        ("1-save.cmd", "saves what is there into the folder `before`; changes nothing", SAVE.to_owned()),
        ("2-measure-before.cmd", "measures message sizes and keeps the result", measure(false)),
        ("3-reset.cmd", "netsh interface tcp reset; refuses to run before 1-save.cmd has", RESET.to_owned()),
        ("6-measure-after.cmd", "measures again, keeps the result and prints both sweeps", measure(true)),
        ("back.cmd", "puts back what 1-save.cmd saved", BACK.to_owned()),
        ("back.ps1", "the part of back.cmd that cmdlets do", BACK_SCRIPT.replace("@PARAMETER@", PARAMETER)),
    ];
    let files = files.map(|(name, what, text)| {
        let contents = text.replace("\r\n", "\n").replace('\n', "\r\n").into_bytes();
        ExportFile { name, what: what.to_owned(), contents, executable: false }
    });
    export.files.splice(0..0, files);
    Ok(export)
}

fn measure(after: bool) -> String {
    let before = "--save \"%~dp0before.json\"";
    let both = "--save \"%~dp0after.json\" --compare \"%~dp0before.json\"";
    let check = "if not exist \"%~dp0before.json\" (echo Run 2-measure-before.cmd first: there is nothing to compare with. & exit /b 1)\n";
    let kept = "if exist \"%~dp0before.json\" (echo before.json is there already and is kept. Delete it to measure anew. & exit /b 1)\n";
    let (when, check, options) = if after { ("after", check, both) } else { ("before", kept, before) };
    MEASURE.replace("@WHEN@", when).replace("@CHECK@", check).replace("@OPTIONS@", options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(platform: &str) -> Result<Export, ExportError> {
        reset_procedure(Some(&Plan::default()), &platform.parse().unwrap(), None)
    }

    #[test]
    fn the_folder_saves_before_it_resets_and_has_a_way_back() {
        let export = files("windows-11").unwrap();
        let text = |name: &str| export.files.iter().find(|file| file.name == name).unwrap().text();
        let reset = text("3-reset.cmd");
        let guard = reset.find("before\\netsh-tcp.txt").unwrap();
        assert!(guard < reset.find("\r\nnetsh interface tcp reset").unwrap(), "{reset}");
        assert!(text("1-save.cmd").contains("netsh interface tcp dump") && text("back.cmd").contains("netsh -f"));
        assert!(text("2-measure-before.cmd").contains("--sizes 4k..64k --save"));
        let before = text("2-measure-before.cmd");
        assert!(before.find("if exist \"%~dp0before.json\"") < before.find("fullpipe measure"), "{before}");
        // What could not be saved is not called saved: the file that the reset looks for is written last.
        let save = text("1-save.cmd");
        let (parts, last) = save.split_once("netsh interface tcp dump > ").unwrap();
        for part in ["reg export", "powershell"] {
            let (_, rest) = parts.split_once(&format!("\r\n{part} ")).unwrap();
            assert!(
                rest.split("\r\n").nth(1).unwrap().starts_with("if errorlevel 1 (echo Saving failed"),
                "{part}: {save}"
            );
        }
        assert!(last.contains("echo Saved."));
        let after = text("6-measure-after.cmd");
        assert!(after.contains("--save \"%~dp0after.json\" --compare \"%~dp0before.json\""), "{after}");
        assert!(after.find("if not exist \"%~dp0before.json\"") < after.find("fullpipe measure"), "{after}");
        let readme = text("README.txt");
        let steps = ["1-save.cmd", "2-measure-before.cmd", "3-reset.cmd", "Restart", "6-measure-after.cmd", "back.cmd"];
        let places: Vec<usize> = steps.iter().map(|step| readme.find(step).unwrap()).collect();
        assert!(places.is_sorted(), "{readme}");
        // Whatever is saved is put back.
        let (save, back) = (text("1-save.cmd"), text("back.ps1"));
        assert!(text("back.cmd").contains("-File \"%~dp0back.ps1\""));
        for saved in ["templates.xml", "filters.xml", "offloads.xml", "adapters.xml"] {
            assert!(
                save.contains(&format!("before\\{saved}")) && back.contains(&format!("Read-Saved '{saved}'")),
                "{saved}"
            );
        }
        for cmdlet in ["New-NetTransportFilter", "Remove-NetTransportFilter", "Set-NetAdapterAdvancedProperty"] {
            assert!(back.contains(cmdlet), "{cmdlet}");
        }
        assert!(!readme.contains('@') && export.files.iter().all(|file| file.contents.is_ascii()));
    }

    #[test]
    fn a_template_is_put_back_whatever_its_version_calls_a_parameter() {
        // Microsoft's reference of the class MSFT_NetTCPSetting, which names no units.
        const CLASS: [&str; 13] = [
            "MinRto",
            "InitialCongestionWindow",
            "CongestionProvider",
            "CwndRestart",
            "DelayedAckTimeout",
            "DelayedAckFrequency",
            "MemoryPressureProtection",
            "AutoTuningLevelLocal",
            "EcnCapability",
            "Timestamps",
            "InitialRto",
            "ForceWS",
            "MaxSynRetransmissions",
        ];
        let export = files("windows-11").unwrap();
        let text = export.files.iter().find(|file| file.name == "back.ps1").unwrap().text();
        let (_, list) = text.split_once("$parameters = ").unwrap();
        let list: Vec<&str> = list.split("foreach").next().unwrap().split('\'').skip(1).step_by(2).collect();
        let without_unit = |name: &str| {
            let name = name.to_owned();
            ["Mss", "Ms"].iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(&name).to_owned()
        };
        assert_eq!(list.iter().map(|name| without_unit(name)).collect::<Vec<_>>(), CLASS);
        assert!(text.contains("-replace 'Mss?$', ''"), "{text}");
        for known in ["Find-Parameter $saved $name", "Find-Parameter $now $name", "no value of it was saved"] {
            assert!(text.contains(known), "{known}: {text}");
        }
        let (templates, _) = text.split_once("function Get-Key").unwrap();
        assert!(!templates.contains("$saved.$name"), "{templates}");
    }

    #[test]
    fn without_a_plan_the_folder_has_the_steps_alone() {
        let export = reset_procedure(None, &"windows-11".parse().unwrap(), None).unwrap();
        let names: Vec<&str> = export.files.iter().map(|file| file.name).collect();
        assert!(names.contains(&"3-reset.cmd") && !names.contains(&"PLAN.txt"), "{names:?}");
        let readme = export.files[0].text();
        assert!(
            readme.contains("Apply") && readme.contains("your own script") && !readme.contains("PLAN.txt"),
            "{readme}"
        );
    }

    #[test]
    fn a_platform_without_such_a_reset_is_refused() {
        for platform in ["windows-xp", "linux-6.18", "freebsd-14.1"] {
            assert!(matches!(files(platform), Err(ExportError::NoProcedure { .. })), "{platform}");
        }
    }
}
