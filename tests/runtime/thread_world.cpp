// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/runtime/thread_world.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "runtime/checkpoint/state_exchange.h"
#include "runtime/train/trainer.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

constexpr std::chrono::seconds kPatience{20};

struct Message {
  at::Tensor tensor;
  bool isDone = false;
};

/// One collective of a set of ranks: the last that comes computes it for all.
struct Meeting {
  std::vector<at::Tensor> tensors;  // by place in the set
  std::size_t arrived = 0;
  bool isDone = false;
};

}  // namespace

struct ThreadWorld::Shared {
  explicit Shared(int count) : ranks(count) {}
  int ranks;
  std::mutex turn;  // held by the one rank that computes: Debian's serial OpenBLAS gives wrong sums to concurrent threads
  std::condition_variable changed;
  using Line = std::tuple<int, int, int>;  // from, to, tag
  std::map<Line, std::deque<std::shared_ptr<Message>>> sends, receives;
  std::map<std::vector<int>, std::deque<std::shared_ptr<Meeting>>> meetings;  // those that somebody has not come to
  std::map<int, std::set<evenkeel::Line>> opened;  // by rank; none: it does not say

  void checkOpened(int rank, const Line& line) {
    const auto [from, to, tag] = line;
    if (!opened.contains(rank) || tag == kStateTag) return;
    EXPECT_TRUE(opened[rank].contains({from, to, tag})) << "rank " << rank << " uses " << from << " -> " << to << ", tag " << tag;
  }

  void match(const Line& line) {
    auto& from = sends[line];
    auto& to = receives[line];
    while (!from.empty() && !to.empty()) {
      const at::NoGradGuard noGrad;
      EXPECT_TRUE(from.front()->tensor.sizes().equals(to.front()->tensor.sizes())) << "both ends know the shape from the plan";
      to.front()->tensor.copy_(from.front()->tensor);
      from.front()->isDone = to.front()->isDone = true;
      from.pop_front();
      to.pop_front();
    }
    changed.notify_all();
  }
};

namespace {

template <class Shared>
class ThreadComm final : public Comm {
 public:
  ThreadComm(Shared& shared, int rank) : shared_(shared), rank_(rank), turn_(shared.turn) {}
  int rank() const override { return rank_; }
  int worldSize() const override { return shared_.ranks; }

  std::unique_ptr<Transfer> send(const at::Tensor& tensor, int peer, int tag) override {
    return post(shared_.sends, {rank_, peer, tag}, tensor);
  }
  std::unique_ptr<Transfer> receive(const at::Tensor& tensor, int peer, int tag) override {
    return post(shared_.receives, {peer, rank_, tag}, tensor);
  }

  Result<void> open(std::vector<Line> lines) override {
    shared_.opened[rank_].insert(lines.begin(), lines.end());
    return {};
  }
  Result<void> join(const std::vector<int>& ranks) override {
    return meet(at::empty({0}), ranks, [](const at::Tensor&, const at::Tensor&) {})->wait();
  }
  std::unique_ptr<Transfer> startAllReduceSum(const at::Tensor& tensor, const std::vector<int>& ranks) override {
    return meet(tensor, ranks, [](const at::Tensor& sum, const at::Tensor& next) { sum.add_(next); });
  }
  Result<void> allReduceMax(const at::Tensor& tensor, const std::vector<int>& ranks) override {
    return meet(tensor, ranks, [](const at::Tensor& most, const at::Tensor& next) { most.copy_(at::maximum(most, next)); })
        ->wait();
  }

 private:
  template <class Awaited>
  class ThreadTransfer final : public Transfer {
   public:
    ThreadTransfer(ThreadComm& comm, std::shared_ptr<Awaited> awaited) : comm_(comm), awaited_(std::move(awaited)) {}
    Result<void> wait() override {
      if (comm_.shared_.changed.wait_for(comm_.turn_, kPatience, [&] { return awaited_->isDone; })) return {};
      return unreachable("a peer", "did not come");
    }

   private:
    ThreadComm& comm_;
    std::shared_ptr<Awaited> awaited_;
  };

  template <class Queues>
  std::unique_ptr<Transfer> post(Queues& queues, const typename Shared::Line& line, const at::Tensor& tensor) {
    EXPECT_TRUE(tensor.is_contiguous());
    shared_.checkOpened(rank_, line);
    auto message = std::make_shared<Message>(Message{tensor});
    queues[line].push_back(message);
    shared_.match(line);
    return std::make_unique<ThreadTransfer<Message>>(*this, std::move(message));
  }

