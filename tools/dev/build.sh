# Programs and benchmarks. Sourced by ./dev.

# Everything for the CPU; the demo builds no more.
readonly CPU_PROGRAMS=(
  //client:tandem
  //coordinator:tandem_coordinator
  //gateway:tandem_chat
  //gateway:tandem_gateway
  //worker:tandem_worker
)

# The architectures of tandem_worker_cuda, as --define=cuda_archs takes them: those of the GPUs that
# are here, else all.
gpu_archs() {
  local found
  found=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null) || found=
  [[ -n $found ]] || { echo all; return; }
  sed 's/^8\..*/80/; s/^9\.0$/90a/; s/^10\.[03]$/100/; s/^12\..*/120/; s/.*\..*/ptx/' <<<"$found" |
    sort -u | paste -sd ,
}

# build_into_bin [BAZEL FLAGS] TARGETS: with version and commit in them, and leaves the programs in bin/.
build_into_bin() {
  local target
  bazel build --stamp "$@"
  mkdir -p bin
  for target; do
    [[ $target == -* ]] && continue
    target=${target#//}
    # install replaces the file, so a running program is not affected.
    install -m 755 "bazel-bin/${target/://}" "bin/${target#*:}"
  done
}

# build_programs [BAZEL FLAGS]: all programs with the load harness, including the GPU worker if the
# CUDA toolkit is installed.
build_programs() {
  local targets=("${CPU_PROGRAMS[@]}" //tests/load:tandem_load) archs=()
  if bazel query --ui_event_filters=-info,-error //worker:tandem_worker_cuda > /dev/null 2>&1; then
    targets+=(//worker:tandem_worker_cuda)
    archs=("--define=cuda_archs=$(gpu_archs)")
  fi
  # A flag that is given comes last, and wins.
  build_into_bin "${archs[@]}" "$@" "${targets[@]}"
}

# `./dev bench cpu`; --help needs no build.
run_cpu_benchmark() {
  local argument help=false
  for argument; do
    if [[ $argument == --help || $argument == -h ]]; then help=true; fi
  done
  if [[ $help == false ]]; then
    build_into_bin "${CPU_PROGRAMS[@]}"
    bazel build //tests/kernels:matmul_bench //tests/kernels/peaks:peaks_bench
  fi
  exec python3 -B tools/bench/cpu.py "$@"
}

# `./dev bench plan`: loads on a server and on its simulation.
run_plan_benchmark() {
  build_into_bin "${CPU_PROGRAMS[@]}" //tests/load:tandem_load
  exec python3 -B tools/bench/plan.py "$@"
}

# Without arguments every benchmark in the tree; with `cpu` or `plan` that one, else `tandem bench`
# with them.
run_benchmarks() {
  local targets target
  if [[ ${1:-} == cpu ]]; then
    run_cpu_benchmark "${@:2}"
  elif [[ ${1:-} == plan ]]; then
    run_plan_benchmark "${@:2}"
  elif (($#)); then
    build_programs
    exec bin/tandem bench "$@"
  fi
  mapfile -t targets < <(bazel query --ui_event_filters=-info 'attr(tags, "\bbench\b", //...)')
  bazel build "${targets[@]}"
  for target in "${targets[@]}"; do
    echo "== $target"
    target=${target#//}
    "bazel-bin/${target/://}"
  done
}
