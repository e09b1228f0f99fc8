// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/host_keys.h"

#include <fmt/format.h>
#include <libssh/libssh.h>

#include <cassert>
#include <filesystem>
#include <fstream>

#include "launcher/ssh/quoting.h"

namespace evenkeel {
namespace {

/// As known-hosts files name a host: the port only where it is not the usual one.
std::string entryOf(const SshSettings& settings) {
  return settings.port == 22 ? settings.host : fmt::format("[{}]:{}", settings.host, settings.port);
}

std::string describe(ssh_key key) {
  return fmt::format("{} {}", ::ssh_key_type_to_char(::ssh_key_type(key)), fingerprintOf(key));
}

/// Of the keys that the known-hosts file has for this host.
std::string knownFingerprints(const SshSettings& settings) {
  std::string fingerprints;
  std::ifstream file(settings.knownHosts);
  for (std::string line; std::getline(file, line);) {
    ssh_knownhosts_entry* entry = nullptr;
    if (::ssh_known_hosts_parse_line(entryOf(settings).c_str(), line.c_str(), &entry) != SSH_OK || entry == nullptr) continue;
    fingerprints += (fingerprints.empty() ? "" : ", ") + describe(entry->publickey);
    ::ssh_knownhosts_entry_free(entry);
  }
  return fingerprints.empty() ? "another one" : fingerprints;
}

Error unknownKey(const std::string& where, ssh_session session, ssh_key key, const SshSettings& settings,
                 std::optional<LoginObstacle>& obstacle) {
  char* line = nullptr;
  ::ssh_session_export_known_hosts_entry(session, &line);
  const std::unique_ptr<char, decltype(&::ssh_string_free_char)> owned(line, &::ssh_string_free_char);
  obstacle =
      LoginObstacle{.shownKey = describe(key), .knownHosts = settings.knownHosts, .knownHostsLine = line == nullptr ? "" : line};
  return failed(
      where, fmt::format("the key of {} port {} is unknown: {}", settings.host, settings.port, describe(key)),
      fmt::format("compare it with `ssh-keygen -lf` of the host's own key file; if they are equal: ssh-keyscan -p {} {} >> {}",
                  settings.port, shellWord(settings.host), shellWord(settings.knownHosts)));
}

Error changedKey(const std::string& where, ssh_key key, const SshSettings& settings, std::optional<LoginObstacle>& obstacle) {
  const std::string known = knownFingerprints(settings);
  obstacle = LoginObstacle{.kind = LoginObstacle::Kind::ChangedHostKey,
                           .shownKey = describe(key),
                           .knownKeys = known,
                           .knownHosts = settings.knownHosts};
  return failed(where,
                fmt::format("the key of {} port {} has changed: {} has {}, the host shows {}: someone may be in between",
                            settings.host, settings.port, settings.knownHosts, known, describe(key)),
                fmt::format("if the host was really set up anew: ssh-keygen -R {} -f {}", shellWord(entryOf(settings)),
                            shellWord(settings.knownHosts)));
}

}  // namespace

std::string fingerprintOf(ssh_key_struct* key) {
  unsigned char* hash = nullptr;
  std::size_t length = 0;
  if (::ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &length) != SSH_OK) return "(no fingerprint)";
  const std::unique_ptr<char, decltype(&::ssh_string_free_char)> text(
      ::ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, length), &::ssh_string_free_char);
  ::ssh_clean_pubkey_hash(&hash);
  return text ? text.get() : "(no fingerprint)";
}

Result<void> checkHostKey(const std::string& where, ssh_session_struct* session, const SshSettings& settings,
                          std::optional<LoginObstacle>& obstacle) {
  ssh_key raw = nullptr;
  if (::ssh_get_server_publickey(session, &raw) != SSH_OK) return unreachable(where, "the host shows no key");
  const std::unique_ptr<ssh_key_struct, decltype(&::ssh_key_free)> key(raw, &::ssh_key_free);
  switch (::ssh_session_is_known_server(session)) {
    case SSH_KNOWN_HOSTS_OK: return {};
    case SSH_KNOWN_HOSTS_ERROR:
      return failed(where,
                    fmt::format("the known hosts in {} cannot be read: {}", settings.knownHosts, ::ssh_get_error(session)));
    case SSH_KNOWN_HOSTS_UNKNOWN:
    case SSH_KNOWN_HOSTS_NOT_FOUND: return unknownKey(where, session, raw, settings, obstacle);
    default: return changedKey(where, raw, settings, obstacle);
  }
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
