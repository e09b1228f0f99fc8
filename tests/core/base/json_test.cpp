// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/json.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/json_reader.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

TEST(ParseJson, NamesLineAndColumnOfASyntaxError) {
  const auto json = parseJson("{\n  \"a\": 1,\n  \"b\": ]\n}", "c.json");
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().where, "c.json:3:8");
  EXPECT_THAT(json.error().what, HasSubstr("syntax error"));
}

TEST(ParseJson, RefusesEmptyBinaryAndBottomlessDocuments) {
  EXPECT_EQ(parseJson(" \n", "f").error().what, "is empty");
  EXPECT_EQ(parseJson(std::string_view("\x7f""ELF\0\0", 6), "f").error().what, "is a binary file");
  EXPECT_THAT(parseJson(std::string(100'000, '['), "f").error().what, HasSubstr("nests deeper"));
  EXPECT_FALSE(parseJson("{\"a\": 1e999}", "f"));
  EXPECT_FALSE(parseJson("{\"a\": \"\xff\"}", "f"));
}

// Of two values of one name only one could be kept, and nobody would know which.
TEST(ParseJson, RefusesANameThatStandsTwiceInOneObject) {
  EXPECT_EQ(parseJson(R"({"a": {"b": 1, "c": [], "b": 2}})", "f").error().what, "gives \"b\" twice in one object");
  EXPECT_TRUE(parseJson(R"({"a": {"b": 1}, "b": [{"b": 1}, {"b": 1}]})", "f"));
}

TEST(ParseJson, SpeaksPlainlyOfANumberThatIsTooLarge) {
  EXPECT_EQ(parseJson("{\"a\": 1e400}", "f").error().what, "number overflow parsing '1e400'");
}

TEST(ReadFile, SaysWhatIsWrongWithThePath) {
  EXPECT_EQ(readFile("/nonexistent/x").error().what, "no such file");
  EXPECT_EQ(readFile("/").error().what, "is a folder");
  EXPECT_EQ(readFile("/dev/null").error().what, "is not a regular file");
}

TEST(WriteFileAtomically, ReplacesAFileAndLeavesNothingBeside) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("evenkeel-json-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(writeFileAtomically(folder / "a", "one"));
  ASSERT_TRUE(writeFileAtomically(folder / "a", "two", true));
  EXPECT_EQ(*readFile(folder / "a"), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::create_symlink(folder / "a", folder / "link");
  ASSERT_TRUE(writeFileAtomically(folder / "link", "three"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(*readFile(folder / "a"), "three");
  // A pipe or a device is written to; it used to be replaced by a file.
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const int reader = ::open((folder / "pipe").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_TRUE(writeFileAtomically(folder / "pipe", "four"));
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 4);
  EXPECT_STREQ(text, "four");
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  EXPECT_FALSE(writeFileAtomically(folder / "missing" / "a", "x"));
  std::filesystem::remove_all(folder);
}

TEST(JsonReader, KeepsTheFirstErrorWithItsPath) {
  const Json json = *parseJson(R"({"nodes": [{"count": 2}, {"count": -1}], "x": "y"})", "c.json");
  JsonContext context{"c.json", {}};
  JsonReader reader(json, context);
  for (JsonReader& node : reader.objects("nodes")) (void)node.integer("count", {1, 64});
  (void)reader.number("x", {});
  ASSERT_TRUE(context.error);
  EXPECT_EQ(context.error->where, "c.json /nodes/1/count");
  EXPECT_EQ(context.error->what, "is -1");
  EXPECT_EQ(context.error->remedy, "expected a whole number from 1 to 64");
}

TEST(JsonReader, ReturnsTheFieldsThatNobodyAskedFor) {
  const Json json = *parseJson(R"({"a": 1, "colour": "red", "b": {"c": 2}})", "f");
  JsonContext context{"f", {}};
  JsonReader reader(json, context);
  (void)reader.integer("a", {0, 9});
  EXPECT_EQ(reader.rest().dump(), R"({"colour":"red","b":{"c":2}})");
  EXPECT_FALSE(context.error);
}

TEST(JsonReader, TakesAFieldThatIsSpeltNearlyLikeAnAbsentOneForAMistake) {
  const auto errorOf = [](const char* text) {
    const Json json = *parseJson(text, "f");
    JsonContext context{"f", {}};
    JsonReader reader(json, context, "/nodes/0");
    (void)reader.number("bandwidth_gbs", {0.0, 9.0}, 1.0);
    (void)reader.has("members");
    (void)reader.rest();
    return context.error ? context.error->text() : std::string();
  };
  EXPECT_THAT(errorOf(R"({"bandwith_gbs": 3})"), HasSubstr("f /nodes/0/bandwith_gbs: is no field; did you mean bandwidth_gbs?"));
  EXPECT_THAT(errorOf(R"({"member": []})"), HasSubstr("did you mean members?"));
  EXPECT_EQ(errorOf(R"({"bandwidth_gbs": 3, "bandwidth_gbs2": 4, "memo": 1})"), "") << "the field is there; short words are left alone";
}

TEST(JsonReader, TellsWhatIsNoNumberOfTheKind) {
  const Json json = *parseJson(R"({"a": 1.5, "b": 18446744073709551615, "c": "3", "d": [1]})", "f");
  for (const char* key : {"a", "b", "c", "d"}) {
    JsonContext context{"f", {}};
    JsonReader reader(json, context);
    (void)reader.integer(key, {0, 9});
    EXPECT_TRUE(context.error) << key;
  }
}

TEST(Rounded, IsStableUnderUnitConversion) {
  for (const double gigabytes : {0.1, 25.0, 12.5, 196.0, 1.1, 3352.0}) EXPECT_EQ(rounded(gigabytes * 1e9 / 1e9), gigabytes);
}

}  // namespace
}  // namespace evenkeel
