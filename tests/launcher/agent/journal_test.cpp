// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/agent/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <limits>

#include "launcher/agent/node_job.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

TEST(Journal, NumbersItsRecordsAndKeepsItsOwnFields) {
  const TemporaryDirectory directory;
  auto journal = Journal::create(directory.path() / "j");
  ASSERT_TRUE(journal);
  journal->append(-1, "started", {{"node", "a"}});
  journal->append(3, "log", {{"text", "\xff\xfe not utf-8 \n"}, {"seq", 99}, {"loss", std::numeric_limits<double>::quiet_NaN()}});
  const auto last = lastRecord(directory.path() / "j");
  ASSERT_TRUE(last && *last);
  EXPECT_EQ((**last)["seq"], 2);
  EXPECT_EQ((**last)["rank"], 3);
  EXPECT_TRUE((**last)["loss"].is_null());
  struct stat status {};
  ::stat((directory.path() / "j").c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(Journal, IsMadeOnceForEachRun) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(Journal::create(directory.path() / "j"));
  EXPECT_THAT(Journal::create(directory.path() / "j").error().text(), HasSubstr("was started here before"));
}

TEST(JournalLine, TellsItsNumberAndWhetherItIsTheLast) {
  EXPECT_EQ(seqOf(R"({"seq":12,"time":1.5,"rank":0,"event":"log"})"), 12);
  EXPECT_EQ(seqOf("hello"), std::nullopt);
  EXPECT_EQ(seqOf(R"({"seq":12)"), std::nullopt);
  EXPECT_TRUE(isEnd(R"({"seq":12,"time":1795950000.123,"rank":-1,"event":"ended","state":"failed"})"));
  EXPECT_FALSE(isEnd(R"({"seq":1,"time":1.5,"rank":-1,"event":"log","text":"\"rank\":-1,\"event\":\"ended\""})"));
}

TEST(NodeJob, SurvivesItsFile) {
  NodeJob job{.runId = "r", .node = "b 3", .nodeRank = 1, .worldSize = 3, .trainAddress = "::1", .masterAddress = "10.0.0.1"};
  job.masterPort = 4000;
  job.worker = "/x/evenkeel-worker";
  job.ranks = {{2, 0, "b 3/0"}};
  job.environment = {{"A", "b c"}};
  const auto read = parseNodeJob(toJson(job), "node.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, job);
  job.masterPort = 0;
  EXPECT_THAT(parseNodeJob(toJson(job), "node.json").error().text(), HasSubstr("has no port"));
}

}  // namespace
}  // namespace evenkeel
