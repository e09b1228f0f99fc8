// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/document/project_document.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QUuid>

#include "app/gui/document/project_edit.h"

namespace evenkeel::gui {
namespace {

constexpr int kRecoveryDelayMs = 2000;  // what a crash may lose

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

constexpr Parts kAllParts = Parts(Part::Cluster) | Part::Layout | Part::Model | Part::Training | Part::Plans | Part::Runs;

/// A recovery file begins with the process that owns it and the path of the document that it stands for.
Json recoveryJson(const Project& project, const QString& path) {
  Json json;
  json["pid"] = QCoreApplication::applicationPid();
  json["path"] = path.toStdString();
  json["project"] = toJson(project);
  return json;
}

bool processLives(qint64 pid) { return QFileInfo::exists(QStringLiteral("/proc/%1").arg(pid)); }

}  // namespace

ProjectDocument::ProjectDocument(QString recoveryFolder, QObject* parent)
    : QObject(parent), recoveryFolder_(std::move(recoveryFolder)) {
  recoveryFile_ = QDir(recoveryFolder_).filePath(QUuid::createUuid().toString(QUuid::WithoutBraces) + QStringLiteral(".recovery"));
  recoveryTimer_.setSingleShot(true);
  recoveryTimer_.setInterval(kRecoveryDelayMs);
  connect(&recoveryTimer_, &QTimer::timeout, this, &ProjectDocument::writeRecovery);
}

ProjectDocument::~ProjectDocument() { removeRecovery(); }

QString ProjectDocument::title() const { return path_.isEmpty() ? tr("Untitled") : QFileInfo(path_).completeBaseName(); }

void ProjectDocument::edit(const QString& text, const std::function<void(Project&)>& change, const QString& mergeKey) {
  Project after = project_;
  change(after);
  if (after == project_) return;
  undo_.push(new ProjectEdit(*this, std::move(after), text, mergeKey));
}

void ProjectDocument::apply(const Project& project) {
  const Parts parts = difference(project_, project);
  project_ = project;
  if (!parts) return;
  if (!recoveryTimer_.isActive()) recoveryTimer_.start();
  emit changed(parts);
}

void ProjectDocument::reset(Project project, const QString& path) {
  project_ = std::move(project);
  path_ = path;
  undo_.clear();
  removeRecovery();
  emit pathChanged();
  emit changed(kAllParts);
}

void ProjectDocument::startNew() { reset({}, {}); }

Result<void> ProjectDocument::open(const QString& path) {
  auto project = loadProject(path.toStdString());
  if (!project) return std::move(project).error();
  reset(*std::move(project), path);
  return {};
}

Result<void> ProjectDocument::saveAs(const QString& path) {
  auto written = writeFileAtomically(path.toStdString(), prettyText(toJson(project_)));
  if (!written) return written;
  path_ = path;
  undo_.setClean();
  removeRecovery();
  emit pathChanged();
  return {};
}

void ProjectDocument::writeRecovery() {
  if (!isModified()) return;
  QDir().mkpath(recoveryFolder_);
  QFile::setPermissions(recoveryFolder_, QFileDevice::ReadOwner | QFileDevice::WriteOwner | QFileDevice::ExeOwner);
  // A full disk must not disturb the work that is going on; saving says it aloud.
  (void)writeFileAtomically(recoveryFile_.toStdString(), recoveryJson(project_, path_).dump(), true);
}

void ProjectDocument::removeRecovery() {
  recoveryTimer_.stop();
  QFile::remove(recoveryFile_);
}

QList<ProjectDocument::Recovered> ProjectDocument::recoverable() const {
  QList<Recovered> found;
  const auto entries = QDir(recoveryFolder_).entryInfoList({QStringLiteral("*.recovery")}, QDir::Files, QDir::Time);
  for (const QFileInfo& entry : entries) {
    const auto json = readJsonFile(entry.filePath().toStdString());
    if (!json || !json->is_object() || processLives(json->value("pid", qint64{0}))) continue;
    found.push_back({entry.filePath(), QString::fromStdString(json->value("path", std::string())), entry.lastModified()});
  }
  return found;
}

Result<void> ProjectDocument::recover(const Recovered& recovered) {
  auto json = readJsonFile(recovered.file.toStdString());
  if (!json) return std::move(json).error();
  auto project = parseProject(json->value("project", Json()), recovered.file.toStdString());
  if (!project) return std::move(project).error();
  reset({}, recovered.originalPath);
  edit(tr("Recover"), [&](Project& current) { current = *std::move(project); });
  writeRecovery();
  discard(recovered);
  return {};
}

void ProjectDocument::discard(const Recovered& recovered) { QFile::remove(recovered.file); }

}  // namespace evenkeel::gui
