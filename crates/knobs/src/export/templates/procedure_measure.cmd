@echo off
setlocal DisableDelayedExpansion
rem Measures message sizes against HOST, which runs `fullpipe serve`: @WHEN@ the reset. Changes no setting.
if "%~1"=="" (echo Give the host that runs "fullpipe serve": %~nx0 HOST & exit /b 2)
@CHECK@fullpipe measure %1 --sizes 4k..64k @OPTIONS@
