
if (-not $WhatIfPreference -and -not (Test-Administrator)) {
    throw 'Run this as an administrator. Nothing was changed.'
}
$failed = 0

if ($Undo) {
    if (-not (Test-Path -LiteralPath $Backup)) {
        throw "$Backup is not there, so what was there before is not known. Nothing was changed."
    }
    $saved = @(Import-Clixml $Backup)
    [array]::Reverse($saved)
    foreach ($row in $saved) {
        $now = Read-Setting $row
        if (Test-Same $now $row.Before) { continue }
        if (-not $Force -and -not (Test-Same $now $row.To)) {
            Write-Warning "$($row.Name): is $(Format-Setting $now), which this script did not write; left alone (-Force restores it)"
            $failed++
            continue
        }
        if ($PSCmdlet.ShouldProcess($row.Name, "put back $(Format-Setting $row.Before)")) {
            if (-not (Set-Checked $row $row.Before)) { $failed++ }
        }
    }
    if ($failed -eq 0 -and $PSCmdlet.ShouldProcess($Backup, 'remove the saved values, which are back')) {
        Remove-Item -LiteralPath $Backup
    }
    if ($failed -gt 0) { exit 1 }
    return
}

# Everything is read before anything is written: where that fails, nothing is changed.
foreach ($row in $Changes) {
    if ($row.CopyOf) { $row.To = Read-Template $row.CopyOf $row.Parameter }
    $row.Before = Read-Setting $row
    $found = Format-Setting $row.Before
    if ($row.Planned -and $row.Kind -ne 'Registry' -and $found -ne $row.Planned) {
        Write-Warning "$($row.Name): the plan was made for $($row.Planned), but $found is there"
    }
}
if (Test-Path -LiteralPath $Backup) {
    $known = @(Import-Clixml $Backup | ForEach-Object { $_.Name })
    if (@($Changes | Where-Object { $known -notcontains $_.Name }).Count -gt 0) {
        throw "$Backup belongs to another plan: undo that one first. Nothing was changed."
    }
    Write-Host "$Backup is there from an earlier run and is kept."
} elseif ($PSCmdlet.ShouldProcess($Backup, 'save what is there now')) {
    $Changes | Export-Clixml -Path $Backup -Depth 5
    if (@(Import-Clixml $Backup).Count -ne $Changes.Count) { throw "$Backup could not be written. Nothing was changed." }
}
foreach ($row in $Changes) {
    if (Test-Same $row.Before $row.To) {
        Write-Host "$($row.Name): is $(Format-Setting $row.To) already"
        continue
    }
    if ($PSCmdlet.ShouldProcess($row.Name, "set $(Format-Setting $row.To), now $(Format-Setting $row.Before)")) {
        if (-not (Set-Checked $row $row.To)) { $failed++ }
    }
}
if (Get-Command Get-NetTCPSetting -ErrorAction SilentlyContinue) {
    $policy = @(Get-NetTCPSetting | Where-Object { [string] $_.AutoTuningLevelEffective -eq 'GroupPolicy' })
    if ($policy.Count -gt 0) {
        Write-Warning 'Group Policy sets the tuning level here and wins over the local one.'
    }
}
if ($failed -gt 0) { exit 1 }
