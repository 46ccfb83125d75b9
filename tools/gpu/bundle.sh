# A folder with everything needed to check this tree on a machine with an NVIDIA GPU: programs,
# tests, goldens, libraries. Sourced by ./dev.

readonly BUNDLE=build/gpu-bundle
# A whole set of architectures takes more than there is; with --define=cuda_archs=90a it takes less.
readonly BUNDLE_FLAGS=(--config=cuda --define=cuda_archs=80,90a,ptx)
readonly BUNDLE_MAX_BYTES=$((64 << 20))

# The programs run by run-checks.sh.
readonly BUNDLE_TARGETS=(
  //client:tandem
  //coordinator:tandem_coordinator
  //kernels/cuda:device_info
  //tests/cluster:cuda_golden_test_gpu
  //tests/kernels:contract_suites_gpu
  //tests/kernels/cuda:blocks_test_gpu
  //tests/kernels/cuda/table:op_table_gpu
  //tests/worker/comm:nccl_probe_gpu
  //tests/worker/comm:nccl_ranks_test_gpu
  //tests/worker/step_bench:step_bench_gpu
  //worker:tandem_worker
  //worker:tandem_worker_cuda
)

# Libraries of the target machine: the C library, and NVIDIA's.
readonly LIBRARIES_OF_THE_TARGET='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util)|libcuda.*|libcudart|libcublas.*|libnccl|libnv.*)\.so'

# build_gpu_bundle [BAZEL FLAGS]
build_gpu_bundle() {
  local binaries
  [[ -x ${CUDA_HOME:-/usr/local/cuda}/bin/nvcc ]] ||
    { echo "./dev: no CUDA toolkit at ${CUDA_HOME:-/usr/local/cuda}, so there is nothing to bundle" >&2; return 1; }
  bazel build --stamp "${BUNDLE_FLAGS[@]}" "$@" -- "${BUNDLE_TARGETS[@]}"
  binaries=$(bazel info "${BUNDLE_FLAGS[@]}" "$@" bazel-bin 2>/dev/null)
  rm -rf "$BUNDLE" "$BUNDLE.tar.xz"
  mkdir -p "$BUNDLE/lib" "$BUNDLE/models"
  copy_runfiles "$binaries" "${BUNDLE_TARGETS[@]}"
  copy_libraries
  install -m 644 models/demo.gguf "$BUNDLE/models/"
  install -m 755 tools/gpu/{run-checks.sh,verdicts.sh,sections.sh,report.py,shared_gpu_worker.sh,demo_tokens.sh} "$BUNDLE/"
  pack_bundle
}

# copy_runfiles BAZEL-BIN TARGET...: under the paths that the programs know, stripped.
copy_runfiles() {
  local binaries=$1 target path
  shift
  for target; do
    path=${target#//}
    cp -rL --no-preserve=mode "$binaries/${path/://}.runfiles/tandem/." "$BUNDLE/"
  done
  while IFS= read -r path; do
    strip "$path"
    chmod +x "$path"
  done < <(elf_files)
}

elf_files() {
  find "$BUNDLE" -type f -size +4k ! -path '*/golden/*' -exec sh -c \
    'for f; do [ "$(head -c 4 "$f" | tail -c 3)" = ELF ] && echo "$f"; done; :' - {} +
}

copy_libraries() {
  local path
  while IFS= read -r path; do
    [[ ${path##*/} =~ $LIBRARIES_OF_THE_TARGET ]] || install -m 644 "$path" "$BUNDLE/lib/"
  done < <(elf_files | xargs ldd | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u)
}

pack_bundle() {
  local bytes
  # A compression window as large as the bundle: test programs contain the same kernels.
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "${BUNDLE%/*}" -cf - "${BUNDLE##*/}" |
    xz --lzma2=preset=9,dict=512MiB >"$BUNDLE.tar.xz"
  bytes=$(stat -c %s "$BUNDLE.tar.xz")
  echo "$BUNDLE.tar.xz: $(mib "$bytes") MiB, $(mib "$(du -sb "$BUNDLE" | cut -f1)") MiB unpacked; there: tar xf gpu-bundle.tar.xz && gpu-bundle/run-checks.sh"
  ((bytes <= BUNDLE_MAX_BYTES)) && return
  echo "./dev: the bundle has $(mib "$bytes") MiB, more than $(mib "$BUNDLE_MAX_BYTES")" >&2
  return 1
}

mib() { awk -v bytes="$1" 'BEGIN { printf "%.1f", bytes / 1048576 }'; }
