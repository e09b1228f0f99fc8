// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/document/project_document.h"

#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QUuid>

#include "app/gui/document/project_edit.h"

namespace evenkeel::gui {
namespace {

constexpr int kRecoveryDelayMs = 1000;  // writing has as long again before a crash could lose more than two seconds

Parts difference(const Project& a, const Project& b) {
  Parts parts;
  parts.setFlag(Part::Cluster, a.cluster != b.cluster);
  parts.setFlag(Part::Layout, a.layout != b.layout);
  parts.setFlag(Part::Model, a.model != b.model);
  parts.setFlag(Part::Training, a.training != b.training);
  parts.setFlag(Part::Plans, a.plans != b.plans);
  parts.setFlag(Part::Runs, a.runs != b.runs);
  return parts;
}

/// Which version of a file is on the disk; empty: none.
QString stampOf(const QString& path) {
  const QFileInfo info(path);
  return info.exists() ? QStringLiteral("%1 %2").arg(info.size()).arg(info.lastModified().toMSecsSinceEpoch()) : QString();
}

/// The path of the document that a recovery file stands for; nothing where this is no recovery file.
std::optional<QString> originalPathIn(const Json& json) {
  if (!json.is_object() || !json.contains("project") || !json["project"].is_object()) return std::nullopt;
  if (!json.contains("path") || !json["path"].is_string()) return std::nullopt;
  return QString::fromStdString(json["path"].get<std::string>());
}

}  // namespace

ProjectDocument::ProjectDocument(QString recoveryFolder, QObject* parent)
    : QObject(parent),
      recoveryFolder_(std::move(recoveryFolder)),
      project_(std::make_shared<const Project>()),
      recovery_(QDir(recoveryFolder_)
                    .filePath(QUuid::createUuid().toString(QUuid::WithoutBraces) + QStringLiteral(".recovery"))
                    .toStdString()) {
  recoveryTimer_.setSingleShot(true);
  recoveryTimer_.setInterval(kRecoveryDelayMs);
  connect(&recoveryTimer_, &QTimer::timeout, this, &ProjectDocument::writeRecovery);
}

ProjectDocument::~ProjectDocument() = default;

QString ProjectDocument::title() const { return path_.isEmpty() ? tr("Untitled") : QFileInfo(path_).completeBaseName(); }

void ProjectDocument::edit(const QString& text, const std::function<void(Project&)>& change, const QString& mergeKey) {
  auto after = std::make_shared<Project>(*project_);
  change(*after);
  if (*after == *project_) return;
  undo_.push(new ProjectEdit(*this, std::move(after), text, mergeKey));
}

void ProjectDocument::apply(std::shared_ptr<const Project> project) {
  const Parts parts = difference(*project_, *project);
  project_ = std::move(project);
  if (!parts) return;
  if (!recoveryTimer_.isActive()) recoveryTimer_.start();
  emit changed(parts);
}

void ProjectDocument::reset(Project project, const QString& path) {
  project_ = std::make_shared<const Project>(std::move(project));
  path_ = path;
  stamp_ = stampOf(path);
  undo_.clear();
  removeRecovery();
  emit pathChanged();
  emit changed(kAllParts);
}

void ProjectDocument::startNew(Project project) { reset(std::move(project), {}); }

Result<void> ProjectDocument::open(const QString& path) {
  auto project = loadProject(path.toStdString());
  if (!project) return std::move(project).error();
  reset(*std::move(project), path);
  return {};
}

Result<void> ProjectDocument::saveAs(const QString& path) {
  auto written = writeFileAtomically(path.toStdString(), prettyText(toJson(*project_)));
  if (!written) return written;
  path_ = path;
  stamp_ = stampOf(path);
  undo_.setClean();
  removeRecovery();
  emit pathChanged();
  return {};
}

bool ProjectDocument::isChangedOnDisk() const {
  const QString now = stampOf(path_);
  return !now.isEmpty() && now != stamp_;
}

void ProjectDocument::writeRecovery() {
  if (isModified()) recovery_.write(project_, path_.toStdString());
  else recovery_.remove();  // what was undone must not come back
}

void ProjectDocument::removeRecovery() {
  recoveryTimer_.stop();
  recovery_.remove();
}

QList<ProjectDocument::Recovered> ProjectDocument::recoverable() const {
  QList<Recovered> found;
  const auto entries = QDir(recoveryFolder_).entryInfoList({QStringLiteral("*.recovery")}, QDir::Files, QDir::Time);
  for (const QFileInfo& entry : entries) {
    if (RecoveryWriter::isOwned(entry.filePath().toStdString())) continue;
    const auto json = readJsonFile(entry.filePath().toStdString());
    const auto path = json ? originalPathIn(*json) : std::nullopt;
    if (path) found.push_back({entry.filePath(), *path, entry.lastModified()});
  }
  return found;
}

Result<void> ProjectDocument::recover(const Recovered& recovered) {
  auto json = readJsonFile(recovered.file.toStdString());
  if (!json) return std::move(json).error();
  if (!originalPathIn(*json)) return invalidInput(recovered.file.toStdString(), "is no recovery file");
  auto project = parseProject((*json)["project"], recovered.file.toStdString());
  if (!project) return std::move(project).error();
  reset({}, recovered.originalPath);
  edit(tr("Recover"), [&](Project& current) { current = *std::move(project); });
  writeRecovery();
  recovery_.finish();
  discard(recovered);
  return {};
}

void ProjectDocument::discard(const Recovered& recovered) { RecoveryWriter::discard(recovered.file.toStdString()); }

bool isStale(const Plan& plan, const Project& project) {
  if (plan.inputsSha256.empty()) return false;
  const auto problem = project.problem();
  return !problem || inputsHash(problem->cluster, problem->model, problem->training) != plan.inputsSha256;
}

}  // namespace evenkeel::gui
