rem What is there now is saved once, as commands that netsh can run. A later run keeps the first file.
if exist "%BEFORE%" (
  echo fullpipe-netsh-before.txt is there from an earlier run and is kept.
) else (
  netsh interface tcp dump >"%BEFORE%"
  if errorlevel 1 goto unsaved
)
