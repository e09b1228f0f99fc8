// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include "launcher/job/records.h"
#include "launcher/ssh/quoting.h"

namespace evenkeel {
namespace {

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

/// What a program of Slurm's says without its own name before it, on one line.
std::string saidBy(const CommandOutput& output) {
  std::string said;
  std::istringstream lines(output.err.empty() ? output.out : output.err);
  for (std::string line; std::getline(lines, line);) {
    for (const std::string_view prefix : {"sbatch: ", "sinfo: ", "scancel: ", "slurm_load_node: ", "slurm_load_partitions: ", "error: ", "fatal: ", "allocation failure: "}) {
      if (line.starts_with(prefix)) line.erase(0, prefix.size());
    }
    if (!line.empty()) said += (said.empty() ? "" : "; ") + line;
  }
  return said.empty() ? output.ending.text() : said;
}

struct Trouble {
  const char* sign;  // in what its programs say
  const char* what;
  const char* remedy;
};
/// Why Slurm as a whole does not work, in the order in which it is looked for: of several lines, the first cause counts.
constexpr std::array<Trouble, 6> kTroubles = {{
    {"unge", "the login node cannot prove who it is: MUNGE does not run there, or has another key than the controller", "ask the cluster's administrator"},
    {"configuration source", "there is no slurm.conf, so that the login node does not know its controller", "set SLURM_CONF there, or name another login node with --slurm-login"},
    {"slurm.conf", "its slurm.conf cannot be used", "try `sinfo` there"},
    {"Zero Bytes were transmitted", "the controller (slurmctld) does not trust the login node", "ask the cluster's administrator"},
    {"contact slurm controller", "the controller (slurmctld) cannot be reached from there", "wait until it runs again, or ask the cluster's administrator"},
    {"timed out", "the controller (slurmctld) is too slow to answer", "try again"},
}};

/// Null if what was said is no sign of one.
const Trouble* troubleIn(const std::string& said) {
  const auto* const trouble = std::ranges::find_if(kTroubles, [&](const Trouble& one) { return said.find(one.sign) != std::string::npos; });
  return trouble == kTroubles.end() ? nullptr : trouble;
}

/// The Error of a program of Slurm's that failed: in our words where Slurm itself is the trouble, else as it refuses.
Error errorOf(const std::string& login, const CommandOutput& output, const std::string& refusal, const std::string& remedy) {
  const std::string said = saidBy(output);
  if (const Trouble* const trouble = troubleIn(said)) return failed(login, fmt::format("Slurm does not work: {}", trouble->what), trouble->remedy);
  return failed(login, fmt::format("{}: {}", refusal, said), remedy);
}

bool isCpu(const std::string& type) { return type == "cpu" || type.starts_with("cpu@"); }

/// What a node must have for its ranks: "4 x A100-80-SXM".
std::string needsOf(const Plan& plan, const NodeLayout& layout) {
  std::map<std::string, int> counts;
  for (const NodeJob::Rank& rank : layout.ranks) {
    const auto device = plan.cluster.find(rank.device);
    const std::string type = device ? plan.cluster.typeOf(*device).name : rank.device;
    ++counts[isCpu(type) ? "cpu" : type];
  }
  std::string text;
  for (const auto& [type, count] : counts) {
    if (type != "cpu") text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, type);
  }
  return text;
}

struct SlurmEnding {
  const char* state;
  const char* text;
};
/// Source: squeue(1), "JOB STATE CODES".
constexpr std::array<SlurmEnding, 8> kEndings = {{{"TIMEOUT", "ended it at its time limit"},
                                             {"PREEMPTED", "ended it in favour of another job"},
                                             {"NODE_FAIL", "ended it because one of its nodes failed"},
                                             {"OUT_OF_MEMORY", "ended it because it used more memory than it had asked for"},
                                             {"DEADLINE", "ended it at its deadline"},
                                             {"BOOT_FAIL", "could not boot its nodes"},
                                             {"CANCELLED", "was told to cancel it"},
                                             {"REVOKED", "has moved it to another cluster"}}};

}  // namespace

