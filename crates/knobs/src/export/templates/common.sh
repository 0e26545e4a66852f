set -euf
here=$(cd "$(dirname "$0")" && pwd)
before=$here/before.txt
failed=0
# DESTDIR, where it is set, goes before the paths of the files that are installed, and of nothing else.

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; failed=1; }
stop() { rm -f "$before.new"; printf '%s\n' "$*" >&2; exit 1; }

# A value with single spaces.
squeeze() {
  # Splitting is meant here.
  # shellcheck disable=SC2086
  set -- $1
  printf '%s' "$*"
}

# before.txt has lines "kind name=value". It is written once, whole, before the first change.
begin_save() {
  saving=$before.new
  : >"$saving"
}
note() { printf '%s=%s\n' "$1" "$2" >>"$saving"; }
end_save() {
  if [ -e "$before" ]; then
    while IFS= read -r saved; do
      saved_value "${saved%%=*}" >/dev/null || stop "before.txt belongs to another plan: undo that one first. Nothing was changed."
    done <"$saving"
    rm "$saving"
    say "before.txt is there from an earlier run and is kept"
  else
    mv "$saving" "$before"
  fi
}
saved_value() {
  [ -e "$before" ] || return 1
  while IFS= read -r saved_line; do
    case $saved_line in
      "$1="*) printf '%s' "${saved_line#"$1="}"; return 0 ;;
    esac
  done <"$before"
  return 1
}

# Fails where the value can't be read.
read_sysctl() { got=$(sysctl -n "$1") && squeeze "$got"; }
save_sysctl() {
  value=$(read_sysctl "$1") && [ -n "$value" ] || stop "$1 can't be read. Nothing was changed."
  note "sysctl $1" "$value"
}
write_sysctl() { sysctl -w "$1=$2" >/dev/null; }
set_sysctl() {
  write_sysctl "$1" "$2" || { warn "$1: refused"; return 0; }
  now=$(read_sysctl "$1") || now="(not readable)"
  if [ "$now" = "$2" ]; then say "$1 is now $2"; else warn "$1: wrote $2, but it reads back as $now"; fi
}
# NAME WRITTEN [KNOWN]: puts back what before.txt or, without it, the plan tells.
restore_sysctl() {
  old=$(saved_value "sysctl $1") || old=${3-}
  [ -n "$old" ] || { warn "$1: what was there before is not known (no before.txt); left alone"; return 0; }
  now=$(read_sysctl "$1") || now="(not readable)"
  [ "$now" != "$old" ] || return 0
  [ "$now" = "$2" ] || { warn "$1 is $now, which apply.sh did not write; left alone"; return 0; }
  set_sysctl "$1" "$old"
}

save_mtu() {
  value=$(read_mtu "$1") && [ -n "$value" ] || stop "the MTU of $1 can't be read. Nothing was changed."
  note "mtu $1" "$value"
}
set_mtu() {
  write_mtu "$1" "$2" || { warn "$1: MTU $2 refused"; return 0; }
  now=$(read_mtu "$1") || now="(not readable)"
  if [ "$now" = "$2" ]; then say "$1 has now MTU $2"; else warn "$1: wrote MTU $2, but it reads back as $now"; fi
}
restore_mtu() {
  old=$(saved_value "mtu $1") || old=${3-}
  [ -n "$old" ] || { warn "$1: its MTU before is not known (no before.txt); left alone"; return 0; }
  now=$(read_mtu "$1") || now="(not readable)"
  [ "$now" != "$old" ] || return 0
  [ "$now" = "$2" ] || { warn "$1 has MTU $now, which apply.sh did not write; left alone"; return 0; }
  set_mtu "$1" "$old"
}

# A file that blocks are put into.
save_file() {
  if [ -e "$1" ]; then note "file $1" there; else note "file $1" absent; fi
}
# FILE FRAGMENT: puts the fragment, which has its own marks, at the end of the file.
append_block() {
  mkdir -p "$(dirname "$1")"
  remove_block "$1"
  # A last line without its end would swallow the first of ours. The end stays when the block goes.
  if [ -s "$1" ] && [ -n "$(tail -c 1 "$1")" ]; then printf '\n' >>"$1"; fi
  cat "$2" >>"$1"
}
remove_block() {
  [ -e "$1" ] && grep -q '^# begin fullpipe$' "$1" || return 0
  sed '/^# begin fullpipe$/,/^# end fullpipe$/d' "$1" >"$1.fullpipe"
  # Written into the file that is there, which keeps its owner and rights.
  cat "$1.fullpipe" >"$1"
  rm "$1.fullpipe"
  if [ ! -s "$1" ] && [ "$(saved_value "file $1")" = absent ]; then rm "$1"; fi
}

finish() {
  [ "$failed" -eq 0 ] || stop "not everything took; undo.sh takes back what did"
}
finish_undo() {
  [ "$failed" -eq 0 ] || stop "not everything could be put back; before.txt is kept"
  rm -f "$before"
}
