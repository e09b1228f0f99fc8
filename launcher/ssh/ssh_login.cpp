// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/ssh_login.h"

#include <fmt/format.h>
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "launcher/ssh/quoting.h"
#include "launcher/ssh/tcp.h"

namespace evenkeel {
namespace {

using Key = std::unique_ptr<ssh_key_struct, decltype(&::ssh_key_free)>;

/// Whether a private key file can only be read with a pass phrase: OpenSSH's own format names its cipher, PEM says so in words.
bool isLocked(const std::string& file) {
  constexpr std::string_view kOpenSshUnlocked = "b3BlbnNzaC1rZXktdjEAAAAABG5vbm";  // "openssh-key-v1", cipher "none", in base64
  std::ifstream stream(file);
  bool isOpenSsh = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.find("ENCRYPTED") != std::string::npos) return true;
    if (isOpenSsh) return !line.starts_with(kOpenSshUnlocked);
    isOpenSsh = line == "-----BEGIN OPENSSH PRIVATE KEY-----";
  }
  return false;
}

/// Stands where libssh or its crypto library would ask at a terminal for a pass phrase.
int refusePassPhrase(const char* /*prompt*/, char* /*buffer*/, std::size_t /*length*/, int /*echo*/, int /*verify*/,
                     void* /*data*/) {
  return -1;
}

std::string fingerprintOf(ssh_key key) {
  unsigned char* hash = nullptr;
  std::size_t length = 0;
  if (::ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &length) != SSH_OK) return "(no fingerprint)";
  const std::unique_ptr<char, decltype(&::ssh_string_free_char)> text(
      ::ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, length), &::ssh_string_free_char);
  ::ssh_clean_pubkey_hash(&hash);
  return text ? text.get() : "(no fingerprint)";
}

class Login {
 public:
  Login(const std::string& where, const SshAddress& address, const TimeLimits& limits, const StopEvent& stop, LoginHelp* help)
      : where_(where), address_(address), limits_(limits), stop_(stop), help_(help), session_(::ssh_new()) {}

  Result<SshSession> run() {
    for (const auto step : {&Login::setOptions, &Login::connect, &Login::checkHostKey, &Login::authenticate}) {
      if (auto done = (this->*step)(); !done) return done.error();
    }
    return std::move(session_);
  }

 private:
  Result<void> setOptions();
  Result<void> connect();
  Result<void> checkHostKey();
  Result<void> authenticate();
  Result<bool> tryAgent();
  Result<bool> tryKeyFile(const std::string& file);
  Result<int> drive(const std::function<int()>& call, int again);
  Error hostKeyError(int verdict, ssh_key key);
  void hindered(LoginObstacle obstacle);
  [[nodiscard]] std::string knownFingerprints() const;
  [[nodiscard]] std::string option(ssh_options_e which) const;
  [[nodiscard]] std::string sshCommand() const;

  const std::string& where_;
  const SshAddress& address_;
  const TimeLimits& limits_;
  const StopEvent& stop_;
  LoginHelp* help_;
  SshSession session_;
  std::string host_;  // after ~/.ssh/config
  unsigned port_ = 22;
  std::string user_;
  std::vector<std::string> tried_;
};

std::string Login::option(ssh_options_e which) const {
  char* value = nullptr;
  if (::ssh_options_get(session_.get(), which, &value) != SSH_OK || value == nullptr) return {};
  const std::unique_ptr<char, decltype(&::ssh_string_free_char)> owned(value, &::ssh_string_free_char);
  return value;
}

std::string Login::sshCommand() const {
  std::vector<std::string> argv{"ssh"};
  if (address_.port) argv.insert(argv.end(), {"-p", std::to_string(*address_.port)});
  if (!address_.identity.empty()) argv.insert(argv.end(), {"-i", address_.identity});
  if (!address_.knownHosts.empty()) argv.insert(argv.end(), {"-o", "UserKnownHostsFile=" + address_.knownHosts});
  argv.push_back(address_.user.empty() ? address_.host : address_.user + "@" + address_.host);
  argv.push_back("true");
  return shellLine(argv);
}

