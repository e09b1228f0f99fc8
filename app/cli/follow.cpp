// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/follow.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "app/cli/command.h"
#include "app/cli/go_on.h"
#include "app/cli/table.h"

namespace evenkeel::cli {
namespace {

constexpr std::chrono::seconds kSecondInterrupt{3};

/// A curve as one line of eight heights; values that are not finite show as "x".
std::string sparkline(const std::vector<double>& values, std::size_t width) {
  static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double least = HUGE_VAL, most = -HUGE_VAL;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  std::string text;
  const std::size_t columns = std::min(width, values.size());
  for (std::size_t c = 0; c < columns; ++c) {
    const double value = values[columns < 2 ? 0 : c * (values.size() - 1) / (columns - 1)];
    const double height = most > least ? (value - least) / (most - least) : 0.0;
    text += std::isfinite(value) ? kBlocks[static_cast<std::size_t>(std::lround(height * 7))] : "x";
  }
  return text;
}

double secondsSince1970() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }
std::string lossText(double loss) { return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : std::isnan(loss) ? "not a number" : "infinite"; }

}  // namespace

JobProgress::JobProgress(std::int64_t totalSteps, bool isRehearsal)
    : totalSteps_(totalSteps), isRehearsal_(isRehearsal), onTerminal_(::isatty(STDERR_FILENO) == 1) {}

void JobProgress::line(const std::string& text, bool isMilestone) {
  if (onTerminal_ && !isMilestone) {
    note("\r\033[K{}", text);
    std::fflush(stderr);
    isOpen_ = true;
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!isMilestone && now - lastLine_ < std::chrono::seconds(1)) return;
  lastLine_ = now;
  endLine();
  note("{}\n", text);
}

void JobProgress::endLine() {
  if (isOpen_) note("\n");
  isOpen_ = false;
}

void JobProgress::onPreflight(const PreflightRow& row) {
  const std::string remedy = row.passed || row.remedy.empty() ? "" : "; " + row.remedy;
  line(fmt::format("{} {:<10} {:<10} {}{}", row.passed ? "ok  " : "FAIL", row.node.empty() ? "job" : row.node, row.check, row.detail, remedy), true);
}

void JobProgress::onCopy(const std::string& node, std::uint64_t done, std::uint64_t total) {
  const auto now = std::chrono::steady_clock::now();
  Copy& copy = copies_[node];
  if (done < copy.done || copy.total != total) copy = {now, done, total, done};  // the next thing that is copied
  copy.done = done;
  const double seconds = std::chrono::duration<double>(now - copy.begin).count();
  const std::string rate =
      seconds > 0.5 ? fmt::format(", {:.1f} MB/s", static_cast<double>(done - copy.first) / 1e6 / seconds) : "";
  line(fmt::format("copying to {}: {:.1f} of {:.1f} MB{}", node, static_cast<double>(done) / 1e6,
                   static_cast<double>(total) / 1e6, rate),
       done == total);
}

void JobProgress::onState(JobState state) {
  if (state == state_) return;
  state_ = state;
  line(fmt::format("the job is {}", name(state)), true);
}

Result<void> JobProgress::alsoInto(const std::filesystem::path& folder) {
  if (auto checked = checkOutputFolder("--tensorboard", folder.string()); !checked) return checked;
  auto made = report::EventFile::create(folder, secondsSince1970(), fmt::format("evenkeel.{}", ::getpid()));
  if (!made) return std::move(made).error();
  board_ = *std::move(made);
  return {};
}

void JobProgress::onEvaluation(std::int64_t step, double loss) {
  if (board_) board_->addScalar("validation/loss", step, loss, secondsSince1970());
}

void JobProgress::onStep(const StepRecord& step) {
  if (board_) {
    const double seconds = secondsSince1970();
    for (const auto& [tag, value] : {std::pair{"train/loss", step.loss},
                                     {"train/gradient_norm", step.gradNorm},
                                     {"train/learning_rate", step.learningRate},
                                     {"speed/iteration_ms", step.iterationMs},
                                     {"speed/tokens_per_s", step.iterationMs > 0 ? static_cast<double>(step.tokens) / (step.iterationMs / 1e3) : 0.0},
                                     {"time/compute_ms", step.computeMs},
                                     {"time/p2p_ms", step.p2pMs},
                                     {"time/bubble_ms", step.bubbleMs},
                                     {"time/sync_ms", step.syncMs},
                                     {"time/optimizer_ms", step.optimizerMs},
                                     {"memory/peak_gib", gib(Bytes{step.peakBytes})}})
      board_->addScalar(tag, step.step, value, seconds);
    const auto now = std::chrono::steady_clock::now();
    if (now - lastFlush_ > std::chrono::seconds(1) || step.step == totalSteps_) {
      lastFlush_ = now;
      if (auto flushed = board_->flush(); !flushed) {
        line("warning: " + flushed.error().text(), true);
        board_.reset();
      }
    }
  }
  const std::string of = totalSteps_ > 0 ? fmt::format(" of {}", totalSteps_) : "";
  const double tokensPerSecond = step.iterationMs > 0 ? static_cast<double>(step.tokens) / (step.iterationMs / 1e3) : 0;
  const double bubble = step.iterationMs > 0 ? 100 * step.bubbleMs / step.iterationMs : 0;
  line(fmt::format("step {}{}  {}  {}/iteration  {} tokens/s  bubbles {:.0f} %", step.step, of,
                   isRehearsal_ ? "rehearsed" : "loss " + lossText(step.loss), shortTime(step.iterationMs / 1e3),
                   shortCount(tokensPerSecond), bubble),
       step.step == 1 || step.step == totalSteps_);
}

