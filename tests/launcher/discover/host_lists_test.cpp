// SPDX-License-Identifier: GPL-3.0-or-later
// One table of how people write hosts. Slurm's lists were read wrongly by Lightning (#14896), mpich (#5653) and palace (#228); DeepSpeed took a
// literal {line} for a host (#3669) (field-faults).
#include "launcher/discover/host_lists.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "launcher/discover/node_list.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

struct ListVector {
  const char* text;
  const char* names;  // joined with spaces; "!" and words of the error
};

constexpr ListVector kNodeLists[] = {
    {"a", "a"},
    {"a,b", "a b"},
    {"a, b ,c", "a b c"},
    {"gpu[1-3]", "gpu1 gpu2 gpu3"},
    {"gpu[01-03]", "gpu01 gpu02 gpu03"},
    {"gpu[001-003]", "gpu001 gpu002 gpu003"},
    {"gpu[09-11]", "gpu09 gpu10 gpu11"},
    {"gpu[9-11]", "gpu9 gpu10 gpu11"},
    {"gpu[0099-0101]", "gpu0099 gpu0100 gpu0101"},
    {"gpu[98-101]", "gpu98 gpu99 gpu100 gpu101"},
    {"gpu[7]", "gpu7"},
    {"gpu[07]", "gpu07"},
    {"gpu[1,3]", "gpu1 gpu3"},
    {"gpu[1-2,5,7-8]", "gpu1 gpu2 gpu5 gpu7 gpu8"},
    {"gpu[3,1]", "gpu3 gpu1"},
    {"gpu[1, 2]", "gpu1 gpu2"},
    {"gpu[1-2],login", "gpu1 gpu2 login"},
    {"login,gpu[1-2]", "login gpu1 gpu2"},
    {"a[1-2],b[1-2]", "a1 a2 b1 b2"},
    {"rack[1-2]node[1-2]", "rack1node1 rack1node2 rack2node1 rack2node2"},
    {"rack[1-2]-node[01-02]", "rack1-node01 rack1-node02 rack2-node01 rack2-node02"},
    {"r[1-2]c[1]n[3-4]", "r1c1n3 r1c1n4 r2c1n3 r2c1n4"},
    {"n[1-2].cluster.org", "n1.cluster.org n2.cluster.org"},
    {"[1-2]", "1 2"},
    {"[1-2]a", "1a 2a"},
    {"dgx-[1-2]", "dgx-1 dgx-2"},
    {"a-b-c[1-1]", "a-b-c1"},
    {"x[0-0]", "x0"},
    {"x[00-00]", "x00"},
    {"10.0.0.[1-3]", "10.0.0.1 10.0.0.2 10.0.0.3"},
    {"root@h[1-2]", "root@h1 root@h2"},
    {"root@h[1-2]:2222", "root@h1:2222 root@h2:2222"},
    {"a,a", "a a"},
    {"fe80::1", "fe80::1"},
    {"under_score[1-2]", "under_score1 under_score2"},
    {"n[1-2]-ib[0-1]", "n1-ib0 n1-ib1 n2-ib0 n2-ib1"},
    {"", "!without a name"},
    {",", "!without a name"},
    {"a,", "!without a name"},
    {",a", "!without a name"},
    {"a,,b", "!without a name"},
    {"a b", "!no name of a host"},
    {"gpu[", "!without its ]"},
    {"gpu[1-2", "!without its ]"},
    {"gpu]", "!without its ["},
    {"gpu[1-2]]", "!without its ["},
    {"gpu[]", "!no number"},
    {"gpu[-]", "!no number"},
    {"gpu[1-]", "!no number"},
    {"gpu[-2]", "!no number"},
    {"gpu[a-c]", "!no number"},
    {"gpu[1-2-3]", "!no number"},
    {"gpu[1,]", "!no number"},
    {"gpu[3-1]", "!falls"},
    {"gpu[1-[2-3]]", "!inside a ["},
    {"gpu[0-99999]", "!more than 16384"},
    {"a[1-200]b[1-200]", "!more than 16384"},
    {"gpu[1-99999999999999999999]", "!no number"},
    {"{line}", "{line}"},  // a template: parseHost refuses it
    {"-oProxyCommand=x", "!no name of a host"},
    {"$(reboot)", "!no name of a host"},
    {"a;b", "!no name of a host"},
};

