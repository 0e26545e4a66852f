
# A parameter of a template that Get-NetTCPSetting gave, or nothing. Some versions name it without the unit at its end.
function Find-Parameter($Setting, [string] $Parameter) {
    foreach ($name in @($Parameter, ($Parameter -replace 'Mss?$', ''))) {
        $property = $Setting.PSObject.Properties[$name]
        if ($property -and $null -ne $property.Value) { return [string] $property.Value }
    }
}
