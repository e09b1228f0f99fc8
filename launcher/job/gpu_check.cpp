// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/gpu_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/plan/features.h"

namespace evenkeel {
namespace {

constexpr const char* kCore = "cpu";  // what a host without a card is found to have

/// The card of a rank: the one with the uuid that the plan pins, else that of the device's number.
const FoundDevice* cardOf(const FoundHost& found, const Device& device, int index) {
  const auto is = [&](const FoundHost::Slot& slot) { return slot.device.product != kCore && (device.uuid.empty() ? slot.device.index == index : slot.device.uuid == device.uuid); };
  const auto slot = std::ranges::find_if(found.found, is);
  return slot == found.found.end() ? nullptr : &slot->device;
}

class Check {
 public:
  Check(const FoundHost& found, const Plan& plan, const NodeLayout& layout) : found_(found), plan_(plan), layout_(layout) {}

  GpuCheck run(const std::vector<WorkerBuild>& builds) {
    checkDevices();
    if (!cards_.empty()) checkTorch(builds);
    return std::move(check_);
  }

 private:
  void row(const char* check, bool passed, std::string detail, std::string remedy = {}) {
    check_.rows.push_back({.node = layout_.name, .check = check, .passed = passed, .detail = std::move(detail), .remedy = std::move(remedy)});
  }

  void checkDevices() {
    for (const DiscoveryRow& told : found_.rows) {  // the tool is missing, or does not answer
      if (told.check == "devices" && !told.passed) return row("devices", false, told.detail, told.remedy);
    }
    if (std::ranges::all_of(found_.found, [](const FoundHost::Slot& slot) { return slot.device.product == kCore; }))
      return row("devices", false, "there is no card, and neither nvidia-smi nor rocm-smi nor npu-smi", "discover the machine and plan with what it has");
    std::set<std::string> drivers;
    bool allFit = true;
    for (const NodeJob::Rank& rank : layout_.ranks) {
      const DeviceId id = *plan_.cluster.find(rank.device);
      const Device& device = plan_.cluster.nodes[static_cast<std::size_t>(id.node)].devices[static_cast<std::size_t>(id.index)];
      const FoundDevice* card = cardOf(found_, device, id.index);
      std::string objection;
      if (card == nullptr) {
        objection = device.uuid.empty() ? fmt::format("{}: there is no card {}", rank.device, id.index)
                                        : fmt::format("{}: the card {} is not there", rank.device, device.uuid);
      } else if (!card->problem.empty()) {
        objection = fmt::format("{}: {} {}", rank.device, card->product, card->problem);
      } else if (isBusy(*card)) {
        objection = fmt::format("{}: {} is in use", rank.device, card->product);
      }
      if (!objection.empty()) {
        row("devices", false, objection, card != nullptr && isBusy(*card) ? "free it, or plan without it" : "discover the machine again and plan with what it has");
        allFit = false;
        continue;
      }
      cards_.push_back(card);
      drivers.insert(card->driver);
    }
    if (allFit) row("devices", true, fmt::format("{} x {}, driver {}", cards_.size(), cards_.front()->product, fmt::join(drivers, " and ")));
  }

  void checkTorch(const std::vector<WorkerBuild>& builds) {
    const std::string built = builds.empty() ? "none was built" : "those that were built are for " + listOf(builds);
    if (!found_.torch) return checkWithoutTorch(builds);
    const FoundTorch& torch = *found_.torch;
    std::set<std::string> objections;
    for (const FoundDevice* card : cards_) {
      if (const std::string objection = objectionTo(torch, *card); !objection.empty()) objections.insert(objection);
    }
    for (const std::string& objection : objections) row("torch", false, objection, "install a PyTorch that fits the cards and their driver");
    if (!objections.empty()) return;
    const auto fits = std::ranges::find(builds, torch.version, &WorkerBuild::torch);
    if (fits == builds.end()) {
      return row("torch", false, fmt::format("{} is there, but no worker for it: {}", torch.version, built),
                 fmt::format("build one where that PyTorch is: ./run.sh --cuda {}", torch.path));
    }
    check_.build = *fits;
    check_.torchLibraries = torch.path + "/lib";
    row("torch", true, fmt::format("{} (CUDA {}, NCCL {}) of its own in {}", torch.version, torch.cuda, torch.nccl.empty() ? "none" : torch.nccl, torch.path));
  }

  /// The newest build goes there with all of its libraries; the "programs" row says how large they are before they are sent.
  void checkWithoutTorch(const std::vector<WorkerBuild>& builds) {
    if (builds.empty())
      return row("torch", false, "Python has none there, and no worker for CUDA was built here", "install PyTorch there, or build a worker: ./run.sh --cuda DIRECTORY OF A LIBTORCH");
    check_.build = builds.back();
    row("torch", true, fmt::format("none of its own: that of the worker for {} goes along", builds.back().torch));
  }

  static std::string listOf(const std::vector<WorkerBuild>& builds) {
    std::string list;
    for (const WorkerBuild& build : builds) list += (list.empty() ? "" : ", ") + build.torch;
    return list;
  }

  const FoundHost& found_;
  const Plan& plan_;
  const NodeLayout& layout_;
  std::vector<const FoundDevice*> cards_;  // of the ranks
  GpuCheck check_;
};

}  // namespace

bool usesCards(const Plan& plan, const NodeLayout& layout) {
  return std::ranges::any_of(layout.ranks, [&](const NodeJob::Rank& rank) {
    return isCard(plan.cluster.typeOf(*plan.cluster.find(rank.device)));
  });
}

GpuCheck checkGpus(const FoundHost& found, const Plan& plan, const NodeLayout& layout, const std::vector<WorkerBuild>& builds) {
  return Check(found, plan, layout).run(builds);
}

std::string unlikeTorches(const std::vector<std::pair<std::string, std::string>>& torchOf) {
  std::string all;
  bool areAlike = true;
  for (const auto& [node, torch] : torchOf) {
    areAlike = areAlike && torch == torchOf.front().second;
    all += fmt::format("{}{} on {}", all.empty() ? "" : ", ", torch.empty() ? "the worker for CPU cores" : "that for LibTorch " + torch, node);
  }
  return areAlike ? std::string() : all;
}

std::map<std::string, std::string> interfaceVariables(const std::vector<std::string>& addresses, const std::string& trainAddress) {
  for (const std::string& line : addresses) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || line.substr(space + 1) != trainAddress) continue;
    const std::string name = line.substr(0, line.find('@'));  // "eth0@if7" of a container
    const std::string interface = name.substr(0, name.find(' '));
    return {{"NCCL_SOCKET_IFNAME", "=" + interface}, {"GLOO_SOCKET_IFNAME", interface}};
  }
  return {};
}

}  // namespace evenkeel
