/* SPDX-License-Identifier: BSD-3-Clause */
#include "scotch_cut.h"

#ifdef ZC_HAVE_SCOTCH

#include <algorithm>
#include <cstdio>
#include <map>
#include <scotch.h>
#include <stdexcept>

bool scotch_available()
{
    return true;
}

namespace {

using weights = std::vector<std::map<uint32_t, double>>;

weights weigh(std::span<const zcp_flow_t> flows, uint32_t ranks)
{
    weights out(ranks);
    for (const zcp_flow_t &f : flows) {
        const double w = static_cast<double>(f.bytes) + f.messages;
        out[f.src][f.dst] += w;
        out[f.dst][f.src] += w;
    }
    return out;
}

double towards(const std::map<uint32_t, double> &links, const std::vector<uint32_t> &part_of,
               uint32_t part)
{
    double sum = 0;
    for (const auto &[rank, w] : links)
        sum += part_of[rank] == part ? w : 0;
    return sum;
}

/** Scotch balances, but does not promise: moves ranks out of parts that are too large. */
void enforce(const weights &links, uint32_t parts, uint32_t max_size,
             std::vector<uint32_t> &part_of)
{
    std::vector<uint32_t> size(parts, 0);
    for (const uint32_t part : part_of)
        size[part]++;
    for (uint32_t from = 0; from < parts; from++) {
        while (size[from] > max_size) {
            double best = -1e300;
            uint32_t who = 0;
            uint32_t where = 0;
            for (uint32_t rank = 0; rank < part_of.size(); rank++) {
                if (part_of[rank] != from)
                    continue;
                for (uint32_t to = 0; to < parts; to++) {
                    const double gain =
                        towards(links[rank], part_of, to) - towards(links[rank], part_of, from);
                    if (to != from && size[to] < max_size && gain > best) {
                        best = gain;
                        who = rank;
                        where = to;
                    }
                }
            }
            part_of[who] = where;
            size[from]--;
            size[where]++;
        }
    }
}

} // namespace

std::vector<uint32_t> scotch_cut(std::span<const zcp_flow_t> flows, uint32_t ranks,
                                 uint32_t max_size)
{
    const weights links = weigh(flows, ranks);
    double heaviest = 1;
    for (const auto &row : links) {
        for (const auto &[rank, w] : row)
            heaviest = std::max(heaviest, w);
    }
    std::vector<SCOTCH_Num> first{0};
    std::vector<SCOTCH_Num> ends;
    std::vector<SCOTCH_Num> loads;
    for (const auto &row : links) {
        for (const auto &[rank, w] : row) {
            ends.push_back(static_cast<SCOTCH_Num>(rank));
            loads.push_back(1 + static_cast<SCOTCH_Num>(w / heaviest * 100000));
        }
        first.push_back(static_cast<SCOTCH_Num>(ends.size()));
    }

    const uint32_t parts = (ranks + max_size - 1) / max_size;
    std::vector<SCOTCH_Num> part(ranks);
    SCOTCH_Graph graph;
    SCOTCH_Strat strategy;
    SCOTCH_randomReset(); /* or results depend on what was cut before */
    int failed = SCOTCH_graphInit(&graph) || SCOTCH_stratInit(&strategy);
    failed = failed ||
             SCOTCH_graphBuild(&graph, 0, static_cast<SCOTCH_Num>(ranks), first.data(), nullptr,
                               nullptr, nullptr, static_cast<SCOTCH_Num>(ends.size()), ends.data(),
                               loads.data()) ||
             SCOTCH_stratGraphMapBuild(&strategy, SCOTCH_STRATQUALITY | SCOTCH_STRATBALANCE,
                                       static_cast<SCOTCH_Num>(parts), 0.01) ||
             SCOTCH_graphPart(&graph, static_cast<SCOTCH_Num>(parts), &strategy, part.data());
    SCOTCH_stratExit(&strategy);
    SCOTCH_graphExit(&graph);
    if (failed)
        throw std::runtime_error("scotch: cannot partition");
    std::vector<uint32_t> out(part.begin(), part.end());
    enforce(links, parts, max_size, out);
    return out;
}

#else

bool scotch_available()
{
    return false;
}

std::vector<uint32_t> scotch_cut(std::span<const zcp_flow_t>, uint32_t, uint32_t)
{
    return {};
}

#endif
