// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/cluster_edits.h"

#include <gmock/gmock.h>

#include "app/gui/cluster/cluster_problems.h"
#include "app/gui/cluster/device_edits.h"

namespace evenkeel::gui {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Project projectOf(const char* shorthand) {
  Project project;
  project.cluster = *parseClusterShorthand(shorthand);
  return project;
}

std::string textOf(const Project& project) { return toJson(project).dump(); }

bool overlapAny(const Project& project) {
  const Places layout = shownLayout(project);
  for (const auto& [a, p] : layout) {
    for (const auto& [b, q] : layout) {
      const CanvasSize s = sizeOf(project.cluster, a), t = sizeOf(project.cluster, b);
      if (a != b && p.x < q.x + t.width && q.x < p.x + s.width && p.y < q.y + t.height && q.y < p.y + s.height) return true;
    }
  }
  return false;
}

// alpa #459: a bandwidth that was set moved nothing (field-faults): the table by message size goes along.
TEST(SetBandwidth, KeepsTheShapeOfAMeasuredTable) {
  LinkSpec link{fromGbs(10), {}, {{Bytes{1 << 16}, fromGbs(1)}, {Bytes{1 << 24}, fromGbs(9)}}};
  setBandwidth(link, fromGbs(5));
  EXPECT_EQ(link.bandwidth, fromGbs(5));
  EXPECT_DOUBLE_EQ(link.table[0].bandwidth.value, 0.5e9);
  EXPECT_DOUBLE_EQ(link.table[1].bandwidth.value, 4.5e9);
}

TEST(AddMachine, NumbersNamesAndLandsOnNothing) {
  Project project;
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(addMachine(project, "A100-80-SXM", 8, {100, 100}));
  EXPECT_EQ(project.cluster.nodes.front().name, "node-0");
  EXPECT_EQ(project.cluster.nodes.back().name, "node-8");
  EXPECT_FALSE(overlapAny(project));
  EXPECT_EQ(project.cluster.deviceTypes.size(), 1u);
}

TEST(AddMachine, HasTheLinksThatTheShorthandGives) {
  Project project;
  ASSERT_TRUE(addMachine(project, "A100-80-SXM", 8, {}));
  Node expected = parseClusterShorthand("1x8:A100-80-SXM")->nodes.front();
  expected.name = "node-0";
  EXPECT_EQ(project.cluster.nodes.front(), expected);
}

TEST(AddMachine, RefusesAnUnknownTypeAndChangesNothing) {
  Project project = projectOf("1x2:cpu");
  const std::string before = textOf(project);
  const auto added = addMachine(project, "A100", 8, {});
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().remedy, HasSubstr("A100-80-SXM"));
  EXPECT_EQ(textOf(project), before);
}

TEST(Duplicate, CountsNamesUpAndKeepsTheConnectionsAmongTheCopies) {
  Project project = projectOf("3x2:cpu");
  ASSERT_TRUE(connectItems(project, "cpu-0", "cpu-1"));
  ASSERT_TRUE(connectItems(project, "cpu-1", "cpu-2"));
  const auto copies = duplicate(project, {"cpu-0", "cpu-1"});
  ASSERT_TRUE(copies);
  EXPECT_THAT(*copies, ElementsAre("cpu-3", "cpu-4"));
  ASSERT_EQ(project.cluster.links.size(), 3u) << "the link to cpu-2 has only one end in the copy";
  EXPECT_EQ(linkKey(project.cluster, project.cluster.links.back()), "cpu-3|cpu-4");
  EXPECT_FALSE(overlapAny(project));
}

