if not exist "%BEFORE%" (
  echo fullpipe-netsh-before.txt is not there: fullpipe-netsh.cmd was not run from this folder. Nothing was changed.
  exit /b 1
)
findstr /b /c:"set global " "%BEFORE%" >nul
if errorlevel 1 (
  echo fullpipe-netsh-before.txt has no line "set global". Nothing was changed; look into that file.
  exit /b 1
)
rem Only that line is run: the "reset" in the file would reset more than was changed.
>"%BEFORE%.run" echo pushd interface tcp
findstr /b /c:"set global " "%BEFORE%" >>"%BEFORE%.run"
>>"%BEFORE%.run" echo popd
netsh -f "%BEFORE%.run"
if errorlevel 1 goto failed
del "%BEFORE%.run"
