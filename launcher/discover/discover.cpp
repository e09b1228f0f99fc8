// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/discover/discover.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "core/base/words.h"
#include "launcher/discover/probe_script.h"
#include "launcher/discover/product_names.h"

namespace evenkeel {
namespace {

constexpr std::int64_t kMostClockSkew = 5;                  // seconds; logs of two nodes are compared by their times
constexpr std::int64_t kLeastDisk = std::int64_t{1} << 30U;  // bytes, for programs, data and a first checkpoint
constexpr std::size_t kAtOnce = 32;                         // connections

using Answers = std::map<std::string, ProbeAnswer>;

class HostReader {
 public:
  HostReader(FoundHost& host, const Answers& answers) : host_(host), answers_(answers) {}

  void read(std::int64_t now) {
    readSystem(now);
    readNetwork();
    const bool anyTool = readNvidia() | readRocm() | readAscend();
    if (!anyTool) readWithoutTool();
    describeDevices();
    describeTorch();
    host_.nic = nicOf(network_, host_.found.size());
    if (host_.nic.bandwidth.value > 0) row("network", true, host_.nic.how);
    else row("network", false, "no port says how fast it is", "set nic_bandwidth_gbs of the node by hand; the default of its devices is taken");
  }

 private:
  void row(std::string check, bool passed, std::string detail, std::string remedy = {}) {
    host_.rows.push_back({std::move(check), passed, std::move(detail), std::move(remedy)});
  }
  [[nodiscard]] const ProbeAnswer* answer(const std::string& name) const {
    const auto found = answers_.find(name);
    return found == answers_.end() ? nullptr : &found->second;
  }

  void readSystem(std::int64_t now) {
    const ProbeAnswer* said = answer("system");
    std::map<std::string, std::string> facts;
    std::istringstream lines(said == nullptr ? "" : said->text);
    for (std::string line; std::getline(lines, line);) {
      if (const std::size_t equals = line.find('='); equals != std::string::npos) facts[line.substr(0, equals)] = line.substr(equals + 1);
    }
    const auto number = [&](const char* key) { return parseNumber<std::int64_t>(facts[key]); };
    const auto kib = [&](const char* key) { return Bytes{std::clamp<std::int64_t>(number(key).value_or(0), 0, std::int64_t{1} << 50U) * 1024}; };
    host_.architecture = facts["architecture"];
    host_.libc = facts["libc"];
    host_.memory = kib("memory_kib");
    host_.diskFree = kib("disk_free_kib");
    cores_ = static_cast<int>(std::clamp<std::int64_t>(number("cores").value_or(0), 0, 1024));
    row("system", !host_.architecture.empty(), fmt::format("{}, {}, {} cores, {:.0f} GiB of memory", host_.architecture.empty() ? "unknown machine" : host_.architecture,
                                                           host_.libc.empty() ? "no glibc" : host_.libc, cores_, gib(host_.memory)));
    const bool canWrite = facts["writable"] == "yes";
    row("disk", canWrite && host_.diskFree.value >= kLeastDisk,
        fmt::format("{:.1f} GiB free{}", gib(host_.diskFree), canWrite ? "" : ", but the cache directory cannot be written"),
        canWrite ? (host_.diskFree.value >= kLeastDisk ? "" : "free some space, or set XDG_CACHE_HOME there") : "set XDG_CACHE_HOME there");
    if (const auto clock = number("clock"); clock && *clock >= 0 && *clock < std::int64_t{1} << 40U) {
      const std::int64_t skew = *clock - now;
      const bool isFine = std::abs(skew) <= kMostClockSkew;
      row("clock", isFine, isFine ? "agrees with this machine's" : fmt::format("is {} s {} this machine's", std::abs(skew), skew > 0 ? "ahead of" : "behind"),
          isFine ? "" : "switch on NTP there: logs are compared by time");
    }
  }

  void readNetwork() {
    if (const ProbeAnswer* said = answer("network")) network_ = parseNetwork(said->text);
    host_.addresses = network_.addresses;
  }

  /// Takes over what a tool reported; false if the host has no such tool.
  bool take(const char* question, const char* tool, DeviceReport (*parse)(std::string_view)) {
    const ProbeAnswer* said = answer(question);
    if (said == nullptr || (said->exitStatus == -1 && said->text.find_first_not_of(" \n") == std::string::npos)) return false;
    DeviceReport report = parse(said->text);
    if (said->exitStatus == 124) report.problem = "it did not answer within 20 s";  // timeout(1)
    if (!report.problem.empty() || (report.devices.empty() && said->exitStatus != 0)) {
      row("devices", false, fmt::format("{}: {}", tool, report.problem.empty() ? fmt::format("exit status {}", said->exitStatus) : report.problem),
          fmt::format("run {} there and mend what it says", tool));
    }
    for (FoundDevice& device : report.devices) host_.found.push_back({std::move(device), {}, false});
    return true;
  }

