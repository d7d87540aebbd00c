/* SPDX-License-Identifier: BSD-3-Clause */
#include "liveness.h"

#include "known_calls.h"
#include "layout.h"

#include <algorithm>

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;

namespace {

/* A pointer that is called as another type than the function's has no meaning in C. The types may
 * be of two sources: they are compared by name. */
bool may_be_called(const function &one, clang::QualType type)
{
    const auto *pointed =
        type->isPointerType() ? type->getPointeeType()->getAs<clang::FunctionType>() : nullptr;
    const auto *of_pointer = dyn_cast_or_null<clang::FunctionProtoType>(pointed);
    const auto *own = one.decl->getType()->getAs<clang::FunctionProtoType>();
    if (!of_pointer || !own || own->getNumParams() != of_pointer->getNumParams())
        return true;
    const auto name_of = [](clang::QualType each) {
        return each.getCanonicalType().getUnqualifiedType().getAsString();
    };
    bool is_same = name_of(own->getReturnType()) == name_of(of_pointer->getReturnType());
    for (unsigned i = 0; i < own->getNumParams(); i++)
        is_same &= name_of(own->getParamType(i)) == name_of(of_pointer->getParamType(i));
    return is_same;
}

/* The function that @value names, with or without a & or a cast. */
const function *named_by(const program &all, const clang::Expr *value)
{
    value = value->IgnoreParenCasts();
    if (const auto *op = dyn_cast<clang::UnaryOperator>(value);
        op && (op->getOpcode() == clang::UO_AddrOf || op->getOpcode() == clang::UO_Deref))
        value = op->getSubExpr()->IgnoreParenCasts();
    const auto *reference = dyn_cast<clang::DeclRefExpr>(value);
    return reference ? all.find(dyn_cast<clang::FunctionDecl>(reference->getDecl())) : nullptr;
}

/* May it be what MPI_Op_create() is given? */
bool is_operation(const function &one)
{
    return one.decl->getNumParams() == 4 && one.decl->getReturnType()->isVoidType() &&
           std::all_of(one.decl->param_begin(), one.decl->param_end(),
                       [](const auto *each) { return each->getType()->isPointerType(); });
}

/* Is it one of the program's own? Those of the library are numbers, or its variables. */
bool is_own_operation(const program &all, const clang::Expr *value)
{
    const auto &context = all.functions().begin()->second.context();
    const auto *op = dyn_cast<clang::UnaryOperator>(value->IgnoreParenCasts());
    return layouts::opaque(value->getType()) == "MPI_Op" &&
           !value->isIntegerConstantExpr(context) && !(op && op->getOpcode() == clang::UO_AddrOf);
}

std::vector<const function *> find_called(const program &all, const clang::CallExpr *call)
{
    std::vector<const function *> found;
    const auto *callee = callee_of(call);
    if (const auto *one = all.find(callee))
        found.push_back(one);
    /* A function that is handed on may be called by the callee; by a pointer any could be. */
    const auto *known =
        callee && !all.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
    for (unsigned i = 0; i < call->getNumArgs(); i++) {
        const auto *argument = call->getArg(i);
        if (const auto *one = named_by(all, argument)) {
            found.push_back(one);
            continue;
        }
        const bool is_called =
            known && known->effect(i) == 'c' &&
            !argument->isIntegerConstantExpr(all.functions().begin()->second.context());
        const bool is_applied =
            known && known->is_communication() && is_own_operation(all, argument);
        for (const auto &[name, one] : all.functions())
            if ((is_called && may_be_called(one, argument->IgnoreParenCasts()->getType())) ||
                (is_applied && is_operation(one)))
                found.push_back(&one);
    }
    if (!callee)
        for (const auto &[name, one] : all.functions())
            if ((one.decl->getNumParams() == call->getNumArgs() ||
                 (one.decl->isVariadic() && one.decl->getNumParams() < call->getNumArgs())) &&
                may_be_called(one, call->getCallee()->getType()))
                found.push_back(&one);
    return found;
}

} // namespace

const std::vector<const function *> &called_by(const program &all, const clang::CallExpr *call)
{
    const auto found = all.calls().find(call);
    return found != all.calls().end()
               ? found->second
               : all.calls().emplace(call, find_called(all, call)).first->second;
}

