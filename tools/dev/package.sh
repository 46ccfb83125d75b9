# A tarball for machines without a compiler: programs, the demo model, systemd units, documents. Sourced by ./dev.

# build/tandem-VERSION-linux-amd64.tar.gz; the same commit gives the same names and times in it.
build_package() {
  local version name stage
  build_into_bin "${CPU_PROGRAMS[@]}" //tests/load:tandem_load
  version=$(bin/tandem --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)
  name=tandem-$version-linux-amd64
  stage=$(mktemp -d)
  mkdir -p build
  mkdir -p "$stage/$name"/{bin,http,etc/tandem,lib/systemd/system,share/doc/tandem,share/tandem}
  install -m 755 -s bin/{tandem,tandem_coordinator,tandem_load,tandem_worker} "$stage/$name/bin"
  install -m 755 bin/tandem_{chat,gateway} "$stage/$name/http"
  install -m 644 deploy/container/packages-http "$stage/$name/http/packages"
  install -m 644 deploy/systemd/tandem.env "$stage/$name/etc/tandem"
  install -m 644 deploy/systemd/tandem.service "$stage/$name/lib/systemd/system"
  install -m 644 models/demo.gguf deploy/container/packages "$stage/$name/share/tandem"
  install -m 644 README.md CHANGELOG.md LICENSE docs/*.md "$stage/$name/share/doc/tandem"
  install -m 755 deploy/container/install.sh "$stage/$name"
  tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct 2>/dev/null || echo 0)" \
    -czf "build/$name.tar.gz" "$name"
  rm -r "$stage"
  echo "build/$name.tar.gz ($(du -h "build/$name.tar.gz" | cut -f1)): unpack it on Debian 12 and run its install.sh as root"
}
