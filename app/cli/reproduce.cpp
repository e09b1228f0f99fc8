// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/cli/command.h"
#include "app/cli/inputs.h"
#include "app/cli/interrupt.h"
#include "app/cli/table.h"
#include "core/profile/analytic_profile.h"
#include "core/report/compare_html.h"
#include "core/report/format.h"

namespace evenkeel::cli {
namespace {

/// Rows of a table that are printed; files have all.
constexpr std::size_t kMostPrinted = 60;

struct Arguments {
  std::string figure, outFolder;
  SearchArguments search;
  bool isQuick = false, asJson = false;
};

using Maker = Figure (*)(const Lab&);
const std::vector<std::pair<std::string, Maker>>& figures() {
  static const std::vector<std::pair<std::string, Maker>> all = {
      {"fig2", reproduceFig2},   {"fig9", reproduceFig9},   {"fig10", reproduceFig10},  {"fig11", reproduceFig11},
      {"fig12", reproduceFig12}, {"fig13", reproduceFig13}, {"table3", reproduceTable3}};
  return all;
}

std::string cellText(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return fmt::format("{}", value.get<std::int64_t>());
  return fmt::format("{:.4g}", value.get<double>());
}

std::string csvCell(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string())
    return value.is_number_integer() ? fmt::format("{}", value.get<std::int64_t>())
                                     : fmt::format("{}", rounded(value.get<double>()));
  const std::string text = value.get<std::string>();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csvOf(const FigureTable& table) {
  std::string text;
  for (std::size_t c = 0; c < table.columns.size(); ++c) text += (c > 0 ? "," : "") + csvCell(table.columns[c]);
  text += "\n";
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) text += (c > 0 ? "," : "") + csvCell(row[c]);
    text += "\n";
  }
  return text;
}

/// "1.19 to 1.36, above the paper's 1.20 to 1.84 by ...": where our range leaves the paper's, by how much, and the likely reason.
std::string verdictOf(const PaperClaim& claim) {
  const std::string paper =
      claim.low == claim.high ? fmt::format("{:g}", claim.low) : fmt::format("{:g} to {:g}", claim.low, claim.high);
  if (claim.ours.empty()) return fmt::format("the paper has {}; we have no number: no plan to compare", paper);
  const auto [least, most] = std::ranges::minmax_element(claim.ours);
  const bool isOne = *most - *least < 1e-3 * std::abs(*most);
  const std::string ours = isOne ? fmt::format("{:.4g}", *least) : fmt::format("{:.4g} to {:.4g}", *least, *most);
  std::string text = fmt::format("ours {}, the paper's {}", ours, paper);
  const double below = claim.low - *least, above = *most - claim.high;
  if (below <= 1e-9 && above <= 1e-9) return text + ": inside";
  if (below > 1e-9) text += fmt::format(", below it by up to {:.3g}", below);
  if (above > 1e-9) text += fmt::format(", above it by up to {:.3g}", above);
  return text + (claim.reason.empty() ? "" : ". Most likely: " + claim.reason);
}

Json jsonOf(const Figure& figure) {
  Json json;
  json["figure"] = figure.name;
  json["title"] = figure.title;
  json["setting"] = figure.setting;
  json["tables"] = Json::array();
  for (const FigureTable& table : figure.tables) {
    Json rows = Json::array();
    for (const auto& row : table.rows) {
      Json entry = Json::object();
      for (std::size_t c = 0; c < row.size(); ++c)
        entry[table.columns[c]] = row[c].is_number_float() ? Json(rounded(row[c].get<double>())) : row[c];
      rows.push_back(std::move(entry));
    }
    json["tables"].push_back({{"name", table.name}, {"title", table.title}, {"rows", rows}});
  }
  json["against_paper"] = Json::array();
  for (const PaperClaim& claim : figure.claims) {
    Json entry = {{"what", claim.what}, {"paper", {claim.low, claim.high}}, {"ours", nullptr}, {"verdict", verdictOf(claim)}};
    if (!claim.ours.empty()) entry["ours"] = {rounded(std::ranges::min(claim.ours)), rounded(std::ranges::max(claim.ours))};
    json["against_paper"].push_back(std::move(entry));
  }
  return json;
}