TEST(RemoveItems, TakesLinksMembershipsPlacesAndUnusedTypesAlong) {
  Project project = projectOf("2x2:cpu,1x4:T4");
  const std::string hub = addSwitch(project, {});
  for (const char* node : {"cpu-0", "cpu-1", "t4-0"}) ASSERT_TRUE(connectItems(project, hub, node));
  ASSERT_TRUE(connectItems(project, "cpu-1", "t4-0"));
  ASSERT_TRUE(connectItems(project, "cpu-0", "cpu-1"));
  removeItems(project, {"cpu-0", "cpu-1"});
  EXPECT_TRUE(project.cluster.links.empty());
  EXPECT_THAT(project.cluster.switches.front().members, ElementsAre("t4-0"));
  EXPECT_EQ(project.layout.size(), 2u);
  ASSERT_EQ(project.cluster.deviceTypes.size(), 1u);
  EXPECT_EQ(project.cluster.typeOf({0, 0}).name, "T4");
}

TEST(RemoveItems, KeepsLinksBetweenOthersOnTheRightMachines) {
  Project project = projectOf("4x2:cpu");
  ASSERT_TRUE(connectItems(project, "cpu-2", "cpu-3"));
  removeItems(project, {"cpu-0"});
  EXPECT_EQ(linkKey(project.cluster, project.cluster.links.front()), "cpu-2|cpu-3");
  removeItems(project, {"cpu-2|cpu-3"});
  EXPECT_TRUE(project.cluster.links.empty());
  EXPECT_EQ(project.cluster.nodes.size(), 3u);
}

TEST(Rename, ReachesMembershipsAndPlacesAndRefusesTakenNames) {
  Project project = projectOf("2x2:cpu");
  const std::string hub = addSwitch(project, {});
  ASSERT_TRUE(connectItems(project, hub, "cpu-0"));
  const CanvasPoint place = project.layout.at("cpu-0");
  ASSERT_TRUE(rename(project, "cpu-0", "big"));
  EXPECT_THAT(project.cluster.switches.front().members, ElementsAre("big"));
  EXPECT_EQ(project.layout.at("big"), place);
  EXPECT_FALSE(project.layout.contains("cpu-0"));
  EXPECT_FALSE(rename(project, "big", "cpu-1"));
  EXPECT_FALSE(rename(project, "big", "switch-0"));
  EXPECT_FALSE(rename(project, "big", "a/b"));
  EXPECT_FALSE(rename(project, "big", ""));
}

TEST(ConnectItems, DrawsALinkAsGoodAsTheWayThatWasThere) {
  Project project = projectOf("2x2:cpu");
  const LinkSpec before = project.cluster.linkBetween({0, 0}, {1, 0});
  ASSERT_TRUE(connectItems(project, "cpu-1", "cpu-0"));
  EXPECT_EQ(project.cluster.linkBetween({0, 0}, {1, 0}), before);
  EXPECT_EQ(*connectItems(project, "cpu-0", "cpu-1"), "cpu-1|cpu-0") << "the link that is there";
  EXPECT_EQ(project.cluster.links.size(), 1u);
  EXPECT_FALSE(connectItems(project, "cpu-0", "cpu-0"));
}

TEST(ConnectItems, DrawsNoLoopOfSwitches) {
  Project project = projectOf("2x2:cpu");
  for (const char* name : {"s", "t", "u"}) project.cluster.switches.push_back({.name = name, .members = {}, .bandwidth = fromGbs(1), .total = {}, .latency = {}});
  ASSERT_TRUE(connectItems(project, "s", "t"));
  ASSERT_TRUE(connectItems(project, "t", "u"));
  const Project before = project;
  const auto loop = connectItems(project, "u", "s");
  ASSERT_FALSE(loop);
  EXPECT_THAT(loop.error().text(), testing::HasSubstr("is already inside"));
  EXPECT_EQ(project.cluster, before.cluster);
}

