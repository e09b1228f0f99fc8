// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/ssh_login.h"

#include <fmt/format.h>
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "core/base/words.h"
#include "launcher/ssh/host_keys.h"
#include "launcher/ssh/quoting.h"
#include "launcher/ssh/ssh_config.h"
#include "launcher/ssh/ssh_line.h"
#include "launcher/ssh/tcp.h"

namespace evenkeel {
namespace {

using Key = std::unique_ptr<ssh_key_struct, decltype(&::ssh_key_free)>;
using Kind = LoginObstacle::Kind;

constexpr int kMostRounds = 8;  // of questions of one login

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

class Login {
 public:
  Login(const std::string& where, const SshAddress& address, const TimeLimits& limits, const StopEvent& stop, LoginHelp* help)
      : where_(where), address_(address), limits_(limits), stop_(stop), help_(help), session_(::ssh_new()) {}

  Result<SshSession> run() {
    for (const auto step : {&Login::setOptions, &Login::connect, &Login::checkKey, &Login::authenticate}) {
      if (auto done = (this->*step)(); !done) return done.error();
    }
    return std::move(session_);
  }

 private:
  Result<void> setOptions();
  Result<void> connect();
  Result<OwnedFd> line();
  Result<OwnedFd> lineThroughJumps();
  Result<void> checkKey();
  Result<void> authenticate();
  Result<bool> tryAgent();
  Result<bool> tryKeyFile(const std::string& file);
  Result<bool> tryQuestions();
  Result<bool> tryPassword();
  Result<int> drive(const std::function<int()>& call, int again);
  void hindered(LoginObstacle obstacle);
  /// What a person has given for this obstacle.
  [[nodiscard]] const std::string* secretFor(const LoginObstacle& obstacle) const;
  [[nodiscard]] bool accepts(unsigned method) const {
    return (static_cast<unsigned>(::ssh_userauth_list(session_.get(), nullptr)) & method) != 0;
  }
  [[nodiscard]] LoginObstacle obstacleOf(Kind kind, std::string question = {}) const;
  [[nodiscard]] std::string place() const { return fmt::format("{} port {}", settings_.host, settings_.port); }
  [[nodiscard]] std::string sshCommand(std::vector<std::string> argv, bool withCommand = true) const;
  [[nodiscard]] Error refusal() const;

  const std::string& where_;
  const SshAddress& address_;
  const TimeLimits& limits_;
  const StopEvent& stop_;
  LoginHelp* help_;
  SshSettings settings_;
  SshSession session_;
  std::function<std::string()> complaint_;  // of a proxy command
  std::vector<std::string> tried_;
};

std::string Login::sshCommand(std::vector<std::string> argv, bool withCommand) const {
  if (address_.port) argv.insert(argv.end(), {"-p", std::to_string(*address_.port)});
  if (!address_.identity.empty()) argv.insert(argv.end(), {"-i", address_.identity});
  if (!address_.knownHosts.empty()) argv.insert(argv.end(), {"-o", "UserKnownHostsFile=" + address_.knownHosts});
  if (!address_.proxyJump.empty()) argv.insert(argv.end(), {"-o", "ProxyJump=" + address_.proxyJump});
  argv.push_back(address_.user.empty() ? address_.host : address_.user + "@" + address_.host);
  if (withCommand) argv.emplace_back("true");
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
      return unreachable(where_,
                         fmt::format("{} {} (it took the connection and then fell silent)", place(),
                                     limits_.expired().value_or("does not answer")),
                         "is that port an SSH server's, and is the machine alive?");
    }
  }
}

