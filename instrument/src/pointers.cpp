/* SPDX-License-Identifier: BSD-3-Clause */
#include "pointers.h"

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;

namespace {

using keys = std::set<std::string>;

bool is_address(const clang::Expr *value)
{
    return value->getType()->isPointerType() || value->getType()->isArrayType();
}

} // namespace

pointers::pointers(const program &all, const std::vector<assignment> &assignments) : program_(all)
{
    note_types();
    std::vector<std::pair<const function *, const clang::CallExpr *>> calls;
    for_each_statement(all, [&](const function *in, const clang::Stmt *each) {
        if (const auto *call = dyn_cast_or_null<clang::CallExpr>(each))
            calls.emplace_back(in, call);
    });
    do {
        grows_ = false;
        for (const auto &one : assignments)
            set(one);
        for (const auto &[in, call] : calls)
            look_at_call(*in, call);
    } while (grows_);
}

void pointers::note_types()
{
    const auto note = [this](const clang::Decl *decl) {
        if (const auto *variable = dyn_cast<clang::VarDecl>(decl))
            types_.try_emplace(program::key(variable), variable->getType());
        if (const auto *field = dyn_cast<clang::FieldDecl>(decl))
            types_.try_emplace(program::key(field), field->getType());
    };
    for (const auto &[key, variable] : program_.globals())
        note(variable);
    for (const auto &[name, one] : program_.functions()) {
        for (const auto *parameter : one.decl->parameters())
            note(parameter);
        for_each_statement(one.decl->getBody(), [&](const clang::Stmt *each) {
            if (const auto *reference = dyn_cast_or_null<clang::DeclRefExpr>(each))
                note(reference->getDecl());
            if (const auto *member = dyn_cast_or_null<clang::MemberExpr>(each))
                note(member->getMemberDecl());
            if (const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(each))
                for (const auto *decl : declaration->decls())
                    note(decl);
        });
    }
}

void pointers::add(const std::string &key, const keys &targets)
{
    if (targets.empty())
        return;
    auto &known = targets_[key];
    const auto before = known.size();
    known.insert(targets.begin(), targets.end());
    grows_ |= known.size() > before;
}

void pointers::set(const assignment &one)
{
    const auto &any = program_.functions().begin()->second; /* nothing is allocated before main() */
    const auto &in = one.in ? *one.in : any;
    if (!is_address(one.value))
        return;
    if (!one.to)
        add(one.key, targets_of(in, one.value));
    else if (one.type->isPointerType())
        for (const auto &key : objects_of(in, one.to))
            add(key, targets_of(in, one.value));
}

void pointers::look_at_call(const function &in, const clang::CallExpr *call)
{
    const auto *callee = callee_of(call);
    const std::string name = callee && !program_.find(callee) ? callee->getNameAsString() : "";
    if (name == "posix_memalign" && call->getNumArgs() > 0)
        for (const auto &key : targets_of(in, call->getArg(0)))
            add(key, {"block " + in.place(call)});
    if ((name.find("memcpy") == std::string::npos && name.find("memmove") == std::string::npos) ||
        call->getNumArgs() < 2)
        return;
    for (const auto &to : targets_of(in, call->getArg(0)))
        for (const auto &from : targets_of(in, call->getArg(1)))
            add(to, targets_of(from));
}

keys pointers::results_of(const function &in, const clang::CallExpr *call) const
{
    keys found;
    for (const auto *callee : called_by(program_, call)) {
        const auto &more = targets_of(callee->name + "()");
        found.insert(more.begin(), more.end());
    }
    const auto *callee = callee_of(call);
    const auto *known =
        callee && !program_.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
    if (known && known->what == known_call::kind::allocates)
        found.insert("block " + in.place(call));
    /* realloc(), strchr(), memcpy(): what they are given */
    for (unsigned i = 0; known && i < call->getNumArgs(); i++)
        if (call->getArg(i)->getType()->isPointerType()) {
            const auto more = targets_of(in, call->getArg(i));
            found.insert(more.begin(), more.end());
        }
    return found;
}

keys pointers::objects_of(const function &in, const clang::Expr *object) const
{
    object = object->IgnoreParenCasts();
    if (const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(object))
        return targets_of(in, subscript->getBase());
    if (const auto *op = dyn_cast<clang::UnaryOperator>(object);
        op && op->getOpcode() == clang::UO_Deref)
        return targets_of(in, op->getSubExpr());
    const auto key = key_of_object(object);
    return key.empty() ? keys{} : keys{key};
}

keys pointers::targets_of(const function &in, const clang::Expr *pointer) const
{
    pointer = pointer->IgnoreParenCasts();
    if (pointer->getType()->isArrayType())
        return objects_of(in, pointer);
    const auto both = [&](const clang::Expr *one, const clang::Expr *other) {
        auto found = targets_of(in, one);
        const auto more = targets_of(in, other);
        found.insert(more.begin(), more.end());
        return found;
    };
    if (const auto *choice = dyn_cast<clang::ConditionalOperator>(pointer))
        return both(choice->getTrueExpr(), choice->getFalseExpr());
    if (const auto *op = dyn_cast<clang::BinaryOperator>(pointer)) {
        if (!op->isAdditiveOp() && !op->isCompoundAssignmentOp())
            return targets_of(in, op->getRHS());
        return targets_of(in, is_address(op->getLHS()) ? op->getLHS() : op->getRHS());
    }
    if (const auto *op = dyn_cast<clang::UnaryOperator>(pointer)) {
        if (op->getOpcode() == clang::UO_AddrOf)
            return objects_of(in, op->getSubExpr());
        if (op->isIncrementDecrementOp())
            return targets_of(in, op->getSubExpr());
    }
    if (const auto *call = dyn_cast<clang::CallExpr>(pointer))
        return results_of(in, call);
    keys found;
    if (pointer->getType()->isPointerType())
        for (const auto &key : objects_of(in, pointer)) {
            const auto &more = targets_of(key);
            found.insert(more.begin(), more.end());
        }
    return found;
}

const keys &pointers::targets_of(const std::string &key) const
{
    static const keys none;
    const auto found = targets_.find(key);
    return found == targets_.end() ? none : found->second;
}

keys pointers::with_fields(const keys &some) const
{
    keys all;
    for (const auto &key : some) {
        const auto found = types_.find(key);
        auto type = found == types_.end() ? clang::QualType() : found->second;
        while (!type.isNull() && type->isArrayType())
            type = type->getAsArrayTypeUnsafe()->getElementType();
        const auto *record = type.isNull() ? nullptr : type->getAsRecordDecl();
        if (record)
            add_fields(record, all);
        else
            all.insert(key);
    }
    return all;
}

} // namespace zc::instrument
