#!/usr/bin/env python3
"""`./dev bench plan`: loads on a server beside the same loads on its simulation (docs/capacity-planning.md).

The server's steps are measured once, then each load runs on both, in rounds with prompts of their own. Flags of the server may follow
`--`; it makes no guesses (--speculation off), which a simulation doesn't either.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import machine
import programs
from samples import Samples, ratios, spread, table

ROOT = Path(__file__).resolve().parents[2]
LOADS = {
    **{f"128 in, 64 out, {n} at a time": ("--random-input-len", "128", "--random-output-len", "64", "--num-prompts", str(max(12, 2 * n)),
                                         "--max-concurrency", str(n)) for n in (1, 4, 16, 32)},
    "128 to 384 in, 32 to 96 out, half of the rate at 16": ("--random-input-len", "256", "--random-output-len", "64",
                                                           "--random-range-ratio", "0.5", "--num-prompts", "32", "--request-rate", "RATE"),
    "256 of 320 in shared, 32 out, 8 at a time": ("--dataset-name", "prefix", "--prefix-repetition-num-prefixes", "4",
                                                 "--prefix-repetition-prefix-len", "256", "--prefix-repetition-suffix-len", "64",
                                                 "--prefix-repetition-output-len", "32", "--num-prompts", "40", "--max-concurrency", "8"),
}
FIGURES = {"output tokens/s": "output_throughput", "median TTFT, ms": "median_ttft_ms", "median TPOT, ms": "median_tpot_ms",
           "mean latency, ms": "mean_e2el_ms"}


def note(words):
    print(words, file=sys.stderr, flush=True)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench plan", description=__doc__.split("\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, metavar="FILE", help="a GGUF file")
    parser.add_argument("--rounds", type=int, default=3, help="the median counts (default: %(default)s)")
    parser.add_argument("server", nargs="*", metavar="FLAG", help="of the server, after --")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds: needed 1 or more, found {options.rounds}")
    return options


def server_flags(options):
    return ["--model", str(options.model), *options.server]


@contextmanager
def served(options):
    """The address of a server, which ends with the `with`."""
    command = [ROOT / "bin/tandem_coordinator", *server_flags(options), "--speculation", "off", "--listen", "127.0.0.1:0"]
    with tempfile.TemporaryFile(mode="w+") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as server:
        try:
            first = server.stdout.readline()
            address = re.search(r"listening on ([^,\s]+)", first)
            if address is None:
                errors.seek(0)
                raise programs.Failed(f"the server did not start: {(errors.read().strip() or 'no message').splitlines()[-1]}")
            programs.output([ROOT / "bin/tandem", "wait", "--server", address.group(1), "--timeout", "120s"], "tandem wait")
            yield address.group(1)
        finally:
            server.terminate()


def result_of(flags):
    """The figures of one run of tandem_load."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        programs.output([ROOT / "bin/tandem_load", "--ignore-eos", "--no-progress", "--save-result", file.name, *flags], "tandem_load")
        return json.loads(Path(file.name).read_text(encoding="utf-8"))


def load_flags(load, rate, seed):
    return [*(f"{rate:.3f}" if flag == "RATE" else flag for flag in LOADS[load]), "--seed", str(seed)]


def measure(options, profile):
    """{load: {figure: (Samples of the server, Samples of the simulation)}}."""
    results = {load: {figure: (Samples(), Samples()) for figure in FIGURES} for load in LOADS}
    rate = result_of(["--simulate", profile, *load_flags("128 in, 64 out, 16 at a time", 0, 0)])["request_throughput"] / 2
    with served(options) as address:
        for turn in range(1, options.rounds + 1):
            for number, (load, figures) in enumerate(results.items()):
                note(f"round {turn}: {load}")
                # Of its own: the server's prefix cache knows the prompts of a seed that was used.
                flags = load_flags(load, rate, 100 * turn + number)
                both = result_of(["--server", address, *flags]), result_of(["--simulate", profile, *flags])
                for figure, samples in figures.items():
                    for one, result in zip(samples, both):
                        one.rounds.append(result[FIGURES[figure]])
    return results


def run(options):
    here = machine.read(ROOT)
    print(f"{here.processor}, {here.date:%Y-%m-%d}, commit {here.commit}", flush=True)
    with tempfile.NamedTemporaryFile(suffix=".profile") as file:
        note("measuring the server's steps")
        file.write(programs.output([ROOT / "bin/tandem", "profile", *server_flags(options)], "tandem profile").encode())
        file.flush()
        results = measure(options, file.name)
    rows = [[load, *(f"{spread(server)}; {spread(ratios(simulated, server))}" for server, simulated in figures.values())]
            for load, figures in results.items()]
    print(f"\nThe server; the simulation divided by it. Medians and ranges, rounds: {options.rounds}\n")
    print("\n".join(table(["load", *FIGURES], rows)), flush=True)


def main():
    options = parse_arguments(sys.argv[1:])
    try:
        run(options)
    except (programs.Failed, OSError, ValueError) as error:
        sys.exit(f"./dev bench plan: {error}")


if __name__ == "__main__":
    main()
