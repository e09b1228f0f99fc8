// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/words.h"

#include <gtest/gtest.h>

namespace evenkeel {
namespace {

TEST(EditDistance, CountsLettersToAddDropOrChange) {
  EXPECT_EQ(editDistance("", "abc"), 3U);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(editDistance("same", "same"), 0U);
}

TEST(IsMisspelling, AllowsTwoLettersInALongWordOneInAShortOne) {
  EXPECT_TRUE(isMisspelling("global_bacth", "global_batch"));
  EXPECT_TRUE(isMisspelling("layes", "layers"));
  EXPECT_FALSE(isMisspelling("layers", "layers")) << "that is the word";
  EXPECT_FALSE(isMisspelling("lxyxrs", "layers"));
  EXPECT_FALSE(isMisspelling("note", "node")) << "short words are too near to each other";
}

TEST(Counted, PutsTheNounIntoThePluralUnlessThereIsOne) {
  EXPECT_EQ(counted(0, "stage"), "0 stages");
  EXPECT_EQ(counted(1, "stage"), "1 stage");
  EXPECT_EQ(counted(2, "stage"), "2 stages");
}

}  // namespace
}  // namespace evenkeel
