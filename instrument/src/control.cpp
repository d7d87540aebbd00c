/* SPDX-License-Identifier: BSD-3-Clause */
#include "control.h"

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::isa;
using llvm::isa_and_nonnull;

namespace {

bool is_before(const function &in, const clang::Stmt *one, const clang::Stmt *other)
{
    return in.context().getSourceManager().isBeforeInTranslationUnit(one->getBeginLoc(),
                                                                     other->getBeginLoc());
}

/* Which part of @control @child is; empty: one that is run in any case. */
std::string branch_of(const function &in, const clang::Stmt *control, const clang::Stmt *child,
                      const clang::Stmt *at)
{
    if (const auto *choice = dyn_cast<clang::IfStmt>(control))
        return child == choice->getThen() ? "then" : child == choice->getElse() ? "else" : "";
    if (const auto *choice = dyn_cast<clang::AbstractConditionalOperator>(control))
        return child == choice->getTrueExpr()    ? "then"
               : child == choice->getFalseExpr() ? "else"
                                                 : "";
    if (const auto *both = dyn_cast<clang::BinaryOperator>(control))
        return child != both->getRHS() ? "" : both->getOpcode() == clang::BO_LAnd ? "then" : "else";
    if (const auto *choice = dyn_cast<clang::SwitchStmt>(control)) {
        const clang::Stmt *nearest = nullptr;
        for (const auto *label = choice->getSwitchCaseList(); label;
             label = label->getNextSwitchCase())
            if (!is_before(in, at, label) && (!nearest || is_before(in, nearest, label)))
                nearest = label;
        return child == choice->getBody() ? "case " + (nearest ? exact_place(in, nearest) : "")
                                          : "";
    }
    return "loop";
}

/* The loop, or switch, that a break or continue is of. */
const clang::Stmt *target_of(const function &in, const clang::Stmt *jump)
{
    for (const auto *up = parent_of(in, jump); up; up = parent_of(in, up))
        if (body_of(up) || (isa<clang::BreakStmt>(jump) && isa<clang::SwitchStmt>(up)))
            return up;
    return nullptr;
}

bool decides(const function &in, const clang::Stmt *statement)
{
    return !is_block(in, statement) && (condition_of_control(statement) || body_of(statement));
}

bool has_labels(const clang::Stmt *root)
{
    bool found = false;
    for_each_statement(
        root, [&](const clang::Stmt *each) { found |= isa_and_nonnull<clang::LabelStmt>(each); });
    return found;
}

/* What lets @jump skip @at, if it does. */
void add_jump(const function &in, const clang::Stmt *root, const clang::Stmt *at, const loop *of,
              const clang::Stmt *jump, std::vector<control> &to)
{
    const bool is_of_function = isa<clang::ReturnStmt, clang::GotoStmt>(jump);
    const auto *target = is_of_function ? root : target_of(in, jump);
    /* What leaves the loop of the safe point comes to no safe point, if that is run once. */
    const bool leaves = of && (isa<clang::ReturnStmt>(jump) ||
                               (isa<clang::BreakStmt>(jump) && target == of->statement));
    if (!target || !is_below(in, at, target) || (leaves && of->depth == 0))
        return;
    bool is_repeated = leaves;
    for (const auto *up = parent_of(in, jump); up && up != root; up = parent_of(in, up))
        is_repeated |= body_of(up) && !is_block(in, up) && is_below(in, at, up);
    const bool is_behind = is_before(in, jump, at);
    if (!is_behind && (!is_repeated || isa<clang::ContinueStmt>(jump)) &&
        !isa<clang::GotoStmt>(jump))
        return;
    const auto before = to.size();
    const clang::Stmt *child = jump;
    for (const auto *up = parent_of(in, jump); up && up != root; up = parent_of(in, up)) {
        if (is_below(in, at, child))
            break; /* it decides about both, and is known by its branch */
        if (decides(in, up))
            if (const auto branch = branch_of(in, up, child, jump); !branch.empty())
                to.push_back({up, (is_behind ? "behind " : "before ") + branch, true});
        child = up;
    }
    if (to.size() == before && isa<clang::GotoStmt>(jump))
        to.push_back({jump, is_behind ? "behind" : "before", true});
    if (to.size() == before + 1)
        to.back().is_alone = is_behind && !isa<clang::GotoStmt>(jump) && !has_labels(root);
}

} // namespace

std::string exact_place(const function &in, const clang::Stmt *at)
{
    const auto &sources = in.context().getSourceManager();
    return in.place(at) + "." + std::to_string(sources.getExpansionColumnNumber(at->getBeginLoc()));
}

bool is_block(const function &in, const clang::Stmt *statement)
{
    const auto *once = dyn_cast<clang::DoStmt>(statement);
    clang::Expr::EvalResult value;
    return once && once->getCond()->EvaluateAsInt(value, in.context()) && !value.Val.getInt();
}

bool has_jumps(const function &in, const clang::Stmt *loop)
{
    bool found = false;
    for_each_statement(body_of(loop), [&](const clang::Stmt *each) {
        found |= isa_and_nonnull<clang::ReturnStmt, clang::GotoStmt, clang::IndirectGotoStmt,
                                 clang::LabelStmt>(each) ||
                 (isa_and_nonnull<clang::BreakStmt, clang::ContinueStmt>(each) &&
                  target_of(in, each) == loop);
    });
    return found;
}

const clang::Stmt *parent_of(const function &in, const clang::Stmt *at)
{
    return in.parents->getParent(const_cast<clang::Stmt *>(at));
}

bool is_below(const function &in, const clang::Stmt *at, const clang::Stmt *above)
{
    for (; at; at = parent_of(in, at))
        if (at == above)
            return true;
    return false;
}

const clang::Expr *condition_of_control(const clang::Stmt *statement)
{
    if (const auto *choice = dyn_cast<clang::IfStmt>(statement))
        return choice->getCond();
    if (const auto *choice = dyn_cast<clang::SwitchStmt>(statement))
        return choice->getCond();
    if (const auto *choice = dyn_cast<clang::BinaryConditionalOperator>(statement))
        return choice->getCommon();
    if (const auto *choice = dyn_cast<clang::ConditionalOperator>(statement))
        return choice->getCond();
    if (const auto *both = dyn_cast<clang::BinaryOperator>(statement))
        return both->isLogicalOp() ? both->getLHS() : nullptr;
    return condition_of(statement);
}

std::vector<control> controls_of(const function &in, const clang::Stmt *root, const clang::Stmt *at,
                                 const loop *of)
{
    std::vector<control> found;
    const clang::Stmt *child = at;
    for (const auto *up = parent_of(in, at); up && up != root; up = parent_of(in, up)) {
        if (decides(in, up))
            if (const auto branch = branch_of(in, up, child, at); !branch.empty())
                found.push_back({up, branch, false});
        child = up;
    }
    for_each_statement(root, [&](const clang::Stmt *each) {
        if (isa_and_nonnull<clang::BreakStmt, clang::ContinueStmt, clang::ReturnStmt,
                            clang::GotoStmt>(each))
            add_jump(in, root, at, of, each, found);
    });
    return found;
}

} // namespace zc::instrument
