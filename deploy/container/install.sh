#!/bin/sh
# Installs the folder that it stands in on Debian 12, as root: run-time packages, the user tandem, programs, systemd unit.
# With --http also tandem_gateway and tandem_chat, and Debian's Python, which they need.
# A container image runs the same (Containerfile.cpu). Settings that exist in /etc/tandem stay.
set -eu
cd "$(dirname "$0")"
case "$*" in
  "") http=false ;;
  --http) http=true ;;
  *) echo "install.sh: the only argument is --http, found '$*'" >&2; exit 2 ;;
esac
[ "$(id -u)" = 0 ] || { echo "install.sh: run it as root" >&2; exit 1; }

apt-get update -qq
# shellcheck disable=SC2046
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(cat share/tandem/packages; ! $http || cat http/packages) >/dev/null

# A fixed id, so that volumes and security contexts can name it.
getent group tandem >/dev/null || groupadd -K SYS_GID_MAX=64999 --system --gid 64100 tandem
getent passwd tandem >/dev/null || useradd -K SYS_UID_MAX=64999 --system --uid 64100 --gid tandem --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin tandem

install -d /usr/share/tandem /usr/share/doc/tandem /etc/tandem /lib/systemd/system
install -m 755 bin/* /usr/bin
! $http || install -m 755 http/tandem_* /usr/bin
install -m 644 share/tandem/* /usr/share/tandem
install -m 644 share/doc/tandem/* /usr/share/doc/tandem
install -m 644 lib/systemd/system/* /lib/systemd/system
for setting in etc/tandem/*; do
  [ -e "/$setting" ] || install -m 644 "$setting" /etc/tandem
done
