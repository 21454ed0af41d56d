#!/bin/sh
# Makes sure that the programs a make verb needs are on this machine. Usage:
#   tools/prerequisites.sh tests|bench
# As root on Debian it installs what is missing; elsewhere it says what to
# install and fails. PostgreSQL is not on the list: the tests download it.
set -eu

need=${1:?tests or bench}
missing=""

want() { # program, Debian package, Homebrew package
	command -v "$1" >/dev/null 2>&1 && return
	missing="$missing $2"
	brew="${brew:-} $3"
}

case $need in
tests)
	# With a Docker engine the services come from there.
	if [ "${AIVEDIO_TEST_DOCKER:-}" = off ] || ! command -v docker >/dev/null 2>&1 || ! docker version >/dev/null 2>&1; then
		want redis-server redis-server redis
		# A runtime is not enough for Maven's launcher on every Debian.
		want java default-jdk-headless openjdk
		want mvn maven maven
	fi
	;;
bench)
	# Debian keeps pgbench among the server's programs and outside PATH.
	ls /usr/lib/postgresql/*/bin/pgbench >/dev/null 2>&1 || want pgbench postgresql postgresql
	;;
*)
	echo "prerequisites: unknown set $need" >&2
	exit 1
	;;
esac

[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing:$missing" >&2
	# Services are started by the tests themselves, on ports of their own.
	[ -e /usr/sbin/policy-rc.d ] || { printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d && trap 'rm -f /usr/sbin/policy-rc.d' EXIT; }
	apt-get update -qq >&2
	# shellcheck disable=SC2086 # a list of packages
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2
	exit 0
fi
echo "missing programs. Install them, or start Docker:" >&2
echo "  Debian, Ubuntu: sudo apt-get install$missing" >&2
echo "  macOS: brew install${brew:-}" >&2
exit 1
