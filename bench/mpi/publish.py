# SPDX-License-Identifier: BSD-3-Clause
"""Write the results of a run of bench/run mpi into docs/results.md.

What stands between the marks in that file is replaced, and the picture is put
beside it. Only a complete run should be published: all cases, three rounds, a
quiet machine.
"""
import argparse
import json
import pathlib
import shutil
import sys

from bench.mpi import report
from bench.mpi.report import TOP, show_number
from bench.mpi.settings import ONE_HOST, Setting

DOCUMENT = TOP / "docs/results.md"
BEGIN = "<!-- results: written by bench/run publish -->\n"
END = "<!-- end of results -->\n"


def read(path):
    """(context, records) of a results file."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    if not lines or "context" not in lines[0]:
        raise ValueError(f"{path} has no context in its first line")
    return lines[0]["context"], lines[1:]


def table(header, rows):
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def describe(about):
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    hosts = "two hosts (network namespaces)" if about["hosts"] == "2" else "one host, loopback"
    minutes = about["seconds"] / 60
    settings = ", ".join(about["settings"])
    rounds = f"{about['rounds']} round{'s' * (about['rounds'] > 1)}"
    return (f"{about['date'][:10]}: {about['cpu']}, Linux {about['kernel']}, transparent huge pages"
            f" {about['thp']}; {hosts}; {versions}. Settings: {settings}."
            f" {rounds} in {minutes:.0f} minutes;"
            f" load {about['load'][0]} before and {about['load_after'][0]} after.\n")


def verdict(about):
    rows = [[row["target"], row["setting"], row["verdict"], row["figure"]]
            for row in about["verdict"]]
    return ("## Verdict\n\n" + table(["target", "setting", "verdict", "figure"], rows)
            .replace("---:", "---"))


def losing(about):
    if not about["worse"]:
        return "## Losing regions\n\nNone beyond noise.\n"
    return "## Losing regions\n\nWorse than the best peer beyond noise, the worst first:\n\n" + \
        "".join(f"- {each}\n" for each in about["worse"])


def not_run(about):
    lines = [f"- {impl}: {why}\n" for impl, why in about["left_out"].items()]
    lines += [f"- {failure}\n" for failure in about["failed"]]
    lines += [f"- {impl}: {runs} runs hung in MPI_Finalize after their results were out\n"
              for impl, runs in about["hung_in_finalize"].items()]
    return "## What did not run\n\n" + "".join(lines) if lines else ""


def setting_of(record):
    return Setting(record["link"], record["cores"])


def figures(title, more_is_better, records):
    """A metric's table in one setting: rows are sizes, columns libraries; medians."""
    impls = list(dict.fromkeys(record["impl"] for record in records))
    impls.sort(key=lambda impl: (impl.endswith("-async"), impl != "zc"))
    points = sorted({(record["bytes"], record["metric"]) for record in records},
                    key=lambda point: report.place_of(*point))
    rows = []
    for point in points:
        at = {record["impl"]: record for record in records
              if (record["bytes"], record["metric"]) == point}
        row = [report.show_place(*point)]
        row += [show_number(at[impl]["median"]) if impl in at else "-" for impl in impls]
        ours = at.get("zc")
        row.append(f"{show_number(ours['p10'])}..{show_number(ours['p90'])}" if ours else "-")
        rows.append(row)
    better = " (more is better)" if more_is_better else ""
    return f"## {title}{better}\n\n" + table(["", *impls, "zc p10..p90"], rows)


def render(about, records):
    parts = [describe(about), "![the same figures as curves](results.svg)\n", verdict(about),
             losing(about), not_run(about)]
    for (case, metric), (_, title, more_is_better) in report.METRICS.items():
        of_metric = [record for record in records if record["case"] == case
                     and report.base_of(record["metric"]) == metric]
        for setting in dict.fromkeys(map(setting_of, of_metric)):
            where = "" if setting == ONE_HOST else f"; {setting.describe()}"
            parts.append(figures(title + where, more_is_better,
                                 [each for each in of_metric if setting_of(each) == setting]))
    return "\n".join(part for part in parts if part)


def replace(text, results):
    """TEXT with RESULTS between the marks."""
    before, mark, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise ValueError("the marks around the results are missing")
    return f"{before}{BEGIN}\n{results}\n{END}{after}"


def main():
    parser = argparse.ArgumentParser(prog="bench/run publish", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="exit status: 0 written; 2 not a complete run, or usage")
    parser.add_argument("results", nargs="?", default=str(TOP / "out/mpi.jsonl"),
                        help="default out/mpi.jsonl; the picture is the .svg beside it")
    parser.add_argument("--document", metavar="FILE", default=str(DOCUMENT),
                        help="default docs/results.md")
    options = parser.parse_args()
    try:
        about, records = read(options.results)
        document = pathlib.Path(options.document)
        text = replace(document.read_text(encoding="utf-8"), render(about, records))
        picture = pathlib.Path(options.results).with_suffix(".svg")
        shutil.copyfile(picture, document.with_suffix(".svg"))
        document.write_text(text, encoding="utf-8")
    except (OSError, ValueError, KeyError) as error:
        print(f"publish: {error}", file=sys.stderr)
        return 2
    print(f"{report.show_path(document)}: results of {about['date']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