  bool readNvidia() {
    if (!take("nvidia", "nvidia-smi", parseNvidiaSmi)) return false;
    std::vector<FoundDevice> devices;
    for (const FoundHost::Slot& slot : host_.found) devices.push_back(slot.device);
    if (const ProbeAnswer* said = answer("nvidia-processes")) addNvidiaProcesses(said->text, devices);
    for (std::size_t i = 0; i < devices.size(); ++i) host_.found[i].device = std::move(devices[i]);
    if (const ProbeAnswer* said = answer("nvidia-links")) host_.links = nvidiaLinks(said->text);
    return true;
  }
  bool readRocm() { return take("rocm", "rocm-smi", parseRocmSmi); }
  bool readAscend() { return take("npu", "npu-smi", parseNpuSmi); }

  /// No vendor's tool: cards whose driver or tool is missing are named, and the processor's cores remain.
  void readWithoutTool() {
    const ProbeAnswer* said = answer("pci");
    for (const auto& [vendor, tool] : {std::pair{"0x10de 0x0302", "nvidia-smi"}, {"0x10de 0x0300", "nvidia-smi"}, {"0x1002 0x0380", "rocm-smi"},
                                       {"0x1002 0x1200", "rocm-smi"}, {"0x19e5 0x1200", "npu-smi"}}) {
      if (said == nullptr || said->text.find(vendor) == std::string::npos) continue;
      row("devices", false, fmt::format("there is a card, but no {}", tool), fmt::format("install its driver and {}", tool));
      return;
    }
    for (int core = 0; core < cores_; ++core) {
      FoundDevice device;
      device.index = core;
      device.product = "cpu";
      host_.found.push_back({std::move(device), "cpu", true});
    }
  }

  void describeDevices() {
    std::map<std::string, int> counts;
    for (FoundHost::Slot& slot : host_.found) {
      if (slot.type.empty()) slot.type = catalogueNameOf(slot.device.product, slot.device.memory);
      slot.isTicked = !slot.type.empty() && slot.device.problem.empty() && !isBusy(slot.device);
      if (slot.isTicked) ++counts[slot.type];
      const std::string card = fmt::format("{} ({})", slot.device.index, slot.device.product);
      if (slot.type.empty()) {
        row("device", false, card + ": no figures of this product are known", "add a device type with its data-sheet figures to the cluster file");
      } else if (!slot.device.problem.empty()) {
        row("device", false, card + " " + slot.device.problem, "left out");
      } else if (isBusy(slot.device)) {
        std::string by;
        for (const std::int64_t pid : slot.device.processes) by += fmt::format("{}{}", by.empty() ? " by process " : ", ", pid);
        row("device", false, fmt::format("{} is in use{}: {:.1f} of {:.1f} GiB", card, by, gib(slot.device.used), gib(slot.device.memory)), "left out; free it and discover again");
      }
    }
    std::string found;
    for (const auto& [type, count] : counts) found += fmt::format("{}{} x {}", found.empty() ? "" : ", ", count, type);
    if (!found.empty()) row("devices", true, found + (host_.links.empty() ? "" : fmt::format(", joined by {}", host_.links)));
    else if (std::ranges::none_of(host_.rows, [](const DiscoveryRow& known) { return known.check == "devices"; }))
      row("devices", false, "none can be used", "");
  }

  /// Only hosts with NVIDIA's cards are asked for it.
  void describeTorch() {
    const ProbeAnswer* said = answer("torch");
    if (said == nullptr || host_.found.empty()) return;
    host_.torch = parseTorch(said->text);
    if (!host_.torch)
      return row("torch", false, "Python has none",
                 "install PyTorch there, or name a LibTorch when the worker is built (CMAKE_PREFIX_PATH)");
    const FoundTorch& torch = *host_.torch;
    std::set<std::string> objections;
    for (const FoundHost::Slot& slot : host_.found) {
      if (const std::string objection = objectionTo(torch, slot.device); !objection.empty()) objections.insert(objection);
    }
    for (const std::string& objection : objections)
      row("torch", false, objection, "install a PyTorch that fits the cards and their driver");
    if (objections.empty())
      row("torch", true,
          fmt::format("{} (CUDA {}, NCCL {}) in {}", torch.version, torch.cuda, torch.nccl.empty() ? "none" : torch.nccl,
                      torch.path));
  }

