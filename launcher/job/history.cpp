// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/history.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "launcher/job/records.h"

namespace evenkeel {
namespace {

constexpr int kSchemaVersion = 3;

constexpr const char* kSchema = R"sql(
CREATE TABLE runs (
  id TEXT PRIMARY KEY, created REAL NOT NULL, state TEXT NOT NULL, world_size INTEGER NOT NULL,
  plan TEXT NOT NULL, run TEXT NOT NULL, nodes TEXT NOT NULL, timeouts TEXT NOT NULL, predicted_iteration_ms REAL, failed TEXT,
  stop_requested INTEGER NOT NULL DEFAULT 0, continues TEXT NOT NULL DEFAULT '',
  slurm TEXT NOT NULL DEFAULT '');
CREATE TABLE events (
  run TEXT NOT NULL, node INTEGER NOT NULL, seq INTEGER NOT NULL, time REAL NOT NULL, record TEXT NOT NULL,
  PRIMARY KEY (run, node, seq)) WITHOUT ROWID;
CREATE TABLE steps (
  run TEXT NOT NULL, step INTEGER NOT NULL, rank INTEGER NOT NULL, loss REAL, tokens INTEGER, iteration_ms REAL,
  compute_ms REAL, p2p_ms REAL, bubble_ms REAL, sync_ms REAL, optimizer_ms REAL, peak_bytes INTEGER, grad_norm REAL,
  learning_rate REAL, PRIMARY KEY (run, step, rank)) WITHOUT ROWID;
)sql";

std::string textOf(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Error unknownRun(const std::string& id) { return invalidInput(id, "no such run", "see `evenkeel-cli runs`"); }

}  // namespace

Result<std::unique_ptr<RunHistory>> RunHistory::open(const std::filesystem::path& file) {
  auto database = Database::open(file);
  if (!database) return std::move(database).error();
  std::unique_ptr<RunHistory> history(new RunHistory(*std::move(database)));
  if (auto prepared = history->prepareSchema(file); !prepared) return prepared.error();
  return history;
}

Result<void> RunHistory::prepareSchema(const std::filesystem::path& file) {
  if (auto begun = database_.execute("BEGIN IMMEDIATE"); !begun) return begun;  // two processes may both find it new
  std::int64_t version = 0;
  {
    Statement query = database_.prepare("PRAGMA user_version");
    if (query.step()) version = query.integer(0);
  }
  Result<void> made;
  if (version == 0) made = database_.execute(fmt::format("{} PRAGMA user_version = {};", kSchema, kSchemaVersion));
  // From each version to the next one.
  constexpr std::array<const char*, kSchemaVersion - 1> kSteps = {"ALTER TABLE runs ADD COLUMN continues TEXT NOT NULL DEFAULT '';",
                                                                  "ALTER TABLE runs ADD COLUMN slurm TEXT NOT NULL DEFAULT '';"};
  for (auto from = version; from > 0 && from < kSchemaVersion && made; ++from)
    made = database_.execute(fmt::format("{} PRAGMA user_version = {};", kSteps[static_cast<std::size_t>(from) - 1], from + 1));
  if (version > kSchemaVersion) {
    made = failed(file.string(),
                  fmt::format("was written by a newer Evenkeel (schema {}; this one knows {})", version, kSchemaVersion),
                  "use that one");
  }
  auto ended = database_.execute(made ? "COMMIT" : "ROLLBACK");
  return made ? ended : made;
}

Result<void> RunHistory::add(const RunRecord& record) {
  Statement insert = database_.prepare(
      "INSERT INTO runs (id, created, state, world_size, plan, run, nodes, timeouts, predicted_iteration_ms, continues, slurm, failed) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)");
  const std::string nodes = textOf(toJson(record.nodes)), timeouts = textOf(toJson(record.timeouts));
  insert.add(std::string_view(record.id)).add(record.created).add(name(record.state)).add(std::int64_t{record.worldSize});
  insert.add(std::string_view(textOf(record.plan)))
      .add(std::string_view(textOf(record.run)))
      .add(std::string_view(nodes))
      .add(std::string_view(timeouts));
  insert.add(record.predictedIterationMs).add(std::string_view(record.continues));
  const std::string slurm = record.slurm ? textOf(toJson(*record.slurm)) : std::string();
  insert.add(std::string_view(slurm));
  if (!insert.run()) return database_.lastError();
  return {};
}

Result<std::string> RunHistory::idNamed(const std::string& beginning) {
  constexpr std::size_t kShown = 5;
  if (beginning.empty()) return unknownRun("\"\"");
  Statement query = database_.prepare("SELECT id FROM runs WHERE substr(id, 1, length(?1)) = ?1 ORDER BY created DESC, id DESC");
  query.add(std::string_view(beginning));
  std::vector<std::string> ids;
  while (query.step()) {
    ids.push_back(query.text(0));
    if (ids.back() == beginning) return beginning;
  }
  if (query.hasFailed()) return database_.lastError();
  if (ids.empty()) return unknownRun(beginning);
  if (ids.size() == 1) return ids.front();
  const std::size_t shown = std::min(ids.size(), kShown);
  const std::string more = ids.size() > shown ? fmt::format(" and {} older ones", ids.size() - shown) : "";
  ids.resize(shown);
  return invalidInput(beginning, fmt::format("is the beginning of several runs: {}{}", fmt::join(ids, ", "), more), "write more of it");
}

Result<RunRecord> RunHistory::find(const std::string& id) {
  Statement query = database_.prepare(
      "SELECT created, state, world_size, plan, run, nodes, timeouts, predicted_iteration_ms, failed, stop_requested, continues, "
      "slurm FROM runs WHERE id = ?");
  query.add(std::string_view(id));
  if (!query.step()) return query.hasFailed() ? database_.lastError() : unknownRun(id);
  RunRecord record{.id = id, .created = query.number(0), .worldSize = static_cast<int>(query.integer(2))};
  const auto state = jobStateOf(query.text(1));
  auto plan = parseJson(query.text(3), id + ": plan"), run = parseJson(query.text(4), id + ": run");
  auto nodes = parseJobNodes(query.text(5), id + ": nodes");
  auto timeouts = parseTimeouts(query.text(6), id + ": timeouts");
  if (!state) return failed(id, fmt::format("has the unknown state \"{}\"", query.text(1)));
  for (const auto* part : {&plan, &run}) {
    if (!*part) return part->error();
  }
  if (!nodes) return std::move(nodes).error();
  if (!timeouts) return std::move(timeouts).error();
  record.state = *state;
  record.plan = *std::move(plan);
  record.run = *std::move(run);
  record.nodes = *std::move(nodes);
  record.timeouts = *timeouts;
  record.stopRequested = query.integer(9) != 0;
  record.continues = query.text(10);
  if (const std::string slurm = query.text(11); !slurm.empty()) {
    auto job = parseSlurmJob(slurm, id + ": slurm");
    if (!job) return std::move(job).error();
    record.slurm = *std::move(job);
  }
  if (!query.isNull(7)) record.predictedIterationMs = query.number(7);
  if (!query.isNull(8)) {
    auto failure = parseFailure(query.text(8), id + ": failed");
    if (!failure) return std::move(failure).error();
    record.failed = *std::move(failure);
  }
  return record;
}

Result<bool> RunHistory::setState(const std::string& id, JobState state, const std::optional<JobFailure>& failure) {
  Statement update = database_.prepare("UPDATE runs SET state = ?1, failed = ?2 WHERE id = ?3 AND state <> ?1");
  update.add(name(state)).add(failure ? std::optional(textOf(toJson(*failure))) : std::nullopt).add(std::string_view(id));
  if (!update.run()) return database_.lastError();
  return database_.changes() > 0;
}

Result<void> RunHistory::setSlurmJob(const std::string& id, const SlurmJob& job) {
  Statement update = database_.prepare("UPDATE runs SET slurm = ? WHERE id = ?");
  const std::string text = textOf(toJson(job));
  update.add(std::string_view(text)).add(std::string_view(id));
  if (!update.run()) return database_.lastError();
  return {};
}

Result<void> RunHistory::requestStop(const std::string& id) {
  Statement update = database_.prepare("UPDATE runs SET stop_requested = 1 WHERE id = ?");
  update.add(std::string_view(id));
  if (!update.run()) return database_.lastError();
  return {};
}

Result<void> RunHistory::append(const std::string& id, int node, const std::vector<Json>& records) {
  if (auto begun = database_.execute("BEGIN IMMEDIATE"); !begun) return begun;
  for (const Json& record : records) {
    if (auto inserted = insert(id, node, record); !inserted) {
      [[maybe_unused]] const auto rolledBack = database_.execute("ROLLBACK");
      return inserted;
    }
  }
  return database_.execute("COMMIT");
}

Result<void> RunHistory::insert(const std::string& id, int node, const Json& record) {
  Statement event = database_.prepare("INSERT OR IGNORE INTO events (run, node, seq, time, record) VALUES (?, ?, ?, ?, ?)");
  event.add(std::string_view(id))
      .add(std::int64_t{node})
      .add(integerOf(record, "seq"))
      .add(numberOf(record, "time"))
      .add(std::string_view(textOf(record)));
  if (!event.run()) return database_.lastError();
  if (database_.changes() == 0 || eventOf(record) != "step") return {};
  const StepRecord step = stepOf(record);
  Statement insert = database_.prepare(
      "INSERT OR IGNORE INTO steps (run, step, rank, loss, tokens, iteration_ms, compute_ms, p2p_ms, bubble_ms, sync_ms, "
      "optimizer_ms, peak_bytes, "
      "grad_norm, learning_rate) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.add(std::string_view(id))
      .add(step.step)
      .add(integerOf(record, "rank"))
      .add(step.loss)
      .add(step.tokens)
      .add(step.iterationMs);
  insert.add(step.computeMs).add(step.p2pMs).add(step.bubbleMs).add(step.syncMs).add(step.optimizerMs).add(step.peakBytes);
  insert.add(step.gradNorm).add(step.learningRate);
  if (!insert.run()) return database_.lastError();
  return {};
}

Result<std::int64_t> RunHistory::lastSeq(const std::string& id, int node) {
  Statement query = database_.prepare("SELECT COALESCE(MAX(seq), 0) FROM events WHERE run = ? AND node = ?");
  query.add(std::string_view(id)).add(std::int64_t{node});
  if (!query.step()) return database_.lastError();
  return query.integer(0);
}

Result<void> RunHistory::replay(const std::string& id, const std::function<void(int, const Json&)>& onRecord) {
  Statement query = database_.prepare("SELECT node, record FROM events WHERE run = ? ORDER BY time, node, seq");
  query.add(std::string_view(id));
  while (query.step()) {
    auto record = parseJson(query.text(1), id + ": record");
    if (!record) return std::move(record).error();
    onRecord(static_cast<int>(query.integer(0)), *record);
  }
  if (query.hasFailed()) return database_.lastError();
  return {};
}

Result<std::vector<RunRow>> RunHistory::rows() {
  Statement query = database_.prepare(
      "SELECT id, state, created, (SELECT COUNT(*) FROM (SELECT step FROM steps WHERE run = runs.id GROUP BY step HAVING "
      "COUNT(*) = runs.world_size)), continues, json_extract(run, '$.rehearsal') IS NOT NULL, "
      "CASE WHEN slurm = '' THEN '' ELSE json_extract(slurm, '$.id') END FROM runs ORDER BY created DESC, id DESC");
  std::vector<RunRow> rows;
  std::vector<std::size_t> later;  // attempts: some of their steps are those of an earlier run
  while (query.step()) {
    if (!query.text(4).empty()) later.push_back(rows.size());
    rows.push_back({.run = query.text(0),
                    .state = jobStateOf(query.text(1)).value_or(JobState::Failed),
                    .started = query.number(2),
                    .steps = query.integer(3),
                    .isRehearsal = query.integer(5) != 0});
    rows.back().isQueued = rows.back().state == JobState::Preparing && !query.text(6).empty();
  }
  if (query.hasFailed()) return database_.lastError();
  for (const std::size_t row : later) {
    auto status = statusOf(rows[row].run);
    if (!status) return std::move(status).error();
    rows[row].steps = status->steps;
  }
  return rows;
}

/// A later attempt begins at a checkpoint: what an earlier one trained from there on did not count.
Result<void> RunHistory::addLosses(const RunRecord& record, std::map<std::int64_t, double>& losses,
                                   std::vector<std::string>& attempts) {
  Statement steps =
      database_.prepare("SELECT step, loss, MIN(rank) FROM steps WHERE run = ? GROUP BY step HAVING COUNT(*) = ? ORDER BY step");
  steps.add(std::string_view(record.id)).add(std::int64_t{record.worldSize});
  const std::int64_t next = losses.empty() ? std::numeric_limits<std::int64_t>::max() : losses.begin()->first;
  while (steps.step()) {
    if (steps.integer(0) < next) losses[steps.integer(0)] = steps.number(1);
  }
  if (steps.hasFailed()) return database_.lastError();
  if (record.continues.empty() || std::ranges::find(attempts, record.continues) != attempts.end()) return {};
  auto before = find(record.continues);
  if (!before) return {};  // somebody has cleaned up
  attempts.insert(attempts.begin(), before->id);
  return addLosses(*before, losses, attempts);
}

Result<JobStatus> RunHistory::statusOf(const std::string& id) {
  auto record = find(id);
  if (!record) return std::move(record).error();
  JobStatus status{
      .run = id, .state = record->state, .predictedIterationMs = record->predictedIterationMs, .failed = record->failed};
  status.isRehearsal = record->run.contains("rehearsal");
  Statement steps = database_.prepare(
      "SELECT MAX(iteration_ms), tokens, MIN(rank) FROM steps WHERE run = ? GROUP BY step HAVING COUNT(*) = ? ORDER BY step");
  steps.add(std::string_view(id)).add(std::int64_t{record->worldSize});
  std::vector<double> iterations;
  std::int64_t tokens = 0;
  while (steps.step()) {
    if (!steps.isNull(0)) iterations.push_back(steps.number(0));
    tokens = steps.integer(1);
  }
  if (steps.hasFailed()) return database_.lastError();
  std::map<std::int64_t, double> losses;  // by step
  if (auto added = addLosses(*record, losses, status.attempts); !added) return added.error();
  for (const auto& [step, loss] : losses) status.losses.push_back(loss);
  status.steps = static_cast<std::int64_t>(status.losses.size());
  if (!iterations.empty()) {
    status.iterationMs = spreadOf(std::move(iterations));
    if (status.iterationMs->median > 0) status.tokensPerSecond = static_cast<double>(tokens) / (status.iterationMs->median / 1e3);
  }
  Statement peaks = database_.prepare("SELECT rank, MAX(peak_bytes) FROM steps WHERE run = ? GROUP BY rank");
  peaks.add(std::string_view(id));
  while (peaks.step()) status.peakBytes[static_cast<int>(peaks.integer(0))] = peaks.integer(1);
  if (peaks.hasFailed()) return database_.lastError();
  return status;
}

}  // namespace evenkeel
