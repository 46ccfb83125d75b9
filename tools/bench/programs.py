"""Runs what is measured: `tandem bench`, another program, Google Benchmark programs."""

import json
import os
import signal
import subprocess
import tempfile

SECONDS = 900  # of one run of any program; more is an error


class Failed(Exception):
    """A program did not give its result; one line says why."""


def output(command, what, **options):
    """What a program writes, by its end."""
    # A session of its own, so that what a shell started ends with it.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                          **options) as program:
        try:
            written, errors = program.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{what}: no result within {SECONDS} s") from error
        finally:
            if program.returncode is None:
                os.killpg(program.pid, signal.SIGKILL)
    if program.returncode != 0:
        words = (errors.strip() or written.strip() or "no message").splitlines()[-1]
        raise Failed(f"{what}: exit code {program.returncode}: {words}")
    return written


def google_benchmark(program, *flags):
    """The JSON report."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        output([program, f"--benchmark_out={report.name}", "--benchmark_out_format=json", *flags], os.path.basename(program))
        return json.load(report)


def benchmark_names(program, *flags):
    return output([program, "--benchmark_list_tests", *flags], os.path.basename(program)).split()


def tandem_info(tandem, model):
    return json.loads(output([tandem, "info", str(model), "--json"], "tandem info"))


def tandem_rate(tandem, model, threads, kernels, case):
    """Tokens per second."""
    kind, count = case
    sizes = ["--prefill", str(count), "--decode", "0"] if kind == "prefill" else ["--prefill", "0", "--batch", str(count)]
    report = json.loads(output([tandem, "bench", "--model", str(model), "--device", "cpu", "--cpu-kernels", kernels,
                                "--threads-per-worker", str(threads), "--repetitions", "1", "--json", *sizes], "tandem bench"))
    return report["prefill_tokens_per_second"] if kind == "prefill" else report["decode_tokens_per_second"][str(count)]


def parse_rate(text):
    """The number that is the last line."""
    lines = text.strip().splitlines()
    try:
        rate = float(lines[-1])
    except (IndexError, ValueError):
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise Failed(f"needed tokens per second as its last line, found '{lines[-1] if lines else ''}'")
    return rate


def command_rate(command, model, threads, case):
    """Tokens per second that a shell command prints as its last line; it has MODEL, THREADS and CASE in its environment."""
    environment = dict(os.environ, MODEL=str(model), THREADS=str(threads), CASE=f"{case[0]} {case[1]}")
    return parse_rate(output(command, "the other program", shell=True, env=environment))
