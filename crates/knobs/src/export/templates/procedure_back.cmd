@echo off
setlocal DisableDelayedExpansion
rem Puts back what 1-save.cmd saved: netsh's own dump, then the templates that a cmdlet can write.
cd /d "%~dp0"
if not exist "before\netsh-tcp.txt" (echo There is no folder "before": nothing was saved. & exit /b 1)
net session >nul 2>&1
if errorlevel 1 (echo Run this as an administrator. & exit /b 1)
netsh -f "before\netsh-tcp.txt"
powershell -NoProfile -Command "foreach ($s in Import-Clixml -LiteralPath 'before\templates.xml') { if ($s.SettingName -eq 'Automatic') { continue }; $now = Get-NetTCPSetting -SettingName $s.SettingName; foreach ($p in 'MinRtoMs','InitialCongestionWindowMss','CongestionProvider','CwndRestart','DelayedAckTimeoutMs','DelayedAckFrequency','AutoTuningLevelLocal','EcnCapability','Timestamps','InitialRtoMs','ForceWS','MaxSynRetransmissions') { if ($null -eq $s.$p -or \"$($s.$p)\" -eq \"$($now.$p)\") { continue }; $one = @{ SettingName = $s.SettingName; $p = \"$($s.$p)\" }; try { Set-NetTCPSetting @one -ErrorAction Stop } catch { Write-Warning \"$($s.SettingName) $p stays $($now.$p): this version does not let it be set\" } } }"
echo Restart Windows, then compare with the files in "before".
