// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/job/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/sha256.h"
#include "core/base/words.h"

namespace evenkeel {
namespace {

constexpr Bounds<double> kTimeout{0.05, 7 * 86400.0};

/// What no unit of this runtime computes: a plan may hold it, since a family names no variants.
std::vector<Violation> unsupportedVariants(const Model& model) {
  if (model.position != Position::Rotary || model.headDim % 2 == 0) return {};
  return {{"model", fmt::format("has rotary positions and heads of odd width {}", model.headDim), "use an even head_dim"}};
}

Result<void> refuse(const std::string& source, const std::vector<Violation>& reasons) {
  if (reasons.empty()) return {};
  const Violation& first = reasons.front();
  std::string what = first.what;
  if (reasons.size() > 1) what += fmt::format(" (and {} more)", reasons.size() - 1);
  return invalidInput(fmt::format("{}: {}", source, first.where), what, first.remedy);
}

/// A rehearsal needs nothing of the runtime but times to sleep.
Result<void> checkRehearsal(const Plan& plan, const std::string& source) {
  bool isPredicted = plan.predicted.has_value();
  for (const Pipeline& pipeline : plan.pipelines)
    isPredicted =
        isPredicted && std::ranges::all_of(pipeline.stages, [](const Stage& stage) { return stage.predicted.has_value(); });
  if (isPredicted) return {};
  return invalidInput(source, "is to be rehearsed, but its plan predicts no times", "evaluate the plan first");
}

Result<void> checkPlan(const Plan& plan, bool isRehearsal, const std::string& source, const RuntimeFeatures& runtime) {
  if (auto valid = refuse(source, shapeViolations(plan)); !valid) return valid;
  if (isRehearsal) return checkRehearsal(plan, source);
  if (auto launchable = refuse(source, notLaunchable(plan, runtime)); !launchable) return launchable;
  return refuse(source, unsupportedVariants(plan.model));
}

Result<int> numberOf(const Variables& variables, const std::string& name, Bounds<int> bounds) {
  const auto text = variables(name);
  if (!text || text->empty()) return invalidInput(name, "is not set", "the agent sets it for every worker");
  const auto number = parseNumber<int>(*text);
  if (!number || *number < bounds.least || *number > bounds.most) {
    return invalidInput(name, fmt::format("is \"{}\"", text->substr(0, 60)),
                        fmt::format("expected a number from {} to {}", bounds.least, bounds.most));
  }
  return *number;
}

Result<std::string> addressOf(const Variables& variables, const std::string& name) {
  auto text = variables(name);
  if (!text || text->empty()) return invalidInput(name, "is not set", "the agent sets it for every worker");
  return *std::move(text);
}

}  // namespace

Result<Job> parseJob(const Json& json, const std::string& source, const RuntimeFeatures& runtime) {
  JsonContext context{source, {}};
  JsonReader reader(json, context);
  Job job;
  expectFormat(reader, kJobFormat);
  job.runId = reader.text("run_id");
  JsonReader run = reader.object("run");
  job.run = readRun(run);
  JsonReader data = reader.object("data");
  job.trainFile = data.text("train");
  job.trainSha256 = data.text("sha256", "");
  job.tokenType = data.oneOf<TokenType>("token_type", kTokenTypes, TokenType::Uint8);
  if (data.has("train_bytes")) job.trainBytes = data.integer("train_bytes", {1, std::int64_t{1} << 50U});
  if (job.run.evaluation.every > 0 && !job.trainBytes)
    data.fail("train_bytes", "is missing", "evaluations need a part of the file that is not trained on");
  job.resume = reader.text("resume", "");
  if (reader.has("timeouts")) {
    JsonReader timeouts = reader.object("timeouts");
    job.peerTimeout.value = timeouts.number("peer_s", kTimeout, job.peerTimeout.value);
    job.startTimeout.value = timeouts.number("start_s", kTimeout, job.startTimeout.value);
  }
  if (!reader.has("plan")) reader.fail("plan", "is missing", "expected an evenkeel.plan/1 object");
  if (context.error) return *std::move(context.error);
  auto plan = parsePlan(reader.raw("plan"), source + " /plan");
  if (!plan) return plan.error();
  job.plan = *std::move(plan);
  if (auto checked = checkPlan(job.plan, job.run.rehearsal.has_value(), source, runtime); !checked) return checked.error();
  job.planSha256 = sha256(toJson(job.plan).dump(-1, ' ', false, Json::error_handler_t::replace));
  return job;
}

Result<Job> loadJob(const std::filesystem::path& file, const RuntimeFeatures& runtime) {
  auto json = readJsonFile(file);
  if (!json) return json.error();
  auto job = parseJob(*json, file.string(), runtime);
  if (job) job->folder = file.parent_path();
  return job;
}

std::optional<std::string> processVariable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Result<RankEnvironment> readRankEnvironment(const Variables& variables, int usedDevices) {
  RankEnvironment environment;
  auto master = addressOf(variables, "MASTER_ADDR");
  if (!master) return master.error();
  environment.masterAddress = *master;
  auto train = addressOf(variables, "EVENKEEL_TRAIN_ADDRESS");
  if (!train) return train.error();
  environment.trainAddress = *train;
  const auto port = numberOf(variables, "MASTER_PORT", {1, 65535});
  if (!port) return port.error();
  environment.masterPort = *port;
  const auto worldSize = numberOf(variables, "WORLD_SIZE", {1, kMaxDevices});
  if (!worldSize) return worldSize.error();
  environment.worldSize = *worldSize;
  if (*worldSize != usedDevices) {
    return invalidInput("WORLD_SIZE", fmt::format("is {}, but the plan uses {} devices", *worldSize, usedDevices),
                        "start one worker for each used device");
  }
  const auto rank = numberOf(variables, "RANK", {0, *worldSize - 1});
  if (!rank) return rank.error();
  environment.rank = *rank;
  return environment;
}

}  // namespace evenkeel
