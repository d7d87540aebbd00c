/* SPDX-License-Identifier: BSD-3-Clause */

/* zcmd-sim: the agents' logic in a virtual world. See zcmd-sim(1). */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "rank_groups.h"
#include "simulation.h"

using namespace zc::agent;

namespace {

const std::map<std::string, collection> kCollections = {{"node", collection::node},
                                                        {"job", collection::job}};

enum { kHeld = 0, kViolated = 1, kUsage = 2 };

nlohmann::json of(const sim::traffic_after &t)
{
    return {{"jobs", t.jobs}, {"bytes", t.bytes}, {"across", t.across}};
}

nlohmann::json to_json(const sim::options &o, const sim::result &r, double wall_s)
{
    return {
        {"seed", o.seed},
        {"nodes", o.nodes},
        {"seconds", o.seconds},
        {"decision", o.agents.decision},
        {"policy", o.agents.policy},
        {"grouping", o.agents.grouping},
        {"collect", o.agents.collect == collection::job ? "job" : "node"},
        {"speeds", o.speeds},
        {"measured", o.measures},
        {"wall_s", wall_s},
        {"events", r.events},
        {"messages", r.messages},
        {"message_bytes", r.message_bytes},
        {"lost", r.lost},
        {"asks", r.asks},
        {"refused_asks", r.refused_asks},
        {"moves", r.moves},
        {"ranks_moved", r.ranks_moved},
        {"marginal_moves", r.marginal_moves},
        {"failed", r.failed},
        {"crashes", r.crashes},
        {"last_move_s", static_cast<double>(r.last_move_ms) / 1000},
        {"steals_when_calm", r.steals_in_calm},
        {"imbalance", {r.before.imbalance, r.after.imbalance}},
        {"pace", {r.before.mean, r.after.mean}},
        {"worst", {r.before.worst, r.after.worst}},
        {"across_after_moves", {{"at_the_end", of(r.at_the_end)}, {"otherwise", of(r.otherwise)}}},
        {"by_type", r.by_type},
        {"handed_over",
         {{"told", r.handed_over.told},
          {"learned", r.handed_over.learned},
          {"refused", r.handed_over.refused}}},
        {"collected", r.collected},
        {"collected_in_vain", r.collected_in_vain},
        {"violations", r.violations}};
}

/** The command line. */
struct arguments {
    sim::options o;
    std::uint32_t runs = 1;
    bool json = false;
    bool faults = false;
    std::vector<double> phases;
};

/** A fault, its option, and what --faults makes of it where it is not given. */
template <class T>
struct fault {
    CLI::Option *option;
    T &value;
    void preset(T moderate) const
    {
        if (option->count() == 0)
            value = moderate;
    }
};

/** The options for what goes wrong. */
struct fault_options {
    fault_options(CLI::App &app, sim::options &o)
        : loss(part(app, "--loss", o.loss, "part of the messages that is lost")),
          crash(part(app, "--crash", o.crash,
                     "chance of an agent's death before each step of the protocol")),
          state(part(app, "--lose-state", o.lose_state,
                     "part of the deaths that take the state file along")),
          late(part(app, "--late", o.late, "part of the messages that take up to 40 s")),
          skew(part(app, "--skew", o.skew, "drift of the clocks")),
          stuck(part(app, "--stuck", o.stuck, "moves whose ranks reach no safe point")),
          fail(part(app, "--fail", o.fail, "moves that are begun and undone")),
          cuts(number(app, "--partitions", o.partitions, "cuts of 10 s in two halves")),
          churn(number(app, "--churn", o.churn, "idle nodes that go and come")),
          changes(number(app, "--load-changes", o.load_changes, "changes of the load of others"))
    {
    }
    /** All of them, moderately, where not given. */
    void preset(std::uint32_t nodes) const
    {
        loss.preset(0.02);
        crash.preset(0.01);
        state.preset(0.3);
        late.preset(0.01);
        skew.preset(0.01);
        stuck.preset(0.1);
        fail.preset(0.1);
        cuts.preset(2);
        churn.preset(std::max(2u, nodes / 10));
        changes.preset(std::max(2u, nodes / 10));
    }

  private:
    static fault<double> part(CLI::App &app, const char *name, double &value, const char *text)
    {
        return {app.add_option(name, value, text)->check(CLI::Range(0.0, 1.0)), value};
    }
    static fault<std::uint32_t> number(CLI::App &app, const char *name, std::uint32_t &value,
                                       const char *text)
    {
        return {app.add_option(name, value, text), value};
    }

