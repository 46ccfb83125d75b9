"""Contract suites of the backend seam: one source, several backends."""

load("//bazel:tandem.bzl", "tandem_cc_library", "tandem_cc_test")

def backend_contract_test(name, deps = [], cuda = True, devices = {}, **kwargs):
    """NAME runs on the CPU's backends, NAME_emulated on the CUDA backend under emulation.

    On a GPU all suites are one program, contract_suites_gpu: kernels make it large.

    Args:
      name: the test.
      deps: what the suite needs besides the backends.
      cuda: False: on the CPU's backends alone.
      devices: more devices to emulate, by a suffix of the test's name: the environment
        (tools/cuda_emulation/device_model.h) and which tests run there.
      **kwargs: as tandem_cc_test.
    """
    tandem_cc_test(
        name = name,
        deps = deps + ["//tests/kernels:cpu_backends"],
        **kwargs
    )
    emulated = deps + ["//tests/kernels/cuda:emulated_backends"]
    kwargs["tags"] = kwargs.get("tags", []) + ["cuda_emulation"]
    if cuda and not devices:
        tandem_cc_test(name = name + "_emulated", deps = emulated, **kwargs)
    if devices:
        srcs = kwargs.pop("srcs")
        tandem_cc_library(
            name = name + "_suite",
            testonly = True,
            srcs = srcs,
            # Nothing names its tests.
            alwayslink = True,
            deps = emulated,
        )
        tandem_cc_test(name = name + "_emulated", deps = [":" + name + "_suite"], **kwargs)
        for suffix, (env, tests) in devices.items():
            tandem_cc_test(
                name = name + "_emulated_" + suffix,
                args = ["--gtest_filter=" + tests],
                env = env,
                deps = [":" + name + "_suite"],
                **kwargs
            )
