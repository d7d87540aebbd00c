#!/bin/sh
# usage: check_symbols.sh NM LIBRARY MAP PREFIX
#
# Does the library export the functions of its map, and nothing else? Their names begin with the
# prefix and an underscore, that of their version (PREFIX_0) with the prefix in capitals.
set -eu
prefix=$4
version=$(echo "$prefix" | tr '[:lower:]' '[:upper:]')_0
symbols=$("$1" -D --defined-only --format=posix "$2")
exported=$(echo "$symbols" | sed -n "s/^\(${prefix}_[a-z_]*\)@*.* T .*/\1/p" | sort)
others=$(echo "$symbols" | grep -v "^${prefix}_" | grep -v "^$version" || true)
promised=$(sed -n "s/^ *\(${prefix}_[a-z_]*\);/\1/p" "$3" | sort)
[ -z "$others" ] || { echo "unexpected symbols: $others" >&2; exit 1; }
[ "$exported" = "$promised" ] || { echo "exported: $exported
promised: $promised" >&2; exit 1; }