SlurmMatch matchNodes(const std::vector<NodeLayout>& layouts, const std::vector<std::string>& slurmNodes) {
  const std::set<std::string> known(slurmNodes.begin(), slurmNodes.end());
  SlurmMatch match;
  for (const NodeLayout& layout : layouts) {
    if (!known.contains(layout.name)) match.unknownNames.push_back(layout.name);
  }
  if (match.unknownNames.size() == layouts.size()) match.unknownNames.clear();
  else match.byName = true;
  return match;
}

std::optional<Error> objectionToAnyNodes(const Plan& plan, const std::vector<NodeLayout>& layouts) {
  for (const NodeLayout& layout : layouts) {
    const std::string needs = needsOf(plan, layout), first = needsOf(plan, layouts.front());
    if (needs == first) continue;
    const auto orCores = [](const std::string& text) { return text.empty() ? std::string("CPU cores") : text; };
    return invalidInput("", fmt::format("{} has {} and {} has {}, and Slurm knows neither name: which of its nodes is which?",
                                        layouts.front().name, orCores(first), layout.name, orCores(needs)),
                        "name the plan's nodes as `sinfo` does");
  }
  return std::nullopt;
}

std::optional<Error> objectionToOptions(const SlurmRequest& request) {
  for (const auto& [name, value] : request.options) {
    const bool isName = !name.empty() && std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
    if (!isName || name.starts_with('-'))
      return invalidInput("--slurm-option " + name, "is no long option of sbatch", "expected NAME=VALUE or NAME: partition=gpu, exclusive");
    for (const std::string_view ours : {"array", "nodes", "ntasks", "ntasks-per-node", "output", "error", "parsable", "wrap", "test-only", "requeue", "wait", "chdir"}) {
      if (name == ours) return invalidInput("--slurm-option " + name, "is set by the plan or by Evenkeel", "leave it out");
    }
    if (value.find('\n') != std::string::npos) return invalidInput("--slurm-option " + name, "holds a line's end");
  }
  return std::nullopt;
}

std::vector<std::string> sbatchOptions(const LaunchRequest& request, const std::vector<NodeLayout>& layouts, const SlurmMatch& match) {
  std::size_t most = 0;
  bool anyGpu = false;
  std::string names;
  for (const NodeLayout& layout : layouts) {
    most = std::max(most, layout.ranks.size());
    anyGpu = anyGpu || !needsOf(request.plan, layout).empty();
    names += (names.empty() ? "" : ",") + layout.name;
  }
  std::vector<std::pair<std::string, std::string>> options = {
      {"nodes", std::to_string(layouts.size())}, {"ntasks-per-node", "1"}, {anyGpu ? "gpus-per-node" : "cpus-per-task", std::to_string(most)}};
  if (match.byName) options.emplace_back("nodelist", names);
  for (const auto& [name, value] : request.slurm->options) {
    std::erase_if(options, [&, key = name](const auto& ours) { return ours.first == key; });
    options.emplace_back(name, value);
  }
  // a run is started once: what goes on is a new run, from a checkpoint
  std::vector<std::string> words = {"--no-requeue"};
  for (const auto& [name, value] : options) words.push_back(value.empty() ? "--" + name : fmt::format("--{}={}", name, value));
  return words;
}

std::string slurmScript(const std::string& agent, const std::string& run, std::size_t nodes) {
  // all cores, cards and memory of the allocation for the one task of each node; a node that has failed leaves the others their last words
  return fmt::format("#!/bin/sh\nexec srun --nodes={} --ntasks={} --ntasks-per-node=1 --cpu-bind=none --mem=0 --mpi=none --wait=0 --kill-on-bad-exit=0 {}\n",
                     nodes, nodes, shellLine({agent, "step", "--dir", run}));
}

Result<std::vector<std::string>> slurmNodes(Host& login, std::chrono::milliseconds deadline, std::stop_token stop) {
  auto output = run(login, {.argv = {"sinfo", "-h", "-N", "-o", "%N"}, .deadline = deadline}, std::move(stop));
  if (!output) return std::move(output).error();
  if (output->ending.exitStatus == 127)
    return failed(login.name(), "has no Slurm: there is no sinfo", "name a login node of the cluster with --slurm-login, or add the folder of its programs to PATH in ~/.bashrc there");
  if (!output->ending.wasGood()) return errorOf(login.name(), *output, "Slurm does not answer", "try `sinfo` there");
  std::set<std::string> names;  // a node is listed once a partition
  std::istringstream lines(output->out);
  for (std::string name; lines >> name;) names.insert(name);
  return std::vector<std::string>(names.begin(), names.end());
}

