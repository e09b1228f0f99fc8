// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/gpu_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "launcher/job/features_of.h"
#include "tests/support/plans.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A node with four cards as the probe finds it.
FoundHost fourCards() {
  FoundHost found;
  found.reached = true;
  for (int i = 0; i < 4; ++i) {
    FoundHost::Slot slot;
    slot.device.index = i;
    slot.device.product = "NVIDIA A100-SXM4-80GB";
    slot.device.uuid = "GPU-" + std::to_string(i);
    slot.device.memory = Bytes{std::int64_t{80} << 30U};
    slot.device.driver = "535.129.03";
    slot.device.capability = "8.0";
    found.found.push_back(std::move(slot));
  }
  found.torch = FoundTorch{.path = "/t/torch", .version = "2.7.1+cu126", .cuda = "12.6", .nccl = "2.26.2", .architectures = {"sm_80", "sm_90"}};
  return found;
}

/// Two stages on cards 0 and 2 of one node.
Plan planOnCards(const std::string& secondUuid = "") {
  Plan plan = planOf(*parseClusterShorthand("1x4:A100-80-SXM"), *modelFromArgument("tiny-gpt"),
                     {{8, 2, {"a100-80-sxm-0/0", "a100-80-sxm-0/2"}, {0, 9, 18}}});
  plan.cluster.nodes[0].devices[2].uuid = secondUuid;
  return plan;
}

const std::vector<WorkerBuild> kBuilds{{.folder = "/w/a", .torch = "2.7.1+cu126"}, {.folder = "/w/b", .torch = "2.8.0+cu128"}};

GpuCheck check(const FoundHost& found, const Plan& plan, const std::vector<WorkerBuild>& builds = kBuilds) {
  return checkGpus(found, plan, layoutOf(plan).front(), builds);
}
/// The one row that objects.
std::string objection(const GpuCheck& check) {
  std::string text;
  for (const PreflightRow& row : check.rows) {
    if (!row.passed) text += row.check + ": " + row.detail + "; " + row.remedy + "\n";
  }
  return text;
}

TEST(GpuCheck, ANodeUsesItsOwnTorchWhereAWorkerWasBuiltForIt) {
  const GpuCheck good = check(fourCards(), planOnCards("GPU-2"));
  EXPECT_EQ(objection(good), "");
  ASSERT_TRUE(good.build);
  EXPECT_EQ(good.build->folder, "/w/a");
  EXPECT_EQ(good.torchLibraries, "/t/torch/lib");
  EXPECT_THAT(good.rows.front().detail, HasSubstr("2 x NVIDIA A100-SXM4-80GB, driver 535.129.03"));
}

TEST(GpuCheck, WithoutATorchThereTheBuildsOwnGoesAlongAndWithoutABuildTheWayOutIsSaid) {
  FoundHost bare = fourCards();
  bare.torch.reset();
  const GpuCheck whole = check(bare, planOnCards());
  EXPECT_EQ(objection(whole), "");
  EXPECT_EQ(whole.build->torch, "2.8.0+cu128") << "the newest";
  EXPECT_EQ(whole.torchLibraries, "");
  EXPECT_THAT(objection(check(bare, planOnCards(), {})), HasSubstr("./run.sh --cuda"));
  FoundHost other = fourCards();
  other.torch->version = "2.9.0+cu128";
  const GpuCheck unlike = check(other, planOnCards());
  EXPECT_THAT(objection(unlike), HasSubstr("2.9.0+cu128 is there, but no worker for it: those that were built are for 2.7.1+cu126, 2.8.0+cu128"));
  EXPECT_THAT(objection(unlike), HasSubstr("./run.sh --cuda /t/torch"));
  EXPECT_FALSE(unlike.build);
}

TEST(GpuCheck, NamesWhatDoesNotFit) {
  FoundHost old = fourCards();
  for (FoundHost::Slot& slot : old.found) slot.device.driver = "450.51.06";
  EXPECT_THAT(objection(check(old, planOnCards())), HasSubstr("torch: driver 450.51.06 is too old for CUDA 12.6: it needs 525.60"));
  FoundHost pascal = fourCards();
  pascal.found[2].device.capability = "6.1";
  EXPECT_THAT(objection(check(pascal, planOnCards())), HasSubstr("has no code for compute capability 6.1"));
  pascal.found[2].device.capability = "8.0";
  pascal.found[1].device.capability = "6.1";
  EXPECT_EQ(objection(check(pascal, planOnCards())), "") << "a card that the plan does not use";
  FoundHost cpuOnly = fourCards();
  cpuOnly.torch->cuda = "";
  EXPECT_THAT(objection(check(cpuOnly, planOnCards())), HasSubstr("knows the CPU only"));
}

