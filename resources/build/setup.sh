# Sourced by run.sh and test.sh: installs what is missing on Debian 12, and says what it does. Needs `root` (the checkout).
# shellcheck shell=bash

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# What building and running need, what the window needs besides, what tests need besides. libopenblas0-serial: the reference BLAS is 40 times slower.
packages_to_run=(g++ cmake ninja-build ccache pkg-config git
  nlohmann-json3-dev libfmt-dev libspdlog-dev libcli11-dev libtbb-dev libssh-dev libsqlite3-dev libsentencepiece-dev
  libtorch-dev libgloo-dev libopenblas0-serial openssh-client)
packages_for_window=(qt6-base-dev libqcustomplot-dev fonts-noto-core fonts-noto-mono)
# slurmctld ... munge: a Slurm of the tests' own; Debian starts none of them without a slurm.conf.
packages_to_test=(libgtest-dev libgmock-dev openssh-server iproute2 procps python3 xvfb xdotool openbox slurmctld slurmd slurm-client munge)

# Where a LibTorch of your own is named, Debian's is neither installed nor used.
if [ -n "${CMAKE_PREFIX_PATH:-}" ] && compgen -G "${CMAKE_PREFIX_PATH%%:*}/share/cmake/Torch/TorchConfig.cmake" >/dev/null; then
  say "LibTorch: using the one under ${CMAKE_PREFIX_PATH%%:*}"
  packages_to_run=("${packages_to_run[@]/libtorch-dev/}")
fi

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

install_packages() {
  local missing=() package
  for package in "$@"; do
    [ -z "$package" ] || installed "$package" || missing+=("$package")
  done
  [ "${#missing[@]}" -eq 0 ] && return 0
  command -v apt-get >/dev/null || die "these Debian packages are missing and there is no apt-get: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing: ${missing[*]}; install them as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -q >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}

# The BLAS that LibTorch loads: alternatives choose OpenBLAS by themselves unless somebody chose otherwise by hand.
check_blas() {
  local library
  library=$(readlink -f /usr/lib/x86_64-linux-gnu/libblas.so.3 2>/dev/null || true)
  case "$library" in
    *openblas*|*blis*|*mkl*) ;;
    "") ;;  # another architecture, or a LibTorch with a BLAS of its own
    *) say "warning: libblas.so.3 is $library, which is slow; choose OpenBLAS: sudo update-alternatives --config libblas.so.3-x86_64-linux-gnu" ;;
  esac
}

# configure_and_build DIRECTORY PRESET [-DSETTING=...] [--target NAMES...]
configure_and_build() {
  local directory=$1 preset=$2 settings=()
  shift 2
  while [[ "${1:-}" == -D* ]]; do settings+=("$1"); shift; done
  [ -f "$directory/build.ninja" ] || say "configuring $directory"
  # Each time, so that what was installed since is found; a few seconds.
  (cd "$root" && cmake --preset "$preset" -B "$directory" "${settings[@]}" >"$directory.configure.log" 2>&1) \
    || { cat "$directory.configure.log" >&2; die "cmake failed"; }
  say "building $directory"
  local log=$directory.build.log
  cmake --build "$directory" "$@" >"$log" 2>&1 || { grep -E 'error|FAILED|undefined' "$log" | head -n 60 >&2; die "the build failed; all of it: $log"; }
  tail -n 1 "$log" >&2
}

# version_of_torch DIRECTORY: "2.7.1+cu126" of a LibTorch or of a PyTorch's folder
version_of_torch() {
  if [ -f "$1/build-version" ]; then head -n 1 "$1/build-version"
  elif [ -f "$1/version.py" ]; then sed -n "s/^__version__ = ['\"]\\(.*\\)['\"]/\\1/p" "$1/version.py"
  fi
}

# build_cuda_worker DIRECTORY: a worker for the LibTorch there, in build/release/bin/workers/VERSION. Only what building needs is installed: no Qt, no libssh, no SQLite.
build_cuda_worker() {
  local torch version cmake_dir place
  torch=$(cd "$1" 2>/dev/null && pwd) || die "there is no folder $1"
  cmake_dir=$torch/share/cmake/Torch
  [ -f "$cmake_dir/TorchConfig.cmake" ] || die "$torch is no LibTorch: it has no share/cmake/Torch/TorchConfig.cmake"
  version=$(version_of_torch "$torch")
  [ -n "$version" ] || die "$torch does not say its version: it has neither build-version nor version.py"
  case "$version" in [01].*) die "LibTorch $version is too old for CUDA here; 2.7 or newer is needed" ;; esac
  if grep -q 'GLIBCXX_USE_CXX11_ABI=0' "$cmake_dir/TorchConfig.cmake"; then
    die "LibTorch $version was built with the old C++ interface, which Debian's libraries do not have; take PyTorch 2.7 or newer, or the LibTorch \"cxx11 ABI\""
  fi
  CMAKE_PREFIX_PATH=$torch
  install_packages g++ cmake ninja-build ccache pkg-config nlohmann-json3-dev libfmt-dev libspdlog-dev libtbb-dev libgloo-dev
  place=$root/build/release/bin/workers/$version
  mkdir -p "$place"
  say "worker for LibTorch $version in $torch"
  configure_and_build "$root/build/worker-$version" release -DEVENKEEL_PARTS=runtime "-DCMAKE_PREFIX_PATH=$torch" --target evenkeel-worker
  install -m 0755 "$root/build/worker-$version/bin/evenkeel-worker" "$place/evenkeel-worker"
  ln -sf ../../evenkeel-agent "$place/evenkeel-agent"
  printf '{"torch": "%s"}\n' "$version" >"$place/worker.json"
  say "done: launch gives $place to nodes with that PyTorch"
}
