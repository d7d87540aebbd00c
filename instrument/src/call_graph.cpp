/* SPDX-License-Identifier: BSD-3-Clause */
#include "call_graph.h"

#include <algorithm>

namespace zc::instrument {

using llvm::dyn_cast_or_null;

call_graph::call_graph(const program &all) : program_(all)
{
    for (const auto &[name, one] : all.functions()) {
        auto &own = callees_[name];
        for_each_statement(one.decl->getBody(), [&, in = &one](const clang::Stmt *each) {
            const auto *call = dyn_cast_or_null<clang::CallExpr>(each);
            if (!call)
                return;
            for (const auto *callee : called_by(all, call)) {
                own.insert(callee);
                callers_[callee->name].push_back({in, call});
            }
        });
    }
}

const std::vector<call_graph::site> &call_graph::callers_of(const function &one) const
{
    static const std::vector<site> none;
    const auto found = callers_.find(one.name);
    return found == callers_.end() ? none : found->second;
}

std::vector<frame> call_graph::only_way_to(const function &to, std::string &why) const
{
    std::vector<frame> way{{&to, nullptr}};
    while (way.front().in->name != "main") {
        const auto &one = *way.front().in;
        const auto &from = callers_of(one);
        if (from.empty()) {
            why = one.name + "() is not called from main()";
            return {};
        }
        if (from.size() > 1) {
            why = one.name + "() is called at " + from[0].in->place(from[0].call) + " and at " +
                  from[1].in->place(from[1].call) +
                  ", so that a successor could come to the safe point in another call";
            return {};
        }
        if (way.size() > program_.functions().size()) {
            why = one.name + "() is recursive";
            return {};
        }
        way.insert(way.begin(), {from[0].in, from[0].call});
    }
    return way;
}

std::set<const function *> call_graph::closure(const std::set<const function *> &from) const
{
    std::set<const function *> found;
    std::vector<const function *> left(from.begin(), from.end());
    while (!left.empty()) {
        const auto *one = left.back();
        left.pop_back();
        if (found.insert(one).second)
            left.insert(left.end(), callees_.at(one->name).begin(), callees_.at(one->name).end());
    }
    return found;
}

std::set<const function *> call_graph::called_below(const clang::Stmt *root) const
{
    std::set<const function *> called;
    for_each_statement(root, [&](const clang::Stmt *each) {
        if (const auto *call = dyn_cast_or_null<clang::CallExpr>(each))
            for (const auto *callee : called_by(program_, call))
                called.insert(callee);
    });
    return closure(called);
}

std::vector<std::pair<const function *, const clang::CallExpr *>>
call_graph::calls_below(const function &in, const clang::Stmt *root) const
{
    std::vector<std::pair<const function *, const clang::CallExpr *>> found;
    const auto add = [&](const function *one, const clang::Stmt *from) {
        for_each_statement(from, [&](const clang::Stmt *each) {
            if (const auto *call = dyn_cast_or_null<clang::CallExpr>(each))
                found.emplace_back(one, call);
        });
    };
    add(&in, root);
    for (const auto *one : called_below(root))
        add(one, one->decl->getBody());
    return found;
}

} // namespace zc::instrument
