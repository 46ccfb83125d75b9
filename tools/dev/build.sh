# Programs and benchmarks. Sourced by ./dev.

readonly PROGRAMS=(
  //client:tandem
  //coordinator:tandem_coordinator
  //worker:tandem_worker
)

# Builds the programs and leaves them in bin/; the worker for GPUs where the CUDA toolkit is.
build_programs() {
  local target targets=("${PROGRAMS[@]}")
  if bazel query --ui_event_filters=-info,-error //worker:tandem_worker_cuda > /dev/null 2>&1; then
    targets+=(//worker:tandem_worker_cuda)
  fi
  bazel build --stamp "${targets[@]}"
  mkdir -p bin
  for target in "${targets[@]}"; do
    target=${target#//}
    # install replaces the file, so a program that runs at the moment does not mind.
    install -m 755 "bazel-bin/${target/://}" "bin/${target#*:}"
  done
}

# Without arguments every benchmark in the tree, else `tandem bench` with them.
run_benchmarks() {
  local targets target
  if (($#)); then
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
