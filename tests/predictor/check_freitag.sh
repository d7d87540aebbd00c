#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# freitag from outside: values worked by hand on a small run, those of the recorded runs, what it
# writes, how it fails.
# usage: check_freitag.sh FREITAG RECORDED SCRATCH
set -eu
tool=$1 recorded=$2 scratch=$3/freitag
rm -rf "$scratch"
mkdir -p "$scratch"

# shellcheck source=tests/predictor/expect.sh
. "$(dirname "$0")/expect.sh"

refuse() { # WHAT MESSAGE ARGUMENT…
    what=$1 message=$2
    shift 2
    expect_status 1 "$what" "$tool" --folder "$scratch/refused" "$@"
    grep -q "$message" "$scratch/err" || fail "$what: unclear: $(cat "$scratch/err")"
    [ ! -s "$scratch/out" ] || fail "$what: prints results"
}

expect_status 0 "--help" "$tool" --help
grep -q -- --json "$scratch/out" || fail "--help does not name --json"
expect_status 2 "unknown option" "$tool" --nonsense
expect_status 2 "negative rank" "$tool" --rank -1

# Thirty rounds of nine receives of 16 KiB and one of 32 KiB, all into one buffer.
mkdir -p "$scratch/small/loop-4"
{
    echo comm,src,tag,bytes,addr,t_post,t_sent
    i=0
    while [ $i -lt 300 ]; do
        i=$((i + 1))
        [ $((i % 10)) -eq 0 ] && bytes=32768 || bytes=16384
        echo "0,0,1,$bytes,1000,0,0"
    done
} >"$scratch/small/loop-4/r1.csv"
expect_status 0 "a small run" "$tool" --traces "$scratch/small" --folder "$scratch/made" --json
echo "[$(paste -sd, "$scratch/made/papers.jsonl")]" | cmp - "$scratch/out" ||
    fail "--json is not what papers.jsonl has"
python3 - "$scratch/out" <<'EOF' || fail "the values of the small run"
import json, sys
lines = json.load(open(sys.argv[1]))
assert all(line["paper"] == "freitag" for line in lines)
rows = [line for line in lines if "table" in line]
assert len(rows) == 1 and rows[0]["program"] == "loop" and rows[0]["ranks"] == 4, rows
row = rows[0]
assert (row["messages"], row["over8k"], row["addresses"], row["sizes"]) == (300, 300, 1, 2), row
assert row["printed"] is None
# A period of 1 from the second receive on, of 10 when two rounds have come.
assert row["patterns"] == [{"period": 10, "messages": 281, "addresses": 1, "sizes": 2},
                           {"period": 1, "messages": 18, "addresses": 1, "sizes": 1}], row
# 256 comparisons at a lag of 10: from the 266th receive on.
assert row["patterns_window_256"] == [{"period": 10, "messages": 35, "addresses": 1, "sizes": 2}]

def right(predictor, part, ahead):
    found = [line for line in lines if line.get("predictor") == predictor and line["ahead"] == ahead
             and line["part"] == part and line["messages"] == "over8k"]
    assert len(found) == 1 and found[0]["n"] == 300, found
    return found[0]["right"]

# The graph never foretells the tenth of a round. It knows AAA from the fifth receive on, and what
# follows the first exception only the second time.
assert right("graph", "size", 1) == right("graph", "address and size", 1) == 263
assert right("graph", "size", 10) == right("graph", "address and size", 10) == 256
# The address is right even so, if anything is foretold.
assert right("graph", "address", 10) == 284
assert right("dpd", "address and size", 1) == 34
assert right("dpd", "address and size", 10) == 25
# Wrong: the first two, both exceptions of the first two rounds, and the one after the first.
assert right("dpd-fitted", "address and size", 1) == 295
assert right("dpd-fitted", "address and size", 10) == 289
assert right("default", "address and size", 1) > 250
points = [line for line in lines if "predictor" in line]
assert len(points) == 4 * 3 * 2 * 10, len(points)
assert {line["here"] for line in lines if "statement" in line} >= {"no such run"}
EOF
for picture in figure1 ahead ahead-addresses ahead-sizes; do
    python3 - "$scratch/made/freitag-$picture.svg" <<'EOF' || fail "$picture.svg is broken"
