/* SPDX-License-Identifier: BSD-3-Clause */
#include "iteration.h"

#include <algorithm>
#include <llvm/Support/raw_ostream.h>

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;
using llvm::isa;
using llvm::isa_and_nonnull;

namespace {

void add_fields(const clang::RecordDecl *record, std::set<std::string> &to)
{
    record = record ? record->getDefinition() : nullptr;
    if (!record)
        return;
    for (const auto *member : record->fields()) {
        to.insert(program::key(member));
        if (!member->getType()->isPointerType())
            add_fields(member->getType()->getAsRecordDecl(), to);
    }
}

const clang::VarDecl *variable_of(const clang::Expr *value)
{
    const auto *reference = dyn_cast_or_null<clang::DeclRefExpr>(value->IgnoreParenCasts());
    return reference ? dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
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

bool is_before(const function &in, const clang::Stmt *one, const clang::Stmt *other)
{
    return in.context().getSourceManager().isBeforeInTranslationUnit(one->getBeginLoc(),
                                                                     other->getBeginLoc());
}

const clang::Expr *condition_of_control(const clang::Stmt *control)
{
    if (const auto *choice = dyn_cast<clang::IfStmt>(control))
        return choice->getCond();
    if (const auto *choice = dyn_cast<clang::SwitchStmt>(control))
        return choice->getCond();
    if (const auto *choice = dyn_cast<clang::ConditionalOperator>(control))
        return choice->getCond();
    if (const auto *both = dyn_cast<clang::BinaryOperator>(control))
        return both->isLogicalOp() ? both->getLHS() : nullptr;
    return condition_of(control);
}

/* Which part of @control @child is; empty: one that is run in any case. */
std::string branch_of(const function &in, const clang::Stmt *control, const clang::Stmt *child,
                      const clang::Stmt *at)
{
    if (const auto *choice = dyn_cast<clang::IfStmt>(control))
        return child == choice->getThen() ? "then" : child == choice->getElse() ? "else" : "";
    if (const auto *choice = dyn_cast<clang::ConditionalOperator>(control))
        return child == choice->getTrueExpr()    ? "then"
               : child == choice->getFalseExpr() ? "else"
                                                 : "";
    if (const auto *both = dyn_cast<clang::BinaryOperator>(control))
        return child == both->getRHS() ? "then" : "";
    if (const auto *choice = dyn_cast<clang::SwitchStmt>(control)) {
        const clang::Stmt *nearest = nullptr;
        for (const auto *label = choice->getSwitchCaseList(); label;
             label = label->getNextSwitchCase())
            if (!is_before(in, at, label) && (!nearest || is_before(in, nearest, label)))
                nearest = label;
        return child == choice->getBody() ? "case " + (nearest ? in.place(nearest) : "") : "";
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

} // namespace

iteration::iteration(const program &all, const call_graph &calls, const accesses &used,
                     const loop &one)
    : program_(all), graph_(calls), used_(used), loop_(one),
      calls_below_(calls.calls_below(*one.in, body_of(one.statement)))
{
    std::set<const function *> first;
    for (const auto &[in, call] : calls_below_)
        for (const auto *callee : called_by(all, call))
            first.insert(callee);
    called_ = calls.closure(first);
    for (const auto &[name, in] : all.functions())
        note_addresses(in, in.decl->getBody());
    note_writes(*one.in, body_of(one.statement), written_in_body_);
    for (const auto *in : called_)
        note_writes(*in, in->decl->getBody(), written_in_body_);
    if (const auto *counted = dyn_cast<clang::ForStmt>(one.statement))
        note_writes(*one.in, counted->getInc(), written_between_);
    note_writes(*one.in, condition_of(one.statement), written_between_);
}

void iteration::note_addresses(const function &in, const clang::Stmt *root)
{
    for_each_statement(root, [&](const clang::Stmt *each) {
        const auto *op = dyn_cast_or_null<clang::UnaryOperator>(each);
        if (!op || op->getOpcode() != clang::UO_AddrOf)
            return;
        const clang::Stmt *up = parent_of(in, op);
        while (isa_and_nonnull<clang::CastExpr, clang::ParenExpr>(up))
            up = parent_of(in, up);
        if (!isa_and_nonnull<clang::CallExpr>(up))
            note_write(op->getSubExpr(), aliased_);
    });
}

/* `for (k = 0; ...; k++)`: what it gives k is the same each time if that from which k starts is. */
bool iteration::is_of_counter(const function &in, const clang::Stmt *write,
                              const clang::Expr *variable)
{
    const auto *counter = variable_of(variable);
    if (!counter || !isa<clang::DeclRefExpr>(variable->IgnoreParens()))
        return false;
    const clang::Stmt *part = write;
    const clang::Stmt *up = parent_of(in, part);
    for (; isa_and_nonnull<clang::BinaryOperator>(up); up = parent_of(in, up))
        part = up;
    const auto *within = dyn_cast_or_null<clang::ForStmt>(up);
    if (!within || within == loop_.statement)
        return false;
    auto &starts = counters_[program::key(counter)];
    if (part == within->getInit()) {
        const auto *op = dyn_cast<clang::BinaryOperator>(write);
        starts.push_back({&in, op && !op->isCompoundAssignmentOp() ? op->getRHS() : nullptr});
        return true;
    }
    if (part != within->getInc())
        return false;
    bool begins_here = false;
    for_each_statement(within->getInit(), [&](const clang::Stmt *each) {
        const auto *op = dyn_cast_or_null<clang::BinaryOperator>(each);
        begins_here |= op && op->isAssignmentOp() && variable_of(op->getLHS()) == counter;
        if (const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(each))
            for (const auto *decl : declaration->decls())
                begins_here |= decl == counter;
    });
    if (const auto *op = dyn_cast<clang::BinaryOperator>(write))
        starts.push_back({&in, op->isCompoundAssignmentOp() ? op->getRHS() : nullptr});
    return begins_here;
}

void iteration::note_writes(const function &in, const clang::Stmt *root, std::set<std::string> &to)
{
    for_each_statement(root, [&](const clang::Stmt *each) {
        if (const auto *op = dyn_cast_or_null<clang::BinaryOperator>(each)) {
            if (op->isAssignmentOp() && !is_of_counter(in, op, op->getLHS()))
                note_write(op->getLHS(), to);
        } else if (const auto *count = dyn_cast_or_null<clang::UnaryOperator>(each)) {
            if (count->isIncrementDecrementOp() && !is_of_counter(in, count, count->getSubExpr()))
                note_write(count->getSubExpr(), to);
        } else if (const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(each)) {
            for (const auto *decl : declaration->decls())
                if (const auto *variable = dyn_cast<clang::VarDecl>(decl))
                    declared_.insert(variable);
        } else if (const auto *call = dyn_cast_or_null<clang::CallExpr>(each)) {
            for (unsigned i = 0; i < call->getNumArgs(); i++) {
                const auto what = used_.of_argument(call, i);
                if (call->getArg(i)->getType()->isPointerType() && (what.writes || what.escapes))
                    note_write_by(call->getArg(i), to);
            }
        }
    });
}

/* @object gets a value. */
void iteration::note_write(const clang::Expr *object, std::set<std::string> &to) const
{
    object = object->IgnoreParenCasts();
    add_fields(object->getType()->getAsRecordDecl(), to);
    if (const auto *member = dyn_cast<clang::MemberExpr>(object)) {
        if (const auto *field = dyn_cast<clang::FieldDecl>(member->getMemberDecl()))
            to.insert(program::key(field));
    } else if (const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(object)) {
        note_write_by(subscript->getBase(), to);
    } else if (const auto *op = dyn_cast<clang::UnaryOperator>(object)) {
        note_write_by(op->getSubExpr(), to);
    } else if (const auto *variable = variable_of(object)) {
        to.insert(program::key(variable));
    }
}

/* What @pointer leads to gets one: of variables, only if the text names them; escaping() has the
 * others. */
void iteration::note_write_by(const clang::Expr *pointer, std::set<std::string> &to) const
{
    pointer = pointer->IgnoreParenCasts();
    const auto type = pointer->getType();
    if (type->isPointerType())
        add_fields(type->getPointeeType()->getAsRecordDecl(), to);
    if (type->isArrayType())
        note_write(pointer, to);
    else if (const auto *op = dyn_cast<clang::UnaryOperator>(pointer))
        note_write(op->getSubExpr(), to);
    else if (const auto *sum = dyn_cast<clang::BinaryOperator>(pointer)) {
        note_write_by(sum->getLHS(), to);
        note_write_by(sum->getRHS(), to);
    } else if (const auto *choice = dyn_cast<clang::ConditionalOperator>(pointer)) {
        note_write_by(choice->getTrueExpr(), to);
        note_write_by(choice->getFalseExpr(), to);
    }
}

bool iteration::is_written(const std::string &key, span over) const
{
    return written_in_body_.count(key) || aliased_.count(key) ||
           (over == span::all_iterations && written_between_.count(key));
}

/* A parameter of a function that the iteration calls is as what it is called with. */
bool iteration::is_fixed_argument(const clang::ParmVarDecl *parameter, span over) const
{
    const auto *decl = dyn_cast<clang::FunctionDecl>(parameter->getDeclContext());
    const auto *one = program_.find(decl);
    if (!one || !called_.count(one))
        return true;
    const auto number = parameter->getFunctionScopeIndex();
    const auto &callers = graph_.callers_of(*one);
    return std::all_of(callers.begin(), callers.end(), [&](const auto &site) {
        return callee_of(site.call) && program_.find(callee_of(site.call)) == one &&
               number < site.call->getNumArgs() &&
               is_fixed(*site.in, site.call->getArg(number), over);
    });
}

/* Asked for once: what is computed of what is computed has as many paths through it as one likes.
 * One that is asked for while it is followed depends on itself, and is taken to differ. */
bool iteration::is_fixed_variable(const clang::VarDecl *variable, span over) const
{
    const auto [known, is_new] = fixed_.try_emplace({variable, over}, false);
    if (is_new)
        known->second = follow(variable, over);
    return known->second;
}

bool iteration::follow(const clang::VarDecl *variable, span over) const
{
    const auto key = program::key(variable);
    if (is_written(key, over) || used_.escaping().count(key))
        return false;
    if (const auto found = counters_.find(key); found != counters_.end())
        for (const auto &[in, value] : found->second)
            if (value && !is_fixed(*in, value, over))
                return false;
    if (const auto *parameter = dyn_cast<clang::ParmVarDecl>(variable))
        return is_fixed_argument(parameter, over);
    if (!declared_.count(variable) || variable->hasGlobalStorage())
        return true;
    const auto *owner =
        program_.find(dyn_cast<clang::FunctionDecl>(variable->getParentFunctionOrMethod()));
    if (!variable->getInit() || !owner)
        return counters_.count(key) > 0;
    return is_fixed(*owner, variable->getInit(), over);
}

bool iteration::is_fixed_call(const function &in, const clang::CallExpr *call, span over) const
{
    const auto *callee = callee_of(call);
    const auto *known =
        callee && !program_.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
    if (!known || known->what != known_call::kind::pure)
        return false;
    for (unsigned i = 0; i < call->getNumArgs(); i++)
        if (call->getArg(i)->getType()->isPointerType() || !is_fixed(in, call->getArg(i), over))
            return false;
    return true;
}

bool iteration::is_fixed(const function &in, const clang::Expr *value, span over) const
{
    clang::Expr::EvalResult number;
    if (!value || value->EvaluateAsInt(number, in.context()))
        return true;
    value = value->IgnoreParenCasts();
    if (const auto *reference = dyn_cast<clang::DeclRefExpr>(value)) {
        const auto *variable = dyn_cast<clang::VarDecl>(reference->getDecl());
        return !variable || is_fixed_variable(variable, over);
    }
    if (const auto *member = dyn_cast<clang::MemberExpr>(value)) {
        const auto *field = dyn_cast<clang::FieldDecl>(member->getMemberDecl());
        return field && !is_written(program::key(field), over) &&
               is_fixed(in, member->getBase(), over);
    }
    if (const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(value)) {
        const auto *base = subscript->getBase()->IgnoreParenCasts();
        return base->getType()->isArrayType() && is_fixed(in, base, over) &&
               is_fixed(in, subscript->getIdx(), over);
    }
    if (const auto *call = dyn_cast<clang::CallExpr>(value))
        return is_fixed_call(in, call, over);
    if (const auto *op = dyn_cast<clang::UnaryOperator>(value);
        op && (op->isIncrementDecrementOp() || op->getOpcode() == clang::UO_Deref))
        return false;
    if (const auto *op = dyn_cast<clang::BinaryOperator>(value); op && op->isAssignmentOp())
        return false;
    if (!isa<clang::UnaryOperator, clang::BinaryOperator, clang::ConditionalOperator,
             clang::IntegerLiteral, clang::FloatingLiteral, clang::UnaryExprOrTypeTraitExpr>(value))
        return false;
    return std::all_of(value->child_begin(), value->child_end(), [&](const clang::Stmt *child) {
        const auto *below = dyn_cast_or_null<clang::Expr>(child);
        return !below || is_fixed(in, below, over);
    });
}

std::string iteration::text_of(const function &in, const clang::Expr *value) const
{
    std::string text;
    llvm::raw_string_ostream out(text);
    value->printPretty(out, nullptr, in.context().getPrintingPolicy());
    for_each_statement(value, [&](const clang::Stmt *each) {
        const auto *reference = dyn_cast_or_null<clang::DeclRefExpr>(each);
        const auto *variable = reference ? dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
        if (!variable)
            return;
        const auto key = program::key(variable);
        out << ' ' << (counters_.count(key) ? key.substr(0, key.find('@')) : key);
    });
    return out.str();
}

void iteration::add_condition(const function &in, const clang::Stmt *control,
                              const std::string &branch, std::set<std::string> &to) const
{
    const auto *condition = condition_of_control(control);
    if (branch.empty() || (condition && is_fixed(in, condition, span::all_iterations)) ||
        (!condition && !body_of(control)))
        return;
    const bool is_same = condition && !body_of(control) && !isa<clang::SwitchStmt>(control) &&
                         is_fixed(in, condition, span::one_iteration);
    to.insert(is_same ? branch + " of " + text_of(in, condition)
                      : branch + " at " + in.place(control) + "." +
                            std::to_string(in.context().getSourceManager().getExpansionColumnNumber(
                                control->getBeginLoc())));
}

/* The statement of @in that an iteration runs as a whole. */
const clang::Stmt *iteration::root_of(const function &in, const clang::Stmt *at) const
{
    const auto *body = body_of(loop_.statement);
    return &in == loop_.in && is_below(in, at, body) ? body : in.decl->getBody();
}

/* What a condition that differs lets be skipped by a jump. It is told whether @at stands in front
 * of the jump or behind it: of the last round of a loop only the part in front is run. */
void iteration::add_jumps(const function &in, const clang::Stmt *root, const clang::Stmt *at,
                          std::set<std::string> &to) const
{
    for_each_statement(root, [&](const clang::Stmt *each) {
        if (!isa_and_nonnull<clang::BreakStmt, clang::ContinueStmt, clang::ReturnStmt,
                             clang::GotoStmt>(each))
            return;
        const bool is_of_function = isa<clang::ReturnStmt, clang::GotoStmt>(each);
        const auto *target = is_of_function ? root : target_of(in, each);
        /* What leaves the loop of the safe point comes to no safe point, if that is run once. */
        const bool leaves = root == body_of(loop_.statement) &&
                            (isa<clang::ReturnStmt>(each) ||
                             (isa<clang::BreakStmt>(each) && target == loop_.statement));
        if (!target || isa<clang::SwitchStmt>(target) || !is_below(in, at, target) ||
            (leaves && loop_.depth == 0))
            return;
        bool is_repeated = leaves;
        for (const auto *up = parent_of(in, each); up && up != root; up = parent_of(in, up))
            is_repeated |= body_of(up) && is_below(in, at, up);
        const bool is_behind = is_before(in, each, at);
        if (!is_behind && (!is_repeated || isa<clang::ContinueStmt>(each)) &&
            !isa<clang::GotoStmt>(each))
            return;
        const clang::Stmt *child = each;
        for (const auto *up = parent_of(in, each); up && child != root; up = parent_of(in, up)) {
            if (up == loop_.statement)
                break;
            if (is_below(in, at, child))
                break; /* it decides about both, and is known by its branch */
            if (condition_of_control(up) || body_of(up)) {
                const auto branch = branch_of(in, up, child, each);
                if (!branch.empty())
                    add_condition(in, up, (is_behind ? "behind " : "before ") + branch, to);
            }
            child = up;
        }
    });
}

void iteration::add_conditions(const function &in, const clang::Stmt *at,
                               std::set<std::string> &seen, std::set<std::string> &to) const
{
    const auto *root = root_of(in, at);
    const clang::Stmt *child = at;
    for (const auto *up = parent_of(in, at); up && child != root; up = parent_of(in, up)) {
        if (up != loop_.statement && (condition_of_control(up) || body_of(up)))
            add_condition(in, up, branch_of(in, up, child, at), to);
        child = up;
    }
    add_jumps(in, root, at, to);
    if (root == body_of(loop_.statement) || !seen.insert(in.name).second)
        return;
    for (const auto &[caller, call] : calls_below_)
        for (const auto *callee : called_by(program_, call))
            if (callee == &in)
                add_conditions(*caller, call, seen, to);
}

std::set<std::string> iteration::conditions_of(const function &in, const clang::Stmt *at) const
{
    std::set<std::string> found, seen;
    add_conditions(in, at, seen, found);
    return found;
}

} // namespace zc::instrument