void print(const Figure& figure) {
  fmt::print("{}: {}\n{}\n", figure.name, figure.title, figure.setting);
  for (const FigureTable& table : figure.tables) {
    std::vector<std::vector<std::string>> rows = {table.columns};
    for (const auto& row : table.rows) {
      if (rows.size() > kMostPrinted) break;
      rows.emplace_back();
      for (const Json& value : row) rows.back().push_back(cellText(value));
    }
    fmt::print("\n{}\n{}", table.title, alignedTable(rows));
    if (table.rows.size() > kMostPrinted)
      fmt::print("... and {} more rows: --json or --out has them\n", table.rows.size() - kMostPrinted);
  }
  if (!figure.claims.empty()) fmt::print("\nagainst the paper\n");
  for (const PaperClaim& claim : figure.claims) fmt::print("  {}: {}\n", claim.what, verdictOf(claim));
}

std::string htmlOf(const Figure& figure, const std::vector<std::string>& words) {
  std::string body =
      fmt::format("<h1>{}</h1>\n<p class=\"dim\">{}</p>\n", report::escaped(figure.title), report::escaped(figure.setting));
  for (const FigurePicture& picture : figure.pictures)
    body += "<div class=\"card\" style=\"margin-top:14px\">" + picture.svg.inlined(picture.label) + "</div>\n";
  for (const FigureTable& table : figure.tables) {
    if (table.rows.size() > kMostPrinted) continue;  // a cloud of points: its picture says more
    body += fmt::format("<h2>{}</h2><div class=\"card\"><table><thead><tr>", report::escaped(table.title));
    for (const std::string& column : table.columns) body += fmt::format("<th>{}</th>", report::escaped(column));
    body += "</tr></thead><tbody>\n";
    for (const auto& row : table.rows) {
      body += "<tr>";
      for (const Json& value : row) body += fmt::format("<td>{}</td>", report::escaped(cellText(value)));
      body += "</tr>\n";
    }
    body += "</tbody></table></div>\n";
  }
  if (!figure.claims.empty()) {
    body += "<h2>Against the paper</h2><ul>";
    for (const PaperClaim& claim : figure.claims)
      body += fmt::format("<li>{}: {}</li>", report::escaped(claim.what), report::escaped(verdictOf(claim)));
    body += "</ul>\n";
  }
  body += fmt::format("<h2>Made by</h2><div class=\"card\"><pre>{}</pre></div>\n", report::escaped(report::shellText(words)));
  return report::htmlPage(figure.title, body);
}

/// FIGURE.json, FIGURE.html, FIGURE-TABLE.csv and FIGURE-PICTURE.svg.
Result<void> write(const std::string& folder, const Figure& figure, const std::vector<std::string>& words) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return invalidInput("--out " + folder, failure.message());
  std::vector<std::pair<std::string, std::string>> files = {{figure.name + ".json", prettyText(jsonOf(figure))},
                                                            {figure.name + ".html", htmlOf(figure, words)}};
  for (const FigureTable& table : figure.tables) files.emplace_back(figure.name + "-" + table.name + ".csv", csvOf(table));
  for (const FigurePicture& picture : figure.pictures)
    files.emplace_back(figure.name + "-" + picture.name + ".svg", picture.svg.standalone(picture.label));
  for (const auto& [name, text] : files) {
    if (auto written = writeFileAtomically(std::filesystem::path(folder) / name, text); !written) return written;
  }
  return {};
}

/// A search of a figure may not take longer than this unless `--time-limit` says so: ours and the baselines alike.
constexpr Seconds kLimit{30}, kQuickLimit{3};

int run(const Arguments& arguments, const std::vector<std::string>& words) {
  const auto maker = std::ranges::find(figures(), arguments.figure, &std::pair<std::string, Maker>::first);
  if (maker == figures().end()) {
    std::string names;
    for (const auto& [name, make] : figures()) names += (names.empty() ? "" : ", ") + name;
    return report(invalidInput("reproduce", fmt::format("there is no figure \"{}\"", arguments.figure), "known: " + names));
  }
  if (auto checked = checkOutputFolder("--out", arguments.outFolder); !checked) return report(checked.error());
  auto budget = budgetFrom(arguments.search);
  if (!budget) return report(budget.error());
  if (!budget->timeLimit) budget->timeLimit = arguments.isQuick ? kQuickLimit : kLimit;
  std::stop_source stop;
  const InterruptWatch watch([&](int) { stop.request_stop(); });
  const Figure figure = maker->second(Lab(arguments.isQuick, *budget, stop.get_token()));
  if (stop.stop_requested()) return report(Error{Error::Code::Cancelled, figure.name, "was interrupted", ""});
  if (!arguments.outFolder.empty()) {
    if (auto written = write(arguments.outFolder, figure, words); !written) return report(written.error());
  }
  arguments.asJson ? printJson(jsonOf(figure)) : print(figure);
  return kOk;
}

