// SPDX-License-Identifier: GPL-3.0-or-later
// Runs every command of the README's console blocks as it stands: what newcomers copy must work. Each block is a test of its own, in a
// folder of its own; commands of earlier blocks that made files which it names are run first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <iterator>
#include <set>
#include <sstream>

#include "tests/support/program.h"

namespace evenkeel {
namespace {

using Words = std::vector<std::string>;

Words wordsOf(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

struct Block {
  std::string title;
  std::vector<Words> commands;
};
void PrintTo(const Block& block, std::ostream* out) { *out << block.title; }

/// The bold beginning of a paragraph, or a heading, as a name of a test.
std::string titleOf(const std::string& line) {
  const std::size_t begin = line.find_first_not_of("#* ");
  const std::size_t end = line.starts_with("**") ? line.find("**", 2) : line.size();
  std::string title;
  for (std::size_t i = begin; i < end; ++i) {
    const bool starts = i == begin || !std::isalnum(static_cast<unsigned char>(line[i - 1]));
    if (std::isalnum(static_cast<unsigned char>(line[i])) != 0) title += static_cast<char>(starts ? std::toupper(line[i]) : line[i]);
  }
  return title;
}

std::vector<Block> consoleBlocks(const std::string& markdown) {
  std::vector<Block> blocks;
  std::set<std::string> taken;
  std::istringstream lines(markdown);
  std::string line, title;
  bool inConsole = false, inOther = false;
  while (std::getline(lines, line)) {
    if (line.starts_with("```")) {
      const bool begins = !inConsole && !inOther;
      inConsole = begins && line == "```console";
      inOther = begins && !inConsole;
      if (!inConsole) continue;
      std::string name = title;
      for (int number = 2; !taken.insert(name).second; ++number) name = title + std::to_string(number);
      blocks.push_back({name, {}});
    } else if (inConsole && line.starts_with("$ ")) {
      blocks.back().commands.push_back(wordsOf(line.substr(2)));
    } else if (!inConsole && !inOther && (line.starts_with("#") || line.starts_with("**"))) {
      title = titleOf(line);
    }
  }
  return blocks;
}

std::vector<Block> blocksOfReadme() {
  const auto text = readFile(std::filesystem::path(EVENKEEL_SOURCE_DIR) / "README.md");
  return text ? consoleBlocks(*text) : std::vector<Block>();
}

/// The names of files and folders that a command makes.
std::set<std::string> madeBy(const Words& command) {
  std::set<std::string> made;
  for (std::size_t i = 0; i + 1 < command.size(); ++i) {
    if (command[i] == "--out" || command[i] == "--checkpoint-directory") made.insert(command[i + 1]);
  }
  return made;
}

class ReadmeBlock : public ::testing::TestWithParam<Block> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(std::filesystem::path(EVENKEEL_BIN_DIR) / "evenkeel-worker")) GTEST_SKIP() << "built without LibTorch";
    // What newcomers find beside them in the folder of the sources.
    std::filesystem::create_directory_symlink(std::filesystem::path(EVENKEEL_SOURCE_DIR) / "resources", cli_.folder().path() / "resources");
    for (const Block& block : blocksOfReadme()) {
      if (block.title == GetParam().title) break;
      earlier_.insert(earlier_.end(), block.commands.begin(), block.commands.end());
    }
  }

  void run(const Words& command) {
    ASSERT_EQ(command.front(), "evenkeel-cli");
    std::vector<std::string> arguments;
    for (std::size_t i = 1; i < command.size(); ++i) {
      std::string word = command[i];
      if (word == "RUN") word = cli_.run({"runs", "--json"}).json()["runs"][0]["run"];
      arguments.push_back(word);
    }
    const ProgramResult result = cli_.run(arguments);
    std::string text;
    for (const std::string& word : command) text += word + " ";
    EXPECT_EQ(result.exitCode, 0) << text << "\n" << result.err;
    made_.merge(madeBy(command));
  }

  /// Runs the last of the first `count` earlier commands that makes it, if one does, and first what that one needs.
  void make(const std::string& name, std::size_t count) {
    for (std::size_t i = count; i-- > 0;) {
      if (made_.contains(name) || !madeBy(earlier_[i]).contains(name)) continue;
      for (const std::string& word : earlier_[i]) make(word, i);
      run(earlier_[i]);
      return;
    }
  }

  Cli cli_;
  std::vector<Words> earlier_;
  std::set<std::string> made_;
};

TEST_P(ReadmeBlock, WorksAsItStands) {
  ASSERT_FALSE(GetParam().commands.empty()) << "a console block whose commands do not begin with $ is never tried";
  for (const Words& command : GetParam().commands) {
    for (const std::string& word : command) make(word, earlier_.size());
    run(command);
  }
}

INSTANTIATE_TEST_SUITE_P(Readme, ReadmeBlock, ::testing::ValuesIn(blocksOfReadme()),
                         [](const ::testing::TestParamInfo<Block>& block) { return block.param.title; });

TEST(Readme, HasItsCommandsInConsoleBlocks) { EXPECT_GE(blocksOfReadme().size(), 10U); }

TEST(Readme, TheSetUpOfRunShSaysThatAllIsInstalled) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  const ProgramResult result = Program({std::string(EVENKEEL_SOURCE_DIR) + "/run.sh", "--setup"}).finish();
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_THAT(result.err, ::testing::HasSubstr("everything is installed"));
}

}  // namespace
}  // namespace evenkeel
