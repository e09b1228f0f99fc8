// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/deploy/pairs.h"

#include <fmt/format.h>

#include <thread>

#include "core/base/json.h"

namespace evenkeel {
namespace {

std::string placeOf(const PairNode& node, int port) {
  return node.address.find(':') == std::string::npos ? fmt::format("{}:{}", node.address, port)
                                                     : fmt::format("[{}]:{}", node.address, port);
}

template <class Work>
void onAll(std::size_t count, const Work& work) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
}

/// What the agent printed on success.
Result<Json> ask(const PairNode& node, std::vector<std::string> argv, std::chrono::milliseconds deadline,
                 const std::stop_token& stop) {
  argv.insert(argv.begin(), node.agent);
  auto ran = run(*node.host, {.argv = std::move(argv), .deadline = deadline}, stop);
  if (!ran) return std::move(ran).error();
  if (!ran->ending.wasGood())
    return failed(node.name, fmt::format("{} ({})", ran->err.substr(0, ran->err.find('\n')), ran->ending.text()));
  return parseJson(ran->out, node.name + ": evenkeel-agent");
}

/// A listener on each node; they end with this.
class Listeners {
 public:
  Listeners(const std::vector<PairNode>& nodes, std::chrono::milliseconds deadline, const std::stop_token& stop)
      : nodes_(nodes), deadline_(deadline), ports_(nodes.size()), errors_(nodes.size()) {
    onAll(nodes.size(), [&](std::size_t i) {
      const auto said = ask(nodes_[i], {"listen", "--address", nodes_[i].address}, deadline_, stop);
      if (said) ports_[i] = said->value("port", 0);
      else errors_[i] = said.error().what;
    });
  }
  ~Listeners() {
    onAll(nodes_.size(), [&](std::size_t i) {
      if (ports_[i] != 0) [[maybe_unused]]
        const auto ended = ask(nodes_[i], {"reach", "--to", place(i), "--end"}, deadline_, {});  // else it ends by itself
    });
  }
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;
  [[nodiscard]] bool runs(std::size_t node) const { return ports_[node] != 0; }
  [[nodiscard]] const std::string& errorOf(std::size_t node) const { return errors_[node]; }
  [[nodiscard]] std::string place(std::size_t node) const { return placeOf(nodes_[node], ports_[node]); }

 private:
  const std::vector<PairNode>& nodes_;
  std::chrono::milliseconds deadline_;
  std::vector<int> ports_;  // 0: does not listen
  std::vector<std::string> errors_;
};

}  // namespace

Result<std::vector<PairFault>> connectionMatrix(const std::vector<PairNode>& nodes, std::chrono::milliseconds deadline,
                                                const std::stop_token& stop) {
  const Listeners listeners(nodes, deadline, stop);
  std::vector<std::vector<PairFault>> faults(nodes.size());
  std::vector<std::optional<Error>> errors(nodes.size());
  onAll(nodes.size(), [&](std::size_t i) {
    if (!listeners.runs(i)) faults[i].push_back({nodes[i].name, nodes[i].name, listeners.errorOf(i)});
    std::vector<std::string> argv{"reach"};
    std::vector<std::size_t> others;
    for (std::size_t j = 0; j < nodes.size(); ++j) {
      if (j == i || !listeners.runs(j)) continue;
      others.push_back(j);
      argv.insert(argv.end(), {"--to", listeners.place(j)});
    }
    if (others.empty()) return;
    const auto said = ask(nodes[i], std::move(argv), deadline, stop);
    if (!said) {
      errors[i] = said.error();
      return;
    }
    for (std::size_t k = 0; k < others.size() && k < (*said)["reached"].size(); ++k) {
      const Json& one = (*said)["reached"][k];
      if (!one.value("ok", false)) faults[i].push_back({nodes[i].name, nodes[others[k]].name, one.value("reason", "")});
    }
  });
  std::vector<PairFault> all;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (errors[i]) return *std::move(errors[i]);
    all.insert(all.end(), faults[i].begin(), faults[i].end());
  }
  return all;
}

Result<std::vector<PairRate>> measurePairs(const std::vector<PairNode>& nodes, const std::vector<Bytes>& sizes,
                                           std::chrono::milliseconds deadline, const std::function<void(const PairRate&)>& onPair,
                                           const std::stop_token& stop) {
  const Listeners listeners(nodes, deadline, stop);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!listeners.runs(i))
      return failed(nodes[i].name, fmt::format("cannot listen at {}: {}", nodes[i].address, listeners.errorOf(i)));
  }
  std::vector<PairRate> rates;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t j = i + 1; j < nodes.size(); ++j) {
      std::vector<std::string> argv{"reach", "--to", listeners.place(j)};
      for (const Bytes size : sizes) argv.insert(argv.end(), {"--size", std::to_string(size.value)});
      const auto said = ask(nodes[i], std::move(argv), deadline, stop);
      if (!said) return said.error();
      const Json one = said->value("reached", Json::array()).empty() ? Json::object() : (*said)["reached"][0];
      if (!one.value("ok", false) || one.value("times_us", Json::array()).size() != sizes.size())
        return unreachable(nodes[i].name, fmt::format("cannot connect to {} at {}: {}", nodes[j].name, nodes[j].address,
                                                      one.value("reason", "no answer")));
      PairRate rate{.first = i, .second = j, .link = {}};
      rate.link.latency = Seconds{one.value("latency_us", 0.0) / 1e6};
      for (std::size_t s = 0; s < sizes.size(); ++s)
        rate.link.table.push_back(
            {sizes[s], BytesPerSecond{static_cast<double>(sizes[s].value) / (one["times_us"][s].get<double>() / 1e6)}});
      if (!rate.link.table.empty()) rate.link.bandwidth = rate.link.table.back().bandwidth;
      rates.push_back(rate);
      if (onPair) onPair(rate);
    }
  }
  return rates;
}

}  // namespace evenkeel
