// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/compare_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/report/chart.h"
#include "core/report/format.h"
#include "core/report/plan_pictures.h"

namespace evenkeel::report {
namespace {

constexpr std::string_view kPageStyle = R"css(
body { margin: 0; background: var(--bg); color: var(--ink); font: 15px/1.5 system-ui, "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 28px 24px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 34px 0 10px; } h3 { font-size: 15px; margin: 18px 0 4px; }
.lead { font-size: 17px; margin: 14px 0 0; } .dim { color: var(--dim); } .card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 14px 16px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; } th { text-align: right; font-weight: 500; color: var(--dim); padding: 4px 10px; white-space: nowrap; }
td { text-align: right; padding: 6px 10px; border-top: 1px solid var(--line); white-space: nowrap; } th:first-child, td:first-child { text-align: left; padding-left: 0; }
td.reason { text-align: left; white-space: normal; color: var(--dim); } tr.best td { font-weight: 600; } tr.best td:first-child { color: var(--good); }
.badge { border: 1px solid currentColor; border-radius: 9px; padding: 0 8px; font-size: 12px; margin-right: 8px; } .bad { color: var(--bad); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 8px; font-size: 13px; color: var(--dim); } .legend i { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 6px; }
i.forward { background: var(--forward); } i.backward { background: var(--backward); } i.wait { background: var(--wait); } i.sync { background: var(--sync); } i.optimizer { background: var(--optimizer); }
i.s0, .chip.c0 { background: var(--s0); } i.s1, .chip.c1 { background: var(--s1); } i.s2, .chip.c2 { background: var(--s2); } i.s3, .chip.c3 { background: var(--s3); } i.s4, .chip.c4 { background: var(--s4); } i.s5, .chip.c5 { background: var(--s5); }
.abreast { display: flex; gap: 14px; overflow-x: auto; padding-bottom: 6px; align-items: flex-start; } .abreast > .card { flex: 1 0 290px; overflow: visible; }
.abreast.memory { flex-wrap: wrap; } .abreast.memory > .card { flex: 0 0 auto; }
.pipe { margin: 8px 0 4px; font-size: 13px; color: var(--dim); } .pipe b { color: var(--ink); } .stages { display: flex; flex-direction: column; gap: 6px; }
.stage { position: relative; border: 1px solid var(--line); border-radius: 6px; padding: 5px 9px 5px 16px; font-size: 13px; line-height: 1.4; }
.stage span { display: block; } .chip { position: absolute; left: 0; top: 0; bottom: 0; width: 6px; border-radius: 5px 0 0 5px; }
pre { margin: 0; white-space: pre-wrap; word-break: break-word; font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; } ul { margin: 4px 0 0; padding-left: 20px; } summary { cursor: pointer; }
svg { display: block; } .axisrow { position: sticky; top: 0; }
)css";

std::string legend(const std::vector<std::pair<std::string_view, std::string_view>>& entries) {
  std::string text = R"(<p class="legend">)";
  for (const auto& [kind, meaning] : entries) text += fmt::format(R"(<span><i class="{}"></i>{}</span>)", kind, meaning);
  return text + "</p>\n";
}

std::string clusterText(const Cluster& cluster) {
  std::map<int, int> counts;
  for (const DeviceId device : cluster.devices()) ++counts[cluster.typeIndexOf(device)];
  std::string text;
  for (const auto& [type, count] : counts)
    text += fmt::format("{}{} × {}", text.empty() ? "" : ", ", count, cluster.deviceTypes[static_cast<std::size_t>(type)].name);
  return fmt::format("{} in {} machine{}", text, cluster.nodes.size(), cluster.nodes.size() == 1 ? "" : "s");
}

std::string verdict(const CompareReport& report, std::optional<Seconds> best) {
  if (!best) return "No planner found a plan. The reasons stand below.";
  std::string winners;
  std::optional<Seconds> next;
  for (const Compared& one : report.planners) {
    if (!one.evaluation) continue;
    const Seconds iteration = one.evaluation->plan.predicted->iteration;
    if (iteration <= *best) winners += (winners.empty() ? "" : " and ") + one.planner;
    else if (!next || iteration < *next) next = iteration;
  }
  std::string text = fmt::format("<b>{}</b> is fastest: {} an iteration", escaped(winners), timeText(*best));
  if (next) text += fmt::format(", {} less than the next", percentText(1 - *best / *next));
  return text + ".";
}

std::string figuresTable(const CompareReport& report, std::optional<Seconds> best) {
  std::string text =
      "<div class=\"card\"><table><thead><tr><th>planner</th><th>iteration</th><th>against "
      "best</th><th>samples/s</th><th>bubble</th>"
      "<th>worst memory</th><th>MFU</th><th>devices</th><th>search</th><th>gap to bound</th><th>own "
      "estimate</th></tr></thead><tbody>\n";
  for (const Compared& one : report.planners) {
    if (!one.evaluation) {
      text += fmt::format(R"(<tr><td>{}</td><td class="reason" colspan="10"><span class="badge bad">{}</span>{}</td></tr>)"
                          "\n",
                          escaped(one.planner), stateOf(one), escaped(reasonOf(one)));
      continue;
    }
    const KeyFigures figures = keyFiguresOf(*one.evaluation);
    const bool isBest = figures.iteration <= *best;
    text += fmt::format(
        "<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{:.4g}</td><td>{}</td><td>{:.0f} %</td><td>{}</td><td>{} of "
        "{}</td><td>{}{}</td><td>{}</td><td>{}</td></tr>\n",
        isBest ? R"( class="best")" : "", escaped(one.planner) + (isBest ? " ★" : ""), timeText(figures.iteration),
        isBest ? "best" : fmt::format("{:.2f} ×", figures.iteration / *best), figures.samplesPerSecond,
        percentText(figures.bubbleFraction), 100 * figures.worstMemory, percentText(figures.mfu), figures.usedDevices,
        figures.usedDevices + figures.idleDevices, timeText(one.search),
        figures.stopped.empty() ? "" : " (" + figures.stopped + ")", figures.gap ? percentText(*figures.gap) : "–",
        figures.ownEstimate ? timeText(*figures.ownEstimate) : "–");
  }
  return text +
         "</tbody></table></div>\n<p class=\"dim\">All plans are priced by the same cost model and simulator. “Own estimate” is "
         "what the original's "
         "estimator says of the same plan.</p>\n";
}

std::string timelines(const CompareReport& report) {
  Seconds end;
  for (const Compared& one : report.planners) {
    if (one.evaluation) end = std::max(end, one.evaluation->plan.predicted->iteration);
  }
  std::string text = legend(timelineLegend());
  constexpr double kLeft = 150, kWidth = 940;  // as timelinePicture has them
  Svg axis(kLeft + kWidth + 10, 22);
  for (const double mark : axisMarks(0, std::max(1e-9, end.value), 6)) {
    if (mark > end.value * (1 + 1e-9)) break;
    const double x = kLeft + kWidth * mark / end.value;
    const Anchor anchor = mark == 0 ? Anchor::Start : x > kLeft + kWidth - 24 ? Anchor::End : Anchor::Middle;
    axis.line(x, 16, x, 22, "axis");
    axis.text(x, 12, mark == 0 ? "0" : timeText(Seconds{mark}), "dim", anchor);
  }
  text += "<div class=\"card\">" + axis.inlined("time axis");
  for (const Compared& one : report.planners) {
    if (!one.evaluation || one.evaluation->timeline.lanes.empty()) continue;
    text += fmt::format("<h3>{} <span class=\"dim\">{}</span></h3>", escaped(one.planner),
                        timeText(one.evaluation->plan.predicted->iteration)) +
            timelinePicture(*one.evaluation, end).inlined("timeline of " + one.planner);
  }
  return text + "</div>\n";
}

std::string memoryBars(const CompareReport& report) {
  Bytes most;
  for (const Compared& one : report.planners) {
    if (one.evaluation) most = std::max(most, memoryTop(one.evaluation->plan));
  }
  std::string text = legend(memoryLegend()) + "<div class=\"abreast memory\">";
  for (const Compared& one : report.planners) {
    if (!one.evaluation) continue;
    text += fmt::format("<div class=\"card\"><h3 style=\"margin-top:0\">{}</h3>{}</div>\n", escaped(one.planner),
                        memoryPicture(one.evaluation->plan, most).inlined("memory of " + one.planner));
  }
  return text +
         "</div>\n<p class=\"dim\">One bar a stage: its fullest device. The dashed line is what that device may use.</p>\n";
}

std::string cards(const CompareReport& report) {
  std::string text = "<div class=\"abreast\">";
  for (const Compared& one : report.planners) {
    if (!one.evaluation) continue;
    const Plan& plan = one.evaluation->plan;
    text += fmt::format("<div class=\"card\"><h3 style=\"margin-top:0\">{} <span class=\"dim\">{} pipeline{}</span></h3>{}",
                        escaped(one.planner), plan.pipelines.size(), plan.pipelines.size() == 1 ? "" : "s", stageCards(plan));
    if (const std::size_t idle = plan.idleDevices().size(); idle > 0)
      text += fmt::format("<p class=\"dim\">{} devices stay idle</p>", idle);
    text += "</div>\n";
  }
  return text + "</div>\n";
}

std::string deviations(const CompareReport& report) {
  std::string text = "<div class=\"card\">";
  for (const Compared& one : report.planners) {
    text += fmt::format("<details><summary><b>{}</b> <span class=\"dim\">{}</span></summary><ul>", escaped(one.planner),
                        escaped(one.summary));
    for (const std::string& deviation : one.deviations) text += fmt::format("<li>{}</li>", escaped(deviation));
    text += "</ul></details>\n";
  }
  return text + "</div>\n";
}

}  // namespace