TEST(NodeList, ReadsWhatSlurmAndPeopleWrite) {
  for (const auto& [text, names] : kNodeLists) {
    const auto read = expandNodeList(text);
    if (names[0] == '!') {
      ASSERT_FALSE(read) << text;
      EXPECT_THAT(read.error().text(), HasSubstr(names + 1)) << text;
    } else {
      ASSERT_TRUE(read) << text << ": " << read.error().text();
      EXPECT_EQ(fmt::format("{}", fmt::join(*read, " ")), names) << text;
    }
  }
}

constexpr ListVector kHosts[] = {
    {"h", "h 22"},
    {"h.example.org", "h.example.org 22"},
    {"h:2222", "h 2222"},
    {"me@h", "me@h 22"},
    {"me@h:2222", "me@h 2222"},
    {"10.1.2.3", "10.1.2.3 22"},
    {"10.1.2.3:2200", "10.1.2.3 2200"},
    {"fe80::1", "fe80::1 22"},  // pytorch #150532 (field-faults): both families pass through
    {"[fe80::1]:2200", "fe80::1 2200"},
    {"[fe80::1%eth0]", "fe80::1%eth0 22"},
    {"me@[::1]:22", "me@::1 22"},
    {"", "!no name"},
    {"@h", "!no user"},
    {"h:", "!no port"},
    {"h:0", "!no port"},
    {"h:65536", "!no port"},
    {"h:x", "!no port"},
    {"[::1", "!without its ]"},
    {"[::1]x", "!goes on"},
    {"{line}", "!no name"},
    {"-oProxyCommand=x", "!no name"},
    {"a b", "!no name"},
    {"h/x", "!no name"},
};

TEST(ParseHost, ReadsUserHostAndPort) {
  for (const auto& [text, expected] : kHosts) {
    const auto host = parseHost(text);
    if (expected[0] == '!') {
      ASSERT_FALSE(host) << text;
      EXPECT_THAT(host.error().text(), HasSubstr(expected + 1)) << text;
      continue;
    }
    ASSERT_TRUE(host) << text << ": " << host.error().text();
    EXPECT_EQ(fmt::format("{}{} {}", host->ssh.user.empty() ? "" : host->ssh.user + "@", host->ssh.host, host->ssh.port), expected) << text;
  }
}

constexpr ListVector kHostfiles[] = {
    {"worker-1 slots=4\nworker-2 slots=8\n", "worker-1:4 worker-2:8"},
    {"worker-1\nworker-2\n", "worker-1:- worker-2:-"},
    {"# a comment\n\nworker-1 slots=4 # another\n", "worker-1:4"},
    {"worker-1:4\nworker-2:2\n", "worker-1:4 worker-2:2"},
    {"worker-1 slots=4 max_slots=8\n", "worker-1:4"},
    {"worker-1 max_slots=8\n", "worker-1:-"},
    {"  worker-1   slots=4  \n", "worker-1:4"},
    {"worker-1\tslots=4\r\n", "worker-1:4"},
    {"10.0.0.1 slots=2\nfe80::1 slots=2\n", "10.0.0.1:2 fe80::1:2"},
    {"me@h slots=2\n", "h:2"},
    {"h slots=2", "h:2"},
    {"h ncpus=2\n", "h:2"},
    {"", "!names no host"},
    {"\n# only\n", "!names no host"},
    {"h slots=\n", "!no number of slots"},
    {"h slots=0\n", "!no number of slots"},
    {"h slots=-1\n", "!no number of slots"},
    {"h slots=many\n", "!no number of slots"},
    {"h slots=99999\n", "!no number of slots"},
    {"h:x\n", "!no number of slots"},
    {"h 4\n", "!no setting"},
    {"a slots=1\nb slots=1\na slots=2\n", "!hosts:3: a stands in line 1 already"},
    {"ok slots=1\n{line}\n", "!hosts:2"},
    {"-oProxyCommand=x slots=1\n", "!hosts:1"},
};