struct Points final : SearchObserver {
  explicit Points(std::vector<SearchPoint>* kept) : points(kept) {}
  void onPoint(const SearchPoint& point) override {
    if (points != nullptr) points->push_back(point);
  }
  std::vector<SearchPoint>* points;
};

}  // namespace

report::Compared Lab::plan(const Problem& problem, const std::string& name, PlannerOptions options,
                           std::vector<SearchPoint>* points) const {
  const Planner& planner = **plannerNamed(name);
  const AnalyticProfile profile(problem.model, problem.training);
  Points observer(points);
  const auto start = std::chrono::steady_clock::now();
  const auto plan = planner.plan({problem, &profile, budget_, std::move(options)}, observer, stop_);
  report::Compared one{planner.name, planner.summary, {}, {}, {}, {}};
  one.search = {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  if (plan)
    one.evaluation =
        evaluate(CostModel(plan->cluster, plan->model, plan->training, profile), *plan, plan->predicted->lowerBound, true);
  else one.error = plan.error();
  note("  {} on {} devices, {}: {} in {}\n", problem.model.name, problem.cluster.deviceCount(), name,
       plan ? shortTime(plan->predicted->iteration.value) : report::stateOf(one), shortTime(one.search.value));
  return one;
}

Problem paperProblem(const std::string& cluster, const std::string& model, std::int64_t globalBatch, std::int64_t sequence) {
  Problem problem{*parseClusterShorthand(cluster), *modelFromArgument(model), {}};
  problem.model.context = std::max(problem.model.context, sequence);  // longer learned positions than the preset has
  problem.training = resolveTraining({.sequenceLength = sequence, .globalBatch = globalBatch}, problem.cluster, problem.model);
  return problem;
}

PlannerOptions asPublished(const Problem& problem) {
  constexpr int kMostPermuted = 32;
  PlannerOptions options = {{"faults", "keep"}};
  if (problem.cluster.deviceCount() > kMostPermuted) options["permute"] = "1";
  return options;
}

Balance balanceOf(const Evaluation& evaluation) {
  Balance balance;
  balance.bubbles = evaluation.bubbleFraction;
  Seconds least{1e300};
  double busy = 0, devices = 0;
  for (std::size_t p = 0; p < evaluation.activity.size(); ++p) {
    for (std::size_t s = 0; s < evaluation.activity[p].size(); ++s) {
      const Seconds time = evaluation.activity[p][s].busy;
      const auto count = static_cast<double>(evaluation.plan.pipelines[p].stages[s].devices.size());
      least = std::min(least, time);
      balance.compute = std::max(balance.compute, time);
      busy += count * time.value;
      devices += count;
    }
  }
  if (devices == 0) return balance;
  balance.latencyRatio = balance.compute / least;
  const double idle = 1 - busy / (devices * balance.compute.value);
  balance.idleCompute = idle > 1e-9 ? idle : 0;  // what rounding leaves is none
  return balance;
}

Json cell(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::optional<double> iterationOf(const report::Compared& one) {
  if (!one.evaluation) return std::nullopt;
  return one.evaluation->plan.predicted->iteration.value;
}

std::string shortReason(const report::Compared& one) {
  if (one.evaluation) return "";
  return report::stateOf(one) == "infeasible" ? "out of memory" : report::stateOf(one);
}

void addReproduce(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand(
      "reproduce", "A figure of the paper made again from our cost model: table, picture, and where we differ");
  auto arguments = std::make_shared<Arguments>();
  std::string names;
  for (const auto& [name, make] : figures()) names += (names.empty() ? "" : ", ") + name;
  command->add_option("figure", arguments->figure, "One of: " + names)->required();
  command->add_option("--out", arguments->outFolder,
                      "Write FIGURE.json, .html, and its tables (.csv) and pictures (.svg) into this folder");
  command->add_flag("--quick", arguments->isQuick, "Small clusters and models, in seconds");
  command->add_option("--time-limit", arguments->search.timeLimit,
                      "Seconds that each search may take (default 30, with --quick 3)");
  command->add_option("--threads", arguments->search.threads, "Search threads (default: all cores)");
  command->add_flag("--json", arguments->asJson, "One JSON document on stdout");
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments, outcome.words); });
}

}  // namespace evenkeel::cli
