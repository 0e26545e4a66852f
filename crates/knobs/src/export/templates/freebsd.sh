
# Which file this release reads at boot: the old ones know /etc/sysctl.conf only.
sysctl_conf=${DESTDIR-}/etc/sysctl.conf
if grep -q 'sysctl\.conf\.local' "${DESTDIR-}/etc/rc.d/sysctl" 2>/dev/null; then
  sysctl_conf=${DESTDIR-}/etc/sysctl.conf.local
fi
loader_conf=${DESTDIR-}/boot/loader.conf.local
rc_conf=${DESTDIR-}/etc/rc.conf.local
