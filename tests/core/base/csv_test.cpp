// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/csv.h"

#include <gtest/gtest.h>

namespace evenkeel {
namespace {

TEST(Csv, ReadsQuotesCommasAndLineEndsInsideQuotes) {
  const auto rows = parseCsv("# a note\nname,note\r\na,\"x, \"\"y\"\"\nz\"\n\nb,\n", "t.csv");
  ASSERT_TRUE(rows) << rows.error().text();
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[0].fields.at("note"), "x, \"y\"\nz");
  EXPECT_EQ((*rows)[1].fields.at("note"), "");
  EXPECT_EQ((*rows)[1].line, 6);
}

TEST(Csv, NamesTheLineOfARecordWithTooFewFields) {
  const auto rows = parseCsv("a,b\n1,2\n3\n", "t.csv");
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().where, "t.csv:3");
}

TEST(Csv, RefusesAnOpenQuoteAndTextBehindAQuote) {
  EXPECT_FALSE(parseCsv("a\n\"x", "t.csv"));
  EXPECT_FALSE(parseCsv("a\n\"x\"y\n", "t.csv"));
  EXPECT_FALSE(parseCsv("", "t.csv"));
}

}  // namespace
}  // namespace evenkeel
