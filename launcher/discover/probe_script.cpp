// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/discover/probe_script.h"

#include <sstream>

#include "core/base/words.h"

namespace evenkeel {
namespace {

constexpr std::string_view kBegin = "@@evenkeel ", kEnd = "@@evenkeel-end ";

}  // namespace

const std::string& probeScript() {
  // nvidia-smi may hang on a broken driver: each tool gets its own time where `timeout` exists.
  static const std::string script = R"sh(
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/sbin:/sbin:/usr/local/bin:/opt/rocm/bin:/usr/local/sbin; export PATH
within() { if command -v timeout >/dev/null 2>&1; then timeout 20 "$@"; else "$@"; fi; }
ask() { name=$1; shift; echo; echo "@@evenkeel $name"; if command -v "$1" >/dev/null 2>&1; then within "$@" 2>&1; status=$?; echo; echo "@@evenkeel-end $status"; fi; }
echo; echo "@@evenkeel system"
echo "hostname=$(uname -n)"
echo "architecture=$(uname -m)"
echo "libc=$(getconf GNU_LIBC_VERSION 2>/dev/null)"
echo "cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null)"
echo "memory_kib=$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo 2>/dev/null)"
echo "clock=$(date +%s)"
place=${XDG_CACHE_HOME:-$HOME/.cache}
while [ ! -d "$place" ] && [ "$place" != / ]; do place=$(dirname -- "$place"); done
[ -w "$place" ] && echo "writable=yes"
df -Pk -- "$place" 2>/dev/null | { read -r _; read -r _ _ _ free _; echo "disk_free_kib=$free"; }
echo "@@evenkeel-end 0"
common=index,uuid,name,memory.total,memory.used,driver_version,pci.bus_id,mig.mode.current,ecc.errors.uncorrected.volatile.total
echo; echo "@@evenkeel nvidia"
if command -v nvidia-smi >/dev/null 2>&1; then
  found=$(within nvidia-smi --query-gpu=$common,compute_cap --format=csv,nounits 2>&1) || found=$(within nvidia-smi --query-gpu=$common --format=csv,nounits 2>&1)
  status=$?
  printf '%s\n' "$found"
  echo "@@evenkeel-end $status"
fi
ask nvidia-processes nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv,noheader,nounits
ask nvidia-links nvidia-smi topo -m
# importing torch takes seconds: only where there is a card for it
command -v nvidia-smi >/dev/null 2>&1 && ask torch python3 -c 'import json, os, torch
nccl = getattr(torch.cuda, "nccl", None)
version = nccl.version() if nccl is not None and torch.version.cuda else ""
print(json.dumps({"path": os.path.dirname(torch.__file__), "version": torch.__version__, "cuda": torch.version.cuda or "",
                  "nccl": ".".join(map(str, version)) if isinstance(version, tuple) else str(version), "architectures": torch.cuda.get_arch_list()}))'
ask rocm rocm-smi --showproductname --showuniqueid --showmeminfo vram --json
ask npu npu-smi info
echo; echo "@@evenkeel pci"
for device in /sys/bus/pci/devices/*; do
  [ -r "$device/class" ] || continue
  class=$(cat "$device/class" 2>/dev/null)
  case $class in 0x0302*|0x0300*|0x0380*|0x1200*) echo "$(cat "$device/vendor" 2>/dev/null) $class";; esac
done
echo "@@evenkeel-end 0"
echo; echo "@@evenkeel network"
for interface in /sys/class/net/*; do
  [ -e "$interface/device" ] || continue
  echo "nic ${interface##*/} $(cat "$interface/operstate" 2>/dev/null || echo unknown) $(cat "$interface/speed" 2>/dev/null || echo -1)"
done
for rate in /sys/class/infiniband/*/ports/*/rate; do
  [ -r "$rate" ] || continue
  port=${rate%/rate}
  echo "infiniband ${port#/sys/class/infiniband/} $(cut -d: -f1 "$port/state" 2>/dev/null) $(cut -d' ' -f1 "$rate" 2>/dev/null) $(cat "$port/link_layer" 2>/dev/null)"
done
ip -o addr show scope global 2>/dev/null | while read -r _ name _ address _; do echo "address $name ${address%/*}"; done
echo "@@evenkeel-end 0"
exit 0
)sh";
  return script;
}

std::map<std::string, ProbeAnswer> answersIn(std::string_view output) {
  std::map<std::string, ProbeAnswer> answers;
  std::istringstream lines{std::string(output)};
  ProbeAnswer* open = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.starts_with(kEnd)) {
      if (open != nullptr) open->exitStatus = parseNumber<int>(std::string_view(line).substr(kEnd.size())).value_or(-1);
      open = nullptr;
    } else if (line.starts_with(kBegin)) {
      open = &answers[line.substr(kBegin.size())];
    } else if (open != nullptr) {
      open->text += line + "\n";
    }
  }
  return answers;
}

}  // namespace evenkeel
