// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/runtime/worker_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "core/plan/run.h"

extern char** environ;

namespace evenkeel {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Run runOf(const JobText& job) {
  Run run;
  run.steps = job.steps;
  run.learningRate.warmupSteps = 3;
  run.learningRate.peak = job.learningRate;
  run.weightDecay = job.weightDecay;
  if (job.rehearse) run.rehearsal.emplace();
  run.checkpoint.every = job.checkpointEvery;
  run.checkpoint.directory = job.checkpointDirectory;
  return run;
}

namespace {

Json jobJson(const JobText& job, const std::filesystem::path& data) {
  return {{"format", "evenkeel.job/1"},         {"run_id", "test"},
          {"plan", toJson(job.plan)},           {"run", toJson(runOf(job))},
          {"resume", job.resume},
          {"data", {{"train", data.string()}}}, {"timeouts", {{"peer_s", job.peerSeconds}, {"start_s", job.startSeconds}}}};
}

std::vector<std::string> environmentWith(const WorkerRun::Environment& changes) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!changes.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  for (const auto& [name, value] : changes) {
    if (!value.empty()) variables.push_back(name + "=" + value);
  }
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

const std::string& trainingText() {
  static const std::string text = [] {
    std::string lines;
    for (int i = 0; i < 400; ++i) {
      lines += "Line " + std::to_string(i) + ": " + std::to_string(i % 7) + " ships sail on an even keel, " +
               std::to_string(i * i % 11) + " drift.\n";
    }
    return lines;
  }();
  return text;
}

const Json* RankOutcome::last(const std::string& event) const {
  for (auto line = events.rbegin(); line != events.rend(); ++line) {
    if (line->value("event", "") == event) return &*line;
  }
  return nullptr;
}

std::vector<double> RankOutcome::ofSteps(const std::string& field) const {
  std::vector<double> numbers;
  for (const Json& line : events) {
    if (line.value("event", "") == "step") numbers.push_back(line.at(field).get<double>());
  }
  return numbers;
}

WorkerRun::WorkerRun(const std::vector<JobText>& jobs) : jobs_(jobs) {
  std::string pattern = (std::filesystem::path(::testing::TempDir()) / "worker_XXXXXX").string();
  folder_ = ::mkdtemp(pattern.data());
  ranks_ = static_cast<int>(jobs_.front().plan.usedDevices().size());
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const auto data = folder_ / ("text-" + std::to_string(i));
    EXPECT_TRUE(writeFileAtomically(data, jobs_[i].data.empty() ? trainingText() : jobs_[i].data));
    EXPECT_TRUE(writeFileAtomically(folder_ / ("job-" + std::to_string(i) + ".json"), jobJson(jobs_[i], data).dump()));
  }
  store_ = spawn({"--store", "--address", "127.0.0.1", "--ranks", std::to_string(ranks_)}, {}, &storeInput_);
  processes_.clear();
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  while (store_.out >= 0 && store_.outcome.events.empty() && Clock::now() < deadline) {
    pollfd source{store_.out, POLLIN, 0};
    if (::poll(&source, 1, 1000) > 0) read(store_, store_.out, true);
  }
  if (!store_.outcome.events.empty()) storePort_ = store_.outcome.events.front().value("port", 0);
  EXPECT_GT(storePort_, 0) << "the store did not start";
}

WorkerRun::~WorkerRun() {
  for (Process& process : processes_) {
    if (process.isOpen()) ::kill(process.pid, SIGKILL);
  }
  (void)finish(std::chrono::seconds(10));
  ::close(storeInput_);  // the store ends with its input
  int status = 0;
  ::waitpid(store_.pid, &status, 0);
  EXPECT_EQ(status, 0) << "the store should end by itself";
  for (const int descriptor : {store_.out, store_.err}) {
    if (descriptor >= 0) ::close(descriptor);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::filesystem::path WorkerRun::jobFile(std::size_t rank) const {
  return folder_ / ("job-" + std::to_string(std::min(rank, jobs_.size() - 1)) + ".json");
}

void WorkerRun::start(const std::map<int, Environment>& changes) {
  for (int rank = 0; rank < ranks_; ++rank) {
    Environment environment = {{"MASTER_ADDR", "127.0.0.1"},
                               {"MASTER_PORT", std::to_string(storePort_)},
                               {"RANK", std::to_string(rank)},
                               {"WORLD_SIZE", std::to_string(ranks_)},
                               {"LOCAL_RANK", std::to_string(rank)},
                               {"LOCAL_WORLD_SIZE", std::to_string(ranks_)},
                               {"NODE_RANK", "0"},
                               {"EVENKEEL_TRAIN_ADDRESS", "127.0.0.1"}};
#if defined(__x86_64__)
    // Matrices this small need no fast kernels: a worker that asks for better ones loads its libraries twice.
    environment["OPENBLAS_CORETYPE"] = "Prescott";
#endif
    if (const auto own = changes.find(rank); own != changes.end()) {
      for (const auto& [name, value] : own->second) environment[name] = value;
    }
    processes_.push_back(spawn({"--job", jobFile(static_cast<std::size_t>(rank)).string()}, environment, nullptr));
  }
}

void WorkerRun::startWithFile(const std::string& bytes) {
  const auto file = folder_ / "given.json";
  EXPECT_TRUE(writeFileAtomically(file, bytes));
  processes_.push_back(spawn({"--job", file.string()}, {}, nullptr));
}

WorkerRun::Process WorkerRun::spawn(const std::vector<std::string>& arguments, const Environment& changes, int* input) {
  std::vector<std::string> words = {EVENKEEL_BIN_DIR "/evenkeel-worker"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environmentWith(changes);
  std::vector<char*> wordList = pointers(words), variableList = pointers(variables);
  int in[2], out[2], err[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) std::abort();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    ::execve(wordList[0], wordList.data(), variableList.data());
    ::_exit(127);
  }
  for (const int descriptor : {in[0], out[1], err[1]}) ::close(descriptor);
  if (input != nullptr) *input = in[1];
  else ::close(in[1]);
  Process process;
  process.pid = pid;
  process.out = out[0];
  process.err = err[0];
  return process;
}

void WorkerRun::read(Process& process, int& descriptor, bool isEvents) {
  char bytes[4096];
  const ssize_t count = ::read(descriptor, bytes, sizeof bytes);
  if (count <= 0) {
    ::close(std::exchange(descriptor, -1));
    return;
  }
  if (!isEvents) {
    process.outcome.log.append(bytes, static_cast<std::size_t>(count));
    return;
  }
  process.line.append(bytes, static_cast<std::size_t>(count));
  for (std::size_t end = process.line.find('\n'); end != std::string::npos; end = process.line.find('\n')) {
    const Json event = Json::parse(process.line.substr(0, end), nullptr, false);
    EXPECT_TRUE(event.is_object()) << "stdout carries events only: " << process.line.substr(0, end);
    if (event.is_object()) process.outcome.events.push_back(event);
    process.line.erase(0, end + 1);
  }
}

void WorkerRun::pump(const std::function<bool()>& isDone, Clock::time_point deadline) {
  while (!isDone() && Clock::now() < deadline) {
    std::vector<pollfd> sources;
    std::vector<std::pair<Process*, bool>> owners;
    for (Process& process : processes_) {
      for (const bool isEvents : {true, false}) {
        const int descriptor = isEvents ? process.out : process.err;
        if (descriptor < 0) continue;
        sources.push_back({descriptor, POLLIN, 0});
        owners.emplace_back(&process, isEvents);
      }
    }
    if (sources.empty()) return;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (::poll(sources.data(), sources.size(), static_cast<int>(std::max<std::int64_t>(0, left.count()))) <= 0) continue;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].revents == 0) continue;
      auto [process, isEvents] = owners[i];
      read(*process, isEvents ? process->out : process->err, isEvents);
      if (process->isOpen()) continue;
      int status = 0;
      ::waitpid(process->pid, &status, 0);
      process->outcome.exitStatus = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      process->outcome.ended = Clock::now();
    }
  }
}

