// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace evenkeel::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Svg, EscapesWhatWouldEndAnElementOrAnAttribute) {
  EXPECT_EQ(escaped("a<b & \"c\" 'd'>"), "a&lt;b &amp; &quot;c&quot; &#39;d&#39;&gt;");
  Svg svg(10, 10);
  svg.rect(0, 0, 1, 1, "s0", "</title><script>");
  svg.text(0, 0, "<b>");
  EXPECT_THAT(svg.inlined("\"x\""), Not(HasSubstr("<script")));
  EXPECT_THAT(svg.inlined("\"x\""), Not(HasSubstr("<b>")));
}

TEST(Svg, IsAFileOfItsOwnWithTheStyleForLightAndDark) {
  Svg svg(20.5, 10);
  svg.bars(1, 2, {{0, 3}, {4.256, 1}}, "forward");
  const std::string text = svg.standalone("picture");
  EXPECT_THAT(text, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(text, HasSubstr("viewBox=\"0 0 20.5 10\""));
  EXPECT_THAT(text, HasSubstr("M0 1h3v2h-3zM4.26 1h1v2h-1z"));
  EXPECT_THAT(svg.inlined("picture"), Not(HasSubstr("<style>")));
}

}  // namespace
}  // namespace evenkeel::report
