@echo off
setlocal DisableDelayedExpansion
rem Puts TCP's global and template parameters back to Windows' own values. What was there is lost unless it was saved.
cd /d "%~dp0"
if not exist "before\netsh-tcp.txt" (echo Run 1-save.cmd first: without it there is no way back. & exit /b 1)
net session >nul 2>&1
if errorlevel 1 (echo Run this as an administrator. & exit /b 1)
netsh interface tcp reset
if errorlevel 1 (echo The reset failed; nothing else was done. & exit /b 1)
echo Restart Windows now. Then go on with step 5 of README.txt.
