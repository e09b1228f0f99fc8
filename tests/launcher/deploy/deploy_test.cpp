// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/base/sha256.h"
#include "launcher/deploy/bundle.h"
#include "launcher/deploy/data.h"
#include "launcher/deploy/probe.h"
#include "launcher/ssh/fake_host.h"
#include "launcher/ssh/local_host.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace fs = std::filesystem;

constexpr auto kLimit = 30s;

void write(const fs::path& file, const std::string& bytes) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

Bundle twoPrograms(const fs::path& folder) {
  write(folder / "evenkeel-agent", "#!/bin/sh\necho '{\"version\": \"1\"}'\n");
  write(folder / "evenkeel-worker", "#!/bin/sh\necho '{\"max_tp\": 1}'\n");
  return *programBundle(folder);
}

TEST(ProgramBundle, IsNamedAfterItsContent) {
  const TemporaryDirectory directory;
  const Bundle first = twoPrograms(directory.path() / "a"), same = twoPrograms(directory.path() / "b");
  EXPECT_EQ(first.directory, same.directory);
  write(directory.path() / "b" / "evenkeel-worker", "another");
  EXPECT_NE(programBundle(directory.path() / "b")->directory, first.directory);
  fs::remove(directory.path() / "b" / "evenkeel-worker");
  EXPECT_THAT(programBundle(directory.path() / "b").error().text(), HasSubstr("evenkeel-worker: no such program"));
}

