# Sourced. install_packages GROUP... installs the missing packages of deploy/packages.txt.
# Root, or sudo; says what it does; does nothing, fast, when all are there.

packages_of() {  # GROUP... → names, one a line
  local file=$root/deploy/packages.txt group
  for group in "$@"; do
    awk -v want="$group" '/^#: /{on = ($2 == want); next} /^#/||/^$/{next} on' "$file"
  done | sort -u
}

install_packages() {
  local missing=() name sudo=
  while read -r name; do
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q '^install ok installed' || missing+=("$name")
  done < <(packages_of "$@")
  [ ${#missing[@]} -gt 0 ] || { echo "packages: all present"; return 0; }
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "need root or sudo to install: ${missing[*]}" >&2; return 1; }
    sudo=sudo
  fi
  echo "packages: installing ${#missing[@]} Debian packages: ${missing[*]}"
  $sudo apt-get update -qq
  # The prometheus package would start a service; tests start their own on a free port.
  local policy=/usr/sbin/policy-rc.d made_policy=
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null && $sudo chmod +x "$policy" && made_policy=1
  fi
  local status=0
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >"${TMPDIR:-/tmp}/mega-packages.log" 2>&1 || status=$?
  [ -z "$made_policy" ] || $sudo rm -f "$policy"
  if [ $status -ne 0 ]; then
    tail -n 15 "${TMPDIR:-/tmp}/mega-packages.log" >&2
    echo "packages: apt-get failed (above; whole log in ${TMPDIR:-/tmp}/mega-packages.log)" >&2
  fi
  return $status
}
