@echo off
setlocal DisableDelayedExpansion
rem Saves what TCP is set to into the folder "before". Changes nothing.
cd /d "%~dp0"
if exist "before\netsh-tcp.txt" (echo The folder "before" is there already and is kept. & exit /b 0)
if not exist before mkdir before
netsh interface tcp show global > "before\show-global.txt"
netsh interface tcp show supplemental > "before\show-supplemental.txt"
netsh interface tcp show heuristics > "before\show-heuristics.txt"
reg export HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters "before\tcpip-parameters.reg" /y
if errorlevel 1 (echo Saving failed: reg export could not write "before\tcpip-parameters.reg". & exit /b 1)
powershell -NoProfile -Command "$ErrorActionPreference = 'Stop'; if (-not (Get-Command Get-NetTCPSetting -ErrorAction SilentlyContinue)) { Write-Output 'This Windows has no cmdlets for TCP: its templates, filters and offloads are not saved.'; exit 0 }; Get-NetTCPSetting | Export-Clixml -LiteralPath 'before\templates.xml'; Get-NetTransportFilter | Export-Clixml -LiteralPath 'before\filters.xml'; Get-NetOffloadGlobalSetting | Export-Clixml -LiteralPath 'before\offloads.xml'; Get-NetAdapterAdvancedProperty -Name * -RegistryKeyword '*RSS','*RscIPv4','*RscIPv6','*LsoV2IPv4','*LsoV2IPv6','*JumboPacket' -ErrorAction SilentlyContinue | Select-Object Name, RegistryKeyword, RegistryValue | Export-Clixml -LiteralPath 'before\adapters.xml'"
if errorlevel 1 (echo Saving failed: PowerShell could not save templates, filters, offloads or adapters, see above. & exit /b 1)
netsh interface tcp dump > "before\netsh-tcp.txt"
if errorlevel 1 (del "before\netsh-tcp.txt" & echo Saving failed: run this as an administrator. & exit /b 1)
echo Saved. Keep the folder "before": it is the way back.
