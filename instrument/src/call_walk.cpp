/* SPDX-License-Identifier: BSD-3-Clause */
#include "call_walk.h"

#include "control.h"

namespace zc::instrument {

using llvm::dyn_cast;

const known_call *find_message(const program &all, const clang::CallExpr *call)
{
    const auto *callee = callee_of(call);
    const auto *known =
        callee && !all.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
    return known && known->what == known_call::kind::sends ? known : nullptr;
}

void call_walk::run(const function &in, const clang::Stmt *root, const loop &point)
{
    point_ = root == point.statement ? nullptr : point.statement;
    for (const auto &outer : loops_around(point))
        around_.insert(outer.statement);
    for (const auto &[each, call] : point.way)
        to_point_.insert(each);
    step first{&in, root, nullptr, {}, {}, {}, {}};
    way_ = {first};
    before_point_ = kVisits;
    if (!body_of(root)) {
        enter(in, root);
        return;
    }
    enter(in, condition_of(root));
    enter(in, body_of(root));
    if (const auto *counted = dyn_cast<clang::ForStmt>(root))
        enter(in, counted->getInc());
}

bool call_walk::is_of_interest(const clang::CallExpr *call) const
{
    if (find_message(program_, call))
        return true;
    for (const auto *callee : called_by(program_, call)) {
        const auto [found, is_new] = interesting_.try_emplace(callee, to_point_.count(callee) > 0);
        if (is_new && !found->second)
            for (const auto &[in, below] : calls_.calls_below(*callee, callee->decl->getBody()))
                found->second |= find_message(program_, below) != nullptr;
        if (found->second)
            return true;
    }
    return false;
}

void call_walk::enter(const function &in, const clang::Stmt *at)
{
    if (!at || is_cut())
        return;
    steps_++;
    const auto *counted = dyn_cast<clang::ForStmt>(at);
    if (at == point_) {
        enter(in, counted ? counted->getInit() : nullptr);
        before_point_ = visits_.size();
        return;
    }
    if (counted && unroll(in, counted))
        return;
    for (const auto *child : at->children())
        enter(in, child);
    if (const auto *call = dyn_cast<clang::CallExpr>(at))
        if (is_of_interest(call))
            enter_call(call);
}

bool call_walk::unroll(const function &in, const clang::ForStmt *counted)
{
    bool has_messages = false;
    for_each_statement(counted->getBody(), [&](const clang::Stmt *each) {
        steps_++;
        const auto *call = llvm::dyn_cast_or_null<clang::CallExpr>(each);
        has_messages |= call && is_of_interest(call);
    });
    if (!has_messages || around_.count(counted))
        return false;
    way_.back().repeated.erase(counted);
    const auto found = rounds_of(in, counted, way_.back().known);
    if (!found)
        return false;
    const auto count = found->values.size();
    steps_ += count;
    const bool may_stop = has_jumps(in, counted);
    if (may_stop || count > kUnrolled) {
        way_.back().repeated[counted] = may_stop || count > kRounds ? 0 : count;
        return false;
    }
    std::vector<const clang::VarDecl *> declared;
    for_each_statement(counted->getBody(), [&](const clang::Stmt *each) {
        if (const auto *declaration = llvm::dyn_cast_or_null<clang::DeclStmt>(each))
            for (const auto *decl : declaration->decls())
                if (const auto *variable = dyn_cast<clang::VarDecl>(decl);
                    variable && variable->hasLocalStorage())
                    declared.push_back(variable);
    });
    const auto outside = way_.back();
    way_.back().unrolled.insert(counted);
    for (const auto value : found->values) {
        const auto text = std::to_string(value);
        way_.back().known[found->counter] = {value, text};
        way_.back().rounds = outside.rounds + " #" + text;
        for (const auto *variable : declared)
            way_.back().known[variable] = {
                {}, program::key(variable) + outside.known.call + way_.back().rounds};
        enter(in, counted->getBody());
    }
    way_.back() = outside;
    return true;
}

void call_walk::enter_call(const clang::CallExpr *call)
{
    way_.back().call = call;
    if (const auto *known = find_message(program_, call))
        visits_.push_back({way_, known});
    const auto *direct = program_.find(callee_of(call));
    for (const auto *callee : called_by(program_, call)) {
        bool is_entered = false;
        for (const auto &above : way_)
            is_entered |= above.in == callee;
        if (!is_entered)
            enter_function(*callee, call, callee == direct);
    }
    way_.back().call = nullptr;
}

void call_walk::enter_function(const function &callee, const clang::CallExpr *call, bool is_certain)
{
    const auto [recursive, is_new] = recursive_.try_emplace(&callee, false);
    if (is_new)
        recursive->second = calls_.called_below(callee.decl->getBody()).count(&callee) > 0;
    const auto *body = callee.decl->getBody();
    const auto &from = way_.back();
    step next{&callee, body, nullptr, {}, {}, {}, {}, is_certain, recursive->second};
    next.known.call = " by way " + std::to_string(++calls_entered_);
    for (unsigned i = 0; i < callee.decl->getNumParams() && i < call->getNumArgs() && is_certain;
         i++) {
        const auto *parameter = callee.decl->getParamDecl(i);
        const auto type = parameter->getType();
        if (next.is_repeated || !type->isIntegerType())
            continue;
        const auto number = number_of(*from.in, call->getArg(i), from.known);
        /* A narrow one is not what it is called with, unless that is a number. */
        if (callee.context().getTypeSize(type) < 32 && !(number && callee.decl->hasPrototype()))
            continue;
        const auto [kept, is_first] = kept_.try_emplace({&callee, parameter}, false);
        if (is_first)
            kept->second = is_kept(callee, body, parameter);
        if (kept->second)
            next.known[parameter] = {number, now_.text_of(*from.in, call->getArg(i), from.known)};
    }
    way_.push_back(std::move(next));
    enter(callee, body);
    way_.pop_back();
}

} // namespace zc::instrument