TEST(GpuCheck, ComparesTheCardsOfThePlanWithThoseThatAreThere) {
  EXPECT_THAT(objection(check(fourCards(), planOnCards("GPU-9"))), HasSubstr("devices: a100-80-sxm-0/2: the card GPU-9 is not there"));
  FoundHost two = fourCards();
  two.found.resize(2);
  EXPECT_THAT(objection(check(two, planOnCards())), HasSubstr("a100-80-sxm-0/2: there is no card 2"));
  FoundHost busy = fourCards();
  busy.found[2].device.processes = {4711};
  EXPECT_THAT(objection(check(busy, planOnCards())), HasSubstr("a100-80-sxm-0/2: NVIDIA A100-SXM4-80GB is in use; free it"));
  busy.found[2].device.processes = {};
  busy.found[2].device.problem = "has MIG switched on";
  EXPECT_THAT(objection(check(busy, planOnCards())), HasSubstr("NVIDIA A100-SXM4-80GB has MIG switched on"));
  FoundHost cores;
  cores.found.resize(2);
  for (FoundHost::Slot& slot : cores.found) slot.device.product = slot.type = "cpu";
  EXPECT_THAT(objection(check(cores, planOnCards())), HasSubstr("there is no card, and neither nvidia-smi"));
  FoundHost silent;
  silent.rows.push_back({"devices", false, "nvidia-smi: it did not answer within 20 s", "run nvidia-smi there and mend what it says"});
  EXPECT_THAT(objection(check(silent, planOnCards())), HasSubstr("did not answer within 20 s; run nvidia-smi"));
}

// vllm #7074, aws-do-eks PRs #50, #51: one variable for both, and `^lo` given to Gloo.
TEST(GpuCheck, ProposesTheInterfaceThatHoldsTheTrainingAddress) {
  const std::vector<std::string> addresses{"eth0 10.0.0.1", "ib0 10.1.0.1", "eth1@if9 192.168.0.4"};
  EXPECT_THAT(interfaceVariables(addresses, "10.1.0.1"),
              ElementsAre(std::pair<const std::string, std::string>("GLOO_SOCKET_IFNAME", "ib0"), std::pair<const std::string, std::string>("NCCL_SOCKET_IFNAME", "=ib0")));
  EXPECT_EQ(interfaceVariables(addresses, "192.168.0.4")["GLOO_SOCKET_IFNAME"], "eth1");
  EXPECT_THAT(interfaceVariables(addresses, "127.0.0.1"), IsEmpty());
}

TEST(GpuCheck, OnlyRanksOnCardsNeedIt) {
  const Plan cards = planOnCards();
  EXPECT_TRUE(usesCards(cards, layoutOf(cards).front()));
  const Plan cores = planOf(*parseClusterShorthand("1x2:cpu@0.5"), *modelFromArgument("tiny-gpt"), {{8, 2, {"cpu-0/0", "cpu-0/1"}, {0, 9, 18}}});
  EXPECT_FALSE(usesCards(cores, layoutOf(cores).front()));
}

TEST(WorkerBuilds, AreFoundBesideTheProgramsByTheirVersion) {
  const TemporaryDirectory directory;
  for (const char* version : {"2.8.0+cu128", "2.7.1+cu126", "broken"}) {
    std::filesystem::create_directories(directory.path() / "workers" / version);
    if (std::string(version) != "broken") std::ofstream(directory.path() / "workers" / version / "worker.json") << R"({"torch": ")" << version << "\"}";
  }
  const auto builds = workerBuilds(directory.path());
  ASSERT_EQ(builds.size(), 2U);
  EXPECT_EQ(builds[0].torch, "2.7.1+cu126");
  EXPECT_EQ(builds[1].folder, directory.path() / "workers" / "2.8.0+cu128");
  EXPECT_THAT(workerBuilds(directory.path() / "nowhere"), IsEmpty());
}

TEST(WorkerBuilds, OfANodeWithItsOwnTorchOnlyTheRestTravels) {
  Bundle bundle;
  for (const char* name : {"evenkeel-agent", "evenkeel-worker", "lib/libtorch_cuda.so", "lib/libc10.so", "lib/libnccl.so.2", "lib/libcudart.so.12", "lib/libstdc++.so.6", "lib/libfmt.so.9"})
    bundle.files.push_back({.name = name, .file = {}, .sha256 = {}});
  bundle.directory = "bundles/x";
  std::vector<std::string> names;
  for (const BundleFile& file : withoutTorch(bundle).files) names.push_back(file.name);
  EXPECT_THAT(names, ElementsAre("evenkeel-agent", "evenkeel-worker", "lib/libstdc++.so.6", "lib/libfmt.so.9"));
  EXPECT_NE(withoutTorch(bundle).directory, bundle.directory) << "another content is another folder";
}

TEST(UnlikeTorches, AreNamedWithTheirNodes) {
  EXPECT_EQ(unlikeTorches({{"a", "2.7.1+cu126"}, {"b", "2.7.1+cu126"}}), "");
  EXPECT_EQ(unlikeTorches({{"a", ""}, {"b", ""}}), "");
  EXPECT_EQ(unlikeTorches({{"a", "2.7.1+cu126"}, {"b", ""}}), "that for LibTorch 2.7.1+cu126 on a, the worker for CPU cores on b");
}

TEST(FeaturesOfPrograms, HaveCudaOnceAWorkerWasBuiltForIt) {
  const TemporaryDirectory programs;
  EXPECT_EQ(featuresOf(programs.path()), ownRuntime());
  std::filesystem::create_directories(programs.path() / "workers" / "2.7.1+cu126");
  std::ofstream(programs.path() / "workers" / "2.7.1+cu126" / "worker.json") << R"({"torch": "2.7.1+cu126"})";
  const RuntimeFeatures features = featuresOf(programs.path());
  EXPECT_TRUE(features.cuda);
  EXPECT_THAT(notLaunchable(planOnCards(), features), IsEmpty());
}

}  // namespace
}  // namespace evenkeel
