// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/node_rig.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {

/// A Slurm cluster inside one machine of a NodeRig, which is its login node too: munged, slurmctld, and a slurmd for each name, all sharing
/// the machine's home directory as the nodes of a cluster do. It lives and dies with the machine. Nobody needs cgroups or systemd.
class SlurmRig {
 public:
  /// Empty if it can work here.
  [[nodiscard]] static std::string reasonToSkip() {
    if (const std::string reason = NodeRig::reasonToSkip(); !reason.empty()) return reason;
    for (const char* program : {"/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/bin/sbatch"}) {
      if (!std::filesystem::exists(program))
        return std::string(program) + " is missing (Debian: slurmctld slurmd slurm-client munge)";
    }
    return {};
  }

  /// Each node has 8 CPUs, whatever the machine has. `more` are lines of slurm.conf.
  SlurmRig(const NodeRig& rig, const std::vector<std::string>& names, const std::string& more = "") : rig_(rig) {
    const std::string place = folder_.path().string();
    std::filesystem::create_directories(folder_.path() / "etc");
    std::ofstream(folder_.path() / "munge.key") << std::string(1024, 'k');
    std::ofstream config(folder_.path() / "etc" / "slurm.conf");
    config << "ClusterName=rig\nSlurmctldHost=" << kLogin << "(" << NodeRig::address(0) << ")\nSlurmUser=root\nSlurmdUser=root\n"
           << "AuthType=auth/munge\nAuthInfo=socket=" << place << "/munge.socket\n"
           << "SlurmctldPidFile=" << place << "/slurmctld.pid\nSlurmdPidFile=" << place << "/slurmd-%n.pid\nSlurmdSpoolDir=" << place
           << "/spool-%n\nStateSaveLocation=" << place << "/state\nSlurmctldLogFile=" << place << "/slurmctld.log\nSlurmdLogFile=" << place
           << "/slurmd-%n.log\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\nSelectType=select/cons_tres\n"
           << "SelectTypeParameters=CR_Core\nSchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1\n"
           << "SlurmdParameters=config_overrides\nReturnToService=2\nKillWait=5\n"
           << more;
    int port = 17001;
    for (const std::string& name : names)
      config << "NodeName=" << name << " NodeHostname=" << kLogin << " NodeAddr=" << NodeRig::address(0) << " Port=" << port++
             << " CPUs=8 RealMemory=1000\n";
    config << "PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
    config.close();
    std::string daemons = "chmod 0400 " + place + "/munge.key; mkdir " + place + "/state; mount --bind " + place +
                          "/etc /etc/slurm && munged --force --num-threads=2 --key-file=" + place + "/munge.key --socket=" + place +
                          "/munge.socket --pid-file=" + place + "/munged.pid --log-file=" + place + "/munged.log --seed-file=" + place +
                          "/munged.seed >/dev/null 2>&1 && /usr/sbin/slurmctld";
    for (const std::string& name : names) daemons += " && /usr/sbin/slurmd -N " + name;
    isUp_ = rig_.on(0, daemons) == 0 &&
            rig_.on(0, "for i in $(seq 200); do [ \"$(sinfo -h -t idle -o %D)\" = " + std::to_string(names.size()) +
                           " ] && exit 0; sleep 0.1; done; exit 1") == 0;
  }
  SlurmRig(const SlurmRig&) = delete;
  SlurmRig& operator=(const SlurmRig&) = delete;

  static constexpr const char* kLogin = "login";  // the name of the NodeRig's machine
  [[nodiscard]] bool isUp() const { return isUp_; }
  /// For messages: what the controller wrote.
  [[nodiscard]] std::filesystem::path log() const { return folder_.path() / "slurmctld.log"; }
  /// For SLURM_CONF of a workstation that is a login node itself.
  [[nodiscard]] std::string configuration() const { return (folder_.path() / "etc" / "slurm.conf").string(); }

  /// A job that holds all of the named number of nodes until it is cancelled.
  void occupy(std::size_t nodes) const {
    rig_.on(0, "cd /root && sbatch -Q --exclusive --nodes=" + std::to_string(nodes) + " --job-name=neighbour --wrap \"exec sleep 1000\" >/dev/null");
  }
  /// Jobs that are not over, of this name or any.
  [[nodiscard]] int jobs(const std::string& name = "") const {
    return rig_.on(0, "exit $(squeue -h -o %i" + (name.empty() ? std::string() : " -n " + name) + " | wc -l)");
  }

 private:
  const NodeRig& rig_;
  TemporaryDirectory folder_{TemporaryDirectory::Name::Plain};
  bool isUp_ = false;
};

}  // namespace evenkeel
