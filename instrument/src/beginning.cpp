/* SPDX-License-Identifier: BSD-3-Clause */
#include "beginning.h"

#include "known_calls.h"
#include "known_values.h"
#include "state.h"

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;

namespace {

class walk {
  public:
    walk(const program &all, const call_graph &calls, const loop &one)
        : program_(all), calls_(calls), loop_(one)
    {
        enter(0);
    }

    std::set<const clang::CallExpr *> found;

  private:
    /* Follows frame @number of the way from its beginning to the loop. Is the loop's body run in
     * any case before the function ends? */
    bool enter(std::size_t number)
    {
        const auto &[in, call] = loop_.way[number];
        const auto *body = call ? nullptr : body_block(*in);
        std::vector<const clang::CFGBlock *> left{&in->cfg->getEntry()};
        std::set<const clang::CFGBlock *> seen;
        bool may_end = false;
        while (!left.empty()) {
            const auto *block = left.back();
            left.pop_back();
            if (!block || block == body || !seen.insert(block).second)
                continue;
            may_end |= block == &in->cfg->getExit();
            if (!pass(*in, number, *block) || block->hasNoReturnElement())
                continue;
            const bool is_test = !call && block->getTerminatorStmt() == loop_.statement;
            for (const auto &next : block->succs())
                if (!is_test || next.getReachableBlock() == body || !has_a_round(*in))
                    left.push_back(next.getReachableBlock());
        }
        return !may_end;
    }

    /* Where the body of the loop begins; in a do loop behind the block that jumps back. */
    const clang::CFGBlock *body_block(const function &in) const
    {
        for (const auto *block : *in.cfg) {
            if (block->getTerminatorStmt() != loop_.statement || block->succ_size() == 0)
                continue;
            const auto *body = block->succ_begin()->getReachableBlock();
            const bool is_jump = body && body->empty() && body->succ_size() == 1 &&
                                 llvm::isa<clang::DoStmt>(loop_.statement);
            return is_jump ? body->succ_begin()->getReachableBlock() : body;
        }
        return nullptr;
    }

    bool has_a_round(const function &in) const
    {
        const auto *counted = dyn_cast<clang::ForStmt>(loop_.statement);
        const auto known = counted ? rounds_of(in, counted, {}) : std::optional<rounds>();
        return known && !known->values.empty();
    }

    /* Does the flow come to the end of @block without the loop's body? */
    bool pass(const function &in, std::size_t number, const clang::CFGBlock &block)
    {
        for (const auto &element : block) {
            const auto statement = element.getAs<clang::CFGStmt>();
            const auto *call =
                statement ? dyn_cast<clang::CallExpr>(statement->getStmt()) : nullptr;
            if (!call)
                continue;
            if (call == loop_.way[number].call) {
                if (enter(number + 1))
                    return false;
                continue;
            }
            found.insert(call);
            const auto *callee = callee_of(call);
            const auto *known =
                callee && !program_.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
            if (known && known->what == known_call::kind::ends)
                return false;
            for (const auto &[where, below] : calls_.calls_below(in, call))
                found.insert(below);
        }
        return true;
    }

    const program &program_;
    const call_graph &calls_;
    const loop &loop_;
};

} // namespace

std::set<const clang::CallExpr *> calls_before(const program &all, const call_graph &calls,
                                               const loop &one)
{
    return walk(all, calls, one).found;
}

std::string why_once(const program &all, const clang::CallExpr *call)
{
    const auto *callee = callee_of(call);
    const auto *known =
        callee && !all.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
    if (!known)
        return {};
    if (known->name == "fopen" && call->getNumArgs() > 1) {
        const auto *mode = dyn_cast<clang::StringLiteral>(call->getArg(1)->IgnoreParenImpCasts());
        if (!mode || mode->getString().empty() || mode->getString().front() != 'r' ||
            mode->getString().find('+') != llvm::StringRef::npos)
            return "a file is opened for writing before the safe point: a successor, which runs "
                   "this again, would overwrite it";
    }
    for (unsigned i = 0; i < call->getNumArgs(); i++)
        if (known->effect(i) == 'M' || known->effect(i) == 'N')
            return std::string(known->name) +
                   "() before the safe point: a successor cannot be answered from the record";
    return {};
}

findings run_again_around(const program &all, const call_graph &calls, const loop &one)
{
    findings found;
    const auto around = cycle_of(one);
    if (one.way.empty() || around.statement == one.statement)
        return found;
    const auto before = calls_before(all, calls, one);
    for (const auto &[in, call] : calls.calls_below(*around.in, around.statement))
        if (const auto why = before.count(call) ? why_once(all, call) : ""; !why.empty())
            found.push_back({in->place(call), why});
    return found;
}

} // namespace zc::instrument
