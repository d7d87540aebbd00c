/* SPDX-License-Identifier: BSD-3-Clause */
#include "known_values.h"

#include <limits>

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;

namespace {

using known_number = std::optional<std::int64_t>;

/* @value, if @type holds it: what it does not hold is another number in the program. */
known_number held_by(const function &in, clang::QualType type, known_number value)
{
    if (!value || !type->isIntegralOrEnumerationType())
        return {};
    if (type->isBooleanType())
        return *value != 0;
    const auto width = in.context().getIntWidth(type);
    if (type->isUnsignedIntegerOrEnumerationType())
        return *value >= 0 && (width > 62 || *value < std::int64_t(1) << width) ? value
                                                                                : known_number();
    const auto limit = std::int64_t(1) << (width > 62 ? 62 : width - 1);
    return width > 62 || (*value >= -limit && *value < limit) ? value : known_number();
}

known_number divided(clang::BinaryOperatorKind how, std::int64_t a, std::int64_t b)
{
    if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min()))
        return {};
    return how == clang::BO_Div ? a / b : a % b;
}

known_number combined(clang::BinaryOperatorKind how, std::int64_t a, std::int64_t b)
{
    std::int64_t result = 0;
    switch (how) {
    case clang::BO_Add:
        return __builtin_add_overflow(a, b, &result) ? known_number() : result;
    case clang::BO_Sub:
        return __builtin_sub_overflow(a, b, &result) ? known_number() : result;
    case clang::BO_Mul:
        return __builtin_mul_overflow(a, b, &result) ? known_number() : result;
    case clang::BO_Div:
    case clang::BO_Rem:
        return divided(how, a, b);
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
        return combined(clang::BO_Sub, 0, *inner);
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
    return by && op->getOpcode() == clang::BO_SubAssign ? combined(clang::BO_Sub, 0, *by)
                                                        : known_number();
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
    if (value->EvaluateAsInt(evaluated, in.context())) {
        const auto &number = evaluated.Val.getInt();
        const bool fits =
            number.isSigned() ? number.getMinSignedBits() <= 64 : number.getActiveBits() <= 63;
        return fits ? known_number(number.getExtValue()) : known_number();
    }
    value = value->IgnoreParens();
    if (const auto *cast = dyn_cast<clang::ImplicitCastExpr>(value))
        return held_by(in, cast->getType(), number_of(in, cast->getSubExpr(), known));
    if (const auto found = known.find(named_by(value)); found != known.end())
        return held_by(in, value->getType(), found->second.number);
    if (const auto *op = dyn_cast<clang::UnaryOperator>(value))
        return held_by(in, value->getType(), of_unary(in, op, known));
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
    return left && right ? held_by(in, op->getType(), combined(op->getOpcode(), *left, *right))
                         : known_number();
}

bool is_kept(const function &in, const clang::Stmt *root, const clang::VarDecl *variable)
{
    bool found = variable->hasLocalStorage() && !variable->getType().isVolatileQualified();
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
    for (known_number next = first;; next = combined(clang::BO_Add, *next, *step)) {
        next = held_by(in, counter->getType(), next);
        if (!next)
            return {};
        const auto value = *next;
        inside[counter] = {value, std::to_string(value)};
        const auto goes_on = number_of(in, loop->getCond(), inside);
        if (!goes_on)
            return {};
        if (!*goes_on || found.values.size() > kRounds)
            return found;
        found.values.push_back(value);
    }
}

} // namespace zc::instrument
