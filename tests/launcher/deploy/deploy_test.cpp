// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <random>
#include <thread>

#include "core/base/sha256.h"
#include "launcher/deploy/bundle.h"
#include "launcher/deploy/data.h"
#include "launcher/deploy/elf.h"
#include "launcher/deploy/packed_file.h"
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

std::string randomBytes(std::size_t count) {
  std::mt19937_64 random(5);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// skypilot #1600: hours of uploads that begin anew.
TEST(CopyFiles, GoesOnWhereACutConnectionHasStopped) {
  const TemporaryDirectory directory;
  twoPrograms(directory.path() / "programs");
  write(directory.path() / "programs" / "evenkeel-worker", randomBytes(3'000'000));
  const Bundle bundle = *programBundle(directory.path() / "programs");
  const std::string cache = directory.path() / "cache";
  LocalHost host("b3");
  std::stop_source stop;
  std::uint64_t first = 0, total = 0, done = 0;
  const auto cut = copyFiles(
      host, cache, bundle, bundle.files, {},
      [&](std::uint64_t d, std::uint64_t) {
        if (d > 2'000'000) first = d, stop.request_stop();
      },
      stop.get_token());
  ASSERT_FALSE(cut);
  ASSERT_GT(first, 2'000'000U);
  // a local shell is killed with its copy, so that only its age tells that the part is nobody's
  for (const auto& entry : fs::directory_iterator(fs::path(cache) / "files"))
    fs::last_write_time(entry, fs::file_time_type::clock::now() - 2min);
  ASSERT_TRUE(copyFiles(host, cache, bundle, *missingFiles(host, cache, bundle, kLimit), {},
                        [&](std::uint64_t d, std::uint64_t t) { done = d, total = t; }));
  EXPECT_LT(total, 3'000'000U - 1'000'000U) << "what had arrived was sent again";
  EXPECT_EQ(done, total);
  EXPECT_THAT(*missingFiles(host, cache, bundle, kLimit), IsEmpty());
}

// Nodes of a cluster often share a home directory.
TEST(CopyFiles, SeveralAtOnceIntoOneStoreDoNotMeet) {
  const TemporaryDirectory directory;
  twoPrograms(directory.path() / "programs");
  write(directory.path() / "programs" / "evenkeel-worker", randomBytes(3'000'000));
  const Bundle bundle = *programBundle(directory.path() / "programs");
  const std::string cache = directory.path() / "cache";
  std::vector<std::string> errors(6);
  {
    std::vector<std::jthread> threads;
    for (std::string& error : errors) {
      threads.emplace_back([&] {
        LocalHost host("b3");
        if (const auto put = copyFiles(host, cache, bundle, bundle.files); !put) error = put.error().text();
      });
    }
  }
  EXPECT_THAT(errors, ::testing::Each(""));
  LocalHost host("b3");
  EXPECT_THAT(*missingFiles(host, cache, bundle, kLimit), IsEmpty());
  for (const auto& entry : fs::directory_iterator(fs::path(cache) / "files"))
    EXPECT_EQ(entry.path().filename().string().size(), 64U) << entry.path();
}

TEST(CopyFiles, SendsOfANewVersionOnlyWhatHasChanged) {
  const TemporaryDirectory directory;
  const Bundle old = twoPrograms(directory.path() / "programs");
  const std::string cache = directory.path() / "cache";
  LocalHost host("b3");
  ASSERT_TRUE(copyFiles(host, cache, old, old.files));
  write(directory.path() / "programs" / "evenkeel-agent", "a new agent\n");
  const Bundle fresh = *programBundle(directory.path() / "programs");
  ASSERT_NE(fresh.directory, old.directory);
  const auto missing = *missingFiles(host, cache, fresh, kLimit);
  ASSERT_THAT(missing, SizeIs(2));
  EXPECT_EQ(bytesOf(missing), std::string("a new agent\n").size());
  ASSERT_TRUE(copyFiles(host, cache, fresh, missing));
  EXPECT_THAT(*missingFiles(host, cache, fresh, kLimit), IsEmpty());
  EXPECT_THAT(*missingFiles(host, cache, old, kLimit), IsEmpty());
}

TEST(CopyFiles, PacksWhatTravels) {
  const TemporaryDirectory directory;
  twoPrograms(directory.path() / "programs");
  write(directory.path() / "programs" / "evenkeel-worker", std::string(1'000'000, 'x'));
  const Bundle bundle = *programBundle(directory.path() / "programs");
  LocalHost host("b3");
  for (const std::string& packer : packersHere()) {
    const std::string cache = directory.path() / packer;
    std::uint64_t total = 0;
    ASSERT_TRUE(copyFiles(host, cache, bundle, bundle.files, {.packed = directory.path() / "packed", .packer = packer},
                          [&](std::uint64_t, std::uint64_t t) { total = t; }));
    EXPECT_LT(total, 20'000U) << packer;
    EXPECT_THAT(*missingFiles(host, cache, bundle, kLimit), IsEmpty());
  }
}

TEST(CopyFiles, SaysThatADiskIsFull) {
  const TemporaryDirectory directory;
  const Bundle bundle = twoPrograms(directory.path() / "programs");
  LocalHost host("b3");
  EXPECT_THAT(copyFiles(host, "/proc/nowhere", bundle, bundle.files).error().text(),
              HasSubstr("cannot be put into /proc/nowhere"));
}

TEST(SlimBundle, HoldsTheLibrariesOfWhichSymbolsAreUsedAndNamesTheCLibrary) {
  const TemporaryDirectory directory;
  const auto bundle = slimBundle(EVENKEEL_TEST_PROGRAMS, directory.path());
  ASSERT_TRUE(bundle) << bundle.error().text();
  std::vector<std::string> names;
  for (const BundleFile& file : bundle->files) names.push_back(file.name);
  EXPECT_THAT(names, ::testing::IsSupersetOf({"evenkeel-agent", "evenkeel-worker", "lib/libstdc++.so.6"}));
  for (const std::string& name : names)
    EXPECT_EQ(name.find("libc.so"), std::string::npos) << "the C library is the machine's own";
  EXPECT_GE(compareVersions(bundle->glibc, "2.2.5"), 0);
  EXPECT_LE(compareVersions(bundle->glibc, gnu_get_libc_version()), 0);
  EXPECT_EQ(slimBundle(EVENKEEL_TEST_PROGRAMS, directory.path())->directory, bundle->directory);
}

TEST(CompareVersions, ComparesNumbersNotLetters) {
  EXPECT_LT(compareVersions("2.9", "2.36"), 0);
  EXPECT_EQ(compareVersions("2.36", "2.36"), 0);
  EXPECT_GT(compareVersions("2.36.1", "2.36"), 0);
  EXPECT_LT(compareVersions("", "2.2.5"), 0);
}

// ELF files come from anywhere: whatever their tables say, the end is an answer.
TEST(Elf, EndsWithAnAnswerForEveryMutation) {
  const TemporaryDirectory directory;
  const std::string whole = *readFile(EVENKEEL_TEST_PROGRAMS "/evenkeel-agent");
  std::mt19937_64 random(3);
  int read = 0;
  for (int round = 0; round < 60; ++round) {
    std::string bytes = whole.substr(0, round % 3 == 0 ? random() % whole.size() : whole.size());
    // the header, and the table of sections at the end: what everything else is found by
    for (int change = 0; change < 4 && bytes.size() > 4096; ++change) {
      const std::size_t at = round % 2 == 0 ? random() % 64 : bytes.size() - 1 - random() % 2048;
      bytes[at] = static_cast<char>(random());
    }
    const auto elf = readElf(directory.file("odd", bytes));
    read += elf ? 1 : 0;
    if (elf) (void)copyWithoutNeeded(directory.path() / "odd", directory.path() / "copy", {"libfmt.so.9"});
  }
  EXPECT_GT(read, 0);
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
              AllOf(HasSubstr("nothing: no such file"), HasSubstr("name text files")));
  EXPECT_THAT(packData({directory.path() / "empty"}, cache).error().text(), HasSubstr("is empty"));
  EXPECT_THAT(packData({directory.path() / "folder"}, cache).error().text(), HasSubstr("holds no files"));
  EXPECT_THAT(packData({"/dev/null"}, cache).error().text(), HasSubstr("neither a file nor a folder"));
}

TEST(PackData, JoinsTokensOfOneType) {
  const TemporaryDirectory directory;
  const auto pair = [&](const std::string& name, TokenType type, const std::vector<std::int32_t>& tokens) {
    std::string bytes;
    for (const std::int32_t token : tokens) {
      for (int b = 0; b < bytesOf(type); ++b) bytes += static_cast<char>(static_cast<std::uint32_t>(token) >> (8 * b) & 0xffU);
    }
    write(directory.path() / (name + ".bin"), bytes);
    write(directory.path() / (name + ".idx"), tokenIndex(type, {static_cast<std::int32_t>(tokens.size())}));
    return (directory.path() / name).string();
  };
  const std::string a = pair("a", TokenType::Uint16, {5, 50'256, 7}), b = pair("b", TokenType::Uint16, {9}), c = pair("c", TokenType::Int32, {1, -2});
  const fs::path cache = directory.path() / "cache";
  const auto packed = packData({a, b + ".bin"}, cache, {b + ".idx"});
  ASSERT_TRUE(packed) << packed.error().text();
  EXPECT_FALSE(packed->isText);
  EXPECT_EQ(packed->token, TokenType::Uint16);
  EXPECT_EQ(packed->trainBytes, 8U);
  EXPECT_EQ(packed->bytes, 10U);
  EXPECT_EQ(*readFile(packed->file), *readFile(a + ".bin") + *readFile(b + ".bin") + *readFile(b + ".bin"));
  EXPECT_THAT(objectionTo(*packed, 50'256)->text(), HasSubstr("holds token 50256, outside of the model's vocabulary of 50256"));
  EXPECT_FALSE(objectionTo(*packed, 50'257));
  EXPECT_THAT(objectionTo(*packData({c}, cache), 1000)->text(), HasSubstr("holds token -2"));
  EXPECT_THAT(packData({a, c}, cache).error().text(), HasSubstr("holds tokens of type int32, those of"));
  EXPECT_THAT(packData({a}, cache, {c}).error().text(), HasSubstr("data of another kind"));
  write(directory.path() / "text", "words");
  EXPECT_THAT(packData({a, directory.path() / "text"}, cache).error().text(), HasSubstr("is text, and"));
  write(directory.path() / "a.bin", "odd");
  EXPECT_THAT(packData({a}, cache).error().text(), HasSubstr("has 3 bytes, but"));
}

// A text with bytes that a small vocabulary lacks is refused before anything starts.
TEST(PackData, KnowsWhetherAModelCanTakeIt) {
  const TemporaryDirectory directory;
  write(directory.path() / "text", "gr\xc3\xb6\xc3\x9f" "e");
  const auto packed = packData({directory.path() / "text"}, directory.path() / "cache");
  ASSERT_TRUE(packed);
  EXPECT_THAT(objectionTo(*packed, 128)->text(), HasSubstr("holds byte 195, outside of the model's vocabulary of 128"));
  EXPECT_FALSE(objectionTo(*packed, 256));
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