Result<std::string> tryJob(Host& login, const std::vector<std::string>& options, std::chrono::milliseconds deadline, std::stop_token stop) {
  std::vector<std::string> argv = {"sbatch", "--test-only"};
  argv.insert(argv.end(), options.begin(), options.end());
  bool isGiven = false;
  const auto script = [&](std::size_t) { return std::exchange(isGiven, true) ? std::string() : std::string("#!/bin/sh\n"); };
  auto output = run(login, {.argv = std::move(argv), .input = script, .deadline = deadline}, std::move(stop));
  if (!output) return std::move(output).error();
  if (!output->ending.wasGood()) return errorOf("", *output, "sbatch refuses the job", "change it with --slurm-option NAME=VALUE");
  return saidBy(*output);
}

Result<std::string> submitJob(Host& login, const std::vector<std::string>& options, const std::string& run, const std::string& name,
                              std::chrono::milliseconds deadline, std::stop_token stop) {
  std::vector<std::string> argv = {"sbatch", "--parsable", "--job-name=" + name, "--chdir=" + run, "--output=" + run + "/" + kSlurmLog};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.push_back(run + "/" + kSlurmScript);
  auto output = evenkeel::run(login, {.argv = std::move(argv), .deadline = deadline}, std::move(stop));
  if (!output) return std::move(output).error();
  if (!output->ending.wasGood()) return errorOf(login.name(), *output, "sbatch refuses the job", "change it with --slurm-option NAME=VALUE");
  const std::string printed = trimmed(output->out);
  const std::string id = printed.substr(0, printed.find(';'));  // "17;cluster"
  if (id.empty() || !std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; }))
    return failed(login.name(), fmt::format("sbatch printed \"{}\", which is no number of a job", printed));
  return id;
}

Result<void> cancelJob(Host& login, const std::string& job, std::chrono::milliseconds deadline) {
  // Slurm tells nobody when it has ended the processes, so that it has to be asked
  const std::string script =
      "said=$(scancel \"$1\" 2>&1) || case $said in *'Invalid job id'*) exit 0;; *) echo \"$said\" >&2; exit 1;; esac\n"
      "while squeue -h -t PD,R,CF,CG,S,ST,SO -j \"$1\" -o %T 2>/dev/null | grep -q .; do sleep 0.3; done";
  auto output = run(login, {.argv = {"sh", "-c", script, "sh", job}, .deadline = deadline});
  if (!output) return std::move(output).error();
  if (!output->ending.wasGood()) return errorOf(login.name(), *output, fmt::format("job {} cannot be cancelled", job), "");
  return {};
}

std::string describeQueue(const std::string& job, const Json& queue) {
  std::string state = textOf(queue, "state");
  const std::string reason = textOf(queue, "reason"), begin = textOf(queue, "begin"), nodes = textOf(queue, "nodes");
  if (state.empty()) {
    const Trouble* const trouble = troubleIn(reason);
    return fmt::format("Slurm cannot be asked about job {}: {}", job, trouble != nullptr ? trouble->what : reason);
  }
  std::ranges::transform(state, state.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  std::string text = fmt::format("Slurm job {} is {}", job, state);
  if (!nodes.empty()) text += " on " + nodes;
  if (!reason.empty()) text += ": " + reason;
  if (state == "pending" && !begin.empty()) text += ", expected to start at " + begin;
  return text;
}

std::optional<std::string> endedBySlurm(const std::string& job, const Json& queue) {
  const std::string state = textOf(queue, "state"), said = textOf(queue, "said"), limit = textOf(queue, "limit");
  if (state == "COMPLETED") return std::nullopt;
  const auto* const known = std::ranges::find(kEndings, state, &SlurmEnding::state);
  if (known == kEndings.end())
    return fmt::format("Slurm job {} is over ({}{}){}", job, state, state == "GONE" ? ": " + textOf(queue, "reason") : "",
                       said.empty() ? "" : "; its log ends with: " + said);
  return fmt::format("Slurm job {}: Slurm {} ({}{})", job, known->text, state, state == "TIMEOUT" && !limit.empty() ? ", " + limit : "");
}

}  // namespace evenkeel
