// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/discover/discover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "launcher/discover/probe_script.h"
#include "launcher/ssh/fake_host.h"
#include "launcher/ssh/local_host.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kNow = 1'790'000'000;

std::string answersOf(std::int64_t clock, const std::string& more) {
  return "Welcome to the cluster!\n@@evenkeel system\nhostname=n\narchitecture=x86_64\nlibc=glibc 2.36\ncores=2\nmemory_kib=8388608\nclock=" + std::to_string(clock) +
         "\nwritable=yes\ndisk_free_kib=9999999\n@@evenkeel-end 0\n" + more;
}

std::string answer(const std::string& name, const std::string& text, int status = 0) {
  return "@@evenkeel " + name + "\n" + text + "\n@@evenkeel-end " + std::to_string(status) + "\n";
}

const std::string kTwoCards =
    "index, uuid, name, memory.total [MiB], memory.used [MiB]\n0, GPU-a, NVIDIA A100-SXM4-80GB, 81920, 1\n1, GPU-b, NVIDIA A100-SXM4-80GB, 81920, 1\n";

ListedHost hostNamed(const std::string& name) { return *parseHost(name); }

const DiscoveryRow* rowOf(const FoundHost& host, const std::string& check, bool passed) {
  for (const DiscoveryRow& row : host.rows) {
    if (row.check == check && row.passed == passed) return &row;
  }
  return nullptr;
}

TEST(ReadAnswers, FindsDevicesNetworkAndSystemAndLeavesTheWelcomeAside) {
  const FoundHost host = readAnswers(hostNamed("gpu-1"), answersOf(kNow, answer("nvidia", kTwoCards) + answer("network", "nic eth0 up 25000")), kNow);
  EXPECT_TRUE(host.reached);
  ASSERT_EQ(host.found.size(), 2U);
  EXPECT_EQ(host.found[0].type, "A100-80-SXM");
  EXPECT_TRUE(host.found[0].isTicked);
  EXPECT_EQ(gbs(host.nic.bandwidth), 3.125);
  EXPECT_EQ(gib(host.memory), 8);
  ASSERT_NE(rowOf(host, "devices", true), nullptr);
  EXPECT_THAT(rowOf(host, "devices", true)->detail, HasSubstr("2 x A100-80-SXM"));
}

// Busy devices come unticked; any subset of a node, by uuid.
TEST(ReadAnswers, LeavesBusyBrokenAndUnknownDevicesUntickedAndSaysWhy) {
  const std::string cards = "index, uuid, name, memory.total [MiB], memory.used [MiB], mig.mode.current\n0, GPU-a, NVIDIA A100-SXM4-80GB, 81920, 1, Disabled\n"
                            "1, GPU-b, NVIDIA A100-SXM4-80GB, 81920, 60000, Disabled\n2, GPU-c, NVIDIA A100-SXM4-80GB, 81920, 1, Enabled\n3, GPU-d, NVIDIA Z9, 81920, 1, Disabled\n";
  const FoundHost host = readAnswers(hostNamed("gpu-1"), answersOf(kNow, answer("nvidia", cards) + answer("nvidia-processes", "GPU-b, 4711")), kNow);
  std::vector<bool> ticked;
  for (const auto& slot : host.found) ticked.push_back(slot.isTicked);
  EXPECT_THAT(ticked, ElementsAre(true, false, false, false));
  std::string all;
  for (const DiscoveryRow& row : host.rows) all += row.detail + "\n";
  EXPECT_THAT(all, HasSubstr("1 (NVIDIA A100-SXM4-80GB) is in use by process 4711: 58.6 of 80.0 GiB"));
  EXPECT_THAT(all, HasSubstr("2 (NVIDIA A100-SXM4-80GB) is divided by MIG"));
  EXPECT_THAT(all, HasSubstr("3 (NVIDIA Z9): no figures of this product are known"));
  const auto cluster = clusterOf({host});
  ASSERT_TRUE(cluster) << cluster.error().text();
  ASSERT_EQ(cluster->nodes[0].devices.size(), 1U);
  EXPECT_EQ(cluster->nodes[0].devices[0].uuid, "GPU-a");
}

