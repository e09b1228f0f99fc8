// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/words.h"
#include "tests/support/private_sshd.h"
#include "tests/support/processes.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {

/// Machines in namespaces of one test: each has its own network, processes, host name, home directory, SSH server on port 22 with
/// its own host key, and an address on a switch to which the test's thread (the workstation, 10.77.0.1) is plugged as well. Needs
/// root; see reasonToSkip(). The namespaces hang on processes that die with the test, however it ends: nothing is left behind.
class NodeRig {
 public:
  struct Options {
    int diskMegabytes = 0;        // of the home directory; 0: as large as the machine's
    bool takesPasswords = false;  // by password and by keyboard-interactive, no keys
    bool hidesLibraries = false;  // the machine has only what a bare Debian has: no LibTorch, no BLAS
  };

  /// Empty if it can work here.
  [[nodiscard]] static std::string reasonToSkip() {
    if (const std::string reason = PrivateSshd::reasonToSkip(); !reason.empty()) return reason;
    for (const char* program : {"/usr/bin/unshare", "/usr/bin/nsenter", "/usr/bin/setpriv", "/bin/mount"}) {
      if (!std::filesystem::exists(program)) return std::string(program) + " is missing";
    }
    if (!works("command -v ip")) return "ip is missing (Debian: iproute2)";
    if (!works("unshare --net --mount --uts --pid --fork --kill-child true")) return "this machine allows no namespaces";
    if (!works("unshare --net sh -c 'ip link add br0 type bridge && ip link add eth0 type veth peer name eth1'"))
      return "this kernel has no bridges or veths";
    return {};
  }
  /// Whether links can be given a bandwidth here.
  [[nodiscard]] static bool canShape() {
    return works(
        "unshare --net sh -c 'ip link add eth0 type veth peer name eth1 && tc qdisc add dev eth0 root tbf rate 100mbit burst "
        "64kb latency 50ms'");
  }

  explicit NodeRig(const std::vector<std::string>& names) : NodeRig(names, Options()) {}
  NodeRig(const std::vector<std::string>& names, const Options& options) : options_(options) {
    ownNetwork_ = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (::unshare(CLONE_NEWNET) != 0) return;
    works(
        "ip link set lo up; ip link add br0 type bridge; ip link set br0 up; ip link add ws0 type veth peer name port0; ip link "
        "set port0 master br0 up; "
        "ip addr add 10.77.0.1/24 dev ws0; ip link set ws0 up");
    PrivateSshd::makeKey(identity());
    for (const std::string& name : names) add(name);
    writeKnownHosts();
  }
  ~NodeRig() {
    for (const Node& node : nodes_) {
      if (node.starter <= 0) continue;
      ::kill(node.starter, SIGKILL);  // its init, and with that all of its processes, go with it
      ::waitpid(node.starter, nullptr, 0);
      awaitGone(node);
    }
    ::setns(ownNetwork_, CLONE_NEWNET);
    ::close(ownNetwork_);
  }
  NodeRig(const NodeRig&) = delete;
  NodeRig& operator=(const NodeRig&) = delete;

  [[nodiscard]] static std::string address(std::size_t node) { return "10.77.0." + std::to_string(11 + node); }
  [[nodiscard]] std::string identity() const { return (folder_.path() / "client-key").string(); }
  [[nodiscard]] std::string knownHosts() const { return (folder_.path() / "known_hosts").string(); }
  /// The node's home directory as this process sees it; the node itself sees it as /root.
  [[nodiscard]] std::filesystem::path home(std::size_t node) const {
    if (options_.diskMegabytes == 0) return directory(node) / "root";
    return std::filesystem::path("/proc") / std::to_string(nodes_[node].init) / "root/root";
  }
  /// A folder that comes first in the PATH of what the node is told to run.
  [[nodiscard]] std::filesystem::path tools(std::size_t node) const { return directory(node) / "tools"; }
  void addTool(std::size_t node, const std::string& name, const std::string& script) const {
    std::ofstream(tools(node) / name) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(tools(node) / name, std::filesystem::perms::owner_all);
  }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  static constexpr const char* kPassword = "tr0ub4dor-and-3";  // of root, where passwords are taken

  /// Runs a shell line on the node; its exit status.
  int on(std::size_t node, const std::string& line) const {
    return run("nsenter -t " + std::to_string(nodes_[node].init) + " -n -m -u -p sh -c '" + line + "'");
  }

