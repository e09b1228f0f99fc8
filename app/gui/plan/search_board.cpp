// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/search_board.h"

#include <fmt/format.h>

namespace evenkeel::gui {

std::optional<double> SearchSnapshot::gap() const {
  if (!bound || curve.empty()) return std::nullopt;
  return 1 - *bound / curve.back().iteration;
}

void SearchBoard::begin(std::string planner, std::optional<Seconds> timeLimit) {
  const std::lock_guard lock(mutex_);
  state_ = {};
  state_.planner = std::move(planner);
  state_.timeLimit = timeLimit;
  state_.isRunning = true;
}

void SearchBoard::addStep(Seconds at, std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (!state_.steps.empty()) state_.steps.back().end = at;
  state_.steps.push_back({std::string(name), at, at});
}

void SearchBoard::addIncumbent(Seconds at, Seconds iteration, std::string finder, std::shared_ptr<const Plan> plan) {
  const std::lock_guard lock(mutex_);
  state_.curve.push_back({at, iteration, std::move(finder)});
  state_.best = std::move(plan);
}

void SearchBoard::setBound(Seconds bound) {
  const std::lock_guard lock(mutex_);
  state_.bound = state_.bound ? std::max(*state_.bound, bound) : bound;  // all of them hold, the highest says most
}

void SearchBoard::setCounters(Seconds at, Counters counters) {
  const std::lock_guard lock(mutex_);
  if (at.value > 0) state_.evaluatedPerSecond = static_cast<double>(counters.evaluated) / at.value;
  state_.counters = std::move(counters);
}

void SearchBoard::end(Seconds at) {
  const std::lock_guard lock(mutex_);
  if (!state_.steps.empty()) state_.steps.back().end = at;
  state_.elapsed = at;
  state_.isRunning = false;
}

SearchSnapshot SearchBoard::read(Seconds now) const {
  const std::lock_guard lock(mutex_);
  SearchSnapshot copy = state_;
  if (!copy.isRunning) return copy;
  copy.elapsed = now;
  if (!copy.steps.empty()) copy.steps.back().end = now;
  return copy;
}

Seconds BoardWriter::elapsed() const {
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count()};
}

void BoardWriter::onPhase(std::string_view phase) { board_.addStep(elapsed(), phase); }

void BoardWriter::onIncumbent(const Incumbent& incumbent) {
  const Seconds iteration = incumbent.plan.predicted->iteration;
  board_.addIncumbent(elapsed(), iteration, incumbent.finder, std::make_shared<const Plan>(incumbent.plan));
}

void BoardWriter::onBound(Seconds bound) { board_.setBound(bound); }
void BoardWriter::onCounters(const Counters& counters) { board_.setCounters(elapsed(), counters); }

namespace {

Counters countersOf(const Json& line) {
  Counters counters;
  counters.evaluated = line.value("evaluated", std::int64_t{0});
  counters.cached = line.value("cached", std::int64_t{0});
  const auto pruned = line.find("pruned");
  if (pruned == line.end()) return counters;
  for (const auto& [reason, count] : pruned->items()) counters.pruned[reason] = count.get<std::int64_t>();
  return counters;
}

/// One line of the file; throws what the JSON library throws when a field has another type.
Result<void> replayLine(const Json& line, const std::string& source, SearchBoard& board, std::shared_ptr<const Plan>& best) {
  const Seconds at{line.at("seconds").get<double>()};
  const auto event = line.at("event").get<std::string>();
  if (event == "phase") board.addStep(at, line.at("phase").get<std::string>());
  if (event == "bound") board.setBound(fromMilliseconds(line.at("lower_bound_ms").get<double>()));
  if (event == "counters") board.setCounters(at, countersOf(line));
  if (event != "incumbent") return {};
  auto plan = parsePlan(line.at("plan"), source);
  if (!plan) return std::move(plan).error();
  best = std::make_shared<const Plan>(*std::move(plan));
  board.addIncumbent(at, fromMilliseconds(line.at("iteration_ms").get<double>()), line.value("finder", std::string()), best);
  return {};
}

}  // namespace

Result<Plan> replayEvents(const std::filesystem::path& file, SearchBoard& board) {
  const auto text = readFile(file);
  if (!text) return text.error();
  std::shared_ptr<const Plan> best;
  Seconds last;
  std::string_view rest = *text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view lineText = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), lineText.size() + 1));
    if (lineText.empty()) continue;
    const std::string source = fmt::format("{}:{}", file.string(), number);
    const auto line = parseJson(lineText, source);
    if (!line) return line.error();
    try {
      if (number == 1) board.begin(line->value("planner", std::string()), std::nullopt);
      if (auto replayed = replayLine(*line, source, board, best); !replayed) return replayed.error();
      last = {line->at("seconds").get<double>()};
    } catch (const Json::exception&) {
      return invalidInput(source, "is no event of a search", "choose a file that evenkeel-cli plan --events wrote");
    }
  }
  board.end(last);
  if (!best) return invalidInput(file.string(), "holds a search that found no plan");
  Plan plan = *best;
  plan.inputsSha256 = inputsHash(plan.cluster, plan.model, plan.training);
  return plan;
}

SearchSnapshot rememberedSearch(const Plan& plan) {
  SearchSnapshot snapshot;
  if (!plan.search.is_object()) return snapshot;
  if (plan.predicted && plan.predicted->lowerBound.value > 0) snapshot.bound = plan.predicted->lowerBound;
  try {
    snapshot.planner = plan.search.value("planner", std::string());
    snapshot.elapsed = {plan.search.value("seconds", 0.0)};
    snapshot.counters = countersOf(plan.search);
    if (snapshot.elapsed.value > 0)
      snapshot.evaluatedPerSecond = static_cast<double>(snapshot.counters.evaluated) / snapshot.elapsed.value;
    const auto incumbents = plan.search.find("incumbents");
    if (incumbents == plan.search.end()) return snapshot;
    for (const Json& point : *incumbents)
      snapshot.curve.push_back(
          {{point.at("seconds").get<double>()}, fromMilliseconds(point.at("iteration_ms").get<double>()), {}});
  } catch (const Json::exception&) {
    return {};  // a plan of another program: its search cannot be shown, the plan can
  }
  return snapshot;
}

}  // namespace evenkeel::gui
