// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/tcp.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>

namespace evenkeel {
namespace {

std::string numeric(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return {};
  if (::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text.data();
}

/// 0, or the errno of a connect that is under way.
int outcomeOf(int fd) {
  int outcome = 0;
  socklen_t size = sizeof outcome;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &outcome, &size);
  return outcome;
}

}  // namespace

Result<OwnedFd> connectTcp(const std::string& where, const std::string& host, int port, const TimeLimits& limits,
                           const StopEvent& stop) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  int lookup = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (lookup != 0) {  // a numeric address of a family that no interface has is still an address: loopback, for example
    hints.ai_flags = AI_NUMERICHOST;
    if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
      return unreachable(
          where, fmt::format("cannot find the address of {}: {}", host, ::gai_strerror(lookup)),
          fmt::format("is the name right? `getent hosts {}` asks the same; ~/.ssh/config may give its HostName", host));
    }
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  std::string reasons, remedy = "is the address right, and is this machine on that network (VPN)?";
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    OwnedFd fd(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int outcome = fd.get() < 0 || ::connect(fd.get(), one->ai_addr, one->ai_addrlen) != 0 ? errno : 0;
    while (outcome == EINPROGRESS) {
      std::array<pollfd, 2> fds{{{fd.get(), POLLOUT, 0}, {stop.fd(), POLLIN, 0}}};
      const int ready = ::poll(fds.data(), fds.size(), limits.pollTimeout());
      if (stop.stopped()) return cancelled(where, "connecting was stopped");
      if (ready == 0)
        return unreachable(where, fmt::format("{} port {} does not answer", numeric(one->ai_addr, one->ai_addrlen), port),
                           "is the machine on, and does a firewall let this port through?");
      if (fds[0].revents != 0) outcome = outcomeOf(fd.get());
    }
    if (outcome == 0) {
      const int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return fd;
    }
    if (outcome == ECONNREFUSED) remedy = "does sshd run there, and is that its port?";
    reasons += fmt::format("{}{} port {}: {}", reasons.empty() ? "" : ", ", numeric(one->ai_addr, one->ai_addrlen), port,
                           ::strerror(outcome));
  }
  return unreachable(where, reasons, remedy);
}

std::string peerAddressOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  return ::getpeername(fd, generic, &length) == 0 ? numeric(generic, length) : std::string();
}

std::string ownAddressOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  return ::getsockname(fd, generic, &length) == 0 ? numeric(generic, length) : std::string();
}

}  // namespace evenkeel
