/* SPDX-License-Identifier: BSD-3-Clause */
#include "comparison.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "checksum_log.h"
#include "error.h"
#include "position.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

struct state {
    std::map<std::string, json> arrays; /* by name */
    bool complete = false;
};

/** What one rank has recorded. */
struct history {
    std::map<std::int64_t, state> points;
    std::vector<std::int64_t> moves;

    explicit history(const std::string &path)
    {
        std::ifstream file(path);
        if (!file)
            throw error(ENOENT, "nothing was recorded in " + path +
                                    ": does the program call zcm_safe_point() often enough?");
        for (std::string text; std::getline(file, text);) {
            const json line = json::parse(text, nullptr, false);
            if (line.is_discarded()) /* the process was killed while it wrote */
                continue;
            if (line.contains("moved"))
                moves.push_back(line["moved"]);
            else if (line.contains("end"))
                points[line["at"]].complete = true;
            else
                points[line["at"]].arrays[line["name"]] = line;
        }
    }
    /** The last move before @point, 0 if none. */
    std::int64_t last_move(std::int64_t point) const
    {
        std::int64_t last = 0;
        for (const std::int64_t one : moves)
            if (one <= point)
                last = std::max(last, one);
        return last;
    }
};

std::string words_of(const json &a)
{
    return std::to_string(a["count"].get<std::uint64_t>()) + " of " + a["type"].get<std::string>();
}

/** What differs between two arrays; "" if nothing. */
std::string difference(const json &one, const json &other)
{
    if (one["type"] != other["type"] || one["count"] != other["count"])
        return "is " + words_of(one) + " without moves, " + words_of(other) + " with them";
    const json &sums = one["sums"], &others = other["sums"];
    for (std::size_t i = 0; i < sums.size(); i++) {
        if (sums[i] == others[i])
            continue;
        const std::uint64_t units = one["units"], count = one["count"];
        const std::uint64_t part = units_in_part(units), each = units / count;
        const std::uint64_t first = i * part / each;
        const std::uint64_t last = (std::min(units, (i + 1) * part) - 1) / each;
        if (count == 1)
            return "differs";
        return first == last ? "differs in element " + std::to_string(first)
                             : "differs between elements " + std::to_string(first) + " and " +
                                   std::to_string(last);
    }
    return "";
}

/** Of one rank at one safe point; in sentences. */
std::vector<std::string> compared(const state &one, const state &other)
{
    std::vector<std::string> found;
    for (const auto &[name, a] : one.arrays) {
        const auto there = other.arrays.find(name);
        const std::string what = there == other.arrays.end() ? "is not registered with moves"
                                                             : difference(a, there->second);
        if (!what.empty())
            found.push_back("'" + name + "' " + what);
    }
    for (const auto &[name, a] : other.arrays)
        if (!one.arrays.contains(name))
            found.push_back("'" + name + "' is registered only with moves");
    return found;
}

/** "rank 1, which had moved at 20": what it was before @point. */
std::string subject(int rank, const history &of, std::int64_t point)
{
    const std::int64_t moved = of.last_move(point);
    return "rank " + std::to_string(rank) +
           (moved ? ", which had moved at " + std::to_string(moved) : "");
}

/** How far each rank has come in @second; what differs from @first in that, if @all has nothing. */
void compare_positions(comparison &all, const std::string &first, const std::string &second,
                       const std::vector<history> &histories)
{
    const std::vector<position> one = positions_in(first), other = positions_in(second);
    const bool is_new = all.differences.empty();
    for (std::size_t rank = 0; rank < std::min({one.size(), other.size(), histories.size()});
         rank++) {
        const std::int64_t here = other[rank].safe_point;
        const std::string where = subject(static_cast<int>(rank), histories[rank], here) +
                                  (histories[rank].last_move(here) ? "," : "") +
                                  " has come to safe point " + std::to_string(here);
        all.positions.push_back(where +
                                (other[rank].ended ? ", and has called zcm_finalize()" : ""));
        if (!is_new || here == one[rank].safe_point)
            continue;
        all.differ_in_length = true;
        all.differences.push_back(where + ", without moves to " +
                                  std::to_string(one[rank].safe_point));
    }
}

int ranks_in(const std::string &directory)
{
    int ranks = 0;
    while (std::filesystem::exists(directory + "/rank-" + std::to_string(ranks)))
        ranks++;
    return ranks;
}

} // namespace

comparison comparison::of(const std::string &first, const std::string &second)
{
    comparison all;
    std::int64_t earliest = 0; /* safe point of what has been found */
    const int ranks = std::max({1, ranks_in(first), ranks_in(second)});
    std::vector<history> histories; /* of the second run */
    std::set<std::string> names;
    for (int rank = 0; rank < ranks; rank++) {
        const std::string name = "/rank-" + std::to_string(rank);
        const history one(first + name);
        const history &other = histories.emplace_back(second + name);
        all.moves += other.moves.size();
        for (const auto &[at, saved] : one.points)
            for (const auto &[array, ignored] : saved.arrays)
                names.insert(array);
        for (const auto &[at, saved] : one.points) {
            const auto there = other.points.find(at);
            std::vector<std::string> found;
            if (there == other.points.end() || !there->second.complete)
                found = {"did not come to this safe point with moves"};
            else
                found = compared(saved, there->second);
            if (found.empty()) {
                all.points++;
                continue;
            }
            if (!all.differences.empty() && at > earliest)
                break;
            if (at < earliest)
                all.differences.clear();
            earliest = at;
            for (const std::string &what : found)
                all.differences.push_back("safe point " + std::to_string(at) + ": " +
                                          subject(rank, other, at) + ": " + what);
            break;
        }
    }
    compare_positions(all, first, second, histories);
    all.registered.assign(names.begin(), names.end());
    return all;
}

} // namespace zc::migrate
