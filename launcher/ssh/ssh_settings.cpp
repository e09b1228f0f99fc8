// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <libssh/libssh.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "launcher/ssh/quoting.h"
#include "launcher/ssh/ssh_config.h"
#include "launcher/ssh/ssh_login.h"

namespace evenkeel {
namespace {

using Session = std::unique_ptr<ssh_session_struct, decltype(&::ssh_free)>;

std::string option(ssh_session session, ssh_options_e which) {
  char* value = nullptr;
  if (::ssh_options_get(session, which, &value) != SSH_OK || value == nullptr) return {};
  const std::unique_ptr<char, decltype(&::ssh_string_free_char)> owned(value, &::ssh_string_free_char);
  return value;
}

/// A name that no program takes for an option and no shell for more than a name.
bool isPlainName(std::string_view name) {
  return !name.empty() && !name.starts_with('-') && std::ranges::none_of(name, [](unsigned char c) {
    return c <= ' ' || c == 0x7f || std::string_view("'\"`$\\;&|<>(){}*?!").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

/// %h, %p, %r and %% of a ProxyCommand (libssh hands it over as it was written); each as one word of the shell.
std::string filledIn(const std::string& command, const SshSettings& settings) {
  std::string filled;
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i] != '%' || i + 1 == command.size()) {
      filled += command[i];
      continue;
    }
    switch (command[++i]) {
      case 'h': filled += settings.host; break;
      case 'p': filled += std::to_string(settings.port); break;
      case 'r': filled += settings.user; break;
      case '%': filled += '%'; break;
      default: filled += std::string("%") + command[i];
    }
  }
  return filled;
}

std::string home() {
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : home;
}

/// A file name of a configuration: "~/" and "%d" stand for the home directory.
std::string pathFrom(std::string text) {
  if (text.starts_with("~/")) return home() + text.substr(1);
  if (const std::size_t at = text.find("%d"); at != std::string::npos) text.replace(at, 2, home());
  return text;
}

/// The first of libssh's own list, which it has where the configuration says nothing.
bool isBuiltIn(const std::string& identity) {
  return std::ranges::any_of(std::array{"ed25519", "ecdsa", "rsa", "dsa"},
                             [&](const char* kind) { return identity == std::string("%d/id_") + kind; });
}

std::vector<std::string> identitiesOf(ssh_session session, const SshAddress& address) {
  if (!address.identity.empty()) return {pathFrom(address.identity)};
  std::vector<std::string> files;
  std::error_code ignored;
  const std::string configured = option(session, SSH_OPTIONS_IDENTITY);
  if (!configured.empty() && !isBuiltIn(configured)) files.push_back(pathFrom(configured));
  for (const char* name : {"id_ed25519", "id_ecdsa", "id_rsa"}) {
    const std::string file = fmt::format("{}/.ssh/{}", home(), name);
    if (std::filesystem::exists(file, ignored) && (files.empty() || files.front() != file)) files.push_back(file);
  }
  return files;
}

}  // namespace

Result<SshSettings> settingsOf(const std::string& where, const SshAddress& address,
                               const std::optional<std::string>& configFile) {
  std::string host = address.host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);  // an IPv6 address as in URLs
  if (!isPlainName(host)) return invalidInput(where, fmt::format("\"{}\" is no host name or address", address.host));
  if (address.port && (*address.port < 1 || *address.port > 65535)) {
    return invalidInput(where, fmt::format("{} is no port", *address.port), "expected a whole number from 1 to 65535");
  }
  if (!address.user.empty() && !isPlainName(address.user))
    return invalidInput(where, fmt::format("\"{}\" is no user's name", address.user));
  const Session session(::ssh_new(), &::ssh_free);
  ::ssh_options_set(session.get(), SSH_OPTIONS_HOST, host.c_str());
  const bool isExplicit = address.port && !address.user.empty() && !address.identity.empty();
  if (!isExplicit && !parseSshConfig(session.get(), configFile)) {
    return invalidInput(
        where, fmt::format("{} cannot be used: {}", configFile.value_or("~/.ssh/config"), ::ssh_get_error(session.get())));
  }
  SshSettings settings{.host = option(session.get(), SSH_OPTIONS_HOST)};
  unsigned port = 22;
  ::ssh_options_get_port(session.get(), &port);
  settings.port = address.port.value_or(static_cast<int>(port));
  if (settings.port < 1 || settings.port > 65535)
    return invalidInput(where, fmt::format("the configuration names port {}", settings.port), "expected 1 to 65535");
  settings.user = address.user.empty() ? option(session.get(), SSH_OPTIONS_USER) : address.user;
  settings.identities = identitiesOf(session.get(), address);
  settings.knownHosts = pathFrom(address.knownHosts.empty() ? option(session.get(), SSH_OPTIONS_KNOWNHOSTS) : address.knownHosts);
  if (settings.knownHosts.empty()) settings.knownHosts = home() + "/.ssh/known_hosts";
  if (address.proxyJump.empty()) settings.proxyCommand = filledIn(option(session.get(), SSH_OPTIONS_PROXYCOMMAND), settings);
  return settings;
}

}  // namespace evenkeel
