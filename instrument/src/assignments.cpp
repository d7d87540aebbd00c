/* SPDX-License-Identifier: BSD-3-Clause */
#include "assignments.h"

namespace zc::instrument {

using llvm::dyn_cast;

namespace {

class gathering {
  public:
    explicit gathering(const program &all) : program_(all)
    {
        for_each_initial_statement(all, [this](const clang::Stmt *each) { look(nullptr, each); });
        for (const auto &[key, variable] : all.globals())
            add(nullptr, key, variable->getType(), variable->getInit());
        for_each_statement(all, [this](const function *in, const clang::Stmt *each) {
            if (each)
                look(in, each);
        });
    }

    std::vector<assignment> found;

  private:
    void add(const function *in, const std::string &key, clang::QualType type,
             const clang::Expr *value, const clang::Expr *to = nullptr)
    {
        const auto *list = value ? dyn_cast<clang::InitListExpr>(value) : nullptr;
        if (!list) {
            if (value)
                found.push_back({in, key, to, type, value});
            return;
        }
        for (const auto *each : list->inits())
            if (!list->getType()->isRecordType())
                add(in, key, type, each, to);
    }

    void look(const function *in, const clang::Stmt *each)
    {
        if (const auto *op = dyn_cast<clang::BinaryOperator>(each); op && op->isAssignmentOp())
            add(in, key_of_object(op->getLHS()), op->getLHS()->getType(), op->getRHS(),
                op->getLHS());
        if (const auto *declaration = dyn_cast<clang::DeclStmt>(each))
            for (const auto *decl : declaration->decls())
                if (const auto *variable = dyn_cast<clang::VarDecl>(decl))
                    add(in, program::key(variable), variable->getType(), variable->getInit());
        if (const auto *literal = dyn_cast<clang::CompoundLiteralExpr>(each))
            add(in, key_of_literal(literal), literal->getType(), literal->getInitializer());
        if (const auto *list = dyn_cast<clang::InitListExpr>(each))
            look_at_list(in, list);
        if (const auto *end = dyn_cast<clang::ReturnStmt>(each); end && end->getRetValue())
            add(in, in->name + "()", in->decl->getReturnType(), end->getRetValue());
        if (const auto *call = dyn_cast<clang::CallExpr>(each))
            for (const auto *callee : called_by(program_, call))
                for (unsigned i = 0; i < call->getNumArgs() && i < callee->decl->getNumParams();
                     i++) {
                    const auto *parameter = callee->decl->getParamDecl(i);
                    add(in, program::key(parameter), parameter->getType(), call->getArg(i));
                }
    }

    void look_at_list(const function *in, const clang::InitListExpr *list)
    {
        const auto *record = list->getType()->getAsRecordDecl();
        if (!record || !list->isSemanticForm())
            return;
        if (const auto *member = record->isUnion() ? list->getInitializedFieldInUnion() : nullptr)
            return list->getNumInits() > 0
                       ? add(in, program::key(member), member->getType(), list->getInit(0))
                       : void();
        unsigned i = 0;
        for (const auto *member : record->getDefinition()->fields())
            if (i < list->getNumInits() && !member->isUnnamedBitfield())
                add(in, program::key(member), member->getType(), list->getInit(i++));
    }

    const program &program_;
};

} // namespace

std::string key_of_literal(const clang::CompoundLiteralExpr *literal)
{
    return "literal " + std::to_string(reinterpret_cast<std::uintptr_t>(literal));
}

std::vector<assignment> assignments_of(const program &all)
{
    return gathering(all).found;
}

} // namespace zc::instrument
