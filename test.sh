#!/usr/bin/env bash
# Builds everything and runs all tests. Ends with ctest's own summary.
#   ./test.sh           a seeded small share of every sweep
#   ./test.sh --full    the whole sweeps
set -euo pipefail
root=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=resources/build/setup.sh
source "$root/resources/build/setup.sh"

case "${1:-}" in
  --full) export EVENKEEL_FULL=1 ;;
  "") ;;
  *) die "unknown option $1; usage: ./test.sh [--full]" ;;
esac

install_packages "${packages_to_run[@]}" "${packages_for_window[@]}" "${packages_to_test[@]}"
check_blas
mkdir -p "$root/build"
configure_and_build "$root/build/dev" dev

say "testing"
cd "$root/build/dev"
exec ctest --parallel "$(( 2 * $(nproc) ))" --output-on-failure --no-tests=error
