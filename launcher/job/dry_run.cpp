// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/dry_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "launcher/deploy/data.h"
#include "launcher/job/preparation.h"
#include "launcher/job/slurm.h"
#include "launcher/ssh/quoting.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

/// Nothing for this machine.
std::vector<std::string> sshCommand(const SshTarget& target) {
  if (target.host.empty()) return {};
  std::vector<std::string> ssh = {"ssh"};
  if (target.port != SshTarget{}.port) ssh.insert(ssh.end(), {"-p", std::to_string(target.port)});  // else as ~/.ssh/config says
  if (!target.identity.empty()) ssh.insert(ssh.end(), {"-i", target.identity});
  if (!target.knownHosts.empty()) ssh.insert(ssh.end(), {"-o", "UserKnownHostsFile=" + target.knownHosts});
  if (!target.proxyJump.empty()) ssh.insert(ssh.end(), {"-J", target.proxyJump});
  ssh.push_back(target.user.empty() ? target.host : target.user + "@" + target.host);
  return ssh;
}

/// `programs` is quoted already.
void addCopy(std::vector<std::string>& lines, const Bundle& bundle, const std::vector<std::string>& ssh, const std::string& programs) {
  const std::string unpack = fmt::format("mkdir -p {0} && tar -C {0} -xf -", programs);
  lines.emplace_back("# what is copied, as a command; launch itself sends only what lacks there");
  lines.push_back(fmt::format("tar -C {} -cf - evenkeel-agent evenkeel-worker{} | {}",
                              shellWord(bundle.files.front().file.parent_path().string()), bundle.files.size() > 2 ? " lib" : "",
                              ssh.empty() ? fmt::format("sh -c {}", shellWord(unpack)) : shellLine(ssh) + " " + shellWord(unpack)));
}

Result<std::vector<std::string>> commandsOnNodes(const LaunchRequest& request, const fs::path& localCache) {
  const auto isAway = [&](const NodeLayout& layout) { return !targetOf(request, layout).host.empty(); };
  const bool anyAway = std::ranges::any_of(layoutOf(request.plan), isAway);
  auto bundle = anyAway ? slimBundle(request.programs, localCache) : programBundle(request.programs);
  if (!bundle) return std::move(bundle).error();
  const auto layouts = layoutOf(request.plan);
  if (layouts.empty()) return invalidInput("plan", "uses no devices");
  const std::string id = newRunId();
  std::size_t worldSize = 0;
  for (const NodeLayout& layout : layouts) worldSize += layout.ranks.size();
  std::vector<std::string> lines{fmt::format("# run {}: {} ranks on {} nodes; node {} hosts the store and is started first", id,
                                             worldSize, layouts.size(), layouts.front().name)};
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const SshTarget target = targetOf(request, layouts[i]);
    const bool isHere = target.host.empty();
    // unquoted, so that the shell there puts its home directory in
    const std::string directory = "\"${XDG_DATA_HOME:-$HOME/.local/share}\"/evenkeel/" + runDirectoryOf(id, i);
    const std::string programs = isHere ? shellWord(fs::absolute(request.programs).string())
                                        : "\"${XDG_CACHE_HOME:-$HOME/.cache}\"/evenkeel/" + bundle->directory;
    const std::vector<std::string> ssh = sshCommand(target);
    const auto there = [&](const std::string& command) { return isHere ? command : shellLine(ssh) + " " + shellWord(command); };
    lines.push_back(fmt::format("# node {} ({}), node rank {}", layouts[i].name, isHere ? "this machine" : target.host, i));
    if (!isHere) addCopy(lines, *bundle, ssh, programs);
    lines.push_back(there(fmt::format("umask 077; mkdir -p {}", directory)) +
                    fmt::format("  # then {} and {} go there, see resources/docs/protocol.md", kJobFile, kNodeFile));
    for (const NodeJob::Rank& rank : layouts[i].ranks) {
      lines.push_back(
          fmt::format("#   rank {} on {}: RANK={} WORLD_SIZE={} LOCAL_RANK={} LOCAL_WORLD_SIZE={} NODE_RANK={} "
                      "{}/evenkeel-worker --job {}/{}",
                      rank.rank, rank.device, rank.rank, worldSize, rank.localRank, layouts[i].ranks.size(), i, programs,
                      directory, kJobFile));
    }
    lines.push_back(there(fmt::format("{}/evenkeel-agent run --dir {}", programs, directory)));
    lines.push_back(there(fmt::format("{}/evenkeel-agent tail --dir {} --from 1", programs, directory)));
    lines.push_back(there(fmt::format("{}/evenkeel-agent stop --dir {}", programs, directory)));
  }
  return lines;
}