import sys, xml.dom.minidom
svg = xml.dom.minidom.parse(sys.argv[1]).documentElement
assert svg.tagName == "svg"
assert len(svg.getElementsByTagName("polyline")) == (8 if "figure1" in sys.argv[1] else 4)
EOF
done
expect_status 0 "appends" "$tool" --traces "$scratch/small" --folder "$scratch/made"
[ "$(grep -c '"table":1' "$scratch/made/papers.jsonl")" -eq 2 ] || fail "does not append"
grep -q "loop 4  *-  *-  *-  *-  *300  *1  *2  10 (281), 1 (18); 10 (35)" "$scratch/out" ||
    fail "Table 1: $(cat "$scratch/out")"

# What the paper says, of the runs that are in the tree.
expect_status 0 "recorded runs" "$tool" --traces "$recorded" --folder "$scratch/recorded" --json
python3 - "$scratch/out" <<'EOF' || fail "the recorded runs are not what the paper says"
import json, sys
lines = json.load(open(sys.argv[1]))
rows = {(row["program"], row["ranks"]): row for row in lines if "table" in row}
assert len(rows) == 28 and sum(row["printed"] is not None for row in rows.values()) == 24
assert all(row["rank"] == 1 for row in rows.values())
same = [("bt", 16), ("bt", 25), ("cg", 32), ("ft", 8), ("ft", 32), ("lu", 4)]
same += [("is", ranks) for ranks in (4, 8, 16, 32)] + [("sp", ranks) for ranks in (4, 9, 16, 25)]
for run in same:
    assert rows[run]["patterns"][0]["period"] == rows[run]["printed"]["period"], rows[run]
for ranks in (4, 8, 16):    # the paper's period comes first, until a longer one shows
    assert rows["cg", ranks]["patterns"][1]["period"] == rows["cg", ranks]["printed"]["period"]

def percent(program, ranks, predictor, ahead):
    found = [line for line in lines if line.get("predictor") == predictor
             and (line["program"], line["ranks"]) == (program, ranks) and line["ahead"] == ahead
             and line["part"] == "address and size" and line["messages"] == "over8k"]
    assert len(found) == 1, found
    return 100 * found[0]["right"] / found[0]["n"]

for ranks in (4, 8, 16, 32):
    assert percent("lu", ranks, "graph", 10) == 0
    assert percent("lu", ranks, "dpd-fitted", 10) > 95
    assert percent("lu", ranks, "default", 10) > 95
assert percent("bt", 25, "graph", 10) < 20 < 95 < percent("bt", 25, "dpd-fitted", 10)
EOF
# The paper's rows of LU are those of a process with two neighbours, as rank 0 is.
expect_status 0 "rank 0" "$tool" --traces "$recorded" --folder "$scratch/recorded" --rank 0
grep -q "^lu 8  *31492  *2  *4  *126  *31646  *2  *4  *126 (" "$scratch/out" ||
    fail "LU at rank 0: $(cat "$scratch/out")"

mkdir -p "$scratch/odd/nothing-of-the-kind" "$scratch/twice/again/loop-4"
cp "$scratch/small/loop-4/r1.csv" "$scratch/odd/nothing-of-the-kind/"
cp "$scratch/small/loop-4/r1.csv" "$scratch/twice/again/loop-4/"
refuse "no such folder" "none: no such file" --traces "$scratch/none"
refuse "no such rank" "loop-4: rank 0 is not recorded" --traces "$scratch/small" --rank 0
refuse "a run of another name" "not named PROGRAM" --traces "$scratch/odd"
refuse "a run that is there twice" "loop-4: is there twice" \
    --traces "$scratch/small" --traces "$scratch/twice/again"
: >"$scratch/file"
expect_status 1 "a folder that cannot be made" "$tool" --traces "$scratch/small" \
    --folder "$scratch/file"
if [ -w /dev/full ]; then
    status=0
    "$tool" --traces "$scratch/small" --folder "$scratch/full" >/dev/full 2>"$scratch/err" ||
        status=$?
    [ $status -eq 1 ] || fail "does not notice a full disk"
fi
