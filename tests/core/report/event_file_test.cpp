// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/event_file.h"

#include <gtest/gtest.h>

#include "core/base/json.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel::report {
namespace {

using namespace std::string_literals;

TEST(EventFile, SumsAreThoseOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(""), 0U);
}

/// The records of a file, whose lengths fit.
std::vector<std::string> recordsOf(const std::string& bytes) {
  std::vector<std::string> records;
  std::size_t at = 0;
  while (at + 12 <= bytes.size()) {
    std::size_t length = 0;
    for (unsigned i = 0; i < 8; ++i) length |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
    if (at + 16 + length > bytes.size()) break;
    records.push_back(bytes.substr(at + 12, length));
    at += 16 + length;
  }
  EXPECT_EQ(at, bytes.size());
  return records;
}

TEST(EventFile, HoldsWhatWasAddedOnceFlushed) {
  const TemporaryDirectory folder;
  auto file = EventFile::create(folder.path() / "board", 1'700'000'000.5, "run-1");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->file().filename(), "events.out.tfevents.1700000000.run-1");
  file->addScalar("loss", 300, 2.5, 1.0);
  ASSERT_TRUE(file->flush());
  const auto records = recordsOf(*readFile(file->file()));
  ASSERT_EQ(records.size(), 2U);
  const std::string time = "\x09"s + "\0\0\0\0\0\0\xf0\x3f"s;                                             // 1: 1.0
  const std::string value = "\x0a\x04loss"s + "\x15"s + "\0\0\x20\x40"s;                                  // 1: "loss", 2: 2.5
  EXPECT_EQ(records[1], time + "\x10\xac\x02"s + "\x2a\x0d"s + "\x0a\x0b"s + value);                      // 2: 300, 5: {1: value}
  EXPECT_EQ(records[0].substr(9), "\x1a\x0d"s + "brain.Event:2");
  EXPECT_EQ(readFile(file->file())->substr(8, 4), "\xa3\x7f\x4b\x22"s) << "the masked sum of the first record's length, 24";
}

TEST(EventFile, SaysWhereItCannotBeWritten) {
  const TemporaryDirectory folder;
  (void)folder.file("taken", "");
  EXPECT_NE(EventFile::create(folder.path() / "taken", 0, "x").error().text().find("taken"), std::string::npos);
}

}  // namespace
}  // namespace evenkeel::report
