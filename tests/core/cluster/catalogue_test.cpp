// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cluster/catalogue.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "core/base/csv.h"
#include "tests/support/reference_data.h"

namespace evenkeel {
namespace {

TEST(DeviceCatalogue, GivesEveryFigureASource) {
  ASSERT_FALSE(deviceCatalogue().empty());
  for (const CatalogueDevice& device : deviceCatalogue()) {
    EXPECT_EQ(device.sources.size(), 5U) << device.type.name;
    for (const auto& [figure, source] : device.sources) {
      EXPECT_FALSE(source.title.empty()) << device.type.name << " " << figure;
      EXPECT_TRUE(!source.verified || !source.address.empty()) << device.type.name << " " << figure << ": a verified figure needs its page";
      EXPECT_FALSE(source.date.empty()) << device.type.name << " " << figure;
    }
    EXPECT_FALSE(device.type.peak.empty()) << device.type.name;
  }
}

TEST(DeviceCatalogue, HasCpuAndExactlyTheNamesOfTheReferenceTable) {
  const auto file = referenceData("devices.csv");
  if (!file) GTEST_SKIP() << "no reference data";
  std::set<std::string> expected{"cpu"}, found;
  for (const CsvRow& row : *parseCsv(*readFile(*file), "devices.csv")) expected.insert(row.fields.at("name"));
  for (const CatalogueDevice& device : deviceCatalogue()) found.insert(device.type.name);
  EXPECT_EQ(found, expected);
}

TEST(DeviceCatalogue, OnlyCpuRunsHere) {
  for (const CatalogueDevice& device : deviceCatalogue()) EXPECT_EQ(device.type.runsHere, device.type.name == "cpu");
}

TEST(DeviceTypeNamed, ScalesTheSpeedBehindTheAt) {
  const auto type = deviceTypeNamed("cpu@0.25");
  ASSERT_TRUE(type);
  EXPECT_EQ(type->name, "cpu@0.25");
  EXPECT_EQ(type->speed, 0.25);
  EXPECT_TRUE(type->runsHere);
  EXPECT_FALSE(deviceTypeNamed("cpu@two"));
}

}  // namespace
}  // namespace evenkeel
