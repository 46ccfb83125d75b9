#!/usr/bin/env python3
"""`./dev bench cpu`: the CPU kernels and a whole model beside the limits of the machine, all measured in one run.

Peaks first (reading memory, the exact integer mixes of each instruction set), then every product of matmul_bench as a part of
them. With --model: prefill and decode by `tandem bench`, each as a part of what the peaks allow that model, with memory as fast as
it was read beside the same case; with --compare also another program's, taking turns, and the ratios.

COMMAND is run by the shell with MODEL, THREADS and CASE in its environment, where CASE is "prefill 512" or "decode 8". It prints
one number, tokens per second, as its last line.
"""

import argparse
import os
import sys
from pathlib import Path

import limits
import machine
import model_work
import op_table
import peaks
import programs
import rounds
import roofline_svg
from samples import Samples, part, ratios, spread, table

ROOT = Path(__file__).resolve().parents[2]
TANDEM = ROOT / "bin/tandem"
PEAKS = ROOT / "bazel-bin/tests/kernels/peaks/peaks_bench"
PRODUCTS = ROOT / "bazel-bin/tests/kernels/matmul_bench"
PEAK_FLAGS = ("--benchmark_min_time=0.1", "--benchmark_repetitions=5")
# Loops of which one reads about as fast as the best of all does.
READING_FLAGS = ("--benchmark_filter=^ReadMemory/huge_pages/", "--benchmark_min_time=0.05")
PRODUCT_FLAGS = ("--benchmark_min_time=0.2", "--benchmark_repetitions=3")
OURS = "Tandem"
READING = "memory, GB/s"


def note(words):
    print(words, file=sys.stderr, flush=True)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench cpu", description=__doc__.split("\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, metavar="FILE", help="a GGUF file, to measure as a whole")
    parser.add_argument("--compare", metavar="COMMAND", help="another program that measures the same model")
    parser.add_argument("--compare-name", metavar="NAME", default="other", help="what tables call it (default: %(default)s)")
    parser.add_argument("--rounds", type=positive, default=5, help="the median counts (default: %(default)s)")
    parser.add_argument("--threads", type=positive, default=len(os.sched_getaffinity(0)), help="default: all cores (%(default)s)")
    parser.add_argument("--kernels", choices=("auto", "avx2", "avx2-vnni", "avx512"), default="auto", help="default: the best that the machine has")
    parser.add_argument("--prefill", type=positive, default=512, metavar="TOKENS", help="of a prompt (default: %(default)s)")
    parser.add_argument("--batches", type=positives, default=[1, 4, 8, 16, 32], metavar="N,...",
                        help="sequences that decode together (default: 1,4,8,16,32)")
    parser.add_argument("--no-ops", action="store_true", help="leave out the table of products")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw tokens per second against batch, with the limit")
    options = parser.parse_args(arguments)
    for flag in ("compare", "svg"):
        if getattr(options, flag) is not None and options.model is None:
            parser.error(f"--{flag} needs --model")
    if options.svg is not None and not options.svg.resolve().parent.is_dir():
        parser.error(f"--svg: no folder {options.svg.resolve().parent}")
    if options.compare_name in (OURS, READING):
        parser.error(f"--compare-name: '{options.compare_name}' is taken")
    return options


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"needed 1 or more, found {value}")
    return value


def positives(text):
    return sorted({positive(one) for one in text.split(",")})


def show(title, header, rows):
    print(f"\n{title}\n")
    print("\n".join(table(header, rows)), flush=True)


def show_model(options, results, reading, roof):
    """Medians with their ranges, ratios, and parts of the limit."""
    cases = model_cases(options)
    rows = [[name, *(spread(results[name][case]) for case in cases)] for name in results]
    if options.compare:
        rows.append(["ratio", *(spread(ratios(results[OURS][case], results[options.compare_name][case])) for case in cases)])
    bounds = {case: bound_by_round(roof, case, reading[case]) for case in cases}
    rows.append([READING, *(spread(reading[case]) for case in cases)])
    rows.append(["limit", *(spread(bounds[case]) for case in cases)])
    rows += [[f"{name}, of the limit", *(part(ratios(results[name][case], bounds[case]).median(), 1) for case in cases)] for name in results]
    show(f"Tokens per second of {options.model.name} ({roof.describe()}), rounds: {options.rounds}, median and range",
         ["", *map(rounds.case_name, cases)], rows)


