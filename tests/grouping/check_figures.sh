#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# figures from outside: what it writes of messages whose distances are known, both vertical axes, how
# it fails.
# usage: check_figures.sh FIGURES SCRATCH
set -eu
tool=$1 scratch=$2/check_figures
rm -rf "$scratch"
mkdir -p "$scratch"

# shellcheck source=tests/predictor/expect.sh
. "$(dirname "$0")/../predictor/expect.sh"

expect_status 0 "--help" "$tool" --help
grep -q -- --axis "$scratch/out" || fail "--help does not name --axis"
expect_status 105 "an axis that does not exist" "$tool" --axis nonsense --folder "$scratch/refused"
expect_status 1 "a figure that does not exist" "$tool" --quick --trace 9=x --folder "$scratch/refused"
grep -q "wants NUMBER=FILE" "$scratch/err" || fail "unclear: $(cat "$scratch/err")"

# For 90 messages ranks 0, 1 and 2 send in a ring; thereafter ranks 1 and 0 alone, back and forth.
{
    echo t,src,dst,bytes,kind
    i=0
    while [ $i -lt 180 ]; do
        case $((i < 90 ? i % 3 : 3 + i % 2)) in
            0) pair=0,1 ;;
            1) pair=1,2 ;;
            2) pair=2,3 ;;
            3) pair=1,0 ;;
            *) pair=3,1 ;;
        esac
        echo "$i,$pair,8,p2p"
        i=$((i + 1))
    done
} >"$scratch/events.csv"
for axis in distance likeness; do
    expect_status 0 "$axis" "$tool" --axis $axis --trace "5=$scratch/events.csv" \
        --folder "$scratch/$axis"
    mv "$scratch/out" "$scratch/$axis.said"
done
cmp "$scratch/distance/papers.jsonl" "$scratch/likeness/papers.jsonl" ||
    fail "the axis changes the points"
expect_status 0 "no axis is named" "$tool" --folder "$scratch/plain"
cmp "$scratch/plain/singh-graham-figure3.svg" "$scratch/distance/singh-graham-figure3.svg" ||
    fail "the distance is not the default"
expect_status 105 "a reading that does not exist" "$tool" --kmp loose --folder "$scratch/refused"
expect_status 0 "other readings" "$tool" --kmp strict --match prefix --recent current \
    --trace "5=$scratch/events.csv" --folder "$scratch/other"
python3 - "$scratch" <<'EOP' || fail "points and pictures"
import json, re, sys
import xml.etree.ElementTree as xml

folder = sys.argv[1]
lines = [json.loads(line) for line in open(f"{folder}/distance/papers.jsonl")]
for line in lines:
    if line["distance"] is None:
        assert line["length"] is None and line["likeness"] == 0, line
    else:
        assert 0 <= line["distance"] <= line["length"], line
        assert abs(line["likeness"] - (1 - line["distance"] / line["length"])) < 1e-9, line
assert {line["figure"] for line in lines} == {2, 3, 4, 5, 6}

made = {line["time"]: line for line in lines
        if line["program"] == "recorded" and line["predictor"] == "basic (kmp)"}
# Nothing repeats before the first round is over; then the ring is foretold, message by message.
assert made[3]["distance"] is None, made[3]
ring = [made[time] for time in range(33, 87, 3)]
assert all((one["distance"], one["length"]) == (0, 3) for one in ring), ring
# The ring is foretold still, and none of its messages comes.
assert (made[96]["distance"], made[96]["length"], made[96]["likeness"]) == (3, 3, 0), made[96]
# Two sampling periods later the exchange is.
assert (made[150]["distance"], made[150]["length"]) == (0, 2), made[150]

# Where the period that runs is the most recent one, its own messages tell; strictly they are a pattern of
# four, since with three literals at least two are none. And the lines say which reading they are of.
other = [json.loads(line) for line in open(f"{folder}/other/papers.jsonl")]
(exchange,) = [line for line in other if line["program"] == "recorded" and line["time"] == 96
               and line["predictor"] == "basic (kmp)"]
assert (exchange["distance"], exchange["length"]) == (0, 4), exchange
assert all((line["match"], line["recent"]) == ("prefix", "current") for line in other)
assert all(line.get("kmp") == ("strict" if "kmp" in line["predictor"] else None) for line in other)
assert not any({"kmp", "match", "recent"} & set(line) for line in lines)

for axis, most in (("distance", None), ("likeness", 1)):
    root = xml.parse(f"{folder}/{axis}/singh-graham-figure5-recorded.svg").getroot()
    words = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any(axis in word for word in words), words
    # The marks of the axis, upwards: quarters from nought to the most there is, or a little more.
    ticks = [float(one) for one in words if re.fullmatch(r"[\d.]+", one)][:5]
    of_figure = [line["distance"] or 0 for line in lines
                 if line["figure"] == 5 and line["program"] == "recorded"]
    assert ticks[4] == (most or 4 * -(-max(of_figure) // 4)), (ticks, max(of_figure))
    # A request without a prediction has no point where there is no distance.
    none = sum(line["distance"] is None for line in lines
               if line["figure"] == 5 and line["program"] == "recorded")
    dots = len(list(root.iter("{http://www.w3.org/2000/svg}circle")))
    assert none > 0 and dots == len(of_figure) - (none if axis == "distance" else 0), (none, dots)
    assert "nan" not in open(f"{folder}/{axis}/singh-graham-figure5-recorded.svg").read()

said = open(f"{folder}/distance.said").read()
mean = re.search(r"Figure 3: .*?basic \(kmp\) +distance: mean ([\d.]+), most (\d+); likeness: mean "
                 r"([\d.]+), least [\d.]+; (\d+) of (\d+)", said, re.S).groups()
of_three = [line for line in lines if line["figure"] == 3 and line["program"] == "generated"
            and line["predictor"] == "basic (kmp)"]
answered = [line["distance"] for line in of_three if line["distance"] is not None]
assert abs(float(mean[0]) - sum(answered) / len(answered)) < 0.01, mean
assert int(mean[1]) == max(answered), mean
assert abs(float(mean[2]) - sum(line["likeness"] for line in of_three) / len(of_three)) < 1e-3, mean
assert (int(mean[3]), int(mean[4])) == (len(of_three) - len(answered), len(of_three)), mean
EOP