TEST(SetDevices, FollowsTheNewTypesLinksUnlessTheyWereSetByHand) {
  Project project = projectOf("2x8:A100-80-SXM");
  changeMachines(project, {"a100-80-sxm-1"}, [](Node& node) { node.intra.bandwidth = fromGbs(111); });
  ASSERT_TRUE(setDevices(project.cluster, {"a100-80-sxm-0", "a100-80-sxm-1"}, {{"T4", 4}}));
  EXPECT_EQ(gbs(project.cluster.nodes[0].intra.bandwidth), 16);
  EXPECT_EQ(gbs(project.cluster.nodes[1].intra.bandwidth), 111);
  EXPECT_EQ(gbs(project.cluster.nodes[1].nic.bandwidth), 12.5);
  EXPECT_FALSE(project.cluster.nodes[1].nicPerDevice);
  EXPECT_EQ(project.cluster.deviceTypes.size(), 1u) << "nothing uses A100 any more";
}

TEST(DevicesText, ReadsBack) {
  Project project = projectOf("1x1:cpu");
  ASSERT_TRUE(setDevices(project.cluster, {"cpu-0"}, *parseDevices("4 x A100-80-SXM + 2xT4+cpu@0.25")));
  const std::string text = devicesText(project.cluster, project.cluster.nodes.front());
  EXPECT_EQ(text, "4 x A100-80-SXM + 2 x T4 + 1 x cpu@0.25");
  EXPECT_EQ(*parseDevices(text), deviceGroups(project.cluster, project.cluster.nodes.front()));
  EXPECT_FALSE(parseDevices("0 x T4"));
  EXPECT_FALSE(parseDevices("4 x "));
}

TEST(Resized, CutsAtTheEndOrAddsOfTheLastType) {
  const std::vector<DeviceGroup> mixed{{"A10", 4}, {"T4", 2}};
  EXPECT_EQ(resized(mixed, 8), (std::vector<DeviceGroup>{{"A10", 4}, {"T4", 4}}));
  EXPECT_EQ(resized(mixed, 5), (std::vector<DeviceGroup>{{"A10", 4}, {"T4", 1}}));
  EXPECT_EQ(resized(mixed, 4), (std::vector<DeviceGroup>{{"A10", 4}}));
  EXPECT_EQ(resized(mixed, 1), (std::vector<DeviceGroup>{{"A10", 1}}));
}

TEST(PasteText, TakesTheShorthandAndWhatWasCopied) {
  Project project;
  ASSERT_TRUE(pasteText(project, " 2x8:A100-80-SXM,1x4:T4\n", {}));
  EXPECT_EQ(project.cluster.nodes.size(), 3u);
  ASSERT_TRUE(connectItems(project, "a100-80-sxm-0", "t4-0"));
  const std::string text = copyText(project, {"a100-80-sxm-0", "t4-0"});
  const auto pasted = pasteText(project, text, {});
  ASSERT_TRUE(pasted);
  EXPECT_THAT(*pasted, ElementsAre("a100-80-sxm-2", "t4-1"));
  EXPECT_EQ(project.cluster.links.size(), 2u);
  EXPECT_EQ(project.cluster.deviceTypes.size(), 2u);
  EXPECT_FALSE(overlapAny(project));
  Project elsewhere;
  ASSERT_TRUE(pasteText(elsewhere, text, {}));
  EXPECT_EQ(elsewhere.cluster.nodes.front(), project.cluster.nodes.front());
}

TEST(PasteText, RefusesWhatIsNoClusterAndChangesNothing) {
  Project project = projectOf("1x2:cpu");
  const std::string before = textOf(project);
  for (const char* text : {"", "hello", "{}", "{\"format\": \"evenkeel.clipboard/1\"}",
                           "{\"format\": \"evenkeel.clipboard/1\", \"project\": 3}", "99999x9:cpu"}) {
    EXPECT_FALSE(pasteText(project, text, {})) << text;
    EXPECT_EQ(textOf(project), before) << text;
  }
}

