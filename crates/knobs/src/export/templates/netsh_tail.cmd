rem Read it back: netsh prints what is in force. Group Policy can win over it.
netsh interface tcp show global
exit /b 0
:unsaved
if exist "%BEFORE%" del "%BEFORE%"
echo What is there now could not be saved. Nothing was changed.
exit /b 1
:failed
echo netsh refused the command before this line. What came before it is set; the undo script takes it back.
exit /b 1
