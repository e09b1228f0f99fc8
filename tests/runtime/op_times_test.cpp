// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/profile/op_times.h"

#include <gtest/gtest.h>

#include "runtime/device/compute_clock.h"
#include "tests/runtime/random_plans.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

ProfileRequest requestFor(std::uint64_t seed, Precision precision) {
  ProfileRequest request{.model = randomModel(seed), .training = {}, .samples = {1, 3}, .deviceType = "cpu", .perPoint = {0}};
  request.training.sequenceLength = 16;
  request.training.globalBatch = 8;
  request.training.precision = precision;
  request.training.zeroStage = 0;
  return request;
}

TEST(OpTimes, AreMeasuredForEveryOpOfBothFamiliesAtAnyPrecision) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}}) {
    for (const Precision precision : {Precision::Fp32, Precision::Bf16, Precision::Fp16}) {
      SCOPED_TRACE(std::to_string(seed) + " in " + std::string(name(precision)));
      const ProfileTable table = measureOps(requestFor(seed, precision));
      const DeviceProfile& profile = table.devices.at("cpu");
      EXPECT_EQ(profile.points.size(), static_cast<std::size_t>(kOpCount));
      for (const auto& [key, points] : profile.points) {
        ASSERT_EQ(points.size(), 2U);
        for (const auto& [samples, point] : points) {
          EXPECT_EQ(point.source, ValueSource::Measured);
          EXPECT_GE(point.runs, kLeastRuns);
          if (key.op == Op::AttentionDropout) continue;  // nothing runs without dropout
          EXPECT_GT(point.forward, Seconds{}) << name(key.op);
          EXPECT_GT(point.backward, Seconds{}) << name(key.op);
        }
      }
      EXPECT_GT(profile.reserved.value_or(Bytes{}), Bytes{});
      EXPECT_EQ(table.conditions.sequenceLength, 16);
      const auto again = parseProfile(toJson(table), "again");
      ASSERT_TRUE(again) << again.error().text();
      EXPECT_EQ(again->conditions, table.conditions);
    }
  }
}

/// A sleep never ends early, so this cannot fail on a busy machine.
TEST(OpTimes, OfASlowDeviceRestBetweenPassesAsTheDeviceDoes) {
  ProfileRequest request = requestFor(1, Precision::Fp32);
  request.perPoint = {0.03};
  request.speed = 0.25;
  const auto start = SteadyClock::now();
  const Seconds cpu = threadCpuTime();
  (void)measureOps(request);
  EXPECT_GT(secondsSince(start), 2 * (threadCpuTime() - cpu));
}

TEST(OpTimes, AreAskedForInWords) {
  const ProfileRequest request = requestFor(1, Precision::Bf16);
  const auto read = parseProfileRequest(toJson(request), "request");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(toJson(*read), toJson(request));
  EXPECT_FALSE(parseProfileRequest(Json{{"model", toJson(request.model)}}, "request"));
}

}  // namespace
}  // namespace evenkeel
