#!/usr/bin/env python3
"""Usage: ci/python/notebooks.py COMMAND...

Changes results for ci/notebooks, and looks at notebooks:
  cleared NOTEBOOK...                     they have no outputs; exit code 1 where one has
  lose-ud FOLDER                          a sweep of adapters in which nothing arrived over UD
  reorder FOLDER                          the rows of each out.csv, in another order
  falsify FOLDER FILES COLUMN DIFFERENCE  adds the difference to the last row of the first of these files
  publish FOLDER                          takes out what names this machine and its folders
"""

import json
import random
import sys
from pathlib import Path

import results


def cleared(*paths):
    """Committed with outputs, a notebook would change with every look at it."""
    for path in paths:
        if any(cell.get("outputs") or cell.get("execution_count") for cell in results.document(path)["cells"]):
            sys.exit(f"{path} has outputs: clear them before it is committed")


def lose_ud(folder):
    """The summary, the rounds and the messages as they would be."""
    for name in ("summary.csv", "runs.csv"):
        rows = results.rows(Path(folder) / name)
        lost = [row for row in rows if row["service"] == "ud"]
        assert lost, f"no point of UD in {name}"
        for row in lost:
            row.update({column: "" for column in row if column.startswith("latency_")})
            if name == "summary.csv":
                row.update(messages_received=0, messages_lost=row["messages_sent"])
        results.write(Path(folder) / name, rows)
    for path in Path(folder).glob("ud-*/messages.csv"):
        results.write(path, [{**row, "t_recv_ns": "", "latency_ns": ""} for row in results.rows(path)])


def reorder(folder):
    """The rows say the same."""
    for path in Path(folder).glob("*/out.csv"):
        rows = results.rows(path)
        random.Random(1).shuffle(rows)
        results.write(path, rows)


def falsify(folder, pattern, column, difference):
    """What was a whole number stays one."""
    path = sorted(Path(folder).glob(pattern))[0]
    rows = results.rows(path)
    cell = rows[-1][column]
    rows[-1][column] = int(cell) + int(difference) if cell.isdigit() else float(cell) + float(difference)
    results.write(path, rows)


def publish(folder):
    """What was taken out is named in each settings.json and fabric.json."""
    for path in [*Path(folder).glob("**/settings.json"), *Path(folder).glob("**/fabric.json")]:
        document, taken = results.document(path), ["paths in command_line"]
        # A fabric names its nodes all over its files: only those of SoftRoCE machines say nothing of this one.
        strange = [rank["node"] for rank in document.get("there", []) if not rank["node"].startswith("softroce")]
        if strange:
            sys.exit(f"{path}: measured on {', '.join(strange)}: only a fabric of SoftRoCE machines can be published")
        for name in ("hostname", "kernel_command_line") if path.name == "settings.json" else ():
            if name not in document.get("machine", {}):
                sys.exit(f"{path}: there is no machine.{name} any more: look what is to be taken out now")
            document["machine"][name] = None
            taken.append(f"machine.{name}")
        # The command line names the program and the folder of the results by their paths.
        document["command_line"] = [Path(word).name if "/" in word else word for word in document["command_line"]]
        document["taken_out_for_publication"] = taken
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    commands = {"cleared": cleared, "lose-ud": lose_ud, "reorder": reorder, "falsify": falsify, "publish": publish}
    commands[sys.argv[1]](*sys.argv[2:])
