#!/usr/bin/env bash
# Evenkeel on a fresh Debian 12: installs what is missing, builds, and opens the window with the demo project. Without a display it
# runs the same loop headless: plan, compare, train on this machine.
#   ./run.sh            everything
#   ./run.sh --setup    only install
#   ./run.sh --cuda DIR only the worker, for the LibTorch with CUDA (or the PyTorch) in DIR; launch gives it to nodes with that version
set -euo pipefail
root=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=resources/build/setup.sh
source "$root/resources/build/setup.sh"

only_setup=no
case "${1:-}" in
  --setup) only_setup=yes ;;
  --cuda)
    [ $# -eq 2 ] || die "--cuda needs the folder of a LibTorch with CUDA, or of a PyTorch: python3 -c 'import torch; print(torch.__path__[0])'"
    build_cuda_worker "$2"
    exit 0
    ;;
  "") ;;
  *) die "unknown option $1; usage: ./run.sh [--setup | --cuda DIR]" ;;
esac

has_display=no
[ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && has_display=yes
targets=(evenkeel-cli evenkeel-agent evenkeel-worker)
if [ "$has_display" = yes ]; then
  packages_to_run+=("${packages_for_window[@]}")
  targets+=(evenkeel)
fi
install_packages "${packages_to_run[@]}"
check_blas
[ "$only_setup" = yes ] && { say "everything is installed"; exit 0; }

mkdir -p "$root/build"
configure_and_build "$root/build/release" release --target "${targets[@]}"
if [ "$has_display" = yes ]; then
  say "opening the demo project; the same without a window: DISPLAY= ./run.sh"
  exec "$root/build/release/bin/evenkeel" "$root/resources/demo/demo.evenkeel"
fi
cli=$root/build/release/bin/evenkeel-cli
out=$root/build/demo
mkdir -p "$out"

say "1/3 plan: two unlike nodes, tiny-gpt (resources/demo)"
"$cli" plan --cluster "$root/resources/demo/cluster.json" --model tiny-gpt --global-batch 26 --out "$out/plan.json"

say "2/3 compare with the layout that treats all devices alike"
"$cli" compare --cluster "$root/resources/demo/cluster.json" --model tiny-gpt --global-batch 26 --planners eth,uniform

say "3/3 train the plan on this machine, 60 steps on the licence texts of Debian"
"$cli" launch "$out/plan.json" --local --data /usr/share/common-licenses --steps 60
