
read_mtu() { ifconfig "$1" | sed -n 's/.* mtu \([0-9][0-9]*\).*/\1/p' | head -n 1; }
write_mtu() { ifconfig "$1" mtu "$2"; }