  template <class Add>
  std::unique_ptr<Transfer> meet(const at::Tensor& tensor, const std::vector<int>& ranks, const Add& add) {
    EXPECT_TRUE(tensor.is_contiguous() && std::ranges::is_sorted(ranks));
    const at::NoGradGuard noGrad;
    const auto place = static_cast<std::size_t>(std::ranges::find(ranks, rank_) - ranks.begin());
    auto& open = shared_.meetings[ranks];
    auto own = std::ranges::find_if(open, [&](const auto& meeting) { return !meeting->tensors[place].defined(); });
    if (own == open.end()) own = open.insert(own, std::make_shared<Meeting>(Meeting{std::vector<at::Tensor>(ranks.size())}));
    const std::shared_ptr<Meeting> meeting = *own;
    meeting->tensors[place] = tensor;
    if (++meeting->arrived == ranks.size()) {
      const at::Tensor total = meeting->tensors[0].clone();
      for (std::size_t i = 1; i < ranks.size(); ++i) {
        EXPECT_TRUE(meeting->tensors[i].sizes().equals(total.sizes()) && meeting->tensors[i].dtype() == total.dtype());
        add(total, meeting->tensors[i]);
      }
      for (const at::Tensor& one : meeting->tensors) one.copy_(total);
      meeting->isDone = true;
      open.erase(own);
      shared_.changed.notify_all();
    }
    return std::make_unique<ThreadTransfer<Meeting>>(*this, meeting);
  }

  Shared& shared_;
  int rank_;
  std::unique_lock<std::mutex> turn_;  // given up while this rank waits
};

}  // namespace

ThreadWorld::ThreadWorld(int ranks) : shared_(std::make_unique<Shared>(ranks)) {}
ThreadWorld::~ThreadWorld() {
  if (shared_->opened.size() < static_cast<std::size_t>(shared_->ranks)) return;  // somebody ended before
  std::map<Line, int> ends;
  for (const auto& [rank, lines] : shared_->opened) {
    for (const Line& line : lines) {
      EXPECT_TRUE(line.from == rank || line.to == rank);
      ++ends[line];
    }
  }
  for (const auto& [line, count] : ends) EXPECT_EQ(count, 2) << "one end waits for " << line.from << " -> " << line.to << ", tag " << line.tag;
}
std::unique_ptr<Comm> ThreadWorld::comm(int rank) { return std::make_unique<ThreadComm<Shared>>(*shared_, rank); }

std::vector<double> WorldOutcome::ofSteps(int rank, const std::string& field) const {
  std::vector<double> numbers;
  for (const Json& step : stepsOf[static_cast<std::size_t>(rank)]) numbers.push_back(step.at(field).get<double>());
  return numbers;
}

WorldOutcome trainInThreads(const Plan& plan, const Run& run, const std::string& text, const std::string& resume,
                            const std::string& validation, const RankKinds& kinds) {
  const TemporaryDirectory folder;
  Job job;
  job.plan = plan;
  job.run = run;
  job.resume = resume;
  job.folder = folder.path();
  job.trainFile = folder.path() / "text";
  EXPECT_TRUE(writeFileAtomically(job.trainFile, text));
  const auto samples = TokenSamples::open(
      job.trainFile, {.sequenceLength = plan.training.sequenceLength, .vocab = plan.model.vocab, .seed = run.seed});
  EXPECT_TRUE(samples.ok());
  std::optional<TokenSamples> evaluated;
  if (!validation.empty()) {
    const auto file = folder.path() / "validation";
    EXPECT_TRUE(writeFileAtomically(file, validation));
    auto opened =
        TokenSamples::open(file, {.sequenceLength = plan.training.sequenceLength, .vocab = plan.model.vocab, .seed = run.seed});
    EXPECT_TRUE(opened.ok());
    evaluated.emplace(*std::move(opened));
  }
  const std::size_t ranks = plan.usedDevices().size();
  ThreadWorld world(static_cast<int>(ranks));
  WorldOutcome outcome;
  outcome.errors.resize(ranks);
  outcome.stepsOf.resize(ranks);
  std::mutex mutex;  // of what all ranks add to
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const std::unique_ptr<FILE, int (*)(FILE*)> file(std::tmpfile(), &std::fclose);
      EventWriter events(::fileno(file.get()));
      const std::unique_ptr<Comm> comm = kinds.wrap(static_cast<int>(r), world.comm(static_cast<int>(r)));
      const ComputeDevice device = kinds.device(static_cast<int>(r));
      std::atomic<std::int64_t> lastStep = 0;
      if (const auto trained = train(job, *comm, *samples, events, lastStep, evaluated ? &*evaluated : nullptr, device); !trained)
        outcome.errors[r] = trained.error().text();
      std::rewind(file.get());
      std::string lines;
      char bytes[4096];
      for (std::size_t count = 0; (count = std::fread(bytes, 1, sizeof bytes, file.get())) > 0;) lines.append(bytes, count);
      for (std::size_t begin = 0, end = 0; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1) {
        Json event = Json::parse(lines.substr(begin, end - begin));
        const std::lock_guard lock(mutex);
        if (event.at("event") == "warning") outcome.warnings.push_back(event.at("text"));
        if (event.at("event") == "checkpoint") outcome.checkpoints.push_back(event.at("path"));
        if (event.at("event") == "evaluation") outcome.evaluations.push_back(event);
        if (event.at("event") == "step") outcome.stepsOf[r].push_back(std::move(event));
      }
    });
  }
  threads.clear();  // joins
  return outcome;
}

}  // namespace evenkeel
