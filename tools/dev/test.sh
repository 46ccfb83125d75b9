# The test suite under Bazel, with a count of test cases at the end. Sourced by ./dev.

# Those of run_tests, if none is given.
default_targets=(//tests/...)

# run_tests [BAZEL FLAGS AND TARGETS]
run_tests() {
  local argument events targets=() flags=() status=0
  for argument; do
    case $argument in
      -*) flags+=("$argument") ;;
      *) targets+=("$argument") ;;
    esac
  done
  ((${#targets[@]})) || targets=("${default_targets[@]}")
  # Tests of real vocabularies read them from beside the checkout, and skip where they are not.
  [[ -d ../shared/goldens ]] && export TANDEM_SHARED=${TANDEM_SHARED:-$(cd ../shared && pwd)}
  install_python_packages
  export TANDEM_VENV=$PWD/build/venv
  events=$(mktemp)
  # Builds and runs as much as possible, so that one failure does not hide another.
  bazel test --keep_going --build_event_json_file="$events" "${flags[@]}" -- "${targets[@]}" ||
    status=$?
  python3 tools/dev/count_tests.py "$events" "$status" || status=$?
  rm -f "$events"
  return "$status"
}

# run_simulation [--seeds N] [--steps N] [--seed S] [--without PART,...] [--shrink]; without arguments
# the long run.
run_simulation() {
  bazel build //tests/sim
  (($#)) || set -- --seeds 1000 --steps 1100
  time bazel-bin/tests/sim/sim "$@"
}

# run_sanitizer asan|tsan [--ci | BAZEL FLAGS AND TARGETS]
run_sanitizer() {
  local name=$1 config=$1
  shift
  [[ $name == asan ]] && config=asan_ubsan
  if [[ ${1:-} == --ci ]]; then
    # clang's, whose objects ./dev fuzz has a use for next.
    [[ $name == asan ]] && config=fuzz
    set -- "//tests:${name}_ci" "${@:2}"
  fi
  run_tests --config="$config" "$@"
}

# run_emulated_simd [BAZEL FLAGS AND TARGETS]; on a processor with all of AVX-512, and on one with
# only what every kernel for it needs.
run_emulated_simd() {
  local default_targets=(//tests/tools/simd_emulation:processor_test //tests/kernels:cpu_suites
    //tests/kernels/cpu/... //tests/kernels/host/...)
  local without status=0
  for without in '' avx512vnni,avx512vbmi,avx512bf16; do
    # Attention's bits, lane by lane, take seven minutes.
    TANDEM_EMULATE_WITHOUT=$without run_tests --config=simd_emulation --test_timeout=1800 "$@" ||
      status=$?
  done
  return "$status"
}
