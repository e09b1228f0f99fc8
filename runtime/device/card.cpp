// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/card.h"

#include <fmt/format.h>

#include <sstream>

#include "core/plan/features.h"

namespace evenkeel {
namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";
constexpr const char* kOrder = "CUDA_DEVICE_ORDER";

std::vector<std::string> listIn(const std::string& text) {
  std::vector<std::string> list;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) list.push_back(word);
  return list;
}

}  // namespace

Result<CardVariables> cardVariables(const Plan& plan, DeviceId id, const Variables& environment) {
  const Device& device = plan.cluster.nodes[static_cast<std::size_t>(id.node)].devices[static_cast<std::size_t>(id.index)];
  CardVariables variables{.visible = device.uuid, .order = environment(kOrder).value_or("PCI_BUS_ID")};
  if (!device.uuid.empty()) return variables;
  const auto visible = environment(kVisible);
  if (!visible) {
    variables.visible = std::to_string(id.index);
    return variables;
  }
  const std::vector<std::string> list = listIn(*visible);
  if (static_cast<std::size_t>(id.index) >= list.size()) {
    return invalidInput(plan.cluster.nameOf(id), fmt::format("there is no card {}: {} is \"{}\"", id.index, kVisible, *visible),
                        "ask for as many cards as the plan has there, or name them by uuid in the cluster");
  }
  variables.visible = list[static_cast<std::size_t>(id.index)];
  return variables;
}

std::vector<bool> ranksOnCards(const Plan& plan) {
  std::vector<bool> cards;
  for (const DeviceId device : plan.usedDevices()) cards.push_back(isCard(plan.cluster.typeOf(device)));
  return cards;
}

}  // namespace evenkeel
