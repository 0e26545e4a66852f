@echo off
setlocal DisableDelayedExpansion
set "BEFORE=%~dp0fullpipe-netsh-before.txt"
net session >nul 2>&1
if errorlevel 1 (
  echo Run this in a command prompt of an administrator. Nothing was changed.
  exit /b 1
)
