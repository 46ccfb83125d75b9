"""Rounds over the cases of a model, alternating between the programs that are compared."""

from programs import Failed
from samples import Samples


def case_name(case):
    return f"prefill {case[1]}" if case[0] == "prefill" else f"B={case[1]}"


def measure(programs, cases, num_rounds, report):
    """{name: {case: Samples}} of `programs`, {name: function of a case}.

    The programs take turns at each case, and every other round begins with the last one, so that a machine whose speed drifts
    favours none. A case that fails is left out from then on; `report` is told of it, and of the progress.
    """
    results = {name: {case: Samples() for case in cases} for name in programs}
    failed = set()
    for index in range(num_rounds):
        turns = list(programs) if index % 2 == 0 else list(reversed(programs))
        for case in cases:
            for name in turns:
                rate = None
                if (name, case) not in failed:
                    try:
                        rate = programs[name](case)
                    except Failed as error:
                        failed.add((name, case))
                        report(f"{name}, {case_name(case)}: {error}")
                results[name][case].rounds.append(rate)
        report(f"round {index + 1} of {num_rounds}: " + "; ".join(
            f"{name} " + ", ".join("-" if results[name][case].rounds[-1] is None else f"{results[name][case].rounds[-1]:.1f}"
                                   for case in cases) for name in programs))
    return results
