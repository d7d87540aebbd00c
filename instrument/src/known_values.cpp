/* SPDX-License-Identifier: BSD-3-Clause */
#include "known_values.h"

#include <limits>

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;

namespace {

/* Of a loop that has more rounds each is as any other. */
constexpr std::size_t kRounds = 64;

using known_number = std::optional<std::int64_t>;

/* Numbers that an int holds: what is larger may be another one in the program. */
known_number within_int(std::int64_t value)
{
    if (value < std::numeric_limits<std::int32_t>::min() ||
        value > std::numeric_limits<std::int32_t>::max())
        return {};
    return value;
}

known_number combined(clang::BinaryOperatorKind how, std::int64_t a, std::int64_t b)
{
    switch (how) {
    case clang::BO_Add:
        return within_int(a + b);
    case clang::BO_Sub:
        return within_int(a - b);
    case clang::BO_Mul:
        return within_int(a * b);
    case clang::BO_Div:
        return b ? within_int(a / b) : known_number();
    case clang::BO_Rem:
        return b ? within_int(a % b) : known_number();
    case clang::BO_LT:
        return a < b;
    case clang::BO_GT:
        return a > b;
    case clang::BO_LE:
        return a <= b;
    case clang::BO_GE:
        return a >= b;
    case clang::BO_EQ:
        return a == b;
    case clang::BO_NE:
        return a != b;
    case clang::BO_LAnd:
        return a && b;
    case clang::BO_LOr:
        return a || b;
    case clang::BO_And:
        return a & b;
    case clang::BO_Or:
        return a | b;
    case clang::BO_Xor:
        return a ^ b;
    default:
        return {};
    }
}

known_number of_unary(const function &in, const clang::UnaryOperator *op, const known_values &known)
{
    const auto inner = number_of(in, op->getSubExpr(), known);
    if (!inner)
        return {};
    switch (op->getOpcode()) {
    case clang::UO_Minus:
        return within_int(-*inner);
    case clang::UO_Plus:
        return inner;
    case clang::UO_LNot:
        return !*inner;
    default:
        return {};
    }
}

const clang::VarDecl *named_by(const clang::Expr *value)
{
    const auto *reference = dyn_cast_or_null<clang::DeclRefExpr>(value->IgnoreParenImpCasts());
    return reference ? dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
}

/* By how much @step makes @counter grow. */
known_number growth_of(const function &in, const clang::Expr *step, const clang::VarDecl *counter,
                       const known_values &known)
{
    if (const auto *count = dyn_cast_or_null<clang::UnaryOperator>(step))
        if (count->isIncrementDecrementOp() && named_by(count->getSubExpr()) == counter)
            return count->isIncrementOp() ? 1 : -1;
    const auto *op = dyn_cast_or_null<clang::BinaryOperator>(step);
    if (!op || named_by(op->getLHS()) != counter)
        return {};
    const auto by = number_of(in, op->getRHS(), known);
    if (op->getOpcode() == clang::BO_AddAssign)
        return by;
    return by && op->getOpcode() == clang::BO_SubAssign ? known_number(-*by) : known_number();
}

const clang::VarDecl *counter_of(const clang::ForStmt *loop)
{
    if (const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(loop->getInit()))
        return declaration->isSingleDecl() ? dyn_cast<clang::VarDecl>(declaration->getSingleDecl())
                                           : nullptr;
    const auto *op = dyn_cast_or_null<clang::BinaryOperator>(loop->getInit());
    return op && op->getOpcode() == clang::BO_Assign ? named_by(op->getLHS()) : nullptr;
}

} // namespace

known_number number_of(const function &in, const clang::Expr *value, const known_values &known)
{
    clang::Expr::EvalResult evaluated;
    if (!value || !value->getType()->isIntegralOrEnumerationType())
        return {};
    if (value->EvaluateAsInt(evaluated, in.context()))
        return evaluated.Val.getInt().getExtValue();
    value = value->IgnoreParenImpCasts();
    if (value->getType()->isUnsignedIntegerType() || !value->getType()->isIntegerType())
        return {};
    if (const auto found = known.find(named_by(value)); found != known.end())
        return found->second.number;
    if (const auto *op = dyn_cast<clang::UnaryOperator>(value))
        return of_unary(in, op, known);
    if (const auto *choice = dyn_cast<clang::ConditionalOperator>(value)) {
        const auto condition = number_of(in, choice->getCond(), known);
        return condition
                   ? number_of(in, *condition ? choice->getTrueExpr() : choice->getFalseExpr(),
                               known)
                   : known_number();
    }
    const auto *op = dyn_cast<clang::BinaryOperator>(value);
    if (!op || op->isAssignmentOp())
        return {};
    const auto left = number_of(in, op->getLHS(), known);
    const auto right = number_of(in, op->getRHS(), known);
    return left && right ? combined(op->getOpcode(), *left, *right) : known_number();
}

bool is_kept(const function &in, const clang::Stmt *root, const clang::VarDecl *variable)
{
    bool found = variable->hasLocalStorage();
    for_each_statement(in.decl->getBody(), [&](const clang::Stmt *each) {
        const auto *op = dyn_cast_or_null<clang::UnaryOperator>(each);
        found &=
            !(op && op->getOpcode() == clang::UO_AddrOf && named_by(op->getSubExpr()) == variable);
    });
    for_each_statement(root, [&](const clang::Stmt *each) {
        if (const auto *op = dyn_cast_or_null<clang::UnaryOperator>(each))
            found &= !(op->isIncrementDecrementOp() && named_by(op->getSubExpr()) == variable);
        if (const auto *op = dyn_cast_or_null<clang::BinaryOperator>(each))
            found &= !(op->isAssignmentOp() && named_by(op->getLHS()) == variable);
    });
    return found;
}

const clang::Expr *start_of(const clang::ForStmt *loop, const clang::VarDecl *counter)
{
    const clang::Expr *found = nullptr;
    for_each_statement(loop->getInit(), [&](const clang::Stmt *each) {
        const auto *op = dyn_cast_or_null<clang::BinaryOperator>(each);
        if (op && op->getOpcode() == clang::BO_Assign && named_by(op->getLHS()) == counter)
            found = op->getRHS();
        if (const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(each))
            for (const auto *decl : declaration->decls())
                if (decl == counter)
                    found = counter->getInit();
    });
    return found;
}

std::optional<rounds> rounds_of(const function &in, const clang::ForStmt *loop,
                                const known_values &known)
{
    const auto *counter = counter_of(loop);
    if (!counter || !loop->getCond() || !is_kept(in, loop->getBody(), counter) ||
        !is_kept(in, loop->getCond(), counter))
        return {};
    const auto first = number_of(in, start_of(loop, counter), known);
    const auto step = growth_of(in, loop->getInc(), counter, known);
    if (!first || !step)
        return {};
    rounds found{counter, {}};
    auto inside = known;
    for (auto value = *first;; value += *step) {
        inside[counter] = {value, std::to_string(value)};
        const auto goes_on = number_of(in, loop->getCond(), inside);
        if (!goes_on || found.values.size() > kRounds)
            return {};
        if (!*goes_on)
            return found;
        found.values.push_back(value);
    }
}

} // namespace zc::instrument
