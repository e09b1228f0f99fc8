// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cluster/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

Result<Cluster> fromText(std::string_view text) {
  auto json = parseJson(text, "c.json");
  if (!json) return std::move(json).error();
  JsonContext context{"c.json", {}};
  JsonReader reader(*json, context);
  Cluster cluster = readCluster(reader);
  if (context.error) return *context.error;
  return cluster;
}

TEST(ClusterShorthand, DescribesNodesInOrder) {
  const auto cluster = parseClusterShorthand("2x8:Ascend-910B2,1x2:cpu@0.5,1x2:cpu@0.25");
  ASSERT_TRUE(cluster) << cluster.error().text();
  ASSERT_EQ(cluster->nodes.size(), 4U);
  EXPECT_EQ(cluster->deviceCount(), 20);
  EXPECT_EQ(cluster->nodes[1].name, "ascend-910b2-1");
  EXPECT_EQ(cluster->nodes[2].name, "cpu-0");
  EXPECT_EQ(cluster->nodes[3].name, "cpu-1");
  EXPECT_EQ(cluster->typeOf({3, 0}).speed, 0.25);
}

TEST(ClusterShorthand, RefusesWhatIsNoCluster) {
  for (const char* bad : {"", "8x8", "x8:cpu", "0x8:cpu", "-1x8:cpu", "8x-8:cpu", "99999999999x1:cpu", "99999x99999:cpu", "1x1:cpu@0",
                          "1x1:cpu@nan", "1x1:cpu@-1", "1x1:cpu@inf", "1x1:cpu@1e999", "1x1:cpu@", "1x1:A1000", "1x1:cpu,", "1x1:", "1 x1:cpu"}) {
    const auto cluster = parseClusterShorthand(bad);
    ASSERT_FALSE(cluster) << bad;
    EXPECT_EQ(cluster.error().code, Error::Code::InvalidInput) << bad;
  }
}

TEST(ClusterShorthand, ProposesNearNamesForAnUnknownDevice) {
  EXPECT_THAT(parseClusterShorthand("1x8:A100").error().text(), HasSubstr("A100-80-SXM"));
}

TEST(ClusterFile, KeepsUnknownFieldsAndRoundTrips) {
  const auto cluster = fromText(R"({
    "format": "evenkeel.cluster/1", "colour": "red",
    "nodes": [
      {"name": "a", "devices": {"type": "A100-80-SXM", "count": 2}, "nic_bandwidth_gbs": 12.5, "rack": 7},
      {"name": "b", "devices": [{"type": "V100-32-SXM2", "uuid": "GPU-1"}, {"type": "A100-80-SXM"}]}],
    "switches": [{"name": "s", "members": ["a", "b"], "bandwidth_gbs": 3, "latency_us": 2}],
    "links": []})");
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->typeOf({1, 0}).name, "V100-32-SXM2");
  const Json written = toJson(*cluster);
  EXPECT_EQ(written["colour"], "red");
  EXPECT_EQ(written["nodes"][0]["rack"], 7);
  const auto again = fromText(written.dump());
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(toJson(*again).dump(), written.dump());
}

TEST(ClusterFile, NamesThePlaceOfAMistake) {
  const auto errorOf = [](std::string_view nodes) {
    return fromText(std::string(R"({"format": "evenkeel.cluster/1", "nodes": )") + std::string(nodes) + "}").error().text();
  };
  EXPECT_THAT(errorOf("[]"), HasSubstr("c.json /nodes: is empty"));
  EXPECT_THAT(errorOf(R"([{"name": "a", "devices": {"type": "cpu", "count": -1}}])"), HasSubstr("/nodes/0/devices/count: is -1"));
  EXPECT_THAT(errorOf(R"([{"name": "a", "devices": {"type": "A1000", "count": 1}}])"), HasSubstr("/nodes/0/devices/type: is not a known device type"));
  EXPECT_THAT(errorOf(R"([{"name": "a", "devices": []}])"), HasSubstr("expected at least one device"));
  EXPECT_THAT(errorOf(R"([{"name": "a", "devices": {"type": "cpu", "count": 1}}, {"name": "a", "devices": {"type": "cpu", "count": 1}}])"),
              HasSubstr("/nodes/1/name"));
  EXPECT_THAT(fromText(R"({"format": "evenkeel.plan/1", "nodes": []})").error().text(), HasSubstr("expected \"evenkeel.cluster/1\""));
}

