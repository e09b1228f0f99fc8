// SPDX-License-Identifier: GPL-3.0-or-later
// What an address comes to with an ssh configuration: the variants that people write, as a table.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/ssh/ssh_login.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

struct Vector {
  const char* configuration;
  SshAddress address;
  const char* expected;  // "user@host:port [identity] [| proxy command]"; "!" and words of the error
};

const Vector kVectors[] = {
    {"", {.host = "b3", .user = "me"}, "me@b3:22"},
    {"", {.host = "b3", .port = 2222, .user = "me"}, "me@b3:2222"},
    {"", {.host = "10.0.0.1", .user = "me"}, "me@10.0.0.1:22"},
    {"", {.host = "fe80::1", .user = "me"}, "me@fe80::1:22"},
    {"", {.host = "[fe80::1]", .user = "me"}, "me@fe80::1:22"},
    {"", {.host = "b3", .user = "me", .identity = "/k"}, "me@b3:22 /k"},
    {"Host b3\n  HostName 10.0.0.3\n", {.host = "b3", .user = "me"}, "me@10.0.0.3:22"},
    {"Host b3\n  Port 2200\n", {.host = "b3", .user = "me"}, "me@b3:2200"},
    {"Host b3\n  Port 2200\n", {.host = "b3", .port = 2201, .user = "me"}, "me@b3:2201"},
    {"Host b3\n  User you\n", {.host = "b3"}, "you@b3:22"},
    {"Host b3\n  User you\n", {.host = "b3", .user = "me"}, "me@b3:22"},
    {"Host b3\n  IdentityFile /keys/b3\n", {.host = "b3", .user = "me"}, "me@b3:22 /keys/b3"},
    {"Host b3\n  IdentityFile /keys/b3\n", {.host = "b3", .user = "me", .identity = "/k"}, "me@b3:22 /k"},
    {"Host other\n  User you\nHost b3\n  User we\n", {.host = "b3"}, "we@b3:22"},
    {"Host b*\n  User you\n", {.host = "b3"}, "you@b3:22"},
    {"Host *.lab\n  User you\n", {.host = "b3.lab"}, "you@b3.lab:22"},
    {"Host b?\n  User you\n", {.host = "b3"}, "you@b3:22"},
    {"Host a b3 c\n  User you\n", {.host = "b3"}, "you@b3:22"},
    {"Host * !b3\n  Port 2200\n", {.host = "b4", .user = "me"}, "me@b4:2200"},
    {"Host * !b3\n  Port 2200\n", {.host = "b3", .user = "me"}, "me@b3:22"},
    {"Host !b3 *\n  Port 2200\n", {.host = "b3", .user = "me"}, "me@b3:22"},
    {"HOST = b* !b3 c # said !b4\n  Port 2200\nHost b?\n  User you\n", {.host = "b3"}, "you@b3:22"},
    {"Host b* !b3\n  Port 2200\n", {.host = "b4", .user = "me"}, "me@b4:2200"},
    {"Host b3\n  User first\nHost b3\n  User second\n", {.host = "b3"}, "first@b3:22"},
    {"Host b3\n  Port 2200\nHost *\n  Port 2300\n", {.host = "b3", .user = "me"}, "me@b3:2200"},
    {"Host *\n  Port 2300\nHost b3\n  Port 2200\n", {.host = "b3", .user = "me"}, "me@b3:2300"},
    {"User everybody\nHost b3\n  Port 2200\n", {.host = "b3"}, "everybody@b3:2200"},
    {"Host=b3\n  User=you\n  Port=2200\n", {.host = "b3"}, "you@b3:2200"},
    {"HOST b3\n\tUSER you\n\tport 2200\n", {.host = "b3"}, "you@b3:2200"},
    {"# a comment\n\nHost b3 # not one\n  User you\n", {.host = "b3"}, "you@b3:22"},
    {"Host b3\n  HostName %h.lab.org\n", {.host = "b3", .user = "me"}, "me@b3.lab.org:22"},
    {"Host b3\n  SomethingNew yes\n  User you\n", {.host = "b3"}, "you@b3:22"},
    {"Host b3\n  ServerAliveInterval 30\n  ForwardAgent yes\n  User you\n", {.host = "b3"}, "you@b3:22"},
    {"Match host b3\n  User you\n", {.host = "b3"}, "you@b3:22"},
    {"Match host b4\n  User you\nMatch all\n  User we\n", {.host = "b3"}, "we@b3:22"},
    {"Match user me\n  Port 2200\n", {.host = "b3", .user = "me"}, "me@b3:22"},
    {"Include @/more\n", {.host = "b3"}, "more@b3:2400"},
    {"Include @/excluding\n", {.host = "b3", .user = "me"}, "me@b3:22"},
    {"Include @/excluding\n", {.host = "b4", .user = "me"}, "me@b4:2600"},
    {"include = \"@/nes*d\" # said !b4\n", {.host = "b3", .user = "me"}, "me@b3:22"},
    {"Include @/nested\n", {.host = "b4", .user = "me"}, "me@b4:2600"},
    {"Host b3\n  Include @/excluding\n  User you\n", {.host = "b4", .user = "me"}, "me@b4:22"},
    {"Include @/more @/excluding\n", {.host = "b4", .user = "me"}, "me@b4:2600"},
    {"Include in-ssh\n", {.host = "b3"}, "placed@b3:22"},
    {"Include @/circle\nHost *\n  User you\n", {.host = "b3"}, "you@b3:22"},
    {"Include nothing-there\nHost b3\n  User you\n", {.host = "b3"}, "you@b3:22"},
    {"Host b3\n  ProxyCommand nc %h %p\n", {.host = "b3", .user = "me"}, "me@b3:22 | nc b3 22"},
    {"Host b3\n  HostName 10.0.0.3\n  Port 2200\n  ProxyCommand nc %h %p # %r %%\n",
     {.host = "b3", .user = "me"},
     "me@10.0.0.3:2200 | nc 10.0.0.3 2200 # me %"},
    {"Host b3\n  ProxyCommand none\nHost *\n  ProxyCommand nc %h %p\n", {.host = "b3", .user = "me"}, "me@b3:22"},
    {"Host b3\n  ProxyJump gate\n", {.host = "b3", .user = "me"}, "me@b3:22 | ssh -W '[b3]:22' gate"},
    {"Host b3\n  ProxyJump you@gate:2200\n", {.host = "b3", .user = "me"}, "me@b3:22 | ssh -l you -p 2200 -W '[b3]:22' gate"},
    {"Host b3\n  ProxyJump none\n", {.host = "b3", .user = "me"}, "me@b3:22"},
    {"Host b3\n  ProxyJump gate\n", {.host = "b3", .user = "me", .proxyJump = "other"}, "me@b3:22"},
    {"", {.host = ""}, "!is no host name"},
    {"", {.host = "-oProxyCommand=x"}, "!is no host name"},
    {"", {.host = "a b"}, "!is no host name"},
    {"", {.host = "$(reboot)"}, "!is no host name"},
    {"", {.host = "a;b"}, "!is no host name"},
    {"", {.host = "b3", .user = "-l"}, "!is no user's name"},
    {"", {.host = "b3", .user = "a b"}, "!is no user's name"},
    {"", {.host = "b3", .port = 0, .user = "me"}, "!is no port"},
    {"", {.host = "b3", .port = -1, .user = "me"}, "!is no port"},
    {"", {.host = "b3", .port = 65536, .user = "me"}, "!is no port"},
};

