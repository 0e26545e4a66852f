netsh interface tcp reset
netsh interface tcp set global autotuninglevel=disabled
netsh interface tcp set heuristics disabled
netsh interface tcp set supplemental internet congestionprovider=ctcp
reg add HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\{0A1B2C3D-0000-1111-2222-333344445555} /v TcpAckFrequency /t REG_DWORD /d 1 /f
reg add HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters /v Tcp1323Opts /d 1 /f
netsh interface ipv4 set subinterface "Ethernet" mtu=9014 store=persistent
netsh interface tcp set global rss=disabled
