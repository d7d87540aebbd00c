#!/bin/sh
# usage: check_zc_info.sh ZC_INFO DIRECTORY
# Every option works, and every failure has its own exit code.
set -u
info=$1
costs=$2/zc_info_costs.json
fail() { echo "$*" >&2; exit 1; }

"$info" --version | grep -q '^zc-info [0-9]*\.[0-9]*\.[0-9]*$' || fail "--version"
"$info" --help | grep -q -- --calibrate-to || fail "--help"
"$info" | grep -q 'PROCMAP_QUERY' || fail "plain output"
"$info" --json | grep -q '"max_map_count"' || fail "--json"
"$info" | grep -Eq '^/dev/zc +(ready \(exchange|no |permission denied|old ABI)' || fail "/dev/zc"
"$info" --json | grep -q '"dev_zc_status"' || fail "/dev/zc in --json"
"$info" | grep -Eq '^NVIDIA, VFIO, KNEM +(none|present)' || fail "drivers that hold pages"
"$info" --json | grep -Eq '"uncounted_pins": (true|false)' || fail "drivers in --json"
rm -f "$costs"
"$info" --calibrate-to "$costs" >/dev/null || fail "--calibrate-to"
grep -q mremap_ns_fixed "$costs" || fail "cost file is empty"
"$info" --costs "$costs" >/dev/null || fail "--costs"
sed -i 's/"kmod_ns_fixed": [0-9.]*/"kmod_ns_fixed": 1000.0/' "$costs"
"$info" --costs "$costs" | grep -q '^ *64 KiB  kmod ' || fail "--costs with a module"
echo '{' >"$costs"
"$info" --costs "$costs" >/dev/null 2>&1
[ $? -eq 3 ] || fail "a malformed cost file must exit with 3"
"$info" --calibrate-to /nonexistent/dir/costs >/dev/null 2>&1
[ $? -eq 4 ] || fail "an unwritable cost file must exit with 4"
"$info" --no-such-option >/dev/null 2>&1
[ $? -eq 2 ] || fail "a wrong option must exit with 2"
rm -f "$costs"
