"""Contract suites of the backend seam: one source, several backends."""

load("//bazel:tandem.bzl", "tandem_cc_test")

def backend_contract_test(name, deps = [], cuda = True, **kwargs):
    """NAME runs on the CPU's backends, NAME_emulated on the CUDA backend under emulation.

    On a GPU all suites are one program, contract_suites_gpu: kernels make it large.

    Args:
      name: the test.
      deps: what the suite needs besides the backends.
      cuda: False: on the CPU's backends alone.
      **kwargs: as tandem_cc_test.
    """
    tandem_cc_test(
        name = name,
        deps = deps + ["//tests/kernels:cpu_backends"],
        **kwargs
    )
    if cuda:
        tandem_cc_test(
            name = name + "_emulated",
            deps = deps + ["//tests/kernels/cuda:emulated_backends"],
            **kwargs
        )
