// SPDX-License-Identifier: GPL-3.0-or-later
// Stands in for evenkeel-worker: speaks the protocol, trains nothing. What it does wrong stands in the run's field "fake":
// {"all" or a rank: {"gate_at": {"step", "fifo"}, "signal_at": {"step", "signal"}, "exit_at": {"step", "status"}, "fail_at":
// {"step", "reason", "cause"}, "close_stdout_at": step, "hang_at": step, "ignores_term", "leaves_a_child", "log_bytes",
// "noise_bytes", "says": text, "ends_without_finished"}}. A step's faults come before the step is reported.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/plan/features.h"

namespace {

using namespace evenkeel;

void say(const Json& event) {
  std::printf("%s\n", event.dump().c_str());
  std::fflush(stdout);
}

int hostStore(const std::string& address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in bound{};
  bound.sin_family = AF_INET;
  ::inet_pton(AF_INET, address.c_str(), &bound.sin_addr);
  socklen_t size = sizeof bound;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&bound), size) != 0 || ::listen(fd, 8) != 0) {
    std::fprintf(stderr, "cannot bind %s\n", address.c_str());
    return 1;
  }
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  say({{"event", "store"}, {"port", ntohs(bound.sin_port)}});
  pollfd input{0, POLLIN, 0};
  while (::poll(&input, 1, -1) < 0) {
  }
  return 0;
}

bool isDueAt(const Json& faults, const char* fault, std::int64_t step) {
  if (!faults.contains(fault)) return false;
  const Json& value = faults[fault];
  return (value.is_object() ? value["step"].get<std::int64_t>() : value.get<std::int64_t>()) == step;
}

/// Returns the exit status if the worker ends here.
int beforeStep(const Json& faults, std::int64_t step, bool& ends) {
  if (isDueAt(faults, "gate_at", step))
    std::ifstream(faults["gate_at"]["fifo"].get<std::string>()).get();  // until someone writes or closes
  if (isDueAt(faults, "hang_at", step)) {
    while (true) ::pause();
  }
  if (isDueAt(faults, "signal_at", step)) ::raise(faults["signal_at"]["signal"].get<int>());
  if (isDueAt(faults, "close_stdout_at", step)) ::close(1);
  ends = true;
  if (isDueAt(faults, "exit_at", step)) return faults["exit_at"]["status"].get<int>();
  if (isDueAt(faults, "fail_at", step)) {
    say({{"event", "failed"},
         {"reason", faults["fail_at"]["reason"]},
         {"last_step", step - 1},
         {"cause", faults["fail_at"]["cause"]}});
    return 1;
  }
  ends = false;
  return 0;
}

int work(const std::string& jobFile) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto job = readJsonFile(jobFile);
  if (!job) return 9;
  const std::string rank = std::getenv("RANK");
  const Json& run = (*job)["run"];
  const Json all = run.contains("fake") ? run["fake"] : Json::object();
  const Json faults = all.contains(rank) ? all[rank] : all.contains("all") ? all["all"] : Json::object();
  if (faults.contains("ignores_term")) ::signal(SIGTERM, SIG_IGN);
  if (faults.contains("leaves_a_child") && ::fork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, 0);
    ::setsid();
    while (true) ::pause();
  }
  if (faults.contains("log_bytes")) {
    const std::string line = std::string(999, 'x') + "\n";
    for (std::int64_t written = 0; written < faults["log_bytes"].get<std::int64_t>(); written += 1000)
      std::fputs(line.c_str(), stderr);
  }
  if (faults.contains("noise_bytes")) std::printf("%s\n", std::string(faults["noise_bytes"].get<std::size_t>(), 'y').c_str());
  if (faults.contains("says")) std::printf("%s\n", faults["says"].get<std::string>().c_str());
  if (faults.contains("says_hex")) {
    const std::string hex = faults["says_hex"].get<std::string>();
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) std::putchar(std::stoi(hex.substr(i, 2), nullptr, 16));
    std::putchar('\n');
  }
  say({{"event", "ready"},
       {"device", "cpu"},
       {"omp", std::getenv("OMP_NUM_THREADS")},
       {"world", std::getenv("WORLD_SIZE")},
       {"port", std::getenv("MASTER_PORT")},
       {"address", std::getenv("EVENKEEL_TRAIN_ADDRESS")},
       {"mine", std::getenv("EVENKEEL_TEST_VARIABLE") == nullptr ? "" : std::getenv("EVENKEEL_TEST_VARIABLE")}});
  const std::int64_t steps = run["steps"].get<std::int64_t>();
  for (std::int64_t step = 1; step <= steps; ++step) {
    bool ends = false;
    const int status = beforeStep(faults, step, ends);
    if (ends) return status;
    const double loss = 6.0 / static_cast<double>(step);
    say({{"event", "step"},
         {"step", step},
         {"loss", loss},
         {"tokens", 1024},
         {"iteration_ms", 10.0 + std::stod(rank)},
         {"compute_ms", 8.0},
         {"p2p_ms", 1.0},
         {"bubble_ms", 0.5},
         {"sync_ms", 0.25},
         {"optimizer_ms", 0.25},
         {"peak_bytes", 1000 + std::stoi(rank)},
         {"grad_norm", 1.5},
         {"learning_rate", 0.001}});
  }
  if (!faults.contains("ends_without_finished")) say({{"event", "finished"}, {"steps", steps}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == "--features") {
    std::fputs(prettyText(toJson(ownRuntime())).c_str(), stdout);
    return 0;
  }
  if (words.size() == 5 && words[0] == "--store") return hostStore(words[2]);
  if (words.size() == 2 && words[0] == "--job") return work(words[1]);
  std::fprintf(stderr, "not in the protocol\n");
  return 2;
}
