// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace evenkeel {

/// An SSH server of one test: own port on 127.0.0.1, own host key, one client key that it lets in, own environment. It listens
/// itself and hands each connection to an `sshd -i` of its own, so that there is no port to race for and no start to wait for,
/// and a test can cut what it likes. Not for machines without sshd or for other users than root: see reasonToSkip().
class PrivateSshd {
 public:
  /// Empty if it can work here.
  [[nodiscard]] static std::string reasonToSkip() {
    if (::geteuid() != 0) return "a private sshd needs root";
    for (const char* program : {"/usr/sbin/sshd", "/usr/bin/ssh-keygen"}) {
      if (!std::filesystem::exists(program)) return std::string(program) + " is missing";
    }
    return {};
  }

  /// Keeps its files in `directory` (must exist). `environment` is set for every command, for example XDG_DATA_HOME; values
  /// must hold neither spaces nor quotes.
  explicit PrivateSshd(std::filesystem::path directory, const std::map<std::string, std::string>& environment = {})
      : directory_(std::move(directory)) {
    std::filesystem::create_directories("/run/sshd");
    makeKey(hostKey());
    makeKey(identity());
    std::filesystem::copy_file(identity() + ".pub", file("authorized_keys"));
    std::ofstream config(file("sshd_config"));
    config
        << "HostKey \"" << hostKey() << "\"\nAuthorizedKeysFile \"" << file("authorized_keys")
        << "\"\nPidFile none\nStrictModes no\nUsePAM no\n"
        << "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxSessions 20\nLogLevel VERBOSE\n";
    if (!environment.empty()) config << "SetEnv";
    for (const auto& [name, value] : environment) config << " " << name << "=" << value;
    config << "\n";
    config.close();
    listen();
    trustHostKey();
    acceptor_ = std::jthread([this](const std::stop_token& stop) { acceptConnections(stop); });
  }
  ~PrivateSshd() {
    acceptor_.request_stop();
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
    acceptor_.join();
    cutConnections();
    ::close(listener_);
    ::close(wake_);
  }
  PrivateSshd(const PrivateSshd&) = delete;
  PrivateSshd& operator=(const PrivateSshd&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string identity() const { return file("client key"); }     // the private key that it lets in
  [[nodiscard]] std::string knownHosts() const { return file("known hosts"); }  // holds its host key
  [[nodiscard]] std::string hostKey() const { return file("host key"); }
  [[nodiscard]] std::string file(const std::string& name) const { return (directory_ / name).string(); }
  [[nodiscard]] int connectionsSoFar() const {
    const std::lock_guard lock(mutex_);
    return accepted_;
  }

  /// Ends every connection that is open now, as if the network had failed. What runs behind them lives on.
  void cutConnections() {
    const std::lock_guard lock(mutex_);
    for (const pid_t pid : servers_) {
      ::kill(pid, SIGKILL);  // ours and not reaped yet: it cannot be anybody else's
      ::waitpid(pid, nullptr, 0);
    }
    servers_.clear();
  }
  /// From now on connections are taken and dropped at once, or served again.
  void refuseConnections(bool refuse) {
    const std::lock_guard lock(mutex_);
    refuses_ = refuse;
  }
  /// From now on connections are taken and never answered.
  void fallSilent() {
    const std::lock_guard lock(mutex_);
    isSilent_ = true;
  }

  /// Writes a fresh key pair: file and file.pub.
  static void makeKey(const std::string& file, const std::string& passPhrase = "") {
    runProgram({"/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", passPhrase, "-C", "test", "-f", file});
  }

 private:
  static pid_t start(const std::vector<std::string>& argv, int standardStream) {
    std::vector<char*> arguments;
    for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    if (standardStream >= 0) {
      ::posix_spawn_file_actions_adddup2(&actions, standardStream, 0);
      ::posix_spawn_file_actions_adddup2(&actions, standardStream, 1);
    }
    pid_t pid = -1;
    ::posix_spawn(&pid, argv.front().c_str(), &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    return pid;
  }
  static void runProgram(const std::vector<std::string>& argv) { ::waitpid(start(argv, -1), nullptr, 0); }

  void listen() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    wake_ = ::eventfd(0, EFD_CLOEXEC);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 64);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  void trustHostKey() {
    std::ifstream publicKey(hostKey() + ".pub");
    std::string type, key;
    publicKey >> type >> key;
    std::ofstream(knownHosts()) << "[127.0.0.1]:" << port_ << " " << type << " " << key << "\n";
  }
  void acceptConnections(const std::stop_token& stop) {
    std::vector<int> silent;
    while (!stop.stop_requested()) {
      std::array<pollfd, 2> fds{{{listener_, POLLIN, 0}, {wake_, POLLIN, 0}}};
      if (::poll(fds.data(), fds.size(), -1) <= 0 || fds[0].revents == 0) continue;
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      const std::lock_guard lock(mutex_);
      ++accepted_;
      if (isSilent_) {
        silent.push_back(connection);
        continue;
      }
      if (!refuses_)
        servers_.push_back(start({"/usr/sbin/sshd", "-i", "-f", file("sshd_config"), "-E", file("sshd.log")}, connection));
      ::close(connection);
    }
    for (const int connection : silent) ::close(connection);
  }

  std::filesystem::path directory_;
  int listener_ = -1, wake_ = -1, port_ = 0;
  mutable std::mutex mutex_;
  std::vector<pid_t> servers_;
  int accepted_ = 0;
  bool refuses_ = false, isSilent_ = false;
  std::jthread acceptor_;
};

}  // namespace evenkeel
