"""The machine, the tree and the moment that figures belong to."""

import datetime
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Those that kernels are chosen by or could be.
FLAGS = ("avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni", "avx512_bf16",
         "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "hypervisor")


def parse_cpuinfo(text):
    """(model name, those of FLAGS that the first processor has)."""
    fields = {}
    for line in text.split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    present = fields.get("flags", "").split()
    name = fields.get("model name", "unknown processor")
    family = ", ".join(f"{key} {fields[key]}" for key in ("cpu family", "model", "stepping") if key in fields)
    return f"{name} ({family})" if family else name, [flag for flag in FLAGS if flag in present]


@dataclass
class ProcessorTime:
    """Seconds of all processors since some time."""

    total: float
    busy: float
    stolen: float  # by the hypervisor
    ours: float  # of busy, by the programs that this one ran to their end

    def disturbance(self, before):
        """What disturbed the measurements between the two."""
        total = max(self.total - before.total, 1e-9)
        others = max(self.busy - before.busy - (self.ours - before.ours), 0.0)
        return (f"meanwhile other programs used {100 * others / total:.0f}% of the processors, "
                f"the hypervisor {100 * (self.stolen - before.stolen) / total:.0f}%")


def parse_stat(text, ours, ticks_per_second):
    """ProcessorTime of /proc/stat."""
    user, nice, system, idle, iowait, irq, softirq, steal = (int(field) / ticks_per_second for field in text.split()[1:9])
    busy = user + nice + system + irq + softirq
    return ProcessorTime(busy + idle + iowait + steal, busy, steal, ours)


def processor_time():
    times = os.times()
    ours = times.user + times.system + times.children_user + times.children_system
    return parse_stat(Path("/proc/stat").read_text(), ours, os.sysconf("SC_CLK_TCK"))


def load_average():
    return " ".join(f"{load:.2f}" for load in os.getloadavg())


def commit(root):
    """The short hash, with -dirty where the tree has changes."""
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=root, capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() or "unknown"


@dataclass
class Machine:
    processor: str
    flags: list
    cores: int  # that this process may use
    date: datetime.datetime
    commit: str

    def lines(self, threads):
        """To print above the tables."""
        return [f"processor: {self.processor}, {self.cores} cores, {threads} threads used", f"flags: {' '.join(self.flags)}",
                f"date: {self.date:%Y-%m-%d %H:%M} UTC, commit {self.commit}, load average before: {load_average()}"]


def read(root):
    """This machine, now, with the commit of the tree."""
    processor, flags = parse_cpuinfo(Path("/proc/cpuinfo").read_text())
    return Machine(processor, flags, len(os.sched_getaffinity(0)), datetime.datetime.now(datetime.timezone.utc), commit(root))
