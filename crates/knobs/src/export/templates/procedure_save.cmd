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
powershell -NoProfile -Command "Get-NetTCPSetting | Export-Clixml -LiteralPath 'before\templates.xml'; Get-NetTransportFilter | Export-Clixml -LiteralPath 'before\filters.xml'; Get-NetOffloadGlobalSetting | Export-Clixml -LiteralPath 'before\offloads.xml'; Get-NetAdapterAdvancedProperty -Name * -RegistryKeyword '*RSS','*RscIPv4','*RscIPv6','*LsoV2IPv4','*LsoV2IPv6','*JumboPacket' -ErrorAction SilentlyContinue | Select-Object Name, RegistryKeyword, RegistryValue | Export-Clixml -LiteralPath 'before\adapters.xml'"
netsh interface tcp dump > "before\netsh-tcp.txt"
if errorlevel 1 (del "before\netsh-tcp.txt" & echo Saving failed: run this as an administrator. & exit /b 1)
echo Saved. Keep the folder "before": it is the way back.