TEST(CopyFiles, PutsWhatIsMissingOrDamaged) {
  const TemporaryDirectory directory;
  const Bundle bundle = twoPrograms(directory.path() / "programs");
  const std::string cache = directory.path() / "cache dir";
  const fs::path there = fs::path(cache) / bundle.directory;
  LocalHost host("b3");
  const auto missing = [&] { return *missingFiles(host, cache, bundle, kLimit); };
  EXPECT_THAT(missing(), SizeIs(2));
  std::uint64_t done = 0, total = 0;
  const auto put = copyFiles(host, cache, bundle, missing(), {}, [&](std::uint64_t d, std::uint64_t t) { done = d, total = t; });
  ASSERT_TRUE(put) << put.error().text();
  EXPECT_EQ(done, bytesOf(bundle.files));
  EXPECT_EQ(total, bytesOf(bundle.files));
  EXPECT_THAT(missing(), IsEmpty());
  struct stat status {};
  ::stat((there / "evenkeel-worker").c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  ::stat(there.c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  write(there / "evenkeel-agent", "damaged");
  ASSERT_THAT(missing(), SizeIs(1));
  ASSERT_TRUE(copyFiles(host, cache, bundle, missing()));
  EXPECT_THAT(missing(), IsEmpty());
}

TEST(PackData, JoinsFilesInAnOrderThatDoesNotDependOnTheDisk) {
  const TemporaryDirectory directory;
  const fs::path folder = directory.path() / "text";
  for (const char* name : {"b.txt", "a.txt", "sub/c.txt", "Z.txt", ".git/objects/x", ".hidden"})
    write(folder / name, std::string(name) + "\n");
  fs::create_symlink(folder / "a.txt", folder / "link.txt");
  fs::create_directory_symlink(folder, folder / "loop");
  const auto packed = packData({folder, folder / "b.txt"}, directory.path() / "cache");
  ASSERT_TRUE(packed) << packed.error().text();
  EXPECT_EQ(*readFile(packed->file), "Z.txt\na.txt\nb.txt\nsub/c.txt\nb.txt\n");
  EXPECT_EQ(packed->sha256, sha256(*readFile(packed->file)));
  EXPECT_EQ(packed->bytes, fs::file_size(packed->file));
  struct stat status {};
  ::stat(packed->file.c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(packData({folder, folder / "b.txt"}, directory.path() / "cache")->file, packed->file);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory.path() / "cache" / "data")) ++files;
  EXPECT_EQ(files, 1);  // no parts are left
}

TEST(PackData, NamesWhatIsMissingOrEmpty) {
  const TemporaryDirectory directory;
  write(directory.path() / "empty", "");
  fs::create_directory(directory.path() / "folder");
  const fs::path cache = directory.path() / "cache";
  EXPECT_THAT(packData({}, cache).error().text(), HasSubstr("no training text is named"));
  EXPECT_THAT(packData({directory.path() / "nothing"}, cache).error().text(),
              AllOf(HasSubstr("nothing: no such file"), HasSubstr("--data")));
  EXPECT_THAT(packData({directory.path() / "empty"}, cache).error().text(), HasSubstr("is empty"));
  EXPECT_THAT(packData({directory.path() / "folder"}, cache).error().text(), HasSubstr("holds no files"));
  EXPECT_THAT(packData({"/dev/null"}, cache).error().text(), HasSubstr("neither a file nor a folder"));
}

TEST(Probe, TellsWhereThingsGoAndWhatTheMachineIs) {
  const TemporaryDirectory directory;
  LocalHost host("b3");
  ::setenv("XDG_DATA_HOME", (directory.path() / "data").c_str(), 1);
  ::setenv("XDG_CACHE_HOME", (directory.path() / "cache").c_str(), 1);
  const auto facts = probe(host, kLimit);
  ::unsetenv("XDG_DATA_HOME");
  ::unsetenv("XDG_CACHE_HOME");
  ASSERT_TRUE(facts) << facts.error().text();
  EXPECT_EQ(facts->dataDirectory, directory.path() / "data" / "evenkeel");
  EXPECT_EQ(facts->cacheDirectory, directory.path() / "cache" / "evenkeel");
  EXPECT_FALSE(facts->architecture.empty());
  EXPECT_THAT(facts->libc, HasSubstr("glibc"));
  EXPECT_EQ(facts->unwritable, "");
  EXPECT_GT(facts->freeBytes, 0U);
  EXPECT_FALSE(fs::exists(directory.path() / "data"));  // a look changes nothing
}

TEST(Probe, RefusesANodeWithoutAHome) {
  FakeHost host("b3", [](const Command& command, std::stop_token) -> Result<Ending> {
    return FakeHost::reply(command, "data=/.local\ncache=\n");
  });
  EXPECT_THAT(probe(host, kLimit).error().text(), HasSubstr("b3: has no home directory"));
}

TEST(TryPrograms, ReturnsWhatTheWorkerPrints) {
  const TemporaryDirectory directory;
  twoPrograms(directory.path());
  for (const char* name : {"evenkeel-agent", "evenkeel-worker"}) fs::permissions(directory.path() / name, fs::perms::owner_all);
  LocalHost host("b3");
  const auto printed = tryPrograms(host, directory.path(), kLimit);
  ASSERT_TRUE(printed) << printed.error().text();
  EXPECT_EQ((*printed)["max_tp"], 1);
}

TEST(ExplainFailure, SaysInWordsWhatANodeLacks) {
  const auto said = [](const std::string& err, int status) {
    return explainFailure("b3", "evenkeel-worker", {.ending = {.exitStatus = status}, .err = err}).text();
  };
  EXPECT_THAT(
      said(
          "evenkeel-worker: error while loading shared libraries: libtorch.so.1.13: cannot open shared object file: No such file",
          127),
      HasSubstr("b3: lacks the library libtorch.so.1.13"));
  EXPECT_THAT(said("evenkeel-worker: /lib/libc.so.6: version `GLIBC_2.38' not found (required by evenkeel-worker)", 1),
              HasSubstr("too old a system for evenkeel-worker: it needs GLIBC_2.38"));
  EXPECT_THAT(said("sh: 1: evenkeel-worker: Exec format error", 126), HasSubstr("another architecture"));
  EXPECT_THAT(said("sh: 1: exec: evenkeel-worker: Permission denied", 126), HasSubstr("noexec"));
  EXPECT_THAT(said("illegal instruction", 132), AllOf(HasSubstr("exit status 132"), HasSubstr("illegal instruction")));
}

}  // namespace
}  // namespace evenkeel
