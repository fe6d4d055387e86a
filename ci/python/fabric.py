#!/usr/bin/env python3
"""Usage: ci/python/fabric.py COMMAND FOLDER...

Judges results of `hcabench fabric` and of two hosts for ci/fabric; exit code 1 if they are not as described:
  named FOLDER [RANK DIRECTION]  this node is the first and slow in that direction, and no other is named
  delayed FOLDER RANK            this node is the first and slow, and not in what it receives; at most half are slow
  broken FOLDER [NODE]           this node, and no other node, breaks a rule; or none does
  there FOLDER [RANK]            all pairs of four ranks are whole; or all but those of a rank, which are left out
  kept BEFORE AFTER              of two runs.csv: what was whole before was not measured again
  hosts FOLDER                   two kernels, by the boot ids of fabric.json or settings.json
  rate FOLDER PPM                the bounds of the second clock's rate contain this rate, and not 0
  empty FOLDER COLUMN...         these columns have no figure
"""

import sys
from pathlib import Path

import results


def judged(folder):
    """The nodes, and the one whose score is the highest."""
    nodes = results.rows(folder / "nodes.csv")
    return nodes, max(nodes, key=lambda node: float(node["score"] or 0))


def named(folder, *expected):
    """Whether the delayed node, and no other, is named."""
    nodes, first = judged(folder)
    slow = [[node["rank"], node["direction"]] for node in nodes if node["verdict"] == "slow"]
    print(f"{folder.name}: expected {list(expected) or 'none'}, slow {slow}, first {first['rank']}", flush=True)
    return slow == ([list(expected)] if expected else []) and (not expected or first["rank"] == expected[0])


def delayed(folder, rank):
    """Whether the delayed node is the first; a loaded machine may have delayed others, at most half in all."""
    nodes, first = judged(folder)
    slow = sum(node["verdict"] == "slow" for node in nodes)
    print(f"{folder.name}: expected {rank}, first {first['rank']}, {first['verdict']} in {first['direction']}, {slow} slow", flush=True)
    return first["rank"] == rank and first["verdict"] == "slow" and first["direction"] != "ingress" and 2 * slow <= len(nodes)


def broken(folder, *node):
    """Whether rules are broken by this node alone, or by none."""
    of_nodes = [row for row in results.rows(folder / "rules.csv") if row["scope"] == "node"]
    rows = [row for row in of_nodes if row["broken"] == "yes"]
    print(f"{folder.name}:", *(f"{row['name']} {row['metric']} +{row['above_percent']} %," for row in rows), flush=True)
    return bool(of_nodes) and {row["name"] for row in rows} == set(node)


def there(folder, *dead):
    """Whether all pairs but those of the dead are whole, and only those of the dead are left out."""
    ranks = [rank for rank in "0123" if rank not in dead]
    wanted = {(one, other, "0") for one in ranks for other in ranks if one != other}
    runs = results.rows(folder / "runs.csv")
    found = {(row["from_rank"], row["to_rank"], row["round"]) for row in runs if row["status"] == "complete"}
    left_out = [{row["from_rank"], row["to_rank"]} for row in results.rows(folder / "left_out.csv")]
    missing = sorted(wanted - found)
    print(f"{folder.name}: {len(found)} complete rows, {len(left_out)} left out, missing {missing}", flush=True)
    return not missing and all(set(dead) & pair for pair in left_out) and bool(left_out) == bool(dead)


def kept(before, after):
    """Whether at most two rows were measured again, and all twelve are there."""
    before, after = ([tuple(row.values()) for row in results.rows(path)] for path in (before, after))
    same = len(set(before) & set(after))
    print(f"{len(before)} rows before, {same} of them after, in {len(after)}")
    return len(before) - 2 <= same and len(after) == 12


def hosts(folder):
    """Whether two kernels have measured."""
    if (folder / "fabric.json").exists():
        found = results.document(folder / "fabric.json")["there"]
    else:
        found = results.document(folder / "settings.json")["obtained"]["hosts"].values()
    print(f"{folder.name}: two boot ids:", *results.boot_ids(list(found)))
    return True


def rate(folder, ppm):
    """Whether the rate that was set lies within the bounds, and the rate of equal clocks does not."""
    row = results.first(folder / "runs.csv")
    low, high = (float(row[f"clock_rate_{end}_ppm"]) for end in ("low", "high"))
    print(f"{folder.name}: the second clock runs {low} to {high} ppm faster, and was set to {ppm}")
    return low <= float(ppm) <= high and not low <= 0 <= high


def empty(folder, *columns):
    """Whether a round has no figure."""
    row = results.first(folder / "runs.csv")
    found = {column: row[column] for column in columns if row[column]}
    print(f"{folder.name}: {found or 'no figure, as it must be'}")
    return not found


if __name__ == "__main__":
    check = {"named": named, "delayed": delayed, "broken": broken, "there": there, "kept": kept, "hosts": hosts, "rate": rate, "empty": empty}[sys.argv[1]]
    sys.exit(not check(Path(sys.argv[2]), *sys.argv[3:]))
