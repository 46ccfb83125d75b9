# Fuzzing with libFuzzer, which only clang has, and atheris, which brings it to Python: tests/fuzz/README.md.
# Sourced by ./dev.

readonly FUZZ_CC_TARGETS=(gguf requests step tokenizer worker_protocol)
readonly FUZZ_TARGETS=("${FUZZ_CC_TARGETS[@]}" chat_templates http_requests tool_calls)
readonly ATHERIS=atheris==3.0.0

# run_fuzzers [--seconds N] [TARGET...]: each target for N seconds (60), as many at a time as there are cores.
# Corpora, logs and what was found stay in build/fuzz.
run_fuzzers() {
  local seconds=60 target targets=() running=0 found=()
  while (($#)); do
    case $1 in
      --seconds) seconds=${2:?a number of seconds}; shift ;;
      *)
        [[ " ${FUZZ_TARGETS[*]} " == *" $1 "* ]] ||
          { echo "./dev fuzz: no target '$1'; there are: ${FUZZ_TARGETS[*]}" >&2; return 2; }
        targets+=("$1") ;;
    esac
    shift
  done
  ((${#targets[@]})) || targets=("${FUZZ_TARGETS[@]}")
  build_fuzzers "${targets[@]}"
  for target in "${targets[@]}"; do
    ((running++ < $(nproc))) || wait -n || true
    fuzz_one "$target" "$seconds" &
  done
  wait
  for target in "${targets[@]}"; do
    echo "fuzz: $target: $(fuzz_summary "build/fuzz/$target.log")"
    compgen -G "build/fuzz/$target-*" >/dev/null && found+=("$target")
  done
  ((${#found[@]} == 0)) ||
    { echo "fuzz: the inputs found are build/fuzz/TARGET-*, of: ${found[*]}" >&2; return 1; }
}

is_cc_target() { [[ " ${FUZZ_CC_TARGETS[*]} " == *" $1 "* ]]; }

# build_fuzzers TARGET...: what these targets need.
build_fuzzers() {
  local target labels=() python=0
  for target; do
    if is_cc_target "$target"; then labels+=("//tests/fuzz:fuzzer_$target"); else python=1; fi
  done
  ((python)) && labels+=(//gateway:tandem_gateway)
  bazel build --config=fuzz "${labels[@]}"
  ((python)) || return 0
  install_python_packages
  build/venv/bin/pip install --quiet --disable-pip-version-check --retries 1 "$ATHERIS"
  export TANDEM_VENV=$PWD/build/venv
}

# fuzz_one TARGET SECONDS: from its seeds, tests/fuzz/corpus and what earlier runs kept.
fuzz_one() {
  local corpus=build/fuzz/corpus/$1 fuzzer=(/usr/bin/python3 tests/fuzz/gateway_fuzz.py "$1")
  is_cc_target "$1" && fuzzer=("bazel-bin/tests/fuzz/fuzzer_$1")
  mkdir -p "$corpus"
  rm -f build/fuzz/"$1"-*
  TANDEM_FUZZ_SEEDS=$corpus "${fuzzer[@]}"
  "${fuzzer[@]}" -max_total_time="$2" -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$1-" "$corpus" $(compgen -G "tests/fuzz/corpus/$1") >"build/fuzz/$1.log" 2>&1 || true
}

# fuzz_summary LOG: executions, coverage and whether something was found, as libFuzzer tells.
fuzz_summary() {
  awk '/ cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") edges = $(i + 1) }
       /stat::number_of_executed_units/ { runs = $2 }
       /^SUMMARY: / { found = $0 }
       END { printf "%d executions, %d edges, %s\n", runs, edges, found == "" ? "nothing found" : found }' "$1"
}
