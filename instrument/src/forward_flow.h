/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <clang/Analysis/CFG.h>
#include <map>
#include <set>

namespace zc::instrument {

/**
 * A forward data-flow analysis: what holds at the entry of each block of @cfg that can be reached,
 * by its number, where @first holds at the entry of the function. Facts are a set or a map; what
 * holds on any way into a block holds there. @through(block, facts) makes of what holds at the
 * entry of a block what holds at its end. It is called again until nothing is added.
 * @along(block, number, facts) are those that hold on the way to its successor @number.
 */
template <typename Facts, typename Through, typename Along>
std::map<unsigned, Facts> forward_flow(const clang::CFG &cfg, const Facts &first, Through through,
                                       Along along)
{
    std::map<unsigned, Facts> entries;
    entries[cfg.getEntry().getBlockID()] = first;
    std::set<unsigned> seen;
    for (bool grows = true; grows;) {
        grows = false;
        for (auto it = cfg.rbegin(); it != cfg.rend(); ++it) {
            const clang::CFGBlock *block = *it;
            if (!entries.count(block->getBlockID()))
                continue;
            Facts facts = entries[block->getBlockID()];
            through(*block, facts);
            if (block->hasNoReturnElement())
                continue;
            unsigned number = 0;
            for (const auto &next : block->succs())
                if (const auto *successor = next.getReachableBlock(); number++, successor) {
                    Facts &known = entries[successor->getBlockID()];
                    const auto before = known.size();
                    const Facts &there = along(*block, number - 1, facts);
                    known.insert(there.begin(), there.end());
                    grows |= seen.insert(successor->getBlockID()).second || known.size() > before;
                }
        }
    }
    return entries;
}

/** The same, where all that holds at the end of a block holds at the entry of its successors. */
template <typename Facts, typename Through>
std::map<unsigned, Facts> forward_flow(const clang::CFG &cfg, const Facts &first, Through through)
{
    return forward_flow(cfg, first, through,
                        [](const clang::CFGBlock &, unsigned, const Facts &facts) -> const Facts & {
                            return facts;
                        });
}

} // namespace zc::instrument
