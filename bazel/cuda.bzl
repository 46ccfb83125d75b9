"""cc_* rules for code that needs the CUDA toolkit: no target at all where it is not installed."""

load("//bazel:tandem.bzl", "tandem_cc_binary", "tandem_cc_library", "tandem_cc_test")
load("@cuda//:defs.bzl", "HAVE_CUDA")

def tandem_cuda_library(**kwargs):
    if HAVE_CUDA:
        tandem_cc_library(**kwargs)

def tandem_cuda_binary(**kwargs):
    if HAVE_CUDA:
        tandem_cc_binary(**kwargs)

def tandem_cuda_test(**kwargs):
    if HAVE_CUDA:
        tandem_cc_test(**kwargs)
