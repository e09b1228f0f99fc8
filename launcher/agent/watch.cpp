// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "launcher/agent/commands.h"
#include "launcher/agent/journal_tail.h"
#include "launcher/agent/node_job.h"
#include "launcher/agent/slurm_queue.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kBetweenQuestions{5};  // to Slurm, which serves everybody; also the longest silence
constexpr std::chrono::seconds kBetweenLast{1};       // when all nodes have ended, but not all well: Slurm may know why
constexpr int kLookMs = 250;                          // the writers are other machines: nobody tells us of a change

/// The last line of the job's own output, which says why it could not start.
std::string lastLineOf(const fs::path& file) {
  std::ifstream stream(file);
  std::string last;
  for (std::string line; std::getline(stream, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last.substr(0, 1000);
}

class Watch {
 public:
  Watch(const fs::path& directory, const WatchOptions& options) : directory_(directory), job_(options.slurmJob) {
    for (std::size_t i = 0; i < options.from.size(); ++i) tails_.emplace_back(options.from[i], fmt::format("{} ", i));
  }

  /// All records that are there; false if nobody reads them.
  bool copy(bool openAgain) {
    for (std::size_t i = 0; i < tails_.size(); ++i) {
      JournalTail& tail = tails_[i];
      if (tail.isEnded()) continue;
      if (openAgain || !tail.isOpen()) tail.open(directory_ / fmt::format("node-{}", i) / kJournalFile);
      if (tail.isOpen() && !tail.copy()) return false;
    }
    return true;
  }
  /// Asks Slurm and prints what has changed, or an empty line; false if nobody reads it.
  bool ask() {
    const QueueState state = askQueue(job_);
    isOver_ = state.isOver();
    if (state == told_) return JournalTail::print("\n");
    told_ = state;
    if (isOver_) return true;  // told in the end, when all records are
    return tell(state);
  }
  bool tellEnd() {
    return !isOver_ || tell(*told_);
  }
  [[nodiscard]] bool isOver() const { return isOver_; }
  [[nodiscard]] bool isFinished() const { return std::ranges::all_of(tails_, &JournalTail::isFinished); }
  [[nodiscard]] bool isComplete() const { return std::ranges::all_of(tails_, &JournalTail::isEnded); }

 private:
  [[nodiscard]] bool tell(const QueueState& state) const {
    Json json = toJson(state);
    if (state.isOver()) json["said"] = lastLineOf(directory_ / kSlurmLog);
    return JournalTail::print(fmt::format("queue {}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace)));
  }

  fs::path directory_;
  std::string job_;
  std::vector<JournalTail> tails_;
  std::optional<QueueState> told_;
  bool isOver_ = false;
};

}  // namespace

Result<TailEnd> watchRun(const fs::path& directory, const WatchOptions& options) {
  Watch watch(directory, options);
  auto nextQuestion = Clock::now();
  while (true) {
    const bool asks = Clock::now() >= nextQuestion;
    if (asks) {
      if (!watch.ask()) return TailEnd::NobodyReads;
      nextQuestion = Clock::now() + (watch.isComplete() ? kBetweenLast : kBetweenQuestions);
    }
    // after the question: what a job that is over has written was written before
    if (!watch.copy(asks)) return TailEnd::NobodyReads;
    if (options.once || watch.isOver() || watch.isFinished()) return watch.tellEnd() ? TailEnd::Complete : TailEnd::NobodyReads;
    if (watch.isComplete()) nextQuestion = std::min(nextQuestion, Clock::now() + kBetweenLast);
    pollfd reader{STDOUT_FILENO, 0, 0};
    if (::poll(&reader, 1, kLookMs) > 0) return TailEnd::NobodyReads;
  }
}

}  // namespace evenkeel
