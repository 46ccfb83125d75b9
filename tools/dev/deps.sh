# Debian packages by purpose, so that the first demo installs only its own. Sourced by ./dev.

# The compiler, Bazel and the libraries: enough to build and to serve.
readonly BUILD_PACKAGES=(
  bazel-bootstrap
  bazel-rules-java
  ca-certificates
  g++
  libabsl-dev
  libcivetweb-dev
  libcli11-dev
  libcurl4-openssl-dev
  libgrpc++-dev
  libpcre2-dev
  libprotobuf-dev
  libssl-dev
  libutf8proc-dev
  libxxhash-dev
  nlohmann-json3-dev
  prometheus-cpp-dev
  protobuf-compiler
  protobuf-compiler-grpc
  python3
)

# What tandem_gateway runs with; a package's install.sh --http installs the same.
mapfile -t GATEWAY_PACKAGES <deploy/container/packages-http
readonly GATEWAY_PACKAGES

# Tests, benchmarks and the Python client. Training the demo model takes python3-torch as well.
TEST_PACKAGES=(
  curl
  git
  iproute2
  libbenchmark-dev
  libgmock-dev
  libgtest-dev
  nftables
  openssl
  python3
  python3-grpcio
  python3-numpy
  python3-protobuf
  python3-venv
  python3-yaml
)

# Where another kubectl is installed already, Debian's would not install beside it.
command -v kubectl >/dev/null || TEST_PACKAGES+=(kubernetes-client)
readonly TEST_PACKAGES

# What only running the tests takes: the status page is looked at in a browser.
readonly BROWSER_PACKAGES=(chromium-headless-shell)

# Packages of PyPI that tests use, in build/venv; tests skip what they need where PyPI can't be reached.
readonly PYTHON_PACKAGES=(anthropic==2.14.0 grpcio-health-checking==1.85.1 grpcio-reflection==1.85.1 jinja2==3.1.6 kubernetes-validate==1.33.0 openai==3.54.0 smg==1.13.0 smg-grpc-proto==0.4.28 transformers==5.23.0)
# Of these, tests only read chat templates, so that what they depend on is not installed.
readonly TEMPLATE_PACKAGES=(axolotl==0.19.0 trl==1.16.0)

readonly LINT_PACKAGES=(
  clang
  clang-format
  clang-tidy
  python3
)

# libFuzzer comes with clang's runtime.
readonly FUZZ_PACKAGES=(clang libclang-rt-dev)

readonly IMAGE_PACKAGES=(
  debootstrap
  iproute2
  python3
  util-linux
)

# Prints the packages of "$@" that are not installed, one per line.
missing_packages() {
  comm -23 <(printf '%s\n' "$@" | sort -u) \
    <(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
      sed -n 's/ installed$//p' | sort -u)
}

# install_deps KIND...: KIND is build, gateway, test, browser, lint, fuzz or image.
install_deps() {
  local kind missing wanted=() as_root=()
  command -v dpkg-query >/dev/null ||
    { echo "./dev: this needs Debian 12 (no dpkg-query here)" >&2; return 1; }
  for kind; do
    case $kind in
      build) wanted+=("${BUILD_PACKAGES[@]}") ;;
      gateway) wanted+=("${GATEWAY_PACKAGES[@]}") ;;
      test) wanted+=("${TEST_PACKAGES[@]}" "${GATEWAY_PACKAGES[@]}") ;;
      browser) wanted+=("${BROWSER_PACKAGES[@]}") ;;
      image) wanted+=("${IMAGE_PACKAGES[@]}") ;;
      fuzz) wanted+=("${FUZZ_PACKAGES[@]}") ;;
      lint) wanted+=("${LINT_PACKAGES[@]}") ;;
    esac
  done
  mapfile -t missing < <(missing_packages "${wanted[@]}")
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

# Makes build/promtool, once, of Debian's package prometheus: to install that package would start a server.
install_promtool() {
  local folder log
  [[ -x build/promtool ]] && return
  folder=$(mktemp -d)
  log=$folder/log
  mkdir -p build
  if download_package prometheus "$folder" >"$log" 2>&1 &&
    dpkg-deb --fsys-tarfile "$folder"/prometheus_*.deb 2>>"$log" | tar -xO ./usr/bin/promtool 2>>"$log" >"$folder/promtool"; then
    install -m 755 "$folder/promtool" build/promtool
  else
    echo "./dev: Debian's package prometheus can't be had: the test that needs promtool will be skipped:" \
      "$(grep . "$log" | tail -n 1 || echo "no answer within 60 s")" >&2
  fi
  rm -r "$folder"
}

# download_package NAME FOLDER: its .deb file; each command has a minute.
download_package() {
  if ! apt-cache show "$1" >/dev/null 2>&1 && ((EUID == 0)); then  # the lists are empty, as in a fresh container
    timeout 60 apt-get update -qq
  fi
  (cd "$2" && timeout 60 apt-get download -qq "$1")
}

# Makes build/venv, once; whole or not at all.
install_python_packages() {
  local stamp=build/venv/packages wanted="${PYTHON_PACKAGES[*]} ${TEMPLATE_PACKAGES[*]}"
  local install=(timeout 300 build/venv/bin/pip install --quiet --disable-pip-version-check --retries 1 --no-compile)
  [[ -f $stamp && $(<"$stamp") == "$wanted" ]] && return
  if /usr/bin/python3 -m venv --clear build/venv && "${install[@]}" "${PYTHON_PACKAGES[@]}" &&
    "${install[@]}" --no-deps "${TEMPLATE_PACKAGES[@]}"; then
    echo "$wanted" >"$stamp"
  else
    rm -rf build/venv
    echo "./dev: PyPI can't be reached: tests that need $wanted will be skipped" >&2
  fi
}
