// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of the launcher on emulated nodes (root only): 64 connections at once, and what an upload to four nodes makes of shaped
// links.
//   bench_launcher connections | upload [megabits per second]
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "core/base/words.h"
#include "launcher/deploy/bundle.h"
#include "launcher/deploy/packed_file.h"
#include "launcher/ssh/ssh_host.h"
#include "tests/support/node_rig.h"

namespace evenkeel {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// User and system time of this process, in seconds.
double ownCpu() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Result<std::unique_ptr<Host>> connect(const NodeRig& rig, std::size_t node) {
  return connectSsh("n" + std::to_string(node),
                    {.host = NodeRig::address(node), .user = "root", .identity = rig.identity(), .knownHosts = rig.knownHosts()},
                    std::chrono::seconds(60));
}

int connections() {
  const NodeRig rig({"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"});
  std::vector<std::unique_ptr<Host>> hosts(64);
  std::vector<double> up(hosts.size());
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      threads.emplace_back([&, i] {
        auto host = connect(rig, i % rig.size());
        if (!host) return fmt::print(stderr, "{}\n", host.error().text());
        hosts[i] = *std::move(host);
        up[i] = secondsSince(begin);
      });
    }
  }
  const auto alive = std::ranges::count_if(hosts, [](const auto& host) { return host != nullptr; });
  fmt::print(
      "64 connections at once to 8 hosts: {} up, the last after {:.2f} s (own CPU {:.2f} s; the servers run on the same cores)\n",
      alive, *std::ranges::max_element(up), ownCpu());
  return alive == 64 ? 0 : 1;
}

int upload(int megabits) {
  NodeRig rig({"n0", "n1", "n2", "n3"});
  const TemporaryDirectory cache;
  const auto bundle = slimBundle(EVENKEEL_BIN_DIR, cache.path());
  if (!bundle) return fmt::print(stderr, "{}\n", bundle.error().text()), 1;
  const std::string packer = packersHere().front();
  std::uint64_t packed = 0;
  for (const BundleFile& file : bundle->files) {
    const auto made = packedFile(file, cache.path() / "packed", packer);
    if (!made) return fmt::print(stderr, "{}\n", made.error().text()), 1;
    packed += std::filesystem::file_size(*made);
  }
  fmt::print("bundle: {} files, {:.1f} MB, {:.1f} MB packed by {}, needs glibc {}\n", bundle->files.size(),
             static_cast<double>(bytesOf(bundle->files)) / 1e6, static_cast<double>(packed) / 1e6, packer, bundle->glibc);
  for (std::size_t i = 0; i < rig.size(); ++i) rig.shape(i, std::to_string(megabits) + "mbit");
  std::vector<double> seconds(rig.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < rig.size(); ++i) {
      threads.emplace_back([&, i] {
        auto host = connect(rig, i);
        if (!host) return fmt::print(stderr, "{}\n", host.error().text());
        const auto begin = Clock::now();
        double sent = 0;  // when the last byte had gone out
        const auto put =
            copyFiles(**host, "/root/cache", *bundle, bundle->files, {.packed = cache.path() / "packed", .packer = packer},
                      [&](std::uint64_t, std::uint64_t) { sent = secondsSince(begin); });
        if (!put) return fmt::print(stderr, "{}\n", put.error().text());
        seconds[i] = sent;
        fmt::print("n{}: sent after {:.2f} s, unpacked and in place after {:.2f} s\n", i, sent, secondsSince(begin));
      });
    }
  }
  const double slowest = *std::ranges::max_element(seconds);
  fmt::print("{} Mbit/s links: {:.1f} Mbit/s of payload on the slowest of four, {:.0f} % of the link\n", megabits,
             static_cast<double>(packed) * 8e-6 / slowest, 100 * static_cast<double>(packed) * 8e-6 / slowest / megabits);
  return 0;
}

}  // namespace
}  // namespace evenkeel

int main(int argc, char** argv) {
  using namespace evenkeel;
  if (const std::string reason = NodeRig::reasonToSkip(); !reason.empty()) {
    fmt::print(stderr, "{}\n", reason);
    return 1;
  }
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "connections") return connections();
  if (what == "upload") return upload(argc > 2 ? parseNumber<int>(argv[2]).value_or(50) : 50);
  fmt::print(stderr, "usage: bench_launcher connections | upload [megabits per second]\n");
  return 2;
}
