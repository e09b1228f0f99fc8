// SPDX-License-Identifier: GPL-3.0-or-later
// Runs every command of the README's console blocks, in order, in one folder: what newcomers copy must work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/program.h"

namespace evenkeel {
namespace {

std::vector<std::string> consoleCommands(const std::string& markdown) {
  std::vector<std::string> commands;
  std::istringstream lines(markdown);
  std::string line;
  bool inConsole = false;
  while (std::getline(lines, line)) {
    if (line.starts_with("```")) inConsole = line == "```console";
    else if (inConsole && line.starts_with("$ ")) commands.push_back(line.substr(2));
  }
  return commands;
}

TEST(Readme, EveryCommandWorksAsItStands) {
  if (!std::filesystem::exists(std::filesystem::path(EVENKEEL_BIN_DIR) / "evenkeel-worker")) GTEST_SKIP() << "built without LibTorch";
  const auto commands = consoleCommands(*readFile(std::filesystem::path(EVENKEEL_SOURCE_DIR) / "README.md"));
  ASSERT_GE(commands.size(), 12U);
  const Cli cli;
  // What newcomers find beside them in the folder of the sources.
  std::filesystem::create_directory_symlink(std::filesystem::path(EVENKEEL_SOURCE_DIR) / "resources",
                                            cli.folder().path() / "resources");
  for (const std::string& command : commands) {
    std::istringstream words(command);
    std::string word;
    words >> word;
    ASSERT_EQ(word, "evenkeel-cli") << command;
    std::vector<std::string> arguments;
    while (words >> word) {
      if (word == "RUN") word = cli.run({"runs", "--json"}).json()["runs"][0]["run"];
      arguments.push_back(word);
    }
    const ProgramResult result = cli.run(arguments);
    EXPECT_EQ(result.exitCode, 0) << command << "\n" << result.err;
  }
}

TEST(Readme, TheSetUpOfRunShSaysThatAllIsInstalled) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  const ProgramResult result = Program({std::string(EVENKEEL_SOURCE_DIR) + "/run.sh", "--setup"}).finish();
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_THAT(result.err, ::testing::HasSubstr("everything is installed"));
}

}  // namespace
}  // namespace evenkeel
