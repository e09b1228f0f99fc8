// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/discover/network_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace evenkeel {
namespace {

using ::testing::ElementsAre;

TEST(NetworkReport, KeepsPortsThatAreUp) {
  const NetworkReport report = parseNetwork("nic eth0 up 25000\nnic eth1 down 100000\nnic eth2 up -1\ninfiniband mlx5_0/ports/1 4 200 InfiniBand\n"
                                            "infiniband mlx5_1/ports/1 1 200 InfiniBand\naddress eth0 10.0.0.1\nnonsense\nnic\n");
  ASSERT_EQ(report.ports.size(), 3U);
  EXPECT_EQ(gbs(report.ports[0].bandwidth), 3.125);
  EXPECT_EQ(report.ports[1].bandwidth.value, 0);
  EXPECT_EQ(gbs(report.ports[2].bandwidth), 25);
  EXPECT_THAT(report.addresses, ElementsAre("eth0 10.0.0.1"));
}

TEST(NodeNic, IsOneADeviceWhereThereAreAsManyFastPorts) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += "infiniband mlx5_" + std::to_string(i) + "/ports/1 4 200 InfiniBand\n";
  EXPECT_TRUE(nicOf(parseNetwork(text), 4).perDevice);
  EXPECT_EQ(gbs(nicOf(parseNetwork(text), 4).bandwidth), 25);
  EXPECT_FALSE(nicOf(parseNetwork(text), 8).perDevice);
  EXPECT_EQ(gbs(nicOf(parseNetwork(text), 8).bandwidth), 100) << "shared by eight devices";
}

TEST(NodeNic, IsTheFastestEthernetPortOrUnknown) {
  EXPECT_EQ(gbs(nicOf(parseNetwork("nic a up 1000\nnic b up 10000\n"), 2).bandwidth), 1.25);
  EXPECT_EQ(nicOf(parseNetwork("nic a up -1\n"), 2).bandwidth.value, 0);
}

}  // namespace
}  // namespace evenkeel
