// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/train/worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "core/base/sha256.h"
#include "runtime/comm/agreement.h"
#include "runtime/comm/gloo_comm.h"
#include "runtime/comm/routed_comm.h"
#include "runtime/cuda/cuda.h"
#include "runtime/device/card.h"
#include "runtime/device/compute_clock.h"
#include "runtime/device/memory_meter.h"
#include "runtime/device/torch_setup.h"
#include "runtime/job/process.h"
#include "runtime/train/out_of_memory.h"
#include "runtime/train/rehearsal.h"
#include "runtime/train/trainer.h"

namespace evenkeel {
namespace {

constexpr Seconds kNoteTimeout{5};

class Worker {
 public:
  Result<void> run(const std::filesystem::path& jobFile) {
    if (auto bound = endWithParent(); !bound) return bound;
    auto job = loadJob(jobFile, ownRuntime(isBuiltForCards()));
    if (!job) return job.error();
    const std::vector<DeviceId> devices = job->plan.usedDevices();
    const auto environment = readRankEnvironment(processVariable, static_cast<int>(devices.size()));
    if (!environment) return environment.error();
    auto device = deviceOf(*job, devices[static_cast<std::size_t>(environment->rank)], environment->rank);
    if (!device) return device.error();
    std::optional<TokenSamples> samples, validation;  // none in a rehearsal
    if (!job->run.rehearsal) {
      TokenSamples::Options options{.sequenceLength = job->plan.training.sequenceLength,
                                   .vocab = job->plan.model.vocab,
                                   .seed = job->run.seed,
                                   .last = job->trainBytes,
                                   .type = job->tokenType};
      auto opened = TokenSamples::open(job->trainFile, options);
      if (!opened) return opened.error();
      samples.emplace(*std::move(opened));
      if (job->run.evaluation.every > 0) {
        options.first = *job->trainBytes;
        options.last.reset();
        auto rest = TokenSamples::open(job->trainFile, options);
        if (!rest) return rest.error();
        validation.emplace(*std::move(rest));
      }
    }
    useOneThread();
    keepFreedMemory();
    meterTensors();
    warnIfSlow();

    auto rendezvous = Rendezvous::connect(
        {.address = environment->masterAddress, .port = environment->masterPort, .timeout = job->startTimeout});
    if (!rendezvous) return rendezvous.error();
    if (auto agreed = agree(*rendezvous, agreementOf(*job, samples), environment->rank, environment->worldSize); !agreed)
      return agreed;
    auto forNotes =
        Rendezvous::connect({.address = environment->masterAddress, .port = environment->masterPort, .timeout = kNoteTimeout});
    if (!forNotes) return forNotes.error();
    PeerWatch watch(PeerNotes(*std::move(forNotes), environment->rank),
                    {.rank = environment->rank,
                     .peerTimeout = job->peerTimeout,
                     .rankNames = namesOf(job->plan, devices),
                     .onStuck = [this](const Error& error) { end(error); }});
    auto comm = connect(*job, *environment, *device, *rendezvous, watch);
    if (!comm) return comm.error();
    const std::string name = job->plan.cluster.nameOf(devices[static_cast<std::size_t>(environment->rank)]);
    events_.write("ready", {{"device", name}, {"plan_sha256", job->planSha256}, {"cpu_ms", milliseconds(processCpuTime())}});
    try {
      const auto trained = samples ? train(*job, **comm, *samples, events_, lastStep_, validation ? &*validation : nullptr, *device)
                                   : rehearse(*job, **comm, events_, lastStep_);
      if (!trained) end(trained.error());
    } catch (const std::exception& failure) {
      const auto error = outOfMemory(failure.what(), job->plan, environment->rank);
      end(error ? *error : failed("worker", failure.what()));
    }
    if (auto left = leaveTogether(*rendezvous, environment->rank, environment->worldSize); !left) return left;
    events_.write("finished", {{"steps", lastStep_.load()}});
    ::_exit(0);
  }

