@echo off
setlocal DisableDelayedExpansion
rem Puts back what 1-save.cmd saved: netsh's own dump, then what cmdlets write (back.ps1).
cd /d "%~dp0"
if not exist "before\netsh-tcp.txt" (echo There is no folder "before": nothing was saved. & exit /b 1)
net session >nul 2>&1
if errorlevel 1 (echo Run this as an administrator. & exit /b 1)
netsh -f "before\netsh-tcp.txt"
powershell -NoProfile -ExecutionPolicy Bypass -File "%~dp0back.ps1"
if errorlevel 1 echo Not everything was put back: see above.
echo Restart Windows, then compare with the files in "before".
