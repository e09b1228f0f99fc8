// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/preparation.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <thread>

#include "core/plan/features.h"
#include "core/plan/violations.h"
#include "launcher/deploy/elf.h"
#include "launcher/deploy/packed_file.h"
#include "launcher/deploy/pairs.h"
#include "launcher/discover/probe_script.h"
#include "launcher/job/gpu_check.h"

namespace evenkeel {
namespace {

constexpr std::uint64_t kSpareBytes = std::uint64_t{64} << 20U;  // for journals and logs

bool isNumericAddress(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> binary{};
  return ::inet_pton(AF_INET, text.c_str(), binary.data()) == 1 || ::inet_pton(AF_INET6, text.c_str(), binary.data()) == 1;
}

bool isLoopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

std::string ownArchitecture() {
  utsname system{};
  ::uname(&system);
  return system.machine;
}

std::string megabytes(std::uint64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

}  // namespace

void inParallel(std::size_t count, const std::function<void(std::size_t)>& f) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
}

std::optional<Error> objectionToEnvironment(const LaunchRequest& request) {
  const auto& nodes = request.plan.cluster.nodes;
  for (const auto& [node, environment] : request.run.nodeEnvironment) {
    if (std::ranges::find(nodes, node, &Node::name) == nodes.end())
      return invalidInput("environment", fmt::format("names \"{}\", which is no node of the plan's cluster", node), "expected the name of a node");
  }
  return std::nullopt;
}

Preparation::Preparation(const LaunchRequest& request, std::filesystem::path localCache, const Connector& connect,
                         JobObserver& observer, std::stop_token stop)
    : request_(request), localCache_(std::move(localCache)), connect_(connect), observer_(observer), stop_(std::move(stop)) {}

void Preparation::tell(PreflightRow row, Error::Code code) {
  const std::lock_guard lock(mutex_);
  if (!row.passed && stop_.stop_requested()) return;  // what was interrupted has found nothing
  if (!row.passed && !firstCode_) firstCode_ = code;
  observer_.onPreflight(row);
  rows_.push_back(std::move(row));
}

void Preparation::object(const std::string& node, const std::string& check, const Error& error) {
  const std::string detail = error.where.empty() || error.where == node ? error.what : error.where + ": " + error.what;
  tell({.node = node, .check = check, .passed = false, .detail = detail, .remedy = error.remedy}, error.code);
}

std::optional<Error> Preparation::objection() const {
  if (stop_.stop_requested()) return Error{Error::Code::Cancelled, "launch", "was stopped before anything was started", ""};
  if (!firstCode_) return std::nullopt;
  std::string all;
  for (const PreflightRow& row : rows_) {
    if (row.passed) continue;
    all += fmt::format("{}{}{}: {}", all.empty() ? "" : "\n  ", row.node.empty() ? "" : row.node + ": ", row.check, row.detail);
    if (!row.remedy.empty()) all += "; " + row.remedy;
  }
  return Error{*firstCode_, "preflight", all, ""};
}

void Preparation::examine() {
  examinePlan();
  examineData();
  if (firstCode_ || stop_.stop_requested()) return;
  if (request_.slurm) return examineSlurm();
  for (NodeLayout& layout : layoutOf(request_.plan)) {
    PreparedNode node;
    node.ssh = targetOf(request_, layout);
    node.layout = std::move(layout);
    nodes_.push_back(std::move(node));
  }
  examineTargets();
  if (firstCode_ || stop_.stop_requested()) return;
  inParallel(nodes_.size(), [this](std::size_t i) { examineNode(nodes_[i]); });
  if (!firstCode_) examineTorches();
  examineNccl();
  if (!firstCode_ && !stop_.stop_requested()) examineAddresses();
  if (!firstCode_ && !stop_.stop_requested()) examineInterfaces();
}

// A node without an ssh host is this machine, and only one of them can be that: otherwise a forgotten host would train here in silence
// (DeepSpeed #3669, #2612).
void Preparation::examineTargets() {
  if (request_.local) return;
  std::string names;
  int here = 0;
  for (const PreparedNode& node : nodes_) {
    if (!node.isHere()) continue;
    if (++here <= 3) names += (names.empty() ? "" : ", ") + node.layout.name;
  }
  if (here < 2) return;
  if (here > 3) names += fmt::format(" and {} more", here - 3);
  object("", "reachable", invalidInput("", names + " name no ssh host, so that all of them would be this machine",
                                       "give them ssh hosts in the cluster, or launch with --local to run every node here"));
}

void Preparation::examinePlan() {
  for (const Violation& violation : shapeViolations(request_.plan)) {
    object("", "plan", invalidInput(violation.where, violation.what, violation.remedy));
  }
  if (request_.plan.pipelines.empty()) object("", "plan", invalidInput("plan", "has no pipelines"));
  if (auto objection = objectionToEnvironment(request_)) object("", "run", *objection);
  if (request_.run.steps < 1) object("", "plan", invalidInput("run", "has no steps", "say how many with --steps"));
  const auto isAway = [&](const NodeLayout& layout) { return !targetOf(request_, layout).host.empty(); };
  auto bundle = request_.slurm || std::ranges::any_of(layoutOf(request_.plan), isAway) ? slimBundle(request_.programs, localCache_)
                                                                     : programBundle(request_.programs);
  if (bundle) {
    programs_ = *std::move(bundle);
  } else {
    object("", "programs", bundle.error());
  }
}

/// The login node stands for all: what Slurm's nodes lack shows when they start, in the job's own log.
void Preparation::examineSlurm() {
  if (auto objection = objectionToOptions(*request_.slurm)) return object("", "slurm", *objection);
  const std::string login = request_.slurm->login.host.empty() ? "this machine" : request_.slurm->login.host;
  nodes_.emplace_back();
  PreparedNode& node = nodes_.front();
  node.layout.name = login;
  node.ssh = request_.slurm->login;
  node.isLogin = true;
  examineNode(node);
  if (!node.host || stop_.stop_requested()) return;
  const auto names = slurmNodes(*node.host, request_.timeouts.command, stop_);
  if (!names) return object(login, "slurm", names.error());
  const auto layouts = layoutOf(request_.plan);
  slurmMatch_ = matchNodes(layouts, *names);
  if (!slurmMatch_.unknownNames.empty()) {
    return object(login, "slurm",
                  invalidInput("", fmt::format("knows no node {}, but others of the plan", fmt::join(slurmMatch_.unknownNames, ", ")),
                               "name all of the plan's nodes as `sinfo` does, or none"));
  }
  if (!slurmMatch_.byName) {
    if (auto objection = objectionToAnyNodes(request_.plan, layouts)) return object(login, "slurm", *objection);
  }
  sbatch_ = sbatchOptions(request_, layouts, slurmMatch_);
  const auto tried = tryJob(*node.host, sbatch_, request_.timeouts.command, stop_);
  if (!tried) return object(login, "slurm", tried.error());
  tell({.node = login,
        .check = "slurm",
        .passed = true,
        .detail = fmt::format("{} ({})", *tried, slurmMatch_.byName ? "the plan's nodes" : "any nodes: it knows none of the plan's names")});
}

void Preparation::examineData() {
  const bool isRehearsal = request_.run.rehearsal.has_value();
  const bool needsNone = isRehearsal && request_.run.train.empty();
  const std::filesystem::path nothing = localCache_ / "no-text";
  if (needsNone) {
    if (auto written = writeFileAtomically(nothing, "\n", true); !written) return object("", "data", written.error());
  }
  auto packed = packData(needsNone ? std::vector<std::string>{nothing.string()} : request_.run.train, localCache_, request_.run.validation);
  if (!packed) return object("", "data", packed.error());
  if (auto objection = objectionTo(*packed, request_.plan.model.vocab); objection && !isRehearsal) return object("", "data", *std::move(objection));
  data_ = *std::move(packed);
  const auto window = static_cast<std::uint64_t>(request_.plan.training.sequenceLength) + 1;
  const auto width = static_cast<std::uint64_t>(bytesOf(data_->token));
  const auto isShort = [&](const std::vector<std::string>& names, std::uint64_t bytes) {
    if (names.empty() || bytes / width >= window) return false;
    object("", "data",
           invalidInput(names.front(), fmt::format("{}{} {}, fewer than the {} of one sample (sequence_length + 1)",
                                                   names.size() > 1 ? fmt::format("and {} more have ", names.size() - 1) : "has ", bytes / width, data_->isText ? "bytes" : "tokens", window),
                        "give more text or train shorter sequences"));
    return true;
  };
  if (!isRehearsal && (isShort(request_.run.train, data_->trainBytes) || isShort(request_.run.validation, data_->bytes - data_->trainBytes))) return;
  const std::string what = data_->isText ? "training text" : fmt::format("tokens ({})", name(data_->token));
  if (!needsNone) tell({.check = "data", .passed = true, .detail = fmt::format("{} of {}", megabytes(data_->bytes), what)});
}

void Preparation::examineNode(PreparedNode& node) {
  const std::string& name = node.layout.name;
  auto host = connect_(node.ssh, name, request_.timeouts.connect, stop_);
  if (!host) return object(name, "reachable", host.error());
  node.host = *std::move(host);
  auto facts = probe(*node.host, request_.timeouts.command, stop_, node.isLogin ? request_.slurm->folder : std::string());
  if (!facts) return object(name, "reachable", facts.error());
  node.facts = *std::move(facts);
  tell({.node = name, .check = "reachable", .passed = true, .detail = node.ssh.host.empty() ? "this machine" : node.host->address()});
  if (node.facts.architecture != ownArchitecture()) {
    return object(name, "machine",
                  failed(name, fmt::format("is {}, our programs are for {}", node.facts.architecture, ownArchitecture()),
                         "build them for that machine too"));
  }
  // programs that were tried there say by themselves what they lack; before the copying this is all that can be said
  const std::string version = node.facts.libc.starts_with("glibc ") ? node.facts.libc.substr(6) : std::string();
  if (!node.isHere() && !programs_->glibc.empty() && compareVersions(version, programs_->glibc) < 0) {
    return object(name, "machine",
                  failed(name,
                         fmt::format("has {}, and our programs need glibc {}", version.empty() ? "no glibc" : node.facts.libc,
                                     programs_->glibc),
                         "build them on a system as old as the oldest node"));
  }
  tell({.node = name,
        .check = "machine",
        .passed = true,
        .detail = fmt::format("{}, {}", node.facts.architecture, node.facts.libc.empty() ? "no glibc" : node.facts.libc)});
  examineCards(node);
  examineDisk(node);
  examinePrograms(node);
}

/// Cards, their driver, PyTorch: each that does not fit is named before anything is sent. CPU nodes need none of it.
void Preparation::examineCards(PreparedNode& node) {
  if (request_.run.rehearsal || node.isLogin || !usesCards(request_.plan, node.layout)) return;
  const std::string& name = node.layout.name;
  const auto output = evenkeel::run(*node.host, {.argv = {"sh", "-c", probeScript()}, .deadline = request_.timeouts.command}, stop_);
  if (!output) return object(name, "devices", output.error());
  node.found = readAnswers({.name = name, .slotCount = {}, .ssh = node.ssh}, output->out, std::time(nullptr));
  GpuCheck check = checkGpus(*node.found, request_.plan, node.layout, workerBuilds(request_.programs));
  for (PreflightRow& row : check.rows) tell(std::move(row));
  if (!check.build) return;
  auto bundle = slimBundle(check.build->folder, localCache_);
  if (!bundle) return object(name, "programs", bundle.error());
  node.torch = check.build->torch;
  node.torchLibraries = check.torchLibraries;
  node.bundle = std::make_shared<const Bundle>(node.torchLibraries.empty() ? *std::move(bundle) : withoutTorch(*bundle));
  node.environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  if (!node.torchLibraries.empty()) node.environment["LD_LIBRARY_PATH"] = node.torchLibraries;
}

void Preparation::examineTorches() {
  std::vector<std::pair<std::string, std::string>> torchOf;
  for (const PreparedNode& node : nodes_) torchOf.emplace_back(node.layout.name, node.torch);
  if (const std::string unlike = unlikeTorches(torchOf); !unlike.empty())
    object("", "torch", invalidInput("", unlike + "; workers of unlike LibTorches do not understand each other",
                                     "use the same PyTorch on all nodes, and plan nodes with cards and nodes without apart"));
}

/// Ranks of unlike NCCL versions do not understand each other.
void Preparation::examineNccl() {
  std::vector<std::pair<std::string, FoundTorch>> torches;
  for (const PreparedNode& node : nodes_) {
    if (node.found && node.found->torch && !node.torchLibraries.empty()) torches.emplace_back(node.layout.name, *node.found->torch);
  }
  if (const std::string unlike = unlikeNccl(torches); !unlike.empty())
    object("", "nccl", invalidInput("", unlike + "; ranks of unlike versions do not understand each other", "install the same PyTorch on all of them"));
}

/// The way that the nodes reach each other is that which NCCL and Gloo are told to take.
void Preparation::examineInterfaces() {
  for (PreparedNode& node : nodes_) {
    if (!node.found) continue;
    const auto variables = interfaceVariables(node.found->addresses, node.trainAddress);
    std::string said;
    for (const auto& [variable, value] : variables) {
      node.environment[variable] = value;
      said += fmt::format("{}{}={}", said.empty() ? "" : " ", variable, value);
    }
    tell({.node = node.layout.name,
          .check = "interfaces",
          .passed = true,
          .detail = said.empty() ? fmt::format("none is named that has {}: NCCL and Gloo choose themselves", node.trainAddress)
                                 : fmt::format("{} (that of {}; another one: --env {}:NAME=VALUE)", said, node.trainAddress, node.layout.name)});
  }
}

void Preparation::examineDisk(const PreparedNode& node) {
  const std::uint64_t needed = kSpareBytes + (node.isHere() ? 0 : bytesOf(bundleFor(node).files) + data_->bytes);
  const std::string found = fmt::format("{} free in {}", megabytes(node.facts.freeBytes), node.facts.cacheDirectory);
  if (!node.facts.unwritable.empty()) {
    object(node.layout.name, "disk",
           failed("", fmt::format("{} cannot be written", node.facts.unwritable),
                  "set XDG_CACHE_HOME and XDG_DATA_HOME there to folders that can"));
  } else if (node.facts.freeBytes < needed) {
    object(node.layout.name, "disk", failed("", fmt::format("{}; {} are needed", found, megabytes(needed))));
  } else {
    tell({.node = node.layout.name, .check = "disk", .passed = true, .detail = found});
  }
}

void Preparation::examinePrograms(PreparedNode& node) {
  if (node.isHere() && !node.bundle) {
    node.programs = std::filesystem::absolute(request_.programs).string();
    node.data = data_->file.string();
    return tryOut(node);
  }
  const std::string& cache = node.facts.cacheDirectory;
  const Bundle data = bundleOf(*data_);
  const Bundle& bundle = bundleFor(node);
  node.programs = cache + "/" + bundle.directory;
  node.data = cache + "/" + data.directory + "/" + kDataFile;
  auto missingPrograms = missingFiles(*node.host, cache, bundle, request_.timeouts.command, stop_);
  if (!missingPrograms) return object(node.layout.name, "programs", missingPrograms.error());
  auto missingData = missingFiles(*node.host, cache, data, request_.timeouts.command, stop_);
  if (!missingData) return object(node.layout.name, "data", missingData.error());
  node.missingPrograms = *std::move(missingPrograms);
  node.missingData = *std::move(missingData);
  if (node.missingPrograms.empty()) return tryOut(node);
  const std::uint64_t missing = bytesOf(node.missingPrograms) + bytesOf(node.missingData);
  tell({.node = node.layout.name,
        .check = "programs",
        .passed = true,
        .detail = missing == 0 ? "are there, from another version"
                               : fmt::format("{} are to be copied (packed: less)", megabytes(missing))});
}

void Preparation::tryOut(PreparedNode& node) {
  const std::string& name = node.layout.name;
  auto printed = tryPrograms(*node.host, node.programs, request_.timeouts.command, stop_, node.torchLibraries);
  if (!printed) return object(name, "programs", printed.error());
  tell({.node = name, .check = "programs", .passed = true, .detail = "run"});
  auto features = parseFeatures(*printed, name + ": evenkeel-worker --features");
  if (!features) return object(name, "features", features.error());
  // Virtual devices can play any plan.
  const auto reasons = request_.run.rehearsal ? std::vector<Violation>() : notLaunchable(request_.plan, *features);
  for (const Violation& reason : reasons) object(name, "features", invalidInput(reason.where, reason.what, reason.remedy));
  if (reasons.empty()) tell({.node = name, .check = "features", .passed = true, .detail = "the worker can execute this plan"});
}

bool Preparation::isLoopbackEnough() const {
  return std::ranges::all_of(nodes_,
                             [&](const PreparedNode& node) { return node.facts.machine == nodes_.front().facts.machine; });
}

/// Numeric addresses pass through; a name or a loopback that another machine would be told is refused here, not after start.
void Preparation::examineAddresses() {
  std::string ownAddress;  // of this machine, as some node sees it
  for (const PreparedNode& node : nodes_) {
    if (!node.isHere() && ownAddress.empty()) ownAddress = node.host->addressOfThisEnd();
  }
  const bool oneMachine = isLoopbackEnough();
  for (PreparedNode& node : nodes_) {
    const std::string& name = node.layout.name;
    const std::string& given =
        request_.local ? std::string() : request_.plan.cluster.nodes[static_cast<std::size_t>(node.layout.node)].trainAddress;
    std::string source = "as the plan says";
    node.trainAddress = given;
    if (given.empty()) {
      source = oneMachine ? "all nodes are one machine" : "that of the SSH connection";
      node.trainAddress = oneMachine ? "127.0.0.1" : node.isHere() ? ownAddress : node.host->address();
    }
    if (node.trainAddress.empty()) {
      object(name, "address", invalidInput("", "its address is not known here", "give the node a train_address"));
    } else if (!isNumericAddress(node.trainAddress)) {
      object(name, "address",
             invalidInput("", fmt::format("train_address \"{}\" is no numeric address", node.trainAddress),
                          "give its IPv4 or IPv6 address"));
    } else if (!oneMachine && isLoopback(node.trainAddress)) {
      object(name, "address",
             invalidInput("", fmt::format("{} is loopback, which the other machines cannot reach", node.trainAddress),
                          "give the node a train_address"));
    } else {
      tell({.node = name, .check = "address", .passed = true, .detail = fmt::format("{} ({})", node.trainAddress, source)});
    }
  }
}

void Preparation::copy() {
  packers_ = packersHere();
  inParallel(nodes_.size(), [this](std::size_t i) {
    if (!nodes_[i].isHere() || nodes_[i].bundle) copyTo(nodes_[i]);
  });
  examineConnections();
}

/// That each node can connect to each other one where training will: loopback, a firewall or the wrong interface shows here, with
/// both names, and not as a silence after the start.
void Preparation::examineConnections() {
  if (nodes_.size() < 2 || isLoopbackEnough() || firstCode_ || stop_.stop_requested()) return;
  std::vector<PairNode> pairs;
  for (const PreparedNode& node : nodes_)
    pairs.push_back({.name = node.layout.name,
                     .host = node.host.get(),
                     .agent = node.programs + "/evenkeel-agent",
                     .address = node.trainAddress});
  const auto faults = connectionMatrix(pairs, request_.timeouts.command, stop_);
  if (!faults) return object("", "connections", faults.error());
  for (const PairFault& fault : *faults) {
    if (fault.from == fault.to)
      object(fault.from, "connections",
             failed("", fmt::format("cannot listen at its address: {}", fault.reason), "give the node its own train_address"));
    else
      object(fault.from, "connections",
             unreachable("", fmt::format("cannot connect to {}: {}", fault.to, fault.reason),
                         "give both nodes the train_address of an interface that they share, and open it in the firewall"));
  }
  if (faults->empty())
    tell({.node = "",
          .check = "connections",
          .passed = true,
          .detail = fmt::format("each of {} nodes can connect to each other", nodes_.size())});
}

void Preparation::copyTo(PreparedNode& node) {
  const std::string& name = node.layout.name;
  const auto told = [&](std::uint64_t done, std::uint64_t total) {
    const std::lock_guard lock(mutex_);
    observer_.onCopy(name, done, total);
  };
  CopyOptions options{.packed = localCache_ / "packed", .packer = {}};
  for (const std::string& packer : packers_) {
    if (options.packer.empty() && std::ranges::find(node.facts.unpackers, packer) != node.facts.unpackers.end())
      options.packer = packer;
  }
  auto put = copyFiles(*node.host, node.facts.cacheDirectory, bundleFor(node), node.missingPrograms, options, told, stop_);
  if (!put) return object(name, "programs", put.error());
  put = copyFiles(*node.host, node.facts.cacheDirectory, bundleOf(*data_), node.missingData, {}, told, stop_);
  if (!put) return object(name, "data", put.error());
  if (!node.missingPrograms.empty()) tryOut(node);  // what was there was tried before
}

}  // namespace evenkeel