/// Repeats a non-blocking call of libssh until it is through, the time is up or the stop comes.
Result<int> Login::drive(const std::function<int()>& call, int again) {
  while (true) {
    const int outcome = call();
    if (outcome != again) return outcome;
    const int fd = ::ssh_get_fd(session_.get());
    const bool wantsToWrite = (::ssh_get_status(session_.get()) & SSH_WRITE_PENDING) != 0;
    std::array<pollfd, 2> fds{{{fd, static_cast<short>(wantsToWrite ? POLLIN | POLLOUT : POLLIN), 0}, {stop_.fd(), POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), limits_.pollTimeout());
    if (stop_.stopped()) return cancelled(where_, "logging in was stopped");
    if (ready == 0) {
      return unreachable(where_, fmt::format("{} port {} {} (it took the connection and then fell silent)", host_, port_,
                                             limits_.expired().value_or("does not answer")));
    }
  }
}

Result<void> Login::setOptions() {
  ssh_session session = session_.get();
  std::string host = address_.host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);  // an IPv6 address as in URLs
  const int off = 0, on = 1;
  ::ssh_options_set(session, SSH_OPTIONS_PROCESS_CONFIG, &off);
  ::ssh_options_set(session, SSH_OPTIONS_NODELAY, &on);
  if (::ssh_options_set(session, SSH_OPTIONS_HOST, host.c_str()) != SSH_OK) {
    return invalidInput(where_, fmt::format("\"{}\" is no host name or address", address_.host));
  }
  const bool isExplicit = address_.port && !address_.user.empty() && !address_.identity.empty();
  if (!isExplicit && ::ssh_options_parse_config(session, nullptr) != SSH_OK) {
    return invalidInput(where_, fmt::format("~/.ssh/config cannot be used: {}", ::ssh_get_error(session)));
  }
  if (address_.port) {
    const auto port = static_cast<unsigned>(*address_.port);
    ::ssh_options_set(session, SSH_OPTIONS_PORT, &port);
  }
  if (!address_.user.empty()) ::ssh_options_set(session, SSH_OPTIONS_USER, address_.user.c_str());
  if (!address_.knownHosts.empty()) {
    ::ssh_options_set(session, SSH_OPTIONS_KNOWNHOSTS, address_.knownHosts.c_str());
    ::ssh_options_set(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  }
  host_ = option(SSH_OPTIONS_HOST);
  ::ssh_options_get_port(session, &port_);
  return {};
}

Result<void> Login::connect() {
  ssh_session session = session_.get();
  if (option(SSH_OPTIONS_PROXYCOMMAND).empty()) {
    auto socket = connectTcp(where_, host_, static_cast<int>(port_), limits_, stop_);
    if (!socket) return std::move(socket).error();
    const int fd = socket->release();  // the session closes it
    ::ssh_options_set(session, SSH_OPTIONS_FD, &fd);
  }
  ::ssh_set_blocking(session, 0);
  auto connected = drive([&] { return ::ssh_connect(session); }, SSH_AGAIN);
  if (!connected) return std::move(connected).error();
  if (*connected != SSH_OK) return unreachable(where_, fmt::format("{} port {}: {}", host_, port_, ::ssh_get_error(session)));
  return {};
}

/// Of the keys that the known-hosts file has for this host.
std::string Login::knownFingerprints() const {
  const std::string name = port_ == 22 ? host_ : fmt::format("[{}]:{}", host_, port_);
  std::string fingerprints;
  std::ifstream file(option(SSH_OPTIONS_KNOWNHOSTS));
  for (std::string line; std::getline(file, line);) {
    ssh_knownhosts_entry* entry = nullptr;
    if (::ssh_known_hosts_parse_line(name.c_str(), line.c_str(), &entry) != SSH_OK || entry == nullptr) continue;
    if (!fingerprints.empty()) fingerprints += ", ";
    fingerprints +=
        fmt::format("{} {}", ::ssh_key_type_to_char(::ssh_key_type(entry->publickey)), fingerprintOf(entry->publickey));
    ::ssh_knownhosts_entry_free(entry);
  }
  return fingerprints.empty() ? "another one" : fingerprints;
}

void Login::hindered(LoginObstacle obstacle) {
  obstacle.host = host_;
  obstacle.port = static_cast<int>(port_);
  if (help_ != nullptr) help_->obstacle = std::move(obstacle);
}

Error Login::hostKeyError(int verdict, ssh_key key) {
  const std::string file = address_.knownHosts.empty() ? option(SSH_OPTIONS_KNOWNHOSTS) : address_.knownHosts;
  const std::string shown = fmt::format("{} {}", ::ssh_key_type_to_char(::ssh_key_type(key)), fingerprintOf(key));
  const std::string entry = port_ == 22 ? host_ : fmt::format("[{}]:{}", host_, port_);
  if (verdict == SSH_KNOWN_HOSTS_UNKNOWN || verdict == SSH_KNOWN_HOSTS_NOT_FOUND) {
    char* line = nullptr;
    ::ssh_session_export_known_hosts_entry(session_.get(), &line);
    const std::unique_ptr<char, decltype(&::ssh_string_free_char)> owned(line, &::ssh_string_free_char);
    hindered({.shownKey = shown, .knownHosts = file, .knownHostsLine = line == nullptr ? "" : line});
    return failed(
        where_, fmt::format("the key of {} port {} is unknown: {}", host_, port_, shown),
        fmt::format("compare it with `ssh-keygen -lf` of the host's own key file; if they are equal: ssh-keyscan -p {} {} >> {}",
                    port_, shellWord(host_), shellWord(file)));
  }
  hindered(
      {.kind = LoginObstacle::Kind::ChangedHostKey, .shownKey = shown, .knownKeys = knownFingerprints(), .knownHosts = file});
  return failed(where_,
                fmt::format("the key of {} port {} has changed: {} has {}, the host shows {}: someone may be in between", host_,
                            port_, file, knownFingerprints(), shown),
                fmt::format("if the host was really set up anew: ssh-keygen -R {} -f {}", shellWord(entry), shellWord(file)));
}

Result<void> Login::checkHostKey() {
  ssh_key raw = nullptr;
  if (::ssh_get_server_publickey(session_.get(), &raw) != SSH_OK) return unreachable(where_, "the host shows no key");
  const Key key(raw, &::ssh_key_free);
  const ssh_known_hosts_e verdict = ::ssh_session_is_known_server(session_.get());
  if (verdict == SSH_KNOWN_HOSTS_OK) return {};
  if (verdict == SSH_KNOWN_HOSTS_ERROR) {
    return failed(where_, fmt::format("the known hosts in {} cannot be read: {}", option(SSH_OPTIONS_KNOWNHOSTS),
                                      ::ssh_get_error(session_.get())));
  }
  return hostKeyError(verdict, raw);
}

Result<bool> Login::tryAgent() {
  if (std::getenv("SSH_AUTH_SOCK") == nullptr) {
    tried_.emplace_back("ssh-agent (none: SSH_AUTH_SOCK is not set)");
    return false;
  }
  tried_.emplace_back("the keys of ssh-agent");
  auto outcome = drive([&] { return ::ssh_userauth_agent(session_.get(), nullptr); }, SSH_AUTH_AGAIN);
  if (!outcome) return std::move(outcome).error();
  return *outcome == SSH_AUTH_SUCCESS;
}

Result<bool> Login::tryKeyFile(const std::string& file) {
  ssh_key raw = nullptr;
  const auto given = help_ == nullptr ? std::map<std::string, std::string>::const_iterator{} : help_->passPhrases.find(file);
  const bool isGiven = help_ != nullptr && given != help_->passPhrases.end();
  const int read =
      ::ssh_pki_import_privkey_file(file.c_str(), isGiven ? given->second.c_str() : nullptr, &refusePassPhrase, nullptr, &raw);
  const Key key(raw, &::ssh_key_free);
  if (read == SSH_EOF) {
    tried_.push_back(fmt::format("{} (no such file, or not readable)", file));
    return false;
  }
  if (read != SSH_OK) {
    const bool needsPassPhrase = isLocked(file);
    if (needsPassPhrase) hindered({.kind = LoginObstacle::Kind::PassPhrase, .identity = file, .wasWrong = isGiven});
    tried_.push_back(!needsPassPhrase ? fmt::format("{} (no private key)", file)
                     : isGiven        ? fmt::format("{} (the pass phrase does not open it)", file)
                                      : fmt::format("{} (it needs a pass phrase: ssh-add {})", file, shellWord(file)));
    return false;
  }
  tried_.push_back(file);
  auto outcome = drive([&] { return ::ssh_userauth_publickey(session_.get(), nullptr, raw); }, SSH_AUTH_AGAIN);
  if (!outcome) return std::move(outcome).error();
  return *outcome == SSH_AUTH_SUCCESS;
}

Result<void> Login::authenticate() {
  // asking with "none" makes the server say what it accepts
  auto none = drive([&] { return ::ssh_userauth_none(session_.get(), nullptr); }, SSH_AUTH_AGAIN);
  if (!none) return std::move(none).error();
  if (*none == SSH_AUTH_SUCCESS) return {};
  const int accepted = ::ssh_userauth_list(session_.get(), nullptr);
  if ((static_cast<unsigned>(accepted) & SSH_AUTH_METHOD_PUBLICKEY) != 0) {
    auto byAgent = tryAgent();
    if (!byAgent) return std::move(byAgent).error();
    if (*byAgent) return {};
    std::vector<std::string> files;
    if (!address_.identity.empty()) {
      files.push_back(address_.identity);
    } else {
      if (const std::string configured = option(SSH_OPTIONS_IDENTITY); !configured.empty()) files.push_back(configured);
      const char* home = std::getenv("HOME");
      for (const char* name : {"id_ed25519", "id_ecdsa", "id_rsa"}) {
        const std::string file = fmt::format("{}/.ssh/{}", home == nullptr ? "" : home, name);
        if (std::filesystem::exists(file) && (files.empty() || files.front() != file)) files.push_back(file);
      }
    }
    for (const std::string& file : files) {
      auto byKey = tryKeyFile(file);
      if (!byKey) return std::move(byKey).error();
      if (*byKey) return {};
    }
  } else {
    tried_.emplace_back("nothing: the host takes no keys, and we answer no questions");
  }
  if (::ssh_is_connected(session_.get()) == 0)
    return unreachable(where_, fmt::format("{} port {} closed the connection during login", host_, port_));
  std::string tried;
  for (const std::string& one : tried_) tried += (tried.empty() ? "" : ", ") + one;
  return failed(where_, fmt::format("{} port {} refuses the login; tried: {}", host_, port_, tried),
                "this must work without a question: " + sshCommand());
}

}  // namespace

