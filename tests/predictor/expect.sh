# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
#
# For scripts that look at a program from outside: sourced with $scratch, a folder for what it prints.

fail() { echo "$(basename "$0" .sh): $*" >&2; exit 1; }
expect_status() { # STATUS WHAT COMMAND…
    want=$1 what=$2
    shift 2
    status=0
    "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    [ $status -eq "$want" ] || fail "$what: status $status, not $want: $(cat "$scratch/err")"
}