TEST(ReadAnswers, NamesAMissingToolAndABrokenOne) {
  const FoundHost missing = readAnswers(hostNamed("a"), answersOf(kNow, answer("pci", "0x10de 0x030200")), kNow);
  ASSERT_NE(rowOf(missing, "devices", false), nullptr);
  EXPECT_THAT(rowOf(missing, "devices", false)->detail, HasSubstr("there is a card, but no nvidia-smi"));
  EXPECT_TRUE(missing.found.empty()) << "its processor is not what was looked for";
  const FoundHost broken = readAnswers(hostNamed("a"), answersOf(kNow, answer("nvidia", "NVIDIA-SMI has failed", 9)), kNow);
  ASSERT_NE(rowOf(broken, "devices", false), nullptr);
  EXPECT_THAT(rowOf(broken, "devices", false)->detail, HasSubstr("nvidia-smi: NVIDIA-SMI has failed"));
}

TEST(ReadAnswers, OfAMachineWithoutCardsAreItsCores) {
  const FoundHost host = readAnswers(hostNamed("a"), answersOf(kNow, ""), kNow);
  ASSERT_EQ(host.found.size(), 2U);
  EXPECT_EQ(host.found[0].type, "cpu");
}

TEST(ReadAnswers, SayWhenClocksOrDisksWillNotDo) {
  const FoundHost host = readAnswers(hostNamed("a"), answersOf(kNow - 90, ""), kNow);
  ASSERT_NE(rowOf(host, "clock", false), nullptr);
  EXPECT_EQ(rowOf(host, "clock", false)->detail, "is 90 s behind this machine's");
  EXPECT_NE(rowOf(host, "disk", true), nullptr);
}

TEST(ReadAnswers, EndForEveryMutation) {
  const std::string text = answersOf(kNow, answer("nvidia", kTwoCards) + answer("npu", "| 0 910B2 | OK | 1 |\n| 0 | b | 1 / 2 |") + answer("network", "nic eth0 up 25000"));
  std::mt19937_64 random(3);
  for (int round = 0; round < 5'000; ++round) {
    std::string changed = text;
    for (int change = 0; change < 5; ++change) changed[random() % changed.size()] = static_cast<char>(random() % 256);
    if (random() % 4 == 0) changed.resize(random() % changed.size());
    const FoundHost host = readAnswers(hostNamed("a"), changed, kNow);
    if (const auto cluster = clusterOf({host}); cluster) {
      EXPECT_GE(cluster->deviceCount(), 1);
    }
    (void)toJson({host}).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

// The script itself, on this machine: one command that changes nothing.
TEST(Discover, LooksAtThisMachineWithTheRealScript) {
  DiscoveryRequest request;
  request.hosts = {{.name = "here", .slotCount = {}, .ssh = {}}};
  request.connect = [](const SshTarget&, const std::string& name, std::chrono::milliseconds, const std::stop_token&) -> Result<std::unique_ptr<Host>> {
    return std::unique_ptr<Host>(std::make_unique<LocalHost>(name));
  };
  const auto found = discover(request);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_TRUE(found[0].reached);
  EXPECT_FALSE(found[0].architecture.empty());
  EXPECT_GT(found[0].memory.value, 0);
  EXPECT_NE(rowOf(found[0], "clock", true), nullptr);
}

TEST(Discover, AsksAllHostsAndKeepsTheirOrderAlsoWhenSomeAreDown) {
  DiscoveryRequest request;
  for (int i = 0; i < 40; ++i) request.hosts.push_back(hostNamed("n" + std::to_string(i)));
  request.connect = [](const SshTarget&, const std::string& name, std::chrono::milliseconds, const std::stop_token&) -> Result<std::unique_ptr<Host>> {
    if (name == "n3") return Error{Error::Code::Unreachable, name, "does not answer", "is it switched on?"};
    return std::unique_ptr<Host>(std::make_unique<FakeHost>(name, [name](const Command& command, const std::stop_token&) {
      return FakeHost::reply(command, name == "n5" ? "bash: some nonsense\n" : answersOf(std::time(nullptr), answer("nvidia", kTwoCards)));
    }));
  };
  int told = 0;
  request.onHost = [&](const FoundHost&) { ++told; };
  const auto found = discover(request);
  EXPECT_EQ(told, 40);
  ASSERT_EQ(found.size(), 40U);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].host.name, "n" + std::to_string(i));
    EXPECT_EQ(found[i].reached, i != 3 && i != 5);
  }
  EXPECT_EQ(found[3].rows.front().detail, "does not answer");
  EXPECT_THAT(found[5].rows.front().detail, HasSubstr("nothing that is understood"));
}

TEST(ClusterOfFoundHosts, IsAnErrorWhenNothingIsLeft) { EXPECT_FALSE(clusterOf(std::vector<FoundHost>{})); }

}  // namespace
}  // namespace evenkeel