TEST(Arrange, PutsMachinesInRowsByTypeAndThenByNumber) {
  Project project = projectOf("11x2:cpu,2x4:T4");
  arrange(project);
  EXPECT_EQ(project.layout.at("cpu-0"), (CanvasPoint{0, 0}));
  EXPECT_EQ(project.layout.at("cpu-2").y, 0) << "2 before 10";
  EXPECT_GT(project.layout.at("cpu-10").y, 0);
  EXPECT_FALSE(overlapAny(project));
}

TEST(Arrange, PutsSitesBesideEachOtherUnderTheirSwitches) {
  Project project = projectOf("4x2:cpu,2x4:T4");
  const auto join = [&](const char* name, std::vector<std::string> members) {
    project.cluster.switches.push_back({.name = name, .members = std::move(members), .bandwidth = fromGbs(1)});
  };
  join("wide", {"east", "west"});
  join("west", {"cpu-0", "cpu-1", "t4-0"});
  join("east", {"cpu-2", "cpu-3", "t4-1"});
  arrange(project);
  EXPECT_FALSE(overlapAny(project));
  const auto at = [&](const char* name) { return project.layout.at(name); };
  for (const char* member : {"cpu-0", "cpu-1", "t4-0"}) {
    for (const char* other : {"cpu-2", "cpu-3", "t4-1"}) EXPECT_LT(at(member).x, at(other).x);
  }
  EXPECT_LT(at("west").x, at("east").x) << "over its own machines";
  EXPECT_LT(at("wide").y, at("west").y) << "what joins switches stands over them";
  EXPECT_LT(at("west").y, at("cpu-0").y);
  project.cluster.switches[1].members.push_back("wide");  // a file may hold a circle until it is checked
  arrange(project);
  EXPECT_FALSE(overlapAny(project));
}

TEST(ShownLayout, PlacesWhatHasNoPlaceBelowTheRest) {
  Project project = projectOf("3x2:cpu");
  project.layout["cpu-1"] = {400, 200};
  const Places layout = shownLayout(project);
  EXPECT_EQ(layout.at("cpu-1"), (CanvasPoint{400, 200}));
  EXPECT_GT(layout.at("cpu-0").y, 200);
  moveItems(project, {"cpu-1"}, -40, 60);
  EXPECT_EQ(project.layout.at("cpu-0"), layout.at("cpu-0")) << "moving one does not move another";
  EXPECT_EQ(project.layout.at("cpu-1"), (CanvasPoint{360, 260}));
}

TEST(ClusterProblems, NameMachinesWithoutAWayAndSwitchesWithoutAUse) {
  Project project = projectOf("3x2:cpu");
  EXPECT_TRUE(clusterProblems(project.cluster).empty()) << "nothing drawn: every NIC reaches every other";
  const std::string hub = addSwitch(project, {});
  ASSERT_TRUE(connectItems(project, hub, "cpu-0"));
  std::vector<std::string> items;
  for (const ClusterProblem& problem : clusterProblems(project.cluster)) items.push_back(problem.item);
  EXPECT_THAT(items, ElementsAre("cpu-1", "cpu-2", "switch-0"));
}

TEST(ClusterProblems, NameMachinesThatAreJoinedOnlyToEachOther) {
  Project project = projectOf("4x2:cpu");
  const std::string hub = addSwitch(project, {});
  for (const char* machine : {"cpu-0", "cpu-1"}) ASSERT_TRUE(connectItems(project, hub, machine));
  ASSERT_TRUE(connectItems(project, "cpu-2", "cpu-3"));
  std::vector<std::string> items;
  for (const ClusterProblem& problem : clusterProblems(project.cluster)) items.push_back(problem.item);
  EXPECT_THAT(items, ElementsAre("cpu-2", "cpu-3"));
  ASSERT_TRUE(connectItems(project, "cpu-1", "cpu-2"));
  EXPECT_TRUE(clusterProblems(project.cluster).empty()) << "a path over other machines leads there";
}

}  // namespace
}  // namespace evenkeel::gui
