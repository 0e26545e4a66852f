$ErrorActionPreference = 'Stop'
if (-not $Backup) {
    $Backup = Join-Path (Split-Path -Parent $MyInvocation.MyCommand.Definition) $BackupName
}

# A DWORD is read and written as a signed number of 32 bits.
function ConvertTo-Dword([string] $Number) {
    [BitConverter]::ToInt32([BitConverter]::GetBytes([uint32] $Number), 0)
}

function Read-Template([string] $Template, [string] $Parameter) {
    $found = Find-Parameter (Get-NetTCPSetting -SettingName $Template) $Parameter
    if ($null -ne $found) { return $found }
    throw "This version has no $Parameter in the template $Template."
}

function Read-Offload([string] $Parameter) {
    $property = (Get-NetOffloadGlobalSetting).PSObject.Properties[$Parameter]
    if (-not $property) { throw "This version has no $Parameter." }
    [string] $property.Value
}

function Find-Filter($Row) {
    Get-NetTransportFilter | Where-Object { $_.SettingName -eq $Row.Template -and $_.DestinationPrefix -eq $Row.Prefix }
}

function Find-Interface($Row) {
    $found = Get-NetIPInterface -AddressFamily IPv4 | Where-Object { $_.InterfaceAlias -eq $Row.Interface }
    if (-not $found) { throw "There is no interface named $($Row.Interface)." }
    $found
}

# A property of an adapter's driver, by its name in the registry, which no language changes.
function Find-Property($Row) {
    $found = @(Get-NetAdapterAdvancedProperty -Name $Row.Interface -RegistryKeyword $Row.Keyword -ErrorAction SilentlyContinue)
    if ($found.Count -ne 1) { throw "The adapter $($Row.Interface) is not there, or its driver has no $($Row.Keyword)." }
    $found[0]
}

# What is there now: text, kind and value for the registry, or nothing.
function Read-Setting($Row) {
    switch ($Row.Kind) {
        'Registry' {
            $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Row.Key)
            if ($null -eq $key) { return $null }
            try {
                if (@($key.GetValueNames()) -notcontains $Row.Value) { return $null }
                $plain = [Microsoft.Win32.RegistryValueOptions]::DoNotExpandEnvironmentNames
                return @{ Kind = [string] $key.GetValueKind($Row.Value); Value = $key.GetValue($Row.Value, $null, $plain) }
            } finally {
                $key.Close()
            }
        }
        'TcpSetting' { return Read-Template $Row.Template $Row.Parameter }
        'Offload' { return Read-Offload $Row.Parameter }
        'Netsh' {
            if (@('ReceiveSideScaling', 'ReceiveSegmentCoalescing', 'Chimney') -contains $Row.Property) {
                return Read-Offload $Row.Property
            }
            return Read-Template 'Internet' $Row.Property
        }
        'Mtu' { return [string] (Find-Interface $Row).NlMtu }
        'Adapter' { return [string] @((Find-Property $Row).RegistryValue)[0] }
        'Filter' {
            if (Find-Filter $Row) { return 'present' }
            return $null
        }
    }
}

function Write-Setting($Row, $State) {
    switch ($Row.Kind) {
        'Registry' {
            if ($null -ne $State) {
                $path = 'HKEY_LOCAL_MACHINE\' + $Row.Key
                $value = $State.Value
                if ($State.Kind -eq 'MultiString') { $value = [string[]] $value }
                [Microsoft.Win32.Registry]::SetValue($path, $Row.Value, $value, [Microsoft.Win32.RegistryValueKind] $State.Kind)
                return
            }
            $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Row.Key, $true)
            if ($null -ne $key) {
                try { $key.DeleteValue($Row.Value, $false) } finally { $key.Close() }
            }
        }
        'TcpSetting' {
            $arguments = @{ SettingName = $Row.Template }
            $arguments[$Row.Parameter] = $State
            Set-NetTCPSetting @arguments
        }
        'Offload' {
            $arguments = @{}
            $arguments[$Row.Parameter] = $State
            Set-NetOffloadGlobalSetting @arguments
        }
        'Netsh' {
            $assignment = $Row.Parameter + '=' + ([string] $State).ToLowerInvariant()
            $said = & netsh.exe interface tcp set $Row.Command $assignment
            if ($LASTEXITCODE -ne 0) { throw "netsh refused ${assignment}: $said" }
        }
        'Adapter' {
            $valid = @((Find-Property $Row).ValidRegistryValues | Where-Object { $_ })
            if ($valid.Count -gt 0 -and $valid -notcontains [string] $State) {
                throw "its driver takes only $([string]::Join(', ', $valid))"
            }
            # The adapter restarts, and its interface with it: the next setting waits for that.
            Set-NetAdapterAdvancedProperty -Name $Row.Interface -RegistryKeyword $Row.Keyword -RegistryValue ([string] $State)
            for ($second = 0; $second -lt 30 -and (Get-NetAdapter -Name $Row.Interface).Status -ne 'Up'; $second++) {
                Start-Sleep -Seconds 1
            }
        }
        'Mtu' { Find-Interface $Row | Set-NetIPInterface -NlMtuBytes ([uint32] $State) }
        'Filter' {
            if ($null -ne $State) {
                [void] (New-NetTransportFilter -SettingName $Row.Template -DestinationPrefix $Row.Prefix)
            } else {
                Find-Filter $Row | Remove-NetTransportFilter -Confirm:$false
            }
        }
    }
}

function Format-Setting($State) {
    if ($null -eq $State) { return '(absent)' }
    if ($State -is [System.Collections.IDictionary]) {
        return $State.Kind + ' ' + [string]::Join(',', @(@($State.Value) | ForEach-Object { [string] $_ }))
    }
    [string] $State
}

function Test-Same($One, $Other) {
    (Format-Setting $One) -eq (Format-Setting $Other)
}

# Writes one value and reads it back; says so and answers false where it did not take.
function Set-Checked($Row, $State) {
    try {
        # What a cmdlet prints must not become part of the answer.
        Write-Setting $Row $State | Out-Null
    } catch {
        Write-Warning "$($Row.Name): refused: $($_.Exception.Message)"
        return $false
    }
    $now = Read-Setting $Row
    if (Test-Same $now $State) {
        Write-Host "$($Row.Name): is now $(Format-Setting $now)"
        return $true
    }
    Write-Warning "$($Row.Name): wrote $(Format-Setting $State), but it reads back as $(Format-Setting $now)"
    return $false
}

function Test-Administrator {
    $user = New-Object Security.Principal.WindowsPrincipal ([Security.Principal.WindowsIdentity]::GetCurrent())
    $user.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)
}
