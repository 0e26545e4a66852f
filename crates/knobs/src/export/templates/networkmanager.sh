#!/bin/sh
# Sets the MTU in NetworkManager's connection of an interface, and takes it back.
#   sh networkmanager-mtu.sh apply
#   sh networkmanager-mtu.sh undo
set -euf
here=$(cd "$(dirname "$0")" && pwd)
saved=$here/networkmanager-before
stop() { printf '%s\n' "$*" >&2; exit 1; }
what=${1-}
case $what in
  apply | undo) ;;
  *) stop "say apply or undo" ;;
esac

# INTERFACE MTU
connection() {
  file=$saved-$1.txt
  if [ "$what" = undo ]; then
    [ -e "$file" ] || stop "$file is not there: what was set before is not known. Nothing was changed for $1."
    { IFS= read -r uuid; IFS= read -r mtu; } <"$file"
    nmcli connection modify uuid "$uuid" 802-3-ethernet.mtu "$mtu"
    rm "$file"
  else
    uuid=$(nmcli -g GENERAL.CON-UUID device show "$1")
    [ -n "$uuid" ] || stop "NetworkManager has no active connection on $1."
    mtu=$(nmcli -g 802-3-ethernet.mtu connection show uuid "$uuid")
    # "auto" is how nmcli shows 0.
    case $mtu in auto | '') mtu=0 ;; esac
    [ -e "$file" ] || printf '%s\n%s\n' "$uuid" "$mtu" >"$file"
    nmcli connection modify uuid "$uuid" 802-3-ethernet.mtu "$2"
  fi
  nmcli device reapply "$1"
}
