/* SPDX-License-Identifier: BSD-3-Clause */

/* zcmd-sim: the agents' logic in a virtual world. See zcmd-sim(1). */
#include <chrono>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulation.h"

using namespace zc::agent;

namespace {

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
        {"policy", o.agents.policy},
        {"grouping", o.agents.grouping},
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
        {"violations", r.violations}};
}

} // namespace

int main(int argc, char **argv)
{
    CLI::App app("The agents of zcmd in a simulated network: seeded, in virtual time", "zcmd-sim");
    app.set_version_flag("--version", ZC_VERSION);
    sim::options o;
    std::uint32_t runs = 1;
    bool json = false;
    bool faults = false;
    app.add_option("--seed", o.seed, "first seed")->capture_default_str();
    app.add_option("--runs", runs, "so many seeds, one after another")->capture_default_str();
    app.add_option("--nodes", o.nodes, "2 … 100000")
        ->check(CLI::Range(2, 100000))
        ->capture_default_str();
    app.add_option("--seconds", o.seconds, "virtual time")
        ->check(CLI::Range(10.0, 86400.0))
        ->capture_default_str();
    app.add_option("--calm", o.calm, "last part of it without faults and changes")
        ->check(CLI::Range(0.1, 1.0))
        ->capture_default_str();
    auto *policy = app.add_option("--policy", o.agents.policy, "random, application or network")
                       ->check(CLI::IsMember({"random", "application", "network"}));
    policy->capture_default_str();
    app.add_option("--grouping", o.agents.grouping, "zc, matrix or single")
        ->check(CLI::IsMember({"zc", "matrix", "single"}))
        ->capture_default_str();
    app.add_flag("--faults", faults, "all of the following, moderately, where not given");
    auto part = [&](const char *name, double &value, const char *text) {
        return app.add_option(name, value, text)->check(CLI::Range(0.0, 1.0));
    };
    auto *loss = part("--loss", o.loss, "part of the messages that is lost");
    auto *crash =
        part("--crash", o.crash, "chance of an agent's death before each step of the protocol");
    auto *state =
        part("--lose-state", o.lose_state, "part of the deaths that take the state file along");
    auto *late = part("--late", o.late, "part of the messages that take up to 40 s");
    auto *skew = part("--skew", o.skew, "drift of the clocks");
    auto *stuck = part("--stuck", o.stuck, "moves whose ranks reach no safe point");
    auto *fail = part("--fail", o.fail, "moves that are begun and undone");
    auto *cuts = app.add_option("--partitions", o.partitions, "cuts of 10 s in two halves");
    auto *churn = app.add_option("--churn", o.churn, "idle nodes that go and come");
    auto *changes =
        app.add_option("--load-changes", o.load_changes, "changes of the load of others");
    app.add_flag("--balanced", o.balanced, "begin without imbalance");
    std::vector<double> phases;
    app.add_option(
           "--phases", phases,
           "jobs with two phases of so many seconds in turn, and partners of their own in each")
        ->expected(2)
        ->check(CLI::Range(0.5, 3600.0));
    app.add_flag("--json", json, "one JSON object per run");
    app.footer(
        "exit status: 0 all invariants held; 1 one was violated: its seed is printed; 2 usage");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        return app.exit(e) == 0 ? kHeld : kUsage;
    }
    if (!phases.empty()) {
        o.phase_a = phases[0];
        o.phase_b = phases[1];
    }
    if (faults) {
        auto preset = [](CLI::Option *option, auto &value, auto preset_value) {
            if (option->count() == 0)
                value = preset_value;
        };
        preset(loss, o.loss, 0.02);
        preset(crash, o.crash, 0.01);
        preset(state, o.lose_state, 0.3);
        preset(late, o.late, 0.01);
        preset(skew, o.skew, 0.01);
        preset(stuck, o.stuck, 0.1);
        preset(fail, o.fail, 0.1);
        preset(cuts, o.partitions, 2u);
        preset(churn, o.churn, std::max(2u, o.nodes / 10));
        preset(changes, o.load_changes, std::max(2u, o.nodes / 10));
    }
    int status = kHeld;
    for (std::uint32_t i = 0; i < runs; i++) {
        auto begin = std::chrono::steady_clock::now();
        sim::result r = sim::simulation(o).run();
        double wall =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (json) {
            fmt::print("{}\n", to_json(o, r, wall).dump());
        } else {
            fmt::print(
                "seed {}: {} nodes, {:.0f} s in {:.1f} s: {} messages ({} lost), {} asks "
                "({} refused), {} moves of {} ranks, {} failed, {} deaths; imbalance {:.2f} -> "
                "{:.2f}, pace of the jobs {:.2f} -> {:.2f}, worst {:.2f} -> {:.2f}; last move at "
                "{:.0f} s\n",
                o.seed, o.nodes, o.seconds, wall, r.messages, r.lost, r.asks, r.refused_asks,
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
        for (const std::string &v : r.violations)
            fmt::print(stderr, "zcmd-sim: seed {}: {}\n", o.seed, v);
        if (!r.violations.empty()) {
            status = kViolated;
            std::string words;
            for (int k = 1; k < argc; k++) {
                std::string word = argv[k];
                if (word == "--seed" || word == "--runs")
                    k++;
                else if (!word.starts_with("--seed=") && !word.starts_with("--runs="))
                    words += " " + word;
            }
            fmt::print(stderr, "zcmd-sim: replay: zcmd-sim --seed {}{}\n", o.seed, words);
        }
        std::fflush(stdout);
        o.seed++;
    }
    return status;
}