    fault<double> loss, crash, state, late, skew, stuck, fail;
    fault<std::uint32_t> cuts, churn, changes;
};

/** An exit status, if there is nothing to run. */
std::optional<int> parse(int argc, char **argv, arguments &a)
{
    CLI::App app("The agents of zcmd in a simulated network: seeded, in virtual time", "zcmd-sim");
    app.set_version_flag("--version", ZC_VERSION);
    sim::options &o = a.o;
    app.add_option("--seed", o.seed, "first seed")->capture_default_str();
    app.add_option("--runs", a.runs, "so many seeds, one after another")->capture_default_str();
    app.add_option("--nodes", o.nodes, "2 … 100000")
        ->check(CLI::Range(2, 100000))
        ->capture_default_str();
    app.add_option("--seconds", o.seconds, "virtual time")
        ->check(CLI::Range(10.0, 86400.0))
        ->capture_default_str();
    app.add_option("--calm", o.calm, "last part of it without faults and changes")
        ->check(CLI::Range(0.1, 1.0))
        ->capture_default_str();
    app.add_option("--decision", o.agents.decision,
                   "balance, or threshold, which may move ranks to and fro")
        ->check(CLI::IsMember({"balance", "threshold"}))
        ->capture_default_str();
    app.add_option("--policy", o.agents.policy, "random, application or network")
        ->check(CLI::IsMember({"random", "application", "network"}))
        ->capture_default_str();
    app.add_option("--grouping", o.agents.grouping,
                   fmt::format("one of {}", fmt::join(grouping_names(), ", ")))
        ->check(CLI::IsMember(grouping_names()))
        ->capture_default_str();
    app.add_option("--collect", o.agents.collect,
                   "whose messages it learns from: of the ranks at a node, or of all of a job")
        ->transform(CLI::CheckedTransformer(kCollections).description("node or job"))
        ->default_str("node");
    app.add_flag("--faults", a.faults, "all of the following, moderately, where not given");
    fault_options wrong(app, o);
    app.add_flag("--balanced", o.balanced, "begin without imbalance");
    app.add_option(
           "--phases", a.phases,
           "jobs with two phases of so many seconds in turn, and partners of their own in each")
        ->expected(2)
        ->check(CLI::Range(0.5, 3600.0));
    app.add_option("--speeds", o.speeds, "processors of nodes are 1 to so many times as fast")
        ->check(CLI::Range(1.0, 100.0))
        ->capture_default_str();
    app.add_flag("!--unmeasured", o.measures, "and agents take them for equal");
    app.add_flag("--json", a.json, "one JSON object per run");
    app.footer(
        "exit status: 0 all invariants held; 1 one was violated: its seed is printed; 2 usage");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        return app.exit(e) == 0 ? kHeld : kUsage;
    }
    if (!a.phases.empty()) {
        o.phase_a = a.phases[0];
        o.phase_b = a.phases[1];
    }
    if (a.faults)
        wrong.preset(o.nodes);
    return {};
}

void print(const sim::options &o, const sim::result &r, double wall_s)
{
    fmt::print("seed {}: {} nodes, {:.0f} s in {:.1f} s: {} messages ({} lost), {} asks "
               "({} refused), {} moves of {} ranks, {} failed, {} deaths; imbalance {:.2f} -> "
               "{:.2f}, pace of the jobs {:.2f} -> {:.2f}, worst {:.2f} -> {:.2f}; last move at "
               "{:.0f} s\n",
               o.seed, o.nodes, o.seconds, wall_s, r.messages, r.lost, r.asks, r.refused_asks,
               r.moves, r.ranks_moved, r.failed, r.crashes, r.before.imbalance, r.after.imbalance,
               r.before.mean, r.after.mean, r.before.worst, r.after.worst,
               static_cast<double>(r.last_move_ms) / 1000);
    if (o.phase_a > 0)
        fmt::print("  {}: between nodes after moves at the end of the first phase {:.0f} % "
                   "of the bytes ({} jobs), "
                   "after others {:.0f} % ({} jobs)\n",
                   o.agents.grouping, 100 * r.at_the_end.part(), r.at_the_end.jobs,
                   100 * r.otherwise.part(), r.otherwise.jobs);
}

/** The command line that makes the run again: the same but for its seed. */
void print_replay(std::uint64_t seed, int argc, char **argv)
{
    std::string words;
    for (int k = 1; k < argc; k++) {
        std::string word = argv[k];
        if (word == "--seed" || word == "--runs")
            k++;
        else if (!word.starts_with("--seed=") && !word.starts_with("--runs="))
            words += " " + word;
    }
    fmt::print(stderr, "zcmd-sim: replay: zcmd-sim --seed {}{}\n", seed, words);
}

} // namespace

int main(int argc, char **argv)
{
    arguments a;
    if (auto status = parse(argc, argv, a))
        return *status;
    sim::options &o = a.o;
    int status = kHeld;
    for (std::uint32_t i = 0; i < a.runs; i++) {
        auto begin = std::chrono::steady_clock::now();
        sim::result r = sim::simulation(o).run();
        double wall =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (a.json)
            fmt::print("{}\n", to_json(o, r, wall).dump());
        else
            print(o, r, wall);
        for (const std::string &v : r.violations)
            fmt::print(stderr, "zcmd-sim: seed {}: {}\n", o.seed, v);
        if (!r.violations.empty()) {
            status = kViolated;
            print_replay(o.seed, argc, argv);
        }
        std::fflush(stdout);
        o.seed++;
    }
    return status;
}
