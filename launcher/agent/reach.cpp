// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/agent/reach.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>

#include "launcher/agent/processes.h"

namespace evenkeel {
namespace {

using Clock = std::chrono::steady_clock;
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

constexpr int kConnectMs = 5'000, kAnswerMs = 20'000, kIdleMs = 120'000;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30U;
constexpr std::int64_t kEnd = -1;  // in place of a length: the listener ends
constexpr std::chrono::milliseconds kPerSize{400};
constexpr int kFewest = 3, kMost = 200;  // messages of a size

Result<Addresses> numeric(const std::string& address, const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | flags;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(address.c_str(), port.c_str(), &hints, &found); code != 0)
    return invalidInput(address, fmt::format("is no numeric address: {}", ::gai_strerror(code)));
  return Addresses(found, &::freeaddrinfo);
}

bool await(int fd, short events, int timeout) {
  pollfd ready{fd, events, 0};
  int outcome = 0;
  while ((outcome = ::poll(&ready, 1, timeout)) < 0 && errno == EINTR) {
  }
  return outcome > 0;
}

bool receive(int fd, char* into, std::size_t count, int timeout) {
  while (count > 0) {
    if (!await(fd, POLLIN, timeout)) return false;
    const ssize_t got = ::recv(fd, into, count, 0);
    if (got <= 0 && !(got < 0 && errno == EINTR)) return false;
    if (got > 0) into += got, count -= static_cast<std::size_t>(got);
  }
  return true;
}

bool send(int fd, const char* from, std::size_t count) {
  while (count > 0) {
    if (!await(fd, POLLOUT, kAnswerMs)) return false;
    const ssize_t sent = ::send(fd, from, count, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return false;
    from += sent, count -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// One connection of the listener: a length, so many bytes, one byte back; false if it is to end.
bool serve(int fd, std::vector<char>& buffer) {
  std::int64_t length = 0;
  while (receive(fd, reinterpret_cast<char*>(&length), sizeof length, kAnswerMs)) {
    if (length == kEnd) return false;
    if (length < 1 || length > kMostBytes) return true;
    for (std::int64_t left = length; left > 0;) {
      const std::size_t piece = static_cast<std::size_t>(std::min<std::int64_t>(left, static_cast<std::int64_t>(buffer.size())));
      if (!receive(fd, buffer.data(), piece, kAnswerMs)) return true;
      left -= static_cast<std::int64_t>(piece);
    }
    if (!send(fd, "k", 1)) return true;
  }
  return true;
}

[[noreturn]] void listenOn(const Fd& listener) {
  ::setsid();
  ::signal(SIGPIPE, SIG_IGN);
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int stream : {0, 1, 2}) ::dup2(nothing.get(), stream);
  // Connections that wait for their turn, one process each: they are few, and none may hold up another.
  ::signal(SIGCHLD, SIG_IGN);
  std::array<int, 2> ended{};
  if (::pipe2(ended.data(), O_CLOEXEC) != 0) ::_exit(1);
  while (true) {
    std::array<pollfd, 2> ready{{{listener.get(), POLLIN, 0}, {ended[0], POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), kIdleMs) <= 0 || ready[1].revents != 0) ::_exit(0);
    const Fd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.isOpen() || ::fork() != 0) continue;
    std::vector<char> buffer(std::size_t{1} << 20U);
    if (!serve(connection.get(), buffer)) [[maybe_unused]]
      const ssize_t told = ::write(ended[1], "e", 1);
    ::_exit(0);
  }
}

Result<Fd> connectTo(const std::string& target) {
  const std::size_t colon = target.rfind(':');
  if (colon == std::string::npos) return invalidInput(target, "names no port", "expected ADDRESS:PORT");
  std::string address = target.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  auto found = numeric(address, target.substr(colon + 1), AI_NUMERICSERV);
  if (!found) return std::move(found).error();
  Fd fd(::socket((*found)->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd.get(), (*found)->ai_addr, (*found)->ai_addrlen) == 0) return fd;
  int outcome = errno;
  if (outcome == EINPROGRESS) {
    socklen_t size = sizeof outcome;
    if (!await(fd.get(), POLLOUT, kConnectMs)) return unreachable(target, "does not answer");
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &outcome, &size);
  }
  if (outcome != 0) return unreachable(target, ::strerror(outcome));
  return fd;
}

/// Seconds for one message and its answer; nothing if the connection broke.
std::optional<double> timeOf(int fd, std::int64_t length, const std::vector<char>& bytes) {
  const auto begin = Clock::now();
  if (!send(fd, reinterpret_cast<const char*>(&length), sizeof length)) return std::nullopt;
  for (std::int64_t left = length; left > 0;) {
    const std::size_t piece = static_cast<std::size_t>(std::min<std::int64_t>(left, static_cast<std::int64_t>(bytes.size())));
    if (!send(fd, bytes.data(), piece)) return std::nullopt;
    left -= static_cast<std::int64_t>(piece);
  }
  char answer = 0;
  if (!receive(fd, &answer, 1, kAnswerMs)) return std::nullopt;
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The median of several messages of one size.
std::optional<double> medianOf(int fd, std::int64_t length, const std::vector<char>& bytes) {
  std::vector<double> times;
  const auto end = Clock::now() + kPerSize;
  while (static_cast<int>(times.size()) < kFewest || (static_cast<int>(times.size()) < kMost && Clock::now() < end)) {
    const auto time = timeOf(fd, length, bytes);
    if (!time) return std::nullopt;
    times.push_back(*time);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

Json reachOne(const std::string& target, const ReachOptions& options, const std::vector<char>& bytes) {
  const auto fail = [&](const std::string& reason) { return Json{{"to", target}, {"ok", false}, {"reason", reason}}; };
  const auto fd = connectTo(target);
  if (!fd) return fail(fd.error().what);
  const auto one = options.sizes.empty() ? timeOf(fd->get(), 1, bytes) : medianOf(fd->get(), 1, bytes);
  if (!one) return fail("took the connection and did not answer");
  Json answer{{"to", target}, {"ok", true}, {"latency_us", *one / 2 * 1e6}, {"times_us", Json::array()}};
  for (const std::int64_t size : options.sizes) {
    const auto time = medianOf(fd->get(), size, bytes);
    if (!time) return fail("the connection broke while it was measured");
    answer["times_us"].push_back(std::max(1e-3, (*time - *one) * 1e6));
  }
  if (options.endThem) [[maybe_unused]]
    const bool told = send(fd->get(), reinterpret_cast<const char*>(&kEnd), sizeof kEnd);
  return answer;
}

}  // namespace

Result<Json> listenAt(const std::string& address) {
  auto found = numeric(address, "0", AI_PASSIVE);
  if (!found) return std::move(found).error();
  Fd listener(::socket((*found)->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(listener.get(), (*found)->ai_addr, (*found)->ai_addrlen) != 0 || ::listen(listener.get(), 64) != 0)
    return failed(address, fmt::format("is no address of this machine: {}", ::strerror(errno)),
                  "give the node the right train_address");
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  const auto port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                                      : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  const pid_t pid = ::fork();
  if (pid < 0) return failed("evenkeel-agent", fmt::format("cannot fork: {}", ::strerror(errno)));
  if (pid == 0) listenOn(listener);
  return Json{{"port", port}, {"pid", pid}};
}

Result<Json> reach(const ReachOptions& options) {
  for (const std::int64_t size : options.sizes) {
    if (size < 1 || size > kMostBytes)
      return invalidInput("--sizes", fmt::format("{} bytes cannot be sent", size), "expected 1 to 1073741824");
  }
  const std::vector<char> bytes(std::size_t{1} << 20U);
  Json reached = Json::array();
  for (const std::string& target : options.targets) reached.push_back(reachOne(target, options, bytes));
  return Json{{"reached", std::move(reached)}};
}

}  // namespace evenkeel