def bound_by_round(roof, case, reading):
    """What the machine allowed in each round; where memory was not read beside a case, what it allowed at its best."""
    return Samples([(roof if gigabytes is None else roof.with_bandwidth(1e9 * gigabytes)).of_case(case) for gigabytes in reading.rounds])


def model_cases(options):
    return [("prefill", options.prefill), *(("decode", batch) for batch in options.batches)]


def measure_model(options):
    """{program: {case: Samples}}, and memory's speed beside them, {case: Samples}."""
    turns = {OURS: lambda case: programs.tandem_rate(TANDEM, options.model, options.threads, options.kernels, case),
             READING: lambda case: reading_rate(options)}
    if options.compare:
        turns[options.compare_name] = lambda case: programs.command_rate(options.compare, options.model, options.threads, case)
    results = rounds.measure(turns, model_cases(options), options.rounds, note)
    reading = results.pop(READING)
    return results, reading


def reading_rate(options):
    """Gigabytes per second: memory's speed may change from minute to minute, as other machines on the same host use it."""
    try:
        return peaks.parse(programs.google_benchmark(PEAKS, f"--threads={options.threads}", *READING_FLAGS)).bandwidth / 1e9
    except ValueError as error:
        raise programs.Failed(str(error)) from error


def measure_peaks(options):
    note("measuring the machine's peaks")
    return peaks.parse(programs.google_benchmark(PEAKS, f"--threads={options.threads}", *PEAK_FLAGS))


def draw(options, results, roof, here):
    series = {name: {case[1]: samples for case, samples in one.items() if case[0] == "decode"} for name, one in results.items()}
    title = f"{options.model.name}, {options.threads} threads, kernels {roof.kernels}"
    place = f"{here.processor}, {here.date:%Y-%m-%d}, commit {here.commit}"
    options.svg.write_text(roofline_svg.draw((title, place), series, roof.decode))
    note(f"wrote {options.svg}")


def run(options):
    matrices = model_work.read(options.model, programs.tandem_info(TANDEM, options.model)) if options.model else []
    threads = f"--threads={options.threads}"
    kernels = op_table.choose_kernels(op_table.kernel_sets(programs.benchmark_names(PRODUCTS, threads)), options.kernels)
    here, before = machine.read(ROOT), machine.processor_time()
    print("\n".join(here.lines(options.threads)), flush=True)

    first = measure_peaks(options)
    if not options.no_ops:
        note(f"measuring products with {kernels}")
        products = programs.google_benchmark(PRODUCTS, threads, f"--benchmark_filter={op_table.case_filter(kernels)}", *PRODUCT_FLAGS)
    results, reading = measure_model(options) if options.model else ({}, {})
    last = measure_peaks(options)
    best = first.best(last).with_readings(1e9 * gigabytes for samples in reading.values() for gigabytes in samples.numbers())

    print(f"load average after: {machine.load_average()}; {machine.processor_time().disturbance(before)}")
    show(f"Peaks of the machine, {options.threads} threads, best of 5 before and after what follows", ("what", "before", "after"),
         peaks.rows(first, last))
    if not options.no_ops:
        show(f"Products of a model of Qwen2-0.5B's shape, kernels {kernels}, median and range of 3", op_table.HEADER,
             op_table.rows(products, best, kernels))
    if options.model:
        roof = limits.Limits(best, kernels, matrices)
        show_model(options, results, reading, roof)
        if options.svg:
            draw(options, results, roof, here)
    missing = [rounds.case_name(case) for case, samples in results.get(OURS, {}).items() if not samples.numbers()]
    if missing:
        raise programs.Failed(f"{OURS} has no result for {', '.join(missing)}")


def main():
    options = parse_arguments(sys.argv[1:])
    try:
        run(options)
    except (programs.Failed, OSError, ValueError) as error:
        sys.exit(f"./dev bench cpu: {error}")


if __name__ == "__main__":
    main()