void SshSessionEnd::operator()(ssh_session_struct* session) const {
  ::ssh_silent_disconnect(session);
  ::ssh_free(session);
}

Result<SshSession> logIn(const std::string& where, const SshAddress& address, const TimeLimits& limits, const StopEvent& stop,
                         LoginHelp* help) {
  if (help != nullptr) help->obstacle.reset();
  auto session = Login(where, address, limits, stop, help).run();
  if (session && help != nullptr) help->obstacle.reset();  // another key did
  return session;
}

Result<void> trustHostKey(const LoginObstacle& unknown) {
  assert(unknown.kind == LoginObstacle::Kind::UnknownHostKey);
  const std::filesystem::path file = unknown.knownHosts;
  std::error_code ignored;
  if (!file.parent_path().empty() && std::filesystem::create_directory(file.parent_path(), ignored))
    std::filesystem::permissions(file.parent_path(), std::filesystem::perms::owner_all, ignored);
  // A file of an editor may lack its last newline: ours must not continue that line.
  std::ifstream before(file, std::ios::binary | std::ios::ate);
  const bool isOpenLine = before && before.tellg() > 0 && before.seekg(-1, std::ios::end) && before.get() != '\n';
  std::ofstream stream(file, std::ios::app);
  stream << (isOpenLine ? "\n" : "") << unknown.knownHostsLine << (unknown.knownHostsLine.ends_with('\n') ? "" : "\n");
  stream.flush();
  if (stream) return {};
  return failed(file.string(), "cannot be written", "check who may write it");
}

}  // namespace evenkeel