  /// Processes of the node, as this process numbers them; those of the agent and the workers only, or all but its init.
  [[nodiscard]] std::vector<int> processes(std::size_t node, bool onlyOurs = true) const {
    std::vector<int> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      const auto pid = parseNumber<int>(entry.path().filename().string());
      if (!pid || *pid == nodes_[node].init || spaceOf(*pid) != nodes_[node].space) continue;
      const std::string command = procText(*pid, "cmdline");
      if (command.empty()) continue;  // a zombie
      const bool isOurs =
          command.find("evenkeel-agent") != std::string::npos || command.find("evenkeel-worker") != std::string::npos;
      if (!onlyOurs || isOurs) found.push_back(*pid);
    }
    return found;
  }

  // ---- what can go wrong
  void unplugWorkstation(bool unplugged) const { run(std::string("ip link set port0 ") + (unplugged ? "down" : "up")); }
  void unplug(std::size_t node, bool unplugged) const { run("ip link set " + port(node) + (unplugged ? " down" : " up")); }
  /// Ends the node's connections as if its SSH server had crashed; what runs behind them lives on.
  void cutConnections(std::size_t node) const {
    for (const int pid : processes(node, false)) {
      if (procText(pid, "cmdline").starts_with("sshd: root")) ::kill(pid, SIGKILL);
    }
  }
  /// From now on its port is closed; or open again.
  void refuse(std::size_t node, bool refuses) const {
    if (!refuses) return startServer(node);
    on(node, "kill $(cat " + (directory(node) / "sshd.pid").string() + ")");
    awaitServer(node, false);
  }
  /// Stops all of its processes in their tracks, connections included; or lets them go on.
  void freeze(std::size_t node, bool frozen) const {
    for (const int pid : processes(node, false)) ::kill(pid, frozen ? SIGSTOP : SIGCONT);
  }
  /// Both directions of its link: "100mbit"; needs canShape().
  void shape(std::size_t node, const std::string& rate) const {
    const std::string shaped = " root tbf rate " + rate + " burst 256kb latency 400ms";
    run("tc qdisc replace dev " + port(node) + shaped);
    on(node, "tc qdisc replace dev eth0" + shaped);
  }
  /// Leaves no byte free; needs Options::diskMegabytes.
  void fillDisk(std::size_t node) const { on(node, "cat /dev/zero > /root/filler 2>/dev/null; sync"); }
  void emptyDisk(std::size_t node) const { std::filesystem::remove(home(node) / "filler"); }
  void makeHomeReadOnly(std::size_t node) const { on(node, "mount -o remount,bind,ro /root"); }
  void makeNoisy(std::size_t node) const {
    std::ofstream(home(node) / ".bashrc") << "echo Welcome to the machine\necho 'quota exceeded' >&2\n";
  }
  void changeHostKey(std::size_t node) const {
    std::filesystem::remove(directory(node) / "host-key");
    std::filesystem::remove(directory(node) / "host-key.pub");
    PrivateSshd::makeKey((directory(node) / "host-key").string());
    refuse(node, true);
    startServer(node);
  }
  /// Believes all the keys that the nodes have now.
  void writeKnownHosts() const {
    std::ofstream known(knownHosts());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      std::ifstream publicKey(directory(i) / "host-key.pub");
      std::string type, key;
      publicKey >> type >> key;
      known << address(i) << " " << type << " " << key << "\n";
    }
  }

  /// Waits until a file of a node (home(node) / ...) holds the text; false if it does not within the limit.
  [[nodiscard]] static bool awaitText(const std::filesystem::path& file, const std::string& text,
                                      std::chrono::seconds limit = std::chrono::seconds(60)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    const int changes = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    bool isThere = false;
    while (!isThere && std::chrono::steady_clock::now() < end) {
      ::inotify_add_watch(changes, file.c_str(), IN_MODIFY);
      std::ifstream stream(file);
      for (std::string line; !isThere && std::getline(stream, line);) isThere = line.find(text) != std::string::npos;
      if (isThere) break;
      pollfd change{changes, POLLIN, 0};
      ::poll(&change, 1, 200);  // the file itself may not be there yet
      std::array<char, 4096> events{};
      while (::read(changes, events.data(), events.size()) > 0) {
      }
    }
    ::close(changes);
    return isThere;
  }

 private:
  struct Node {
    std::string name;
    pid_t starter = -1;  // unshare: ours to reap
    int init = -1;       // the node's process 1, as we number it
    std::string space;   // of its processes
  };

  static int run(const std::string& line) {
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static bool works(const std::string& line) { return run("{ " + line + "; } >/dev/null 2>&1") == 0; }
  static std::string spaceOf(int pid) {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/ns/pid", ignored).string();
  }
  [[nodiscard]] std::filesystem::path directory(std::size_t node) const { return folder_.path() / nodes_[node].name; }
  static std::string port(std::size_t node) { return "port" + std::to_string(node + 1); }
  void startServer(std::size_t node) const {
    on(node,
       "exec /usr/sbin/sshd -f " + (directory(node) / "sshd_config").string() + " -E " + (directory(node) / "sshd.log").string());
    awaitServer(node, true);
  }
  /// The server writes its pid once it listens, and removes that file when it ends.
  void awaitServer(std::size_t node, bool runs) const {
    for (int i = 0; i < 2000 && std::filesystem::exists(directory(node) / "sshd.pid") != runs; ++i) ::poll(nullptr, 0, 5);
  }

  void add(const std::string& name) {
    nodes_.push_back({.name = name});
    const std::size_t node = nodes_.size() - 1;
    const std::filesystem::path place = directory(node);
    std::filesystem::create_directories(place / "root");
    std::filesystem::create_directories(place / "tools");
    std::filesystem::permissions(place / "root", std::filesystem::perms::owner_all);
    PrivateSshd::makeKey((place / "host-key").string());
    std::filesystem::copy_file(identity() + ".pub", place / "authorized_keys");
    writeConfiguration(place);
    start(nodes_.back(), place);
    const std::string eth = "ip addr add " + address(node) + "/24 dev eth0; ip link set eth0 up";
    run("ip link add " + port(node) + " type veth peer name eth0 netns " + std::to_string(nodes_.back().init) +
        " && ip link set " + port(node) + " master br0 up");
    on(node, eth);
    startServer(node);
  }

  void writeConfiguration(const std::filesystem::path& place) const {
    std::ofstream config(place / "sshd_config");
    config << "HostKey " << (place / "host-key").string() << "\nAuthorizedKeysFile " << (place / "authorized_keys").string()
           << "\nPidFile " << (place / "sshd.pid").string()
           << "\nStrictModes no\nUseDNS no\nPermitRootLogin yes\nMaxSessions 20\nMaxStartups 200\nLogLevel VERBOSE\n"
           << "SetEnv PATH=" << (place / "tools").string() << ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n";
    if (options_.takesPasswords)
      config << "UsePAM yes\nPubkeyAuthentication no\nPasswordAuthentication yes\nKbdInteractiveAuthentication yes\n";
    else config << "UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n";
    std::ofstream script(place / "init.sh");
    script << "read -r outer _ < /proc/self/stat\n"  // this /proc still is that of the machine around us
           << "set -e\nmount --make-rprivate /\nmount -t proc proc /proc\nhostname " << place.filename().string()
           << "\nip link set lo up\nmkdir -p /run/sshd\n";
    if (options_.diskMegabytes > 0) script << "mount -t tmpfs -o mode=700,size=" << options_.diskMegabytes << "m home /root\n";
    else script << "mount --bind " << (place / "root").string() << " /root\n";
    if (options_.takesPasswords) {
      script << "{ echo \"root:$(openssl passwd -6 " << kPassword << "):19000:0:99999:7:::\"; grep -v '^root:' /etc/shadow; } > "
             << (place / "shadow").string() << "\nmount --bind " << (place / "shadow").string() << " /etc/shadow\n"
             << "printf 'auth required pam_unix.so\\naccount required pam_unix.so\\nsession optional pam_permit.so\\n' > "
             << (place / "pam").string() << "\nmount --bind " << (place / "pam").string() << " /etc/pam.d/sshd\n";
    }
    if (options_.hidesLibraries) {
      // An empty file over each is what a machine without the package shows to a loader: nothing that it could load.
      script << "touch " << (place / "nothing").string()
             << "\nfor f in /usr/lib/*/libtorch*.so* /usr/lib/*/libc10*.so* /usr/lib/*/libblas.so* /usr/lib/*/liblapack.so* "
             << "/usr/lib/*/blas/* /usr/lib/*/lapack/* /usr/lib/*/openblas*/*.so* /usr/lib/*/libopenblas*.so* "
                "/usr/lib/*/libgloo*.so* /usr/lib/*/libprotobuf.so*; do\n"
             << "  [ -f \"$f\" ] && mount --bind " << (place / "nothing").string() << " \"$f\" || :\ndone\n";
    }
    script << "echo \"$outer\"\nwhile :; do sleep 3600 & wait $!; done\n";
  }

  static void start(Node& node, const std::filesystem::path& place) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    std::vector<std::string> argv{"setpriv", "--pdeathsig", "KILL",   "unshare",      "--net", "--mount",
                                  "--uts",   "--pid",       "--fork", "--kill-child", "sh",    (place / "init.sh").string()};
    std::vector<char*> pointers;
    for (std::string& argument : argv) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    ::posix_spawnp(&node.starter, "setpriv", &actions, nullptr, pointers.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    std::string text;  // one line; unshare keeps its end open
    for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) text += c;
    ::close(ends[0]);
    node.init = parseNumber<int>(text).value_or(-1);
    node.space = spaceOf(node.init);
  }

  /// Until its last process is gone: the namespaces go with it.
  static void awaitGone(const Node& node) {
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, node.init, 0));
    if (handle < 0) return;
    pollfd gone{handle, POLLIN, 0};
    ::poll(&gone, 1, 10'000);
    ::close(handle);
  }

  TemporaryDirectory folder_{TemporaryDirectory::Name::Plain};
  Options options_;
  int ownNetwork_ = -1;
  std::vector<Node> nodes_;
};

}  // namespace evenkeel
