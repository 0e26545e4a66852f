Set-NetTCPSetting -SettingName Custom -AutoTuningLevelLocal Restricted
Set-NetTCPSetting -SettingName Internet -InitialCongestionWindowMss 10
Set-NetTCPSetting -SettingName Custom -CongestionProvider DCTCP
New-NetTransportFilter -SettingName Custom -DestinationPrefix 0.0.0.0/0