  FoundHost& host_;
  const Answers& answers_;
  NetworkReport network_;
  int cores_ = 0;
};

FoundHost probeHost(const ListedHost& listed, const DiscoveryRequest& request, const std::stop_token& stop) {
  FoundHost found;
  found.host = listed;
  const auto unreachable = [&](const Error& error) {
    const std::string what = error.where.empty() || error.where == listed.name ? error.what : error.where + ": " + error.what;
    found.rows.push_back({"reachable", false, what, error.remedy});
    return found;
  };
  auto host = request.connect(listed.ssh, listed.name, request.connectWithin, stop);
  if (!host) return unreachable(host.error());
  const auto output = run(**host, {.argv = {"sh", "-c", probeScript()}, .deadline = request.answerWithin}, stop);
  if (!output) return unreachable(output.error());
  found = readAnswers(listed, output->out, std::time(nullptr));
  if (!found.reached) found.rows.push_back({"reachable", false, "answered nothing that is understood", "log in there by hand: does its shell start?"});
  return found;
}

}  // namespace

FoundHost readAnswers(ListedHost host, std::string_view output, std::int64_t now) {
  FoundHost found;
  found.host = std::move(host);
  const Answers answers = answersIn(output);
  found.reached = answers.contains("system");
  if (!found.reached) return found;
  found.rows.push_back({"reachable", true, found.host.ssh.host.empty() ? "this machine" : found.host.ssh.host, ""});
  HostReader(found, answers).read(now);
  return found;
}

std::vector<FoundHost> discover(const DiscoveryRequest& request, const std::stop_token& stop) {
  std::vector<FoundHost> found(request.hosts.size());
  std::mutex mutex;  // of `next` and of onHost
  std::size_t next = 0;
  const auto work = [&] {
    while (true) {
      std::size_t mine = 0;
      {
        const std::lock_guard lock(mutex);
        if (next == request.hosts.size()) return;
        mine = next++;
      }
      found[mine] = probeHost(request.hosts[mine], request, stop);
      const std::lock_guard lock(mutex);
      if (request.onHost) request.onHost(found[mine]);
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(kAtOnce, request.hosts.size()); ++i) threads.emplace_back(work);
  threads.clear();  // joins
  return found;
}

Result<Cluster> clusterOf(const std::vector<FoundHost>& hosts) {
  Json nodes = Json::array();
  std::vector<SshTarget> targets;  // of the nodes
  for (const FoundHost& found : hosts) {
    Json devices = Json::array();
    std::set<std::string> types;
    for (const FoundHost::Slot& slot : found.found) {
      if (!slot.isTicked) continue;
      Json device = {{"type", slot.type}};
      if (!slot.device.uuid.empty()) device["uuid"] = slot.device.uuid;
      devices.push_back(std::move(device));
      types.insert(slot.type);
    }
    if (devices.empty()) continue;
    const bool isUniform = types.size() == 1 && !devices.front().contains("uuid");
    Json node = {{"name", found.host.name}};
    if (isUniform) node["devices"] = {{"type", *types.begin()}, {"count", devices.size()}};
    else node["devices"] = devices;
    if (found.nic.bandwidth.value > 0) {
      node["nic_bandwidth_gbs"] = rounded(gbs(found.nic.bandwidth));
      node["nic_per_device"] = found.nic.perDevice;
    }
    nodes.push_back(std::move(node));
    targets.push_back(found.host.ssh);
  }
  if (nodes.empty()) return failed("discover", "found no device that can be used", "the rows above say why of each host");
  const Json json = {{"format", kClusterFormat}, {"nodes", nodes}};
  JsonContext context{"the hosts that were found", {}};
  JsonReader reader(json, context);
  Cluster cluster = readCluster(reader);
  if (context.error) return *std::move(context.error);
  for (std::size_t i = 0; i < targets.size(); ++i) cluster.nodes[i].ssh = std::move(targets[i]);
  return cluster;
}

Json toJson(const std::vector<FoundHost>& hosts) {
  Json all = Json::array();
  for (const FoundHost& found : hosts) {
    Json rows = Json::array(), devices = Json::array();
    for (const DiscoveryRow& row : found.rows) rows.push_back({{"check", row.check}, {"passed", row.passed}, {"detail", row.detail}, {"remedy", row.remedy}});
    for (const FoundHost::Slot& slot : found.found) {
      devices.push_back({{"index", slot.device.index}, {"product", slot.device.product}, {"type", slot.type}, {"uuid", slot.device.uuid},
                         {"memory_gib", rounded(gib(slot.device.memory))}, {"used_gib", rounded(gib(slot.device.used))},
                         {"driver", slot.device.driver}, {"capability", slot.device.capability}, {"processes", slot.device.processes},
                         {"problem", slot.device.problem}, {"ticked", slot.isTicked}});
    }
    all.push_back({{"host", found.host.name},
                   {"reached", found.reached},
                   {"rows", rows},
                   {"devices", devices},
                   {"links", found.links},
                   {"torch", found.torch ? Json{{"path", found.torch->path},
                                                {"version", found.torch->version},
                                                {"cuda", found.torch->cuda},
                                                {"nccl", found.torch->nccl},
                                                {"architectures", found.torch->architectures}}
                                         : Json()},
                   {"nic_gbs", rounded(gbs(found.nic.bandwidth))},
                   {"nic_per_device", found.nic.perDevice},
                   {"architecture", found.architecture},
                   {"libc", found.libc},
                   {"memory_gib", rounded(gib(found.memory))},
                   {"disk_free_gib", rounded(gib(found.diskFree))}});
  }
  return all;
}

}  // namespace evenkeel
