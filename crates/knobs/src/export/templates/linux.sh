
# Not from /sys, which can be another network namespace's.
read_mtu() { ip -o link show dev "$1" | sed -n 's/.* mtu \([0-9][0-9]*\).*/\1/p'; }
write_mtu() { ip link set dev "$1" mtu "$2"; }

# The route as `ip` shows it, without the flags that it does not take back.
read_route() {
  shown=$(ip "$1" route show exact "$2")
  # shellcheck disable=SC2086
  set -- $shown
  kept=
  for word in "$@"; do
    case $word in
      dead | linkdown | offload | offload_failed | trap | rt_offload | rt_trap) ;;
      *) kept="$kept $word" ;;
    esac
  done
  squeeze "$kept"
}
# FAMILY DESTINATION ATTRIBUTE
save_route() {
  value=$(ip "$1" route show exact "$2") || stop "the route $2 can't be read. Nothing was changed."
  [ -n "$value" ] || stop "there is no route $2. Nothing was changed."
  case $value in
    *nexthop*) stop "the route $2 has several next hops; change it by hand. Nothing was changed." ;;
  esac
  [ "$(printf '%s\n' "$value" | wc -l)" -eq 1 ] || stop "there are several routes $2; change the right one by hand. Nothing was changed."
  note "route $1 $2" "$(read_route "$1" "$2")"
}
# ATTRIBUTE WORDS...: the words without the attribute and its value.
without() {
  attribute=$1
  shift
  kept=
  while [ $# -gt 0 ]; do
    if [ "$1" = "$attribute" ]; then
      shift
      if [ "${1-}" = lock ]; then shift; fi
      if [ $# -gt 0 ]; then shift; fi
    else
      kept="$kept $1"
      shift
    fi
  done
  squeeze "$kept"
}
# FAMILY DESTINATION ATTRIBUTE VALUE: an empty value removes the attribute.
set_route() {
  # shellcheck disable=SC2046
  rest=$(without "$3" $(read_route "$1" "$2"))
  if [ -n "$4" ]; then rest="$rest $3 $4"; fi
  # shellcheck disable=SC2086
  ip "$1" route change $rest || { warn "route $2: $3 refused"; return 0; }
  now=$(read_route "$1" "$2")
  case " $now " in
    *" $3 $4 "*) [ -n "$4" ] && say "route $2 has now $3 $4" && return 0 ;;
    *" $3 "*) ;;
    *) [ -z "$4" ] && say "route $2 has no $3 now" && return 0 ;;
  esac
  warn "route $2: $3 did not take; it reads back as: $now"
}
restore_route() {
  old=$(saved_value "route $1 $2") || { warn "route $2: how it was before is not known (no before.txt); left alone"; return 0; }
  now=$(read_route "$1" "$2")
  [ "$now" != "$old" ] || return 0
  case " $now " in
    *" $3 $4 "*) [ -n "$4" ] || { warn "route $2 has $3 again, which apply.sh did not write; left alone"; return 0; } ;;
    *" $3 "*) warn "route $2: $3 is not what apply.sh wrote; left alone"; return 0 ;;
    *) [ -z "$4" ] || { warn "route $2 has no $3 any more; left alone"; return 0; } ;;
  esac
  # Only this attribute goes back: the other words are as they are now.
  # shellcheck disable=SC2086
  rest=$(without "$3" $now)
  # shellcheck disable=SC2086
  was=$(attribute_of "$3" $old)
  # shellcheck disable=SC2086
  ip "$1" route change $rest $was || { warn "route $2: $was refused"; return 0; }
  say "route $2 is now: $(read_route "$1" "$2")"
}
# ATTRIBUTE WORDS...: the attribute with its value, or nothing.
attribute_of() {
  wanted=$1
  shift
  while [ $# -gt 0 ]; do
    if [ "$1" = "$wanted" ]; then
      if [ "${2-}" = lock ]; then printf '%s' "$1 lock ${3-}"; else printf '%s' "$1 ${2-}"; fi
      return 0
    fi
    shift
  done
}

drop_in=${DESTDIR-}/etc/sysctl.d/90-fullpipe.conf
check_drop_in() {
  [ ! -e "$drop_in" ] || cmp -s "$here/90-fullpipe.conf" "$drop_in" || stop "$drop_in is there from another plan: undo that one first. Nothing was changed."
}
install_drop_in() {
  mkdir -p "$(dirname "$drop_in")"
  cp "$here/90-fullpipe.conf" "$drop_in"
}
remove_drop_in() {
  [ -e "$drop_in" ] || return 0
  if cmp -s "$here/90-fullpipe.conf" "$drop_in"; then rm "$drop_in"; else warn "$drop_in is not the one of this folder; left alone"; fi
}