TEST(Hostfile, ReadsTheWaysOfAllLaunchers) {
  for (const auto& [text, expected] : kHostfiles) {
    const auto hosts = parseHostfile(text, "hosts");
    if (expected[0] == '!') {
      ASSERT_FALSE(hosts) << text;
      EXPECT_THAT(hosts.error().text(), HasSubstr(expected + 1)) << text;
      continue;
    }
    ASSERT_TRUE(hosts) << text << ": " << hosts.error().text();
    std::string names;
    for (const ListedHost& host : *hosts) names += fmt::format("{}{}:{}", names.empty() ? "" : " ", host.name, host.slotCount ? std::to_string(*host.slotCount) : "-");
    EXPECT_EQ(names, expected) << text;
  }
}

TEST(SshConfig, NamesTheAliasesOfAllItsFiles) {
  const TemporaryDirectory folder;
  folder.file("more.conf", "Host jump\n  User me\nHost=quoted\nHost \"gpu-9\"\n");
  const std::string config = folder.file("config",
                                         "# mine\nInclude more.conf\nHost gpu-1 gpu-2 *.lab !gpu-7\n  HostName 10.0.0.1\n  Port 2222\nHost *\n  User root\n"
                                         "host gpu-1 login\nMatch host x\n  User y\n");
  const auto hosts = readSshConfig(config);
  ASSERT_TRUE(hosts) << hosts.error().text();
  std::vector<std::string> names;
  for (const ListedHost& host : *hosts) names.push_back(host.name);
  EXPECT_EQ(fmt::format("{}", fmt::join(names, " ")), "jump quoted gpu-9 gpu-1 gpu-2 login");
  EXPECT_EQ(hosts->front().ssh.port, 22) << "the configuration says at each login which port it is";
}

TEST(SshConfig, RefusesAnEndlessIncludeAndAFileWithoutHosts) {
  const TemporaryDirectory folder;
  EXPECT_THAT(readSshConfig(folder.file("loop", "Include loop\n")).error().text(), HasSubstr("deep"));
  EXPECT_THAT(readSshConfig(folder.file("none", "Host *\n User me\n")).error().text(), HasSubstr("names no host"));
  EXPECT_THAT(readSshConfig("/nonexistent").error().text(), HasSubstr("no such file"));
}

TEST(ClusterOfHosts, TakesSlotsUsersAndPortsOver) {
  const auto cluster = clusterOf(*parseHostfile("me@a slots=2\nb\n", "hosts"), "cpu", 4);
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->nodes[0].devices.size(), 2U);
  EXPECT_EQ(cluster->nodes[1].devices.size(), 4U);
  EXPECT_EQ(cluster->nodes[0].ssh.user, "me");
  EXPECT_EQ(cluster->nodes[1].ssh.host, "b");
}

TEST(HostLists, EndWithHostsOrAnErrorForEveryMutation) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string text = kHostfiles[random() % std::size(kHostfiles)].text + std::string(kNodeLists[random() % std::size(kNodeLists)].text);
    for (int change = 0; change < 3 && !text.empty(); ++change) text[random() % text.size()] = static_cast<char>(random() % 256);
    if (const auto hosts = parseHostfile(text, "f"); hosts) {
      EXPECT_FALSE(hosts->empty());
    }
    if (const auto names = expandNodeList(text); names) {
      EXPECT_FALSE(names->empty());
    }
    (void)parseHost(text);
  }
}

}  // namespace
}  // namespace evenkeel
