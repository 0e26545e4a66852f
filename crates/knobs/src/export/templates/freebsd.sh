
# Which file this release reads at boot: the old ones know /etc/sysctl.conf only.
sysctl_conf=${DESTDIR-}/etc/sysctl.conf
if grep -q 'sysctl\.conf\.local' "${DESTDIR-}/etc/rc.d/sysctl" 2>/dev/null; then
  sysctl_conf=${DESTDIR-}/etc/sysctl.conf.local
fi
loader_conf=${DESTDIR-}/boot/loader.conf.local
rc_conf=${DESTDIR-}/etc/rc.conf.local

# What the boot loader set, as the system has it.
read_tunable() { sysctl -n "$1" 2>/dev/null || kenv -q "$1" 2>/dev/null; }
waiting=0
# NAME WANTED: whether the system has at least that.
await_tunable() {
  now=$(read_tunable "$1") || now="not readable"
  if [ "$now" = "$2" ] || [ "$now" -ge "$2" ] 2>/dev/null; then return 0; fi
  say "$1 is $now: the boot loader sets $2 at the next start"
  waiting=1
}
stop_for_restart() {
  [ "$waiting" -eq 0 ] && return 0
  say "Restart now, then run apply.sh again: nothing else was changed."
  exit 3
}