TEST(SshSettings, AreWhatPeoplesConfigurationsSay) {
  const TemporaryDirectory folder(TemporaryDirectory::Name::Plain);
  ::setenv("HOME", folder.path().c_str(), 1);  // no keys of this machine's
  folder.file("more", "Host b3\n  User more\n  Port 2400\n");
  folder.file("excluding", "Host * !b3\n  Port 2600\n");
  folder.file("nested", fmt::format("Include {}/excluding\n", folder.path().string()));
  folder.file("circle", fmt::format("Include {}/circle\n", folder.path().string()));
  std::filesystem::create_directory(folder.path() / ".ssh");
  folder.file(".ssh/in-ssh", "Host b*\n  User placed\n");
  for (const Vector& vector : kVectors) {
    std::string configuration = vector.configuration;
    for (std::size_t at = 0; (at = configuration.find("@/", at)) != std::string::npos; at += folder.path().string().size())
      configuration.replace(at, 1, folder.path().string());
    const auto settings = settingsOf("b3", vector.address, folder.file("config", configuration));
    if (vector.expected[0] == '!') {
      ASSERT_FALSE(settings) << configuration << vector.address.host;
      EXPECT_THAT(settings.error().text(), HasSubstr(vector.expected + 1)) << configuration;
      continue;
    }
    ASSERT_TRUE(settings) << configuration << settings.error().text();
    std::string said = fmt::format("{}@{}:{}", settings->user, settings->host, settings->port);
    for (const std::string& identity : settings->identities) said += " " + identity;
    if (!settings->proxyCommand.empty()) said += " | " + settings->proxyCommand;
    EXPECT_EQ(said, vector.expected) << configuration;
  }
}

}  // namespace
}  // namespace evenkeel
