// SPDX-License-Identifier: GPL-3.0-or-later
// What the configuration of a worker for cards refuses: folders that look like LibTorch's, and no compiler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

/// What resources/build/torch.cmake says of a LibTorch: on one line, as CMake breaks lines where it likes.
std::pair<std::string, int> configured(const std::filesystem::path& torch) {
  const std::string command = "cmake -DCMAKE_PREFIX_PATH='" + torch.string() + "' -P " EVENKEEL_SOURCE_DIR "/resources/build/torch.cmake 2>&1";
  FILE* const pipe = ::popen(command.c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    if (c == '\n') c = ' ';
    if (c != ' ' || text.empty() || text.back() != ' ') text += static_cast<char>(c);
  }
  return {text, WEXITSTATUS(::pclose(pipe))};
}

TEST(TorchWithCuda, IsNotBuiltWithHeadersOfAnotherCuda) {
  const TemporaryDirectory folder(TemporaryDirectory::Name::Plain);
  const auto torch = folder.path() / "torch", headers = folder.path() / "nvidia" / "cuda_runtime" / "include";
  std::filesystem::create_directories(torch / "lib");
  std::filesystem::create_directories(headers);
  std::ofstream(torch / "lib" / "libtorch_cuda.so") << "";
  std::ofstream(torch / "version.py") << "__version__ = '2.7.1+cu126'\n";
  std::ofstream(headers / "cuda_runtime_api.h") << "#define CUDART_VERSION  13000\n";
  const auto [text, status] = configured(torch);
  EXPECT_NE(status, 0);
  EXPECT_THAT(text, HasSubstr("is for CUDA 12, and the headers in"));
  EXPECT_THAT(text, HasSubstr("nvidia-cuda-runtime-cu12"));
}

}  // namespace
}  // namespace evenkeel