// A topology that cannot exist must not become a plan of a wrong one.
TEST(ClusterFile, RefusesATopologyThatCannotBe) {
  const auto errorOf = [](std::string_view rest) {
    const auto cluster = fromText(R"({"format": "evenkeel.cluster/1", "nodes": [{"name": "a", "devices": {"type": "cpu", "count": 1}},
      {"name": "b", "devices": [{"type": "cpu", "uuid": "GPU-1"}]}, {"name": "c", "devices": [{"type": "cpu"}]}], )" + std::string(rest) + "}");
    return cluster ? std::string() : cluster.error().text();
  };
  const auto switches = [&](std::string_view all) { return errorOf(R"("switches": [)" + std::string(all) + "]"); };
  EXPECT_THAT(switches(R"({"name": "s", "members": ["a", "s"], "bandwidth_gbs": 1})"), HasSubstr("/switches/0/members: switch \"s\" holds itself"));
  EXPECT_THAT(switches(R"({"name": "s", "members": ["a", "t"], "bandwidth_gbs": 1}, {"name": "t", "members": ["s"], "bandwidth_gbs": 1})"),
              HasSubstr("holds itself, directly or through another switch"));
  EXPECT_EQ(switches(R"({"name": "s", "members": ["a", "t"], "bandwidth_gbs": 1}, {"name": "t", "members": ["b"], "bandwidth_gbs": 1})"), "");
  EXPECT_THAT(switches(R"({"name": "a", "members": ["b"], "bandwidth_gbs": 1})"), HasSubstr("/switches/0/name: \"a\" is the name of another"));
  EXPECT_THAT(switches(R"({"name": "s", "members": ["b", "b"], "bandwidth_gbs": 1})"), HasSubstr("names \"b\" twice"));
  EXPECT_THAT(errorOf(R"("links": [{"between": ["a", "b"], "bandwidth_gbs": 1}, {"between": ["b", "a"], "bandwidth_gbs": 2}])"),
              HasSubstr("/links/1/between: \"b\" and \"a\" are joined by another link already"));
  EXPECT_THAT(fromText(R"({"format": "evenkeel.cluster/1", "nodes": [{"name": "a", "devices": {"type": "cpu", "count": 2, "uuid": "GPU-1"}}]})").error().text(),
              HasSubstr("uuid \"GPU-1\" is also that of a device of \"a\""));
}

TEST(ClusterFile, AsksAboutAMisspeltField) {
  const auto error = fromText(R"({"format": "evenkeel.cluster/1", "nodes": [{"name": "a", "devices": {"type": "cpu", "count": 1}, "nic_bandwith_gbs": 1}]})").error();
  EXPECT_THAT(error.text(), HasSubstr("/nodes/0/nic_bandwith_gbs: is no field; did you mean nic_bandwidth_gbs?"));
}

TEST(ClusterFile, KeepsUnknownFieldsOfSwitchesLinksAndTargets) {
  const auto cluster = fromText(R"({"format": "evenkeel.cluster/1", "nodes": [{"name": "a", "devices": {"type": "cpu", "count": 1}, "ssh": {"host": "h", "bastion": 1}},
    {"name": "b", "devices": {"type": "cpu", "count": 1}}], "switches": [{"name": "s", "members": ["a"], "bandwidth_gbs": 1, "vlan": 3}],
    "links": [{"between": ["a", "b"], "bandwidth_gbs": 1, "cable": "red"}]})");
  ASSERT_TRUE(cluster) << cluster.error().text();
  const Json written = toJson(*cluster);
  EXPECT_EQ(written["nodes"][0]["ssh"]["bastion"], 1);
  EXPECT_EQ(written["switches"][0]["vlan"], 3);
  EXPECT_EQ(written["links"][0]["cable"], "red");
}

