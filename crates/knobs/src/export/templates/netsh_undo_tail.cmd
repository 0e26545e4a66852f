if exist "%BEFORE%" del "%BEFORE%"
netsh interface tcp show global
exit /b 0
:failed
echo netsh refused the command before this line. The values before are in fullpipe-netsh-before.txt.
exit /b 1