Result<void> Login::setOptions() {
  auto settings = settingsOf(where_, address_);
  if (!settings) return settings.error();
  settings_ = *std::move(settings);
  ssh_session session = session_.get();
  const int off = 0, on = 1;
  ::ssh_options_set(session, SSH_OPTIONS_PROCESS_CONFIG, &off);
  ::ssh_options_set(session, SSH_OPTIONS_NODELAY, &on);
  // Before the configuration, which may say otherwise. What processors do by themselves comes first: a quarter less work a byte than
  // libssh's own first choice, and uploads to many nodes are limited by that.
  for (const auto direction : {SSH_OPTIONS_CIPHERS_C_S, SSH_OPTIONS_CIPHERS_S_C})
    ::ssh_options_set(session, direction,
                      "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-ctr,aes192-ctr,aes128-ctr");
  ::ssh_options_set(session, SSH_OPTIONS_HOST, address_.host.c_str());
  const bool isExplicit = address_.port && !address_.user.empty() && !address_.identity.empty();
  // ciphers and the like; settingsOf() has found it readable
  if (!isExplicit) [[maybe_unused]] const bool isRead = parseSshConfig(session, {});
  const auto port = static_cast<unsigned>(settings_.port);
  ::ssh_options_set(session, SSH_OPTIONS_HOST, settings_.host.c_str());
  ::ssh_options_set(session, SSH_OPTIONS_PORT, &port);
  if (!settings_.user.empty()) ::ssh_options_set(session, SSH_OPTIONS_USER, settings_.user.c_str());
  ::ssh_options_set(session, SSH_OPTIONS_KNOWNHOSTS, settings_.knownHosts.c_str());
  if (!address_.knownHosts.empty()) ::ssh_options_set(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  return {};
}

Result<OwnedFd> Login::lineThroughJumps() {
  // the last jump host is the one that knows our host; it is reached through those before it
  const std::size_t comma = address_.proxyJump.rfind(',');
  std::string last = comma == std::string::npos ? address_.proxyJump : address_.proxyJump.substr(comma + 1);
  SshAddress jump{.identity = address_.identity, .knownHosts = address_.knownHosts};
  if (comma != std::string::npos) jump.proxyJump = address_.proxyJump.substr(0, comma);
  if (const std::size_t at = last.rfind('@'); at != std::string::npos) {
    jump.user = last.substr(0, at);
    last.erase(0, at + 1);
  }
  const bool isBareIpv6 = !last.starts_with('[') && std::ranges::count(last, ':') > 1;
  if (const std::size_t colon = last.rfind(':'); colon != std::string::npos && !isBareIpv6 && !last.ends_with(']')) {
    jump.port = parseNumber<int>(std::string_view(last).substr(colon + 1)).value_or(0);
    last.erase(colon);
  }
  jump.host = last;
  const std::string name = fmt::format("{}, jump host {}", where_, jump.host);
  auto session = logIn(name, jump, limits_, stop_, help_);
  if (!session) return std::move(session).error();
  auto line = lineThroughJump(where_, *std::move(session), jump.host, settings_.host, settings_.port, limits_, stop_);
  if (!line) return std::move(line).error();
  session_.get_deleter().line = std::move(line->owner);
  return std::move(line->fd);
}

Result<OwnedFd> Login::line() {
  if (!address_.proxyJump.empty()) return lineThroughJumps();
  if (settings_.proxyCommand.empty()) return connectTcp(where_, settings_.host, settings_.port, limits_, stop_);
  auto line = lineThroughCommand(where_, settings_.proxyCommand);
  if (!line) return std::move(line).error();
  session_.get_deleter().line = std::move(line->owner);
  complaint_ = std::move(line->complaint);
  return std::move(line->fd);
}

Result<void> Login::connect() {
  auto socket = line();
  if (!socket) return std::move(socket).error();
  ssh_session session = session_.get();
  const int fd = socket->release();  // the session closes it
  ::ssh_options_set(session, SSH_OPTIONS_FD, &fd);
  ::ssh_set_blocking(session, 0);
  auto connected = drive([&] { return ::ssh_connect(session); }, SSH_AGAIN);
  const std::string said = complaint_ ? complaint_() : std::string();
  const std::string remedy = complaint_ ? "this must work without a question: " + sshCommand({"ssh", "-o", "BatchMode=yes"})
                                        : "is that port an SSH server's?";
  if (!connected) {
    Error error = std::move(connected).error();
    if (!said.empty()) error.what += "; the proxy command says: " + said;
    return error;
  }
  if (*connected == SSH_OK) return {};
  return unreachable(where_,
                     said.empty() ? fmt::format("{}: {}", place(), ::ssh_get_error(session))
                                  : fmt::format("{}: the proxy command says: {}", place(), said),
                     remedy);
}

void Login::hindered(LoginObstacle obstacle) {
  obstacle.host = settings_.host;
  obstacle.port = settings_.port;
  if (help_ != nullptr) help_->obstacle = std::move(obstacle);
}

const std::string* Login::secretFor(const LoginObstacle& obstacle) const {
  if (help_ == nullptr) return nullptr;
  const auto given = help_->secrets.find(obstacle.secretName());
  return given == help_->secrets.end() ? nullptr : &given->second;
}

LoginObstacle Login::obstacleOf(Kind kind, std::string question) const {
  std::string user = settings_.user;
  if (user.empty() && std::getenv("USER") != nullptr) user = std::getenv("USER");
  return {.kind = kind, .host = settings_.host, .port = settings_.port, .user = std::move(user), .question = std::move(question)};
}

Result<void> Login::checkKey() {
  std::optional<LoginObstacle> obstacle;
  auto checked = checkHostKey(where_, session_.get(), settings_, obstacle);
  if (obstacle) hindered(*std::move(obstacle));
  return checked;
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
  LoginObstacle locked = obstacleOf(Kind::PassPhrase);
  locked.identity = file;
  const std::string* given = secretFor(locked);
  const int read =
      ::ssh_pki_import_privkey_file(file.c_str(), given == nullptr ? nullptr : given->c_str(), &refusePassPhrase, nullptr, &raw);
  const Key key(raw, &::ssh_key_free);
  if (read == SSH_EOF) {
    tried_.push_back(fmt::format("{} (no such file, or not readable)", file));
    return false;
  }
  if (read != SSH_OK) {
    const bool needsPassPhrase = isLocked(file);
    locked.wasWrong = given != nullptr;
    if (needsPassPhrase) hindered(locked);
    tried_.push_back(!needsPassPhrase   ? fmt::format("{} (no private key)", file)
                     : given != nullptr ? fmt::format("{} (the pass phrase does not open it)", file)
                                        : fmt::format("{} (it needs a pass phrase: ssh-add {})", file, shellWord(file)));
    return false;
  }
  tried_.push_back(file);
  auto outcome = drive([&] { return ::ssh_userauth_publickey(session_.get(), nullptr, raw); }, SSH_AUTH_AGAIN);
  if (!outcome) return std::move(outcome).error();
  return *outcome == SSH_AUTH_SUCCESS;
}

/// Keyboard-interactive: the server asks, what a person has answered before is handed over; the first open question is the
/// obstacle.
Result<bool> Login::tryQuestions() {
  tried_.emplace_back("the server's questions");
  std::optional<LoginObstacle> last;  // that we had an answer to
  for (int round = 0; round < kMostRounds; ++round) {
    auto outcome = drive([&] { return ::ssh_userauth_kbdint(session_.get(), nullptr, nullptr); }, SSH_AUTH_AGAIN);
    if (!outcome) return std::move(outcome).error();
    if (*outcome == SSH_AUTH_SUCCESS) return true;
    if (*outcome != SSH_AUTH_INFO) {
      if (last && *outcome == SSH_AUTH_DENIED) {
        last->wasWrong = true;
        hindered(*last);
        tried_.back() = fmt::format("the server's question \"{}\" (the answer was wrong)", last->question);
      }
      return false;
    }
    const int count = ::ssh_userauth_kbdint_getnprompts(session_.get());
    for (int i = 0; i < count; ++i) {
      char isShown = 0;
      const char* text = ::ssh_userauth_kbdint_getprompt(session_.get(), static_cast<unsigned>(i), &isShown);
      LoginObstacle question = obstacleOf(Kind::Question, text == nullptr ? "" : text);
      while (!question.question.empty() && question.question.back() == ' ') question.question.pop_back();
      question.isShown = isShown != 0;
      const std::string* answer = secretFor(question);
      if (answer == nullptr) {
        tried_.back() = fmt::format("the server's question \"{}\" (nobody is here to answer it)", question.question);
        hindered(std::move(question));
        return false;
      }
      ::ssh_userauth_kbdint_setanswer(session_.get(), static_cast<unsigned>(i), answer->c_str());
      last = std::move(question);
    }
  }
  return false;
}

Result<bool> Login::tryPassword() {
  LoginObstacle missing = obstacleOf(Kind::Password);
  const std::string* password = secretFor(missing);
  if (password == nullptr) {
    tried_.emplace_back("a password (nobody is here to type it)");
    hindered(std::move(missing));
    return false;
  }
  auto outcome = drive([&] { return ::ssh_userauth_password(session_.get(), nullptr, password->c_str()); }, SSH_AUTH_AGAIN);
  if (!outcome) return std::move(outcome).error();
  if (*outcome == SSH_AUTH_SUCCESS) return true;
  tried_.emplace_back("the password (it was wrong)");
  missing.wasWrong = true;
  if (*outcome == SSH_AUTH_DENIED) hindered(std::move(missing));
  return false;
}

Result<void> Login::authenticate() {
  // asking with "none" makes the server say what it accepts
  auto none = drive([&] { return ::ssh_userauth_none(session_.get(), nullptr); }, SSH_AUTH_AGAIN);
  if (!none) return std::move(none).error();
  if (*none == SSH_AUTH_SUCCESS) return {};
  std::vector<std::function<Result<bool>()>> ways;
  if (accepts(SSH_AUTH_METHOD_PUBLICKEY)) {
    ways.emplace_back([this] { return tryAgent(); });
    for (const std::string& file : settings_.identities) ways.emplace_back([this, file] { return tryKeyFile(file); });
  }
  // Asked only after the keys, when the server says again what it accepts: it may want a key and an answer.
  bool needsPassPhrase = false;
  ways.emplace_back([&]() -> Result<bool> {
    needsPassPhrase = help_ != nullptr && help_->obstacle && help_->obstacle->kind == Kind::PassPhrase;
    if (needsPassPhrase) return false;  // a key that can be opened comes before a password
    return accepts(SSH_AUTH_METHOD_INTERACTIVE) ? tryQuestions()
           : accepts(SSH_AUTH_METHOD_PASSWORD)  ? tryPassword()
                                                : Result<bool>(false);
  });
  for (const auto& way : ways) {
    auto isIn = way();
    if (!isIn) return std::move(isIn).error();
    if (*isIn) return {};
    if (::ssh_is_connected(session_.get()) == 0) break;
  }
  if (::ssh_is_connected(session_.get()) == 0 && tried_.size() < 2)
    return unreachable(where_, place() + " closed the connection during login", "its log says why (sshd: journalctl -u ssh)");
  return refusal();
}

Error Login::refusal() const {
  std::string tried;
  for (const std::string& one : tried_) tried += (tried.empty() ? "" : ", ") + one;
  if (tried.empty()) tried = "nothing: the host takes neither keys nor passwords nor answers";
  const bool wantsAnswer = help_ == nullptr && !accepts(SSH_AUTH_METHOD_PUBLICKEY);
  return failed(where_, fmt::format("{} refuses the login; tried: {}", place(), tried),
                wantsAnswer
                    ? "launch from a terminal or the window, which ask; or put a key there: " + sshCommand({"ssh-copy-id"}, false)
                    : "this must work without a question: " + sshCommand({"ssh"}));
}

}  // namespace

std::string LoginObstacle::secretName() const {
  switch (kind) {
    case Kind::UnknownHostKey:
    case Kind::ChangedHostKey: break;
    case Kind::PassPhrase: return identity;
    case Kind::Password: return fmt::format("{}@{}:{}", user, host, port);
    case Kind::Question: return fmt::format("{}@{}:{} {}", user, host, port, question);
  }
  return {};
}

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

}  // namespace evenkeel
