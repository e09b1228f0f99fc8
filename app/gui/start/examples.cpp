// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/start/examples.h"

#include <QCoreApplication>

namespace evenkeel::gui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("Examples", text); }

Project projectOf(const char* cluster, const char* model, std::int64_t globalBatch) {
  Project project;
  project.cluster = *parseClusterShorthand(cluster);
  project.model = *modelFromArgument(model);
  project.training.globalBatch = globalBatch;
  return project;
}

/// Joins the nodes [first, last) to a switch of their own.
void addSite(Cluster& cluster, const char* name, std::size_t first, std::size_t last, double gbsEach) {
  Switch site{.name = name, .bandwidth = fromGbs(gbsEach), .latency = fromMicroseconds(5)};
  for (std::size_t n = first; n < last; ++n) site.members.push_back(cluster.nodes[n].name);
  cluster.switches.push_back(std::move(site));
}

Project twoRacks() {
  Project project = projectOf("1x8:A100-80-SXM,1x8:V100-32-SXM2", "gpt3-6.7b", 128);
  addSite(project.cluster, "rack-a", 0, 1, 25);
  addSite(project.cluster, "rack-b", 1, 2, 12.5);
  project.cluster.switches.push_back(
      {.name = "spine", .members = {"rack-a", "rack-b"}, .bandwidth = fromGbs(12.5), .latency = fromMicroseconds(10)});
  return project;
}

Project threeSites() {
  Project project = projectOf("4x8:A100-80-SXM,2x8:V100-32-SXM2,2x8:A100-40-PCIe", "gpt3-13b", 512);
  addSite(project.cluster, "north", 0, 4, 25);
  addSite(project.cluster, "south", 4, 6, 12.5);
  addSite(project.cluster, "west", 6, 8, 12.5);
  project.cluster.switches.push_back({.name = "wide-area",
                                      .members = {"north", "south", "west"},
                                      .bandwidth = fromGbs(1.25),
                                      .latency = fromMicroseconds(2000)});
  return project;
}

}  // namespace

std::vector<Example> examples() {
  return {{tr("8 A100 and 8 V100 in two racks"), tr("GPT-3 6.7B; the racks meet at a spine of 12.5 GB/s"), twoRacks()},
          {tr("64 GPUs of three types at three sites"), tr("GPT-3 13B; the sites are 1.25 GB/s and 2 ms apart"), threeSites()},
          {tr("RTX 4090, RTX 3090 and T4 in an office"), tr("GPT-3 1.3B on what stands under the desks"),
           projectOf("1x2:RTX4090,1x2:RTX3090,1x4:T4", "gpt3-1.3b", 64)},
          {tr("This computer, to learn"), tr("tiny-gpt on two unlike pairs of CPU cores; it really trains"),
           projectOf("1x2:cpu@0.5,1x2:cpu@0.25", "tiny-gpt", 26)}};
}

}  // namespace evenkeel::gui
