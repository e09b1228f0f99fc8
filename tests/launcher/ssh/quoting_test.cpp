// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/quoting.h"

#include <gtest/gtest.h>

#include "launcher/ssh/local_host.h"

namespace evenkeel {
namespace {

TEST(ShellLine, LeavesPlainWordsReadable) {
  EXPECT_EQ(shellLine({"/x/evenkeel-agent", "tail", "--from", "12"}), "/x/evenkeel-agent tail --from 12");
  EXPECT_EQ(shellLine({"echo", "", "it's", "~", "$HOME"}), R"(echo '' 'it'\''s' '~' '$HOME')");
}

TEST(ShellLine, IsSplitByAShellIntoTheSameArguments) {
  const std::vector<std::string> argv{"printf", "%s|",        "a b", "",      "it's", "\"q\"",     "$HOME `id` $(id)",
                                      "*?[a]",  "line\nline", "\\",  "größe", "-n",   "a;b&c|d>e", "!x"};
  std::string expected;
  for (std::size_t i = 2; i < argv.size(); ++i) expected += argv[i] + "|";
  LocalHost host("here");
  const auto output = run(host, {.argv = {"sh", "-c", shellLine(argv)}});
  ASSERT_TRUE(output);
  EXPECT_EQ(output->out, expected);
}

}  // namespace
}  // namespace evenkeel
