#!/bin/sh
# usage: check_symbols.sh NM LIBRARY MAP
set -eu
exported=$("$1" -D --defined-only --format=posix "$2" | sed -n 's/^\(zcl_[a-z_]*\)@*.* T .*/\1/p' | sort)
others=$("$1" -D --defined-only --format=posix "$2" | grep -v '^zcl_' | grep -v '^ZCL_0' || true)
promised=$(sed -n 's/^ *\(zcl_[a-z_]*\);/\1/p' "$3" | sort)
[ -z "$others" ] || { echo "unexpected symbols: $others" >&2; exit 1; }
[ "$exported" = "$promised" ] || { echo "exported: $exported
promised: $promised" >&2; exit 1; }
