/* SPDX-License-Identifier: BSD-3-Clause */
#include "loops.h"

#include <algorithm>

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;
using llvm::isa;

namespace {

/* An inner loop counts as so many iterations, whatever it says: bounds are rarely in the text. */
constexpr double kIterations = 8;

/* do ... while (0), as macros have it. */
bool is_once(const clang::ASTContext &context, const clang::Stmt *loop)
{
    const auto *one = dyn_cast<clang::DoStmt>(loop);
    clang::Expr::EvalResult value;
    return one && one->getCond()->EvaluateAsInt(value, context) && value.Val.getInt() == 0;
}

struct weight {
    double statements = 0, accesses = 0;
};

class weights {
  public:
    explicit weights(const program &all) : program_(all) {}

    weight of(const clang::Stmt *root)
    {
        weight sum;
        add(root, 1, sum);
        return sum;
    }

  private:
    void add(const clang::Stmt *at, double times, weight &to)
    {
        if (!at)
            return;
        if (const auto *reference = dyn_cast<clang::DeclRefExpr>(at)) {
            if (isa<clang::VarDecl>(reference->getDecl()))
                to.accesses += times;
            return;
        }
        if (isa<clang::BinaryOperator>(at) &&
            llvm::cast<clang::BinaryOperator>(at)->isAssignmentOp())
            to.statements += times;
        if (const auto *call = dyn_cast<clang::CallExpr>(at)) {
            to.statements += times;
            for (const auto *callee : called_by(program_, call)) {
                const auto more = of_function(*callee);
                to.statements += times * more.statements;
                to.accesses += times * more.accesses;
            }
        }
        const auto &context = program_.functions().begin()->second.context();
        const auto *body = is_once(context, at) ? nullptr : body_of(at);
        for (const auto *child : at->children())
            add(child, child && child == body ? times * kIterations : times, to);
    }

    weight of_function(const function &one)
    {
        if (const auto found = known_.find(one.name); found != known_.end())
            return found->second;
        known_[one.name] = {}; /* of a recursive call */
        const auto sum = of(one.decl->getBody());
        return known_[one.name] = sum;
    }

    const program &program_;
    std::map<std::string, weight> known_;
};

} // namespace

const clang::Stmt *body_of(const clang::Stmt *loop)
{
    if (const auto *one = dyn_cast_or_null<clang::ForStmt>(loop))
        return one->getBody();
    if (const auto *one = dyn_cast_or_null<clang::WhileStmt>(loop))
        return one->getBody();
    if (const auto *one = dyn_cast_or_null<clang::DoStmt>(loop))
        return one->getBody();
    return nullptr;
}

const clang::Expr *condition_of(const clang::Stmt *loop)
{
    if (const auto *one = dyn_cast_or_null<clang::ForStmt>(loop))
        return one->getCond();
    if (const auto *one = dyn_cast_or_null<clang::WhileStmt>(loop))
        return one->getCond();
    if (const auto *one = dyn_cast_or_null<clang::DoStmt>(loop))
        return one->getCond();
    return nullptr;
}

std::vector<loop> loops_around(const loop &one)
{
    std::vector<loop> found;
    std::vector<frame> way;
    const std::vector<frame> itself{{one.in, nullptr}};
    for (const auto &[in, call] : one.way.empty() ? itself : one.way) {
        const clang::Stmt *at = call ? static_cast<const clang::Stmt *>(call) : one.statement;
        const auto above = found.size();
        way.push_back({in, nullptr});
        for (const auto *up = in->parents->getParent(at); up; up = in->parents->getParent(up))
            if (body_of(up) && !is_once(in->context(), up))
                found.insert(found.begin() + static_cast<std::ptrdiff_t>(above),
                             {in, up, in->place(up), way, 0, 0, false, {}, {}});
        way.back().call = call;
    }
    for (std::size_t i = 0; i < found.size(); i++)
        found[i].depth = static_cast<unsigned>(i);
    return found;
}

std::vector<loop> find_loops(const program &all, const call_graph &calls)
{
    weights measure(all);
    const auto *main = all.find("main");
    if (!main)
        return {};
    const auto whole = measure.of(main->decl->getBody());
    std::vector<loop> found;
    for_each_statement(all, [&](const function *in, const clang::Stmt *each) {
        if (!each || !body_of(each) || is_once(in->context(), each))
            return;
        loop candidate{in, each, in->place(each), {}, 0, 0, false, {}, {}};
        std::string why;
        candidate.way = calls.only_way_to(*in, why);
        if (!why.empty())
            candidate.refused.push_back({candidate.place, why});
        const auto part = measure.of(each);
        candidate.depth = static_cast<unsigned>(loops_around(candidate).size());
        /* What is around it makes all of its iterations as many times. */
        double times = 1;
        for (unsigned i = 0; i < candidate.depth; i++)
            times *= kIterations;
        candidate.cost = std::min(1.0, times * part.statements / std::max(1.0, whole.statements)) *
                         std::min(1.0, times * part.accesses / std::max(1.0, whole.accesses));
        for (const auto &[where, call] : calls.calls_below(*in, body_of(each))) {
            const auto *callee = callee_of(call);
            const auto *known = callee ? find_known(callee->getNameAsString()) : nullptr;
            candidate.communicates |= known && known->is_communication();
        }
        found.push_back(std::move(candidate));
    });
    return found;
}

const loop *choose(const std::vector<loop> &all, double threshold)
{
    const loop *best = nullptr;
    for (const auto &one : all) {
        if (!one.refused.empty() || !one.communicates || one.cost < threshold)
            continue;
        if (!best || one.depth > best->depth || (one.depth == best->depth && one.cost > best->cost))
            best = &one;
    }
    return best;
}

} // namespace zc::instrument