Result<std::vector<std::string>> commandsForSlurm(const LaunchRequest& request, const fs::path& localCache) {
  if (auto objection = objectionToOptions(*request.slurm)) return *objection;
  auto bundle = slimBundle(request.programs, localCache);
  if (!bundle) return std::move(bundle).error();
  const auto layouts = layoutOf(request.plan);
  if (layouts.empty()) return invalidInput("plan", "uses no devices");
  const std::string id = newRunId();
  const auto folder = [&](const char* variable) {
    // unquoted, so that the shell there puts its home directory in
    return request.slurm->folder.empty() ? fmt::format("\"{}\"", variable) : shellWord(request.slurm->folder);
  };
  const std::string run = folder("${XDG_DATA_HOME:-$HOME/.local/share}") + "/evenkeel/runs/" + id;
  const std::string programs = folder("${XDG_CACHE_HOME:-$HOME/.cache}") + "/evenkeel/" + bundle->directory;
  const auto ssh = sshCommand(request.slurm->login);
  const auto there = [&](const std::string& command) { return ssh.empty() ? command : shellLine(ssh) + " " + shellWord(command); };
  std::vector<std::string> lines{fmt::format("# run {}: a Slurm job on {} nodes, handed over on {}", id, layouts.size(),
                                             ssh.empty() ? "this machine" : request.slurm->login.host)};
  addCopy(lines, *bundle, ssh, programs);
  lines.push_back(there(fmt::format("umask 077; mkdir -p {}", run)) +
                  fmt::format("  # then {}, {} and {} go there, see resources/docs/protocol.md", kJobFile, kNodesFile, kSlurmScript));
  const std::string script = slurmScript("AGENT", "RUN", layouts.size());
  lines.push_back(fmt::format("#   {}: {}", kSlurmScript, script.substr(script.find("exec "), script.find("AGENT") - script.find("exec "))) +
                  fmt::format("{}/evenkeel-agent step --dir {}", programs, run));
  lines.emplace_back("# where Slurm knows the names of the plan's nodes, also --nodelist of them");
  lines.push_back(there(fmt::format("sbatch --parsable --job-name=evenkeel-{} --chdir={} --output={}/{} {} {}/{}", id, run, run, kSlurmLog,
                                    shellLine(sbatchOptions(request, layouts, {})), run, kSlurmScript)));
  std::string from;
  for (std::size_t i = 0; i < layouts.size(); ++i) from += " --from 1";
  lines.push_back(there(fmt::format("{}/evenkeel-agent watch --dir {} --slurm JOB{}", programs, run, from)));
  lines.push_back(there("scancel JOB"));
  return lines;
}

}  // namespace

Result<std::vector<std::string>> commandsOf(const LaunchRequest& request, const fs::path& localCache) {
  if (auto objection = objectionToEnvironment(request)) return *std::move(objection);
  if (!request.run.rehearsal || !request.run.train.empty()) {
    if (auto checked = checkData(request.run.train); !checked) return checked.error();
  }
  if (auto checked = checkData(request.run.validation); !checked) return checked.error();
  return request.slurm ? commandsForSlurm(request, localCache) : commandsOnNodes(request, localCache);
}

}  // namespace evenkeel
