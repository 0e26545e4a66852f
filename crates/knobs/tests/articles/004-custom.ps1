# Create custom TCP profile for high-latency networks
Set-NetTCPSetting -SettingName Custom -AutoTuningLevelLocal Restricted
Set-NetTCPSetting -SettingName Custom -InitialCongestionWindow 10
