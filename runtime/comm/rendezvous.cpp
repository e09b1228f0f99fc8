// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/comm/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "runtime/job/events.h"

namespace evenkeel {
namespace {

std::chrono::milliseconds toMilliseconds(Seconds time) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(milliseconds(time)));
}

std::vector<std::uint8_t> bytesOf(const std::string& text) { return {text.begin(), text.end()}; }

c10d::TCPStoreOptions optionsOf(int port, Seconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  options.waitWorkers = false;
  options.timeout = toMilliseconds(timeout);
  return options;
}

/// Blocks until SIGTERM, SIGINT or the end of stdin.
void waitForTheEnd() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::array<pollfd, 2> sources = {{{::signalfd(-1, &signals, SFD_CLOEXEC), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
  for (;;) {
    if (::poll(sources.data(), sources.size(), -1) < 0 && errno != EINTR) return;
    if (sources[0].revents != 0) return;
    std::array<char, 256> ignored{};
    if (sources[1].revents != 0 && ::read(STDIN_FILENO, ignored.data(), ignored.size()) <= 0) return;
  }
}

}  // namespace

int serveStore(const std::string& address, int ranks) {
  try {
    c10d::TCPStoreOptions options = optionsOf(0, Seconds{30});
    options.isServer = true;
    options.numWorkers = static_cast<std::size_t>(ranks);
    const c10d::TCPStore store(address, options);
    EventWriter(STDOUT_FILENO).write("store", {{"port", store.getPort()}});
    waitForTheEnd();
    return 0;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "evenkeel-worker: {}: cannot host the store: {}\n", address, failure.what());
    return 1;
  }
}

struct Rendezvous::State {
  Options options;
  std::string place;
  c10::intrusive_ptr<c10d::TCPStore> store;

  void connect() { store = c10::make_intrusive<c10d::TCPStore>(options.address, optionsOf(options.port, options.timeout)); }
};

Rendezvous::Rendezvous(std::unique_ptr<State> state) : state_(std::move(state)) {}
Rendezvous::Rendezvous(Rendezvous&&) noexcept = default;
Rendezvous& Rendezvous::operator=(Rendezvous&&) noexcept = default;
Rendezvous::~Rendezvous() = default;

Result<Rendezvous> Rendezvous::connect(const Options& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  state->place = fmt::format("store at {}:{}", options.address, options.port);
  try {
    state->connect();
  } catch (const std::exception&) {
    return unreachable(state->place, fmt::format("does not answer within {:g} s", options.timeout.value),
                       "check MASTER_ADDR and MASTER_PORT");
  }
  return Rendezvous(std::move(state));
}

Result<void> Rendezvous::publish(const std::string& name, const std::string& text) {
  try {
    state_->store->set(name, bytesOf(text));
    state_->store->wait({name}, toMilliseconds(state_->options.timeout));  // set() only sends; this says that it has arrived
    return {};
  } catch (const std::exception& failure) {
    return unreachable(state_->place, fmt::format("lost: {}", failure.what()));
  }
}

Result<std::string> Rendezvous::await(const std::string& name) {
  try {
    const auto bytes = state_->store->get(name);
    return std::string(bytes.begin(), bytes.end());
  } catch (const std::exception&) {
    return unreachable(state_->place, fmt::format("nobody published {} within {:g} s", name, state_->options.timeout.value));
  }
}

void Rendezvous::awaitAll(const std::vector<std::string>& names, Seconds patience) {
  try {
    state_->store->wait(names, toMilliseconds(patience));
  } catch (const std::exception&) {
    // Those that are missing show in peek(). An answer to this wait may still come: it must not be taken for another one's.
    try {
      state_->connect();
    } catch (const std::exception&) {
      // peek() finds nothing then
    }
  }
}

std::string Rendezvous::peek(const std::string& name) {
  try {
    if (!state_->store->check({name})) return {};
    const auto bytes = state_->store->get(name);
    return {bytes.begin(), bytes.end()};
  } catch (const std::exception&) {
    return {};
  }
}

c10d::Store& Rendezvous::store() const { return *state_->store; }

}  // namespace evenkeel
