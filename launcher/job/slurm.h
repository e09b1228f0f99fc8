// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "launcher/job/history.h"
#include "launcher/job/layout.h"

namespace evenkeel {

/// How a plan's nodes are found in an allocation.
struct SlurmMatch {
  bool byName = false;                    // they have Slurm's names; else any nodes will do, in the order of the allocation
  std::vector<std::string> unknownNames;  // that Slurm does not know although it knows others: then the plan cannot be matched
  bool operator==(const SlurmMatch&) const = default;
};
[[nodiscard]] SlurmMatch matchNodes(const std::vector<NodeLayout>& layouts, const std::vector<std::string>& slurmNodes);

/// Why nodes that Slurm chooses could not stand for the plan's: they are unlike. Nothing if any of them can take any place (CPU types differ
/// in what they sleep only).
[[nodiscard]] std::optional<Error> objectionToAnyNodes(const Plan& plan, const std::vector<NodeLayout>& layouts);

/// Options of sbatch that a person may not give, because the plan decides them or the run would not be found again.
[[nodiscard]] std::optional<Error> objectionToOptions(const SlurmRequest& request);

/// sbatch's options: as many nodes as the plan uses, its nodes' names if they are Slurm's, cores or GPUs for its ranks, then those of the
/// person, each instead of ours of that name.
[[nodiscard]] std::vector<std::string> sbatchOptions(const LaunchRequest& request, const std::vector<NodeLayout>& layouts,
                                                     const SlurmMatch& match);

/// The batch script: the agent once on every node. Paths are absolute and may hold anything.
[[nodiscard]] std::string slurmScript(const std::string& agent, const std::string& run, std::size_t nodes);

/// The names of all nodes that Slurm has; an Error says that it cannot be asked.
[[nodiscard]] Result<std::vector<std::string>> slurmNodes(Host& login, std::chrono::milliseconds deadline, std::stop_token stop);

/// What Slurm says to a job with these options, without taking it: "Job 3 to start at ..."; an Error is its refusal.
[[nodiscard]] Result<std::string> tryJob(Host& login, const std::vector<std::string>& options, std::chrono::milliseconds deadline,
                                         std::stop_token stop);

/// Hands the script in the run's directory over; the job's number.
[[nodiscard]] Result<std::string> submitJob(Host& login, const std::vector<std::string>& options, const std::string& run,
                                            const std::string& name, std::chrono::milliseconds deadline, std::stop_token stop);

/// scancel, then waits until Slurm has ended all processes of the job, at most `deadline`. One that is over already is no error.
[[nodiscard]] Result<void> cancelJob(Host& login, const std::string& job, std::chrono::milliseconds deadline);

/// For people, of a queue line of `evenkeel-agent watch`: "Slurm job 7 is pending: Resources, expected to start at ...".
[[nodiscard]] std::string describeQueue(const std::string& job, const Json& queue);

/// Why Slurm has ended a job, if it did; nothing for one that came to its own end.
[[nodiscard]] std::optional<std::string> endedBySlurm(const std::string& job, const Json& queue);

}  // namespace evenkeel
