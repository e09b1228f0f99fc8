// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <set>
#include <tuple>
#include <vector>

#include "core/search/optimal/plan_maker.h"

namespace evenkeel::optimal {

/// What a search for columns aims at.
enum class Aim {
  ClosedForm,  // of the pipelines alone
  Reported,    // with the gradient sync, about
};

/// Finds columns and the prices under which they are as good as any: the packing of the columns prices the resources, the prices
/// find further columns. Plans are made of them on the way.
class ColumnSearch {
 public:
  ColumnSearch(SearchSession& session, PlanSpace& space, PlanMaker& maker)
      : session_(session), space_(space), maker_(maker), prices_(space.firstPrices()), stopped_([&session] {
          return session.stopped();
        }) {}

  /// State is sharded over the pipelines, which depend on it: more holders, less memory, more pipelines.
  void chooseHolders();
  /// In place of that: what another search found, of about the same problem. Its pipelines are columns, its prices are the first
  /// ones. False: nothing of it can be used.
  [[nodiscard]] bool startFrom(const Plan& last);
  /// Rounds of a search under prices, each with a tighter tolerance, and of new prices.
  void improve(Aim aim, int mostRounds);
  /// Closed form, as if state were sharded over exactly as many pipelines as the best plan has, if that is more than was assumed:
  /// kept where it leads to something better.
  void improveForIncumbent(int mostRounds);
  /// All resources together cost 1.
  [[nodiscard]] const std::vector<double>& prices() const { return prices_; }

 private:
  struct Pool {
    std::vector<Column> columns;
    std::set<std::tuple<std::vector<std::pair<std::size_t, int>>, int, std::int64_t>> known;  // (option, last unit), b, most M
  };
  [[nodiscard]] std::vector<double> ratesOf(Aim aim) const;
  void addColumn(Pool& pool, const PriceSearch& search, const Path& path, int microBatches);
  /// How many pipelines the best packing has.
  std::size_t findPrices(PriceSearch& search, Pool& pool, int mostRounds);
  std::size_t improveOnce(Aim aim, int mostRounds);
  /// With few pipelines fractions of columns say little: pipelines for equal parts of the devices, and for what columns leave
  /// over.
  void fitFew(PriceSearch& search, Pool& pool, Aim aim);
  void fitRest(PriceSearch& search, Pool& pool, const RelaxedTime& relaxed, const std::set<int>& microBatches);

  SearchSession& session_;
  PlanSpace& space_;
  PlanMaker& maker_;
  std::vector<double> prices_;
  int holders_ = 1;
  std::function<bool()> stopped_;
};

}  // namespace evenkeel::optimal
