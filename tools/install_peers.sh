#!/bin/sh
# Programs that end-to-end tests talk to, from Debian: dcmtk, Orthanc with DICOMweb, dicom3tools, PostgreSQL, Chromium, Prometheus, a font.
#
# As root with apt: installs what is missing. Otherwise: says what is missing and goes on, and the tests that need it
# are skipped visibly. Under CI=true a missing peer is a failure: a green run must have met every peer.
set -eu
PATH="$PATH:/usr/sbin:/sbin"

missing() {
    command -v storescu >/dev/null 2>&1 || printf ' dcmtk'
    command -v Orthanc >/dev/null 2>&1 || printf ' orthanc'
    [ -e /usr/share/orthanc/plugins/libOrthancDicomWeb.so ] || printf ' orthanc-dicomweb'
    command -v dciodvfy >/dev/null 2>&1 || printf ' dicom3tools'
    command -v chromium >/dev/null 2>&1 || printf ' chromium'
    command -v promtool >/dev/null 2>&1 || printf ' prometheus'
    [ -e /usr/share/fonts/truetype/dejavu/DejaVuSerif-Bold.ttf ] || printf ' fonts-dejavu-core'
    # Debian keeps servers out of PATH, in a folder for each major version.
    ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null 2>&1 || printf ' postgresql'
}

go_on_without() {
    echo "peers missing:$(missing) ($1)" >&2
    if [ "${CI:-}" = true ]; then exit 1; fi
    echo "tests that need them will be skipped; install them with your package manager to run everything" >&2
    exit 0
}

wanted=$(missing)
[ -n "$wanted" ] || exit 0
[ "$(id -u)" = 0 ] || go_on_without "not root"
command -v apt-get >/dev/null 2>&1 || go_on_without "no apt-get here"

# No package may start a service of its own: tests start what they need, on loopback ports of their own.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
# Another apt may hold the lock (a machine that just booted updates itself): wait, do not fail.
quiet_apt() { apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >"$log" 2>&1; }

echo "installing peers:$wanted"
# An old package list often still serves; a failed update alone is no reason to stop.
quiet_apt update || echo "apt-get update failed; trying with the lists at hand" >&2
# shellcheck disable=SC2086 # a list of names
if ! quiet_apt install -y --no-install-recommends $wanted; then
    tail -n 20 "$log" >&2
    go_on_without "apt-get install failed"
fi
rm -f "$log"
[ -z "$(missing)" ] || go_on_without "installed, but not found"
