/* SPDX-License-Identifier: BSD-3-Clause */
#include "analysis.h"

#include "beginning.h"
#include "messages.h"
#include "uniformity.h"

#include <algorithm>

namespace zc::instrument {

namespace {

void append(findings &to, const findings &more)
{
    to.insert(to.end(), more.begin(), more.end());
}

/* What is no obstacle, but worth knowing. */
findings find_notes(const program &all)
{
    findings found;
    for_each_statement(all, [&found](const function *in, const clang::Stmt *each) {
        const auto *call = llvm::dyn_cast_or_null<clang::CallExpr>(each);
        const auto *callee = call ? callee_of(call) : nullptr;
        const std::string called = callee ? callee->getNameAsString() : "";
        if (called == "MPI_Wtime" || called == "clock_gettime" || called == "gettimeofday")
            found.push_back({in->place(call), "times before and after a move are of two clocks"});
        if (called == "fopen")
            found.push_back({in->place(call), "the file has to be on all hosts"});
    });
    return found;
}

} // namespace

analysis analyse(std::unique_ptr<program> sources, const settings &how)
{
    analysis found;
    found.sources = std::move(sources);
    const auto &all = *found.sources;
    if (!all.find("main")) {
        found.refused.push_back({"", "there is no main() in the sources"});
        return found;
    }
    append(found.refused, all.clashes());
    if (!found.refused.empty())
        return found;
    const accesses used(all);
    const call_graph calls(all);
    const liveness live(all, used);
    const resources opened(all);
    const auto assignments = assignments_of(all);
    const pointers led(all, assignments, used);
    const uniformity equal(all, calls, used, assignments, led);
    const messages sent(all, calls, used, equal);
    found.threshold = how.threshold;
    found.loops = find_loops(all, calls);
    for (auto &one : found.loops) {
        if (!one.refused.empty())
            continue;
        append(one.refused, opened.open_at(one));
        const auto matched = sent.judge(one);
        append(one.refused, matched.refused);
        one.assumed = matched.assumed;
        if (how.is_strict)
            append(one.refused, matched.assumed);
        append(one.refused, equal.differences(one));
        append(one.refused, run_again_around(all, calls, one));
    }
    if (how.loop.empty()) {
        found.chosen = choose(found.loops, how.threshold);
    } else {
        for (const auto &one : found.loops)
            if (one.place == how.loop)
                found.chosen = &one;
        if (!found.chosen)
            found.refused.push_back({how.loop, "there is no loop"});
    }
    if (!found.chosen)
        return found;
    found.notes = find_notes(all);
    append(found.refused, found.chosen->refused);
    append(found.refused, find_obstacles(all, calls, used, opened, *found.chosen));
    const uniformity again(all, calls, used, assignments, led, uniformity::between::runs,
                           found.chosen);
    found.rounds = equal.rounds() + again.rounds();
    found.live = find_state(all, used, live, opened, again, *found.chosen);
    append(found.refused, found.live.refused);
    if (found.refused.empty()) {
        found.result = rewrite(all, *found.chosen, found.live);
        append(found.refused, found.result.refused);
    }
    return found;
}

} // namespace zc::instrument
