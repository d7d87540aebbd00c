/* SPDX-License-Identifier: BSD-3-Clause */
#include "accesses.h"

#include "datatypes.h"

namespace zc::instrument {

using clang::dyn_cast_or_null;
using llvm::dyn_cast;
using llvm::isa;

namespace {

constexpr effect kReads{true, false, false}, kWrites{false, true, false}, kBoth{true, true, false},
    kEscapes{true, true, true};

effect of_letter(char letter)
{
    switch (letter) {
    case '.':
    case 'c':
        return {};
    case 'i':
    case 'S':
    case 'T':
        return kReads;
    case 'o':
    case 'u':
    case 'h':
    case 'R':
    case 'P':
        return kWrites;
    case 'e':
        return kEscapes;
    default:
        return kBoth;
    }
}

/* Without the conversion to a pointer to void. */
bool pointer_to_scalar(const clang::Expr *pointer)
{
    const auto type = pointer->IgnoreParenImpCasts()->getType();
    return type->isPointerType() && type->getPointeeType()->isScalarType();
}

/* Do the elements that collective @call gives all ranks fill what its argument @number leads to? */
bool covers_object(const function &in, const clang::CallExpr *call, unsigned number)
{
    const auto object = call->getArg(number)->IgnoreParenImpCasts()->getType()->getPointeeType();
    clang::Expr::EvalResult count;
    if (number + 2 >= call->getNumArgs() ||
        !call->getArg(number + 1)->EvaluateAsInt(count, in.context()) ||
        count.Val.getInt().getExtValue() <= 0)
        return false;
    return count.Val.getInt().getZExtValue() * size_of_datatype(in, call->getArg(number + 2)) >=
           static_cast<std::uint64_t>(in.context().getTypeSizeInChars(object).getQuantity());
}

/* Is @cast a pointer to what @own is, or to void? */
bool keeps_type(const function &in, const clang::Expr *cast, clang::QualType own)
{
    const auto type = cast->getType();
    return !type->isPointerType() || type->isVoidPointerType() ||
           in.context().hasSameUnqualifiedType(type->getPointeeType(), own);
}

/* Does @call return a pointer into what its first argument leads to, and is that kept? Of strtol()
 * and its like that is where they have ended. */
bool returns_first(const function &in, const clang::CallExpr *call, const known_call &known)
{
    if (known.name.starts_with("strto"))
        return call->getNumArgs() > 1 &&
               !call->getArg(1)->isNullPointerConstant(in.context(),
                                                       clang::Expr::NPC_ValueDependentIsNotNull);
    static const std::set<std::string_view> names = {"memcpy",  "memmove", "memset",  "strcpy",
                                                     "strncpy", "strcat",  "strncat", "fgets"};
    return names.count(known.name) > 0 &&
           in.parents->isConsumedExpr(const_cast<clang::CallExpr *>(call));
}

/* The macro is gone when the source has been parsed. It is the one number that MPI libraries make a
 * void pointer of, and not NULL: 1 in Open MPI, -1 in MPICH. */
bool is_in_place(const clang::Expr *value)
{
    const auto *cast = dyn_cast<clang::CastExpr>(value);
    return cast && cast->getCastKind() == clang::CK_IntegralToPointer &&
           cast->getType()->isVoidPointerType();
}

/* Does @value go anywhere but into a comparison, or straight to a collective call of MPI? */
bool is_kept(const function &in, const clang::Expr *value)
{
    for (;;) {
        const clang::Stmt *parent = in.parents->getParent(value);
        if (const auto *call = dyn_cast_or_null<clang::CallExpr>(parent)) {
            const auto *callee = callee_of(call);
            const auto *known = callee ? find_known(callee->getNameAsString()) : nullptr;
            return !known || known->what != known_call::kind::collective;
        }
        if (const auto *op = dyn_cast_or_null<clang::BinaryOperator>(parent);
            op && op->getOpcode() != clang::BO_Comma)
            return !op->isComparisonOp();
        if (!isa_and_nonnull<clang::CastExpr, clang::ParenExpr, clang::ConditionalOperator,
                             clang::BinaryOperator>(parent))
            return true;
        value = llvm::cast<clang::Expr>(parent);
    }
}

} // namespace

accesses::accesses(const program &all) : program_(all)
{
    find_kept_in_place();
    for (const auto &[name, one] : all.functions()) {
        auto &found = by_function_[name];
        for_each_statement(one.decl->getBody(), [&](const clang::Stmt *each) {
            const auto *reference = dyn_cast_or_null<clang::DeclRefExpr>(each);
            const auto *variable =
                reference ? dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
            if (!variable)
                return;
            const auto how = of_object(one, reference, true);
            found.push_back({program::key(variable), variable, reference, how.what, how.defines});
            if (how.what.escapes)
                escaping_.insert(found.back().key);
        });
    }
    /* The address of a variable in the initial value of another one. */
    for_each_initial_statement(all, [this](const clang::Stmt *each) {
        const auto *reference = dyn_cast<clang::DeclRefExpr>(each);
        if (reference && isa<clang::VarDecl>(reference->getDecl()))
            escaping_.insert(program::key(dyn_cast<clang::VarDecl>(reference->getDecl())));
    });
}

accesses::use accesses::of_object_in_operator(const function &in, const clang::Stmt *parent,
                                              const clang::Expr *object, bool whole) const
{
    if (const auto *op = dyn_cast<clang::BinaryOperator>(parent)) {
        if (op->isAssignmentOp() && op->getLHS() == object) {
            if (op->isCompoundAssignmentOp())
                return {kBoth};
            return {kWrites, whole ? op : nullptr};
        }
        return {kReads};
    }
    const auto *op = dyn_cast<clang::UnaryOperator>(parent);
    if (op->isIncrementDecrementOp())
        return {kBoth};
    if (op->getOpcode() == clang::UO_AddrOf)
        return of_pointer(in, op, whole);
    return {kReads};
}

accesses::use accesses::of_object(const function &in, const clang::Expr *object, bool whole) const
{
    for (;;) {
        const clang::Stmt *parent = in.parents->getParent(object);
        if (!parent)
            return {};
        if (const auto *cast = dyn_cast<clang::CastExpr>(parent)) {
            if (cast->getCastKind() == clang::CK_ArrayToPointerDecay)
                return of_pointer(in, cast, false);
            if (cast->getCastKind() == clang::CK_ToVoid)
                return {};
            if (cast->getCastKind() != clang::CK_NoOp &&
                cast->getCastKind() != clang::CK_LValueBitCast)
                return {kReads};
            object = cast;
        } else if (const auto *paren = dyn_cast<clang::ParenExpr>(parent)) {
            object = paren;
        } else if (const auto *member = dyn_cast<clang::MemberExpr>(parent)) {
            object = member;
            whole = false;
        } else if (isa<clang::BinaryOperator, clang::UnaryOperator>(parent)) {
            return of_object_in_operator(in, parent, object, whole);
        } else if (isa<clang::UnaryExprOrTypeTraitExpr>(parent)) {
            return {};
        } else {
            return {kReads};
        }
    }
}

accesses::use accesses::of_pointer_in_operator(const function &in,
                                               const clang::BinaryOperator *parent,
                                               const clang::Expr *pointer) const
{
    if (parent->isAssignmentOp())
        return parent->getLHS() == pointer ? use{} : use{kEscapes};
    if (parent->isAdditiveOp())
        return parent->getType()->isPointerType() ? of_pointer(in, parent, false) : use{};
    if (parent->getOpcode() == clang::BO_Comma)
        return parent->getRHS() == pointer ? of_pointer(in, parent, false) : use{};
    return {}; /* a comparison */
}

accesses::use accesses::of_pointer(const function &in, const clang::Expr *pointer, bool whole) const
{
    const auto own = pointer->getType()->getPointeeType();
    for (;;) {
        const clang::Stmt *parent = in.parents->getParent(pointer);
        if (const auto *block = dyn_cast_or_null<clang::CompoundStmt>(parent)) {
            const auto *whole_block =
                dyn_cast_or_null<clang::StmtExpr>(in.parents->getParent(block));
            if (!whole_block || block->getStmtExprResult() != pointer)
                return {};
            pointer = whole_block; /* GNU's ({ ...; pointer; }) */
            whole = false;
            continue;
        }
        if (!parent)
            return {};
        if (const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(parent))
            return of_object(in, subscript, false);
        if (const auto *member = dyn_cast<clang::MemberExpr>(parent))
            return of_object(in, member, false);
        if (const auto *call = dyn_cast<clang::CallExpr>(parent))
            return of_call(in, call, pointer, whole);
        if (const auto *op = dyn_cast<clang::BinaryOperator>(parent))
            return of_pointer_in_operator(in, op, pointer);
        if (const auto *op = dyn_cast<clang::UnaryOperator>(parent)) {
            if (op->getOpcode() == clang::UO_Deref)
                return of_object(in, op, whole);
            return op->getOpcode() == clang::UO_LNot ? use{} : use{kEscapes};
        }
        if (const auto *cast = dyn_cast<clang::CastExpr>(parent)) {
            if (cast->getCastKind() == clang::CK_PointerToIntegral)
                return {kEscapes};
            if (cast->getCastKind() == clang::CK_ToVoid ||
                cast->getCastKind() == clang::CK_PointerToBoolean)
                return {};
            pointer = cast;
            whole &= keeps_type(in, cast, own);
        } else if (isa<clang::ParenExpr>(parent)) {
            pointer = llvm::cast<clang::Expr>(parent);
        } else if (const auto *choice = dyn_cast<clang::ConditionalOperator>(parent)) {
            if (choice->getCond() == pointer)
                return {};
            pointer = choice;
            whole = false; /* the other one may be written */
        } else if (isa<clang::IfStmt, clang::WhileStmt, clang::ForStmt, clang::DoStmt,
                       clang::UnaryExprOrTypeTraitExpr>(parent)) {
            return {};
        } else {
            return {kEscapes};
        }
    }
}

accesses::use accesses::of_call(const function &in, const clang::CallExpr *call,
                                const clang::Expr *pointer, bool whole) const
{
    for (unsigned i = 0; i < call->getNumArgs(); i++)
        if (call->getArg(i) == pointer) {
            auto what = of_argument(call, i);
            const auto *callee = callee_of(call);
            /* What is received may leave it as it was: of MPI_PROC_NULL, or at another rank than
             * the root. What all ranks are given does not. */
            const auto *known =
                callee && !program_.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
            if (known && i == 0 && returns_first(in, call, *known))
                what |= kEscapes;
            const bool sets =
                known && whole && !what.reads && pointer_to_scalar(call->getArg(i)) &&
                (known->name == "MPI_Comm_rank" ||
                 (known->effect(i) == 'u' &&
                  (known->what != known_call::kind::collective || covers_object(in, call, i))));
            return {what, sets ? call : nullptr};
        }
    return {}; /* the function itself */
}

effect accesses::of_argument(const clang::CallExpr *call, unsigned number) const
{
    const auto *callee = callee_of(call);
    if (const auto *own = program_.find(callee))
        return of_parameter(*own, number);
    const auto *known = callee ? find_known(callee->getNameAsString()) : nullptr;
    if (!known)
        return kEscapes;
    auto found = of_letter(known->effect(number));
    /* What is received in place was sent before. (MPI_Scatter() has it the other way round: its
     * buffer to send is only read, and what is in place of the other is no memory.) */
    const char letter = known->effect(number);
    if (known->what == known_call::kind::collective && known->effect(0) == 'i' &&
        (letter == 'o' || letter == 'u') && may_be_in_place(call->getArg(0)))
        found.reads = true;
    return found;
}

/* Does the program keep MPI_IN_PLACE in a variable, or hand it to a function of its own? */
void accesses::find_kept_in_place()
{
    for_each_statement(program_, [&](const function *in, const clang::Stmt *each) {
        const auto *value = dyn_cast_or_null<clang::Expr>(each);
        if (value && is_in_place(value) && is_kept(*in, value))
            keeps_in_place_ = true;
    });
    for_each_initial_statement(program_, [this](const clang::Stmt *each) {
        const auto *value = dyn_cast<clang::Expr>(each);
        if (value && is_in_place(value))
            keeps_in_place_ = true;
    });
}

/* A pointer of unknown origin is MPI_IN_PLACE only if the program keeps that somewhere. */
bool accesses::may_be_in_place(const clang::Expr *buffer) const
{
    buffer = buffer->IgnoreParens();
    if (is_in_place(buffer))
        return true;
    if (const auto *choice = dyn_cast<clang::ConditionalOperator>(buffer))
        return may_be_in_place(choice->getTrueExpr()) || may_be_in_place(choice->getFalseExpr());
    if (const auto *op = dyn_cast<clang::BinaryOperator>(buffer);
        op && op->getOpcode() == clang::BO_Comma)
        return may_be_in_place(op->getRHS());
    if (const auto *op = dyn_cast<clang::UnaryOperator>(buffer);
        op && op->getOpcode() == clang::UO_AddrOf)
        return false;
    const auto *cast = dyn_cast<clang::CastExpr>(buffer);
    if (!cast)
        return keeps_in_place_;
    switch (cast->getCastKind()) {
    case clang::CK_ArrayToPointerDecay:
    case clang::CK_NullToPointer:
        return false;
    case clang::CK_BitCast:
    case clang::CK_NoOp:
        return may_be_in_place(cast->getSubExpr());
    default:
        return keeps_in_place_;
    }
}

/* What is done with the memory that a parameter points to. */
effect accesses::of_parameter(const function &one, unsigned number) const
{
    if (number >= one.decl->getNumParams())
        return kEscapes;
    const auto *parameter = one.decl->getParamDecl(number);
    const auto [known, is_new] = parameters_.try_emplace(parameter, kEscapes);
    if (!is_new)
        return known->second; /* recursion: the worst is assumed */
    effect found;
    for_each_statement(one.decl->getBody(), [&](const clang::Stmt *each) {
        const auto *reference = dyn_cast_or_null<clang::DeclRefExpr>(each);
        if (!reference || reference->getDecl() != parameter)
            return;
        const auto *parent = one.parents->getParent(reference);
        while (isa_and_nonnull<clang::ParenExpr>(parent))
            parent = one.parents->getParent(parent);
        const auto *cast = dyn_cast_or_null<clang::CastExpr>(parent);
        if (cast && cast->getCastKind() == clang::CK_LValueToRValue) {
            found |= of_pointer(one, cast, true).what;
            return;
        }
        const auto *op = dyn_cast_or_null<clang::UnaryOperator>(parent);
        if (op && op->isIncrementDecrementOp())
            found |= of_pointer(one, op, false).what; /* *p++ */
        else if (op && op->getOpcode() == clang::UO_AddrOf)
            found |= kEscapes;
    });
    return parameters_[parameter] = found;
}

} // namespace zc::instrument
