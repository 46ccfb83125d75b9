# Debian packages: the compiler, Bazel, the libraries. Sourced by ./dev.

# Training the demo model (never needed to build, test or serve) takes python3-torch as well.
readonly DEBIAN_PACKAGES=(
  bazel-bootstrap
  bazel-rules-java
  clang-format
  g++
  libabsl-dev
  libbenchmark-dev
  libcli11-dev
  libgmock-dev
  libgrpc++-dev
  libgtest-dev
  libpcre2-dev
  libprotobuf-dev
  libutf8proc-dev
  libxxhash-dev
  nlohmann-json3-dev
  protobuf-compiler
  protobuf-compiler-grpc
  python3
  python3-numpy
  python3-grpcio
  python3-protobuf
)

# Prints the packages that are not installed, one per line.
missing_packages() {
  comm -23 <(printf '%s\n' "${DEBIAN_PACKAGES[@]}" | sort) \
    <(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${DEBIAN_PACKAGES[@]}" 2>/dev/null |
      sed -n 's/ installed$//p' | sort -u)
}

install_deps() {
  local missing as_root=()
  command -v dpkg-query >/dev/null ||
    { echo "./dev: this needs Debian 12 (no dpkg-query here)" >&2; return 1; }
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      { echo "./dev: run as root, or install sudo, to add: ${missing[*]}" >&2; return 1; }
    as_root=(sudo)
  fi
  echo "Installing Debian packages with apt (a few minutes): ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
}
