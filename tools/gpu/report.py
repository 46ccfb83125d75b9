#!/usr/bin/env python3
"""Writes results.json in a folder of results of run-checks.sh: one object with the GPU, the driver, the date, and verdicts and figures by section.

usage: report.py FOLDER
"""

import csv
import json
import sys
from pathlib import Path


def read_run(folder):
    """The lines KEY=VALUE of `run`."""
    return dict(line.split("=", 1) for line in (folder / "run").read_text().splitlines())


def read_gpu(folder):
    """(name, driver) as nvidia-smi or else device_info says."""
    smi, info = folder / "nvidia-smi.log", folder / "device.log"
    if smi.exists():
        rows = list(csv.reader(smi.read_text().splitlines(), skipinitialspace=True))
        if len(rows) > 1 and len(rows[1]) > 1:
            return rows[1][0], rows[1][1]
    return (info.read_text().splitlines() or [""])[0] if info.exists() else "", ""


def read_figures(folder, section):
    file = folder / "figures" / f"{section}.json"
    return json.loads(file.read_text()) if file.exists() else None


def verdict_of(checks):
    """Of a section: the worst of its checks'."""
    verdicts = {check["verdict"] for check in checks} or {"NOT-RUN"}
    return next(verdict for verdict in ("FAIL", "NOT-RUN", "PASS") if verdict in verdicts)


def make_report(folder):
    run = read_run(folder)
    gpu, driver = read_gpu(folder)
    checks = [dict(zip(("section", "verdict", "name", "detail"), line.split("\t")))
              for line in (folder / "verdicts").read_text().splitlines()]
    report = {"gpu": gpu, "driver": driver, **{key: run[key] for key in ("date", "kind", "command", "limit", "seed", "seconds") if key in run},
              "finished": "seconds" in run}
    for verdict in ("PASS", "FAIL", "NOT-RUN"):
        report[verdict.lower()] = sum(check["verdict"] == verdict for check in checks)
    report["sections"] = []
    for name in run["sections"].split():
        own = [{key: check[key] for key in ("name", "verdict", "detail")} for check in checks if check["section"] == name]
        section = {"name": name, "verdict": verdict_of(own), "checks": own}
        if figures := read_figures(folder, name):
            section["figures"] = figures
        report["sections"].append(section)
    return report


def main():
    folder = Path(sys.argv[1])
    partial = folder / "results.json.partial"
    partial.write_text(json.dumps(make_report(folder), indent=1) + "\n")
    partial.rename(folder / "results.json")


if __name__ == "__main__":
    main()