TEST(ClusterLinks, ADrawnLinkOverridesSwitchesAndASwitchOverridesNics) {
  auto cluster = *parseClusterShorthand("3x1:V100-32-SXM2");
  const DeviceId a{0, 0}, b{1, 0}, c{2, 0};
  EXPECT_EQ(gbs(cluster.linkBetween(a, b).bandwidth), 25.0);
  cluster.switches.push_back({"s", {"v100-32-sxm2-0", "v100-32-sxm2-1"}, fromGbs(5), {}, fromMicroseconds(3)});
  EXPECT_EQ(gbs(cluster.linkBetween(a, b).bandwidth), 5.0);
  EXPECT_EQ(gbs(cluster.linkBetween(a, c).bandwidth), 25.0) << "c is not on the switch";
  cluster.links.push_back({1, 0, {fromGbs(2), fromMicroseconds(50)}});
  EXPECT_EQ(gbs(cluster.linkBetween(a, b).bandwidth), 2.0);
  EXPECT_EQ(gbs(cluster.linkBetween(b, a).bandwidth), 2.0);
}

constexpr const char* kTabled = R"({"format": "evenkeel.cluster/1", "nodes": [
  {"name": "a", "devices": {"type": "cpu", "count": 2}, "intra_bandwidth_gbs": 4, "intra_bandwidth_table": [{"message_bytes": 1000, "bandwidth_gbs": 1}]},
  {"name": "b", "devices": {"type": "cpu", "count": 1}, "nic_bandwidth_gbs": 1, "nic_bandwidth_table": [
    {"message_bytes": 1000, "bandwidth_gbs": 0.1}, {"message_bytes": 100000, "bandwidth_gbs": 1}]}]})";

TEST(ClusterLinks, TakeTimeFromTheirTableOfMessageSizes) {
  const auto cluster = fromText(kTabled);
  ASSERT_TRUE(cluster) << cluster.error().text();
  const LinkSpec link = cluster->linkBetween({0, 0}, {1, 0});  // the slower NIC, with its table
  EXPECT_NEAR(microseconds(link.transferTime({1000})), 10, 1e-9);
  EXPECT_NEAR(microseconds(link.transferTime({100'000})), 100, 1e-9);
  EXPECT_NEAR(microseconds(link.transferTime({50'500})), 55, 1e-9);    // half-way
  EXPECT_NEAR(microseconds(link.transferTime({500})), 5, 1e-9);        // the first point's bandwidth below it
  EXPECT_NEAR(microseconds(link.transferTime({1'000'000})), 1000, 1e-9);
  const auto again = fromText(toJson(*cluster).dump());
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, *cluster);
}

TEST(ClusterLinks, RefuseATableThatFalls) {
  std::string text = kTabled;
  text.replace(text.find("100000"), 6, "1000");
  const auto cluster = fromText(text);
  ASSERT_FALSE(cluster);
  EXPECT_THAT(cluster.error().text(), HasSubstr("/nodes/1/nic_bandwidth_table/1/message_bytes"));
}

TEST(ClusterLinks, APathMayCrossSeveralSwitches) {
  auto cluster = *parseClusterShorthand("2x1:V100-32-SXM2");
  cluster.switches = {{"leaf0", {"v100-32-sxm2-0"}, fromGbs(10), {}, fromMicroseconds(1)},
                      {"leaf1", {"v100-32-sxm2-1"}, fromGbs(10), {}, fromMicroseconds(1)},
                      {"spine", {"leaf0", "leaf1"}, fromGbs(4), {}, fromMicroseconds(1)}};
  EXPECT_EQ(gbs(cluster.linkBetween({0, 0}, {1, 0}).bandwidth), 4.0);
}

}  // namespace
}  // namespace evenkeel
