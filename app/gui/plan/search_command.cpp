// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/search_command.h"

#include <fmt/format.h>

#include <QDir>
#include <algorithm>

#include "core/base/sha256.h"

namespace evenkeel::gui {
namespace {

/// NODESxDEVICES:TYPE,... of runs of like nodes; empty where the cluster has more to it than that.
std::string shorthandOf(const Cluster& cluster) {
  std::string text;
  for (std::size_t n = 0; n < cluster.nodes.size();) {
    const Node& node = cluster.nodes[n];
    if (node.devices.empty()) return {};
    const auto isLike = [&](const Node& other) { return other.devices == node.devices; };
    std::size_t end = n;
    while (end < cluster.nodes.size() && isLike(cluster.nodes[end])) ++end;
    const std::string& type = cluster.deviceTypes[static_cast<std::size_t>(node.devices.front().type)].name;
    text += fmt::format("{}{}x{}:{}", text.empty() ? "" : ",", end - n, node.devices.size(), type);
    n = end;
  }
  const auto parsed = parseClusterShorthand(text);
  return parsed && *parsed == cluster ? text : std::string();
}

std::string fileWith(const Json& json, const char* kind, const QString& folder) {
  const std::string text = prettyText(json);
  const QString name = QStringLiteral("%1-%2.json").arg(QString::fromLatin1(kind), QString::fromStdString(sha256(text)).left(12));
  const QString path = QDir(folder).filePath(name);
  QDir().mkpath(folder);
  // Where it cannot be written the command still says what it needs.
  (void)writeFileAtomically(path.toStdString(), text);
  return path.toStdString();
}

std::string shellWord(const std::string& word) {
  const auto isPlain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("/._-:,=@+").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, isPlain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string problemArguments(const Problem& problem, const QString& folder) {
  std::string cluster = shorthandOf(problem.cluster);
  if (cluster.empty()) cluster = fileWith(toJson(problem.cluster), "cluster", folder);
  std::string model = problem.model.name;
  if (std::ranges::find(modelCatalogue(), problem.model) == modelCatalogue().end())
    model = fileWith(toJson(problem.model), "model", folder);
  const Training& training = problem.training;
  return fmt::format(
      "--cluster {} --model {} --global-batch {} --sequence-length {} --precision {} --zero {} --gradient-sync {} --attention {}",
      shellWord(cluster), shellWord(model), training.globalBatch, training.sequenceLength, name(training.precision),
      training.zeroStage, name(training.gradientSync), name(training.attention));
}

std::string searchArguments(const SearchRequest& request) {
  std::string text;
  if (request.budget.timeLimit) text += fmt::format(" --time-limit {:g}", request.budget.timeLimit->value);
  for (const auto& [key, value] : request.options) text += " --planner-option " + shellWord(key + "=" + value);
  return text;
}

}  // namespace

QString searchCommand(const SearchRequest& request, const QString& folder) {
  return QString::fromStdString(fmt::format("evenkeel-cli plan {} --planner {}{} --out plan.json",
                                            problemArguments(request.problem, folder), request.planner->name,
                                            searchArguments(request)));
}

QString compareCommand(const std::vector<const Planner*>& planners, const SearchRequest& request, const QString& folder) {
  std::string names;
  for (const Planner* planner : planners) names += (names.empty() ? "" : ",") + planner->name;
  return QString::fromStdString(fmt::format("evenkeel-cli compare {} --planners {}{}", problemArguments(request.problem, folder),
                                            names, searchArguments(request)));
}

Result<PlannerOptions> plannerOptionsOf(const QString& text) {
  PlannerOptions options;
  for (const QString& word : text.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
    const auto equals = word.indexOf(QLatin1Char('='));
    if (equals < 1)
      return invalidInput("options", "\"" + word.toStdString() + "\" is no option", "write NAME=VALUE, separated by spaces");
    if (!options.emplace(word.left(equals).toStdString(), word.mid(equals + 1).toStdString()).second)
      return invalidInput("options", "\"" + word.left(equals).toStdString() + "\" is given twice");
  }
  return options;
}

}  // namespace evenkeel::gui
