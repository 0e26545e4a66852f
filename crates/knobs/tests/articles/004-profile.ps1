# Elevate to DataCenter profile which allows larger windows
Set-NetTCPSetting -SettingName Internet -InitialCongestionWindow 10 -AutoTuningLevelLocal Restricted