void JobProgress::onLog(const std::string& node, int rank, const std::string& level, const std::string& text) {
  if (level == "warning") line(fmt::format("warning from {}: {}", rank < 0 ? node : fmt::format("rank {} on {}", rank, node), text), true);
  else line(text, true);
}

void JobProgress::onCheckpoint(std::int64_t step, const std::string& path) { line(fmt::format("checkpoint of step {}: {}", step, path), true); }

void JobProgress::onConnection(const std::string& node, const std::string& text) {
  line(text.empty() ? fmt::format("{} is reachable again", node) : fmt::format("lost the connection to {} ({}); the job goes on, reconnecting", node, text), true);
}

void JobProgress::onFailure(const JobFailure& failure) {
  const std::string who = failure.rank >= 0 ? fmt::format("rank {} on {}: ", failure.rank, failure.node) : failure.node.empty() ? "" : failure.node + ": ";
  line(fmt::format("failed: {}{} (last complete step: {})", who, failure.reason, failure.lastStep), true);
}

FollowInterrupt::FollowInterrupt()
    : watch_([this](int) {
        stop_.request_stop();
        const std::lock_guard lock(mutex_);
        ++count_;
        changed_.notify_all();
      }) {}

bool FollowInterrupt::secondCame() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kSecondInterrupt, [&] { return count_ >= 2; });
}

void addBoardOption(CLI::App& command, std::string& folder) {
  command.add_option("--tensorboard", folder, "Write the curves for TensorBoard into this folder, as they come");
}

int exitCodeOf(JobState state) { return state == JobState::Failed || state == JobState::Stopped ? kFailed : kOk; }

std::string describe(const JobStatus& status) {
  std::string text = fmt::format("run {}  {}  {} steps{}\n", status.run, name(status.state), status.steps,
                                 status.isRehearsal ? "  (a rehearsal: nothing was trained)" : "");
  if (!status.queue.empty()) text += fmt::format("queue      {}\n", status.queue);
  if (!status.losses.empty() && !status.isRehearsal) {
    text += fmt::format("loss       {} -> {}   {}\n", lossText(status.losses.front()), lossText(status.losses.back()), sparkline(status.losses, 60));
    const auto broken = std::ranges::count_if(status.losses, [](double loss) { return !std::isfinite(loss); });
    if (broken > 0) text += fmt::format("           {} losses are not finite\n", broken);
  }
  if (status.iterationMs) {
    text += fmt::format("iteration  {} (5 % below {}, 5 % above {})", shortTime(status.iterationMs->median / 1e3), shortTime(status.iterationMs->p5 / 1e3),
                        shortTime(status.iterationMs->p95 / 1e3));
    if (status.predictedIterationMs && *status.predictedIterationMs > 0) {
      text += fmt::format("; predicted {}, {}", shortTime(*status.predictedIterationMs / 1e3),
                          againstPrediction(status.iterationMs->median, *status.predictedIterationMs));
    }
    text += fmt::format("\nthroughput {} tokens/s\n", shortCount(status.tokensPerSecond));
  }
  std::int64_t peak = 0;
  for (const auto& [rank, bytes] : status.peakBytes) peak = std::max(peak, bytes);
  if (peak > 0) text += fmt::format("memory     {:.2f} GiB on the fullest rank\n", gib(Bytes{peak}));
  if (status.failed) {
    text += fmt::format("failed     {}{}{}{} (last complete step {})\n", status.failed->rank < 0 ? "" : fmt::format("rank {} on ", status.failed->rank),
                        status.failed->node, status.failed->node.empty() ? "" : ": ", status.failed->reason, status.failed->lastStep);
  }
  return text;
}

std::filesystem::path programFolder() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).parent_path();
}

int followToEnd(Launcher& launcher, std::string run, JobProgress& progress, FollowInterrupt& interrupt, bool asJson) {
  while (true) {
    const auto rows = launcher.runs();
    if (!rows) return report(rows.error());
    // what was known to have ended before is shown, not started again
    const bool wasOver = std::ranges::any_of(*rows, [&](const RunRow& row) { return row.run == run && hasEnded(row.state); });
    const auto status = launcher.followJob(run, progress, interrupt.token());
    progress.endLine();
    if (!status) return report(status.error());
    if (wasOver) return conclude(launcher, *status, interrupt, asJson);
    const auto request = launcher.requestOf(run);
    if (!request) return report(request.error());
    auto next = nextAttempt(launcher, *request, *status, interrupt.token());
    if (!next) note("error: {}\n", next.error().text());
    if (!next || !*next) return conclude(launcher, *status, interrupt, asJson);
    (*next)->programs = programFolder();
    auto started = launcher.startJob(**next, progress, interrupt.token());
    progress.endLine();
    if (!started) return report(started.error());
    run = *std::move(started);
    note("run {}\n", run);
  }
}

int conclude(Launcher& launcher, const JobStatus& status, FollowInterrupt& interrupt, bool asJson) {
  const std::string& run = status.run;
  if (interrupt.wasInterrupted() && !hasEnded(status.state)) {
    note("stopped following; the job goes on.\n  follow it again: evenkeel-cli attach {0}\n  stop it:         evenkeel-cli stop {0}\n"
                       "Ctrl-C again within 3 s stops it now.\n", run);
    if (interrupt.secondCame()) {
      const auto stopped = launcher.stopJob(run);
      if (!stopped) return report(stopped.error());
      note("{}\n", stopped->complete() ? "stopped; nothing is left" : "could not stop everything; see `evenkeel-cli stop`");
      return kFailed;
    }
  }
  asJson ? printJson(toJson(status)) : fmt::print("{}", describe(status));
  return exitCodeOf(status.state);
}

}  // namespace evenkeel::cli