  /// The last words of this process. It does not unwind: broken connections would block.
  [[noreturn]] void end(const Error& error) {
    while (hasEnded_.exchange(true)) ::pause();  // another thread is saying them
    events_.failed(error.text(), lastStep_, error.code == Error::Code::Unreachable ? Cause::Peer : Cause::Own);
    std::fputs(fmt::format("evenkeel-worker: {}\n", error.text()).c_str(), stderr);  // fmt::print throws where nobody reads any more
    std::fflush(stderr);
    ::_exit(1);
  }

 private:
  EventWriter events_{STDOUT_FILENO};
  std::atomic<std::int64_t> lastStep_ = 0;  // also read by the thread that ends a stuck process
  std::atomic<bool> hasEnded_ = false;

  /// What the plan has this rank compute on. A rehearsal computes nothing.
  static Result<ComputeDevice> deviceOf(const Job& job, DeviceId own, int rank) {
    if (job.run.rehearsal || !isCard(job.plan.cluster.typeOf(own))) return ComputeDevice{};
    const auto variables = cardVariables(job.plan, own, processVariable);
    if (!variables) return variables.error();
    ::setenv("CUDA_VISIBLE_DEVICES", variables->visible.c_str(), 1);
    ::setenv("CUDA_DEVICE_ORDER", variables->order.c_str(), 1);
    return openCard(fmt::format("rank {} on node {}", rank, job.plan.cluster.nodes[static_cast<std::size_t>(own.node)].name));
  }

  /// Gloo for all, and for what lies on cards NCCL beside it.
  static Result<std::unique_ptr<Comm>> connect(const Job& job, const RankEnvironment& environment, const ComputeDevice& device,
                                               Rendezvous& rendezvous, PeerWatch& watch) {
    auto host = connectGloo(
        rendezvous, watch,
        {.rank = environment.rank, .worldSize = environment.worldSize, .bindAddress = environment.trainAddress});
    if (!host || device.place.is_cpu()) return host;
    auto cards = connectNccl(rendezvous, watch, environment.rank, environment.worldSize);
    if (!cards) return cards;
    return routed(*std::move(host), *std::move(cards),
                  {.isCard = ranksOnCards(job.plan), .isOnCard = [](const at::Tensor& tensor) { return tensor.is_cuda(); }});
  }

  void warnIfSlow() {
    const double gflops = measureGemmGflops();
    if (gflops >= kSlowGemmGflops) return;
    events_.warning(fmt::format(
        "matrix products run at {:.1f} GFLOP/s: this node lacks an optimised BLAS (Debian: libopenblas0-serial)", gflops));
  }

  static Agreement agreementOf(const Job& job, const std::optional<TokenSamples>& samples) {
    Json run = toJson(job.run);
    run.erase("data");  // the path may differ from node to node
    run["resume"] = job.resume;
    return {.plan = job.planSha256,
            .run = sha256(run.dump()),
            .data = samples ? fmt::format("{} {} tokens {}", samples->tokens(), name(job.tokenType), job.trainSha256) : "none: a rehearsal"};
  }

  static std::vector<std::string> namesOf(const Plan& plan, const std::vector<DeviceId>& devices) {
    std::vector<std::string> names;
    for (std::size_t r = 0; r < devices.size(); ++r)
      names.push_back(fmt::format("rank {} ({})", r, plan.cluster.nameOf(devices[r])));
    return names;
  }

  /// A rank that ends closes its connections; nobody may still be reading from them.
  static Result<void> leaveTogether(Rendezvous& rendezvous, int rank, int worldSize) {
    if (auto published = rendezvous.publish(fmt::format("done/{}", rank), ""); !published) return published;
    for (int other = 0; other < worldSize; ++other) {
      const auto done = rendezvous.await(fmt::format("done/{}", other));
      if (!done) return unreachable(fmt::format("rank {}", other), "did not finish the last step: " + done.error().what);
    }
    return {};
  }
};

}  // namespace

void runWorker(const std::filesystem::path& jobFile) {
  std::signal(SIGPIPE, SIG_IGN);
  Worker worker;
  try {
    worker.end(worker.run(jobFile).error());  // on success run() has ended the process
  } catch (const std::exception& failure) {
    worker.end(failed("worker", failure.what()));
  }
}

}  // namespace evenkeel
