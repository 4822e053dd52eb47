#!/usr/bin/env bash
# Installs the Debian packages of cmake/debian-packages.txt, or of the list that is named, that are missing. Where that is not allowed, or
# fails, prints the command that does it.
set -euo pipefail
cd "$(dirname "$0")"

missing=()
while read -r package; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
done < "${1:-debian-packages.txt}"
[ ${#missing[@]} -eq 0 ] && exit 0

print_command() {
  echo "These packages are missing; install them, as root, with:" >&2
  echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
}

as_root=""
if [ "$(id -u)" -ne 0 ]; then
  sudo -n true 2>/dev/null || print_command
  as_root="sudo -n"
fi
echo "installing ${#missing[@]} packages: ${missing[*]}"
$as_root apt-get update -qq || print_command
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null || print_command