std::string stepHtml(const std::string& run, std::int64_t step, const Timeline& predicted, const Timeline& measured, const std::string& profile) {
  const auto endOf = [](const Timeline& timeline) {
    Seconds end;
    for (const LaneTimes& lane : laneTimes(timeline)) end = std::max(end, lane.end);
    return end;
  };
  const Seconds ofPredicted = endOf(predicted), ofMeasured = endOf(measured);
  const std::string title = fmt::format("Step {} of {}", step, run);
  return htmlPage(title, fmt::format("<h1>{}</h1>\n<p class=\"lead\">predicted {}, measured {} ({:+.1f} %)</p>\n<p class=\"dim\">predicted from: {}</p>\n<div class=\"card\">{}{}</div>\n",
                                     escaped(title), timeText(ofPredicted), timeText(ofMeasured), 100 * (ofMeasured / ofPredicted - 1), escaped(profile), legend(timelineLegend()),
                                     stepPicture(predicted, measured, std::max(ofPredicted, ofMeasured)).inlined("Predicted and measured timelines, stage by stage")));
}

std::string htmlPage(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}{}</style></head>\n<body><main>\n{}</main></body></html>\n",
      escaped(title), styleSheet(), kPageStyle, body);
}

std::string shellText(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    const bool isPlain =
        !word.empty() &&
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") == std::string::npos;
    if (isPlain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

std::string compareHtml(const CompareReport& report) {
  const Problem& problem = report.problem;
  const std::optional<Seconds> best = fastestOf(report.planners);
  std::string body = fmt::format(
      "<h1>{} on {}</h1>\n<p class=\"dim\">global batch {}, sequence {}, {}, ZeRO-{}, {}-wise sync, {} attention; {}</p>\n",
      escaped(problem.model.name), escaped(clusterText(problem.cluster)), problem.training.globalBatch,
      problem.training.sequenceLength, name(problem.training.precision), problem.training.zeroStage,
      name(problem.training.gradientSync), name(problem.training.attention), escaped(report.profile));
  body += fmt::format("<p class=\"lead\">{}</p>\n<h2>Key figures</h2>\n{}", verdict(report, best), figuresTable(report, best));
  if (best) {
    body += "<h2>One iteration, all plans on one axis</h2>\n" + timelines(report);
    body += "<h2>Memory</h2>\n" + memoryBars(report);
    body += "<h2>Stages</h2>\n" + cards(report);
  }
  body += "<h2>How the planners differ from their originals</h2>\n" + deviations(report);
  body += fmt::format("<h2>Made by</h2>\n<div class=\"card\"><pre>{}</pre></div>\n", escaped(report.command));
  return htmlPage(fmt::format("{}: planners compared", problem.model.name), body);
}

}  // namespace evenkeel::report
