// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/launchable.h"

#include <QDir>
#include <QFileInfo>
#include <QRegularExpression>

#include "core/base/sha256.h"
#include "core/cost/evaluate.h"
#include "core/profile/analytic_profile.h"
#include "launcher/job/features_of.h"
#include "launcher/ssh/quoting.h"

namespace evenkeel::gui {

std::vector<Violation> launchObjections(const Plan& plan, const std::filesystem::path& programs) {
  const AnalyticProfile profile(plan.model, plan.training);
  auto violations = evaluate(plan, profile, false).violations;
  return violations.empty() ? notLaunchable(plan, featuresOf(programs)) : violations;
}

QString launchCommand(const std::filesystem::path& planFile, const Run& run, const QString& resume, bool isLocal) {
  std::vector<std::string> argv = {"evenkeel-cli", "launch", planFile.string()};
  const auto add = [&](const char* option, const QString& value) { argv.insert(argv.end(), {option, value.toStdString()}); };
  for (const std::string& data : run.train) argv.insert(argv.end(), {"--data", data});
  add("--steps", QString::number(run.steps));
  const Run usual;
  if (run.learningRate.peak != usual.learningRate.peak) add("--learning-rate", QString::number(run.learningRate.peak, 'g', 10));
  if (run.seed != usual.seed) add("--seed", QString::number(run.seed));
  if (run.checkpoint.every > 0) add("--checkpoint-every", QString::number(run.checkpoint.every));
  if (run.checkpoint.keep != usual.checkpoint.keep) add("--checkpoint-keep", QString::number(run.checkpoint.keep));
  const auto addNumber = [&](const char* option, double value, double otherwise) {
    if (value != otherwise) add(option, QString::number(value, 'g', 10));
  };
  if (run.learningRate.warmupSteps != usual.learningRate.warmupSteps)
    add("--warmup-steps", QString::number(run.learningRate.warmupSteps));
  if (run.learningRate.schedule != usual.learningRate.schedule)
    add("--schedule", QString::fromStdString(toJson(run)["learning_rate"]["schedule"].get<std::string>()));
  addNumber("--final-learning-rate", run.learningRate.final, usual.learningRate.final);
  addNumber("--weight-decay", run.weightDecay, usual.weightDecay);
  addNumber("--beta1", run.beta1, usual.beta1);
  addNumber("--beta2", run.beta2, usual.beta2);
  addNumber("--gradient-clip", run.gradientClip, usual.gradientClip);
  addNumber("--dropout", run.dropout, usual.dropout);
  for (const std::string& data : run.validation) argv.insert(argv.end(), {"--validation", data});
  if (run.evaluation.every > 0) add("--evaluate-every", QString::number(run.evaluation.every));
  if (!run.endCommand.empty()) add("--end-command", QString::fromStdString(run.endCommand));
  if (!resume.isEmpty()) add("--resume", resume);
  if (isLocal) argv.emplace_back("--local");
  return QString::fromStdString(shellLine(argv));
}

Result<std::filesystem::path> writePlan(const Plan& plan, const QString& name, const QString& folder) {
  const std::string text = prettyText(toJson(plan));
  QString stem = name;
  stem.replace(QRegularExpression(QStringLiteral("[^A-Za-z0-9._-]+")), QStringLiteral("-"));
  const QString file = QDir(folder).filePath(stem + QLatin1Char('-') + QString::fromStdString(sha256(text).substr(0, 8)) +
                                             QStringLiteral(".json"));
  const std::filesystem::path path = file.toStdString();
  if (QFileInfo::exists(file)) return path;
  if (!QDir().mkpath(folder)) return failed(folder.toStdString(), "cannot be made", "free space there, or check who may write");
  if (auto written = writeFileAtomically(path, text); !written) return written.error();
  return path;
}

}  // namespace evenkeel::gui