liveness::liveness(const program &all, const accesses &used) : program_(all)
{
    for (const auto &[name, one] : all.functions()) {
        auto &own = flows_[name];
        auto &reads = reads_[name];
        for (const auto &each : used.of(one)) {
            if (each.what.reads || each.what.escapes)
                own.reads[each.at].insert(each.key);
            if (each.defines)
                own.defines[each.defines].insert(each.key);
            if ((each.what.reads || each.what.escapes) && each.variable->hasGlobalStorage())
                reads.insert(each.key);
        }
        for_each_statement(one.decl->getBody(), [&own](const clang::Stmt *each) {
            const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(each);
            if (!declaration)
                return;
            for (const auto *decl : declaration->decls())
                if (const auto *variable = dyn_cast<clang::VarDecl>(decl);
                    variable && !variable->hasGlobalStorage())
                    own.defines[each].insert(program::key(variable));
        });
    }
    for (bool grows = true; grows;) {
        grows = false;
        for (const auto &[name, one] : all.functions()) {
            auto &reads = reads_[name];
            const auto before = reads.size();
            for_each_statement(one.decl->getBody(), [&](const clang::Stmt *each) {
                if (const auto *call = dyn_cast_or_null<clang::CallExpr>(each))
                    for (const auto *callee : called_by(all, call)) {
                        const auto more = reads_[callee->name];
                        reads.insert(more.begin(), more.end());
                    }
            });
            grows |= reads.size() > before;
        }
    }
}

void liveness::step(const function &in, const clang::CFGElement &element, variables &live) const
{
    const auto statement = element.getAs<clang::CFGStmt>();
    if (!statement)
        return;
    const auto *at = statement->getStmt();
    const auto &own = flows_.at(in.name);
    const auto kill = [&](const clang::Stmt *by) {
        if (const auto found = own.defines.find(by); found != own.defines.end())
            for (const auto &one : found->second)
                live.erase(one);
    };
    kill(at);
    /* The CFG splits a declaration of several variables into statements of its own. */
    if (const auto *declaration = dyn_cast<clang::DeclStmt>(at))
        for (const auto *decl : declaration->decls())
            if (const auto *variable = dyn_cast<clang::VarDecl>(decl);
                variable && !variable->hasGlobalStorage())
                live.erase(program::key(variable));
    if (const auto *call = dyn_cast<clang::CallExpr>(at))
        for (const auto *callee : called_by(program_, call)) {
            const auto &reads = reads_.at(callee->name);
            live.insert(reads.begin(), reads.end());
        }
    if (const auto found = own.reads.find(at); found != own.reads.end())
        live.insert(found->second.begin(), found->second.end());
}

variables liveness::at_exit_of(const clang::CFGBlock &block,
                               const std::map<unsigned, variables> &entries) const
{
    variables live;
    for (const auto &next : block.succs())
        if (const auto *successor = next.getReachableBlock() ? next.getReachableBlock()
                                                             : next.getPossiblyUnreachableBlock()) {
            const auto found = entries.find(successor->getBlockID());
            if (found != entries.end())
                live.insert(found->second.begin(), found->second.end());
        }
    return live;
}

/* What is live where each block begins. */
std::map<unsigned, variables> liveness::at_entries(const function &in, const variables &after) const
{
    std::map<unsigned, variables> entries;
    entries[in.cfg->getExit().getBlockID()] = after;
    for (bool grows = true; grows;) {
        grows = false;
        for (const auto *block : *in.cfg) {
            if (block == &in.cfg->getExit())
                continue;
            auto live = at_exit_of(*block, entries);
            for (auto it = block->rbegin(); it != block->rend(); ++it)
                step(in, *it, live);
            auto &known = entries[block->getBlockID()];
            if (known.size() != live.size()) { /* it only grows */
                known = std::move(live);
                grows = true;
            }
        }
    }
    return entries;
}

variables liveness::at_body(const function &in, const clang::Stmt *loop,
                            const variables &after) const
{
    const auto entries = at_entries(in, after);
    variables live;
    for (const auto *block : *in.cfg)
        if (block->getTerminatorStmt() == loop && block->succ_size() > 0) {
            const auto &first = *block->succ_begin();
            const auto *body = first.getReachableBlock() ? first.getReachableBlock()
                                                         : first.getPossiblyUnreachableBlock();
            if (body)
                live.insert(entries.at(body->getBlockID()).begin(),
                            entries.at(body->getBlockID()).end());
        }
    return live;
}

variables liveness::behind(const function &in, const clang::CallExpr *call,
                           const variables &after) const
{
    const auto entries = at_entries(in, after);
    for (const auto *block : *in.cfg) {
        auto live = at_exit_of(*block, entries);
        for (auto it = block->rbegin(); it != block->rend(); ++it) {
            const auto statement = it->getAs<clang::CFGStmt>();
            if (statement && statement->getStmt() == call)
                return live;
            step(in, *it, live);
        }
    }
    return {};
}

} // namespace zc::instrument
