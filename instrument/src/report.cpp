/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace zc::instrument {

namespace {

nlohmann::json as_json(const findings &all)
{
    auto list = nlohmann::json::array();
    for (const auto &one : all)
        list.push_back({{"place", one.place}, {"reason", one.reason}});
    return list;
}

std::string line(const finding &one)
{
    return one.place.empty() ? one.reason : one.place + ": " + one.reason;
}

std::string list(const std::string &title, const findings &all)
{
    std::string text;
    for (const auto &one : all)
        text += "  " + line(one) + "\n";
    return text.empty() ? text : title + "\n" + text;
}

findings why_not(const loop &one, double threshold)
{
    if (!one.refused.empty())
        return one.refused;
    if (!one.communicates)
        return {{"", "it does not communicate"}};
    return {{"", fmt::format("it costs less than {:.3f} of the program (--threshold)", threshold)}};
}

} // namespace

std::string report_text(const analysis &found)
{
    std::string text;
    if (!found.chosen) {
        text += found.loops.empty() ? "no loops\n" : "no loop can have a safe point\n";
        std::vector<const loop *> loops;
        for (const auto &one : found.loops)
            loops.push_back(&one);
        std::stable_sort(loops.begin(), loops.end(),
                         [](auto *one, auto *other) { return one->cost > other->cost; });
        for (const auto *one : loops)
            text += list(
                fmt::format("loop {} ({}(), cost {:.3f}):", one->place, one->in->name, one->cost),
                why_not(*one, found.threshold));
        return text + list("refused:", found.refused);
    }
    text += fmt::format("safe point: loop {} in {}(), cost {:.3f}\n", found.chosen->place,
                        found.chosen->in->name, found.chosen->cost);
    text += "registered:\n";
    for (const auto &one : found.live.roots)
        text += fmt::format("  {}: {}\n", one.name, one.type);
    return text + list("not registered:", found.live.left_out) +
           list("assumed:", found.chosen->assumed) + list("note:", found.notes) +
           list("refused:", found.refused);
}

std::string report_json(const analysis &found)
{
    nlohmann::json all;
    all["done"] = found.is_done();
    all["refused"] = as_json(found.refused);
    all["notes"] = as_json(found.notes);
    all["assumed"] = as_json(found.chosen ? found.chosen->assumed : findings{});
    all["loops"] = nlohmann::json::array();
    for (const auto &one : found.loops)
        all["loops"].push_back({{"place", one.place},
                                {"function", one.in->name},
                                {"cost", one.cost},
                                {"depth", one.depth},
                                {"communicates", one.communicates},
                                {"chosen", &one == found.chosen},
                                {"refused", as_json(one.refused)},
                                {"assumed", as_json(one.assumed)}});
    all["registered"] = nlohmann::json::array();
    for (const auto &one : found.live.roots)
        all["registered"].push_back({{"name", one.name}, {"type", one.type}});
    all["left_out"] = as_json(found.live.left_out);
    return all.dump(2) + "\n";
}

} // namespace zc::instrument