bool WorkerRun::awaitStep(int rank, std::int64_t steps) {
  const Process& process = processes_.at(static_cast<std::size_t>(rank));
  const auto hasThem = [&] {
    const Json* step = process.outcome.last("step");
    return step != nullptr && step->at("step").get<std::int64_t>() >= steps;
  };
  pump([&] { return hasThem() || !process.isOpen(); }, Clock::now() + std::chrono::seconds(60));
  return hasThem();
}

bool WorkerRun::awaitEnd(const std::vector<int>& ranks) {
  const auto haveEnded = [&] {
    return std::ranges::none_of(ranks, [&](int rank) { return processes_.at(static_cast<std::size_t>(rank)).isOpen(); });
  };
  pump(haveEnded, Clock::now() + std::chrono::seconds(100));
  return haveEnded();
}

void WorkerRun::signal(int rank, int number) { ::kill(processes_.at(static_cast<std::size_t>(rank)).pid, number); }

void WorkerRun::signalStore(int number) { ::kill(store_.pid, number); }

std::vector<RankOutcome> WorkerRun::finish(std::chrono::seconds limit) {
  const auto never = [] { return false; };
  pump(never, Clock::now() + limit);
  for (Process& process : processes_) {
    if (!process.isOpen()) continue;
    process.outcome.log += "[killed by the test: it did not end]";
    ::kill(process.pid, SIGKILL);
  }
  pump(never, Clock::now() + std::chrono::seconds(30));
  std::vector<RankOutcome> outcomes;
  for (const Process& process : processes_) outcomes.push_back(process.outcome);
  return outcomes;
}

}  // namespace evenkeel
