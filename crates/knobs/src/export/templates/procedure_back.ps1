# Puts back what 1-save.cmd saved: TCP's templates, the filters that give them to connections, the global offloads and those
# of single adapters. back.cmd starts it.
$ErrorActionPreference = 'Stop'
$Before = Join-Path (Split-Path -Parent $MyInvocation.MyCommand.Definition) 'before'
$Failed = 0

function Read-Saved([string] $Name) {
    $file = Join-Path $Before $Name
    if (Test-Path -LiteralPath $file) { return @(Import-Clixml -LiteralPath $file) }
    Write-Warning "$Name is not in the folder before: nothing of it is put back"
    @()
}
@PARAMETER@
function Set-Back([string] $What, [scriptblock] $Action) {
    try {
        & $Action
        Write-Output "put back: $What"
    } catch {
        $script:Failed++
        Write-Warning "not put back: $What ($($_.Exception.Message))"
    }
}

# Some versions do not let all parameters of a template be set.
$parameters = 'MinRtoMs', 'InitialCongestionWindowMss', 'CongestionProvider', 'CwndRestart', 'DelayedAckTimeoutMs',
    'DelayedAckFrequency', 'MemoryPressureProtection', 'AutoTuningLevelLocal', 'EcnCapability', 'Timestamps', 'InitialRtoMs',
    'ForceWS', 'MaxSynRetransmissions'
foreach ($saved in Read-Saved 'templates.xml') {
    if ($saved.SettingName -eq 'Automatic') { continue }
    $now = Get-NetTCPSetting -SettingName $saved.SettingName
    foreach ($name in $parameters) {
        $before = Find-Parameter $saved $name
        $there = Find-Parameter $now $name
        if ($before -eq $there) { continue }
        if ($null -eq $before) {
            $Failed++
            Write-Warning "not put back: $($saved.SettingName) $name (it is $there, and no value of it was saved)"
            continue
        }
        $change = @{ SettingName = $saved.SettingName; $name = $before }
        Set-Back "$($saved.SettingName) $name = $before" { Set-NetTCPSetting @change }
    }
}

function Get-Key($Filter) {
    $names = 'SettingName', 'Protocol', 'LocalPortStart', 'LocalPortEnd', 'RemotePortStart', 'RemotePortEnd', 'DestinationPrefix'
    [string]::Join(' ', @($names | ForEach-Object { [string] $Filter.$_ }))
}

$filters = @(Read-Saved 'filters.xml')
if ($filters.Count -gt 0) {
    $wanted = @($filters | ForEach-Object { Get-Key $_ })
    $there = @(Get-NetTransportFilter)
    foreach ($filter in $there) {
        $key = Get-Key $filter
        if ($wanted -contains $key) { continue }
        Set-Back "no filter $key" { $filter | Remove-NetTransportFilter -Confirm:$false }
    }
    $keys = @($there | ForEach-Object { Get-Key $_ })
    foreach ($filter in $filters) {
        $key = Get-Key $filter
        if ($keys -contains $key) { continue }
        $new = @{ SettingName = $filter.SettingName }
        foreach ($name in 'Protocol', 'LocalPortStart', 'LocalPortEnd', 'RemotePortStart', 'RemotePortEnd', 'DestinationPrefix') {
            if ("$($filter.$name)" -ne '') { $new[$name] = $filter.$name }
        }
        Set-Back "filter $key" { [void] (New-NetTransportFilter @new) }
    }
}

foreach ($saved in Read-Saved 'offloads.xml') {
    $now = Get-NetOffloadGlobalSetting
    $names = 'ReceiveSideScaling', 'ReceiveSegmentCoalescing', 'Chimney', 'TaskOffload', 'NetworkDirect',
        'NetworkDirectAcrossIPSubnets', 'PacketCoalescingFilter'
    foreach ($name in $names) {
        if ($null -eq $saved.$name -or [string] $saved.$name -eq [string] $now.$name) { continue }
        $change = @{ $name = [string] $saved.$name }
        Set-Back "offload $name = $($saved.$name)" { Set-NetOffloadGlobalSetting @change }
    }
}

# An adapter restarts when one of these is set, and its connections break: only what differs is.
foreach ($saved in Read-Saved 'adapters.xml') {
    $value = [string] @($saved.RegistryValue)[0]
    $property = @{ Name = $saved.Name; RegistryKeyword = $saved.RegistryKeyword }
    $what = "$($saved.Name) $($saved.RegistryKeyword) = $value"
    $now = @(Get-NetAdapterAdvancedProperty @property -ErrorAction SilentlyContinue)
    if ($now.Count -eq 1 -and [string] @($now[0].RegistryValue)[0] -eq $value) { continue }
    Set-Back $what { Set-NetAdapterAdvancedProperty @property -RegistryValue $value }
}

if ($Failed -gt 0) {
    Write-Warning "$Failed settings were not put back: this version does not let them be set, or the adapter is gone"
    exit 1
}
