#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# zc-predict from outside: what it prints, what it writes, how it fails.
# usage: check_zc_predict.sh ZC_PREDICT DATA SCRATCH
set -eu
tool=$1 data=$2 scratch=$3/zc-predict
rm -rf "$scratch"
mkdir -p "$scratch"

# shellcheck source=tests/predictor/expect.sh
. "$(dirname "$0")/expect.sh"

run=$data/npb-is-A-4
expect_status 0 "--help" "$tool" report --help
grep -q -- --json "$scratch/out" || fail "--help does not name --json"
expect_status 0 "--version" "$tool" --version

expect_status 0 "tables" "$tool" report "$run"
for title in "Messages over 8 KiB" "Landing" "Confidence" "Streams" "Cost"; do
    grep -q "$title" "$scratch/out" || fail "no table \"$title\""
done

expect_status 0 "json" "$tool" report "$run" --json
python3 - "$scratch/out" <<'EOF' || fail "the JSON is not as described"
import json, sys
report = json.load(open(sys.argv[1]))
assert set(report) == {"accuracy", "landing", "cost"}, report.keys()
row = report["accuracy"][0]
assert set(row) == {"run", "rank", "predictor", "order", "horizon", "class", "right", "n"}, row
assert {r["order"] for r in report["accuracy"]} == {"post", "arrival"}
assert {r["horizon"] for r in report["accuracy"]} == set(range(1, 11))
assert {r["class"] for r in report["accuracy"]} == {"all", "over8k"}
assert {"default", "graph", "dpd", "longest-match"} <= {r["predictor"] for r in report["accuracy"]}
row = report["landing"][0]
assert set(row) == {"run", "rank", "predictor", "class", "exact", "congruent", "silent", "n"}, row
assert all(r["exact"] <= r["congruent"] <= r["n"] for r in report["landing"])
assert set(report["cost"][0]) == {"predictor", "ns_per_receive", "bytes"}
assert all(r["bytes"] <= 1 << 20 for r in report["cost"])
EOF

expect_status 0 "picture" "$tool" report "$run" --predictor default --svg "$scratch/p.svg" \
    --out "$scratch/sub/p.jsonl"
python3 - "$scratch/p.svg" "$scratch/sub/p.jsonl" <<'EOF' || fail "picture or lines are broken"
import json, sys, xml.dom.minidom
assert xml.dom.minidom.parse(sys.argv[1]).documentElement.tagName == "svg"
lines = [json.loads(line) for line in open(sys.argv[2])]
assert "context" in lines[0]
assert all(set(l) == {"bench", "case", "impl", "bytes", "metric", "unit", "median", "p10", "p90",
                      "n"} for l in lines[1:]) and len(lines) > 5
EOF

expect_status 2 "no subcommand" "$tool"
expect_status 2 "unknown option" "$tool" report "$run" --nonsense
expect_status 2 "unknown predictor" "$tool" report "$run" --predictor oracle
expect_status 1 "no such folder" "$tool" report "$scratch/none"
grep -q "none: no such file" "$scratch/err" || fail "unclear: $(cat "$scratch/err")"
expect_status 1 "folder without traces" "$tool" report "$scratch"
expect_status 1 "unwritable picture" "$tool" report "$run" --svg "$scratch/no/such/p.svg"

mkdir "$scratch/broken"
head -c 600 "$run/r1.csv.gz" >"$scratch/broken/r1.csv.gz"
expect_status 1 "truncated gzip" "$tool" report "$scratch/broken"
grep -q "r1.csv.gz:[0-9]*: gzip data ends too early" "$scratch/err" ||
    fail "unclear: $(cat "$scratch/err")"
[ ! -s "$scratch/out" ] || fail "prints a report of a broken trace"
if [ -w /dev/full ]; then
    status=0
    "$tool" report "$run" --json >/dev/full 2>"$scratch/err" || status=$?
    [ $status -eq 1 ] || fail "does not notice a full disk"
fi

# Who reads the output may have had enough: then the tool is ended by SIGPIPE, without a word.
mkfifo "$scratch/gone"
exec 3<>"$scratch/gone" 4>"$scratch/gone" 3>&-
status=0
"$tool" report "$run" --predictor last >&4 2>"$scratch/err" || status=$?
[ $status -eq 141 ] || fail "exits with $status with nobody there to read"
[ ! -s "$scratch/err" ] || fail "says with nobody there to read: $(cat "$scratch/err")"
